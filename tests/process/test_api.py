"""The admin API as DESIGN describes it: objects, preconditions, lists, apply, watch, metrics."""

import http.client
import json
import os
import socket
import threading

import pytest

from support.api import backend, documents, route
from support.wait import SLOW, until


@pytest.fixture
def space(shared, unique):
    """A namespace of this test, on the first node of the shared cluster."""
    shared[0].api.put("namespaces", unique, {})
    return unique


def _path(space, name, kind="routes"):
    return f"/v1/namespaces/{space}/{kind}/{name}"


@pytest.mark.smoke
def test_put_get_delete(shared, space):
    api = shared[0].api
    created = api.call("PUT", _path(space, "a"), route("a", "a.example.com", "x", namespace=space))
    assert created.status == 201, created
    shown = api.call("GET", _path(space, "a"), expect=200)
    item = shown.json()
    assert item["kind"] == "Route"
    assert item["spec"] == {"host": "a.example.com", "to": [{"backend": "x"}]}
    assert item["metadata"]["namespace"] == space
    assert shown.headers["ETag"] == f'"{item["metadata"]["resourceVersion"]}"'
    assert item["metadata"]["created"].endswith("Z")
    # What was shown can be sent back, and changes nothing.
    again = api.call("PUT", _path(space, "a"), item, expect=200)
    assert again.headers["ETag"] == shown.headers["ETag"]
    api.call("DELETE", _path(space, "a"), expect=(200, 204))
    assert api.call("GET", _path(space, "a")).status == 404


def test_the_path_and_the_body_must_agree(shared, space):
    answer = shared[0].api.call("PUT", _path(space, "a"), route("b", "a.example.com", "x", namespace=space))
    assert answer.status == 422, answer
    assert "metadata.name" in answer.text


def test_preconditions(shared, space):
    api, path = shared[0].api, _path(space, "a")
    body = route("a", "a.example.com", "x", namespace=space)
    other = route("a", "other.example.com", "x", namespace=space)
    api.call("PUT", path, body, {"If-Match": "*"}, expect=412)
    api.call("PUT", path, body, {"If-None-Match": "*"}, expect=201)
    api.call("PUT", path, body, {"If-None-Match": "*"}, expect=412)
    tag = api.call("GET", path, expect=200).headers["ETag"]
    api.call("PUT", path, other, {"If-Match": '"nonsense"'}, expect=412)
    api.call("PUT", path, other, {"If-Match": tag}, expect=200)
    api.call("PUT", path, body, {"If-Match": tag}, expect=412)
    api.call("DELETE", path, headers={"If-Match": tag}, expect=412)
    tag = api.call("GET", path, expect=200).headers["ETag"]
    assert api.call("GET", path, headers={"If-None-Match": tag}).status == 304
    api.call("DELETE", path, headers={"If-Match": tag}, expect=(200, 204))


def test_the_entity_tag_is_the_same_on_every_node(shared, space):
    api = shared[0].api
    api.apply(backend("b", "127.0.0.1:1", "127.0.0.1:2", namespace=space), "?wait=all")
    tags = {
        node.api.call("GET", _path(space, "b", "backends"), expect=200).headers["ETag"]
        for node in shared
    }
    assert len(tags) == 1


def test_only_one_of_many_conditional_writers_wins(shared, space):
    api, path = shared[0].api, _path(space, "a")
    api.call("PUT", path, route("a", "a.example.com", "x", namespace=space), expect=201)
    tag = api.call("GET", path, expect=200).headers["ETag"]
    statuses = []

    def write(i):
        body = route("a", f"w{i}.example.com", "x", namespace=space)
        statuses.append(api.call("PUT", path, body, {"If-Match": tag}).status)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [412] * 11


def test_merge_patch(shared, space):
    api, path = shared[0].api, _path(space, "a")
    api.call("PUT", path, route("a", "a.example.com", "x", namespace=space, timeouts={"server": "10s"}))
    patch = {"metadata": {"labels": {"tier": "gold"}}, "spec": {"timeouts": None, "path": "/p"}}
    kind = {"Content-Type": "application/merge-patch+json"}
    api.call("PATCH", path, patch, kind, expect=200)
    item = api.call("GET", path, expect=200).json()
    assert item["metadata"]["labels"] == {"tier": "gold"}
    assert item["spec"] == {"host": "a.example.com", "path": "/p", "to": [{"backend": "x"}]}
    assert api.call("PATCH", path, {"spec": {"pathh": "/p"}}, kind).status == 422
    assert api.call("PATCH", path, [1], kind).status in (400, 422)
    assert api.call("PATCH", _path(space, "none"), patch, kind).status == 404


