"""TLS towards endpoints: who is trusted, what is reused, what failures come to, what bytes pass."""

import hashlib
import json
import os
import socket
import ssl
import threading

import pytest

from support import gauge
from support.pki import PAST, Pki, TlsNginx, TlsScript, close_notify, server_context
from support.ports import free_port
from support.proxy_driver import OK, Driver, Script, Wire, dial, get
from support.wait import until

pytestmark = pytest.mark.smoke

NAME = "origin.test"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
VERSIONS = pytest.mark.parametrize("version", [V12, V13], ids=["1.2", "1.3"])


@pytest.fixture(name="pki", scope="module")
def fixture_pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(name="world")
def fixture_world(pki, tmp_path):
    """Makes drivers and origins that end with the test."""

    class World:
        def __init__(self):
            self.made = []
            self.log = str(tmp_path / "access.log")

        def origin(self, handler=None, leaf=None, version=None, client_ca=None, **options):
            context = server_context(leaf or pki.leaf(NAME), version, client_ca)
            return self.keep(TlsScript(context, handler, **options))

        def driver(self, **settings):
            settings.setdefault("workers", 1)
            driver = Driver(log=self.log, **settings)
            self.made.insert(0, driver)
            return driver

        def keep(self, thing):
            self.made.append(thing)
            return thing

        def serve(self, *origins, settings=None, backend=None, rule=None, **options):
            """A driver whose only rule re-encrypts towards these, by default as one should."""
            driver = self.driver(**(settings or {}))
            target(driver, pki, **options)
            driver.backend("b", *origins, balance="rr", **(backend or {}))
            driver.rule("/", "b", tls="t", **(rule or {}))
            driver.host("a.test")
            return driver

        def lines(self):
            with open(self.log, encoding="utf-8") as file:
                return [json.loads(line) for line in file]

        def line(self):
            return until(lambda: self.lines()[-1:], "a line in the access log")[0]

    made = World()
    yield made
    for thing in made.made:
        thing.close()


def target(driver, pki, label="t", ca="good", name=NAME, **options):
    words = {"ca": pki.authority(ca).cert if ca else None, "name": name, **options}
    texts = [f"{key}={value}" for key, value in words.items() if value is not None]
    driver.cmd(" ".join(["target", label, *texts]))


def handshakes(driver):
    """(full, resumed, failed)"""
    metrics = driver.metrics()
    return tuple(int(metrics[f'skein_upstream_tls_handshakes_total{{result="{result}"}}'])
                 for result in ("full", "resumed", "failed"))


def fetch(driver, path="/", **options):
    wire = dial(driver.port)
    try:
        return get(wire, path, **options)
    finally:
        wire.close()


# ---- trust ----


@VERSIONS
def test_an_endpoint_that_proves_its_name_is_asked(world, version):
    origin = world.origin(version=version)
    driver = world.serve(origin)
    assert fetch(driver, "/x")[::2] == (200, b"ok")
    assert origin.requests[0][0] == "GET /x HTTP/1.1"
    name, resumed, used, _ = origin.connections[0]
    assert (name, resumed, used) == (NAME, False, f"TLSv1.{2 if version == V12 else 3}")
    assert handshakes(driver) == (1, 0, 0)
    assert driver.metrics()['skein_backend_tls_full_total{backend="b"}'] == 1
    assert "cause" not in world.line()


def test_the_backend_says_how_when_the_route_does_not(world, pki):
    origin = world.origin()
    driver = world.driver()
    target(driver, pki)
    driver.backend("b", origin, tls="t")
    driver.rule("/", "b")
    driver.host("a.test")
    assert fetch(driver)[0] == 200 and origin.connections[0][0] == NAME


def _refused(world, driver, origin, words):
    status, _, _ = fetch(driver, "/secret")
    assert status == 502
    assert not origin.requests
    line = world.line()
    assert line["reason"] == "endpoint_certificate" and line["end"] == "endpoint.connect"
    assert line["cause"].startswith("endpoint certificate: ")
    for word in words:
        assert word in line["cause"], line["cause"]
    metrics = driver.metrics()
    assert metrics['skein_answers_total{code="502",reason="endpoint_certificate"}'] == 1
    assert handshakes(driver)[2] >= 1
    assert metrics['skein_backend_tls_failed_total{backend="b"}'] >= 1


