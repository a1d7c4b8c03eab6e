"""HTTP/1 through the data plane: framing, heads, tunnels, answers. Origins are plain sockets."""

import threading

import pytest

from support.proxy_driver import OK, Driver, Script, dial, get, quiet_for
from support.wait import until


@pytest.fixture
def world():
    """world(handler=, answer=, **driver settings) -> (driver, origin); ended with the test."""
    made = []

    def make(handler=None, answer=OK, serve=True, **settings):
        origin = Script(handler, answer)
        driver = Driver(**settings)
        made.append((driver, origin))
        if serve:
            driver.serve(origin)
        return driver, origin

    yield make
    for driver, origin in made:
        driver.close()
        origin.close()


def test_connections_are_kept_on_both_sides(world):
    driver, origin = world(workers=1)
    with_first = dial(driver.port)
    for _ in range(20):
        assert get(with_first)[0] == 200
    second = dial(driver.port)
    assert get(second)[0] == 200
    assert origin.accepted == 1
    assert driver.metrics()["skein_upstream_reused_total"] == 20


def test_close_mode_reuses_upstream_connections(world):
    driver, origin = world(workers=1)
    for _ in range(10):
        wire = dial(driver.port)
        status, fields, _ = get(wire, fields="Connection: close\r\n")
        assert (status, fields["connection"]) == (200, "close")
        assert wire.at_end()
    assert origin.accepted == 1


def test_http10(world):
    def answer(line):
        if "/chunked" in line:
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        return OK

    driver, _ = world(answer=answer)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    line, fields, _ = wire.head()
    assert line == "HTTP/1.1 200 OK" and fields["connection"] == "close"
    assert wire.rest() == b"ok"

    wire = dial(driver.port)
    for _ in range(3):
        wire.send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n")
        status, fields, body = wire.response()
        assert (status, fields["connection"], body) == (200, "keep-alive", b"ok")
    # A chunked body becomes one that ends with the connection.
    wire.send("GET /chunked HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n")
    _, fields, _ = wire.head()
    assert "transfer-encoding" not in fields and fields["connection"] == "close"
    assert wire.rest() == b"abc"

    wire = dial(driver.port)
    wire.send("GET / HTTP/1.0\r\n\r\n")
    assert wire.response()[0] == 404


def test_pipelined_requests_are_answered_in_order(world):
    def answer(line):
        path = line.split()[1].encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path)

    driver, _ = world(answer=answer)
    wire = dial(driver.port)
    count = 300
    wire.send("".join(f"GET /{i} HTTP/1.1\r\nHost: a.test\r\n\r\n" for i in range(count)))
    for i in range(count):
        assert wire.response()[2] == f"/{i}".encode()
    # Also when some are answered by Skein itself.
    hosts = ["a.test", "no.test"] * 50
    wire.send("".join(f"GET /{h} HTTP/1.1\r\nHost: {h}\r\n\r\n" for h in hosts))
    for host in hosts:
        assert wire.response()[0] == (200 if host == "a.test" else 404)


def test_pipelined_flood_is_bounded(world):
    """A client that pipelines without reading does not make memory grow."""
    driver, _ = world(
        workers=1, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n" + b"y" * 30000
    )
    wire = dial(driver.port)
    assert get(wire)[0] == 200
    before = driver.memory_kib()
    one = b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Pad: " + b"x" * 1000 + b"\r\n\r\n"
    wire.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        for _ in range(40000):
            wire.send(one)
    assert driver.memory_kib() - before < 8192


