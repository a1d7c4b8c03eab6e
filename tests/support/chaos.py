"""Chaos on real nodes: writers with a history, a nemesis with a seed, and what must hold after it.

The rules of the check, all of them sound whatever the schedule was:

- A version is (time, node), shown as metadata.resourceVersion; the larger one wins everywhere. A
  write that has seen a version is larger. So of the versions of one key that were acknowledged the
  final one is the largest, unless a deletion took it.
- "A happened before B" (of one key, B acknowledged) is known from: A answered before B was asked on
  the same node with the same disk; A was read on B's node in the same life of its process; B named
  A's entity tag; or B was asked so long after A's answer that clocks within their limits order them.
- A write without an answer may have happened or not, unless its token was seen.
- What a node answers for a key is never older than what it answered or acknowledged before, in one
  life of its process, or at all for what it acknowledged itself.
- What a node answered as done stays on its disk. A disk is taken away only after another node has
  all that is on it (an acknowledged write lives as long as its disk or one receiver).
"""

import bisect
import json
import os
import random
import re
import shutil
import signal
import socket
import threading
import time
from http.client import HTTPConnection, HTTPException

from support.api import Api
from support.wait import SLOW, until

CLOCK_OFF_MS = 400
# Two clocks, each off by up to the limit, and what rounding and counters may add.
ORDERED_AFTER = 2 * CLOCK_OFF_MS / 1000 + 0.1

HOSTS = 6
KEYS = (
    [("routes", f"k{i}") for i in range(HOSTS + 2)]  # the last two contend for a host
    + [("namespaces", f"n{i}") for i in range(3)]
    + [("backends", f"b{i}") for i in range(2)]
    + [("endpoints", f"b{i % 2}/127.0.0.1:{4000 + i}") for i in range(4)]
)
_KIND = {"routes": "Route", "namespaces": "Namespace", "backends": "Backend", "endpoints": "Endpoint"}


def version_of(key, metadata):
    """None for a Backend: its version covers its endpoints and has no order."""
    return None if key[0] == "backends" else metadata["resourceVersion"]


def host_of(name):
    return f"h{int(name[1:]) % HOSTS}.chaos.test"


class Write:
    """One key's part of a request."""

    def __init__(self, key, token, node, deletes=False, if_match=None):
        self.key, self.token, self.node = key, token, node
        self.deletes, self.if_match = deletes, if_match
        self.life, self.disk = node.life, node.disk
        self.begin, self.end = time.monotonic(), float("inf")
        self.outcome = None  # acked, refused, unknown
        self.version = None  # its own, when it is known
        self.saw = None  # a version that it certainly replaced
        self.etag = None
        self.text = ""

    def close(self, outcome, text=""):
        self.outcome, self.text = outcome, text
        if outcome == "acked":
            self.end = time.monotonic()
        if self.node.life != self.life:
            self.life = None
        if self.node.disk != self.disk:
            self.disk = None

    def __repr__(self):
        what = "delete" if self.deletes else "write"
        return (
            f"<{what} {self.token} of {'/'.join(self.key)} on {self.node.name} life {self.life} disk "
            f"{self.disk} {self.begin:.3f}..{self.end:.3f} {self.outcome} version {self.version} "
            f"saw {self.saw} if-match {self.if_match} {self.text}>"
        )


class Read:
    """What a node said that a key holds: token and version, or None for absent."""

    def __init__(self, key, node):
        self.key, self.node = key, node
        self.life, self.disk = node.life, node.disk
        self.begin, self.end = time.monotonic(), None
        self.token = self.version = self.etag = None

    def close(self):
        self.end = time.monotonic()
        return self.node.life == self.life and self.node.disk == self.disk

    def __repr__(self):
        return (
            f"<read of {'/'.join(self.key)} on {self.node.name} life {self.life} "
            f"{self.begin:.3f}..{self.end:.3f}: {self.token} version {self.version}>"
        )