def test_lists_selectors_and_pages(shared, space):
    api = shared[0].api
    for i in range(10):
        api.put("routes", f"r{i}", {"host": f"r{i}.example.com", "to": [{"backend": "x"}]}, space,
                labels={"tier": "gold" if i < 4 else "iron", "n": str(i)})
    names = lambda query: [i["metadata"]["name"] for i in api.list("routes", query)]  # noqa: E731
    base = f"?namespace={space}"
    assert names(base) == [f"r{i}" for i in range(10)]
    assert names(base + "&selector=tier%3Dgold") == ["r0", "r1", "r2", "r3"]
    assert names(base + "&selector=tier%3Dgold,n!%3D2") == ["r0", "r1", "r3"]
    assert names(base + "&selector=none") == []
    pages, query = [], base + "&limit=3"
    for _ in range(10):
        page = api.call("GET", f"/v1/routes{query}", expect=200).json()
        pages.append([i["metadata"]["name"] for i in page["items"]])
        if not page.get("continue"):
            break
        query = base + f"&limit=3&continue={page['continue']}"
    assert [len(p) for p in pages] == [3, 3, 3, 1]
    assert sum(pages, []) == [f"r{i}" for i in range(10)]


def test_apply_says_what_it_did(shared, space):
    api = shared[0].api
    manifest = documents(
        backend("b", "127.0.0.1:1", namespace=space),
        route("r", "r.example.com", "b", namespace=space),
    )
    first = api.apply(manifest).text
    assert "created" in first
    second = api.apply(manifest).text
    assert "unchanged" in second and "created" not in second
    third = api.apply(route("r", "other.example.com", "b", namespace=space)).text
    assert "configured" in third


def test_dry_run_shows_the_diff_and_writes_nothing(shared, space):
    api = shared[0].api
    api.apply(route("r", "r.example.com", "b", namespace=space))
    before = api.call("GET", "/v1/export", expect=200).body
    revision = api.cluster()["revision"]
    answer = api.apply(documents(
        route("r", "changed.example.com", "b", namespace=space),
        route("s", "s.example.com", "b", namespace=space),
    ), "?dryRun=true")
    for part in ("spec.host", "r.example.com", "changed.example.com", "configured", "created"):
        assert part in answer.text, f"{part} is missing in {answer.text}"
    assert api.call("GET", "/v1/export", expect=200).body == before
    assert api.cluster()["revision"] == revision


def test_yaml_lists_and_json_are_the_same(shared, space):
    api = shared[0].api
    api.apply(f"""
- kind: Route
  metadata: {{namespace: {space}, name: from-list}}
  spec: {{host: list.example.com, to: [{{backend: b}}]}}
- kind: Route
  metadata: {{namespace: {space}, name: second}}
  spec:
    host: second.example.com
    to:
      - backend: b
        weight: 5
""")
    api.apply(json.dumps({"items": [route("from-json", "json.example.com", "b", namespace=space)]}))
    names = {i["metadata"]["name"] for i in api.list("routes", f"?namespace={space}")}
    assert names == {"from-list", "second", "from-json"}


def test_export_and_apply_round_trip(make_cluster):
    """Everything out of one cluster, into an empty one: the same export comes out again."""
    source, target = make_cluster(1), make_cluster(1, prefix="t")
    source.start()
    target.start()
    source[0].api.apply(documents(
        {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}}},
        backend("web", "127.0.0.1:1", "[::1]:2", namespace="shop", balance="LeastConn",
                healthCheck={"type": "None"}),
        route("r", "*.example.com", ("web", 0), namespace="shop", path="/a%20b",
              timeouts={"server": "1h30m"}, forwarded="IfNone"),
        {"kind": "Settings", "metadata": {"name": "default"}, "spec": {"limits": {"headerCount": 64}}},
    ))
    exported = source[0].api.call("GET", "/v1/export", expect=200)
    target[0].api.apply(exported.body)
    assert target[0].api.call("GET", "/v1/export", expect=200).body == exported.body


def test_wait_all_means_that_every_node_has_it(shared, space):
    for i in range(20):
        shared[i % 3].api.call(
            "PUT", _path(space, f"r{i}") + "?wait=all",
            route(f"r{i}", f"r{i}.example.com", "x", namespace=space), expect=201,
        )
        for node in shared:
            assert node.api.call("GET", _path(space, f"r{i}")).status == 200


