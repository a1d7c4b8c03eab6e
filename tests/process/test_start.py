"""How a node starts, and how it refuses to: settings, key file, ports, exit codes and messages."""

import os
import re
import socket

import pytest

from support.cluster import Node, make_key, run_skeind
from support.ports import free_port
from support.wait import until


@pytest.fixture
def node(tmp_path):
    node = Node(str(tmp_path), "solo", make_key(str(tmp_path / "cluster.key")))
    yield node
    node.stop()
    if os.path.exists(node.socket):
        os.unlink(node.socket)
    assert not node.faults(), node.faults()


def _settings(node, changes=()):
    lines = {
        "node": f"node: {{name: solo, dataDir: {node.data}, workers: 1}}",
        "listen": f'listen: {{http: ["127.0.0.1:{node.http_port}"]}}',
        "cluster": f'cluster: {{bind: "{node.gossip_address}", advertise: "{node.gossip_address}", '
                   f"join: [], keyFile: {node.key}}}",
        "admin": f'admin: {{unix: "{node.socket}", listen: "127.0.0.1:{node.admin_port}"}}',
        "log": "log: {level: info, format: text, access: off}",
        **dict(changes),
    }
    path = os.path.join(node.folder, "skein.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines.values()) + "\n")
    return path


def _replaced(arguments, flag, value):
    result = list(arguments)
    result[result.index(flag) + 1] = value
    return result


@pytest.mark.smoke
def test_version_and_help():
    assert re.search(r"\d+\.\d+\.\d+", run_skeind("--version").stdout)
    result = run_skeind("--help")
    assert result.returncode == 0
    for word in ("--config", "node.name", "cluster.keyFile", "SKEIN_NODE_DATA_DIR", "--check"):
        assert word in result.stdout, result.stdout


def test_settings_file(node):
    path = _settings(node)
    assert run_skeind("--config", path, "--check").returncode == 0
    assert not os.path.exists(node.data), "--check must not touch the data folder"
    # A flag wins over a variable, a variable over the file.
    env = {"SKEIN_NODE_NAME": "from-variable"}
    node.arguments = lambda join=(): ["--config", path]
    node.start(env=env)
    node.wait_ready()
    assert [m["name"] for m in node.api.cluster()["members"]] == ["from-variable"]
    node.stop()
    node.start(env=env, extra=["--node.name", "from-flag"])
    node.wait_ready()
    assert "from-flag" in [m["name"] for m in node.api.cluster()["members"]]


@pytest.mark.parametrize("change, words", [
    ({"node": "node: {name: solo, dataDirectory: /tmp/x}"}, ["node.dataDirectory", "skein.yaml:1"]),
    ({"log": "log: {level: loud}"}, ["log.level", "loud", "debug"]),
    ({"log": "logs: {level: info}"}, ["logs", "skein.yaml:5"]),
    ({"listen": 'listen: {http: ["127.0.0.1:99999"]}'}, ["listen.http", "99999"]),
    ({"listen": "listen: {http: {a: b}}"}, ["listen.http"]),
    ({"node": "node: {name: 'not a name!', dataDir: /tmp/x}"}, ["node.name"]),
    ({"node": "node: {name: solo, dataDir: /tmp/x, workers: many}"}, ["node.workers", "many"]),
    ({"node": "node: {name: solo, name: twice}"}, ["name", "twice"]),
    ({"admin": 'admin: {listen: "0.0.0.0:7980"}'}, ["admin.listen", "loopback"]),
    ({"cluster": "cluster: ["}, ["skein.yaml:"]),
])
def test_settings_that_are_wrong(node, change, words):
    path = _settings(node, change)
    result = run_skeind("--config", path, "--check")
    assert result.returncode in (64, 78), result
    for word in words:
        assert word in result.stderr, result.stderr


def test_flags_and_variables_that_are_wrong(node):
    result = run_skeind(*node.arguments(), "--nonsense", "1")
    assert result.returncode == 64 and "--nonsense" in result.stderr, result
    result = run_skeind(*_replaced(node.arguments(), "--log.level", "loud"))
    assert result.returncode == 64 and "log.level" in result.stderr and "loud" in result.stderr
    arguments = [a for a in node.arguments() if a not in ("--log.level", "info")]
    result = run_skeind(*arguments, "--check", env={"SKEIN_LOG_LEVEL": "loud"})
    assert result.returncode == 64 and "log.level" in result.stderr, result
    result = run_skeind("--config", os.path.join(node.folder, "none.yaml"))
    assert result.returncode == 78 and "none.yaml" in result.stderr, result


@pytest.mark.parametrize("flag", ["--listen.http", "--cluster.bind", "--admin.listen"])
def test_port_in_use(node, flag):
    port = free_port()
    with socket.socket() as taken, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        udp.bind(("127.0.0.1", port))
        arguments = _replaced(node.arguments(), flag, f"127.0.0.1:{port}")
        result = run_skeind(*arguments)
        assert result.returncode == 69, result
        assert f"127.0.0.1:{port}" in result.stderr, result.stderr
        assert "Sanitizer" not in result.stderr


def test_the_socket_of_a_running_node_is_not_taken(node, tmp_path):
    node.start()
    node.wait_ready()
    other = Node(str(tmp_path), "other", node.key)
    result = run_skeind(*_replaced(other.arguments(), "--admin.unix", node.socket))
    assert result.returncode == 69 and node.socket in result.stderr, result
    assert node.api.is_ready()
    assert node.ctl("cluster").returncode == 0


def test_a_stale_socket_is_replaced(node):
    node.start()
    node.wait_ready()
    node.kill()
    assert os.path.exists(node.socket)
    node.start()
    node.wait_ready()


def test_the_data_folder_of_a_running_node_is_not_taken(node, tmp_path):
    node.start()
    node.wait_ready()
    other = Node(str(tmp_path), "other", node.key)
    result = run_skeind(*_replaced(other.arguments(), "--node.dataDir", node.data))
    assert result.returncode not in (0, 1) and node.data in result.stderr, result
    assert node.api.is_ready()


@pytest.mark.parametrize("content", [
    None, b"", b"short\n", b"z" * 64 + b"\n", os.urandom(5000), b"a" * 100000,
], ids=["missing", "empty", "short", "not-hex", "binary", "huge"])
def test_key_file_that_is_none(node, content):
    path = os.path.join(node.folder, "bad.key")
    if content is not None:
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, 0o600)
    result = run_skeind(*_replaced(node.arguments(), "--cluster.keyFile", path))
    assert result.returncode == 78, result
    assert path in result.stderr, result.stderr


