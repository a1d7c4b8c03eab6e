"""Active health checks of a real node against real sockets."""

import re
import socket

import pytest

from support.api import backend, documents, route
from support.checked import Checked
from support.client import Load
from support.ports import free_port
from support.wait import until

HTTP = {"type": "Http", "path": "/healthz", "interval": "100ms", "intervalDown": "100ms",
        "timeout": "5s", "rise": 2, "fall": 3}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    from support.cluster import Cluster

    cluster = Cluster(tmp_path_factory.mktemp("health"), 1).start()
    yield cluster[0]
    cluster.stop()


@pytest.fixture
def make_checked():
    made = []

    def make(name="origin", **kwargs):
        made.append(Checked(name, **kwargs))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


def put(node, unique, *addresses, routed=True, **spec):
    """A backend "web" with a route, in a namespace of the test's own."""
    objects = [{"kind": "Namespace", "metadata": {"name": unique}},
               backend("web", *addresses, namespace=unique, **spec)]
    if routed:
        objects.append(route("web", f"{unique}.example.com", "web", namespace=unique))
    node.api.apply(documents(*objects))


def status_of(node, unique, address):
    return node.api.get("endpoints", f"web/{address}", unique).get("status", {})


def wait_health(node, unique, address, health, message=None):
    def reached():
        status = status_of(node, unique, address)
        assert status.get("health") == health, status
        if message is not None:
            assert message in status.get("message", ""), status
        return status

    return until(reached, f"{address} is {health}", 20)


def changes(node, unique, address):
    """["down", "up", ...] as the node's log has them."""
    return [m[1] for line in node.log().splitlines()
            if (m := re.search(r"endpoint is (up|down)", line))
            and f"{unique}/web" in line and address in line]


def test_an_http_check_turns_and_back(node, unique, make_checked):
    one, two = make_checked("one"), make_checked("two")
    put(node, unique, one.address, two.address, healthCheck=HTTP)
    for origin in (one, two):
        wait_health(node, unique, origin.address, "Up")
    host = f"{unique}.example.com"
    with Load([node.http_port], host, clients=4) as load:
        until(lambda: one.count > 5 and two.count > 5, "both serve")
        one.status = 503
        status = wait_health(node, unique, one.address, "Down", "status 503")
        assert status["since"]
        seen = one.count
        one.traffic_status = 500  # would be lost: but nothing comes any more
        more = load.sent + 200
        until(lambda: load.sent >= more, "more requests")
        assert one.count <= seen + 4, "a down endpoint gets requests"
        view = node.api.get("backends", "web", unique)["status"]
        assert (view["ready"], view["down"], view["endpoints"]) == (1, 1, 2), view
        one.traffic_status = 200
        one.status = 200
        wait_health(node, unique, one.address, "Up")
        before = one.count
        until(lambda: one.count > before + 5, "it serves again")
    assert not load.lost, load.lost[:5]
    assert changes(node, unique, one.address) == ["down", "up"]


def test_rise_and_fall_are_counted(node, unique, make_checked):
    origin = make_checked()
    origin.script = [200, 503, 503, 200, 503, 503, 200]
    put(node, unique, origin.address, healthCheck=HTTP)
    until(lambda: origin.check_count() >= 12, "twelve checks")
    assert changes(node, unique, origin.address) == [], "two failures of three"
    with origin.lock:
        origin.script = [503, 503, 503, 200, 503, 200]
    until(lambda: changes(node, unique, origin.address) == ["down", "up"], "down and up")
    wait_health(node, unique, origin.address, "Up")


def test_the_first_look_decides(node, unique, make_checked):
    origin = make_checked()
    origin.status = 500
    slow = {**HTTP, "interval": "1h", "intervalDown": "1h"}
    put(node, unique, origin.address, healthCheck=slow)
    wait_health(node, unique, origin.address, "Down", "status 500")
    assert origin.check_count() == 1


def test_a_tcp_check(node, unique, make_checked):
    origin = make_checked()
    closed = f"127.0.0.1:{free_port()}"
    put(node, unique, origin.address, closed, healthCheck={"type": "Tcp", "interval": "100ms"})
    wait_health(node, unique, origin.address, "Up")
    wait_health(node, unique, closed, "Down", "connection refused")
    # What begins to listen is found.
    port = int(closed.rpartition(":")[2])
    late = make_checked("late", port=port)
    wait_health(node, unique, closed, "Up")
    late.close()