@VERSIONS
@pytest.mark.parametrize("what", ["authority", "name", "expired", "self-signed", "not a server"])
def test_who_cannot_be_trusted_is_not_asked(world, pki, what, version):
    leaf, words = {
        "authority": lambda: (pki.leaf(NAME, ca="other"), ["issuer"]),
        "name": lambda: (pki.leaf("elsewhere.test"), ["hostname mismatch", NAME]),
        "expired": lambda: (pki.leaf(NAME, label="past", span=PAST), ["expired"]),
        "self-signed": lambda: (pki.self_signed(NAME), ["self"]),
        "not a server": lambda: (pki.leaf(NAME, label="usage", usage="clientAuth"), ["purpose"]),
    }[what]()
    origin = world.origin(leaf=leaf, version=version)
    driver = world.serve(origin, settings={"retries_max": 0})
    _refused(world, driver, origin, words)


def test_what_was_asked_for_by_name_is_not_verified(world, pki):
    stranger = world.origin(leaf=pki.self_signed("nobody.test"))
    driver = world.serve(stranger, ca=None, name=None, verify="none")
    assert fetch(driver)[0] == 200 and stranger.connections[0][0] is None


def test_any_name_of_an_authority_will_do_when_it_is_asked_for(world, pki):
    origin = world.origin(leaf=pki.leaf("elsewhere.test"))
    driver = world.serve(origin, verify="ca")
    assert fetch(driver)[0] == 200
    stranger = world.origin(leaf=pki.leaf(NAME, ca="other"))
    driver.backend("b", stranger)
    assert fetch(driver)[0] == 502


def test_addresses_are_names_too(world, pki):
    origin = world.origin(leaf=pki.leaf("127.0.0.1", label="address"))
    driver = world.serve(origin, name="127.0.0.1")
    assert fetch(driver)[0] == 200
    assert origin.connections[0][0] is None  # RFC 6066 3: no address is sent as a name


@VERSIONS
def test_a_certificate_is_shown_to_endpoints_that_demand_one(world, pki, version):
    own = pki.leaf("router.test", label="client", usage="clientAuth")
    origin = world.origin(version=version, client_ca=pki.authority())
    driver = world.serve(origin, cert=own.cert, key=own.key)
    assert fetch(driver)[0] == 200
    assert origin.connections[0][3]["subject"] == ((("commonName", "router.test"),),)
    target(driver, pki, "none")
    driver.rule("/", "b", tls="none")
    driver.host("a.test")
    assert fetch(driver)[0] == 502
    assert len(origin.requests) == 1
    line = until(lambda: world.lines()[1:], "the second line")[0]
    assert line["reason"] == "endpoint_tls" and "alert" in line["cause"], line


# ---- what is reused ----


@VERSIONS
def test_one_connection_serves_many_clients(world, version):
    origin = world.origin(version=version)
    driver = world.serve(origin)
    for i in range(30):
        assert fetch(driver, f"/{i}", method="POST" if i % 3 == 0 else "GET",
                     fields="Content-Length: 0\r\n")[0] == 200
    assert origin.accepted == 1 and len(origin.requests) == 30
    assert driver.metrics()["skein_upstream_reused_total"] == 29


@VERSIONS
def test_sessions_are_resumed(world, version):
    def once(wire, _):
        origin.request(wire)
        wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        close_notify(wire)

    origin = world.origin(once, version=version)
    driver = world.serve(origin)
    for _ in range(12):
        assert fetch(driver)[0] == 200
    assert [resumed for _, resumed, _, _ in origin.connections] == [False] + [True] * 11
    assert handshakes(driver) == (1, 11, 0)


def test_a_session_does_not_serve_another_target(world, pki):
    """What was verified by one authority or name is not taken for verified by another."""
    def once(wire, _):
        origin.request(wire)
        wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")

    origin = world.origin(once)
    driver = world.serve(origin)
    assert fetch(driver)[0] == 200
    target(driver, pki, "other", ca="other")
    target(driver, pki, "name", name="elsewhere.test")
    for label in ("other", "name"):
        driver.rule("/", "b", tls=label)
        driver.host("a.test")
        assert fetch(driver)[0] == 502
    target(driver, pki, "again")  # the same as the first, made anew
    driver.rule("/", "b", tls="again")
    driver.host("a.test")
    assert fetch(driver)[0] == 200
    assert [resumed for _, resumed, _, _ in origin.connections][-1] is True


