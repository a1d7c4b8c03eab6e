"""The data plane while its configuration changes, and while it stops."""

import collections
import random
import threading
import time

import pytest

from support.client import Load
from support.proxy_driver import OK, Driver, Refused, Script, dial, get, quiet_for
from support.wait import SLOW, until


@pytest.fixture
def driver():
    made = Driver()
    yield made
    made.close()


@pytest.fixture
def origin_of():
    made = []

    def make(*args, **kwargs):
        made.append(Script(*args, **kwargs))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


def named(name):
    body = name.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.timing
def test_endpoints_come_and_go_under_load(driver, origin_of):
    """An endpoint is stopped right after it was taken out: no request notices."""
    origins = [origin_of(answer=named(str(i))) for i in range(4)]
    driver.serve(*origins)
    rng = random.Random(3)
    policies = ["random", "least", "rr"]
    with Load([driver.port], "a.test", clients=6) as load:
        deadline = time.monotonic() + 4 * SLOW
        turn = 0
        while time.monotonic() < deadline:
            turn += 1
            some = rng.sample(origins, rng.randrange(1, 5))
            driver.backend("b", *some, balance=policies[turn % 3])
            if turn % 5 == 0:
                gone = next((o for o in origins if o not in some), None)
                if gone is not None:
                    until(lambda o=gone: o.open == 0, "its connections are closed", pause=0.001)
            driver.cmd("reclaim")
            time.sleep(0.002)
    assert load.lost == [] and load.repeated == 0, load.summary()
    assert load.sent > 200
    assert driver.metrics()["skein_retries_total"] == 0


def test_endpoints_die_under_load(driver, origin_of):
    """Endpoints are killed before anybody says so: GETs are repeated elsewhere."""
    steady = origin_of()
    driver.serve(steady)
    with Load([driver.port], "a.test", clients=6) as load:
        for _ in range(10):
            victim = Script()
            driver.backend("b", steady, victim)
            until(lambda v=victim: v.requests, "it serves")
            victim.close()
            quiet_for(0.1)
            driver.backend("b", steady)
    assert load.lost == [] and load.repeated == 0, load.summary()


def test_removed_endpoint_finishes_what_it_has(driver, origin_of):
    begun, go = threading.Event(), threading.Event()

    def handler(wire, _):
        origin.request(wire)
        wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        begun.set()
        assert go.wait(20)
        wire.send("cd")
        assert wire.at_end()  # it is not pooled

    origin = origin_of(handler)
    other = origin_of(answer=named("other"))
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert begun.wait(10)
    driver.backend("b", other)
    assert get(dial(driver.port))[2] == b"other"
    driver.cmd("reclaim")
    go.set()
    assert wire.response()[2] == b"abcd"
    assert get(wire)[2] == b"other"
    until(lambda: origin.open == 0, "its connection is closed")


def test_idle_connections_of_a_removed_endpoint_close(driver, origin_of):
    origin = origin_of()
    driver.serve(origin)
    wires = [dial(driver.port) for _ in range(8)]
    for wire in wires:
        assert get(wire)[0] == 200
    assert origin.open >= 1
    begin = time.monotonic()
    driver.backend("b", origin.address + "!")
    until(lambda: origin.open == 0, "draining closes them")
    assert time.monotonic() - begin < 2 * SLOW
    assert get(wires[0])[0] == 503
    driver.backend("b", origin)
    assert get(wires[0])[0] == 200
    driver.backend("b")
    until(lambda: origin.open == 0, "removal closes them")


def test_route_changes_do_not_touch_what_is_under_way(driver, origin_of):
    go = threading.Event()

    def handler(wire, _):
        while True:
            line, _, _ = origin.request(wire)
            if "slow" in line:
                wire.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
                assert go.wait(20)
                wire.send("cd")
            else:
                wire.send(OK)

    origin = origin_of(handler)
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.until(b"\r\n\r\n")
    driver.host("a.test")  # no rules: the host goes
    assert get(dial(driver.port))[0] == 404
    for i in range(50):
        driver.rule(f"/{i}", "b")
        driver.host("a.test")
    driver.cmd("reclaim")
    go.set()
    assert wire.exactly(4) == b"abcd"
    assert get(wire, "/49")[0] == 200
    assert get(wire, "/slow")[0] == 404


