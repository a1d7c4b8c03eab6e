"""TCP routes through the data plane: bytes both ways, ends, failures, limits, live change."""

import hashlib
import os
import socket
import threading

import pytest

from support.ports import free_port
from support.proxy_driver import Driver, Refused, Script, Wire, dial, quiet_for
from support.segments import listeners_of
from support.wait import SLOW, until

pytestmark = pytest.mark.smoke


@pytest.fixture
def world():
    """world(handler, **driver settings) -> (driver, origin); ended with the test."""
    made = []

    def make(handler=None, **settings):
        origin = Script(handler or echo)
        driver = Driver(**settings)
        made.append((driver, origin))
        driver.backend("b", origin)
        return driver, origin

    yield make
    for driver, origin in made:
        driver.close()
        origin.close()


@pytest.fixture
def origins():
    """origins(handler, ...) -> origins that end with the test."""
    made = []

    def make(*handlers):
        made.extend(Script(handler) for handler in handlers)
        return made[-len(handlers):]

    yield make
    for origin in made:
        origin.close()


def echo(wire, _):
    while True:
        data = wire.sock.recv(65536)
        if not data:
            return
        wire.sock.sendall(data)


def says(name):
    """Says its name to whoever connects, then echoes."""
    def handler(wire, number):
        wire.send(name + "\n")
        echo(wire, number)
    return handler


def who(port):
    wire = dial(port)
    try:
        return wire.until(b"\n").decode().strip()
    finally:
        wire.close()