def test_routes_with_other_demands_share_no_connection(world, pki):
    leaf = pki.leaf(NAME, "second.test", label="both")
    origin = world.origin(leaf=leaf)
    driver = world.driver()
    target(driver, pki, "good")
    target(driver, pki, "other", ca="other")
    target(driver, pki, "second", name="second.test")
    own = pki.leaf("router.test", label="client", usage="clientAuth")
    target(driver, pki, "own", cert=own.cert, key=own.key)
    driver.backend("b", origin)
    for label in ("good", "other", "second", "own"):
        driver.rule(f"/{label}", "b", tls=label, route=f"test/{label}", attempts=0)
    driver.rule("/plain", "b", route="test/plain", attempts=0)
    driver.host("a.test")
    for _ in range(3):
        assert fetch(driver, "/good")[0] == 200
        assert fetch(driver, "/other")[0] == 502
        assert fetch(driver, "/second")[0] == 200
        assert fetch(driver, "/own")[0] == 200
    paths = [line.split()[1] for line, _, _ in origin.requests]
    assert paths == ["/good", "/second", "/own"] * 3
    assert [name for name, _, _, _ in origin.connections] == [NAME, "second.test", NAME]
    assert fetch(driver, "/plain")[0] == 502  # a TLS server gets no plain request in a pooled way


def test_a_configuration_made_anew_keeps_the_connections(world, pki):
    origin = world.origin()
    driver = world.serve(origin)
    for _ in range(5):
        assert fetch(driver)[0] == 200
        target(driver, pki)  # equal, but another object
        driver.rule("/", "b", tls="t")
        driver.host("a.test")
    assert origin.accepted == 1


def test_requests_that_wait_for_the_handshake_leave_with_it(world):
    origin = world.origin()
    driver = world.serve(origin)
    wire = dial(driver.port)
    body = b"x" * 9000
    wire.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9000\r\n\r\n" + body)
    assert wire.response()[0] == 200 and origin.requests[0][2] == body
    wire.close()


# ---- failures ----


def test_a_plain_endpoint_gets_nothing_in_clear(world):
    seen = []

    def plain(wire, _):
        while wire.fill():
            seen.append(wire.data)
            wire.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    origin = world.keep(Script(plain))
    driver = world.serve(origin, settings={"retries_max": 0})
    assert fetch(driver, "/secret")[0] == 502
    assert b"secret" not in b"".join(seen)
    line = world.line()
    assert line["reason"] == "endpoint_tls" and line["cause"].startswith("endpoint TLS: ")


def test_an_endpoint_that_ends_in_the_handshake_is_passed_over(world):
    rude = world.keep(Script(lambda wire, _: wire.fill()))
    alive = world.origin()
    driver = world.serve(rude, alive)
    for i in range(6):  # a POST too: nothing of it was sent
        assert fetch(driver, f"/{i}", method="POST", fields="Content-Length: 0\r\n")[0] == 200
    assert rude.accepted >= 1 and len(alive.requests) == 6
    assert handshakes(driver)[2] == rude.accepted
    assert all("cause" not in line for line in world.lines())


def test_a_bad_certificate_is_passed_over(world, pki):
    bad = world.origin(leaf=pki.leaf("elsewhere.test"))
    alive = world.origin()
    driver = world.serve(bad, alive)
    for i in range(4):
        assert fetch(driver, f"/{i}")[0] == 200
    assert len(alive.requests) == 4 and not bad.requests


def test_all_that_fail_are_told_by_the_last(world, pki):
    bad = [world.origin(leaf=pki.leaf("elsewhere.test")) for _ in range(2)]
    driver = world.serve(*bad)
    assert fetch(driver)[0] == 502
    assert all(origin.accepted == 1 for origin in bad)
    assert world.line()["retries"] >= 1


def test_a_handshake_that_stalls_is_given_up(world):
    stalled = world.keep(Script(lambda wire, _: wire.rest()))
    alive = world.origin()
    driver = world.serve(stalled, alive, settings={"connect_ms": 400})
    for _ in range(3):
        assert fetch(driver)[0] == 200
    assert stalled.accepted >= 1
    assert driver.metrics()['skein_upstream_connect_failures_total{reason="timeout"}'] >= 1
    driver.backend("b", stalled)
    assert fetch(driver)[0] == 504
    line = until(lambda: world.lines()[3:], "the fourth line")[0]
    assert line["reason"] == "connect_timeout" and line["end"] == "time.connect"


