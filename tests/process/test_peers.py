"""Who may take part: keys, names, clocks, and bytes from anybody who can reach the port."""

import os
import random
import re
import socket

import pytest

from support.api import route
from support.cluster import Node, make_key
from support.wait import until


def _members(node):
    return {m["name"]: m for m in node.api.cluster()["members"]}


def _states(node):
    return [(m["name"], m["state"]) for m in node.api.cluster()["members"]]


def _dropped(node):
    """Datagrams and streams that were not let in, whatever the reason."""
    return sum(
        value for name, value in node.api.metrics().items()
        if name.startswith("skein_gossip") and re.search(r"drop|refus|reject|unsealed|invalid", name)
    )


@pytest.mark.smoke
def test_random_datagrams_are_dropped_and_counted(shared, show):
    node, noise = shared[0], random.Random(7)
    before = _dropped(node)
    sent = 2000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for i in range(sent):
            size = noise.choice([0, 1, 7, 16, 40, 60, 200, 1200, 1201, 4000])
            sock.sendto(noise.randbytes(size), ("127.0.0.1", node.gossip_port))
            if i % 50 == 0:  # so that the kernel's buffer does not do the dropping
                node.api.call("GET", "/healthz", expect=200)
    # The kernel may drop some; most must have been seen.
    until(lambda: _dropped(node) - before >= sent * 0.8, "the datagrams are counted as dropped", 10)
    show(f"{sent} random datagrams: {_dropped(node) - before:.0f} counted as dropped")
    assert {m["state"] for m in _members(node).values()} == {"alive"}
    assert node.api.is_ready()


def test_random_bytes_on_the_stream_port(shared):
    node, noise = shared[0], random.Random(8)
    for size in (0, 1, 5, 100, 5000, 70000):
        with socket.create_connection(("127.0.0.1", node.gossip_port), timeout=5) as sock:
            try:
                sock.sendall(noise.randbytes(size))
            except OSError:
                pass
    assert node.api.is_ready()
    assert {m["state"] for m in _members(node).values()} == {"alive"}


def test_a_peer_with_another_key_is_refused_and_both_say_why(cluster, tmp_path):
    key = make_key(str(tmp_path / "other.key"))
    stranger = Node(str(tmp_path), "stranger", key)
    before = _dropped(cluster[0])
    stranger.start(join=[cluster[0].gossip_address])
    try:
        until(lambda: _dropped(cluster[0]) > before, "r1 counts the refusal", 10)
        said = re.compile(r"(warn|error) .*\bkey\b", re.IGNORECASE)
        until(lambda: said.search(cluster[0].log()), "r1's log says why", 15)
        until(lambda: said.search(stranger.log()), "the stranger's log says why", 15)
        for node in cluster:
            assert "stranger" not in _members(node)
    finally:
        stranger.stop()
        if os.path.exists(stranger.socket):
            os.unlink(stranger.socket)


def test_second_node_of_one_name_refuses_to_serve(cluster, tmp_path):
    twin = Node(str(tmp_path), "r2", cluster.key)
    twin.start(join=[cluster[0].gossip_address])
    assert twin.wait_exit(30) == 75, twin.log_tail()
    assert re.search(r'"?r2"?', twin.log()) and "name" in twin.log(), twin.log_tail()
    assert not twin.faults(), twin.faults()
    # The first of that name is still there, and is not disturbed.
    assert cluster[1].is_running()
    assert cluster[1].api.is_ready()
    assert cluster[0].get("nothing.example.com").status == 404


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_an_hour_off(make_cluster, hours):
    """Such a node joins and serves, is flagged everywhere, and takes no writes."""
    cluster = make_cluster(3)
    cluster[0].start()
    cluster[1].start(join=[cluster[0].gossip_address])
    cluster.wait_ready()
    cluster[0].api.put("namespaces", "before", {})
    late = cluster[2]
    late.start(
        join=[cluster[0].gossip_address],
        env={"SKEIN_TEST_CLOCK_OFFSET_MS": str(hours * 3600 * 1000)},
    )
    cluster.wait_ready()
    assert late.api.get("namespaces", "before")["kind"] == "Namespace"

    for node in cluster:
        until(lambda node=node: _members(node)["r3"]["clockFlagged"] or node is late,
              f"{node.name} flags r3")
    offset = _members(cluster[0])["r3"]["clockOffsetMs"]
    assert abs(offset - hours * 3600 * 1000) < 60 * 1000, offset

    answer = until(
        lambda: (a := late.api.call("PUT", "/v1/namespaces/refused",
                                    {"kind": "Namespace", "metadata": {"name": "refused"}}))
        and a.status == 503 and a,
        "r3 refuses writes",
    )
    assert re.search(r"clock", answer.text) and re.search(r"1 ?h|3[56]\d\d|60 ?m|59 ?m", answer.text), answer.text
    result = late.ctl("apply", "-f", "-", stdin='{"kind": "Namespace", "metadata": {"name": "refused"}}')
    assert result.returncode != 0 and "clock" in result.stderr, result.stderr

    # The others write, r3 takes it in.
    cluster[1].api.put("namespaces", "after", {})
    until(lambda: late.api.call("GET", "/v1/namespaces/after").status == 200, "r3 follows")
    assert late.api.call("GET", "/v1/namespaces/refused").status == 404
    table = cluster[0].ctl("cluster").stdout
    assert re.search(rf"r3 .*{'[+]' if hours > 0 else '-'}(1h00m|59m|0h59m) \(off\)", table), table


def test_members_are_remembered_without_a_join_list(cluster):
    """A node that knew its peers finds them again by itself."""
    node = cluster[2]
    node.kill()
    cluster[0].api.put("namespaces", "later", {})
    node.start(join=())
    node.wait_ready()
    until(lambda: node.api.call("GET", "/v1/namespaces/later").status == 200, "it catches up")


def test_conflict_of_names_is_none_after_the_loss_of_a_disk(cluster):
    """Same name and address, new identity: the dead predecessor does not stand in the way."""
    node = cluster[1]
    node.kill()
    node.wipe()
    cluster.restart(node).wait_ready()
    for other in cluster:
        until(lambda other=other: ("r2", "alive") in _states(other), "r2 is alive again", 30)
    node.api.put("routes", "mine", route("mine", "mine.example.com", "x")["spec"])
    until(lambda: cluster[0].api.call("GET", "/v1/namespaces/default/routes/mine").status == 200,
          "its writes arrive")


@pytest.mark.timing
def test_a_dead_member_is_forgotten_everywhere(make_cluster):
    """Not while it lives; then by one command on one node, for all."""
    nodes = make_cluster(3)
    nodes.start()
    assert nodes[0].ctl("forget", "r3").returncode == 1
    nodes[2].kill()
    until(lambda: ("r3", "dead") in _states(nodes[0]), "r3 is dead")
    assert nodes[0].ctl("forget", "r3").returncode == 0
    until(lambda: "r3" not in _members(nodes[1]), "r3 is forgotten by r2")
    assert "r3" not in _members(nodes[0])
