"""TcpRoute objects on real nodes: ports, claims, conflicts, changes, what a user reads of them."""

import json
import os
import socket
import subprocess

import pytest

from support.api import backend, documents, route, tcp_route
from support.cluster import SKEIND
from support.ports import free_port
from support.proxy_driver import Script, Wire
from support.wait import SLOW, until


def says(name):
    def handler(wire, _):
        wire.send(name + "\n")
        while data := wire.sock.recv(65536):
            wire.sock.sendall(data)
    return handler


@pytest.fixture
def origin():
    """origin(name): an endpoint that says its name and echoes."""
    made = []

    def make(name):
        made.append(Script(says(name)))
        return made[-1]

    yield make
    for script in made:
        script.close()


def dial(node, port):
    sock = socket.create_connection((node.tcp_host, port), timeout=10 * SLOW)
    return Wire(sock, 10)


def who(node, port):
    wire = dial(node, port)
    try:
        return wire.until(b"\n").decode().strip()
    finally:
        wire.close()


def refuses(node, port):
    try:
        dial(node, port).close()
        return False
    except ConnectionRefusedError:
        return True


def status(node, name, namespace):
    return node.api.get("tcproutes", name, namespace)["status"]


@pytest.mark.smoke
def test_a_route_serves_on_every_node(shared, unique, origin):
    one, two = origin("one"), origin("two")
    port = free_port()
    shared[0].api.apply(documents(
        backend("db", one.address, namespace=unique, protocol="Tcp"),
        tcp_route("db", port, "db", namespace=unique),
    ), "?wait=all")
    wires = []
    for node in shared:
        wire = dial(node, port)
        assert wire.until(b"\n") == b"one\n"
        wires.append(wire)
        assert status(node, "db", unique) == {"admitted": True, "reason": "Admitted"}
    # Another endpoint: those that are open stay.
    shared[1].api.apply(backend("db", two.address, namespace=unique), "?wait=all")
    for node, wire in zip(shared, wires):
        assert who(node, port) == "two"
        wire.send(b"still")
        assert wire.exactly(5) == b"still"
    # Removed: port and connections close.
    shared[2].api.delete("tcproutes", "db", unique)
    for node, wire in zip(shared, wires):
        assert wire.rest() == b""
        until(lambda node=node: refuses(node, port), "the port is closed")


def test_the_older_route_has_the_port(shared, unique, origin):
    port = free_port()
    shared[0].api.apply(documents(
        backend("one", origin("one").address, namespace=unique),
        backend("two", origin("two").address, namespace=unique),
    ))
    shared[0].api.apply(tcp_route("first", port, "one", namespace=unique), "?wait=all")
    shared[1].api.apply(tcp_route("second", port, "two", namespace=unique), "?wait=all")
    for node in shared:
        assert who(node, port) == "one"
        told = status(node, "second", unique)
        assert (told["admitted"], told["reason"]) == (False, "PortAlreadyClaimed")
        assert told["claimedBy"] == f"{unique}/first"
    open_one = dial(shared[0], port)
    open_one.until(b"\n")
    shared[2].api.delete("tcproutes", "first", unique)
    for node in shared:
        until(lambda node=node: who(node, port) == "two", "the other one serves")
    assert open_one.rest() == b""
    shared[0].api.delete("tcproutes", "second", unique)


def test_a_port_in_use_is_told_and_tried_again(shared, unique, origin):
    node = shared[0]
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind((node.tcp_host, 0))
    taken.listen()
    port = taken.getsockname()[1]
    node.api.apply(documents(
        backend("db", origin("one").address, namespace=unique),
        tcp_route("db", port, "db", namespace=unique),
        tcp_route("missing", free_port(), "nobody", namespace=unique),
    ), "?wait=all")
    told = status(node, "db", unique)
    assert (told["admitted"], told["reason"]) == (False, "PortNotAvailable")
    assert "in use" in told["message"] and node.tcp_host in told["message"]
    assert who(shared[1], port) == "one"  # where it is free
    assert status(shared[1], "db", unique)["admitted"] is True
    assert "a TCP port is not open" in node.log()
    assert status(node, "missing", unique)["missingBackends"] == ["nobody"]
    taken.close()
    until(lambda: status(node, "db", unique)["admitted"], "it was tried again", 20)
    assert who(node, port) == "one"


