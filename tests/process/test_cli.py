"""skeinctl: what it prints, what it exits with (1 refused, 2 wrong use, 3 no connection)."""

import json
import re

import pytest

from support.api import backend, documents, route
from support.cluster import skeinctl
from support.ports import free_port
from support.wait import until


@pytest.fixture
def space(shared, unique, make_origin):
    """A namespace with a backend and a route."""
    shared[0].api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("web", "127.0.0.1:4001", "127.0.0.1:4002", namespace=unique),
            {**route("r", f"{unique}.example.com", "web", namespace=unique, path="/p"),
             "metadata": {"namespace": unique, "name": "r", "labels": {"tier": "gold"}}},
        ),
        "?wait=all",
    )
    return unique


def ok(result):
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.smoke
def test_cluster_table(shared):
    """Members, state, address, version, revision and lag of each node."""
    lines = ok(shared[1].ctl("cluster")).splitlines()
    header = next(line for line in lines if "NAME" in line)
    for column in ("NAME", "STATE", "ADDRESS", "VERSION", "REVISION", "LAG"):
        assert column in header, header
    for node in shared:
        row = next(line for line in lines if re.match(rf"\*?\s*{node.name}\b", line))
        assert "alive" in row and node.gossip_address in row, row
    data = json.loads(ok(shared[1].ctl("cluster", "-o", "json")))
    assert {m["name"] for m in data["members"]} == {"r1", "r2", "r3"}
    until(
        lambda: all(
            m["lag"] == 0
            for m in json.loads(ok(shared[1].ctl("cluster", "-o", "json")))["members"]
        ),
        "nobody lags",
    )


def test_cluster_shows_a_dead_node(cluster):
    cluster[2].kill()
    until(lambda: re.search(r"r3\s.*dead", cluster[0].ctl("cluster").stdout), "r3 is shown dead", 30)


def test_apply_get_describe_delete(shared, space, tmp_path):
    node = shared[0]
    manifest = tmp_path / "route.yaml"
    manifest.write_text(
        f"kind: Route\nmetadata: {{namespace: {space}, name: s}}\n"
        f"spec: {{host: s.{space}.example.com, to: [{{backend: web}}]}}\n"
    )
    assert "created" in ok(node.ctl("apply", "-f", str(manifest)))
    assert "unchanged" in ok(node.ctl("apply", "-f", str(manifest)))
    table = ok(node.ctl("get", "routes", "-n", space))
    assert table.splitlines()[0].startswith("NAME") or "NAME" in table.splitlines()[0]
    assert f"s.{space}.example.com" in table
    for word in ("routes", "route", "Route"):
        assert f"{space}.example.com" in ok(node.ctl("get", word, "r", "-n", space))
    items = json.loads(ok(node.ctl("get", "backends", "-n", space, "-o", "json")))["items"]
    assert [e["address"] for e in items[0]["spec"]["endpoints"]] == ["127.0.0.1:4001", "127.0.0.1:4002"]
    yaml = ok(node.ctl("get", "route", "r", "-n", space, "-o", "yaml"))
    assert re.search(r"kind: Route", yaml) and f"host: {space}.example.com" in yaml
    # What get prints, apply takes.
    assert "unchanged" in ok(node.ctl("apply", "-f", "-", stdin=yaml))
    described = ok(node.ctl("describe", "route", "r", "-n", space))
    for word in (f"{space}.example.com", "/p", "web", "gold"):
        assert word in described, described
    assert "r" in ok(node.ctl("get", "routes", "-n", space, "-l", "tier=gold"))
    assert f"s.{space}" not in ok(node.ctl("get", "routes", "-n", space, "-l", "tier=gold"))
    ok(node.ctl("delete", "route", "-n", space, "s"))
    result = node.ctl("get", "route", "s", "-n", space)
    assert result.returncode == 1 and f"{space}/s" in result.stderr, result


def test_diff(shared, space):
    changed = documents({**route("r", f"other.{space}.example.com", "web", namespace=space)})
    result = shared[0].ctl("diff", "-f", "-", stdin=changed)
    assert f"other.{space}.example.com" in result.stdout, result
    assert result.returncode == 1
    same = shared[0].ctl("diff", "-f", "-", stdin=shared[0].ctl("export").stdout)
    assert (same.returncode, same.stderr) == (0, "")
    assert shared[0].api.get("routes", "r", space)["spec"]["host"] == f"{space}.example.com"


def test_export_is_taken_back(shared, space, tmp_path):
    everything = ok(shared[0].ctl("export"))
    assert f"{space}.example.com" in everything
    out = ok(shared[0].ctl("apply", "-f", "-", stdin=everything))
    assert "created" not in out and "configured" not in out


def test_faults_are_printed_with_their_place(shared, tmp_path):
    manifest = tmp_path / "bad.yaml"
    manifest.write_text(
        "kind: Route\nmetadata: {name: bad}\n"
        "spec: {host: bad.example.com, to: [{backend: a}, {backend: b, weight: 300}]}\n"
    )
    result = shared[0].ctl("apply", "-f", str(manifest))
    assert result.returncode == 1
    assert "spec.to[1].weight: 300 is above 256" in result.stderr, result.stderr
    assert result.stdout == ""


def test_wrong_usage(shared):
    for arguments, word in [
        (["nonsense"], "nonsense"),
        (["get"], "get"),
        (["get", "unicorns"], "unicorns"),
        (["apply"], "-f"),
        (["get", "routes", "-o", "xml"], "xml"),
        (["get", "routes", "--nonsense"], "--nonsense"),
        (["apply", "-f", "/nonexistent/file.yaml"], "/nonexistent/file.yaml"),
    ]:
        result = shared[0].ctl(*arguments)
        assert result.returncode == 2, (arguments, result)
        assert word in result.stderr, (arguments, result.stderr)
        assert len(result.stderr) < 6000


def test_server_that_is_not_there():
    port = free_port()
    result = skeinctl("cluster", server=f"http://127.0.0.1:{port}")
    assert result.returncode == 3 and f"127.0.0.1:{port}" in result.stderr, result
    result = skeinctl("cluster", server="unix:///nonexistent/admin.sock")
    assert result.returncode == 3 and "/nonexistent/admin.sock" in result.stderr, result
    assert "port 80" not in result.stderr, "speaks of a port where there is none"
    result = skeinctl("cluster", server="nonsense")
    assert result.returncode == 2 and "nonsense" in result.stderr, result


def test_unix_socket_and_option(shared):
    ok(skeinctl("cluster", server=f"unix://{shared[0].socket}"))
    ok(skeinctl("cluster", "--server", f"http://127.0.0.1:{shared[1].admin_port}"))


@pytest.mark.smoke
def test_keygen_and_version():
    first, second = ok(skeinctl("keygen")), ok(skeinctl("keygen"))
    assert first != second and len(first.strip()) >= 32
    assert re.search(r"\d+\.\d+\.\d+", ok(skeinctl("version")))
    assert "apply" in ok(skeinctl("--help"))
