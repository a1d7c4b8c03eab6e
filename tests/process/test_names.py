"""Endpoints that are DNS names, as the machine resolves them.

Where the kernel allows it, a node runs with a hosts file of its own (a mount namespace), so that a
name can be given other addresses while it runs.
"""

import os
import shutil
import subprocess

import pytest

from support.api import backend, documents, route
from support.checked import Checked
from support.client import Load
from support.cluster import SKEIND, Cluster, _sanitizer_options
from support.ports import free_port
from support.wait import until

CHECK = {"type": "Http", "path": "/healthz", "interval": "100ms", "timeout": "5s"}


def _can_unshare():
    run = subprocess.run(["unshare", "-m", "mount", "--bind", "/etc/hosts", "/etc/hosts"],
                         capture_output=True, check=False) if shutil.which("unshare") else None
    return run is not None and run.returncode == 0


own_hosts = pytest.mark.skipif(not _can_unshare(), reason="needs a mount namespace of its own")


@pytest.fixture(scope="module")
def cluster_of_one(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("names"), 1)
    node = cluster[0]
    node.hosts = os.path.join(cluster.folder, "hosts")
    write_hosts(node, {})
    if _can_unshare():
        start_with_hosts(node)
    else:
        node.start()
    cluster.wait_ready()
    yield cluster
    cluster.stop()


@pytest.fixture
def node(cluster_of_one):
    return cluster_of_one[0]


def write_hosts(node, names):
    """In place: the node sees the file that it was started with."""
    with open(node.hosts, "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost\n")
        for name, addresses in names.items():
            for address in addresses:
                file.write(f"{address} {name}\n")


def start_with_hosts(node):
    script = f'mount --bind "{node.hosts}" /etc/hosts && exec "$0" "$@"'
    environ = {**os.environ, **_sanitizer_options(os.path.join(node.folder, "san"))}
    with open(node.log_path, "ab") as log:
        node.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script, SKEIND, *node.arguments()],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ,
        )
    node.last_pid = node.process.pid


@pytest.fixture
def make_checked():
    made = []

    def make(name="origin", **kwargs):
        made.append(Checked(name, **kwargs))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


def put(node, unique, *addresses, **spec):
    node.api.apply(documents(
        {"kind": "Namespace", "metadata": {"name": unique}},
        backend("web", *addresses, namespace=unique, **spec),
        route("web", f"{unique}.example.com", "web", namespace=unique),
    ))


def status_of(node, unique, address):
    return node.api.get("endpoints", f"web/{address}", unique)["status"]


def addresses_of(node, unique, address):
    return [entry["address"] for entry in status_of(node, unique, address).get("addresses", [])]


def test_localhost_and_a_name_that_is_not(node, unique, make_checked):
    origin = make_checked()
    nowhere = f"no-such-name.invalid:{origin.port}"
    put(node, unique, f"LocalHost:{origin.port}", nowhere, healthCheck=CHECK)
    name = f"localhost:{origin.port}"
    until(lambda: status_of(node, unique, name)["health"] == "Up", "localhost is up")
    assert f"127.0.0.1:{origin.port}" in addresses_of(node, unique, name)
    until(lambda: origin.checks, "a check")
    assert origin.checks[0][2]["Host"] == name
    assert node.get(f"{unique}.example.com").status == 200

    def told():
        status = status_of(node, unique, nowhere)
        return status["health"] == "Down" and "no-such-name.invalid does not resolve: " in status["message"]

    until(told, "the failure is told", 60)
    view = node.api.get("backends", "web", unique)["status"]
    assert view["ready"] == 1 and view["warnings"] == ["names that do not resolve: 1"], view
    assert node.api.metrics()['skein_dns_lookups_total{result="failed"}'] >= 1


