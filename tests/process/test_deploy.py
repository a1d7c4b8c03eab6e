"""deploy/run.sh as a person uses it: up, a node killed and started again, Ctrl-C, nothing left."""

import os
import re
import signal
import subprocess

import pytest

from support.cluster import BIN, TOP
from support.wait import until

pytestmark = [
    pytest.mark.timing,
    pytest.mark.skipif(
        BIN != os.path.join(TOP, "build/release"), reason="deploy/run.sh runs the release build"
    ),
]


def _of_this_run():
    """Processes that use files of build/run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        here = os.path.join(TOP, "build/run/") in line or ("build/run/" in line and where == TOP)
        if here and int(pid) != os.getpid():
            found.append((int(pid), line))
    return found


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_up_kill_restart_and_end(tmp_path, ending):
    assert not _of_this_run(), "another deploy/run.sh is running"
    log = tmp_path / "out"
    with open(log, "wb") as out:
        # A session of its own, as on a terminal; SIGINT then reaches the whole group.
        script = subprocess.Popen(
            [os.path.join(TOP, "deploy/run.sh")], stdout=out, stderr=out,
            stdin=subprocess.DEVNULL, start_new_session=True, cwd="/",
            # As a terminal has it: whoever started these tests in the background ignores it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    by_hand = None
    try:
        until(lambda: "Ctrl-C" in log.read_text() or script.poll() is not None, "the cluster is up", 120)
        text = log.read_text()
        assert script.poll() is None, text
        assert re.search(r"r3\s+http://shop.example.com/api\s+12\s+12\s+api-1 12", text), text

        def run(line, **kwargs):
            return subprocess.run(
                ["bash", "-c", line], cwd=TOP, capture_output=True, text=True, check=False, **kwargs
            )

        # The lines that it prints work as they are.
        server = re.search(r"export SKEIN_SERVER=\S+", text).group(0)
        curl = re.search(r"curl -H .*", text).group(0)
        assert run(curl).stdout == "api-1\n"
        for line in re.findall(r"build/release/skeinctl [^#\n]*", text):
            result = run(f"{server}; {line}")
            assert result.returncode == 0, f"{line}: {result.stderr}"
        kill = re.search(r"kill -9 \d+", text).group(0)
        assert run(kill).returncode == 0
        until(lambda: "r2 (process" in log.read_text(), "the end of r2 is told", 10)
        assert run(curl).stdout == "api-1\n"
        restart = re.search(r"build/release/skeind --config \S+/r2/skein.yaml", text).group(0)
        by_hand = subprocess.Popen(
            restart.replace(TOP + "/", "").split(), cwd=TOP, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        until(lambda: re.search(r"r2\s.*alive", run(f"{server}; build/release/skeinctl cluster").stdout),
              "r2 is back", 20)
    finally:
        if ending == signal.SIGINT:
            os.killpg(script.pid, ending)
        else:
            script.send_signal(ending)
        try:
            code = script.wait(60)
        finally:
            if by_hand is not None:
                assert by_hand.wait(10) == 0, "the node started by hand was not stopped"
    assert "run.sh: line" not in log.read_text(), "the shell speaks for itself"
    assert code == (130 if ending == signal.SIGINT else 143)
    assert not _of_this_run(), "processes are left behind"


def test_taken_port_is_named(tmp_path):
    import socket

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 21082))
        taken.listen()
        result = subprocess.run(
            [os.path.join(TOP, "deploy/run.sh"), "--once"], capture_output=True, text=True, check=False
        )
    assert result.returncode == 1
    assert "21082" in result.stderr and "r2" in result.stderr, result.stderr
    assert not _of_this_run()


def test_usage():
    result = subprocess.run(
        [os.path.join(TOP, "deploy/run.sh"), "--nonsense"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 64 and "--once" in result.stderr
