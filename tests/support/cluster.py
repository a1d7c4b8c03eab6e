"""Real skeind processes on loopback: start, stop, kill, wipe, restart, and what they left in logs.

SKEIN_BIN is the build folder with skeind and skeinctl (build/release). Every node logs to a file of
its own. A node that dies of anything but what the test asked for, or whose log holds a sanitizer's
report, fails the test that owns it.
"""

import glob
import os
import re
import shutil
import signal
import subprocess

from support import client
from support.api import Api
from support.ports import free_port
from support.wait import SLOW, Hopeless, Timeout, until

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("SKEIN_BIN", os.path.join(TOP, "build/release")))
_TSAN_KNOWN = os.path.join(TOP, "tests/support/tsan.supp")
SKEIND = os.path.join(BIN, "skeind")
SKEINCTL = os.path.join(BIN, "skeinctl")

_FAULTS = re.compile(
    rb"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|assertion failed|ASSERT"
)


def _sanitizer_options(log_prefix):
    """Reports go to files beside the log, one per process."""
    return {
        "ASAN_OPTIONS": f"log_path={log_prefix}:detect_stack_use_after_return=0:abort_on_error=0",
        "UBSAN_OPTIONS": f"log_path={log_prefix}:print_stacktrace=1",
        "TSAN_OPTIONS": f"log_path={log_prefix}:halt_on_error=0:suppressions={_TSAN_KNOWN}",
        "LSAN_OPTIONS": "report_objects=1",
    }


def run_skeind(*args, env=None, timeout=20.0):
    """Run skeind to its end: the result with returncode, stdout and stderr as text."""
    return subprocess.run(
        [SKEIND, *args], capture_output=True, text=True, timeout=timeout * SLOW,
        stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, check=False,
    )


def skeinctl(*args, server=None, stdin=None, env=None, timeout=30.0):
    """Run skeinctl to its end. server: a node or a URL."""
    environ = {k: v for k, v in os.environ.items() if k != "SKEIN_SERVER"}
    if server is not None:
        environ["SKEIN_SERVER"] = server.url if isinstance(server, Node) else server
    environ.update(env or {})
    return subprocess.run(
        [SKEINCTL, *args], capture_output=True, text=True, timeout=timeout * SLOW, input=stdin,
        env=environ, check=False,
    )


def make_key(path):
    """A new cluster key in a file, made as an operator makes it."""
    result = skeinctl("keygen")
    assert result.returncode == 0, result.stderr
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(result.stdout)
    return path


class Node:
    """One node: its ports and folder stay over restarts."""

    count = 0

    def __init__(self, folder, name, key, workers=2):
        self.name = name
        self.key = key
        self.workers = workers
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        self.data = os.path.join(self.folder, "data")
        self.log_path = os.path.join(self.folder, "log")
        # A unix socket's path is short; pytest's folders are not.
        self.socket = f"/tmp/skein-{os.getpid()}-{free_port()}.sock"
        self.http_port = free_port()
        # Nodes share a machine, and a port of a TcpRoute is open on all of them.
        Node.count += 1
        self.tcp_host = f"127.0.{1 + Node.count // 250}.{1 + Node.count % 250}"
        self.gossip_port = free_port()
        self.admin_port = free_port()
        self.api = Api(self.admin_port)
        self.url = f"http://127.0.0.1:{self.admin_port}"
        self.gossip_address = f"127.0.0.1:{self.gossip_port}"
        self.process = None
        self.last_pid = None
        self.expected_faults = False

    def arguments(self, join=()):
        return [
            "--node.name", self.name,
            "--node.dataDir", self.data,
            "--node.workers", str(self.workers),
            "--listen.http", f"127.0.0.1:{self.http_port}",
            "--listen.tcp", self.tcp_host,
            "--cluster.bind", self.gossip_address,
            "--cluster.advertise", self.gossip_address,
            "--cluster.join", ",".join(join),
            "--cluster.keyFile", self.key,
            "--admin.unix", self.socket,
            "--admin.listen", f"127.0.0.1:{self.admin_port}",
            "--log.level", os.environ.get("SKEIN_TEST_LOG", "info"),
            "--log.format", "text",
            "--log.access", "off",
        ]

    def start(self, join=(), extra=(), env=None):
        assert not self.is_running(), f"{self.name} runs already"
        environ = {**os.environ, **_sanitizer_options(os.path.join(self.folder, "san"))}
        environ.update(env or {})
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [SKEIND, *self.arguments(join), *extra],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environ,
            )
        self.last_pid = self.process.pid
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def wait_ready(self, timeout=30.0):
        def ready():
            if self.process.poll() is not None:
                raise Hopeless(
                    f"{self.name} ended with {self.process.returncode}\n{self.log_tail()}"
                )
            return self.api.is_ready()

        try:
            until(ready, f"{self.name} is ready", timeout)
        except Timeout as error:
            raise Timeout(f"{error}\n{self.log_tail()}") from None
        return self

    def wait_exit(self, timeout=20.0):
        """The exit code of a node that ends by itself."""
        return self.process.wait(timeout * SLOW)

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def terminate(self):
        """SIGTERM; see wait_exit."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self, timeout=30.0):
        """Stop gracefully; the exit code must be 0."""
        if not self.is_running():
            return
        self.terminate()
        try:
            code = self.process.wait(timeout * SLOW)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} did not stop within {timeout * SLOW} s of SIGTERM\n{self.log_tail()}"
            ) from None
        assert code == 0, f"{self.name} ended with {code} after SIGTERM\n{self.log_tail()}"

    def wipe(self):
        """An empty data folder, as after the loss of a disk."""
        shutil.rmtree(self.data)

    def log(self):
        try:
            with open(self.log_path, "rb") as file:
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def log_tail(self, lines=40):
        text = self.log().splitlines()[-lines:]
        for path in glob.glob(os.path.join(self.folder, "san.*")):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += [f"--- {path}"] + file.read().splitlines()[:80]
        return f"--- last lines of {self.name}:\n" + "\n".join(text)

    def faults(self):
        """What a sanitizer or an assertion has said, or None."""
        found = glob.glob(os.path.join(self.folder, "san.*"))
        if not found and os.path.exists(self.log_path):
            with open(self.log_path, "rb") as file:
                found = _FAULTS.findall(file.read())
        return self.log_tail() if found else None

    def get(self, host, path="/", **kwargs):
        """A request through this node's data plane."""
        return client.get(self.http_port, host, path, **kwargs)

    def ctl(self, *args, **kwargs):
        return skeinctl(*args, server=self, **kwargs)


