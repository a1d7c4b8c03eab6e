"""Peers that keep no rule, on both sides of a node: clients that cut, stall, flood and reset, and
endpoints that answer with garbage, too early, too late, by halves or not at all.

What each of them does is drawn from a seed; when it does it is the machine's. Nothing here judges
anything: the test looks at the node.
"""

import random
import socket
import struct
import threading

from support.wait import until

PROXY_SOURCE = "127.0.0.66"  # connections from here begin with a PROXY header
_RESET = struct.pack("ii", 1, 0)
_PATIENCE = 2.0  # seconds that a peer waits for the node before it goes on


def reset(sock):
    """Closes with a reset."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    except OSError:
        pass
    sock.close()


def leave(sock, rng):
    if rng.random() < 0.5:
        reset(sock)
    else:
        sock.close()


class Foes:
    """Threads with a seed each that go on until they are stopped, and the sockets they opened."""

    def __init__(self, seed):
        self.seed = seed
        self.stopping = threading.Event()
        self.done = {}  # how often each kind was done
        self._threads = []
        self._sockets = set()
        self._lock = threading.Lock()

    def rng(self, *more):
        return random.Random(f"{self.seed}/{'/'.join(map(str, more))}")

    def run(self, name, step, count=1):
        """step(rng, n), again and again; an OSError is what the other side did."""
        for index in range(count):
            thread = threading.Thread(target=self._loop, args=(name, index, step), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _loop(self, name, index, step):
        rng, number = self.rng(name, index), 0
        while not self.stopping.is_set():
            try:
                step(rng, number)
            except OSError:
                self.pause(0.01)
            number += 1

    def spawn(self, work, *args):
        threading.Thread(target=work, args=args, daemon=True).start()

    def pause(self, seconds):
        self.stopping.wait(seconds)

    def count(self, kind):
        with self._lock:
            self.done[kind] = self.done.get(kind, 0) + 1

    def keep(self, sock):
        with self._lock:
            self._sockets.add(sock)
        return sock

    def drop(self, sock):
        with self._lock:
            self._sockets.discard(sock)

    def stop(self):
        self.stopping.set()
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(30)
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


# ---- endpoints ----

def _head(status, fields=""):
    return f"HTTP/1.1 {status} Whatever\r\n{fields}\r\n".encode()


def _with_length(body, status=200):
    return _head(status, f"Content-Length: {len(body)}\r\n") + body


def _chunked(rng, trailers=b""):
    parts = [b"y" * rng.randint(1, 5000) for _ in range(rng.randint(0, 6))]
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return _head(200, "Transfer-Encoding: chunked\r\n") + body + b"0\r\n" + trailers + b"\r\n"


class Endpoint:
    """One that cannot be relied upon. raw: it speaks no HTTP."""

    def __init__(self, foes, name, raw=False):
        self.foes, self.name, self.raw = foes, name, raw
        self.open = 0
        self._lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(256)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.gentle = False
        foes.keep(self.listener)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        number = 0
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            number += 1
            self.foes.keep(sock)
            with self._lock:
                self.open += 1
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        rng = self.foes.rng(self.name, number)
        sock.settimeout(_PATIENCE * 2)
        try:
            if self.raw:
                self._raw(sock, rng)
            elif not self.gentle and rng.random() < 0.05:
                reset(sock)
            else:
                while self._answer(sock, rng):
                    pass
        except (OSError, EOFError):
            pass
        finally:
            self.foes.drop(sock)
            leave(sock, rng)
            with self._lock:
                self.open -= 1

    def _request(self, sock):
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                raise EOFError
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        if head.startswith((b"PROXY ", b"\r\n\r\n\0")):
            raise EOFError  # whoever expects none
        return head, rest

    @staticmethod
    def _body(sock, head, rest):
        lower = head.lower()
        if b"transfer-encoding" in lower:
            while not rest.endswith(b"0\r\n\r\n"):
                more = sock.recv(65536)
                if not more:
                    raise EOFError
                rest = rest[-16:] + more
        elif b"content-length: " in lower:
            left = int(lower.split(b"content-length: ")[1].split(b"\r\n")[0]) - len(rest)
            while left > 0:
                more = sock.recv(65536)
                if not more:
                    raise EOFError
                left -= len(more)

    def _answer(self, sock, rng):
        """One request. True: the connection goes on."""
        head, rest = self._request(sock)
        if self.gentle:
            self._body(sock, head, rest)
            sock.sendall(_with_length(b"calm"))
            return True
        if b"\nUpgrade:" in head and rng.random() < 0.7:
            sock.sendall(_head(101, "Connection: Upgrade\r\nUpgrade: echo\r\n"))
            self._raw(sock, rng)
            return False
        kind = rng.choice((
            "small", "small", "small", "big", "chunked", "trailers", "until_close", "half",
            "half_head", "garbage", "drip", "interim", "early", "more", "error", "endless", "mute"))
        self.foes.count(f"endpoint {kind}")
        if kind != "early":
            self._body(sock, head, rest)
        return getattr(self, f"_{kind}")(sock, rng)

    def _small(self, sock, rng):
        sock.sendall(_with_length(b"x" * rng.randint(0, 200), rng.choice((200, 200, 204, 304, 404))
                                  if rng.random() < 0.2 else 200))
        return True

    def _big(self, sock, rng):
        sock.sendall(_with_length(b"b" * rng.randint(60000, 900000)))
        return True

    def _chunked(self, sock, rng):
        sock.sendall(_chunked(rng))
        return True

    def _trailers(self, sock, rng):
        sock.sendall(_chunked(rng, b"X-Sum: 1\r\nContent-Length: 5\r\n"))
        return True

    def _until_close(self, sock, rng):
        sock.sendall(_head(200) + b"c" * rng.randint(0, 100000))
        return False

    def _half(self, sock, rng):
        sock.sendall(_head(200, "Content-Length: 500000\r\n") + b"h" * rng.randint(0, 400000))
        return False

    def _half_head(self, sock, rng):
        whole = _with_length(b"ok")
        sock.sendall(whole[:rng.randint(1, len(whole) - 1)])
        self.foes.pause(rng.random() * 0.1)
        return False

    def _garbage(self, sock, rng):
        sock.sendall(rng.randbytes(rng.randint(1, 4000)))
        return rng.random() < 0.5

    def _drip(self, sock, rng):
        for byte in _with_length(b"drip" * 5):
            sock.sendall(bytes((byte,)))
            self.foes.pause(0.01)
        return True

    def _interim(self, sock, rng):
        sock.sendall(_head(103, "Link: </x>\r\n") * rng.choice((1, 5, 400)) + _with_length(b"late"))
        return True

    def _early(self, sock, rng):
        sock.sendall(_with_length(b"early", rng.choice((200, 413))))
        self.foes.pause(rng.random() * 0.05)
        return rng.random() < 0.5

    def _more(self, sock, rng):
        sock.sendall(_with_length(b"one") + rng.choice((b"rest", _with_length(b"two"))))
        return True

    def _error(self, sock, rng):
        sock.sendall(_with_length(b"no", rng.choice((500, 502, 503))))
        return True

    def _endless(self, sock, rng):
        sock.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(100000):
            sock.sendall(b"X-%d: %s\r\n" % (number, b"e" * 200))
        return False

    def _mute(self, sock, rng):
        while sock.recv(65536):
            pass
        return False

    def _raw(self, sock, rng):
        kind = rng.choice(("echo", "echo", "echo", "burst", "finish", "reset", "mute"))
        self.foes.count(f"raw {kind}")
        if kind == "reset":
            sock.recv(1)
            reset(sock)
        elif kind == "mute":
            self._mute(sock, rng)
        elif kind == "finish":
            sock.shutdown(socket.SHUT_WR)
            self._mute(sock, rng)
        elif kind == "burst":
            sock.sendall(b"B" * rng.randint(1, 3000000))
            if rng.random() < 0.5:
                sock.shutdown(socket.SHUT_WR)
                self._mute(sock, rng)
        else:
            while data := sock.recv(65536):
                sock.sendall(data)

    def close(self):
        self.foes.drop(self.listener)
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        until(lambda: self.open == 0, f"{self.name} has no connection", 20)


# ---- clients ----

class Clients:
    """Of one node. hosts: what they ask for; ports: of its TCP routes."""

    def __init__(self, foes, node, hosts, ports):
        self.foes, self.hosts = foes, hosts
        self.http = ("127.0.0.1", node.http_port)
        self.tcp = [(node.tcp_host, port) for port in ports]
        self.waiting = []
        self.lock = threading.Lock()

    KINDS = ("ask", "ask", "ask", "cut", "cut", "slow", "idle", "noise", "upload", "tcp", "tcp",
             "proxy", "upgrade")

    def step(self, rng, _):
        kind = rng.choice(self.KINDS)
        self.foes.count(f"client {kind}")
        getattr(self, f"_{kind}")(rng)

    def _dial(self, place=None, source=None):
        sock = socket.socket()
        sock.settimeout(_PATIENCE)
        try:
            if source is not None:
                sock.bind((source, 0))
            sock.connect(place or self.http)
        except OSError:
            sock.close()
            raise
        return self.foes.keep(sock)

    def _done(self, sock, rng):
        self.foes.drop(sock)
        leave(sock, rng)

    def _request(self, rng):
        host = rng.choice(self.hosts)
        path = rng.choice(("/", "/a/b", "/api/x?y=z", "//e", "/a/../b", "/%41"))
        more = "".join(rng.sample((
            f"X-Client: {rng.randint(0, 1 << 30)}\r\n", "Cookie: storm=abc; a=b\r\n",
            "Origin: https://a.test\r\n", "X-Forwarded-For: 10.0.0.1, 1.2.3.4\r\n",
            "Connection: close\r\n", "TE: trailers\r\n"), rng.randint(0, 4)))
        roll = rng.random()
        if roll < 0.6:
            method = rng.choice(("GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE"))
            return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()
        body = b"p" * rng.choice((0, 1, 100, 30000))
        if roll < 0.8:
            expect = "Expect: 100-continue\r\n" if rng.random() < 0.2 else ""
            return (f"POST {path} HTTP/1.1\r\nHost: {host}\r\n{more}{expect}"
                    f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        return (f"PUT {path} HTTP/1.1\r\nHost: {host}\r\n{more}"
                "Transfer-Encoding: chunked\r\n\r\n").encode() + chunk + b"0\r\n\r\n"

    def _read(self, sock, rng, most=1 << 20):
        """Some of what comes; not to the end."""
        sock.settimeout(rng.choice((0.05, 0.2, _PATIENCE / 2)))
        try:
            while most > 0 and (data := sock.recv(65536)):
                most -= len(data)
        except OSError:
            pass

    def _ask(self, rng):
        sock = self._dial()
        try:
            for _ in range(rng.randint(1, 6)):
                sock.sendall(self._request(rng) * rng.choice((1, 1, 3)))
                self._read(sock, rng, 1)
        finally:
            self._done(sock, rng)

    def _cut(self, rng):
        sock = self._dial()
        try:
            request = self._request(rng)
            at = rng.randint(0, len(request))
            sock.sendall(request[:at])
            if rng.random() < 0.3:
                self.foes.pause(rng.random() * 0.2)
            if rng.random() < 0.3:
                sock.shutdown(socket.SHUT_WR)
                self._read(sock, rng)
        finally:
            self._done(sock, rng)

    def _slow(self, rng):
        sock = self._dial()
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(b"GET /big HTTP/1.1\r\nHost: %s\r\n\r\n" % rng.choice(self.hosts).encode() * 4)
            for _ in range(rng.randint(1, 20)):
                sock.recv(1000)
                self.foes.pause(0.02)
        finally:
            self._done(sock, rng)

    def _idle(self, rng):
        """Connections that say little or nothing, for a while."""
        sock = self._dial(rng.choice((self.http, *self.tcp)))
        sock.sendall(rng.choice((b"", b"\r\n", b"GET / HT", b"G")))
        with self.lock:
            self.waiting.append(sock)
            old = self.waiting.pop(0) if len(self.waiting) > 150 else None
        if old is not None:
            self._done(old, rng)

    def _noise(self, rng):
        sock = self._dial()
        try:
            sock.sendall(rng.choice((
                rng.randbytes(rng.randint(1, 3000)), b"\r\n" * 3000, b"GET / HTTP/1.1\n\n",
                b"GET /" + b"a" * 70000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000,
                b"POST / HTTP/1.1\r\nHost: h0.storm.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                + b"1;x\r\ny\r\n" * 3000 + b"zz\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")))
            self._read(sock, rng)
        finally:
            self._done(sock, rng)

    def _upload(self, rng):
        sock = self._dial()
        try:
            sock.sendall(b"POST /up HTTP/1.1\r\nHost: %s\r\nContent-Length: 400000\r\n\r\n"
                         % rng.choice(self.hosts).encode())
            for _ in range(rng.choice((3, 10, 40))):
                sock.sendall(b"u" * 10000)
                self.foes.pause(rng.choice((0, 0, 0.01)))
            self._read(sock, rng, 1)
        finally:
            self._done(sock, rng)

    def _tcp(self, rng):
        sock = self._dial(rng.choice(self.tcp))
        try:
            sock.settimeout(0.3)
            for _ in range(rng.randint(0, 5)):
                sock.sendall(b"t" * rng.choice((1, 1000, 200000)))
                self._read(sock, rng, 1)
            if rng.random() < 0.5:
                sock.shutdown(socket.SHUT_WR)
                self._read(sock, rng, 5 << 20)
        finally:
            self._done(sock, rng)

    def _proxy(self, rng):
        sock = self._dial(rng.choice((self.http, *self.tcp)), PROXY_SOURCE)
        try:
            address = f"{rng.randint(1, 250)}.{rng.randint(0, 250)}.3.4"
            v1 = f"PROXY TCP4 {address} 10.0.0.1 1234 80\r\n".encode()
            tlv = b"\x04\x00\x03abc"
            v2 = (b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + struct.pack(">H", 12 + len(tlv))
                  + socket.inet_aton(address) + b"\x0a\0\0\x01\x04\xd2\0\x50" + tlv)
            header = rng.choice((
                v1, v1, v2, v2, b"PROXY UNKNOWN\r\n", b"PROXY TCP4 x y 1 2\r\n", b"GET / HTTP/1.1\r\n\r\n",
                v2[:14] + b"\xff\xff" + b"z" * 5000, b"PROXY TCP4 " + b"1" * 200, rng.randbytes(40)))
            data = header + self._request(rng)
            at = rng.randint(0, len(header))
            sock.sendall(data[:at])
            self.foes.pause(rng.choice((0, 0.001, 0.05)))
            if rng.random() < 0.8:
                sock.sendall(data[at:])
                self._read(sock, rng)
        finally:
            self._done(sock, rng)

    def _upgrade(self, rng):
        sock = self._dial()
        try:
            sock.sendall(b"GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
                         % rng.choice(self.hosts).encode() + b"ahead" * rng.randint(0, 1))
            for _ in range(rng.randint(0, 5)):
                self._read(sock, rng, 1)
                sock.sendall(b"w" * rng.choice((1, 70000)))
            if rng.random() < 0.5:
                sock.shutdown(socket.SHUT_WR)
                self._read(sock, rng)
        finally:
            self._done(sock, rng)