class History:
    def __init__(self):
        self.writes = {key: [] for key in KEYS}
        self.reads = {key: [] for key in KEYS}
        self.problems = []
        self.lock = threading.Lock()
        self._tokens = 0
        self._happened = set()  # tokens of writes that somebody saw

    def token(self):
        with self.lock:
            self._tokens += 1
            return f"t{self._tokens}"

    def add(self, writes):
        with self.lock:
            for write in writes:
                self.writes[write.key].append(write)

    def add_read(self, read):
        with self.lock:
            self.reads[read.key].append(read)

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    def counts(self):
        counts = {"acked": 0, "refused": 0, "unknown": 0}
        for writes in self.writes.values():
            for write in writes:
                counts[write.outcome] += 1
        return counts

    # ---- the check ----

    def learn(self, final):
        """Versions and outcomes that only reads tell. final: {key: object} of the export's nodes."""
        for key, writes in self.writes.items():
            seen = {read.token: read.version for read in self.reads[key] if read.token}
            if key in final:
                meta = final[key]["metadata"]
                seen[meta["labels"]["token"]] = version_of(key, meta)
            for write in writes:
                if write.deletes or write.token not in seen:
                    continue
                write.version = write.version or seen[write.token]
                if write.version != seen[write.token]:
                    self.problem(f"{write} was seen as version {seen[write.token]}")
                if write.outcome == "refused":
                    self.problem(f"{write} was refused and is there")
                self._happened.add(write.token)
            known = {write.token for write in writes}
            for token in seen:
                if token not in known:
                    self.problem(f"{key} held {token}, which nobody wrote there")

    def is_certain(self, write):
        """It happened. An apply seen at one key happened at all of them."""
        return write.outcome == "acked" or write.token in self._happened

    def before(self, a, b):
        if a.end < b.begin and a.node is b.node and a.disk is not None and a.disk == b.disk:
            return True
        if a.end + ORDERED_AFTER < b.begin:
            return True
        if b.if_match is not None and b.if_match == a.etag:
            return True
        if a.deletes or b.life is None:
            return False
        return any(
            read.token == a.token and read.node is b.node and read.life == b.life
            and read.end < b.begin
            for read in self.reads[a.key]
        )

    def check_final(self, key, held):
        writes = [w for w in self.writes[key] if w.outcome != "refused"]
        certain = [w for w in writes if self.is_certain(w)]
        if held is None:
            if not any(not w.deletes for w in certain):
                return
            for deletion in (w for w in writes if w.deletes):
                later = [w for w in certain if w is not deletion and self.before(deletion, w)]
                if not later:
                    return
            self.problem(f"{key} is lost: no deletion can have been last\n" + self.tell(key))
            return
        meta = held["metadata"]
        token, version = meta["labels"]["token"], version_of(key, meta)
        for write in certain if version is not None else ():
            if write.version is not None and write.version > version:
                self.problem(f"{key} is {token} {version}, older than {write}\n" + self.tell(key))
            if write.saw is not None and write.saw >= version:
                self.problem(f"{key} is {token} {version}, but {write} saw it\n" + self.tell(key))
        for last in (w for w in writes if w.token == token and not w.deletes):
            for write in certain:
                if write is not last and self.before(last, write):
                    self.problem(f"{key} is {last}, but after it came {write}\n" + self.tell(key))

    def check_order(self, key):
        """What happened before has the smaller version, also where neither is the final one."""
        versioned = [w for w in self.writes[key] if w.version is not None and not w.deletes]
        groups = {}
        for write in versioned:
            if write.outcome == "acked":
                groups.setdefault(("all",), []).append((write.end + ORDERED_AFTER, write.version))
                groups.setdefault((write.node, write.disk), []).append((write.end, write.version))
        for read in self.reads[key]:
            if read.version is not None:
                groups.setdefault((read.node, read.life, "life"), []).append((read.end, read.version))
        highest = {}
        for name, group in groups.items():
            group.sort()
            top, tops = "", []
            for _, version in group:
                top = max(top, version)
                tops.append(top)
            highest[name] = ([end for end, _ in group], tops)

        def at(name, moment):
            ends, tops = highest.get(name, ([], []))
            idx = bisect.bisect_left(ends, moment)
            return tops[idx - 1] if idx else ""

        for write in versioned:
            names = [("all",)] if self.is_certain(write) else []
            names += [(write.node, write.disk)] if write.disk is not None else []
            names += [(write.node, write.life, "life")] if write.life is not None else []
            for name in names:
                if at(name, write.begin) >= write.version:
                    self.problem(f"{write} is older than {at(name, write.begin)}, which it followed")
            if write.saw is not None and write.saw >= write.version:
                self.problem(f"{write} is older than what it replaced")
        for read in self.reads[key]:
            for name in ((read.node, read.disk), (read.node, read.life, "life")):
                if read.version is not None and at(name, read.begin) > read.version:
                    self.problem(f"{read} is older than {at(name, read.begin)} on the same node")

    def check_if_match(self, key):
        """An entity tag is good for one change on one node."""
        used = {}
        for write in self.writes[key]:
            if write.if_match is None or write.outcome != "acked" or write.disk is None:
                continue
            place = (write.node, write.disk, write.if_match)
            if place in used:
                self.problem(f"both passed with one tag: {used[place]} and {write}")
            used[place] = write

    def check(self, final):
        self.learn(final)
        for key in KEYS:
            self.check_final(key, final.get(key))
            self.check_order(key)
            self.check_if_match(key)

    def tell(self, key, count=25):
        events = self.writes[key] + self.reads[key]
        events.sort(key=lambda e: e.begin)
        return "\n".join(f"    {event}" for event in events[-count:])


