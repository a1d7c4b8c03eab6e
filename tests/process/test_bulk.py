"""Large bodies: they pass whole, to fast and slow readers, and their ends show as what they are."""

import hashlib
import os
import socket

import pytest

from support.proxy_driver import Driver, Script, Wire, dial, get, quiet_for
from support.wait import until

MIB = 1 << 20
BODY = b"".join(hashlib.sha512(bytes([i & 255, i >> 8])).digest() for i in range(MIB // 64)) * 5
HEAD = f"HTTP/1.1 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()


@pytest.fixture
def driver():
    made = Driver(workers=1)
    yield made
    made.close()


@pytest.fixture
def origin_of():
    made = []

    def make(*args, **kwargs):
        made.append(Script(*args, **kwargs))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


def pipes(driver):
    """How many ends of pipes it holds, besides those it was born with."""
    folder = f"/proc/{driver.process.pid}/fd"
    links = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
    return sum(link.startswith("pipe:") for link in links)


def test_whole_and_again(driver, make_nginx):
    nginx = make_nginx("nginx", {"big.bin": BODY, "small.txt": b"small"})
    driver.serve(nginx.address)
    before = pipes(driver)
    wire = dial(driver.port, 30)
    for _ in range(5):
        assert get(wire, "/big.bin")[2] == BODY
        assert get(wire, "/small.txt")[2] == b"small"
    assert pipes(driver) > before, "nothing was spliced"
    assert driver.metrics()["skein_upstream_connections_total"] == 1
    assert get(wire, "/big.bin", method="HEAD")[1]["content-length"] == str(len(BODY))
    assert get(wire, "/small.txt")[2] == b"small"
    wire.close()


def test_many_at_once(driver, make_nginx):
    nginx = make_nginx("nginx", {"big.bin": BODY})
    driver.serve(nginx.address)
    wires = [dial(driver.port, 30) for _ in range(20)]
    for wire in wires:
        wire.send("GET /big.bin HTTP/1.1\r\nHost: a.test\r\n\r\n")
    for wire in wires:
        assert wire.response()[2] == BODY
        wire.close()


def test_slow_reader(driver, make_nginx):
    """The router holds little while the client does not read, and loses nothing."""
    nginx = make_nginx("nginx", {"big.bin": BODY})
    driver.serve(nginx.address)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    sock.connect(("127.0.0.1", driver.port))
    wire = Wire(sock, 30)
    wire.send("GET /big.bin HTTP/1.1\r\nHost: a.test\r\n\r\n")
    _, fields, _ = wire.head()
    before = driver.memory_kib()
    got = b""
    while len(got) < len(BODY):
        if len(got) < 8 * 65536:
            quiet_for(0.02)
        got += wire.exactly(min(65536, len(BODY) - len(got)))
    assert got == BODY
    assert driver.memory_kib() - before < 4096
    assert get(wire, "/")[0] == 200
    wire.close()


@pytest.mark.parametrize("share", [3, 5 * MIB - 1])
def test_endpoint_ends_early(driver, origin_of, share):
    def handler(wire, _):
        wire.head()
        wire.send(HEAD + BODY[:share])

    driver.serve(origin_of(handler))
    wire = dial(driver.port, 30)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.head()
    assert len(wire.rest()) <= share
    wire.close()


def test_client_ends_early(driver, origin_of):
    ended = []

    def handler(wire, number):
        wire.head()
        try:
            wire.send(HEAD)
            while True:
                wire.send(BODY[: 256 * 1024])
        except OSError:
            ended.append(number)

    driver.serve(origin_of(handler))
    for _ in range(3):
        wire = dial(driver.port, 30)
        wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        wire.head()
        wire.exactly(MIB)
        wire.reset()
    until(lambda: len(ended) == 3, "the endpoint's connections end")
    until(lambda: driver.connections() == 0, "the clients' connections end")


def test_surplus_is_no_response(driver, origin_of):
    """What follows a body that nobody asked for is answered to nobody."""

    def handler(wire, _):
        while True:
            wire.head()
            wire.send(HEAD + BODY + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    origin = origin_of(handler)
    driver.serve(origin)
    wire = dial(driver.port, 30)
    for _ in range(3):
        assert get(wire)[2] == BODY
    assert origin.accepted == 3
    wire.close()
