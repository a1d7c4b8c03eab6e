"""Session ticket keys of a cluster: who makes them, when they change, that nothing secret shows."""

import json
import signal

import pytest

from support.wait import until

SHORT = {"tls": {"tickets": {"rotation": "3s", "life": "3s"}}}


def keys(node):
    return node.api.call("GET", "/v1/tickets", expect=200).json()["items"]


def names(node):
    return [(key["name"], key["state"]) for key in keys(node)]


def active(node):
    found = [key for key in keys(node) if key["state"] == "Active"]
    assert len(found) <= 1
    return found[0]["name"] if found else None


def agree(nodes):
    """All have the same keys in the same states, one of which seals."""
    seen = [names(node) for node in nodes]
    is_sealed = "Active" in [state for _, state in seen[0]]
    return is_sealed and all(one == seen[0] for one in seen)


def seal_alike(nodes):
    """All seal with one key (what they still keep may differ while settings change)."""
    seen = {active(node) for node in nodes}
    return None not in seen and len(seen) == 1


@pytest.mark.smoke
def test_one_key_for_all_and_nothing_secret_is_shown(cluster):
    nodes = list(cluster.nodes)
    until(lambda: agree(nodes), "all have the first key", 15)
    (key,) = keys(nodes[0])
    assert key["epoch"] == 1 and key["creator"] in {node.name for node in nodes}
    assert set(key) == {"name", "state", "epoch", "created", "notBefore", "creator"}
    assert len(key["name"]) == 8
    metrics = nodes[1].api.metrics()
    assert metrics['skein_ticket_keys{state="Active"}'] == 1
    assert metrics["skein_ticket_keys_damaged_total"] == 0
    exported = nodes[0].api.call("GET", "/v1/export", expect=200).text
    assert key["name"] not in exported


@pytest.mark.timing
def test_rotate_and_revoke(cluster):
    nodes = list(cluster.nodes)
    until(lambda: agree(nodes), "all have the first key", 15)
    first = active(nodes[0])
    result = nodes[1].ctl("tickets", "rotate", "--wait")
    assert result.returncode == 0, result.stderr
    until(lambda: agree(nodes) and active(nodes[0]) != first, "another key is in use", 15)
    assert (first, "Retiring") in names(nodes[2])
    second = active(nodes[0])

    result = nodes[2].ctl("tickets", "rotate", "--revoke", "--wait", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert "items" in json.loads(result.stdout)
    until(lambda: agree(nodes) and active(nodes[0]) != second, "a third key is in use", 15)
    for node in nodes:
        assert [state for _, state in names(node)] == ["Active"]

    shown = nodes[0].ctl("tickets")
    assert shown.returncode == 0 and active(nodes[0]) in shown.stdout
    assert nodes[0].ctl("tickets", "--revoke").returncode == 2
    assert nodes[0].ctl("tickets", "turn").returncode == 2


def test_a_bad_body_is_refused(shared):
    for body in (b"[]", b'{"revoke": 1}', b'{"revoked": true}', b"x"):
        shared[0].api.call("POST", "/v1/tickets/rotate", body, expect=400)
    shared[0].api.call("POST", "/v1/tickets/rotate?wait=some", expect=400)


def test_life_is_bounded(shared):
    for spec in ({"life": "13h"}, {"rotation": "10ms"}, {"rotation": "8d", "life": "8d"}):
        shared[0].api.put("settings", "default", {"tls": {"tickets": spec}}, expect=422)


@pytest.mark.timing
def test_rotation_by_time_a_stopped_node_and_a_restart_of_all(cluster):
    nodes = list(cluster.nodes)
    nodes[0].api.put("settings", "default", SHORT)
    until(lambda: agree(nodes), "all have a key", 15)
    first = keys(nodes[0])[0]["epoch"]
    until(lambda: keys(nodes[0])[0]["epoch"] >= first + 2, "two more keys come by themselves", 30)

    # One that sleeps through a rotation has the keys soon after.
    nodes[2].process.send_signal(signal.SIGSTOP)
    try:
        epoch = keys(nodes[0])[0]["epoch"]
        until(lambda: keys(nodes[0])[0]["epoch"] >= epoch + 2, "the others go on", 30)
    finally:
        nodes[2].process.send_signal(signal.SIGCONT)
    until(lambda: active(nodes[2]) is not None and active(nodes[2]) == active(nodes[0]),
          "the sleeper seals with the others' key", 10)
    until(lambda: len(keys(nodes[0])) <= 4, "old keys are deleted", 20)

    # A restart of all keeps the keys: they lie on disk, sealed.
    nodes[0].api.put("settings", "default", {})
    until(lambda: seal_alike(nodes), "all seal with one key", 15)
    before = set(names(nodes[0]))
    for node in nodes:
        node.stop()
    for node in nodes:
        node.start(join=[peer.gossip_address for peer in nodes if peer is not node])
    for node in nodes:
        node.wait_ready()
    until(lambda: seal_alike(nodes), "all seal with one key", 15)
    assert {name for name, _ in before} & {name for name, _ in names(nodes[0])}


def test_off(cluster):
    nodes = list(cluster.nodes)
    until(lambda: agree(nodes), "all have the first key", 15)
    nodes[0].api.put("settings", "default", {"tls": {"tickets": {"enabled": False}}})
    until(lambda: nodes[1].api.call("POST", "/v1/tickets/rotate").status == 409, "it is off", 10)