class Writers:
    """Threads that change the keys through every node, until stopped."""

    def __init__(self, nodes, history, seed, per_node=2, pause=0.004):
        self.nodes, self.history, self.pause = nodes, history, pause
        self._stop = threading.Event()
        self._gate = threading.Event()
        self._gate.set()
        self._lock = threading.Lock()
        self._running = 0
        self.threads = [
            threading.Thread(
                target=self._run, args=(nodes[i % len(nodes)], random.Random(f"{seed}/{i}")),
                daemon=True,
            )
            for i in range(per_node * len(nodes))
        ]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self._stop.set()
        self._gate.set()
        for thread in self.threads:
            thread.join(60 * SLOW)
            assert not thread.is_alive(), "a writer hangs"

    def hold(self):
        """Let nobody begin anything, and wait until nobody is at it."""
        self._gate.clear()
        until(lambda: self._running == 0, "the writers pause", 30)

    def release(self):
        self._gate.set()

    def _run(self, home, rng):
        while not self._stop.is_set():
            self._gate.wait()
            with self._lock:
                if not self._gate.is_set():
                    continue
                self._running += 1
            try:
                node = home if rng.random() < 0.8 else rng.choice(self.nodes)
                self._act(node, rng)
            except Exception as error:  # told by the check, not lost with the thread
                self.history.problem(f"writer: {error!r}")
                raise
            finally:
                with self._lock:
                    self._running -= 1
            time.sleep(self.pause * rng.random() * 2)

    def _act(self, node, rng):
        key = rng.choice(KEYS)
        roll = rng.random()
        if roll < 0.30:
            self.put(node, key, rng, wait=rng.random() < 0.1)
        elif roll < 0.45:
            read = self.read(node, key)
            if read and read.etag:
                other = node if rng.random() < 0.7 else rng.choice(self.nodes)
                self.put(other, key, rng, if_match=read.etag)
        elif roll < 0.62:
            self.patch(node, key)
        elif roll < 0.74:
            self.delete(node, key)
        elif roll < 0.86:
            self.apply(node, rng.sample(KEYS, rng.randint(2, 5)), rng)
        elif roll < 0.94:
            self.hand_over(node, key, rng)
        else:
            self.read(node, key)

    # ---- requests ----

    def _path(self, key):
        return Api.path(key[0], key[1])

    def _body(self, key, token, rng):
        kind, name = key
        labels = {"token": token, "base": token}
        spec = {}
        if kind == "routes":
            spec = {"host": host_of(name), "to": [{"backend": rng.choice(("web-a", "web-b"))}]}
        elif kind == "backends":
            spec = {"balance": rng.choice(("Random", "LeastConn"))}
        elif kind == "endpoints":
            backend, _, address = name.partition("/")
            spec = {"backend": backend, "address": address, "weight": rng.randint(1, 200)}
        metadata = {"name": name, "labels": labels}
        if rng.random() < 0.15:  # too big for a datagram
            metadata["annotations"] = {"filler": "x" * rng.randint(500, 4000)}
        if kind != "namespaces":
            metadata["namespace"] = "default"
        return {"kind": _KIND[kind], "metadata": metadata, "spec": spec}

    def _send(self, writes, node, method, path, body=None, headers=None):
        """The answer, or None when there was none."""
        self.history.add(writes)
        answer, outcome, text = None, "unknown", ""
        try:
            answer = node.api.call(method, path, body, headers, timeout=8.0)
            text = f"{answer.status}"
            if answer.status in (200, 201, 202):
                outcome = "acked"
            elif answer.status < 500:
                outcome = "refused"
                if answer.status not in (404, 412):
                    self.history.problem(f"{method} {path} on {node.name}: {answer}")
            else:
                text = repr(answer)
                if answer.status != 503:
                    self.history.problem(f"{method} {path} on {node.name}: {answer}")
                time.sleep(0.02)
        except ConnectionRefusedError as error:
            outcome, text = "refused", repr(error)
            time.sleep(0.02)
        except (OSError, HTTPException) as error:
            text = repr(error)
        for write in writes:
            write.close(outcome, text)
        return answer if outcome == "acked" else None

    def _learn(self, write, answer):
        """An answer shows the object as it is, which is ours or a later one."""
        meta = answer.json().get("metadata")
        if meta and meta["labels"].get("token") == write.token:
            write.version = version_of(write.key, meta)
            write.etag = answer.headers.get("ETag")
            return meta
        return None

    def put(self, node, key, rng, if_match=None, wait=False):
        write = Write(key, self.history.token(), node, if_match=if_match)
        headers = {"If-Match": if_match} if if_match else None
        answer = self._send(
            [write], node, "PUT", self._path(key) + ("?wait=all" if wait else ""),
            self._body(key, write.token, rng), headers,
        )
        if answer:
            self._learn(write, answer)
        return write, answer

    def patch(self, node, key):
        read = self.read(node, key)
        if not read or not read.token:
            return
        write = Write(key, self.history.token(), node)
        answer = self._send(
            [write], node, "PATCH", self._path(key), {"metadata": {"labels": {"token": write.token}}}
        )
        if answer:
            self._learn(write, answer)

    def delete(self, node, key):
        write = Write(key, self.history.token(), node, deletes=True)
        answer = self._send([write], node, "DELETE", self._path(key))
        if key[0] == "backends":
            # It takes its endpoints along: which ones were there is not told.
            taken = []
            for other in KEYS:
                if other[0] == "endpoints" and other[1].startswith(key[1] + "/"):
                    part = Write(other, write.token, node, deletes=True)
                    part.begin, part.end, part.outcome = write.begin, float("inf"), write.outcome
                    if part.outcome == "acked":
                        part.outcome = "unknown"
                    taken.append(part)
            self.history.add(taken)
        if answer:
            write.saw = version_of(key, answer.json()["metadata"])

    def apply(self, node, keys, rng):
        token = self.history.token()
        writes = [Write(key, token, node) for key in keys]
        body = "\n---\n".join(json.dumps(self._body(key, token, rng)) for key in keys)
        self._send(writes, node, "POST", "/v1/apply", body)

    def read(self, node, key):
        read = Read(key, node)
        try:
            answer = node.api.call("GET", self._path(key), timeout=8.0)
        except (OSError, HTTPException):
            return None
        if not read.close() or answer.status not in (200, 404):
            return None
        if answer.status == 200:
            meta = answer.json()["metadata"]
            read.token, read.version = meta["labels"]["token"], version_of(key, meta)
            read.etag = answer.headers["ETag"]
        self.history.add_read(read)
        return read

    def hand_over(self, node, key, rng):
        """A write that every live node has, then one by another node that has seen it."""
        other = rng.choice([n for n in self.nodes if n is not node])
        calm, mark = node.calm, os.path.getsize(node.log_path)
        write, answer = self.put(node, key, rng, wait=True)
        if not answer:
            return
        body = answer.json()
        if not body.get("wait", {}).get("confirmed"):
            return
        read = self.read(other, key)
        if read is None:
            return
        with open(node.log_path, "rb") as log:
            log.seek(mark)
            doubted = b"state=" in log.read()
        if (
            calm is not None and calm == node.calm and not doubted and write.version
            and read.token is not None and read.version < write.version
        ):
            self.history.problem(f"confirmed by all, not there: {write}, {read}")
        self.put(other, key, rng, if_match=read.etag)