@pytest.mark.parametrize("length", [0, 1, 4095, 16384, 65536, 300000])
@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_request_bodies(world, length, coding):
    driver, origin = world()
    body = bytes(i * 7 % 251 for i in range(length))
    wire = dial(driver.port)
    for _ in range(2):
        if coding == "length":
            wire.send(f"POST /p HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n")
            wire.send(body)
        else:
            wire.send("POST /p HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
            for at in range(0, length, 10000):
                part = body[at : at + 10000]
                wire.send(b"%x;ext=1\r\n%s\r\n" % (len(part), part))
            wire.send(b"0\r\n\r\n")
        assert wire.response()[0] == 200
    assert [body for _, _, body in origin.requests] == [body, body]


@pytest.mark.parametrize("coding", ["length", "chunked", "close"])
def test_response_bodies(world, coding):
    body = bytes(i * 13 % 251 for i in range(500000))

    def handler(wire, _):
        while True:
            origin.request(wire)
            if coding == "length":
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            elif coding == "chunked":
                wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, len(body), 33333):
                    part = body[at : at + 33333]
                    wire.send(b"%X\r\n%s\r\n" % (len(part), part))
                wire.send("0\r\n\r\n")
            else:
                wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + body)
                return

    driver, origin = world(handler)
    wire = dial(driver.port)
    for _ in range(3):
        status, fields, got = get(wire)
        assert status == 200 and got == body
        # The client's connection is kept, however the origin ends its body.
        assert ("content-length" in fields) == (coding == "length")
    assert origin.accepted == (3 if coding == "close" else 1)


def test_request_split_at_every_byte(world):
    driver, origin = world()
    raw = (
        b"POST /x?q=1 HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX-T: 1\r\n\r\n"
    )
    wire = dial(driver.port)
    for at in range(1, len(raw)):
        wire.send(raw[:at])
        wire.send(raw[at:])
        assert wire.response()[0] == 200
    wire = dial(driver.port)
    for byte in raw:
        wire.send(bytes([byte]))
    assert wire.response()[0] == 200
    assert {body for _, _, body in origin.requests} == {b"hello world"}


def test_response_split_at_every_byte(world):
    raw = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
        b"5\r\nhello\r\n6;e\r\n world\r\n0\r\nX-T: 1\r\n\r\n"
    )
    cuts = iter(range(1, len(raw)))

    def handler(wire, _):
        while True:
            origin.request(wire)
            at = next(cuts)
            wire.send(raw[:at])
            wire.send(raw[at:])

    driver, origin = world(handler)
    wire = dial(driver.port)
    for _ in range(1, len(raw)):
        status, fields, body = get(wire)
        assert (status, fields["x-a"], body) == (200, "b", b"hello world")
    assert origin.accepted == 1


def test_trailers_pass_both_ways(world):
    seen = []

    def handler(wire, _):
        wire.head()
        seen.append(wire.chunks())
        wire.send(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
            "2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"
        )

    driver, _ = world(handler)
    wire = dial(driver.port)
    wire.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\nX-In: 1\r\nContent-Length: 5\r\n\r\n"
    )
    wire.head()
    assert wire.chunks() == (b"ok", b"X-Sum: 7\r\n")
    assert seen == [(b"abc", b"X-In: 1\r\n")]


def test_bodyless_responses(world):
    def answer(line):
        method, path, _ = line.split()
        if path == "/204":
            return b"HTTP/1.1 204 No Content\r\n\r\n"
        if path == "/304":
            return b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n"
        assert method == "HEAD"
        return b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"

    driver, origin = world(answer=answer, workers=1)
    wire = dial(driver.port)
    for _ in range(3):
        status, fields, _ = get(wire, method="HEAD")
        assert (status, fields["content-length"]) == (200, "12345")
        status, fields, _ = get(wire, "/204")
        assert status == 204 and "content-length" not in fields
        status, fields, _ = get(wire, "/304")
        assert (status, fields["content-length"]) == (304, "1000")
    assert origin.accepted == 1


def test_expect_continue_is_end_to_end(world):
    def handler(wire, _):
        while True:
            line, fields, _ = wire.head()
            assert fields["expect"] == "100-continue"
            if "refuse" in line:
                wire.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
                assert wire.at_end()
                return
            wire.send("HTTP/1.1 100 Continue\r\n\r\n")
            assert wire.body(fields) == b"body"
            wire.send(OK)

    driver, _ = world(handler)
    wire = dial(driver.port)
    head = "POST {} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    wire.send(head.format("/take"))
    assert wire.head()[0] == "HTTP/1.1 100 Continue"
    wire.send("body")
    assert wire.response()[0] == 200
    wire.send(head.format("/refuse"))
    status, fields, _ = wire.response()
    assert (status, fields["connection"]) == (417, "close")
    assert wire.at_end()


def test_interim_responses(world):
    def answer(_):
        return b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + OK

    driver, _ = world(answer=answer)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    line, fields, _ = wire.head()
    assert line.startswith("HTTP/1.1 103") and fields["link"] == "</a.css>"
    assert wire.response()[0] == 200
    # HTTP/1.0 has none of them.
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
    assert wire.head()[0].startswith("HTTP/1.1 200")


