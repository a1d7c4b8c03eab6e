"""What a node tells of its traffic: the access log and the metrics."""

import json
import os
import re
import signal
import subprocess
import threading

import pytest

from support import exposition
from support.api import backend, documents, route
from support.cluster import SKEIND
from support.exposition import total, value
from support.proxy_driver import OK, Driver, Script, dial, get
from support.wait import SLOW, until


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


def lines_of(path, count, message="all lines are written"):
    """Exactly so many JSON lines."""
    until(lambda: path.exists() and len(path.read_bytes().splitlines()) >= count, message)
    lines = [json.loads(line) for line in path.read_bytes().decode("utf-8").splitlines()]
    assert len(lines) == count, lines
    return lines


# ---- the access log ----


def test_fields_of_an_exchange(world, tmp_path):
    log = tmp_path / "access.log"
    driver, origin = world(log=str(log), workers=1)
    wire = dial(driver.port)
    fields = "User-Agent: probe/1\r\nReferer: http://ref.test/x\r\nX-Request-Id: abc\r\n"
    for _ in range(2):
        wire.send(f"POST /p?q=1 HTTP/1.1\r\nHost: A.test:80\r\nContent-Length: 3\r\n{fields}\r\nxyz")
        assert wire.response()[0] == 200
    first, second = lines_of(log, 2)
    assert (first["reused"], second["reused"]) == (False, True)
    assert first["client"] == "127.0.0.1:%d" % wire.sock.getsockname()[1]
    assert second == {
        **second, "kind": "http", "node": "driver", "method": "POST", "host": "a.test",
        "path": "/p?q=1", "version": "1.1", "status": 200, "bytesIn": 3, "bytesOut": 2,
        "userAgent": "probe/1", "referer": "http://ref.test/x", "requestId": "abc",
        "route": "test/route", "backend": "b", "endpoint": origin.address, "retries": 0,
        "listener": f"127.0.0.1:{driver.port}", "connectUs": 0,
    }
    assert "end" not in second and "reason" not in second
    for line in (first, second):
        parts = [line[k] for k in ("waitUs", "queueUs", "connectUs", "firstByteUs")]
        assert all(isinstance(p, int) and p >= 0 for p in parts)
        assert sum(parts) <= line["totalUs"]
    assert first["connectUs"] > 0