def test_ports_of_the_node_itself(make_cluster, origin):
    cluster = make_cluster(1)
    node = cluster[0]
    node.start(extra=["--listen.tcp", "127.0.0.1"])
    node.wait_ready()
    node.api.apply(documents(
        backend("db", origin("one").address),
        tcp_route("admin", node.admin_port, "db"),
        tcp_route("gossip", node.gossip_port, "db"),
        tcp_route("http", node.http_port, "db"),
    ))
    for name, setting in (("admin", "admin.listen"), ("gossip", "cluster.bind"),
                          ("http", "listen.http")):
        told = status(node, name, "default")
        assert told["reason"] == "PortNotAvailable"
        assert setting in told["message"]
    assert node.api.is_ready()


def test_a_node_without_addresses_says_so(make_cluster, origin):
    cluster = make_cluster(1)
    node = cluster[0]
    node.start(extra=["--listen.tcp", ""])
    node.wait_ready()
    port = free_port()
    node.api.apply(documents(backend("db", origin("one").address), tcp_route("db", port, "db")))
    told = status(node, "db", "default")
    assert told["reason"] == "PortNotAvailable" and "listen.tcp" in told["message"]
    assert refuses(node, port)


def test_policies_of_a_route(shared, unique, origin):
    node = shared[0]
    ports = [free_port() for _ in range(4)]
    node.api.apply(documents(
        backend("db", origin("in").address, namespace=unique),
        tcp_route("denied", ports[0], "db", namespace=unique, denyFrom=["127.0.0.0/8"]),
        tcp_route("few", ports[1], "db", namespace=unique, limits={"connections": 1}),
        tcp_route("slow", ports[2], "db", namespace=unique,
                  rateLimit={"requests": 2, "window": "1h"}),
        tcp_route("silent", ports[3], "db", namespace=unique, timeouts={"tunnel": "300ms"}),
    ), "?wait=all")
    assert dial(node, ports[0]).rest() == b""
    first = dial(node, ports[1])
    assert first.until(b"\n") == b"in\n"
    assert dial(node, ports[1]).rest() == b""
    assert [who(node, ports[2]) for _ in range(2)] == ["in", "in"]
    assert dial(node, ports[2]).rest() == b""
    wire = dial(node, ports[3])
    assert wire.rest() == b"in\n"
    first.close()
    for name in ("denied", "few", "slow", "silent"):
        node.api.delete("tcproutes", name, unique)


def test_what_is_refused(shared, unique):
    api = shared[0].api
    for spec, field, text in (
        ({"port": 0}, "spec.port", "0 is below 1"),
        ({"port": 70000}, "spec.port", "70000 is above 65535"),
        ({"port": 1, "timeouts": {"server": "1s"}}, "spec.timeouts.server", "has no place"),
        ({"port": 1, "rateLimit": {"requests": 1, "scope": "Cluster"}}, "spec.rateLimit.scope",
         "not available"),
    ):
        body = tcp_route("x", 1, "b", namespace=unique)
        body["spec"].update(spec)
        answer = api.call("POST", "/v1/apply", json.dumps(body), expect=422)
        fault = answer.json()["errors"][0]
        assert fault["path"].endswith(field) and text in fault["message"]