@own_hosts
def test_a_name_has_many_addresses_and_they_change(node, unique, make_checked):
    port = free_port()
    origins = [make_checked(f"origin-{i}", host=f"127.0.0.{i}", port=port) for i in (2, 3, 4)]
    name = f"many.{unique[:20].strip('-')}.test"
    write_hosts(node, {name: ["127.0.0.2", "127.0.0.3", "127.0.0.2"]})
    put(node, unique, f"{name}:{port}", balance="RoundRobin", resolveInterval="1s",
        healthCheck={**CHECK, "interval": "1s"})
    host = f"{unique}.example.com"
    key = f"{name}:{port}"
    until(lambda: addresses_of(node, unique, key) == [f"127.0.0.2:{port}", f"127.0.0.3:{port}"],
          "both addresses, once each")
    assert {node.get(host).text for _ in range(8)} == {"origin-2", "origin-3"}
    with Load([node.http_port], host, clients=3) as load:
        write_hosts(node, {name: ["127.0.0.3", "127.0.0.4"]})
        until(lambda: addresses_of(node, unique, key) == [f"127.0.0.3:{port}", f"127.0.0.4:{port}"],
              "the other addresses")
        before = origins[0].count
        until(lambda: origins[2].count > 5, "the new address serves")
        # A name that fails keeps what it had.
        write_hosts(node, {})
        until(lambda: "does not resolve any more" in status_of(node, unique, key).get("message", ""),
              "the failure is told")
        assert len(addresses_of(node, unique, key)) == 2
        more = load.sent + 200
        until(lambda: load.sent >= more, "requests are served meanwhile")
        assert origins[0].count <= before + 3, "an address that left gets requests"
        # One of its addresses is down: the name is up, and the other serves.
        write_hosts(node, {name: ["127.0.0.3", "127.0.0.4"]})
        origins[1].status = 503
        until(lambda: status_of(node, unique, key).get("message") == "1 of 2 addresses are down",
              "the state of the parts is told")
        assert status_of(node, unique, key)["health"] == "Up"
    assert not load.lost, load.lost[:5]


@own_hosts
def test_a_hold_ends(node, unique, make_checked):
    origin = make_checked()
    name = f"held.{unique[:20].strip('-')}.test"
    key = f"{name}:{origin.port}"
    write_hosts(node, {name: ["127.0.0.1"]})
    put(node, unique, key, resolveInterval="1s", resolveHold="1s")
    host = f"{unique}.example.com"
    until(lambda: node.get(host).status == 200, "it serves")
    write_hosts(node, {})
    until(lambda: node.get(host).status == 503, "its addresses are gone", 20)
    assert status_of(node, unique, key)["health"] == "Down"
    write_hosts(node, {name: ["127.0.0.1"]})
    until(lambda: node.get(host).status == 200, "it serves again", 20)


@own_hosts
def test_weight_and_state_go_to_each_address(node, unique, make_checked):
    port = free_port()
    two, three = (make_checked(f"origin-{i}", host=f"127.0.0.{i}", port=port) for i in (2, 3))
    name = f"state.{unique[:20].strip('-')}.test"
    write_hosts(node, {name: ["127.0.0.2"]})
    put(node, unique, f"{name}:{port}", f"127.0.0.3:{port}", balance="RoundRobin")
    host = f"{unique}.example.com"
    until(lambda: {node.get(host).text for _ in range(6)} == {"origin-2", "origin-3"}, "both serve")
    node.api.put("endpoints", f"web/{name}:{port}",
                 {"backend": "web", "address": f"{name}:{port}", "weight": 0}, unique)
    assert {node.get(host).text for _ in range(10)} == {"origin-3"}
    node.api.put("endpoints", f"web/{name}:{port}",
                 {"backend": "web", "address": f"{name}:{port}", "weight": 5}, unique)
    assert {node.get(host).text for _ in range(40)} == {"origin-2", "origin-3"}, "no gap, no look-up"
    node.api.put("endpoints", f"web/{name}:{port}",
                 {"backend": "web", "address": f"{name}:{port}", "state": "Disabled"}, unique)
    assert {node.get(host).text for _ in range(10)} == {"origin-3"}
    assert two.count and three.count


@own_hosts
def test_names_are_there_after_a_restart(cluster_of_one, node, unique, make_checked):
    origin = make_checked()
    name = f"again.{unique[:20].strip('-')}.test"
    write_hosts(node, {name: ["127.0.0.1"]})
    put(node, unique, f"{name}:{origin.port}")
    host = f"{unique}.example.com"
    until(lambda: node.get(host).status == 200, "it serves")
    node.stop()
    start_with_hosts(node)
    until(lambda: node.get(host).status, "it listens")
    answers = [node.get(host).status for _ in range(5)]
    assert answers == [200] * 5, "the first requests found no address"