def test_upgrade_is_tunnelled(world):
    def handler(wire, _):
        line, fields, _ = wire.head()
        assert fields["upgrade"] == "websocket" and fields["connection"].lower() == "upgrade"
        wire.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Accept: x\r\n\r\nhello"
        )
        while wire.fill():
            wire.send(wire.data.upper())
            wire.data = b""
        wire.send("bye")

    driver, _ = world(handler)
    wire = dial(driver.port)
    wire.send(
        "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Key: y\r\n\r\nearly"
    )
    line, fields, _ = wire.head()
    assert line.startswith("HTTP/1.1 101") and fields["upgrade"] == "websocket"
    assert fields["sec-websocket-accept"] == "x"
    assert wire.exactly(10) == b"helloEARLY"
    wire.send(b"\x00\xffraw\r\n\r\n")
    assert wire.exactly(9) == b"\x00\xffRAW\r\n\r\n"
    big = b"z" * 3_000_000
    sender = threading.Thread(target=wire.send, args=(big,))
    sender.start()
    assert wire.exactly(len(big)) == big.upper()
    sender.join()
    import socket

    wire.sock.shutdown(socket.SHUT_WR)  # half-close passes
    assert wire.rest() == b"bye"
    until(lambda: driver.connections() == 0, "the tunnel is gone")


def test_refused_upgrade_goes_on_as_http(world):
    driver, _ = world()
    wire = dial(driver.port)
    for _ in range(2):
        assert get(wire, fields="Connection: Upgrade\r\nUpgrade: websocket\r\n")[2] == b"ok"


def test_unasked_101_is_a_bad_response(world):
    driver, _ = world(
        answer=b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    )
    assert get(dial(driver.port))[0] == 502


def test_hop_by_hop_fields_stay_behind(world):
    def answer(_):
        return (
            b"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n"
            b"X-End: 2\r\nContent-Length: 2\r\n\r\nok"
        )

    driver, origin = world(answer=answer)
    wire = dial(driver.port)
    _, fields, _ = get(
        wire,
        fields="Connection: X-Mine, keep-alive\r\nX-Mine: 1\r\nProxy: evil\r\nTE: gzip\r\n"
        "Proxy-Connection: keep-alive\r\nX-Kept: 3\r\n",
    )
    assert fields["x-end"] == "2"
    assert not {"x-hop", "keep-alive", "connection"} & set(fields)
    _, seen, _ = origin.requests[0]
    assert seen["x-kept"] == "3"
    assert not {"x-mine", "proxy", "te", "proxy-connection", "connection", "keep-alive"} & set(seen)


def test_forwarded_fields_follow_the_policy(world):
    driver, origin = world()
    fields = "X-Forwarded-For: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\n"
    seen = {}
    for name, number in {"append": 0, "replace": 1, "if-none": 2, "never": 3}.items():
        driver.cmd(f"set forwarded {number}")
        driver.cmd("apply")
        assert get(dial(driver.port), fields=fields)[0] == 200
        seen[name] = origin.requests[-1][1]
    assert seen["append"]["x-forwarded-for"] == "9.9.9.9, 127.0.0.1"
    assert seen["append"]["forwarded"].startswith("for=9.9.9.9, for=127.0.0.1;")
    assert seen["replace"]["x-forwarded-for"] == "127.0.0.1"
    assert seen["if-none"]["x-forwarded-for"] == "9.9.9.9"
    assert seen["if-none"]["x-forwarded-host"] == "a.test"
    assert seen["never"]["x-forwarded-for"] == "9.9.9.9"
    assert "x-forwarded-host" not in seen["never"]