class Watch:
    """A GET of /v1/watch, line by line."""

    def __init__(self, node, query=""):
        self.connection = http.client.HTTPConnection("127.0.0.1", node.admin_port, timeout=10 * SLOW)
        self.connection.request("GET", f"/v1/watch{query}")
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def next(self):
        return json.loads(self.response.readline())

    def until(self, predicate):
        while True:
            event = self.next()
            if predicate(event):
                return event

    def close(self):
        self.connection.close()


def _is(name, kind="Route"):
    def check(event):
        item = event.get("object") or {}
        return item.get("kind") == kind and item.get("metadata", {}).get("name") == name

    return check


def test_watch_sees_changes_of_any_node_and_resumes(shared, space):
    watch = Watch(shared[2])
    shared[0].api.put("routes", "w1", {"host": "w1.example.com", "to": [{"backend": "x"}]}, space)
    event = watch.until(_is("w1"))
    assert event["type"] == "changed"
    token = event["since"]
    watch.close()
    shared[1].api.put("routes", "w2", {"host": "w2.example.com", "to": [{"backend": "x"}]}, space)
    shared[1].api.delete("routes", "w1", space)
    until(lambda: shared[2].api.call("GET", _path(space, "w1")).status == 404, "the deletion arrives")
    # What happened while nobody watched is told on resuming.
    again = Watch(shared[2], f"?since={token}")
    again.until(_is("w2"))
    gone = again.until(_is("w1"))
    assert gone["type"] == "deleted"
    again.close()


def test_watch_of_a_forgotten_revision_says_so(shared):
    for since in ("999999999", "another-node:1"):
        answer = shared[0].api.call("GET", f"/v1/watch?since={since}")
        assert answer.status == 410, answer
    assert shared[0].api.call("GET", "/v1/watch?since=nonsense:").status == 400


def test_unix_socket(shared):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(shared[0].socket)
        sock.sendall(b"GET /v1/cluster HTTP/1.1\r\nHost: skein\r\nConnection: close\r\n\r\n")
        reply = b""
        while chunk := sock.recv(65536):
            reply += chunk
    assert reply.startswith(b"HTTP/1.1 200 ")
    mode = os.stat(shared[0].socket).st_mode & 0o777
    assert mode & 0o007 == 0, f"everybody may use the socket: {mode:o}"


@pytest.mark.smoke
def test_cluster_shows_every_member(shared):
    for node in shared:
        cluster = node.api.cluster()
        members = {m["name"]: m for m in cluster["members"]}
        assert set(members) == {"r1", "r2", "r3"}
        for other in shared:
            member = members[other.name]
            assert member["state"] == "alive"
            assert member["address"] == other.gossip_address
            assert member["version"]
            assert isinstance(member["revision"], int)
            assert isinstance(member["lag"], int)
            assert not member["clockFlagged"]


def test_health_and_readiness(shared):
    for node in shared:
        assert node.api.call("GET", "/healthz").status == 200
        assert node.api.call("GET", "/readyz").status == 200


def test_metrics_are_prometheus_text(shared, space, make_origin):
    host = f"{space}.example.com"
    shared[0].api.apply(documents(
        backend("b", make_origin("b").address, namespace=space),
        route("r", host, "b", namespace=space),
    ), "?wait=all")
    for i in range(7):
        assert shared[0].get(host, f"/secret-path-{i}", headers={"X-Secret": "s"}).status == 200
    shared[0].get("unknown-host-of-a-client.example.com")
    answer = shared[0].api.call("GET", "/metrics", expect=200)
    assert answer.headers["Content-Type"].startswith("text/plain")
    text = answer.text
    for word in ("secret-path", "unknown-host-of-a-client", "X-Secret"):
        assert word not in text, "a label comes from a request"
    typed, names = set(), set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif line and not line.startswith("#"):
            names.add(line.split("{")[0].split(" ")[0])
    assert all(name.startswith(("skein_", "process_")) for name in names), names
    bases = {n.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for n in names}
    assert bases <= typed | names and typed, "samples without a TYPE line"
    route_lines = [
        line for line in text.splitlines()
        if line.startswith(f'skein_route_responses_total{{route="{space}/r",code="2xx"}}')
    ]
    assert [line.rsplit(" ", 1)[1] for line in route_lines] == ["7"], text


def test_status_of_a_node(shared):
    shared[0].api.apply({"kind": "Node", "metadata": {"name": "r2"}, "spec": {"labels": {"zone": "a"}}})
    status = shared[0].api.call("GET", "/v1/nodes/r2", expect=200).json()["status"]
    assert (status["state"], status["ready"]) == ("alive", True)
    assert status["address"].endswith(f":{shared[1].gossip_port}")
    shared[0].api.call("DELETE", "/v1/nodes/r2", expect=200)