def pattern(size, seed=0):
    block = bytes((i * 7 + seed) % 251 for i in range(65521))
    return (block * (size // len(block) + 1))[:size]


def is_reset(wire):
    """The connection ends; True: with a reset."""
    try:
        while wire.sock.recv(65536):
            pass
        return False
    except ConnectionResetError:
        return True


# ---- bytes ----

def test_echo_of_many_sizes(world):
    driver, _ = world()
    wire = dial(driver.open_port("b"))
    for size in (1, 2, 1000, 1460, 1461, 16384, 65535, 65536, 65537, 300000):
        data = pattern(size, size)
        threading.Thread(target=wire.send, args=(data,), daemon=True).start()
        assert wire.exactly(size) == data


def test_server_speaks_first(world):
    driver, _ = world(says("220 ready"))
    wire = dial(driver.open_port("b"))
    assert wire.until(b"\n") == b"220 ready\n"
    wire.send(b"EHLO")
    assert wire.exactly(4) == b"EHLO"


def test_bytes_sent_with_the_connect_arrive(world):
    driver, origin = world(workers=1)
    port = driver.open_port("b")
    for i in range(50):
        wire = dial(port)
        wire.send(b"%d" % i)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.rest() == b"%d" % i
    assert origin.accepted == 50


def test_half_close_by_the_client(world):
    """The end of the client's direction arrives; what the server says after it comes back."""
    def after_all(wire, _):
        wire.send(b"got %d" % len(wire.rest()))

    driver, _ = world(after_all, client_fin_ms=60000)
    wire = dial(driver.open_port("b"))
    wire.send(b"x" * 100000)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.rest() == b"got 100000"


def test_half_close_by_the_server(world):
    got = []

    def end_first(wire, _):
        wire.send(b"bye")
        wire.sock.shutdown(socket.SHUT_WR)
        got.append(wire.rest())

    driver, _ = world(end_first, server_fin_ms=60000)
    wire = dial(driver.open_port("b"))
    assert wire.rest() == b"bye"
    wire.send(pattern(200000))
    wire.close()
    until(lambda: got, "the rest arrives")
    assert got[0] == pattern(200000)


def test_urgent_data_loses_nothing_else(world):
    """Reads stop at the mark of urgent data; the urgent byte itself may get lost (RFC 6093)."""
    def after_all(wire, _):
        wire.send(wire.rest())

    driver, _ = world(after_all, client_fin_ms=60000)
    wire = dial(driver.open_port("b"))
    for _ in range(20):
        wire.send(b"a" * 3000)
        wire.sock.send(b"!", socket.MSG_OOB)
        wire.send(b"b" * 3000)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.rest().replace(b"!", b"") == (b"a" * 3000 + b"b" * 3000) * 20


def test_bulk_both_ways_at_once(world, show):
    """Large enough for splice in both directions; every byte is checked."""
    size = 64 << 20
    driver, _ = world(workers=1)
    wire = dial(driver.open_port("b"), timeout=60)
    block = pattern(1 << 20)
    sent = hashlib.sha256()

    def send():
        for i in range(size >> 20):
            part = block[i:] + block[:i]
            sent.update(part)
            wire.send(part)
        wire.sock.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    got = hashlib.sha256()
    count = 0
    while True:
        data = wire.sock.recv(1 << 18)
        if not data:
            break
        got.update(data)
        count += len(data)
    thread.join()
    assert count == size and got.digest() == sent.digest()
    metrics = driver.metrics()
    assert metrics['skein_tcp_bytes_total{direction="in"}'] == size
    assert metrics['skein_tcp_bytes_total{direction="out"}'] == size
    show(f"memory after 64 MiB both ways: {driver.memory_kib()} KiB")


@pytest.mark.parametrize("small", [False, True])
def test_slow_reader_holds_the_server_back(world, small):
    """Back-pressure: the server cannot send more than the sockets and one chunk hold."""
    total = 48 << 20
    taken = [0]

    def pour(wire, _):
        block = pattern(1000 if small else 1 << 18)
        wire.sock.settimeout(None)
        while taken[0] < total:
            wire.sock.sendall(block)
            taken[0] += len(block)

    driver, _ = world(pour, workers=1)
    before = driver.memory_kib()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", driver.open_port("b")))
    wire = Wire(sock, 60)
    last = [-1]

    def stuck():
        same = last[0] == taken[0]
        last[0] = taken[0]
        return same and taken[0] > 0

    until(stuck, "the server is held back", pause=0.3)
    assert taken[0] < total
    assert driver.memory_kib() - before < 2048
    count = 0
    digest = hashlib.sha256()
    while True:
        data = sock.recv(1 << 18)
        if not data:
            break
        count += len(data)
        digest.update(data)
    assert count >= total
    block = pattern(1000 if small else 1 << 18)
    expected = hashlib.sha256()
    for _ in range(count // len(block)):
        expected.update(block)
    assert digest.digest() == expected.digest()
    wire.close()


def test_many_slow_readers_share_the_pipes(world):
    """More bulk flows than there are pipes: the rest is copied, and all of them end."""
    size = 3 << 20

    def pour(wire, _):
        wire.send(pattern(size))

    driver, _ = world(pour, workers=1)
    port = driver.open_port("b")
    wires = [dial(port, timeout=60) for _ in range(90)]
    want = pattern(size)
    for wire in wires:
        assert wire.rest() == want
        wire.close()


# ---- ends ----

def test_reset_of_the_client_reaches_the_server(world):
    ends = []

    def wait(wire, _):
        wire.send(b"x")
        ends.append(is_reset(wire))

    driver, _ = world(wait)
    wire = dial(driver.open_port("b"))
    wire.exactly(1)
    wire.reset()
    until(lambda: ends, "the server sees the end")
    assert ends == [True]


def test_reset_of_the_server_reaches_the_client(world):
    def cut(wire, _):
        wire.send(b"half of it")
        wire.exactly(2)
        wire.reset()

    driver, _ = world(cut)
    wire = dial(driver.open_port("b"))
    assert wire.exactly(10) == b"half of it"
    wire.send(b"go")
    assert is_reset(wire)
    until(lambda: driver.connections() == 0, "it is over")


def test_silence_ends_a_connection(world):
    driver, origin = world()
    port = driver.open_port("b", tunnel_ms=300)
    wire = dial(port)
    wire.send(b"a")
    assert wire.exactly(1) == b"a"
    assert wire.rest() == b""
    until(lambda: origin.open == 0, "the server's side ends, too")
    # Traffic in either direction keeps it.
    wire = dial(port)
    for _ in range(8):
        quiet_for(0.1)
        wire.send(b"a")
        assert wire.exactly(1) == b"a"


def test_half_closed_connections_end_sooner(world):
    gone = []

    def wait(wire, _):
        wire.rest()
        gone.append(is_reset(wire))
        wire.sock.recv(1)

    driver, origin = world(wait, client_fin_ms=200)
    wire = dial(driver.open_port("b"))
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.rest() == b""
    until(lambda: driver.connections() == 0, "it is over")
    origin.stop_listening()


def test_an_end_after_a_long_silence_restarts_the_clock(world):
    def late(wire, _):
        wire.rest()
        quiet_for(0.1)
        wire.send(b"the answer")

    driver, _ = world(late, client_fin_ms=400)
    wire = dial(driver.open_port("b"))
    quiet_for(0.8)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.rest() == b"the answer"


def test_idle_connections_are_small(world, show):
    driver, _ = world(workers=1)
    port = driver.open_port("b")
    wires = [dial(port) for _ in range(50)]
    for wire in wires:
        wire.send(b"a")
        wire.exactly(1)
    before = driver.memory_kib()
    wires += [dial(port) for _ in range(400)]
    for wire in wires[50:]:
        wire.send(b"a")
        wire.exactly(1)
    each = (driver.memory_kib() - before) * 1024 / 400
    show(f"memory per idle TCP connection: {each:.0f} bytes")
    assert each < 4096 * SLOW
    for wire in wires:
        wire.close()


def test_drain_keeps_connections(world):
    driver, _ = world()
    port = driver.open_port("b")
    wire = dial(port)
    wire.send(b"a")
    assert wire.exactly(1) == b"a"
    driver.cmd("drain")
    until(lambda: not listens(port), "the port is closed")
    wire.send(b"b")
    assert wire.exactly(1) == b"b"
    assert driver.connections() == 1
    with pytest.raises(Refused):
        driver.open_port("b")


def listens(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), timeout=5).close()
        return True
    except ConnectionRefusedError:
        return False


# ---- endpoints ----

def test_a_refused_endpoint_costs_nothing(origins):
    good = origins(says("good"))[0]
    driver = Driver()
    dead = free_port()
    driver.backend("b", good, f"127.0.0.1:{dead}", balance="rr")
    port = driver.open_port("b")
    assert {who(port) for _ in range(20)} == {"good"}
    assert driver.metrics()["skein_retries_total"] >= 1
    driver.close()


def test_no_endpoint_closes_the_connection(world):
    driver, _ = world()
    driver.backend("empty")
    wire = dial(driver.open_port("empty"))
    assert wire.rest() == b""
    driver.backend("dead", f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")
    wire = dial(driver.open_port("dead"))
    assert wire.rest() == b""
    metrics = driver.metrics()
    assert metrics['skein_tcp_connections_refused_total{reason="unavailable"}'] == 2


def test_an_endpoint_that_does_not_answer_is_given_up(origins):
    """A full backlog swallows connects; the time limit finds another endpoint."""
    good = origins(says("good"))[0]
    hole = socket.socket()
    hole.bind(("127.0.0.1", 0))
    hole.listen(0)
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(hole.getsockname())
        fillers.append(filler)
    driver = Driver(connect_ms=200)
    driver.backend("b", f"127.0.0.1:{hole.getsockname()[1]}*256", f"{good.address}*1")
    port = driver.open_port("b")
    assert who(port) == "good"
    driver.close()
    for sock in (*fillers, hole):
        sock.close()


def test_bytes_of_the_client_survive_a_failed_connect(origins):
    good = origins(echo)[0]
    driver = Driver(workers=1, connect_ms=300)
    hole = socket.socket()
    hole.bind(("127.0.0.1", 0))
    hole.listen(0)
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(hole.getsockname())
    driver.backend("b", f"127.0.0.1:{hole.getsockname()[1]}*256", f"{good.address}*1")
    wire = dial(driver.open_port("b"))
    data = pattern(200000)
    threading.Thread(target=wire.send, args=(data,), daemon=True).start()
    assert wire.exactly(len(data)) == data
    driver.close()
    for sock in (*fillers, hole):
        sock.close()


def test_weights_split_connections(origins):
    one, two = origins(says("one"), says("two"))
    driver = Driver(workers=1)
    driver.backend("a", one)
    driver.backend("b", two)
    port = driver.open_port("a*3", "b*1")
    names = [who(port) for _ in range(200)]
    assert 110 <= names.count("one") <= 185
    port = driver.open_port("a*0", "b*1")
    assert {who(port) for _ in range(20)} == {"two"}
    driver.close()


def test_round_robin_and_drain_of_endpoints(origins):
    one, two = origins(says("one"), says("two"))
    driver = Driver(workers=1)
    driver.backend("b", one, two, balance="rr")
    port = driver.open_port("b")
    names = [who(port) for _ in range(10)]
    assert names.count("one") == 5
    wire = dial(port)
    name = wire.until(b"\n").decode().strip()
    stays, leaves = (two, one) if name == "one" else (one, two)
    driver.backend("b", stays, f"{leaves.address}!", balance="rr")
    assert {who(port) for _ in range(6)} == {"two" if name == "one" else "one"}
    wire.send(b"still here")  # what it has completes
    assert wire.exactly(10) == b"still here"
    driver.backend("b", stays)
    wire.send(b"and here")
    assert wire.exactly(8) == b"and here"
    driver.close()


def test_a_limit_makes_connections_wait(world):
    driver, origin = world(says("hello"), workers=1, queue_ms=60000)
    driver.backend("b", origin, limit=1, queue=1)
    port = driver.open_port("b")
    first = dial(port)
    assert first.until(b"\n") == b"hello\n"
    second = dial(port)
    second.send(b"kept")
    until(lambda: driver.connections() == 2, "the second waits")
    third = dial(port)
    assert third.rest() == b""  # no room to wait
    first.close()
    assert second.until(b"\n") == b"hello\n"
    assert second.exactly(4) == b"kept"


def test_all_that_a_waiting_client_sent_arrives(world):
    """Bytes and the end, sent while it waited for a place."""
    def after_all(wire, _):
        wire.send(b"go\n")
        wire.send(b"got %d" % len(wire.rest()))

    driver, origin = world(after_all, workers=1, queue_ms=60000, client_fin_ms=60000)
    driver.backend("b", origin, limit=1, queue=5)
    port = driver.open_port("b")
    first = dial(port)
    first.until(b"\n")
    waiting = [dial(port) for _ in range(3)]
    for size, wire in zip((0, 5, 50000), waiting):
        wire.send(b"x" * size)
        wire.sock.shutdown(socket.SHUT_WR)
    until(lambda: driver.connections() == 4, "all wait")
    first.sock.shutdown(socket.SHUT_WR)
    assert first.rest() == b"got 0"
    for size, wire in zip((0, 5, 50000), waiting):
        assert wire.rest() == b"go\ngot %d" % size


def test_waiting_ends_in_time(world):
    driver, origin = world(says("hello"), workers=1, queue_ms=200)
    driver.backend("b", origin, limit=1, queue=5)
    port = driver.open_port("b")
    first = dial(port)
    assert first.until(b"\n") == b"hello\n"
    assert dial(port).rest() == b""
    # One that goes away while it waits leaves no trace.
    driver.backend("b", origin, limit=1, queue=5, queue_ms=60000)
    gone = dial(port)
    until(lambda: driver.connections() == 2, "it waits")
    gone.reset()
    until(lambda: driver.connections() == 1, "it is gone")
    first.close()
    assert who(port) == "hello"


# ---- access ----

def test_access_lists_and_limits(world):
    driver, _ = world(says("in"))
    assert dial(driver.open_port("b", deny="127.0.0.0/8")).rest() == b""
    assert dial(driver.open_port("b", allow="10.0.0.0/8")).rest() == b""
    assert who(driver.open_port("b", allow="127.0.0.1/32")) == "in"
    assert driver.metrics()['skein_tcp_connections_refused_total{reason="denied"}'] == 2

    port = driver.open_port("b", at_once=2, route="test/limited")
    wires = [dial(port) for _ in range(2)]
    assert [wire.until(b"\n") for wire in wires] == [b"in\n"] * 2
    assert dial(port).rest() == b""
    wires[0].close()
    until(lambda: driver.connections() == 1, "a place is free")
    assert who(port) == "in"

    port = driver.open_port("b", rate=3, route="test/rated")
    assert [who(port) for _ in range(3)] == ["in"] * 3
    assert dial(port).rest() == b""
    assert driver.metrics()['skein_tcp_connections_refused_total{reason="limited"}'] == 2


# ---- live change ----

def test_routes_change_and_leave(origins):
    one, two = origins(says("one"), says("two"))
    driver = Driver(workers=2)
    driver.backend("a", one)
    driver.backend("b", two)
    port = driver.open_port("a")
    stays = dial(port)
    assert stays.until(b"\n") == b"one\n"
    driver.open_port("b", port=port)  # the same route with another backend
    assert who(port) == "two"
    stays.send(b"x")
    assert stays.exactly(1) == b"x"
    driver.open_port("a", port=port, route="test/other")  # another route has the port
    assert stays.rest() == b""
    assert who(port) == "one"
    last = dial(port)
    last.until(b"\n")
    driver.close_port(port)
    assert last.rest() == b""
    until(lambda: not listens(port), "the port is closed")
    driver.open_port("b", port=port)
    assert who(port) == "two"
    driver.close()


def test_ports_open_and_close_all_the_time(world):
    driver, _ = world(says("hello"))
    keep = driver.open_port("b")
    wire = dial(keep)
    wire.until(b"\n")
    port = free_port()
    for _ in range(50):
        driver.open_port("b", port=port)
        assert who(port) == "hello"
        driver.close_port(port)
    wire.send(b"x")
    assert wire.exactly(1) == b"x"
    assert who(keep) == "hello"


def test_a_port_in_use_is_refused(world):
    driver, _ = world(says("hello"))
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    with pytest.raises(Refused, match="in use"):
        driver.open_port("b", port=other.getsockname()[1])
    with pytest.raises(Refused, match="in use"):
        driver.open_port("b", port=driver.port)  # its own, for HTTP
    port = other.getsockname()[1]
    other.close()
    driver.open_port("b", port=port)
    assert who(port) == "hello"


def test_without_addresses_no_port_opens(world):
    driver, _ = world(tcp=())
    with pytest.raises(Refused, match="listen.tcp"):
        driver.open_port("b")


def test_ipv6(world):
    def who_am_i(wire, _):
        wire.send(f"{wire.sock.getpeername()[0]}\n")
        echo(wire, 0)

    driver, origin = world(who_am_i, tcp=("[::1]:0", "127.0.0.1:0"))
    port = driver.open_port("b")
    for host in ("::1", "127.0.0.1"):
        wire = Wire(socket.create_connection((host, port), timeout=10 * SLOW))
        assert wire.until(b"\n") == b"127.0.0.1\n"
        wire.send(b"x")
        assert wire.exactly(1) == b"x"
        wire.close()
    six = socket.socket(socket.AF_INET6)
    six.bind(("::1", 0))
    six.listen()
    driver.backend("six", f"[::1]:{six.getsockname()[1]}")
    wire = dial(driver.open_port("six"))
    peer, address = six.accept()
    assert address[0] == "::1"
    peer.sendall(b"hi")
    assert wire.exactly(2) == b"hi"
    peer.close()
    six.close()
    assert origin.accepted == 2


def test_access_log_of_connections(world, tmp_path):
    path = tmp_path / "access"
    driver, origin = world(says("hello"), log=str(path))
    port = driver.open_port("b")
    assert who(port) == "hello"
    driver.backend("empty")
    assert dial(driver.open_port("empty", route="test/empty")).rest() == b""

    def lines():
        return path.read_text().splitlines() if os.path.exists(path) else []

    until(lambda: len(lines()) == 2, "both are logged")
    text = "\n".join(lines())
    assert "test/tcp" in text and origin.address in text
    assert "test/empty" in text and "no_endpoint" in text


def test_a_thousand_connections_come_and_go(world):
    driver, _ = world(workers=2)
    port = driver.open_port("b")
    wires = [dial(port, timeout=60) for _ in range(300)]
    for i, wire in enumerate(wires):
        wire.send(b"%d." % i)
    for i, wire in enumerate(wires):
        assert wire.until(b".") == b"%d." % i
        wire.close()
    until(lambda: driver.connections() == 0, "all are gone")


def test_a_flood_before_the_endpoint_is_there(world):
    """Where receive buffers are large, much has come when a connection opens: it is moved in turns."""
    driver, origin = world(lambda wire, _: wire.send(b"%d." % len(wire.rest())), workers=1,
                           client_fin_ms=20000, server_fin_ms=20000)
    port = driver.open_port("b")
    try:
        listeners = listeners_of(driver.process.pid, port)
    except OSError as error:
        pytest.skip(f"the sockets of the driver are out of reach: {error}")
    for listener in listeners:  # what it accepts has its buffers
        listener.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        listener.close()
    data = pattern(4 << 20)
    for _ in range(10):
        wire = dial(port)
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        wire.send(data)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.until(b".") == b"%d." % len(data)
        wire.close()