def test_a_body_that_drips_does_not_prolong_the_handshake(world):
    stalled = world.keep(Script(lambda wire, _: wire.rest()))
    driver = world.serve(stalled, settings={"connect_ms": 500, "retries_max": 0})
    wire = dial(driver.port)
    wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\n")
    done = threading.Event()

    def drip():
        while not done.wait(0.1):
            try:
                wire.send("x")
            except OSError:
                return

    sender = threading.Thread(target=drip)
    sender.start()
    assert wire.response()[0] == 504
    done.set()
    sender.join()
    wire.close()


def test_refused_connects_go_elsewhere(world):
    alive = world.origin()
    driver = world.serve(f"127.0.0.1:{free_port()}", alive)
    for _ in range(4):
        assert fetch(driver)[0] == 200


@pytest.mark.parametrize("polite", [True, False])
def test_idle_connections_that_end_are_replaced(world, polite):
    ended = threading.Event()

    def one(wire, number):
        origin.request(wire)
        wire.send(OK)
        if number == 0:
            if polite:
                close_notify(wire)
            wire.close()
            ended.set()
            return
        wire.rest()

    origin = world.origin(one)
    driver = world.serve(origin)
    assert fetch(driver)[0] == 200
    assert ended.wait(10)
    assert fetch(driver, method="POST", fields="Content-Length: 0\r\n")[0] == 200
    assert origin.accepted == 2


# ---- ends ----

UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


@VERSIONS
def test_close_notify_ends_a_body(world, version):
    def handler(wire, _):
        origin.request(wire)
        wire.send(UNTIL_CLOSE + b"y" * 50000)
        close_notify(wire)

    origin = world.origin(handler, version=version)
    driver = world.serve(origin)
    wire = dial(driver.port)
    status, fields, body = get(wire)
    assert (status, body) == (200, b"y" * 50000) and fields["transfer-encoding"] == "chunked"
    wire.close()


@VERSIONS
def test_an_end_without_close_notify_is_a_cut(world, version):
    def handler(wire, _):
        origin.request(wire)
        wire.send(UNTIL_CLOSE + b"y" * 50000)
        until(lambda: seen, "the head has come through")
        os.close(wire.sock.detach())

    seen = []
    origin = world.origin(handler, version=version)
    driver = world.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert wire.head()[0].startswith("HTTP/1.1 200")
    seen.append(True)
    with pytest.raises((EOFError, ConnectionResetError)):
        wire.chunks()
    wire.close()
    assert driver.metrics()["skein_responses_cut_total"] == 1


def test_a_whole_body_needs_no_close_notify(world):
    def handler(wire, _):
        origin.request(wire)
        wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole")
        os.close(wire.sock.detach())

    origin = world.origin(handler)
    driver = world.serve(origin)
    for _ in range(3):
        assert fetch(driver)[2] == b"whole"


# ---- bytes ----


def digest(data):
    return hashlib.sha256(data).hexdigest()


@VERSIONS
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_large_bodies_both_ways(world, version, chunked):
    def echo(wire, _):
        while True:
            _, _, body = origin.request(wire)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            wire.send(head.encode() + body)

    origin = world.origin(echo, version=version)
    driver = world.serve(origin)
    body = os.urandom(1 << 16) * 64
    wire = dial(driver.port, 30)

    def send():
        head = b"POST /echo HTTP/1.1\r\nHost: a.test\r\n"
        if not chunked:
            wire.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            return
        wire.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 50000):
            part = body[at:at + 50000]
            wire.send(b"%x\r\n" % len(part) + part + b"\r\n")
        wire.send(b"0\r\n\r\n")

    for _ in range(2):
        sender = threading.Thread(target=send)
        sender.start()
        status, _, got = wire.response()
        sender.join()
        assert status == 200 and digest(got) == digest(body)
    wire.close()
    assert origin.accepted == 1