def test_ends_tell_who_and_when(world, tmp_path):
    """One exchange for each way to end."""
    log = tmp_path / "access.log"
    gate = threading.Event()

    def handler(wire, _):
        line, _, _ = wire.head()
        if "/close" in line:
            return
        if "/garbled" in line:
            wire.send(b"what is this\r\n\r\n")
        elif "/part" in line:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            if "/part-wait" in line:
                gate.wait(20)
        elif "/silent" in line:
            gate.wait(20)

    driver, _ = world(
        handler, log=str(log), workers=1, server_ms=400, client_header_ms=400, retries_max=0
    )
    dead = Script()
    dead.stop_listening()
    driver.backend("dead", dead)
    driver.backend("none")
    for name in ("dead", "none"):
        driver.rule("/", name)
        driver.host(f"{name}.test")
    wanted = []

    def ask(path, status, end, reason, host="a.test", method="GET"):
        wire = dial(driver.port)
        answer = get(wire, path, host=host, method=method)
        assert answer[0] == status, answer
        wanted.append((path, status, end, reason))
        wire.close()

    ask("/close", 502, "endpoint.wait", "upstream_closed", method="POST")
    ask("/garbled", 502, "endpoint.wait", "bad_response")
    ask("/silent", 504, "time.wait", "server_timeout")
    ask("/dead", 502, "endpoint.connect", "connect_failed", host="dead.test")
    ask("/none", 503, "resource.queue", "no_endpoint", host="none.test")
    ask("/lost", 404, "proxy.route", "no_route", host="lost.test")

    wire = dial(driver.port)
    wire.send("GET /part HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.rest()
    wanted.append(("/part", 0, "endpoint.response", "upstream_closed"))
    wire = dial(driver.port)
    wire.send("GET /part-wait HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.until(b"abc")
    wire.reset()
    wanted.append(("/part-wait", 0, "client.response", None))
    wire = dial(driver.port)
    wire.send("POST /silent-body HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nabc")
    until(lambda: driver.metrics()["skein_upstream_connections_total"] >= 6, "it is on its way")
    wire.close()
    wanted.append(("/silent-body", 0, "client.request", None))
    wire = dial(driver.port)
    wire.send("GET /head HTTP/1.1\r\nHos")
    assert wire.response()[0] == 408
    wanted.append((None, 408, "time.head", "client_timeout"))
    wire = dial(driver.port)
    wire.send("GET /head HTTP/1.1\r\nHos")
    wire.sock.shutdown(1)
    wire.rest()
    wanted.append((None, 0, "client.head", None))
    wire = dial(driver.port)
    wire.send("nonsense\r\n\r\n")
    assert wire.response()[0] == 400
    wanted.append((None, 400, "proxy.head", "bad_request"))
    gate.set()
    got = [
        (line.get("path"), line["status"], line.get("end"), line.get("reason"))
        for line in lines_of(log, len(wanted))
    ]
    assert sorted(got, key=str) == sorted(wanted, key=str)


def test_no_value_leaves_its_place(world, tmp_path):
    """Quotes, escapes, UTF-8 and what is none, in both formats."""
    log = tmp_path / "access.log"
    driver, _ = world(log=str(log), workers=1)
    evil = [b'"},{"a":"', b"\\", b'\\"', b"\xc3\xa9\xe2\x82\xac", b"\xff\xfe\xc0\xaf", b"\xc2\x9b2J",
            b"\t\ttab", b"%0a%0d"]
    wire = dial(driver.port)
    for text in evil:
        wire.send(b"GET /x HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x" + text + b"x\r\n"
                  b"Referer: " + text + b"\r\n\r\n")
        status = wire.response()[0]
        if status != 200:
            wire = dial(driver.port)
    lines = lines_of(log, len(evil))
    agents = [line["userAgent"] for line in lines if "userAgent" in line]
    assert "x\u00e9\u20acx" in agents and 'x"},{"a":"x' in agents
    assert "x\ufffd\ufffd\ufffd\ufffdx" in agents and "x\u009b2Jx" in agents
    raw = log.read_bytes()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", raw), "a control byte"

    driver.cmd("set access_format 2")
    driver.cmd("apply")
    before = len(raw.splitlines())
    wire = dial(driver.port)
    for text in evil:
        wire.send(b"GET /plain HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x" + text + b"x\r\n\r\n")
        if wire.response()[0] != 200:
            wire = dial(driver.port)
    until(lambda: len(log.read_bytes().splitlines()) == before + len(evil), "lines are written")
    pattern = re.compile(
        rb'127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\] '
        rb'"GET /plain HTTP/1\.1" 200 2 "-" "((?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*)" "a\.test" '
        rb'"test/route" "b" "127\.0\.0\.1:\d+" \d+/\d+/\d+/\d+/\d+ 0 - "-"'
    )
    for line in log.read_bytes().splitlines()[before:]:
        if b" 400 " not in line:
            assert pattern.fullmatch(line), line
        assert all(32 <= byte < 127 for byte in line)


def test_switched_while_traffic_flows(world, tmp_path):
    log = tmp_path / "access.log"
    driver, _ = world(log=str(log), workers=1, access=1)
    wire = dial(driver.port)

    def switch(name, number):
        driver.cmd(f"set {name} {number}")
        driver.cmd("apply")

    assert get(wire, "/off")[0] == 200
    switch("access", 2)
    assert get(wire, "/on")[0] == 200
    switch("access", 1)
    assert get(wire, "/off")[0] == 200
    switch("access", 0)
    assert get(wire, "/as-configured")[0] == 200
    assert [line["path"] for line in lines_of(log, 2)] == ["/on", "/as-configured"]


def test_connections_that_ask_for_nothing(world, tmp_path):
    log = tmp_path / "access.log"
    driver, _ = world(log=str(log), workers=1)

    def gone(count):
        series = driver.metrics()
        return series["skein_client_connections"] == 0 and count == sum(
            number for name, number in series.items()
            if name.startswith("skein_listener_connections_total")
        )

    dial(driver.port).close()
    until(lambda: gone(1), "it has come and gone")
    driver.cmd("set access_empty 1")
    driver.cmd("apply")
    dial(driver.port).close()
    wire = dial(driver.port)
    assert get(wire)[0] == 200
    wire.close()  # has asked for something
    until(lambda: gone(3), "they have come and gone")
    kinds = [line["kind"] for line in lines_of(log, 2)]
    assert sorted(kinds) == ["empty", "http"]


def test_a_reader_that_does_not_read_loses_records_only(world, tmp_path):
    """A blocked pipe: traffic goes on at full speed, what is lost is counted and told."""
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    driver, _ = world(log=str(fifo), workers=1)
    wire = dial(driver.port)
    count = 2500
    for i in range(count):
        assert get(wire, f"/{i}/" + "x" * 2000)[0] == 200
    families = exposition.parse(driver.metrics_text())
    dropped = value(families, "skein_access_log_dropped_total", reason="full")
    assert dropped > 0
    assert value(families, "skein_responses_total", code="2xx") == count
    os.set_blocking(reader, True)
    text = b""

    def told():
        lines = [json.loads(line) for line in text[:text.rfind(b"\n") + 1].splitlines()]
        lost = sum(line["count"] for line in lines if line.get("event"))
        paths = [line["path"] for line in lines if "path" in line]
        return lost + len(paths) >= count and lost, paths

    while not told()[0]:
        text += os.read(reader, 1 << 20)
    lost, paths = told()
    assert lost == dropped and len(paths) == count - lost
    numbers = [int(path.split("/")[1]) for path in paths]
    assert numbers == sorted(numbers), "what is there is in order"
    os.close(reader)
    # The reader is gone: lines are lost, nothing else.
    for _ in range(10):
        assert get(wire)[0] == 200
    until(
        lambda: driver.metrics()['skein_access_log_dropped_total{reason="write"}'] == 10,
        "the loss is counted",
    )


def test_the_end_does_not_wait_for_a_reader(world, tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    driver, _ = world(log=str(fifo), workers=1)
    wire = dial(driver.port)
    for _ in range(200):
        assert get(wire, "/" + "x" * 2000)[0] == 200
    driver.close()  # within its time limit, though the pipe is full
    os.close(reader)


def test_tcp_connections_are_logged(world, tmp_path):
    log = tmp_path / "access.log"

    def echo(wire, _):
        while wire.fill():
            wire.send(wire.data)
            wire.data = b""

    driver, origin = world(echo, log=str(log), workers=1, retries_max=0)
    port = driver.open_port("b")
    wire = dial(port)
    wire.send(b"hello")
    assert wire.exactly(5) == b"hello"
    wire.sock.shutdown(1)
    wire.rest()
    line = lines_of(log, 1)[0]
    assert line == {
        **line, "kind": "tcp", "route": "test/tcp", "backend": "b", "endpoint": origin.address,
        "listener": f"127.0.0.1:{port}", "bytesIn": 5, "bytesOut": 5,
        "client": "127.0.0.1:%d" % wire.sock.getsockname()[1],
    }
    assert line["connectUs"] > 0 and "status" not in line and "end" not in line
    dead = Script()
    dead.stop_listening()
    driver.backend("dead", dead)
    other = driver.open_port("dead", route="test/dead")
    assert dial(other).at_end()
    line = lines_of(log, 2)[1]
    assert (line["end"], line["reason"]) == ("endpoint.connect", "connect_failed") or (
        line["end"], line["reason"]) == ("endpoint.queue", "connect_failed"), line
    families = exposition.parse(driver.metrics_text())
    assert value(families, "skein_route_connections_total", route="test/tcp") == 1
    assert value(families, "skein_route_connection_failures_total", route="test/dead") == 1
    assert value(families, "skein_route_request_bytes_total", route="test/tcp") == 5


def test_affinity_is_logged(world, tmp_path):
    log = tmp_path / "access.log"
    driver, origin = world(log=str(log), workers=1, serve=False)
    driver.backend("b", origin)
    driver.rule("/", "b", sticky="s")
    driver.host()
    wire = dial(driver.port)
    _, fields, _ = get(wire)
    cookie = fields["set-cookie"].split(";")[0]
    get(wire, fields=f"Cookie: {cookie}\r\n")
    assert [line["sticky"] for line in lines_of(log, 2)] == ["new", "kept"]


# ---- a whole node ----


def test_captures_and_switches_of_objects(make_cluster, make_origin, tmp_path):
    log = tmp_path / "access.log"
    cluster = make_cluster(1)
    node = cluster[0]
    node.start(extra=["--log.access", str(log)]).wait_ready()
    address = make_origin("o").address
    node.api.put("settings", "default", {
        "captures": {"request": [{"name": "X-All"}], "cookies": [{"name": "sid", "maxLength": 4}]},
    })
    node.api.apply(documents(
        backend("b", address),
        route("quiet", "quiet.test", "b", accessLog=False),
        route("loud", "loud.test", "b", captures={
            "request": [{"name": "X-One", "maxLength": 5}, {"name": "Authorization"}],
            "response": [{"name": "Content-Type"}],
        }),
        route("plain", "plain.test", "b"),
    ))
    fields = {
        "X-All": "all", "X-One": "one-is-long", "Authorization": "Basic secret",
        "Cookie": "a=1; sid=abcdefgh; b=2", "X-Other": "other",
    }
    for host in ("quiet.test", "loud.test", "plain.test"):
        assert node.get(host, "/x", headers=fields).status == 200
    loud, plain = lines_of(log, 2)
    assert loud["route"] == "default/loud" and plain["route"] == "default/plain"
    assert loud["requestHeaders"] == {
        "x-all": "all", "x-one": "one-i", "authorization": "Basic secret"
    }
    assert "content-type" in loud["responseHeaders"]
    assert loud["cookies"] == plain["cookies"] == {"sid": "abcd"}
    assert plain["requestHeaders"] == {"x-all": "all"} and "responseHeaders" not in plain
    assert b"secret" not in log.read_bytes().splitlines()[1]

    # Off and on for the whole cluster.
    node.api.put("settings", "default", {"accessLog": {"enabled": False}})
    assert node.get("plain.test", "/unseen").status == 200
    node.api.put("settings", "default", {"accessLog": {"enabled": True, "format": "combined"}})
    assert node.get("plain.test", "/seen").status == 200
    until(lambda: len(log.read_bytes().splitlines()) == 3, "the third line")
    assert b'"GET /seen HTTP/1.1" 200 ' in log.read_bytes().splitlines()[2]
    assert b"unseen" not in log.read_bytes()
    node.api.put("settings", "default", {"accessLog": {"format": "fancy"}}, expect=422)


def test_node_that_logs_to_a_blocked_pipe(make_cluster, make_origin):
    """stdout is a pipe that nobody reads: requests are answered, and SIGTERM ends the node."""
    node = make_cluster(1)[0]
    process = subprocess.Popen(
        [SKEIND, *node.arguments(), "--log.access", "stdout"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )
    try:
        until(node.api.is_ready, "the node is ready", 30)
        node.api.apply(documents(backend("b", make_origin("o").address), route("r", "a.test", "b")))
        wire = dial(node.http_port)
        for _ in range(1500):
            assert get(wire, "/" + "x" * 2000)[0] == 200
        families = exposition.parse(node.api.call("GET", "/metrics", expect=200).text)
        assert total(families, "skein_access_log_dropped_total") > 0
        wire.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30 * SLOW) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_exposition_of_a_node_is_strictly_right(shared, make_origin):
    node = shared[0]
    space = "observe"
    node.api.apply(documents(
        backend("b", make_origin("b").address, namespace=space),
        route("r", "observe.test", "b", namespace=space),
    ), "?wait=all")
    for _ in range(5):
        assert node.get("observe.test").status == 200
    families = exposition.parse(node.api.call("GET", "/metrics", expect=200).text)
    assert value(families, "skein_route_responses_total", route=f"{space}/r", code="2xx") == 5
    assert value(families, "skein_backend_response_seconds_count", backend=f"{space}/b") == 5
    assert value(families, "process_open_fds") > 10
    assert value(families, "process_resident_memory_bytes") > 1 << 20
    assert value(families, "process_start_time_seconds") > 1.6e9


# ---- metrics against traffic that is known ----


def test_counts_are_those_of_the_traffic(world):
    def answer(line):
        status = int(line.split("/")[1].split()[0])
        body = b"x" * 10
        return b"HTTP/1.1 %d Some\r\nContent-Length: 10\r\n\r\n%s" % (status, body)

    driver, origin = world(answer=answer, workers=2, retries_max=0)
    driver.rule("/", "b", route="test/other")
    driver.host("b.test")
    wanted = {"2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0}
    wires = [dial(driver.port) for _ in range(4)]
    for i, status in enumerate([200, 302, 404, 503, 200, 204 + 96, 499] * 6):
        wire = wires[i % 4]
        wire.send(f"POST /{status} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody")
        assert wire.response()[0] == status
        wanted[f"{status // 100}xx"] += 1
    for _ in range(3):
        assert get(wires[0], "/200", host="b.test")[0] == 200
    assert get(wires[0], "/200", host="none.test")[0] == 404
    count = sum(wanted.values())
    families = exposition.parse(driver.metrics_text())
    for code, number in wanted.items():
        assert value(families, "skein_route_responses_total", route="test/route", code=code) == number
    assert value(families, "skein_route_responses_total", route="test/other", code="2xx") == 3
    assert total(families, "skein_backend_responses_total", backend="b") == count + 3
    assert total(families, "skein_endpoint_responses_total", endpoint=origin.address) == count + 3
    assert value(families, "skein_route_request_bytes_total", route="test/route") == 4 * count
    assert value(families, "skein_route_response_bytes_total", route="test/route") == 10 * count
    assert value(families, "skein_route_duration_seconds_count", route="test/route") == count
    assert value(families, "skein_request_duration_seconds_count") == count + 4
    assert value(families, "skein_backend_response_seconds_count", backend="b") == count + 3
    opened = value(families, "skein_upstream_connections_total")
    assert value(families, "skein_backend_connect_seconds_count", backend="b") == opened
    reused = value(families, "skein_backend_connections_reused_total", backend="b")
    assert reused == count + 3 - opened
    listener = f"127.0.0.1:{driver.port}"
    assert value(families, "skein_listener_connections_total", listener=listener) == 4
    assert value(families, "skein_listener_connections", listener=listener) == 4
    assert value(families, "skein_endpoint_up", backend="b", endpoint=origin.address) == 1
    assert value(families, "skein_answers_total", code="404", reason="no_route") == 1
    for wire in wires:
        wire.close()
    until(
        lambda: value(exposition.parse(driver.metrics_text()), "skein_listener_connections",
                      listener=listener) == 0,
        "closed connections are no longer open",
    )


def test_tunnels_and_connect_failures(world):
    def upgrade(wire, _):
        wire.head()
        wire.send("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        wire.rest()

    driver, _ = world(upgrade, workers=1, retries_max=0)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    wire.head()
    assert driver.metrics()["skein_tunnels"] == 1
    wire.close()
    until(lambda: driver.metrics()["skein_tunnels"] == 0, "the tunnel is over")
    dead = Script()
    dead.stop_listening()
    driver.backend("dead", dead)
    driver.rule("/", "dead")
    driver.host("dead.test")
    assert get(dial(driver.port), host="dead.test")[0] == 502
    families = exposition.parse(driver.metrics_text())
    failures = value(
        families, "skein_endpoint_connect_failures_total", backend="dead", endpoint=dead.address
    )
    assert failures == value(families, "skein_backend_connect_errors_total", backend="dead") == 1
    assert value(families, "skein_tunnels_total") == 1


@pytest.mark.parametrize("text, fault", [
    ("a 1\n", "does not stand"),
    ("# HELP a_total x\n# TYPE a_total counter\na_total 1", "does not end"),
    ("# HELP a_total x\n# TYPE a_total counter\na_total 1\na_total 1\n", "twice"),
    ('# HELP a x\n# TYPE a gauge\na{b="\\x"} 1\n', "labels"),
    ('# HELP a x\n# TYPE a gauge\na{b="1",b="2"} 1\n', "a label twice"),
    ("# HELP a x\n# TYPE a gauge\na 1\n# HELP a x\n# TYPE a gauge\n", "introduced twice"),
    ("# HELP a x\n# TYPE a counter\na 1\n", "_total"),
    ('# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
     "counts"),
    ("# HELP a_milliseconds x\n# TYPE a_milliseconds gauge\na_milliseconds 1\n", "base units"),
])
def test_the_reader_is_strict(text, fault):
    with pytest.raises(exposition.Malformed, match=fault):
        exposition.parse(text)
