"""Manifests and requests that are wrong: refused whole, with every fault and its place."""

import os
import re
import socket
import time

import pytest

from support import client
from support.api import backend, documents, route
from support.wait import SLOW, until


def faults(answer, status=422):
    """The (path, message) pairs of a problem document."""
    assert answer.status == status, answer
    assert answer.headers["Content-Type"].startswith("application/problem+json"), answer.headers
    problem = answer.json()
    assert problem["status"] == status
    return [(entry["path"], entry["message"]) for entry in problem.get("errors", [])]


def refused(node, manifest, status=422):
    """Apply must fail and change nothing."""
    before = node.api.call("GET", "/v1/export", expect=200).body
    answer = node.api.apply(manifest, expect=status)
    assert node.api.call("GET", "/v1/export", expect=200).body == before, "half applied"
    return faults(answer, status)


@pytest.mark.smoke
def test_unknown_field_is_named_with_its_path(shared):
    found = refused(shared[0], """
kind: Route
metadata: {name: bad}
spec: {host: bad.example.com, to: [{backend: a, wieght: 3}]}
""")
    assert len(found) == 1
    path, message = found[0]
    assert "spec.to[0].wieght" in path, found
    assert "weight" in message, f"what would be accepted is not said: {found}"


def test_wrong_type(shared):
    found = refused(shared[0], route("bad", ["not", "text"], "a"))
    assert any("spec.host" in path for path, _ in found), found
    found = refused(shared[0], {**route("bad", "bad.example.com"), "spec": {"host": "bad.example.com", "to": "a"}})
    assert any("spec.to" in path for path, _ in found), found


def test_number_out_of_range_says_what_is_accepted(shared):
    found = refused(shared[0], route("bad", "bad.example.com", ("a", 1), ("b", 300)))
    assert [(p.split(": ")[-1], m) for p, m in found] == [("spec.to[1].weight", "300 is above 256")]


def test_a_policy_that_this_version_does_not_enforce_is_refused(shared):
    """Better no policy than one that nobody looks at."""
    found = refused(shared[0], {
        "kind": "Route", "metadata": {"name": "bad"},
        "spec": {"host": "bad.example.com", "to": [{"backend": "a"}], "adjustHeaderCase": True,
                 "tls": {"termination": "Edge", "http2": True}},
    })
    paths = {path.split(": ")[-1] for path, _ in found}
    assert paths == {"spec.adjustHeaderCase", "spec.tls.http2"}, found
    assert all("not available in this version" in message for _, message in found), found


@pytest.mark.parametrize("host", [
    "-bad.example.com", "bad..example.com", "bad_host!.example.com", "a b.example.com",
    "*.*.example.com", "foo.*.example.com", "http://bad.example.com", "bad.example.com:80",
    "x" * 64 + ".example.com", ".".join(["long"] * 60), "",
])
def test_bad_host(shared, host):
    found = refused(shared[0], route("bad", host, "a"))
    assert any("spec.host" in path for path, _ in found), found


def test_every_fault_of_every_object_is_told_at_once(shared):
    found = refused(shared[0], documents(
        route("bad", "-bad-", ("a", 999)),
        backend("bad", "nonsense", balance="Fastest"),
        {"kind": "Rout", "metadata": {"name": "x"}},
    ))
    text = "\n".join(f"{path}: {message}" for path, message in found)
    for place in ("spec.host", "spec.to[0].weight", "spec.endpoints[0].address", "spec.balance", "Rout"):
        assert place in text, f"{place} is missing in\n{text}"


def test_duplicate_name_in_one_apply(shared):
    found = refused(shared[0], documents(
        route("twice", "one.example.com", "a"), route("twice", "two.example.com", "a")
    ))
    assert any("twice" in path + message for path, message in found), found


def test_one_bad_object_keeps_the_good_ones_out(shared, unique):
    refused(shared[0], documents(route(unique, "good.example.com", "a"), route("bad", "..", "a")))
    assert shared[0].api.call("GET", f"/v1/namespaces/default/routes/{unique}").status == 404