def test_the_cli_shows_routes(shared, unique, origin):
    node = shared[0]
    port = free_port()
    node.api.apply(documents(
        backend("db", origin("one").address, namespace=unique),
        tcp_route("db", port, "db", namespace=unique),
    ), "?wait=all")
    table = node.ctl("get", "tcproutes", "-n", unique).stdout
    assert "PORT" in table and str(port) in table and "Admitted" in table
    yaml = node.ctl("get", "tr", "db", "-n", unique, "-o", "yaml").stdout
    assert f"port: {port}" in yaml
    text = node.ctl("describe", "tcproute", "db", "-n", unique).stdout
    assert f"port: {port}" in text and "127.0.0.1" in text
    assert str(port) in node.ctl("describe", "backend", "db", "-n", unique).stdout
    exported = node.ctl("export", "-n", unique).stdout
    assert "kind: TcpRoute" in exported
    assert node.ctl("diff", "-f", "-", stdin=exported).returncode == 0
    assert node.ctl("delete", "tcproute", "db", "-n", unique).returncode == 0


def test_one_backend_serves_both_kinds(shared, unique, make_origin):
    node = shared[0]
    web = make_origin("web")
    port = free_port()
    node.api.apply(documents(
        backend("web", web.address, namespace=unique),
        route("web", f"{unique}.example.com", "web", namespace=unique),
        tcp_route("web", port, "web", namespace=unique),
    ), "?wait=all")
    assert node.get(f"{unique}.example.com").status == 200
    wire = dial(node, port)
    wire.send(f"GET / HTTP/1.1\r\nHost: {unique}.example.com\r\nConnection: close\r\n\r\n")
    assert b"200 OK" in wire.rest()


def test_drain_of_a_node_keeps_connections(make_cluster, origin):
    cluster = make_cluster(1)
    node = cluster.start()[0]
    port = free_port()
    node.api.apply(documents(backend("db", origin("one").address), tcp_route("db", port, "db")))
    wire = dial(node, port)
    wire.until(b"\n")
    node.terminate()
    until(lambda: refuses(node, port), "the port is closed")
    wire.send(b"still here")
    assert wire.exactly(10) == b"still here"
    wire.close()
    assert node.wait_exit() == 0


def test_ports_are_open_again_after_a_restart(make_cluster, origin):
    cluster = make_cluster(1)
    node = cluster.start()[0]
    port = free_port()
    node.api.apply(documents(backend("db", origin("one").address), tcp_route("db", port, "db")))
    assert who(node, port) == "one"
    node.kill()
    node.start()
    node.wait_ready()
    assert who(node, port) == "one"


def test_trusted_balancers_and_headers_to_endpoints(make_cluster):
    """PROXY headers by settings and objects: from a balancer in front to an endpoint behind."""
    lines = []

    def handler(wire, _):
        lines.append(wire.until(b"\r\n").decode().strip())
        wire.send(wire.exactly(4))

    cluster = make_cluster(1)
    node = cluster[0]
    node.start(extra=["--listen.proxyProtocol.trusted", "127.0.0.1/32"])
    node.wait_ready()
    script = Script(handler)
    port = free_port()
    node.api.apply(documents(
        backend("db", script.address, proxyProtocol="V1"), tcp_route("db", port, "db"),
        route("db", "db.test", "db"),
    ))
    wire = dial(node, port)
    wire.send(b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 5432\r\nping")
    assert wire.exactly(4) == b"ping"
    assert lines == ["PROXY TCP4 192.0.2.7 198.51.100.1 4711 5432"]
    # Without a header there is nothing to be had.
    bare = dial(node, port)
    bare.send(b"ping" * 8)
    assert bare.at_end()
    script.close()


def test_settings_are_checked(tmp_path):
    for flag, value, text in (("--listen.tcp", "10.0.0.1:80", "listen.tcp"),
                              ("--listen.proxyProtocol.trusted", "10.0.0.1/8", "listen.proxy")):
        done = subprocess.run([SKEIND, "--check", "--node.name", "r1", "--node.dataDir",
                               str(tmp_path), "--cluster.bind", "127.0.0.1:1", flag, value],
                              capture_output=True, text=True, env=os.environ, check=False)
        assert done.returncode == 64 and text in done.stderr + done.stdout