def test_a_black_hole_times_out(node, unique, make_checked):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        put(node, unique, address, healthCheck={**HTTP, "timeout": "200ms"})
        wait_health(node, unique, address, "Down", "response timed out after 200ms")


def test_all_are_down(node, unique, make_checked):
    """In a panic all endpoints are used: checks may be wrong, and nobody is nothing to lose to."""
    one, two = make_checked("one"), make_checked("two")
    one.status = two.status = 503
    host = f"{unique}.example.com"
    put(node, unique, one.address, two.address, healthCheck=HTTP)
    for origin in (one, two):
        wait_health(node, unique, origin.address, "Down")
    assert {node.get(host).status for _ in range(10)} == {200}
    put(node, unique, one.address, two.address, healthCheck=HTTP, panicPercent=0)
    until(lambda: node.get(host).status == 503, "no panic, no endpoint")
    two.status = 200
    wait_health(node, unique, two.address, "Up")
    assert {node.get(host).text for _ in range(10)} == {"two"}


def test_what_a_check_asks_and_wants(node, unique, make_checked):
    origin, other = make_checked("origin"), make_checked("other")
    check = {**HTTP, "path": "/healthz?deep=1", "method": "OPTIONS", "host": "shop.example",
             "headers": {"X-Probe": "yes"}, "statuses": ["204", "418"], "port": other.port}
    other.status = 418
    put(node, unique, origin.address, healthCheck=check)
    wait_health(node, unique, origin.address, "Up")
    assert origin.check_count() == 0, "the port of the check is another"
    method, path, headers = other.checks[0]
    assert (method, path) == ("OPTIONS", "/healthz?deep=1")
    assert headers["Host"] == "shop.example" and headers["X-Probe"] == "yes"
    assert headers["User-Agent"].startswith("skein/")
    other.status = 200
    wait_health(node, unique, origin.address, "Down", "status 200")
    # Without a host the request names the endpoint.
    put(node, unique, origin.address, healthCheck=HTTP)
    wait_health(node, unique, origin.address, "Up")
    assert origin.checks[0][2]["Host"] == origin.address


def test_the_body_is_looked_through(node, unique, make_checked):
    origin = make_checked()
    origin.body = "x" * 1000 + "status: fine"
    put(node, unique, origin.address, healthCheck={**HTTP, "body": "status: fine"})
    wait_health(node, unique, origin.address, "Up")
    origin.body = "status: poor"
    wait_health(node, unique, origin.address, "Down", 'body does not contain "status: fine"')


def test_a_check_changes_while_it_runs(node, unique, make_checked):
    origin = make_checked()
    put(node, unique, origin.address, healthCheck={**HTTP, "interval": "1h"})
    wait_health(node, unique, origin.address, "Up")
    put(node, unique, origin.address, healthCheck={**HTTP, "statuses": ["299"]})
    wait_health(node, unique, origin.address, "Down", "status 200")
    put(node, unique, origin.address, healthCheck={"type": "None"})
    wait_health(node, unique, origin.address, "Unknown")
    assert node.get(f"{unique}.example.com").status == 200
    count = origin.check_count()
    put(node, unique, origin.address, healthCheck={"type": "Tcp", "interval": "100ms"})
    wait_health(node, unique, origin.address, "Up")
    assert origin.check_count() == count
    # A change of weight does not begin anew.
    since = status_of(node, unique, origin.address)["since"]
    node.api.put("endpoints", f"web/{origin.address}",
                 {"backend": "web", "address": origin.address, "weight": 7}, unique)
    assert status_of(node, unique, origin.address)["since"] == since


