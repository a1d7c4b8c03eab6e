"""What a change on one node means for the others: how fast, and through which deaths it lives."""

import json
import statistics
import threading
import time

import pytest

from support import client
from support.api import backend, documents, route
from support.wait import SLOW, until


@pytest.mark.timing
def test_apply_serves_elsewhere_within_100_ms(cluster, make_nginx, tmp_path, show):
    """Median of 20, from the start of `skeinctl apply` to the first answer of node 3."""
    cluster[0].api.apply(backend("web", make_nginx("web").address), "?wait=all")
    times, calls = [], []
    for i in range(20):
        host = f"h{i}.example.com"
        manifest = tmp_path / f"route{i}.yaml"
        manifest.write_text(
            f"kind: Route\nmetadata: {{name: r{i}}}\nspec: {{host: {host}, to: [{{backend: web}}]}}\n"
        )
        served = []

        def poll(host=host, served=served):
            while not served:
                if cluster[2].get(host).status == 200:
                    served.append(time.monotonic())
                else:
                    time.sleep(0.001)

        poller = threading.Thread(target=poll, daemon=True)
        poller.start()
        start = time.monotonic()
        result = cluster[0].ctl("apply", "-f", str(manifest))
        calls.append(time.monotonic() - start)
        assert result.returncode == 0, result.stderr
        poller.join(10)
        assert served, f"{host} is not served by node 3"
        times.append(served[0] - start)
    median = statistics.median(times) * 1000
    show(
        f"apply on r1 -> served by r3: median {median:.1f} ms, worst {max(times) * 1000:.1f} ms; "
        f"of it the command itself {statistics.median(calls) * 1000:.1f} ms"
    )
    assert median <= 100


def _seed(node, origin, count=40):
    objects = [backend("web", origin.address)]
    objects += [route(f"r{i}", f"h{i}.example.com", "web") for i in range(count)]
    node.api.apply(documents(*objects), "?wait=all")


def _everything(node):
    """All objects that users write, without what is computed, in a form to compare."""
    found = {}
    for kind in ("namespaces", "routes", "backends", "endpoints"):
        for item in node.api.list(kind):
            item.pop("status", None)
            meta = item["metadata"]
            found[kind, meta.get("namespace"), meta["name"]] = json.dumps(item, sort_keys=True)
    return found


@pytest.mark.parametrize("disk", ["kept", "empty"])
def test_restarted_node_catches_up_before_it_is_ready(cluster, make_origin, disk, show):
    origin, second = make_origin("web"), make_origin("second")
    _seed(cluster[0], origin)
    down = cluster[2]
    down.kill()

    # The others serve and take changes at once, whatever they know of the death.
    for node in cluster.running():
        assert node.get("h0.example.com").status == 200
    for i in range(10):
        cluster[i % 2].api.delete("routes", f"r{i}")
        cluster[i % 2].api.put(
            "routes", f"r{10 + i}", {"host": f"moved{i}.example.com", "to": [{"backend": "web"}]}
        )
        cluster[i % 2].api.put(
            "routes", f"new{i}", {"host": f"new{i}.example.com", "to": [{"backend": "web"}]}
        )
    cluster[1].api.apply(backend("web", second.address))
    cluster.wait_in_step()
    expected = _everything(cluster[0])

    if disk == "empty":
        down.wipe()
    start = time.monotonic()
    cluster.restart(down)
    states = []

    def ready():
        try:
            states.append(down.api.call("GET", "/readyz").status)
        except OSError:
            states.append(None)
        return states[-1] == 200

    until(ready, f"{down.name} is ready", 30, pause=0.002)
    # Ready means in step, at this very moment.
    assert _everything(down) == expected
    assert down.get("h0.example.com").status == 404, "a deletion was missed"
    assert down.get("h10.example.com").status == 404, "the old host of a changed route still serves"
    for host in ("moved3.example.com", "new7.example.com", "h30.example.com"):
        answer = down.get(host)
        assert (answer.status, answer.text) == (200, "second\n"), f"{host}: {answer}"
    assert set(states) <= {None, 503, 200}
    show(f"ready and in step {(time.monotonic() - start) * 1000:.0f} ms after the start ({disk} disk)")
    cluster.wait_members()
    for node in cluster:
        members = [m for m in node.api.cluster()["members"] if m["state"] == "alive"]
        assert sorted(m["name"] for m in members) == ["r1", "r2", "r3"]