@pytest.mark.parametrize("manifest", [
    '{"kind": "Route", "metadata": {"name": "x"}, "spec": {"host": "x.example.com"',
    '{"kind": "Route", "metadata": {"na',
    "[", '"', "kind: [Route", "kind: Route\n\tmetadata: x", "\0\0\0", "\xff\xfe",
])
def test_truncated_or_malformed_document(shared, manifest):
    answer = shared[0].api.call("POST", "/v1/apply", manifest.encode("latin-1"))
    assert answer.status == 400, answer
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert re.search(r"line \d+", answer.text) or "line" in answer.text or answer.json()["detail"]


def test_truncated_json_in_put(shared):
    answer = shared[0].api.call(
        "PUT", "/v1/namespaces/default/routes/x", b'{"spec": {"host": "x.exam',
        {"Content-Type": "application/json"},
    )
    assert answer.status == 400, answer


def _rss(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


def _bomb():
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for i in range(1, 12):
        lines.append(f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]")
    return "\n".join(lines) + "\nkind: Route\nmetadata: {name: bomb}\nspec: *a11\n"


@pytest.mark.parametrize("manifest", [
    _bomb(),
    "a: &a [*a]\n",
    "[" * 100000,
    "{a: " * 50000,
    "- " * 100000,
    "kind: Route\nmetadata: {name: x, labels: {" + ", ".join(f"k{i}: v" for i in range(200000)) + "}}\n",
], ids=["aliases", "self", "brackets", "braces", "dashes", "labels"])
def test_documents_that_blow_up_are_refused_cheaply(shared, manifest):
    before, start = _rss(shared[0]), time.monotonic()
    answer = shared[0].api.call("POST", "/v1/apply", manifest, timeout=30)
    assert answer.status in (400, 413, 422), answer
    assert time.monotonic() - start < 5 * SLOW
    assert _rss(shared[0]) - before < 200 * 1024 * SLOW, "memory grew by more than 200 MB"
    assert shared[0].api.is_ready()


@pytest.mark.timing
def test_manifest_of_50_megabytes(shared):
    """Refused by its declared length, before it is read."""
    size = 50 * 1024 * 1024
    head = (
        f"POST /v1/apply HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
    ).encode()
    reply = client.send_raw(shared[0].admin_port, head, timeout=5)
    assert reply.startswith(b"HTTP/1.1 413 "), reply[:200]
    assert b"application/problem+json" in reply


@pytest.mark.timing
def test_manifest_of_50_megabytes_in_chunks(shared):
    before = _rss(shared[0])
    chunk = b"10000\r\n" + b"#" * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", shared[0].admin_port), timeout=20 * SLOW) as sock:
        sock.sendall(b"POST /v1/apply HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        reply = b""
        try:
            for _ in range(800):
                sock.sendall(chunk)
            sock.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            reply = sock.recv(65536)
        except ConnectionResetError:
            pass
    assert reply == b"" or reply.startswith(b"HTTP/1.1 413 "), reply[:200]
    assert _rss(shared[0]) - before < 100 * 1024 * SLOW
    assert shared[0].api.is_ready()


@pytest.mark.timing
def test_manifest_of_50_megabytes_by_the_command(shared, tmp_path):
    big = tmp_path / "big.yaml"
    with open(big, "wb") as file:
        for _ in range(50):
            file.write(b"# " + b"x" * (1024 * 1024 - 3) + b"\n")
    result = shared[0].ctl("apply", "-f", str(big))
    assert result.returncode != 0
    assert re.search(r"413|too (big|large)|above|MiB|bytes", result.stderr), result.stderr


@pytest.mark.parametrize("raw, status", [
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GARBAGE\r\n\r\n", 400),
    (b"GET /v1/routes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 20000 + b"\r\n", 431),
    (os.urandom(4096), 400),
], ids=["no-host", "garbage", "two-lengths", "long-target", "many-headers", "random"])
def test_admin_listener_and_hostile_bytes(shared, raw, status):
    reply = client.send_raw(shared[0].admin_port, raw, timeout=5)
    accepted = (status, 400, 431)
    assert reply == b"" or int(reply[9:12]) in accepted, reply[:200]
    assert shared[0].api.is_ready()


def test_what_is_not_there(shared):
    api = shared[0].api
    for method, path, status in [
        ("GET", "/v1/nonsense", 404),
        ("GET", "/v2/routes", 404),
        ("GET", "/v1/namespaces/default/routes/none", 404),
        ("DELETE", "/v1/namespaces/default/routes/none", 404),
        ("POST", "/v1/routes", 405),
        ("DELETE", "/metrics", 405),
        ("GET", "/v1/routes?nonsense=1", 400),
        ("GET", "/v1/routes?limit=-1", 400),
        ("GET", "/v1/namespaces/%zz/routes", 400),
    ]:
        answer = api.call(method, path)
        assert answer.status == status, f"{method} {path}: {answer}"
        assert answer.headers["Content-Type"].startswith("application/problem+json"), path


@pytest.mark.smoke
def test_route_to_a_missing_backend_answers_503_until_it_is_there(shared, unique, make_origin):
    host = f"{unique}.example.com"
    api = shared[0].api
    api.apply(documents(
        {"kind": "Namespace", "metadata": {"name": unique}},
        route("early", host, "later", namespace=unique),
    ), "?wait=all")
    for node in shared:
        until(lambda node=node: node.get(host).status == 503, f"{node.name} answers 503")
        status = node.api.get("routes", "early", unique)["status"]
        assert status["missingBackends"] == ["later"], status
    assert len(shared[0].get(host).body) > 0, "an answer without a word"
    api.apply(backend("later", make_origin("later").address, namespace=unique), "?wait=all")
    for node in shared:
        until(lambda node=node: node.get(host).status == 200, f"{node.name} serves")
        assert "missingBackends" not in node.api.get("routes", "early", unique)["status"]
    api.delete("backends", "later", unique)
    for node in shared:
        until(lambda node=node: node.get(host).status == 503, f"{node.name} answers 503 again")


def test_two_routes_for_one_host_and_path(shared, unique, make_origin):
    """The older wins on every node; the newer is kept, told why, and takes over when it may."""
    old, new = make_origin("old"), make_origin("new")
    host = f"{unique}.example.com"
    shared[0].api.apply(documents(
        {"kind": "Namespace", "metadata": {"name": unique}},
        backend("old", old.address, namespace=unique),
        backend("new", new.address, namespace=unique),
        route("zz-older", host, "old", namespace=unique, path="/a"),
    ), "?wait=all")
    shared[1].api.apply(route("aa-newer", host, "new", namespace=unique, path="/a"), "?wait=all")

    def statuses(name):
        return [node.api.get("routes", name, unique)["status"] for node in shared]

    for status in statuses("zz-older"):
        assert status["admitted"] is True, status
    for status in statuses("aa-newer"):
        assert status["admitted"] is False, status
        assert status["reason"] == "HostAlreadyClaimed"
        assert f"{unique}/zz-older" in status["claimedBy"] + status.get("message", "")
    for node in shared:
        assert node.get(host, "/a").text == "old\n"

    # An update of the older does not make it younger.
    shared[2].api.call(
        "PATCH", f"/v1/namespaces/{unique}/routes/zz-older", {"metadata": {"labels": {"x": "y"}}},
        {"Content-Type": "application/merge-patch+json"}, expect=200,
    )
    assert shared[2].api.get("routes", "zz-older", unique)["status"]["admitted"] is True

    # Another path of the host is no conflict.
    shared[2].api.apply(route("beside", host, "new", namespace=unique, path="/b"), "?wait=all")
    assert shared[0].get(host, "/b").text == "new\n"

    shared[2].api.delete("routes", "zz-older", unique)
    for node in shared:
        until(lambda node=node: node.get(host, "/a").text == "new\n", f"{node.name} has flipped")
        assert node.api.get("routes", "aa-newer", unique)["status"]["admitted"] is True