def test_who_is_not_looked_at(node, unique, make_checked):
    origin, used = make_checked("origin"), make_checked("used")
    put(node, unique, origin.address, routed=False, healthCheck=HTTP)
    other = f"{unique}-2"[-60:].strip("-")
    put(node, other, used.address, healthCheck=HTTP)
    until(lambda: used.check_count() > 5, "the other is looked at")
    assert origin.check_count() == 0, "no route uses it"
    put(node, unique, origin.address, healthCheck=HTTP)
    wait_health(node, unique, origin.address, "Up")
    node.api.put("endpoints", f"web/{origin.address}",
                 {"backend": "web", "address": origin.address, "state": "Disabled"}, unique)
    wait_health(node, unique, origin.address, "Unknown", "disabled")
    count = origin.check_count()
    seen = used.check_count()
    until(lambda: used.check_count() > seen + 5, "the other is looked at")
    assert origin.check_count() <= count + 1  # one may have been under way
    node.api.put("endpoints", f"web/{origin.address}",
                 {"backend": "web", "address": origin.address, "state": "Drain"}, unique)
    wait_health(node, unique, origin.address, "Up")


def test_settings_give_defaults(node, unique, make_checked):
    plain, own, off = make_checked("plain"), make_checked("own"), make_checked("off")
    for name, origin, spec in (("plain", plain, {}),
                               ("own", own, {"healthCheck": {"type": "Http", "path": "/healthz/own"}}),
                               ("off", off, {"healthCheck": {"type": "None"}})):
        node.api.apply(documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend(name, origin.address, namespace=unique, **spec),
            route(name, f"{name}-{unique}.example.com", name, namespace=unique),
        ))
    until(lambda: own.check_count() >= 1, "the backend's own check")
    assert plain.check_count() == 0
    try:
        node.api.put("settings", "default", {"healthCheck": {**HTTP, "path": "/healthz/all"}})
        until(lambda: plain.check_count() > 3 and own.check_count() > 3, "checks by Settings")
        assert {path for _, path, _ in plain.checks} == {"/healthz/all"}
        assert {path for _, path, _ in own.checks} == {"/healthz/own"}
        assert off.check_count() == 0
    finally:
        node.api.delete("settings", "default")
    until(lambda: node.api.get("endpoints", f"plain/{plain.address}", unique)["status"]["health"]
          == "Unknown", "no check without Settings")


def test_what_people_are_told(node, unique, make_checked):
    good, bad = make_checked("good"), make_checked("bad")
    bad.status = 503
    put(node, unique, good.address, bad.address, healthCheck=HTTP)
    wait_health(node, unique, good.address, "Up")
    wait_health(node, unique, bad.address, "Down")
    table = node.ctl("get", "endpoints", "-n", unique)
    assert table.returncode == 0, table.stderr
    rows = {line.split()[0]: line for line in table.stdout.splitlines()}
    assert any(bad.address in key and "Down" in row for key, row in rows.items()), table.stdout
    assert any(good.address in key and "Up" in row for key, row in rows.items()), table.stdout
    text = node.ctl("describe", "endpoint", "-n", unique, f"web/{bad.address}")
    assert "status 503" in text.stdout, text.stdout + text.stderr
    metrics = node.api.metrics()
    name = f'skein_backend_endpoints{{backend="{unique}/web",health="%s"}}'
    assert (metrics[name % "up"], metrics[name % "down"], metrics[name % "unknown"]) == (1, 1, 0)
    assert metrics['skein_health_checks_total{result="status"}'] >= 1
    good.status = 503
    wait_health(node, unique, good.address, "Down")
    view = node.api.get("backends", "web", unique)["status"]
    assert view["ready"] == 0 and view["warnings"] == ["all endpoints are down (2 of 2)"], view


def test_faults_are_named(node, unique):
    answer = node.api.apply(
        documents(backend("web", "10.0.0.1:80", namespace=unique, resolveHold="40d",
                          healthCheck={"type": "Http", "body": "", "intervalDown": "1ms",
                                       "path": "/a?b c"})), expect=(400, 422))
    for text in ("healthCheck.body: is 0 bytes long; wants 1 to 1024",
                 "healthCheck.intervalDown", "healthCheck.path: has the byte 0x20",
                 "resolveHold"):
        place, _, rest = text.partition(": ")
        assert place in answer.text and rest in answer.text, answer.text
    answer = node.api.apply(
        documents(backend("web", "10.0.0.1:80", namespace=unique, healthCheck={"type": "Grpc"})),
        expect=(400, 422))
    assert "Grpc is not available" in answer.text