def test_an_early_answer_comes_through(world):
    def handler(wire, _):
        wire.head()
        wire.send(b"HTTP/1.1 413 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        close_notify(wire)

    origin = world.origin(handler)
    driver = world.serve(origin)
    wire = dial(driver.port)
    wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nsome")
    assert wire.response()[0] == 413
    wire.close()


def test_upgraded_connections(world):
    def handler(wire, _):
        line, fields, _ = wire.head()
        assert fields["upgrade"] == "websocket", line
        wire.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                  "Upgrade: websocket\r\n\r\nhello")
        while wire.fill():
            wire.send(wire.data.upper())
            wire.data = b""
        wire.send("bye")
        close_notify(wire)

    origin = world.origin(handler)
    driver = world.serve(origin)
    wire = dial(driver.port, 30)
    wire.send("GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\n"
              "Upgrade: websocket\r\n\r\nearly")
    assert wire.head()[0].startswith("HTTP/1.1 101")
    assert wire.exactly(10) == b"helloEARLY"
    big = b"z" * 3_000_000
    sender = threading.Thread(target=wire.send, args=(big,))
    sender.start()
    assert wire.exactly(len(big)) == big.upper()
    sender.join()
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.rest() == b"bye"
    wire.close()


def test_the_proxy_header_goes_first_and_in_clear(world):
    heads = []

    def read_header(sock):
        line = b""
        while not line.endswith(b"\r\n"):
            line += sock.recv(1)
        heads.append(line)

    origin = world.origin(raw_first=read_header)
    driver = world.serve(origin, backend={"proxy": 1})
    wire = dial(driver.port)
    host, port = wire.sock.getsockname()
    for _ in range(2):
        assert get(wire)[0] == 200
    wire.close()
    assert len(heads) == 2 == origin.accepted  # such connections are shared by nobody
    assert all(head.startswith(f"PROXY TCP4 {host} 127.0.0.1 {port} ".encode()) for head in heads)
    assert [resumed for _, resumed, _, _ in origin.connections] == [False, True]


# ---- racing ----


