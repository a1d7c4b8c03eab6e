"""The data plane when something goes wrong: dead, slow, lying endpoints; absent, slow clients."""

import socket
import threading
import time

import pytest

from support.ports import free_port
from support.proxy_driver import OK, Driver, Script, dial, get, quiet_for
from support.wait import SLOW, until


@pytest.fixture
def driver_of():
    """driver_of(**settings): a driver that is ended with the test."""
    made = []

    def make(**settings):
        made.append(Driver(**settings))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def origin_of():
    made = []

    def make(*args, **kwargs):
        made.append(Script(*args, **kwargs))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


def dead_address():
    return f"127.0.0.1:{free_port()}"


class BlackHole:
    """An address whose accept queue is full: a connect to it neither succeeds nor fails."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.fill = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(self.listener.getsockname())
            self.fill.append(sock)

    def close(self):
        for sock in self.fill:
            sock.close()
        self.listener.close()


# ---- no response, or another endpoint's ----


def test_refused_endpoints_are_passed_over(driver_of, origin_of):
    origin = origin_of()
    driver = driver_of(workers=1)
    driver.serve(dead_address(), dead_address(), origin)
    for _ in range(30):
        wire = dial(driver.port)
        wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc")
        assert wire.response()[0] == 200
    series = driver.metrics()
    # Each is tried once, then skipped for a second.
    assert series['skein_upstream_connect_failures_total{reason="refused"}'] <= 2 * 8
    assert series["skein_retries_total"] >= 1
    assert origin.requests[0][2] == b"abc"


def test_all_refused_is_502_and_none_configured_503(driver_of):
    driver = driver_of()
    driver.serve(dead_address(), dead_address())
    wire = dial(driver.port)
    for _ in range(5):  # the last ones are tried although they failed just now
        assert get(wire)[0] == 502
    driver.backend("b")
    status, fields, _ = get(wire)
    assert (status, fields["retry-after"]) == (503, "1")
    driver.backend("b", dead_address() + "*0", dead_address() + "!")
    assert get(wire)[0] == 503


def test_connect_timeout_goes_to_another_endpoint(driver_of, origin_of):
    hole = BlackHole()
    origin = origin_of()
    driver = driver_of(connect_ms=200)
    driver.serve(hole.address, origin, balance="rr")
    begin = time.monotonic()
    for _ in range(4):
        assert get(dial(driver.port))[0] == 200
    assert time.monotonic() - begin < 3 * SLOW
    driver.backend("b", hole.address)
    assert get(dial(driver.port))[0] == 504
    series = driver.metrics()
    assert series['skein_upstream_connect_failures_total{reason="timeout"}'] >= 1
    hole.close()


@pytest.mark.parametrize("method, again", [("GET", True), ("PUT", True), ("POST", False)])
def test_stale_pooled_connection(driver_of, origin_of, method, again):
    """The endpoint takes the request on a pooled connection and closes without a byte."""

    def handler(wire, number):
        origin.request(wire)
        wire.send(OK)
        if number == 0:
            wire.head()
            return
        while True:
            origin.request(wire)
            wire.send(OK)

    origin = origin_of(handler)
    driver = driver_of(workers=1)
    driver.serve(origin)
    wire = dial(driver.port)
    assert get(wire)[0] == 200
    body = "" if method == "GET" else "hello"
    wire.send(f"{method} / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    assert wire.response()[0] == (200 if again else 502)
    if again:
        assert origin.requests[-1][2] == body.encode()
        assert driver.metrics()["skein_upstream_stale_total"] == 1


def test_closed_idle_connections_are_not_used(driver_of, origin_of):
    """An endpoint that closes after each response, without saying so."""

    def handler(wire, _):
        origin.request(wire)
        wire.send(OK)

    origin = origin_of(handler)
    driver = driver_of()
    driver.serve(origin)
    wire = dial(driver.port)
    for i in range(100):
        method = "POST" if i % 2 else "GET"
        status, _, _ = get(wire, method=method, fields="Content-Length: 0\r\n")
        assert status in (200, 502)
        if method == "GET":
            assert status == 200


def test_stray_bytes_end_an_idle_connection(driver_of, origin_of):
    gone = threading.Event()

    def handler(wire, number):
        origin.request(wire)
        wire.send(OK)
        if number == 0:
            quiet_for(0.2)
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            assert wire.at_end()
            gone.set()
            return
        origin.request(wire)
        wire.send(OK)

    origin = origin_of(handler)
    driver = driver_of(workers=1)
    driver.serve(origin)
    wire = dial(driver.port)
    assert get(wire)[2] == b"ok"
    assert gone.wait(10 * SLOW)
    assert get(wire)[2] == b"ok"


def test_surplus_behind_a_response_is_never_given_to_another(driver_of, origin_of):
    def answer(_):
        return OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

    origin = origin_of(answer=answer)
    driver = driver_of(workers=1)
    driver.serve(origin)
    wire = dial(driver.port)
    for _ in range(20):
        assert get(wire)[2] == b"ok"
    assert origin.accepted == 20


def test_idle_connections_expire(driver_of, origin_of):
    def answer(line):
        if "short" in line:
            return b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 2\r\n\r\nok"
        return OK

    origin = origin_of(answer=answer)
    driver = driver_of(workers=1)
    driver.serve(origin)
    wire = dial(driver.port)
    get(wire, "/short")
    assert origin.open == 1
    begin = time.monotonic()
    until(lambda: origin.open == 0, "the endpoint's own limit, less a second")
    assert 0.5 < time.monotonic() - begin < 3 * SLOW
    get(wire, "/")
    begin = time.monotonic()
    until(lambda: origin.open == 0, "the default")
    assert time.monotonic() - begin > 3


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
        b"HTTP/1.1 99 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"",
    ],
)
def test_unreadable_responses_are_502(driver_of, origin_of, raw):
    def handler(wire, _):
        origin.request(wire)
        wire.send(raw)

    origin = origin_of(handler)
    driver = driver_of()
    driver.serve(origin)
    wire = dial(driver.port)
    assert get(wire)[0] == 502
    driver.backend("b", origin_of())
    assert get(wire)[0] == 200  # the client's connection is fine


def test_cut_responses_are_seen_to_be_cut(driver_of, origin_of):
    answers = {
        "/length": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "/bad": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxx\r\n",
    }

    def handler(wire, _):
        line, _, _ = origin.request(wire)
        wire.send(answers[line.split()[1]])

    origin = origin_of(handler)
    driver = driver_of()
    driver.serve(origin)
    for path in answers:
        wire = dial(driver.port)
        with pytest.raises(EOFError):
            get(wire, path)
        # An HTTP/1.0 client has only the way the connection ends to go by.
        wire = dial(driver.port)
        wire.send(f"GET {path} HTTP/1.0\r\nHost: a.test\r\n\r\n")
        wire.head()
        if path == "/length":
            assert wire.rest() == b"abc"
        else:
            with pytest.raises(ConnectionResetError):
                wire.rest()
    until(lambda: driver.metrics()["skein_responses_cut_total"] == 6, "they are counted")


# ---- time ----


def test_server_timeout(driver_of, origin_of):
    def handler(wire, _):
        line, _, _ = origin.request(wire)
        if "half" in line:
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        wire.rest()

    origin = origin_of(handler)
    driver = driver_of(workers=1)
    driver.serve(origin, server_ms=300)
    wire = dial(driver.port)
    begin = time.monotonic()
    assert get(wire)[0] == 504
    assert 0.25 < time.monotonic() - begin < 2 * SLOW
    with pytest.raises(EOFError):
        get(wire, "/half")
    until(lambda: origin.open == 0, "both connections are closed")
    assert origin.accepted == 2  # a late request is not repeated


def test_slow_but_steady_is_no_timeout(driver_of, origin_of):
    def handler(wire, _):
        origin.request(wire)
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
        for _ in range(8):
            quiet_for(0.1)
            wire.send("x")
        wire.rest()

    origin = origin_of(handler)
    driver = driver_of()
    driver.serve(origin, server_ms=350, client_ms=350)
    wire = dial(driver.port)
    wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 8\r\n\r\n")
    for _ in range(8):
        quiet_for(0.1)
        wire.send("y")
    assert wire.response()[2] == b"x" * 8


def test_client_timeouts(driver_of, origin_of):
    driver = driver_of(client_header_ms=300, client_ms=300, keepalive_ms=300)
    origin = origin_of()
    driver.serve(origin)
    silent = dial(driver.port)
    assert silent.response()[0] == 408
    assert silent.at_end()

    half = dial(driver.port)
    half.send("GET / HTTP/1.1\r\nHost:")
    status, fields, _ = half.response()
    assert (status, fields["connection"]) == (408, "close")
    assert half.at_end()

    body = dial(driver.port)
    body.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc")
    assert body.response()[0] == 408
    assert body.at_end()

    idle = dial(driver.port)
    assert get(idle)[0] == 200
    begin = time.monotonic()
    assert idle.at_end()
    assert time.monotonic() - begin > 0.25

    drip = dial(driver.port)  # a byte now and then does not extend the time for the head
    begin = time.monotonic()
    with pytest.raises((ConnectionError, EOFError)):
        for byte in b"GET / HTTP/1.1\r\nHost: a.test\r\n" * 10:
            drip.send(bytes([byte]))
            quiet_for(0.05)
    assert time.monotonic() - begin < 5 * SLOW
    until(lambda: driver.connections() == 0, "all are closed")


def test_tunnel_timeout(driver_of, origin_of):
    def handler(wire, _):
        wire.head()
        wire.send("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        while wire.fill():
            wire.send(wire.data)
            wire.data = b""

    origin = origin_of(handler)
    driver = driver_of(tunnel_ms=400, client_ms=100, server_ms=100)
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    wire.head()
    for _ in range(5):
        quiet_for(0.2)
        wire.send("a")
        assert wire.exactly(1) == b"a"
    begin = time.monotonic()
    assert wire.at_end()
    assert time.monotonic() - begin > 0.3
    until(lambda: origin.open == 0, "the endpoint's side is closed too")


# ---- absent and slow clients ----


@pytest.mark.parametrize("end", ["close", "reset"])
def test_client_abort_cancels_the_upstream(driver_of, origin_of, end):
    asked = threading.Event()

    def handler(wire, _):
        wire.head()
        asked.set()
        wire.rest()

    origin = origin_of(handler)
    driver = driver_of()
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert asked.wait(10 * SLOW)
    getattr(wire, end)()
    until(lambda: origin.open == 0 and driver.connections() == 0, "both sides are closed")
    until(lambda: driver.metrics()["skein_client_aborts_total"] == 1, "it is counted")


def test_slow_reader_bounds_memory(driver_of, origin_of):
    """100 MB towards a client that does not read: the origin is held back, the proxy stays small."""
    size = 100 << 20
    sent = [0]

    def handler(wire, _):
        origin.request(wire)
        wire.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")
        block = b"z" * 65536
        while sent[0] < size:
            wire.send(block)
            sent[0] += len(block)

    origin = origin_of(handler)
    driver = driver_of(workers=1)
    driver.serve(origin)
    before = driver.memory_kib()
    wire = dial(driver.port, timeout=60)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.head()

    def stalled():
        at = sent[0]
        quiet_for(0.3)
        return sent[0] == at

    until(stalled, "the origin is held back", timeout=20)
    assert sent[0] < size // 2
    assert driver.memory_kib() - before < 4096
    got = len(wire.data)
    while got < size:
        chunk = wire.sock.recv(1 << 20)
        assert chunk
        got += len(chunk)
    assert driver.memory_kib() - before < 4096
    until(lambda: driver.metrics()['skein_responses_total{code="2xx"}'] == 1, "it is counted")


def test_slow_origin_bounds_memory(driver_of, origin_of):
    """The same the other way: 100 MB of request body to an origin that waits before it reads."""
    size = 100 << 20
    go = threading.Event()

    def handler(wire, _):
        wire.head()
        assert go.wait(60)
        left = size - len(wire.data)
        while left:
            left -= len(wire.sock.recv(1 << 20))
        wire.send(OK)
        wire.data = b""
        wire.rest()

    origin = origin_of(handler)
    driver = driver_of(workers=1)
    driver.serve(origin)
    before = driver.memory_kib()
    wire = dial(driver.port, timeout=60)
    wire.send(f"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n")
    sent = [0]

    def send():
        block = b"z" * 65536
        while sent[0] < size:
            wire.send(block)
            sent[0] += len(block)

    sender = threading.Thread(target=send)
    sender.start()

    def stalled():
        at = sent[0]
        quiet_for(0.3)
        return sent[0] == at

    until(stalled, "the client is held back", timeout=20)
    assert sent[0] < size // 2
    assert driver.memory_kib() - before < 4096
    go.set()
    sender.join()
    assert wire.response()[0] == 200


def test_reader_that_never_reads_is_cut_off(driver_of, origin_of):
    def handler(wire, _):
        origin.request(wire)
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n")
        while True:
            wire.send(b"z" * 65536)

    origin = origin_of(handler)
    driver = driver_of(client_ms=500)
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    until(lambda: origin.open == 0 and origin.accepted == 1, "the endpoint's side is closed")
    until(lambda: driver.connections() == 0, "the client's side is closed")
    wire.close()


def test_many_clients_that_vanish(driver_of, origin_of):
    def answer(_):
        return b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"q" * 200000

    origin = origin_of(answer=answer)
    driver = driver_of()
    driver.serve(origin)

    def vanish(turn):
        for i in range(30):
            wire = dial(driver.port)
            wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
            if (turn + i) % 3 == 0:
                wire.reset()
            elif (turn + i) % 3 == 1:
                wire.fill()
                wire.close()
            else:
                assert len(wire.response()[2]) == 200000
                wire.close()

    threads = [threading.Thread(target=vanish, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: driver.connections() == 0, "all are gone")
    assert get(dial(driver.port))[0] == 200


def test_connection_limit_pauses_accepting(driver_of, origin_of):
    driver = driver_of(workers=1, connections_max=8)
    driver.serve(origin_of())
    wires = [dial(driver.port) for _ in range(8)]
    for wire in wires:
        assert get(wire)[0] == 200
    late = dial(driver.port)  # in the kernel's queue
    late.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    late.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        late.fill()
    late.sock.settimeout(10 * SLOW)
    wires[3].close()
    assert late.response()[0] == 200
    assert driver.connections() == 8
