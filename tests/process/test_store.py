"""What a node makes of a bad disk: a damaged database, a full one."""

import glob
import itertools
import os
import re

import pytest

from support.api import backend, documents, route
from support.wait import until


def _database(node):
    files = [f for f in glob.glob(os.path.join(node.data, "*")) if re.search(r"\.(db|sqlite3?)$", f)]
    assert len(files) == 1, os.listdir(node.data)
    return files[0]


@pytest.mark.parametrize("damage", ["header", "pages", "truncated", "empty-file"])
def test_damaged_database_is_moved_aside_and_refilled(cluster, make_origin, damage):
    origin = make_origin("web")
    cluster[0].api.apply(
        documents(
            backend("web", origin.address),
            *(route(f"r{i}", f"h{i}.example.com", "web") for i in range(200)),
        ),
        "?wait=all",
    )
    node = cluster[2]
    node.stop()
    path = _database(node)
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        if damage == "header":
            file.write(b"\0" * 100)
        elif damage == "pages":
            for offset in range(4096, size, 4096):
                file.seek(offset)
                file.write(os.urandom(600))
        elif damage == "truncated":
            file.truncate(size // 2)
        else:
            file.truncate(0)
    cluster.restart(node).wait_ready()
    names = {item["metadata"]["name"] for item in node.api.list("routes")}
    assert names == {f"r{i}" for i in range(200)}
    assert node.get("h7.example.com").status == 200
    if damage != "empty-file":  # which is a new database to SQLite
        assert re.search(r"(damaged|corrupt|malformed|moved|aside)", node.log()), node.log_tail()
        assert os.path.basename(path) in node.log()
        aside = [f for f in os.listdir(node.data) if f.startswith(os.path.basename(path) + ".")
                 and not f.endswith(("-wal", "-shm"))]
        assert aside, f"nothing was kept: {os.listdir(node.data)}"
    # It writes again, and the others take it.
    node.api.put("namespaces", "afterwards", {})
    until(lambda: cluster[0].api.call("GET", "/v1/namespaces/afterwards").status == 200, "it arrives")


def test_full_disk_refuses_writes_and_serves_on(make_cluster, make_origin):
    cluster = make_cluster(1)
    node = cluster[0]
    node.start(env={"SKEIN_TEST_STORE_MAX_PAGES": "80"})
    cluster.wait_ready()
    node.api.apply(documents(backend("web", make_origin("web").address),
                             route("web", "web.example.com", "web")))
    filler = "x" * 4000
    full, kept = None, []
    for i in range(500):
        answer = node.api.call(
            "PUT", f"/v1/namespaces/filler-{i}",
            {"kind": "Namespace", "metadata": {"name": f"filler-{i}"},
             "spec": {"description": filler}},
        )
        if answer.status == 507:
            full = answer
            break
        assert answer.status in (200, 201), answer
        kept.append(f"filler-{i}")
    assert full is not None, "the disk is never full"
    assert re.search(r"disk|space|full", full.text), full.text
    assert full.headers["Content-Type"].startswith("application/problem+json")
    assert node.get("web.example.com").status == 200
    assert node.api.call("GET", "/healthz").status == 200
    for name in kept:
        assert node.api.call("GET", f"/v1/namespaces/{name}").status == 200
    result = node.ctl("apply", "-f", "-", stdin=documents(
        {"kind": "Namespace", "metadata": {"name": "x"}, "spec": {"description": filler}}))
    assert result.returncode != 0 and re.search(r"disk|space|full", result.stderr), result.stderr
    # Room again: everything acknowledged is there, and writes are taken.
    node.stop()
    node.start()
    node.wait_ready()
    for name in kept:
        assert node.api.call("GET", f"/v1/namespaces/{name}").status == 200
    node.api.put("namespaces", "room", {"description": filler})


def test_full_disk_of_one_node_does_not_stop_the_others(make_cluster):
    cluster = make_cluster(3)
    cluster[0].start()
    for node in cluster.nodes[1:]:
        env = {"SKEIN_TEST_STORE_MAX_PAGES": "80"} if node is cluster[2] else None
        node.start(join=[cluster[0].gossip_address], env=env)
    cluster.wait_ready()
    filler = "x" * 4000
    for i in range(150):
        cluster[i % 2].api.put("namespaces", f"n{i}", {"description": filler})
    until(lambda: cluster[1].api.call("GET", "/v1/namespaces/n148").status == 200, "r2 has all")
    assert cluster[2].api.call("GET", "/healthz").status == 200
    # A batch that did not fit may leave room for a smaller one: each try is another object.
    tries = (f"y{i}" for i in itertools.count())

    def is_refused():
        name = next(tries)
        return cluster[2].api.call("PUT", f"/v1/namespaces/{name}", {
            "kind": "Namespace", "metadata": {"name": name}, "spec": {"description": filler}}).status == 507

    until(is_refused, "r3 refuses writes")
    # With room it takes everything that it missed.
    cluster[2].stop()
    cluster.restart(cluster[2]).wait_ready()
    cluster.wait_in_step()
    names = {i["metadata"]["name"] for i in cluster[2].api.list("namespaces")}
    assert {f"n{i}" for i in range(150)} <= names