def test_survivors_notice_the_death_and_go_on(cluster, make_origin):
    _seed(cluster[0], make_origin("web"), 3)
    cluster[2].kill()
    for node in cluster.running():
        until(
            lambda node=node: {m["name"]: m["state"] for m in node.api.cluster()["members"]}["r3"]
            == "dead",
            f"{node.name} says that r3 is dead",
            30,
        )
    cluster[0].api.put("routes", "late", {"host": "late.example.com", "to": [{"backend": "web"}]})
    for node in cluster.running():
        until(lambda node=node: node.get("late.example.com").status == 200, "the change serves")
        assert node.api.is_ready()


def test_last_node_standing_serves_and_accepts(cluster, make_origin):
    _seed(cluster[0], make_origin("web"), 3)
    cluster[0].kill()
    cluster[1].kill()
    cluster[2].api.put("routes", "alone", {"host": "alone.example.com", "to": [{"backend": "web"}]})
    until(lambda: cluster[2].get("alone.example.com").status == 200, "the change serves")
    assert cluster[2].api.is_ready()


def test_no_acknowledged_write_is_lost_when_all_are_killed(cluster, make_origin, show):
    """SIGKILL of every node in a stream of writes to each; then all must be there again."""
    cluster[0].api.apply(backend("web", make_origin("web").address), "?wait=all")
    written, deleted, sent = [set(), set(), set()], [set(), set(), set()], [0, 0, 0]
    stop = threading.Event()

    def write(idx):
        api = cluster[idx].api
        i = 0
        while not stop.is_set():
            name = f"w{idx}-{i}"
            sent[idx] += 1
            try:
                answer = api.call(
                    "PUT", api.path("routes", name),
                    route(name, f"{name}.example.com", "web"),
                )
                if answer.status in (200, 201):
                    written[idx].add(name)
                if i % 5 == 4:
                    gone = f"w{idx}-{i - 2}"
                    # Until the answer is there it may be either.
                    written[idx].discard(gone)
                    if api.call("DELETE", api.path("routes", gone)).status in (200, 204):
                        deleted[idx].add(gone)
            except (OSError, client.http.client.HTTPException):
                return
            i += 1

    threads = [threading.Thread(target=write, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: min(len(w) for w in written) >= 100, "100 writes on each node", 60)
    for node in cluster:
        node.process.kill()
    for node in cluster:
        node.process.wait()
    stop.set()
    for thread in threads:
        thread.join(30 * SLOW)

    for node in cluster:
        cluster.restart(node)
    cluster.wait_ready(60)
    cluster.wait_in_step()
    acknowledged, removed = set().union(*written), set().union(*deleted)
    for node in cluster:
        names = {item["metadata"]["name"] for item in node.api.list("routes")}
        assert acknowledged <= names, f"{node.name} lost {sorted(acknowledged - names)[:5]}"
        assert not removed & names, f"{node.name} brought back {sorted(removed & names)[:5]}"
    show(
        f"{sum(sent)} writes sent, {len(acknowledged)} acknowledged and present, "
        f"{len(removed)} acknowledged deletions still gone, on all three nodes"
    )
    # And it is a cluster again: a write passes through.
    cluster[1].api.put("namespaces", "afterwards", {})
    until(
        lambda: cluster[2].api.call("GET", "/v1/namespaces/afterwards").status == 200,
        "a write after the restart arrives",
    )


def test_concurrent_writers_of_one_object_agree(shared, unique):
    """Every node ends with the same version, whichever won."""
    api = shared[0].api
    api.put("namespaces", unique, {})
    errors = []

    def write(node):
        for i in range(25):
            answer = node.api.call(
                "PUT", api.path("routes", "one", unique),
                route("one", f"{node.name}-{i}.example.com", "none", namespace=unique),
            )
            if answer.status not in (200, 201):
                errors.append(answer)

    threads = [threading.Thread(target=write, args=(node,)) for node in shared]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors

    def same():
        versions = {
            (o["spec"]["host"], o["metadata"]["resourceVersion"])
            for o in (node.api.get("routes", "one", unique) for node in shared)
        }
        return len(versions) == 1

    until(same, "all nodes have one version")


def test_two_writers_add_different_endpoints_and_both_win(shared, unique):
    api = shared[0].api
    api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("web", namespace=unique),
        ),
        "?wait=all",
    )
    added = {0: "127.0.0.1:4001", 1: "127.0.0.1:4002", 2: "127.0.0.1:4003"}
    threads = [
        threading.Thread(
            target=shared[i].api.call,
            args=(
                "POST", "/v1/apply",
                {
                    "kind": "Endpoint",
                    "metadata": {"namespace": unique, "name": f"web/{address}"},
                    "spec": {"backend": "web", "address": address},
                },
            ),
        )
        for i, address in added.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def all_there():
        return all(
            {e["spec"]["address"] for e in node.api.list("endpoints", f"?namespace={unique}")}
            == set(added.values())
            for node in shared
        )

    until(all_there, "all endpoints on all nodes")
