"""Writers against every node while nodes die, sleep, lose disks and packets; then the truth is told.

SKEIN_CHAOS_SEEDS ("7" or "100-120") replays seeds; SKEIN_LONG=1 takes many. A seed decides the size
of the cluster, the order of faults and what the writers choose; the timing is the machine's.
"""

import os
import random
import time

import pytest

from support import chaos
from support.api import backend, documents, route
from support.wait import SLOW

_LONG = os.environ.get("SKEIN_LONG") == "1"
_MEMORY_MIB = 160


def _seeds():
    text = os.environ.get("SKEIN_CHAOS_SEEDS")
    if text:
        first, _, last = text.partition("-")
        return list(range(int(first), int(last or first) + 1))
    return list(range(1, 31)) if _LONG else [8, 15] if SLOW == 1 else [8]


@pytest.mark.parametrize("seed", _seeds())
def test_chaos(make_cluster, make_origin, show, seed):
    rng = random.Random(seed)
    seconds = 20 if _LONG else 9
    cluster = make_cluster(rng.choice((3, 3, 3, 4, 5)))
    origins = {name: make_origin(name) for name in ("web-a", "web-b")}
    cluster.start()
    for node in cluster:
        node.expected_up = True
    cluster[0].api.apply(
        documents(
            *(backend(name, origin.address) for name, origin in origins.items()),
            route("steady", chaos.Probers.HOST, "web-a"),
        ),
        "?wait=all",
    )
    ballast = chaos.ballast(rng.choice((0, 50, 800)), seed)
    if ballast:
        cluster[1].api.apply(documents(*ballast), "?wait=all")
    history = chaos.History()
    writers = chaos.Writers(cluster.nodes, history, seed)
    probers = chaos.Probers(cluster.nodes, history, "web-a\n")
    watchers = chaos.Watchers(cluster.nodes)
    nemesis = chaos.Nemesis(cluster, writers, seed, steps=60)
    try:
        for part in (probers, watchers, writers):
            part.start()
        try:
            nemesis.run(time.monotonic() + seconds)
        finally:
            writers.stop()
            probers.stop()
        healing = time.monotonic()
        cluster.wait_ready(60)
        chaos.wait_agreement(cluster)
        healed = time.monotonic() - healing
        nemesis.check_alive()
        history.check(chaos.held_objects(cluster[0]))
        names = {item["metadata"]["name"] for item in cluster[0].api.list("namespaces")}
        assert {item["metadata"]["name"] for item in ballast} <= names, "ballast is lost"
        chaos.check_routes(cluster, {name: origin.name for name, origin in origins.items()})
        history.problems += watchers.problems()
        watchers.stop()
        assert not history.problems, "\n".join(history.problems[:10])
        for node in cluster:
            assert not chaos.error_lines(node), chaos.error_lines(node)
            used = chaos.memory_mib(node)
            assert used < _MEMORY_MIB or chaos.is_sanitized(node), f"{node.name}: {used:.0f} MiB"
    except BaseException:
        show(f"SKEIN_CHAOS_SEEDS={seed} replays it; faults:\n      " + "\n      ".join(nemesis.done))
        raise
    counts = history.counts()
    show(
        f"seed {seed}: {len(cluster.nodes)} nodes, {len(nemesis.done)} faults, {counts['acked']} "
        f"writes acknowledged, {counts['refused']} refused, {counts['unknown']} unknown; "
        f"{probers.answered} requests answered, {watchers.lines} lines watched in {watchers.lists} "
        f"lists; agreed {healed:.1f} s after the last fault"
    )


class _Place:
    """Enough of a node for a history."""

    def __init__(self, name):
        self.name, self.life, self.disk = name, 0, 0


def _history(*events):
    """(kind, node, begin, end, token, version, more) to a history of one key."""
    key = chaos.KEYS[0]
    places = {name: _Place(name) for name in "abc"}
    history = chaos.History()
    for kind, node, begin, end, token, version, more in events:
        if kind == "read":
            item = chaos.Read(key, places[node])
            history.add_read(item)
        else:
            item = chaos.Write(key, token, places[node], deletes=kind == "delete")
            item.outcome = "acked"
            history.add([item])
        item.begin, item.end, item.token, item.version = begin, end, token, version
        for name, value in more.items():
            setattr(item, name, value)
    return key, history


def _held(token, version):
    return {"metadata": {"labels": {"token": token}, "resourceVersion": version}}


_FIRST = ("put", "a", 1.0, 1.1, "t1", "01", {})
_SECOND = ("put", "a", 1.2, 1.3, "t2", "02", {})
_NEAR = ("put", "b", 1.2, 1.3, "t2", "00", {})
_LATE = ("put", "b", 3.0, 3.1, "t2", "00", {})
_DELETED = ("delete", "a", 1.2, 1.3, "d2", None, {})
_UNKNOWN = {"outcome": "unknown", "end": float("inf"), "version": None}


@pytest.mark.parametrize(
    "events, held, finds",
    [
        ([_FIRST], _held("t1", "01"), None),
        ([_FIRST, _SECOND], _held("t2", "02"), None),
        ([_FIRST, _SECOND], _held("t1", "01"), "older than"),
        ([_FIRST], None, "is lost"),
        ([_FIRST, _DELETED], None, None),
        ([_FIRST, _DELETED], _held("t1", "01"), "after it came"),
        ([_FIRST, _DELETED, ("put", "a", 1.4, 1.5, "t3", "03", {})], None, "is lost"),
        ([_FIRST, _DELETED, ("put", "b", 1.4, 1.5, "t3", "03", {})], None, None),
        ([_FIRST, ("delete", "b", 1.2, 1.3, "d2", None, {"saw": "01"})], _held("t1", "01"), "saw it"),
        ([_FIRST, ("put", "b", 1.2, 1.3, "t2", None, _UNKNOWN)], _held("t1", "01"), None),
        ([_FIRST, ("put", "b", 1.2, 1.3, "t2", None, _UNKNOWN)], _held("t2", "02"), None),
        ([_FIRST, ("put", "b", 1.2, 1.3, "t2", None, {"outcome": "refused"})], _held("t2", "02"),
         "was refused"),
        ([_FIRST, _NEAR], _held("t1", "01"), None),
        ([_FIRST, _LATE], _held("t1", "01"), "which it followed"),
        ([_FIRST, ("read", "b", 1.1, 1.15, "t1", "01", {}), _NEAR], _held("t1", "01"),
         "after it came"),
        ([_FIRST, _SECOND, ("read", "a", 1.4, 1.5, "t1", "01", {})], _held("t2", "02"),
         "on the same node"),
        ([_FIRST], _held("t9", "09"), "nobody wrote"),
        ([("put", "a", 1.0, 1.1, "t1", "01", {"if_match": "x"}),
          ("put", "a", 1.2, 1.3, "t2", "02", {"if_match": "x"})], _held("t2", "02"), "one tag"),
    ],
)
def test_the_check_itself(events, held, finds):
    key, history = _history(*events)
    history.check({key: held} if held else {})
    if finds is None:
        assert not history.problems, history.problems
    else:
        assert any(finds in problem for problem in history.problems), history.problems