class Probers:
    """Ask each node for a route that nobody touches: a node that serves at all serves it."""

    HOST = "steady.chaos.test"

    def __init__(self, nodes, history, wanted):
        self.history, self.wanted = history, wanted
        self.answered = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(node,), daemon=True) for node in nodes
        ]

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(30 * SLOW)
            assert not thread.is_alive(), "a prober hangs"

    def _run(self, node):
        while not self._stop.wait(0.005):
            try:
                answer = node.get(self.HOST, timeout=10.0)
            except (OSError, HTTPException):
                continue
            if (answer.status, answer.text) == (200, self.wanted):
                self.answered += 1
            elif "no peer answered" not in node.log():
                # Without a peer in its first seconds a node serves what it has.
                self.history.problem(f"{node.name} answered {answer} for {self.HOST}")


class Watchers:
    """One reader of /v1/watch per node, which lists again only when it has to."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.held = {node: {} for node in nodes}
        self.lines = self.lists = 0
        self._sockets = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(node,), daemon=True) for node in nodes
        ]

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stop.set()
        for sock in list(self._sockets.values()):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended by itself
        for thread in self._threads:
            thread.join(30 * SLOW)
            assert not thread.is_alive(), "a watcher hangs"

    def problems(self, timeout=10):
        """What watchers and nodes do not agree on. To be called before stop()."""

        def differing():
            return [
                f"{node.name}: watched {self._token(self.held[node].get(name))}, listed "
                f"{self._token(listed.get(name))} of {name}"
                for node in self.nodes
                for listed in [{i["metadata"]["name"]: i for i in node.api.list("routes")}]
                for name in sorted(set(listed) | set(self.held[node]))
                if self._token(self.held[node].get(name)) != self._token(listed.get(name))
            ]

        try:
            until(lambda: not differing(), "watchers have seen everything", timeout)
        except AssertionError:
            return differing()
        return []

    @staticmethod
    def _token(item):
        return item and (item["metadata"]["resourceVersion"], item["metadata"].get("labels"))

    def _run(self, node):
        since = None
        while not self._stop.wait(0.05):
            try:
                if since is None:
                    listed = node.api.call("GET", "/v1/routes", expect=200, timeout=8.0).json()
                    self.held[node] = {i["metadata"]["name"]: i for i in listed["items"]}
                    since = listed["since"]
                    self.lists += 1
                since = self._follow(node, since)
            except (OSError, HTTPException, ValueError, AssertionError):
                continue

    def _follow(self, node, since):
        """Where to go on; None: list again."""
        connection = HTTPConnection("127.0.0.1", node.admin_port, timeout=8 * SLOW)
        try:
            connection.request("GET", f"/v1/watch?kind=routes&since={since}")
            self._sockets[node] = connection.sock  # the response takes it from the connection
            response = connection.getresponse()
            if response.status == 410:
                return None
            if response.status != 200:
                return since
            while not self._stop.is_set():
                line = response.readline()
                if not line.endswith(b"\n"):
                    return since
                event = json.loads(line)
                self.lines += 1
                if event["type"] == "gone":
                    return None
                since = event["since"]
                if event["type"] == "changed":
                    self.held[node][event["object"]["metadata"]["name"]] = event["object"]
                elif event["type"] == "deleted":
                    self.held[node].pop(event["object"]["metadata"]["name"], None)
            return since
        except (OSError, HTTPException):
            return since
        finally:
            connection.close()


class Nemesis:
    """Faults in an order that the seed alone decides."""

    KINDS = (
        ("kill", 5), ("freeze", 4), ("kill-all", 2), ("wipe", 3), ("damage", 2), ("stop", 2),
        ("kill-two", 2), ("freeze-and-kill", 2), ("kill-early", 2), ("restore", 3), ("calm", 2),
    )

    def __init__(self, cluster, writers, seed, steps):
        self.cluster, self.writers = cluster, writers
        self.rng = random.Random(f"nemesis/{seed}")
        self.steps = [self._plan() for _ in range(steps)]
        self.done = []
        self._epoch = 0
        self._skewed = None
        for node in cluster:
            node.life, node.disk, node.calm = 0, 0, None

    def _plan(self):
        rng = self.rng
        names, weights = zip(*self.KINDS)
        order = list(self.cluster.nodes)
        rng.shuffle(order)
        env = {}
        if rng.random() < 0.3:
            env["SKEIN_TEST_GOSSIP_DROP"] = str(rng.choice((5, 20, 40)))
        if rng.random() < 0.3:
            env["SKEIN_TEST_CLOCK_OFFSET_MS"] = str(rng.randint(-CLOCK_OFF_MS, CLOCK_OFF_MS))
        return {
            "kind": rng.choices(names, weights)[0], "nodes": order, "env": env,
            "down": rng.choice((0.0, 0.1, 0.5, 1.5)), "frozen": rng.uniform(0.5, 4.0),
            "rest": rng.uniform(0.1, 1.0), "damage": rng.choice(("header", "pages", "cut", "wal")),
        }

    def run(self, deadline):
        for step in self.steps:
            if time.monotonic() >= deadline:
                break
            text = f"{step['kind']} {[n.name for n in step['nodes'][:2]]} {step['env']}"
            self.done.append(f"{time.monotonic():.3f} {text} down {step['down']}")
            self.check_alive()
            self._disturb()
            getattr(self, "_" + step["kind"].replace("-", "_"))(step)
            time.sleep(step["rest"])
            self.check_alive()

    def check_alive(self):
        for node in self.cluster:
            assert not node.expected_up or node.is_running(), (
                f"{node.name} ended with {node.process.returncode}\n{node.log_tail()}"
            )

    def _disturb(self):
        self._epoch += 1
        for node in self.cluster:
            node.calm = None

    def _env(self, node, step):
        """One clock is off at a time; the drop is this node's own."""
        env = dict(step["env"])
        if self._skewed not in (None, node):
            env.pop("SKEIN_TEST_CLOCK_OFFSET_MS", None)
        elif "SKEIN_TEST_CLOCK_OFFSET_MS" in env:
            self._skewed = node
        else:
            self._skewed = None
        return env

    def _down(self, node):
        node.life += 1
        node.expected_up = False
        node.process.kill()

    def _up(self, node, step):
        node.process.wait()
        self.cluster.restart(node, env=self._env(node, step))
        node.expected_up = True

    def _settle(self):
        for node in self.cluster:
            node.wait_ready(40)

    # ---- faults ----

    def _kill(self, step):
        node = step["nodes"][0]
        self._down(node)
        node.process.wait()
        if not os.path.exists(_backup(node)):
            shutil.copytree(node.data, _backup(node))
        time.sleep(step["down"])
        self._up(node, step)

    def _kill_early(self, step):
        """Again and again while it is starting or catching up."""
        node = step["nodes"][0]
        for pause in (0.02, 0.05 + step["down"] / 10, 0.3):
            self._down(node)
            self._up(node, step)
            time.sleep(pause)

    def _kill_two(self, step):
        for node in step["nodes"][:2]:
            self._down(node)
            time.sleep(step["down"] / 4)
        time.sleep(step["down"])
        for node in step["nodes"][:2]:
            self._up(node, step)

    def _kill_all(self, step):
        for node in step["nodes"]:
            self._down(node)
        time.sleep(step["down"])
        for node in step["nodes"]:
            self._up(node, step)

    def _stop(self, step):
        node = step["nodes"][0]
        node.life += 1
        node.expected_up = False
        node.terminate()
        code = node.process.wait(40 * SLOW)
        assert code == 0, f"{node.name} ended with {code} on SIGTERM\n{node.log_tail()}"
        self._up(node, step)

    def _freeze(self, step):
        node = step["nodes"][0]
        node.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(step["frozen"])
        finally:
            node.process.send_signal(signal.SIGCONT)

    def _freeze_and_kill(self, step):
        """One sleeps while another one dies and comes back."""
        frozen, node = step["nodes"][:2]
        frozen.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(step["frozen"] / 4)
            self._down(node)
            time.sleep(step["down"])
            self._up(node, step)
            time.sleep(step["frozen"] / 4)
        finally:
            frozen.process.send_signal(signal.SIGCONT)

    def _all_elsewhere(self, node):
        """Another node has every write that this one has."""

        def same():
            members = node.api.cluster()["members"]
            return [m["name"] for m in members
                    if not m["self"] and m["state"] == "alive" and m["inStep"]]

        until(same, f"somebody has all of {node.name}'s writes", 40)

    def _lose(self, step, what):
        node = step["nodes"][0]
        self._settle()
        self.writers.hold()
        try:
            self._all_elsewhere(node)
            node.disk += 1
            self._down(node)
            node.process.wait()
            what(node)
        finally:
            self.writers.release()
        time.sleep(step["down"])
        self._up(node, step)
        # Until it has it all again its writes' only copies are where they were.
        self._settle()

    def _wipe(self, step):
        self._lose(step, lambda node: node.wipe())

    def _restore(self, step):
        """The folder as it was at the node's first death, as from a backup."""
        backed_up = [node for node in step["nodes"] if os.path.exists(_backup(node))]
        if not backed_up:
            self._kill(step)
            return

        def put_back(node):
            node.wipe()
            shutil.copytree(_backup(node), node.data)

        self._lose({**step, "nodes": backed_up}, put_back)

    def _damage(self, step):
        self._lose(step, lambda node: damage(node, step["damage"]))

    def _calm(self, step):
        """No fault: what holds only in peace is checked now."""
        self._settle()
        self.cluster.wait_members(40)
        for node in self.cluster:
            node.calm = self._epoch
        time.sleep(1.0)


