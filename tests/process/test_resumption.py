"""TLS sessions begun at one node go on at any other: every pair, while keys change and nodes restart."""

import os
import socket
import ssl
import time

import pytest

from support.api import backend, documents, route
from support.ports import free_port
from support.wait import until

LONG = os.environ.get("SKEIN_LONG") == "1"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


pytestmark = pytest.mark.timing


def context_of(version):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = VERSIONS[version]
    return context


def visit(node, context, session=None, host="a.test"):
    """One exchange. Whether it was resumed, and the session to go on with."""
    with socket.create_connection(("127.0.0.1", node.https_port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname=host, session=session) as sock:
            sock.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := sock.recv(65536):
                answer += chunk
            assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
            return sock.session_reused, sock.session


def start(node, peers):
    node.start(join=[peer.gossip_address for peer in peers if peer is not node],
               extra=["--listen.https", f"127.0.0.1:{node.https_port}"])


def seals(node):
    items = node.api.call("GET", "/v1/tickets", expect=200).json()["items"]
    return [key["name"] for key in items if key["state"] == "Active"]


def settle(nodes):
    until(lambda: seals(nodes[0]) and len({tuple(seals(n)) for n in nodes}) == 1, "one key", 20)


@pytest.fixture(name="nodes")
def fixture_nodes(make_cluster, make_origin):
    origin = make_origin("a")
    nodes = list(make_cluster(3).nodes)
    for node in nodes:
        node.https_port = free_port()
        start(node, [] if node is nodes[0] else nodes)
        node.wait_ready()
    nodes[0].api.apply(documents(
        backend("b", origin.address),
        route("a", "a.test", "b", tls={"termination": "Edge"}),
        route("z", "z.test", "b", tls={"termination": "Edge"})), query="?wait=all")
    settle(nodes)
    return nodes


def every_pair(nodes):
    """How many resumptions failed, and of how many, of every pair in both versions."""
    failed = total = 0
    for version in VERSIONS:
        context = context_of(version)
        for first in nodes:
            session = visit(first, context)[1]
            for second in nodes:
                reused, later = visit(second, context, session)
                session = later if version == "1.3" else session
                failed += not reused
                total += 1
    return failed, total


def test_every_pair_and_a_chain_of_tickets_used_once(nodes, show):
    failed, total = every_pair(nodes)
    show(f"{total} resumptions, {failed} failed")
    assert failed == 0
    context = context_of("1.3")
    session = visit(nodes[0], context)[1]
    for i in range(20):
        reused, session = visit(nodes[i % 3], context, session)
        assert reused, f"link {i}"


def test_under_rotation(nodes, show):
    nodes[0].api.put("settings", "default", {"tls": {"tickets": {"rotation": "5s", "life": "5s"}}})
    seen, failed, total, end = set(), 0, 0, time.monotonic() + (120 if LONG else 12)
    while time.monotonic() < end:
        seen.update(seals(nodes[0]))
        bad, count = every_pair(nodes)
        failed, total = failed + bad, total + count
    show(f"{total} resumptions under {len(seen)} keys, {failed} failed")
    assert failed == 0 and len(seen) >= 2


def test_over_restarts(nodes):
    contexts = {version: context_of(version) for version in VERSIONS}
    sessions = {version: visit(nodes[0], context)[1] for version, context in contexts.items()}

    def all_resume():
        for version, context in contexts.items():
            for node in nodes:
                reused, later = visit(node, context, sessions[version])
                assert reused, (version, node.name)
                sessions[version] = later if version == "1.3" else sessions[version]

    for node in nodes:  # one after the other
        node.stop()
        start(node, nodes)
        node.wait_ready()
        all_resume()
    for node in nodes:
        node.stop()
    for node in nodes:
        start(node, nodes)
    for node in nodes:
        node.wait_ready()
    all_resume()


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_refused(nodes, version):
    context = context_of(version)
    old = visit(nodes[0], context)[1]
    assert not visit(nodes[1], context, old, host="z.test")[0]  # of another host
    result = nodes[1].ctl("tickets", "rotate", "--revoke", "--wait")
    assert result.returncode == 0, result.stderr
    settle(nodes)
    for node in nodes:
        assert not visit(node, context, old)[0]  # revoked
    nodes[0].api.put("settings", "default", {"tls": {"tickets": {"rotation": "60s", "life": "2s"}}})
    until(lambda: 0 < visit(nodes[0], context)[1].ticket_lifetime_hint <= 2, "tickets live two seconds", 10)
    short = visit(nodes[0], context)[1]
    time.sleep(3.1)  # its life, in whole seconds
    for node in nodes:
        assert not visit(node, context, short)[0]  # expired