def test_hosts_change_under_load(driver, origin_of):
    """Thousands of hosts are added, changed and removed; one is asked for all the time."""
    driver.serve(origin_of())
    with Load([driver.port], "a.test", clients=4) as load:
        for i in range(3000):
            driver.rule("/", "b", route=f"test/r{i}")
            driver.host(f"h{i % 700}.test")
            if i % 3 == 0:
                driver.host(f"h{(i * 7) % 700}.test")
            if i % 50 == 0:
                driver.rule("/", "b")
                driver.host("a.test")
            driver.cmd("reclaim")
    assert load.lost == [] and load.repeated == 0, load.summary()
    for i in range(0, 700, 70):
        assert get(dial(driver.port), host=f"h{i}.test")[0] in (200, 404)


def test_weights_of_backends_and_endpoints(driver, origin_of):
    a = origin_of(answer=named("a"))
    b = origin_of(answer=named("b"))
    c = origin_of(answer=named("c"))
    driver.backend("one", a)
    driver.backend("two", f"{b.address}*30", f"{c.address}*10", balance="rr")
    driver.rule("/", "one*60", "two*40")
    driver.host("a.test")
    wire = dial(driver.port)
    counts = collections.Counter(get(wire)[2] for _ in range(2000))
    assert 1080 < counts[b"a"] < 1320
    assert 500 < counts[b"b"] < 700
    assert 2.5 < counts[b"b"] / counts[b"c"] < 3.5
    driver.rule("/", "one*0", "two*0")
    driver.host("a.test")
    assert get(wire)[0] == 503


def test_invalid_changes_are_refused(driver, origin_of):
    driver.serve(origin_of())
    for command in ("host A.test", "host a.test.", "host a.test:80", "host *.*.test", "host a..b"):
        driver.rule("/", "b")
        with pytest.raises(Refused, match="RC_INVALID"):
            driver.cmd(command)
    driver.rule("nope", "b")
    with pytest.raises(Refused, match="does not begin with /"):
        driver.host("a.test")
    driver.rule("/", "b*257")
    with pytest.raises(Refused, match="weight 257 is above 256"):
        driver.host("a.test")
    with pytest.raises(Refused, match="RC_TOO_BIG"):
        driver.backend("b", *[f"10.0.{i // 250}.{i % 250}:80" for i in range(4097)])
    assert get(dial(driver.port))[0] == 200  # nothing of it was applied


def test_port_in_use_is_told(driver):
    with pytest.raises(Refused, match=f"RC_BUSY.*127.0.0.1:{driver.port}"):
        Driver(listen=(f"127.0.0.1:{driver.port}",))


def test_ipv6(origin_of):
    import socket

    from support.proxy_driver import Wire

    origin = origin_of()
    driver = Driver(listen=("[::1]:0",))
    driver.serve(origin)
    wire = Wire(socket.create_connection(("::1", driver.port)))
    assert get(wire)[0] == 200
    fields = origin.requests[0][1]
    assert fields["x-forwarded-for"] == "::1"
    assert 'for="[::1]"' in fields["forwarded"]
    driver.close()


def test_drain(origin_of):
    go = threading.Event()

    def handler(wire, _):
        while True:
            line, _, _ = origin.request(wire)
            if "slow" in line:
                assert go.wait(20)
            wire.send(OK)

    origin = origin_of(handler)
    driver = Driver()
    driver.serve(origin)
    idle = [dial(driver.port) for _ in range(4)]
    for wire in idle:
        assert get(wire)[0] == 200
    busy = dial(driver.port)
    busy.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n")
    until(lambda: any("slow" in r[0] for r in origin.requests), "it is under way")
    driver.cmd("drain")
    for wire in idle:
        assert wire.at_end()

    def refused():
        try:
            dial(driver.port).close()
        except ConnectionRefusedError:
            return True

    until(refused, "nobody listens")
    assert driver.connections() == 1
    go.set()
    status, fields, _ = busy.response()
    assert (status, fields["connection"]) == (200, "close")
    assert busy.at_end()
    until(lambda: driver.connections() == 0, "all are gone")
    driver.close()


def test_drain_under_load_loses_nothing(origin_of):
    """Clients that see their idle connection close go to the other data plane."""
    origin = origin_of()
    first, second = Driver(), Driver()
    for driver in (first, second):
        driver.serve(origin)
    with Load([first.port, second.port], "a.test", clients=8) as load:
        until(lambda: load.sent > 200, "there is load")
        first.cmd("drain")
        until(lambda: first.connections() == 0, "it is drained")
        first.close()
        quiet_for(0.2)
    assert load.lost == [], load.summary()
    second.close()