def test_key_file_that_may_not_be_read(node):
    if os.getuid() == 0:
        path = node.folder  # root reads everything but a folder
    else:
        path = os.path.join(node.folder, "secret.key")
        with open(path, "w", encoding="ascii") as file:
            file.write("x")
        os.chmod(path, 0)
    result = run_skeind(*_replaced(node.arguments(), "--cluster.keyFile", path))
    assert result.returncode == 78 and path in result.stderr, result


def test_data_folder_that_cannot_be_made(node):
    path = os.path.join(node.log_path, "data")
    with open(node.log_path, "w", encoding="ascii") as file:
        file.write("\n")
    result = run_skeind(*_replaced(node.arguments(), "--node.dataDir", path))
    assert result.returncode not in (0, -6, -11) and path in result.stderr, result


@pytest.mark.timing
def test_node_without_peers_says_so_and_is_ready_after_a_while(node):
    """Its peers are down: it serves what it has once the time limit is over, and not before."""
    node.start(join=[f"127.0.0.1:{free_port()}"])
    until(lambda: node.api.call("GET", "/healthz").status == 200, "it lives")
    answer = node.api.call("GET", "/readyz")
    assert answer.status == 503 and "peer" in answer.text, answer
    node.wait_ready(60)


def test_sigint_and_sigterm_end_with_0(node):
    for signal_number in (2, 15):
        node.start()
        node.wait_ready()
        node.process.send_signal(signal_number)
        assert node.wait_exit() == 0, node.log_tail()
