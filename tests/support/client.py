"""HTTP clients for the tests: one that is well-behaved, one that sends what it is told to."""

import http.client
import json
import socket
import threading
import time

from support.wait import SLOW


class Answer:
    """A response, read to its end."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # email.message.Message: case-insensitive
        self.body = body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.text[:400]!r}>"


def request(port, method, path, body=None, headers=None, timeout=10.0):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout * SLOW)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def get(port, host, path="/", **kwargs):
    """GET through a proxy for a host."""
    headers = {"Host": host}
    headers.update(kwargs.pop("headers", {}))
    return request(port, "GET", path, headers=headers, **kwargs)


def send_raw(port, data, timeout=10.0, half_close=False):
    """Send bytes, return everything that comes until the other side closes or time is up."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout * SLOW) as sock:
        sock.sendall(data)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        chunks = []
        try:
            while True:
                chunk = sock.recv(65536)
                if not chunk:
                    break
                chunks.append(chunk)
        except (socket.timeout, ConnectionResetError):
            pass
        return b"".join(chunks)


class Load:
    """Clients that send one request after the other on keep-alive connections.

    A client that finds its idle connection closed before a byte of an answer came sends the request
    again, once, on a new connection to the next port, as browsers and balancers do (RFC 9112 9.3.1:
    the GET is idempotent); that is counted in `repeated`. Everything else that is not an expected
    answer is kept in `lost`.
    """

    def __init__(self, ports, host, path="/", clients=4, expect=None, pause=0.0):
        self.ports = list(ports)
        self.host = host
        self.path = path
        self.expect = expect or (lambda answer: answer.status == 200)
        self.pause = pause
        self.sent = 0
        self.repeated = 0
        self.lost = []
        self.slowest = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(clients)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(30 * SLOW)
            assert not thread.is_alive(), "a client of the load hangs"

    def _exchange(self, connection):
        connection.request("GET", self.path, headers={"Host": self.host})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def _run(self, turn):
        connection = None
        while not self._stop.is_set():
            start = time.monotonic()
            failure = None
            for attempt in range(1 + len(self.ports)):
                used = connection is not None
                if connection is None:
                    port = self.ports[turn % len(self.ports)]
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20 * SLOW)
                try:
                    answer = self._exchange(connection)
                    failure = None if self.expect(answer) else repr(answer)
                    if answer.headers.get("Connection", "").lower() == "close":
                        connection.close()
                        connection = None
                    break
                except (OSError, http.client.HTTPException) as error:
                    connection.close()
                    connection = None
                    turn += 1
                    failure = f"{type(error).__name__}: {error}"
                    refused = isinstance(error, ConnectionRefusedError)
                    idle_closed = used and isinstance(
                        error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
                    )
                    if refused:
                        continue
                    if idle_closed:
                        with self._lock:
                            self.repeated += 1
                        continue
                    break
            with self._lock:
                self.sent += 1
                self.slowest = max(self.slowest, time.monotonic() - start)
                if failure:
                    self.lost.append(failure)
            if self.pause:
                time.sleep(self.pause)
        if connection is not None:
            connection.close()

    def summary(self):
        return (
            f"{self.sent} requests, {len(self.lost)} lost, {self.repeated} repeated, "
            f"slowest {self.slowest * 1000:.0f} ms"
        )