def test_stop_in_the_middle_of_everything(origin_of):
    """The end of the process with requests, tunnels and half-read bodies under way."""

    def handler(wire, number):
        if number % 3 == 0:
            wire.head()
            wire.send("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            wire.rest()
        elif number % 3 == 1:
            wire.head()
            wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                wire.send(b"100\r\n" + b"x" * 256 + b"\r\n")
        else:
            wire.rest()

    origin = origin_of(handler)
    driver = Driver()
    driver.serve(origin)
    wires = []
    for i in range(30):
        wire = dial(driver.port)
        upgrade = "Connection: upgrade\r\nUpgrade: x\r\n" if i % 2 else "Content-Length: 500000\r\n"
        wire.send(f"GET / HTTP/1.1\r\nHost: a.test\r\n{upgrade}\r\nabcdef")
        wires.append(wire)
    until(lambda: origin.accepted == 30, "all are under way")
    driver.close()


def _wild_origin(rng, wire):
    """Answers somehow: well, in pieces, cut, late, with rubbish, or not at all."""
    while True:
        kind = rng.randrange(12)
        if kind == 0:
            wire.sock.recv(10)
            return
        head, fields, _ = wire.head()
        if kind == 1:
            wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly")
            return
        body = wire.body(fields)
        if kind == 2:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"c" * rng.randrange(99999))
            return
        if kind == 3:
            wire.send(rng.randbytes(50))
            return
        if kind == 4:
            wire.reset()
            return
        if kind == 5 and "upgrade" in fields:
            wire.send("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
            wire.send(wire.sock.recv(100))
            if rng.randrange(2):
                wire.rest()
            return
        if kind == 6:
            wire.send("HTTP/1.1 103 Early\r\n\r\n" * rng.randrange(1, 5))
        if kind == 7:
            wire.send(OK * 2)
            continue
        if kind < 10:
            wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(rng.randrange(20)):
                part = b"p" * rng.randrange(1, 30000)
                wire.send(b"%x\r\n" % len(part))
                wire.send(part + b"\r\n")
            wire.send("0\r\nX-T: 1\r\n\r\n")
        else:
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            wire.send(answer if "HEAD" not in head else answer[: len(answer) - len(body)])


def _wild_client(rng, port):
    """Asks somehow: pipelined, in pieces, too much, reading or not, ending in some way."""
    wire = dial(port, timeout=2)
    try:
        for _ in range(rng.randrange(1, 5)):
            for _ in range(rng.randrange(1, 4)):
                kind = rng.randrange(7)
                if kind == 0:
                    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
                elif kind == 1:
                    size = rng.randrange(200000)
                    wire.send(f"PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n")
                    wire.send(b"b" * (size if rng.randrange(4) else size // 2))
                elif kind == 2:
                    wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for _ in range(rng.randrange(30)):
                        wire.send(b"400\r\n" + b"d" * 1024 + b"\r\n")
                    if rng.randrange(4):
                        wire.send("0\r\n\r\n")
                elif kind == 3:
                    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhi")
                elif kind == 4:
                    wire.send("GET /no HTTP/1.1\r\nHost: none.test\r\n\r\n")
                elif kind == 5:
                    wire.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
                else:
                    wire.send(rng.randbytes(20) if rng.randrange(3) == 0 else "HEAD / HTTP/1.1\r\n")
            if rng.randrange(3):
                wire.fill()
    except (OSError, EOFError):
        pass
    wire.reset() if rng.randrange(2) else wire.close()


@pytest.mark.timing
def test_chaos(origin_of):
    """Everything at once, from a seed: nothing crashes, leaks or stays."""
    origins = [
        origin_of(lambda wire, number, i=i: _wild_origin(random.Random(i * 1000 + number), wire))
        for i in range(3)
    ]
    driver = Driver(server_ms=500, client_ms=500, tunnel_ms=500, client_header_ms=500, connect_ms=300)
    driver.serve(*origins)
    deadline = time.monotonic() + 5 * SLOW

    def run(seed):
        rng = random.Random(seed)
        while time.monotonic() < deadline:
            _wild_client(rng, driver.port)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    rng = random.Random(99)
    while time.monotonic() < deadline:
        some = rng.sample(origins, rng.randrange(0, 4))
        driver.backend("b", *some, "127.0.0.1:1", balance=rng.choice(["rr", "least", "random"]))
        driver.rule("/", "b")
        driver.host("a.test")
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    until(lambda: driver.connections() == 0, "all clients are gone", timeout=20)
    driver.backend("b")
    until(
        lambda: driver.metrics()["skein_upstream_connections"] == 0,
        "all connections to endpoints are gone",
        timeout=20,
    )
    assert driver.metrics()["skein_requests_total"] > 100
    driver.close()
    for origin in origins:
        origin.faults.clear()  # they are made to misbehave