def _backup(node):
    return node.data + ".backup"


def damage(node, how):
    path = os.path.join(node.data, "skein.db")
    log = path + "-wal"
    if how == "wal":
        # The log's first half goes to waste, and with it all that was not folded in.
        if os.path.exists(log) and os.path.getsize(log) > 4096:
            with open(log, "r+b") as file:
                file.seek(32)
                file.write(os.urandom(os.path.getsize(log) // 2))
        return
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        if how == "header":
            file.write(b"\0" * 100)
        elif how == "cut":
            file.truncate(size // 2)
        else:
            for offset in range(4096, size, 4096):
                file.seek(offset)
                file.write(os.urandom(600))


# ---- after it ----


def export(node):
    return node.api.call("GET", "/v1/export", expect=200).body


def ballast(count, seed):
    """Objects that nobody changes, so that catching up takes more than one datagram."""
    rng = random.Random(f"ballast/{seed}")
    return [
        {
            "kind": "Namespace", "metadata": {"name": f"ballast-{i}"},
            "spec": {"description": "x" * rng.randint(10, 1500)},
        }
        for i in range(count)
    ]


def held_objects(node):
    """{key: object} of the keys that the writers change."""
    held = {}
    for kind in _KIND:
        for item in node.api.list(kind):
            key = (kind, item["metadata"]["name"])
            if key in KEYS:
                held[key] = item
    return held


def wait_agreement(cluster, timeout=60):
    def same():
        return len({export(node) for node in cluster}) == 1

    until(same, "all nodes export the same", timeout)
    until(
        lambda: all(m["inStep"] for node in cluster for m in node.api.cluster()["members"]
                    if m["state"] == "alive"),
        "every node says that all are in step", timeout,
    )
    assert same(), "exports differ among nodes that are in step"


def check_routes(cluster, origins):
    """Each node serves what is admitted, and nothing else."""
    lists = [node.api.list("routes") for node in cluster]
    for other, node in zip(lists, cluster):
        assert other == lists[0], f"{node.name} shows other routes than {cluster[0].name}"
    serving = {}
    for item in lists[0]:
        if item["status"]["admitted"]:
            host = item["spec"]["host"]
            assert host not in serving, f"two routes are admitted for {host}"
            serving[host] = item["spec"]["to"][0]["backend"]
    for host in (host_of(f"k{i}") for i in range(HOSTS)):
        for node in cluster:
            wanted = (200, origins[serving[host]] + "\n") if host in serving else (404, None)

            def right(node=node, host=host, wanted=wanted):
                answer = node.get(host)
                return answer.status == wanted[0] and wanted[1] in (None, answer.text)

            until(right, f"{node.name} serves {host} as {wanted}", 10)


def memory_mib(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024


def is_sanitized(node):
    with open(f"/proc/{node.process.pid}/maps", encoding="utf-8", errors="replace") as file:
        return re.search(r"lib[atu]\w*san", file.read()) is not None


def error_lines(node):
    return [line for line in node.log().splitlines() if re.match(r"\S+ error ", line)]
