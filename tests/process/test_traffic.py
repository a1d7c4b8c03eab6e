"""Requests while something changes: none may be lost."""

import threading
import time

import pytest

from support import client
from support.api import backend, documents, route
from support.client import Load
from support.wait import SLOW, until


def test_no_request_is_lost_while_endpoints_change(shared, unique, make_origin, show):
    first, second, third = (make_origin(f"{unique}-{i}") for i in range(3))
    host = f"{unique}.example.com"
    api = shared[0].api
    api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("web", first.address, second.address, namespace=unique),
            route("web", host, "web", namespace=unique),
        ),
        "?wait=all",
    )
    ports = [node.http_port for node in shared]
    with Load(ports, host, clients=6) as load:
        for turn in range(12):
            pair = [(first, third), (second, third), (first, second)][turn % 3]
            shared[turn % 3].api.apply(
                backend("web", *(o.address for o in pair), namespace=unique), "?wait=all"
            )
            time.sleep(0.05)
    show(f"endpoints changed 12 times: {load.summary()}")
    assert not load.lost, load.lost[:5]
    assert not load.repeated
    assert load.sent > 200 / SLOW
    # An endpoint that left gets nothing any more; those that stayed do.
    with third.lock:
        third.count = 0
    for port in ports:
        for _ in range(10):
            assert client.get(port, host).status == 200
    assert third.count == 0


def test_no_request_is_lost_while_routes_change(shared, unique, make_origin, show):
    """The route itself moves between backends, and a thousand others come and go beside it."""
    first, second = make_origin("first"), make_origin("second")
    host = f"{unique}.example.com"
    api = shared[0].api
    api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("first", first.address, namespace=unique),
            backend("second", second.address, namespace=unique),
            route("web", host, "first", namespace=unique),
        ),
        "?wait=all",
    )
    with Load([node.http_port for node in shared], host, clients=6) as load:
        for turn in range(10):
            node = shared[turn % 3]
            others = [
                route(f"o{turn}-{i}", f"o{turn}-{i}.{host}", "first", namespace=unique)
                for i in range(100)
            ]
            node.api.apply(
                documents(
                    route("web", host, ("first", turn * 10), ("second", 100 - turn * 10),
                          namespace=unique),
                    *others,
                )
            )
            for other in others[:20]:
                node.api.delete("routes", other["metadata"]["name"], unique)
    show(f"routes changed under load: {load.summary()}")
    assert not load.lost, load.lost[:5]
    assert not load.repeated
    assert first.count and second.count


def test_connections_stay_open_over_a_change_of_their_route(shared, unique, make_origin):
    """A change never touches a connection whose route still exists."""
    first, second = make_origin("first"), make_origin("second")
    host = f"{unique}.example.com"
    node = shared[0]
    node.api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("a", first.address, namespace=unique),
            backend("b", second.address, namespace=unique),
            route("web", host, "a", namespace=unique),
        ),
    )
    until(lambda: node.get(host).status == 200, "the route serves")
    connection = client.http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=10 * SLOW)

    def ask():
        connection.request("GET", "/", headers={"Host": host})
        response = connection.getresponse()
        return response.status, response.read()

    assert ask() == (200, b"first\n")
    local = connection.sock.getsockname()
    node.api.apply(route("web", host, "b", namespace=unique))
    until(lambda: ask() == (200, b"second\n"), "the open connection sees the new backend")
    assert connection.sock.getsockname() == local, "the connection was replaced"
    connection.close()


def _serve(cluster, *origins):
    cluster[0].api.apply(
        documents(backend("web", *(o.address for o in origins)), route("web", "web.example.com", "web")),
        "?wait=all",
    )
    for node in cluster:
        until(lambda node=node: node.get("web.example.com").status == 200, "the route serves")


def test_sigterm_answers_what_is_in_flight(cluster, make_origin):
    origin = make_origin("slow")
    _serve(cluster, origin)
    origin.delay = 1.0
    node = cluster[2]
    before = origin.count
    answers = []

    def ask():
        answers.append(node.get("web.example.com", timeout=20))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    until(lambda: origin.count - before == 20, "all requests are with the origin")
    node.terminate()
    for thread in threads:
        thread.join(30 * SLOW)
    assert [a.status for a in answers] == [200] * 20
    assert all(a.headers.get("Connection", "").lower() == "close" for a in answers)
    assert node.wait_exit() == 0
    assert not node.faults()
    with pytest.raises(OSError):
        node.get("web.example.com")


@pytest.mark.smoke
def test_sigterm_under_load_loses_nothing(cluster, make_origin, show):
    _serve(cluster, make_origin("one"), make_origin("two"))
    with Load([n.http_port for n in cluster], "web.example.com", clients=9) as load:
        for node in (cluster[2], cluster[1]):
            sent = load.sent
            until(lambda sent=sent: load.sent > sent + 100, "the load flows", 30)
            node.stop()
            sent = load.sent
            until(lambda sent=sent: load.sent > sent + 100, "the load flows on", 30)
            cluster.restart(node).wait_ready()
    show(f"two nodes stopped and started under load: {load.summary()}")
    assert not load.lost, load.lost[:5]
    # Only a request that crosses the close of its idle connection on the wire: one per client at most.
    assert load.repeated <= 2 * 9


def test_a_node_that_stops_says_so_first(cluster, make_origin):
    """/readyz turns to 503 for an outside balancer, and the others hear that the node left."""
    origin = make_origin("slow")
    _serve(cluster, origin)
    origin.delay = 2.0
    node = cluster[1]
    thread = threading.Thread(target=lambda: node.get("web.example.com", timeout=20))
    before = origin.count
    thread.start()
    until(lambda: origin.count > before, "a request is with the origin")
    node.terminate()
    until(lambda: node.api.call("GET", "/readyz").status == 503, "readyz says no", 2, pause=0.01)
    thread.join()
    assert node.wait_exit() == 0
    for other in cluster.running():
        until(
            lambda other=other: {m["name"]: m["state"] for m in other.api.cluster()["members"]}["r2"]
            == "left",
            f"{other.name} says that r2 left",
        )


def test_kill_of_an_endpoint_moves_requests_to_the_others(shared, unique, make_origin):
    """Refused connects go to another endpoint at once: the client sees nothing of it."""
    good = make_origin("good")
    host = f"{unique}.example.com"
    shared[0].api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("web", good.address, "127.0.0.1:1", namespace=unique),
            route("web", host, "web", namespace=unique),
        ),
        "?wait=all",
    )
    for _ in range(50):
        assert shared[1].get(host).status == 200


def test_weights_split_the_traffic(shared, unique, make_origin):
    a, b, never = make_origin("a"), make_origin("b"), make_origin("never")
    host = f"{unique}.example.com"
    shared[0].api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            *(backend(o.name, o.address, namespace=unique) for o in (a, b, never)),
            route("web", host, ("a", 90), ("b", 10), ("never", 0), namespace=unique),
        ),
        "?wait=all",
    )
    for _ in range(400):
        assert shared[2].get(host).status == 200
    assert never.count == 0
    assert a.count + b.count == 400
    # 40 expected of b; six standard deviations are 36.
    assert 4 <= b.count <= 76, f"{b.count} of 400 requests for a weight of 10 %"
