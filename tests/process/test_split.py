"""However the bytes are cut into segments, both sides see the same: every kind of message and of
fault, in one piece, in two at every place, and byte by byte.

The catalogue is support/streams.py. It goes through the parsers alone, cut at every byte
(fuzz_stream, fuzz_reply), and over sockets through the data plane, where a segment is sent once the
one before was read.
"""

import os
import re
import socket
import subprocess
import threading

import pytest

from support.cluster import BIN
from support.proxy_driver import Driver, Wire, dial
from support.segments import Queues, cut, one_by_one
from support.streams import LIMITS, PROBE, REPLIES, REQUESTS, write_inputs
from support.wait import SLOW

EVERY_BYTES = 220  # streams up to this length are cut at every byte
LONG_CUTS = 40  # of longer ones; and near every line end, up to as many again


def places(raw):
    """Where to cut raw in two."""
    if len(raw) <= EVERY_BYTES:
        found = list(range(1, len(raw)))
    else:
        near = {m.start() + d for m in re.finditer(rb"\r\n", raw) for d in (0, 1, 2)}
        near = sorted(near)[:: max(1, len(near) // LONG_CUTS)]
        even = range(1, len(raw), max(1, len(raw) // LONG_CUTS))
        found = sorted(p for p in {*near, *even} if 0 < p < len(raw))
    return found


# ---- what came, in a form that does not depend on segments ----


def _field(head, name):
    found = re.search(rb"^" + name + rb":[ \t]*([^\r]*)\r$", head, re.M | re.I)
    return found and found.group(1)


class Cut(Exception):
    pass


def _take(raw, at, count):
    if len(raw) < at + count:
        raise Cut(raw[at:])
    return raw[at : at + count], at + count


def _line(raw, at):
    end = raw.find(b"\r\n", at)
    if end < 0:
        raise Cut(b"")
    return raw[at : end + 2], end + 2


def _chunks(raw, at, body):
    while True:
        line, at = _line(raw, at)
        assert re.fullmatch(rb"[0-9a-f]+\r\n", line), line
        if int(line, 16) == 0:
            break
        data, at = _take(raw, at, int(line, 16))
        body.append(data)
        end, at = _take(raw, at, 2)
        assert end == b"\r\n", end
    trailers = b""
    while line != b"\r\n":
        line, at = _line(raw, at)
        trailers += line
    return trailers, at


def messages(raw, asked=None):
    """[(head, body, trailers, whole)] of one side's bytes; chunks are joined, Date is blanked.

    asked: the first letters of the requests, for responses: "H" has no body.
    """
    found, at = [], 0
    while at < len(raw):
        end = raw.find(b"\r\n\r\n", at)
        if end < 0:
            found.append((raw[at:], b"", b"", False))
            break
        head, at = raw[at : end + 4], end + 4
        shown = re.sub(rb"(?m)^Date: [^\r]*\r\n", b"Date: -\r\n", head)
        body, trailers, whole = [], b"", True
        status = head.startswith(b"HTTP/1.1 ") and int(head[9:12])
        method = b"G"
        if asked is not None and status and status >= 200:
            method, asked = asked[:1], asked[1:]
        try:
            if status == 101 or (status and status >= 200 and _field(head, b"Upgrade")):
                body, at = [raw[at:]], len(raw)
            elif status and (status < 200 or status in (204, 304) or method == b"H"):
                pass
            elif _field(head, b"Transfer-Encoding"):
                trailers, at = _chunks(raw, at, body)
            elif _field(head, b"Content-Length"):
                data, at = _take(raw, at, int(_field(head, b"Content-Length")))
                body.append(data)
            elif status:
                body, at = [raw[at:]], len(raw)
        except Cut as rest:
            body += rest.args
            whole, at = False, len(raw)
        found.append((shown, b"".join(body), trailers, whole))
    return found


def statuses(found):
    return tuple(int(head[9:12]) for head, _, _, _ in found if head.startswith(b"HTTP/1.1 "))


# ---- an origin that keeps what came and answers in pieces ----


class Recorder:
    """Takes connections; what a request is answered with is decided by `reply`."""

    def __init__(self, reply):
        self.reply = reply
        self.received = []  # of each connection: bytes
        self.broken = []
        self.lock = threading.Lock()
        self.idle = threading.Condition(self.lock)
        self.open = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.queues = threading.local()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.open += 1
                kept = bytearray()
                self.received.append(kept)
            threading.Thread(target=self._run, args=(sock, kept), daemon=True).start()

    def _run(self, sock, kept):
        queues = Queues()
        wire = Wire(sock, 60)
        inner = wire.sock.recv

        def fill():
            data = inner(65536)
            with self.lock:
                kept.extend(data)
            wire.data += data
            return len(data) != 0

        wire.fill = fill
        try:
            while self.reply(self, wire, queues):
                pass
        except (EOFError, OSError):
            pass
        except Exception as fault:  # told by the test
            self.broken.append(fault)
        finally:
            sock.close()
            queues.close()
            with self.lock:
                self.open -= 1
                self.idle.notify_all()

    def take(self):
        """All messages since the last call; those that are not whole are left out."""
        with self.lock:
            found = []
            for kept in self.received:
                found += [m[:3] for m in messages(bytes(kept)) if m[3]]
                kept.clear()
            self.received = self.received[-64:]
        assert not self.broken, self.broken
        return found

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def all_of(sock):
    """(what comes up to the end of the connection, whether that was a reset)"""
    got = []
    try:
        while data := sock.recv(65536):
            got.append(data)
    except ConnectionResetError:
        return b"".join(got), True
    return b"".join(got), False


@pytest.fixture
def world():
    """world(reply, options of the rule) -> (driver, recorder, queues)"""
    made = []

    def make(reply, **options):
        recorder = Recorder(reply)
        driver = Driver(workers=1, **LIMITS)
        driver.serve(recorder, **options)
        made.append((driver, recorder, Queues()))
        return made[-1]

    yield make
    for driver, recorder, queues in made:
        driver.close()
        recorder.close()
        queues.close()


# ---- requests ----


def answer_request(recorder, wire, queues):
    line, fields, _ = wire.head()
    if fields.get("upgrade") == "echo" and "content-length" not in fields:
        wire.send("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        wire.send(wire.data)
        while wire.fill():
            wire.send(wire.data)
            wire.data = b""
        return False
    if "expect" in fields:
        wire.send("HTTP/1.1 100 Continue\r\n\r\n")
    body, trailers = b"", b""
    if "transfer-encoding" in fields:
        body, trailers = wire.chunks()
    else:
        body = wire.exactly(int(fields.get("content-length", 0)))
    told = f"{line} {sorted(fields.items())} {body!r} {trailers!r}".encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(told)
    wire.send(head if line.startswith("HEAD ") else head + told)
    return True


def exchange(driver, queues, case, pieces):
    """What the client gets for its stream in these pieces."""
    wire = dial(driver.port, 20)
    with wire.sock as sock:
        if queues.send(sock, pieces) and case.end == "fin":
            sock.shutdown(socket.SHUT_WR)
        return all_of(sock)[0]


def methods(raw):
    """First letters of the request lines in a stream, as good as a test needs it."""
    return b"".join(re.findall(rb"(?m)^([A-Z])[A-Z]* \S+ HTTP/1\.[01]\r$", raw))


# What makes a request take the longer way.
POLICIES = {"sticky": "ROUTE", "at_once": 1000, "rate": 100000000, "allow": "127.0.0.0/8", "attempts": 2}


@pytest.mark.parametrize("options", [{}, POLICIES], ids=["plain", "policies"])
@pytest.mark.parametrize("part", range(4))
def test_requests_in_segments(world, show, part, options):
    driver, recorder, queues = world(answer_request, **options)
    runs = 0
    for case in REQUESTS[part::4]:
        raw = case.raw + (PROBE if case.end == "probe" else b"")
        asked = methods(raw)

        def run(pieces):
            got = exchange(driver, queues, case, pieces)
            return messages(got, asked), recorder.take()

        whole = run([raw])
        assert statuses(whole[0]) == case.statuses, (case.name, whole)
        assert all(m[3] for m in whole[0]), (case.name, whole)
        for place in places(raw)[:: 3 if options else 1]:
            assert run(cut(raw, place)) == whole, (case.name, place, cut(raw, place))
            runs += 1
        if len(raw) <= 2 * EVERY_BYTES:
            assert run(one_by_one(raw)) == whole, (case.name, "byte by byte")
            runs += 1
    show(f"{len(REQUESTS[part::4])} streams of clients in {runs} cuts")


# ---- replies ----

ASKED = {
    "G": b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
    "H": b"HEAD / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
    "0": b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n",
    "U": b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade, close\r\nUpgrade: echo\r\n\r\n",
}


class Scripted:
    """Replies with the pieces of the moment; says when they are out and read."""

    def __init__(self):
        self.pieces, self.close = [], False
        self.done = threading.Event()

    def __call__(self, recorder, wire, queues):
        wire.head()
        goes_on = not self.close
        try:
            if queues.send(wire.sock, self.pieces) and goes_on:
                queues.wait_read(wire.sock)
            elif not goes_on:
                wire.sock.close()
        except OSError:
            goes_on = False  # closed meanwhile
        self.done.set()
        return goes_on


@pytest.mark.parametrize("part", range(4))
def test_replies_in_segments(world, show, part):
    script = Scripted()
    driver, recorder, queues = world(script)
    runs = 0
    for case in REPLIES[part::4]:

        def run(pieces):
            script.pieces, script.close = pieces, case.close
            script.done.clear()
            wire = dial(driver.port, 20)
            with wire.sock as sock:
                sock.sendall(ASKED[case.asked])
                got, was_reset = all_of(sock)
            assert script.done.wait(20 * SLOW)
            recorder.take()
            found = messages(got, b"H" if case.asked == "H" else b"G")
            if was_reset and found:
                found[-1] = (*found[-1][:3], False)  # else its end could look like any other
            return found

        whole = run([case.raw])
        assert statuses(whole)[-1:] == ((case.status,) if case.status else ()), (case.name, whole)
        assert whole[-1][3] == case.whole, (case.name, whole)
        for pieces in [*(cut(case.raw, p) for p in places(case.raw)), one_by_one(case.raw)]:
            if len(pieces) > 2 * EVERY_BYTES:
                continue
            got = run(pieces)
            if not case.whole:
                # How much of it came before it broke is chance; that it broke is not.
                assert got[-1][0] == whole[-1][0] and not got[-1][3], (case.name, pieces, got)
                got, whole[-1:] = got[:-1] + whole[-1:], whole[-1:]
            assert got == whole, (case.name, pieces, got, whole)
            runs += 1
    show(f"{len(REPLIES[part::4])} streams of endpoints in {runs} cuts")


# ---- the parsers alone ----


@pytest.mark.parametrize("program", ["fuzz_stream", "fuzz_reply"])
def test_parsers_see_the_same_at_every_cut(tmp_path, program):
    """Every cut of every stream, and what is written on has one reading for a strict parser."""
    write_inputs(program, tmp_path)
    result = subprocess.run(
        [os.path.join(BIN, "fuzz", program), tmp_path], capture_output=True, text=True,
        timeout=120 * SLOW, check=False, env={**os.environ, "SKEIN_EVERY_CUT": "1"},
    )
    assert result.returncode == 0, result.stderr[-2000:]
