"""An origin that keeps the very bytes of the requests it got and answers what it is told to."""

import socket
import threading


class Echo:
    """One thread per connection. Answers by path: `answers[path]` is a whole response in bytes, or a
    function of the request that gives one; anything else gets a small 200."""

    def __init__(self):
        self.requests = []
        self.answers = {}
        self.lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self):
        self._socket.close()

    def last(self):
        with self.lock:
            return self.requests[-1]

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            data = b""
            while True:
                request, data = self._read(connection, data)
                if request is None:
                    return
                with self.lock:
                    self.requests.append(request)
                answer = self.answers.get(request.path)
                if callable(answer):
                    answer = answer(request)
                try:
                    connection.sendall(answer or ok(b"ok", head=request.method == "HEAD"))
                except OSError:
                    return

    @staticmethod
    def _read(connection, data):
        try:
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return None, b""
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            request = Request(head)
            if request.field("transfer-encoding") == "chunked":
                while not data.endswith(b"0\r\n\r\n"):
                    more = connection.recv(65536)
                    if not more:
                        return None, b""
                    data += more
                return request, b""
            length = int(request.field("content-length") or 0)
            while len(data) < length:
                more = connection.recv(65536)
                if not more:
                    return None, b""
                data += more
            request.body = data[:length]
            return request, data[length:]
        except OSError:
            return None, b""


class Request:
    """A request head as it came."""

    def __init__(self, head):
        self.head = head
        self.body = b""
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ")
        self.path = self.target.partition("?")[0]
        self.lines = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]

    def fields(self, name):
        return [value for key, value in self.lines if key.lower() == name.lower()]

    def field(self, name):
        values = self.fields(name)
        return values[0] if values else None


def ok(body, *lines, status="200 OK", head=False):
    text = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines, "", ""]
    return "\r\n".join(text).encode("latin-1") + (b"" if head else body)
