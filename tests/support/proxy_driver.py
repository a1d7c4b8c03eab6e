"""The data plane alone (proxy_driver), and origins and clients made of plain sockets for it."""

import os
import re
import socket
import subprocess
import threading
import time

from support.cluster import BIN
from support.ports import free_port
from support.wait import SLOW, until

DRIVER = os.path.join(BIN, "proxy_driver")


class Refused(Exception):
    """The driver answered with an error."""


class Driver:
    """A running data plane; settings are given to start(), the rest goes through methods."""

    def __init__(self, workers=2, log="off", listen=("127.0.0.1:0",), tcp=("127.0.0.1:0",),
                 trust=(), under=(), listen_tls=(), **settings):
        """under: a command that runs it (strace, valgrind). addresses: of listen, then listen_tls."""
        self.process = subprocess.Popen(
            [*under, DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lock = threading.Lock()
        self.backends = {}
        for name, value in settings.items():
            self.cmd(f"set {name} {value}")
        for address in listen:
            self.cmd(f"listen {address}")
        for address in listen_tls:
            self.cmd(f"listen-tls {address}")
        for address in tcp:
            self.cmd(f"tcp {address}")
        for network in trust:
            self.cmd(f"trust {network}")
        self.cmd(f"workers {workers}")
        self.cmd(f"log {log}")
        self.addresses = self.cmd("start").split()
        self.port = int(self.addresses[0].rsplit(":", 1)[1])

    def cmd(self, line):
        with self._lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if answer.startswith("error"):
            raise Refused(answer.strip())
        assert answer.startswith("ok"), f"{line!r} was answered {answer!r}"
        return answer[2:].strip()

    def metrics_text(self):
        with self._lock:
            self.process.stdin.write("metrics\n")
            self.process.stdin.flush()
            lines = []
            while True:
                line = self.process.stdout.readline()
                if line == "ok\n":
                    return "".join(lines)
                assert line, "the driver ended"
                lines.append(line)

    def metrics(self):
        """All series as a dict: 'name{labels}' to number."""
        series = {}
        for line in self.metrics_text().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                series[name] = float(value)
        return series

    def backend(self, name, *endpoints, balance="random", **options):
        """endpoints: objects with .address, or texts for the driver ("127.0.0.1:80*3!")."""
        texts = [e if isinstance(e, str) else e.address for e in endpoints]
        words = [f"{option}={value}" for option, value in options.items()]
        self.cmd(" ".join(["backend", name, balance, *texts, *words]))

    def health(self, name, endpoint, state):
        """state: up or down, as active checks would say."""
        self.cmd(f"health {name} {endpoint.address} {state}")

    def rule(self, path, *targets, kind="prefix", route="test/route", **timeouts):
        words = [f"{name}={value}" for name, value in timeouts.items()]
        self.cmd(" ".join(["rule", path or "-", kind, route, *targets, *words]))

    def host(self, name="a.test"):
        self.cmd(f"host {name}")

    def serve(self, *endpoints, host="a.test", balance="random", **timeouts):
        """One host, one rule for everything, one backend."""
        self.backend("b", *endpoints, balance=balance)
        self.rule("/", "b", **timeouts)
        self.host(host)

    def open_port(self, *targets, port=None, route="test/tcp", **options):
        """A port of a TCP route; without a number a free one. Returns it."""
        port = port or free_port()
        self.rule("", *targets, route=route, **options)
        self.cmd(f"port {port}")
        return port

    def close_port(self, port):
        self.cmd(f"port {port}")

    def connections(self):
        return int(self.cmd("connections"))

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def close(self):
        """End it; fails when it crashed or a sanitizer complained."""
        if self.process.poll() is None:
            self.process.stdin.write("quit\n")
            self.process.stdin.flush()
            self.process.stdin.close()
        try:
            code = self.process.wait(30 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()
        assert code == 0, f"the driver ended with {code}"


class Wire:
    """A socket with a buffer, read by line, length or pattern."""

    def __init__(self, sock, timeout=10.0):
        self.sock = sock
        self.sock.settimeout(timeout * SLOW)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())

    def fill(self):
        chunk = self.sock.recv(65536)
        self.data += chunk
        return len(chunk) != 0

    def until(self, mark):
        while mark not in self.data:
            if not self.fill():
                raise EOFError(f"closed after {self.data[:200]!r}")
        at = self.data.index(mark) + len(mark)
        part, self.data = self.data[:at], self.data[at:]
        return part

    def exactly(self, count):
        while len(self.data) < count:
            if not self.fill():
                raise EOFError(f"closed after {len(self.data)} of {count} bytes")
        part, self.data = self.data[:count], self.data[count:]
        return part

    def rest(self):
        """Everything up to the end of the connection."""
        while self.fill():
            pass
        part, self.data = self.data, b""
        return part

    def head(self):
        """(first line, {lower-case name: value}, raw); repeated fields are joined by ', '."""
        raw = self.until(b"\r\n\r\n")
        lines = raw.decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:-2]:
            name, value = line.split(":", 1)
            key = name.lower()
            value = value.strip()
            fields[key] = f"{fields[key]}, {value}" if key in fields else value
        return lines[0], fields, raw

    def chunks(self):
        """(body, trailer bytes) of a chunked message."""
        body = b""
        while True:
            size = int(self.until(b"\r\n"), 16)
            if size == 0:
                trailers = b""
                while True:
                    line = self.until(b"\r\n")
                    if line == b"\r\n":
                        return body, trailers
                    trailers += line
            body += self.exactly(size)
            assert self.exactly(2) == b"\r\n"

    def body(self, fields):
        if "transfer-encoding" in fields:
            return self.chunks()[0]
        return self.exactly(int(fields.get("content-length", 0)))

    def response(self, method="GET"):
        """(status, fields, body); interim ones are skipped."""
        while True:
            line, fields, _ = self.head()
            status = int(line.split()[1])
            if status >= 200:
                break
        if method == "HEAD" or status in (204, 304):
            return status, fields, b""
        if "transfer-encoding" not in fields and "content-length" not in fields:
            return status, fields, self.rest()
        return status, fields, self.body(fields)

    def at_end(self):
        """True when the other side closed, cleanly or not."""
        try:
            return not self.data and not self.fill()
        except ConnectionResetError:
            return True

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()


def dial(port, timeout=10.0):
    return Wire(socket.create_connection(("127.0.0.1", port), timeout=timeout * SLOW), timeout)


def get(wire, path="/", host="a.test", method="GET", fields=""):
    wire.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
    return wire.response(method)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Script:
    """An origin: handler(wire, number of the connection) runs in a thread for each connection.

    Without a handler it answers each request on a connection with `answer`. Requests are kept as
    (first line, fields, body). What a handler raises is kept in `faults`, but for ends of
    connections.
    """

    def __init__(self, handler=None, answer=OK, port=0):
        self.handler = handler or self._serve
        self.answer = answer
        self.requests = []
        self.faults = []
        self.accepted = 0
        self.open = 0
        self._lock = threading.Lock()
        self._wires = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self._lock:
                number = self.accepted
                self.accepted += 1
                self.open += 1
                wire = Wire(sock, 30)
                self._wires.append(wire)
            threading.Thread(target=self._run, args=(wire, number), daemon=True).start()

    def _run(self, wire, number):
        try:
            self.handler(wire, number)
        except (EOFError, ConnectionError, OSError):
            pass
        except Exception as fault:  # told by close()
            self.faults.append(fault)
        finally:
            wire.close()
            with self._lock:
                self.open -= 1

    def request(self, wire):
        line, fields, _ = wire.head()
        body = wire.body(fields)
        with self._lock:
            self.requests.append((line, fields, body))
        return line, fields, body

    def _serve(self, wire, _):
        while True:
            line, _, _ = self.request(wire)
            answer = self.answer
            if callable(answer):
                answer = answer(line)
            wire.send(answer)

    def stop_listening(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass
        self.listener.close()

    def close(self):
        self.stop_listening()
        with self._lock:
            wires = list(self._wires)
        for wire in wires:
            try:
                wire.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        until(lambda: self.open == 0, "the origin's connections end")
        if self.faults:
            raise self.faults[0]


def quiet_for(seconds):
    """The one place where a test lets time pass: to see that something does not happen."""
    time.sleep(seconds)