def test_matching(world):
    driver, _ = world(serve=False)
    origins = {}

    def backend(name):
        body = name.encode()
        origins[name] = Script(
            answer=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        driver.backend(name, origins[name])
        return name

    driver.rule("/", backend("root"))
    driver.rule("/app", backend("app"))
    driver.rule("/app/deep", backend("deep"))
    driver.rule("/app", backend("exact"), kind="exact")
    driver.host("a.test")
    driver.rule("/only", backend("wild"))
    driver.host("*.b.test")
    driver.rule("/x", backend("own"))
    driver.host("own.b.test")
    wire = dial(driver.port)

    def where(path, host="a.test"):
        status, _, body = get(wire, path, host)
        return body.decode() if status == 200 else status

    assert where("/") == "root"
    assert where("/application") == "root"
    assert where("/app") == "exact"
    assert where("/app/") == "app"
    assert where("/app?x=/deep") == "exact"
    assert where("/app/deep/er") == "deep"
    assert where("/%61pp/d%65ep") == "deep"
    assert where("/app%2Fdeep") == "root"
    assert where("http://A.TEST:80/app/x", "a.test:80") == "app"
    assert where("/app/x", "A.Test.") == "app"
    assert where("/only/1", "z.b.test") == "wild"
    assert where("/other", "z.b.test") == 404
    assert where("/only", "y.z.b.test") == 404  # one label
    assert where("/only", "b.test") == 404
    assert where("/only", "own.b.test") == 404  # no fall-through
    assert where("/x", "own.b.test") == "own"
    assert where("/app/../x") == 400
    wire = dial(driver.port)
    assert where("/app/%2e%2e/x") == 400
    driver.cmd("set dot_segments 1")
    driver.cmd("apply")
    wire = dial(driver.port)
    assert where("/app/../x") == "root"
    assert origins["root"].requests[-1][0] == "GET /x HTTP/1.1"
    for origin in origins.values():
        origin.close()


def test_own_answers(world):
    driver, _ = world(header_bytes_max=4096, uri_bytes_max=1000, body_bytes_max=100)
    big = "x" * 5000
    cases = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\n folded\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 101\r\n\r\n", 413),
        (
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n"
            + "y" * 128,
            413,
        ),
        ("GET /" + "u" * 1200 + " HTTP/1.1\r\nHost: a.test\r\n\r\n", 414),
        (f"GET / HTTP/1.1\r\nHost: a.test\r\nX: {big}\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: a.test\r\n" + "A: b\r\n" * 200 + "\r\n", 431),
        ("GET / HTTP/3.0\r\nHost: a.test\r\n\r\n", 505),
        ("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nExpect: the-unexpected\r\n\r\n", 417),
        ("GET / HTTP/1.1\r\nHost: unknown.test\r\n\r\n", 404),
        ("GET /%zz HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
    ]
    for raw, status in cases:
        wire = dial(driver.port)
        wire.send(raw)
        got, fields, body = wire.response()
        assert got == status, raw[:80]
        assert int(fields["content-length"]) == len(body) > 0
        if status not in (404, 417) and "%zz" not in raw:
            assert fields["connection"] == "close", raw[:80]
            assert wire.at_end(), raw[:80]
    series = driver.metrics()
    assert series['skein_answers_total{code="431",reason="headers_too_big"}'] == 2
    assert series['skein_answers_total{code="413",reason="body_too_big"}'] == 2


def test_answer_survives_an_unread_body(world):
    """The client still sends when it is answered: it gets the answer, not a reset."""
    driver, _ = world(body_bytes_max=1000)
    for _ in range(5):
        wire = dial(driver.port)
        wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 900000\r\n\r\n")
        wire.send(b"x" * 900000)
        assert wire.response()[0] == 413
        assert wire.at_end()


def test_early_response_is_relayed(world):
    """An origin that answers before the body is in, and closes."""

    def handler(wire, _):
        wire.head()
        wire.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope")

    driver, _ = world(handler)
    for _ in range(5):
        wire = dial(driver.port)
        wire.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 700000\r\n\r\nbegin")
        status, fields, body = wire.response()
        assert (status, fields["connection"], body) == (403, "close", b"nope")
        wire.send(b"x" * 699995)
        assert wire.at_end()


def test_garbage_from_clients(world):
    import random

    driver, _ = world()
    rng = random.Random(7)
    seed = b"POST /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    for _ in range(300):
        data = bytearray(seed * 2)
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        wire = dial(driver.port)
        wire.send(bytes(data))
        wire.close()
    for _ in range(50):
        wire = dial(driver.port)
        wire.send(rng.randbytes(rng.randrange(1, 3000)))
        wire.close()
    wire = dial(driver.port)
    assert get(wire)[0] == 200
    wire.close()
    until(lambda: driver.connections() == 0, "garbage connections are gone", timeout=20)


def test_access_log_and_metrics(world, tmp_path):
    import json

    log = tmp_path / "access.log"
    driver, origin = world(log=str(log))
    wire = dial(driver.port)
    assert get(wire, "/x?y=\"z")[0] in (200, 400)
    for _ in range(20):
        assert get(wire, "/some/path")[0] == 200
    assert get(wire, host="none.test")[0] == 404
    until(lambda: len(log.read_text().splitlines()) == 22, "all lines are written")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    one = next(line for line in lines if line.get("path") == "/some/path")
    assert one["status"] == 200 and one["host"] == "a.test" and one["method"] == "GET"
    assert one["route"] == "test/route" and one["backend"] == "b" and one["node"] == "driver"
    assert one["endpoint"] == origin.address and one["client"].startswith("127.0.0.1:")
    assert one["bytesOut"] == 2
    assert lines[-1]["reason"] == "no_route"
    until(lambda: driver.metrics()["skein_request_duration_seconds_count"] == 22, "counted")
    series = driver.metrics()
    assert series['skein_route_responses_total{route="test/route",code="2xx"}'] >= 20
    assert series['skein_backend_responses_total{backend="b",code="2xx"}'] >= 20
    endpoint = f'skein_endpoint_responses_total{{backend="b",endpoint="{origin.address}",code="2xx"}}'
    assert series[endpoint] >= 20
    assert series["skein_request_duration_seconds_count"] == 22
    log.rename(tmp_path / "rotated.log")
    until(lambda: get(wire)[0] == 200 and log.exists(), "the log is opened anew")


def test_half_closed_clients_are_served(world):
    """Requests that are complete when the client ends its direction get their answers."""
    import socket

    def answer(line):
        if "slow" in line:
            quiet_for(0.4)
        if "big" in line:
            return b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + b"y" * 400000
        return OK

    driver, _ = world(answer=answer)
    for paths in (["/slow"], ["/big"], ["/", "/slow", "/big", "/big", "/"]):
        wire = dial(driver.port)
        for path in paths:
            wire.send(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n")
        wire.sock.shutdown(socket.SHUT_WR)
        for path in paths:
            assert len(wire.response()[2]) == (400000 if path == "/big" else 2)
        assert wire.at_end()
    # What can never be complete is not waited for.
    for raw in ("GET / HT", "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nabc"):
        wire = dial(driver.port)
        wire.send(raw)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.at_end()
    until(lambda: driver.connections() == 0, "all are closed")


@pytest.mark.parametrize("ahead", [b"", b"early"])
def test_half_close_before_a_tunnel_reaches_the_endpoint(world, ahead):
    """The client ended its direction before the 101: the tunnel begins half-closed."""
    import socket

    def handler(wire, _):
        wire.head()
        quiet_for(0.2)
        wire.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
        )
        wire.send(b"got " + wire.rest())

    driver, _ = world(handler)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
    wire.send(ahead)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.head()[0].startswith("HTTP/1.1 101")
    assert wire.rest() == b"got " + ahead
    until(lambda: driver.connections() == 0, "the tunnel is gone")


def test_bytes_behind_the_last_request_do_not_reset(world):
    """They came after the request was read: the answer and an orderly end all the same."""

    def answer(_):
        quiet_for(0.03)
        return OK

    driver, _ = world(answer=answer)
    for _ in range(20):
        wire = dial(driver.port)
        wire.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        quiet_for(0.01)
        wire.send("\r\n")
        assert wire.response()[0] == 200
        assert wire.sock.recv(1) == b""  # a reset would raise


def test_max_forwards(world):
    driver, origin = world()
    wire = dial(driver.port)
    status, fields, _ = get(wire, method="OPTIONS", fields="Max-Forwards: 0\r\n")
    assert status == 200 and "GET" in fields["allow"]
    assert get(wire, method="TRACE", fields="Max-Forwards: 0\r\n")[0] == 405
    assert origin.requests == []
    get(wire, method="OPTIONS", fields="Max-Forwards: 7\r\n")
    get(wire, method="GET", fields="Max-Forwards: 0\r\n")
    assert [fields["max-forwards"] for _, fields, _ in origin.requests] == ["6", "0"]