@pytest.fixture(name="black_hole")
def fixture_black_hole():
    """An address at which connects stay without an answer: its queue of accepted ones is full."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
        fillers.append(filler)
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    for filler in fillers:
        filler.close()
    listener.close()


def test_slow_connects_are_raced_and_the_winner_shakes_hands(world, black_hole):
    alive = world.origin()
    driver = world.serve(black_hole, alive)
    for i in range(8):
        assert fetch(driver, f"/{i}")[0] == 200
    assert driver.metrics()['skein_backend_connects_raced_total{backend="b"}'] >= 1
    assert len(alive.requests) == 8
    assert driver.metrics()['skein_upstream_connect_failures_total{reason="timeout"}'] == 0


def test_the_winner_of_a_race_must_prove_itself(world, pki, black_hole):
    bad = world.origin(leaf=pki.leaf("elsewhere.test"))
    driver = world.serve(black_hole, bad, settings={"connect_ms": 700, "retries_max": 1})
    statuses = {fetch(driver)[0] for _ in range(2)}
    assert statuses <= {502, 504} and not bad.requests


def test_idle_connections_are_ended_politely(world):
    ends = []

    def handler(wire, _):
        origin.request(wire)
        wire.send(OK)
        ends.append(wire.sock.recv(1))  # raises when there is no close_notify

    origin = world.origin(handler)
    driver = world.serve(origin)
    assert fetch(driver)[0] == 200
    driver.backend("b")
    until(lambda: ends == [b""], "the connection ends with close_notify")


# ---- many at once ----


def test_changes_under_load(world, pki):
    """Clients of two workers, routes with two demands, targets made anew, endpoints that go."""
    leaf = pki.leaf(NAME, "second.test", label="both")

    def handler(wire, number):
        for _ in range(number % 7 + 1):  # connections end now and then, politely or not
            line, _, _ = origins[0].request(wire)
            body = line.split()[1].encode()
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        if number % 2:
            close_notify(wire)

    origins = [world.origin(handler, leaf=leaf) for _ in range(3)]
    driver = world.driver(workers=2)

    def configure(count):
        for label, name in (("one", NAME), ("two", "second.test")):
            target(driver, pki, label, name=name)
            driver.rule(f"/{label}", "b", tls=label, route=f"test/{label}")
        driver.host("a.test")
        driver.backend("b", *origins[:count])

    configure(3)
    faults = []

    def client(number):
        wire = dial(driver.port, 30)
        for i in range(120):
            path = f"/{'one' if (i + number) % 3 else 'two'}/{number}/{i}"
            status, _, body = get(wire, path)
            if status != 200 or body != path.encode():
                faults.append((path, status, body[:80]))
        wire.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    turn = 0
    while any(thread.is_alive() for thread in threads):
        turn += 1
        configure(turn % 3 + 1)
        driver.cmd("reclaim")
    for thread in threads:
        thread.join()
    assert not faults, faults[:5]
    full, resumed, failed = handshakes(driver)  # an endpoint that returns is a new one
    assert full and resumed and not failed


# ---- clients that speak TLS, too ----


def https(driver, pki):
    """A TLS listener whose host a.test is re-encrypted; returns how clients connect."""
    leaf = pki.leaf("a.test")
    port = int(driver.addresses[1].rsplit(":", 1)[1])
    driver.cmd(f"cert a {leaf.cert} {leaf.key}")
    driver.cmd("policy p")
    driver.cmd("tls a p")
    driver.cmd("rule / prefix test/route b term=reencrypt tls=t")
    driver.cmd("host a.test cert=a")

    def connect():
        context = ssl.create_default_context(cafile=pki.authority().cert)
        sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        return Wire(context.wrap_socket(sock, server_hostname="a.test"), 30)

    return connect


@VERSIONS
def test_tls_on_both_sides(world, pki, version):
    def echo(wire, _):
        while True:
            _, _, body = origin.request(wire)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    origin = world.origin(echo, version=version)
    driver = world.driver(listen_tls=("127.0.0.1:0",))
    target(driver, pki)
    driver.backend("b", origin)
    connect = https(driver, pki)
    for size in (0, 1, 16384, 100_000, 4_000_000):
        body = os.urandom(size)
        wire = connect()
        for _ in range(2):
            wire.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % size)
            # Python's TLS sockets are not for two threads: the answer begins when all has been read.
            wire.send(body)
            status, _, got = wire.response()
            assert status == 200 and digest(got) == digest(body)
        wire.close()
    assert origin.accepted == 1


# ---- a real server ----


@pytest.mark.parametrize("protocols", ["TLSv1.2", "TLSv1.3"])
def test_nginx(world, pki, tmp_path, protocols):
    files = {f"{size}": os.urandom(size) for size in (1, 1000, 16384, 100_000, 3_000_000)}
    files["index.html"] = b"hello"
    nginx = world.keep(TlsNginx(tmp_path, pki.leaf(NAME, kind="rsa"), free_port(), files, protocols))
    driver = world.serve(nginx)
    for _ in range(3):
        for name, content in files.items():
            status, _, body = fetch(driver, f"/{name}")
            assert status == 200 and digest(body) == digest(content)
    rows = until(lambda: len(nginx.connections()) == 18 and nginx.connections(), "nginx's log")
    assert len({row[0] for row in rows}) == 1 and rows[0][3] == protocols
    driver.backend("b", nginx, requests=1)
    for _ in range(5):
        assert fetch(driver, "/1")[0] == 200
    rows = until(lambda: len(nginx.connections()) == 23 and nginx.connections(), "nginx's log")
    assert [row[2] for row in rows[-4:]] == [True] * 4
    driver.close()
    assert "SSL_" not in nginx.errors(), nginx.errors()


# ---- cost ----


@pytest.mark.parametrize("client", ["plain", "tls"])
def test_kept_connections_cost_no_more_calls(pki, tmp_path, show, client):
    reason = gauge.why_not("strace")
    if reason:
        pytest.skip(reason)
    nginx = TlsNginx(tmp_path, pki.leaf(NAME), free_port(), {"1k.html": gauge.BODY})

    def serve(driver):
        target(driver, pki)
        driver.backend("b", nginx)
        if client == "tls":
            return https(driver, pki)
        driver.rule("/", "b", tls="t")
        driver.host("a.test")
        return None

    calls = gauge.system_calls(nginx, serve)
    nginx.close()
    show(", ".join(f"{name} {count:.2f}" for name, count in sorted(calls.items())))
    # To a fiftieth: how many connections are watched before they are used differs from run to run.
    assert calls.get("epoll_ctl", 0) < 0.02
    waits = calls.get("epoll_wait", 0) + calls.get("epoll_pwait", 0)
    assert sum(calls.values()) - waits < 4.02