class Cluster:
    """Nodes with one key. The first start makes the first node the first of its cluster."""

    def __init__(self, folder, size=3, workers=2, prefix="r"):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.key = make_key(os.path.join(self.folder, "cluster.key"))
        self.nodes = [
            Node(self.folder, f"{prefix}{i + 1}", self.key, workers) for i in range(size)
        ]

    def __getitem__(self, idx):
        return self.nodes[idx]

    def __iter__(self):
        return iter(self.nodes)

    def others(self, node):
        return [other.gossip_address for other in self.nodes if other is not node]

    def start(self):
        self.nodes[0].start()
        for node in self.nodes[1:]:
            node.start(join=[self.nodes[0].gossip_address])
        return self.wait_ready()

    def restart(self, node, **kwargs):
        """Start a node that is down; it is told of all others."""
        return node.start(join=self.others(node), **kwargs)

    def wait_ready(self, timeout=30.0):
        for node in self.nodes:
            if node.is_running():
                node.wait_ready(timeout)
        self.wait_members(timeout)
        return self

    def running(self):
        return [node for node in self.nodes if node.is_running()]

    def wait_members(self, timeout=20.0):
        """Every running node sees every running node alive."""
        names = {node.name for node in self.running()}

        def all_seen():
            for node in self.running():
                seen = {m["name"] for m in node.api.cluster()["members"] if m["state"] == "alive"}
                if not names <= seen:
                    return False
            return True

        until(all_seen, f"{sorted(names)} see each other", timeout)

    def wait_in_step(self, timeout=20.0):
        """Every running node has the same revision."""

        def same():
            return len({node.api.cluster()["revision"] for node in self.running()}) == 1

        until(same, "all nodes have the same revision", timeout)

    def stop(self):
        """End everything, then raise if anything went wrong on the way."""
        problems = []
        for node in self.nodes:
            if node.is_running():
                node.terminate()
        for node in self.nodes:
            try:
                if node.is_running():
                    code = node.process.wait(30 * SLOW)
                    if code != 0:
                        problems.append(f"{node.name} ended with {code}\n{node.log_tail()}")
            except subprocess.TimeoutExpired:
                node.kill()
                problems.append(f"{node.name} did not stop on SIGTERM\n{node.log_tail()}")
            if os.path.exists(node.socket):
                os.unlink(node.socket)
            if node.faults() and not node.expected_faults:
                problems.append(node.faults())
        assert not problems, "\n".join(problems)

    def logs(self, lines=40):
        return "\n".join(node.log_tail(lines) for node in self.nodes)
