"""PROXY protocol headers: from load balancers in front, and to endpoints behind."""

import os
import socket
import subprocess
import threading
import zlib

import pytest

from support.ports import free_port
from support.proxy_driver import OK, Driver, Script, Wire, dial, get, quiet_for
from support.wait import SLOW, until

pytestmark = pytest.mark.smoke

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ALL = "127.0.0.0/8"


def v1(source="192.0.2.7", port=4711, destination="198.51.100.1", to=8443):
    kind = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {kind} {source} {destination} {port} {to}\r\n".encode()


def v2(source="192.0.2.7", port=4711, destination="198.51.100.1", to=8443, tlvs=b"", command=0x21):
    six = ":" in source
    family = socket.AF_INET6 if six else socket.AF_INET
    block = socket.inet_pton(family, source) + socket.inet_pton(family, destination)
    block += port.to_bytes(2, "big") + to.to_bytes(2, "big") + tlvs
    head = bytes([command, 0x21 if six else 0x11]) + len(block).to_bytes(2, "big")
    return SIGNATURE + head + block


def read_header(wire):
    """A header of either version: (version, source, port, destination, port)."""
    start = wire.exactly(12)
    if start == SIGNATURE:
        rest = wire.exactly(4)
        block = wire.exactly(int.from_bytes(rest[2:], "big"))
        if rest[0] == 0x20:
            return (2, None, None, None, None)
        family, size = (socket.AF_INET, 4) if rest[1] == 0x11 else (socket.AF_INET6, 16)
        return (2, socket.inet_ntop(family, block[:size]),
                int.from_bytes(block[2 * size:2 * size + 2], "big"),
                socket.inet_ntop(family, block[size:2 * size]),
                int.from_bytes(block[2 * size + 2:2 * size + 4], "big"))
    line = start + wire.until(b"\r\n")
    words = line.decode().split()
    assert words[0] == "PROXY", line
    if words[1] == "UNKNOWN":
        return (1, None, None, None, None)
    return (1, words[2], int(words[4]), words[3], int(words[5]))


@pytest.fixture
def world():
    made = []

    def make(handler=None, answer=OK, **settings):
        origin = Script(handler, answer)
        driver = Driver(**settings)
        made.append((driver, origin))
        driver.serve(origin)
        return driver, origin

    yield make
    for driver, origin in made:
        driver.close()
        origin.close()


def forwarded(origin):
    """X-Forwarded-For and -Port of the last request."""
    fields = origin.requests[-1][1]
    return fields["x-forwarded-for"], fields["x-forwarded-port"]


REQUEST = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"


# ---- in ----

@pytest.mark.parametrize("header", [v1(), v2(), v2(tlvs=b"\x04\0\3abc\x01\0\2h2")])
def test_http_takes_the_client_from_the_header(world, header):
    driver, origin = world(trust=(ALL,))
    wire = dial(driver.port)
    wire.send(header + REQUEST)
    assert wire.response()[0] == 200
    assert forwarded(origin) == ("192.0.2.7", "8443")
    assert get(wire)[0] == 200  # and keeps it for the connection
    assert forwarded(origin) == ("192.0.2.7", "8443")


def test_ipv6_in_headers(world):
    driver, origin = world(trust=(ALL,))
    for make in (v1, v2):
        wire = dial(driver.port)
        wire.send(make("2001:db8::7", 1, "2001:db8::1", 443) + REQUEST)
        assert wire.response()[0] == 200
        assert forwarded(origin) == ("2001:db8::7", "443")


@pytest.mark.parametrize("header", [v1(), v2(tlvs=b"\x04\0\3abc")])
def test_headers_may_come_in_pieces(world, header):
    driver, origin = world(trust=(ALL,), workers=1)
    message = header + REQUEST
    for cut in range(1, len(header) + 3):
        wire = dial(driver.port)
        wire.send(message[:cut])
        if cut < len(header):  # seen by itself
            until(lambda: driver.connections() == 1, "the piece has come")
        wire.send(message[cut:])
        assert wire.response()[0] == 200
        wire.close()
        until(lambda: driver.connections() == 0, "it is over")
    assert len(origin.requests) == len(header) + 2
    assert all(fields["x-forwarded-for"] == "192.0.2.7" for _, fields, _ in origin.requests)


def test_byte_by_byte(world):
    driver, origin = world(trust=(ALL,), workers=1)
    for header in (v1(), v2()):
        wire = dial(driver.port)
        for byte in header + REQUEST:
            wire.send(bytes([byte]))
        assert wire.response()[0] == 200
        assert forwarded(origin)[0] == "192.0.2.7"


def test_headers_that_tell_nothing_leave_the_peer(world):
    driver, origin = world(trust=(ALL,))
    unix = SIGNATURE + b"\x21\x31\x00\xd8" + bytes(216)
    for header in (b"PROXY UNKNOWN\r\n", v2(command=0x20), SIGNATURE + b"\x20\0\0\0", unix):
        wire = dial(driver.port)
        wire.send(header + REQUEST)
        assert wire.response()[0] == 200
        assert forwarded(origin) == ("127.0.0.1", str(driver.port))


@pytest.mark.parametrize("start", [
    REQUEST, b"\x16\x03\x01\x02\x00", b"PROXY TCP4 1.2.3.4\r\n", v2()[:-4] + b"xx" + REQUEST[:1],
    b"PROXY " + b"x" * 200, SIGNATURE + b"\x21\x11\xff\xff", SIGNATURE + b"\x31\x11\x00\x0c",
    v2(tlvs=b"\x03\0\4\0\0\0\0"),
], ids=["none", "tls", "short", "cut", "endless", "huge", "version", "checksum"])
def test_what_is_no_header_ends_the_connection(world, start):
    driver, origin = world(trust=(ALL,), client_header_ms=500)
    wire = dial(driver.port)
    wire.send(start)
    assert wire.at_end()
    assert driver.metrics()["skein_proxy_header_faults_total"] == 1
    assert not origin.requests


def test_a_header_has_a_time_limit(world):
    driver, _ = world(trust=(ALL,), client_header_ms=200)
    wire = dial(driver.port)
    assert wire.at_end()
    wire = dial(driver.port)
    wire.send(v1()[:10])
    assert wire.at_end()
    wire = dial(driver.port)
    wire.send(v1()[:10])
    wire.close()
    until(lambda: driver.metrics()["skein_proxy_header_faults_total"] == 3, "all are counted")
    assert driver.connections() == 0


def test_others_are_not_believed(world):
    driver, origin = world(trust=("10.0.0.0/8",))
    for header in (v1(), v2()):
        wire = dial(driver.port)
        wire.send(header + REQUEST)
        assert wire.response()[0] == 400
    assert not origin.requests
    assert get(dial(driver.port))[0] == 200
    assert forwarded(origin)[0] == "127.0.0.1"


def test_tcp_routes_heed_the_address(world):
    def hello(wire, _):
        wire.send(b"hello")
        wire.rest()

    driver, _ = world(hello, trust=(ALL,))
    port = driver.open_port("b", allow="192.0.2.0/24")
    for header, answer in ((v1(), b"hello"), (v2("203.0.113.1"), b"")):
        wire = dial(port)
        wire.send(header)
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.rest() == answer
    # The listener closes while a header is awaited.
    wire = dial(port)
    until(lambda: driver.connections() == 1, "it waits")
    driver.close_port(port)
    assert wire.at_end()


# ---- out ----

@pytest.mark.parametrize("version", [1, 2])
def test_tcp_routes_tell_the_client(world, version):
    seen = []

    def handler(wire, _):
        seen.append(read_header(wire))
        wire.send(b"hello")
        wire.send(wire.exactly(4))

    driver, origin = world(handler)
    driver.backend("p", origin, proxy=version)
    port = driver.open_port("p")
    wire = dial(port)
    assert wire.exactly(5) == b"hello"
    wire.send(b"data")
    assert wire.exactly(4) == b"data"
    source = wire.sock.getsockname()
    assert seen == [(version, source[0], source[1], "127.0.0.1", port)]


def test_tcp_routes_pass_on_what_a_header_told(world):
    seen = []

    def handler(wire, _):
        seen.append(read_header(wire))
        wire.send(wire.exactly(4))

    driver, origin = world(handler, trust=(ALL,))
    driver.backend("p", origin, proxy=2)
    port = driver.open_port("p")
    for source, destination in (("192.0.2.7", "198.51.100.1"), ("2001:db8::7", "2001:db8::1")):
        wire = dial(port)
        wire.send(v1(source, 4711, destination, 8443) + b"data")
        assert wire.exactly(4) == b"data"
    assert seen == [(2, "192.0.2.7", 4711, "198.51.100.1", 8443),
                    (2, "2001:db8::7", 4711, "2001:db8::1", 8443)]


@pytest.mark.parametrize("version", [1, 2])
def test_http_tells_the_client_and_shares_no_connection(world, version):
    """Each upstream connection is one client's: none is used again."""
    seen = []

    def handler(wire, _):
        seen.append(read_header(wire))
        while True:
            line, fields, _ = wire.head()
            wire.body(fields)
            wire.send(OK)

    driver, origin = world(handler, workers=1)
    driver.backend("b", origin, proxy=version)
    clients = [dial(driver.port) for _ in range(3)]
    for _ in range(2):
        for wire in clients:
            assert get(wire)[0] == 200
    assert origin.accepted == 6
    expected = {wire.sock.getsockname()[1] for wire in clients}
    assert {entry[2] for entry in seen} == expected
    assert {entry[4] for entry in seen} == {driver.port}
    # Turned off, connections are shared again.
    plain = Script(answer=OK)
    driver.backend("b", plain)
    for _ in range(2):
        for wire in clients:
            assert get(wire)[0] == 200
    assert plain.accepted == 1
    plain.close()


def test_http_passes_on_what_a_header_told(world):
    seen = []

    def handler(wire, _):
        seen.append(read_header(wire))
        wire.head()
        wire.send(OK)

    driver, origin = world(handler, trust=(ALL,))
    driver.backend("b", origin, proxy=1)
    wire = dial(driver.port)
    wire.send(v2() + REQUEST)
    assert wire.response()[0] == 200
    assert seen == [(1, "192.0.2.7", 4711, "198.51.100.1", 8443)]


NGINX = """
{user}
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 100; }}
http {{
    access_log off;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
    uwsgi_temp_path tmp; scgi_temp_path tmp;
    server {{
        listen 127.0.0.1:{port} proxy_protocol;
        location / {{
            return 200 "{told}";
        }}
    }}
}}
"""


TOLD = ("$proxy_protocol_addr $proxy_protocol_port "
        "$proxy_protocol_server_addr $proxy_protocol_server_port")


@pytest.fixture
def nginx(tmp_path):
    """An nginx that wants a PROXY header and tells what it says; its address."""
    folder = tmp_path / "nginx"
    os.makedirs(folder / "tmp")
    port = free_port()
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX.format(port=port, user=user, told=TOLD))
    process = subprocess.Popen(
        ["/usr/sbin/nginx", "-p", str(folder), "-e", "error.log", "-c", "nginx.conf"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )
    until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None, "it listens")
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.wait()


@pytest.mark.parametrize("version", [1, 2])
def test_nginx_understands_the_headers(nginx, version):
    driver = Driver(trust=("127.0.0.2/32",), listen=("127.0.0.1:0",), tcp=("127.0.0.1:0",))
    driver.backend("n", nginx, proxy=version)
    driver.rule("/", "n")
    driver.host()
    port = driver.open_port("n")
    for number in (driver.port, port):
        wire = dial(number)
        status, _, body = get(wire)
        assert status == 200
        source = wire.sock.getsockname()
        assert body.decode().split() == [source[0], str(source[1]), "127.0.0.1", str(number)]
        # Through a balancer in front.
        sock = socket.create_connection(("127.0.0.1", number), 10 * SLOW, ("127.0.0.2", 0))
        wire = Wire(sock)
        wire.send(v2("2001:db8::7", 4711, "2001:db8::1", 8443) + REQUEST)
        status, _, body = wire.response()
        assert status == 200
        assert body.decode().split() == ["2001:db8::7", "4711", "2001:db8::1", "8443"]
    driver.close()


def test_checksums_are_verified(world):
    """CRC32C as another implementation computes it (table of the reflected polynomial)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)

    def crc32c(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc >> 8 ^ table[(crc ^ byte) & 255]
        return crc ^ 0xFFFFFFFF

    assert crc32c(b"123456789") == 0xE3069283 and zlib.crc32(b"123456789") == 0xCBF43926
    header = v2(tlvs=b"\x02\0\3abc\x03\0\4\0\0\0\0\x04\0\0")
    at = header.index(b"\x03\0\4") + 3
    right = header[:at] + crc32c(header).to_bytes(4, "big") + header[at + 4:]
    driver, origin = world(trust=(ALL,))
    wire = dial(driver.port)
    wire.send(right + REQUEST)
    assert wire.response()[0] == 200
    assert forwarded(origin)[0] == "192.0.2.7"


def test_many_at_once(world):
    driver, origin = world(trust=(ALL,), workers=2)
    faults = []

    def one(number):
        try:
            for i in range(10):
                wire = dial(driver.port)
                header = v1(f"192.0.2.{number}") if i % 2 else v2(f"192.0.2.{number}")
                wire.send(header[:7])
                quiet_for(0.001)
                wire.send(header[7:] + REQUEST)
                assert wire.response()[0] == 200
                wire.close()
        except Exception as fault:  # told below
            faults.append(fault)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(1, 21)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    seen = [fields["x-forwarded-for"] for _, fields, _ in origin.requests]
    assert sorted(set(seen)) == sorted(f"192.0.2.{n}" for n in range(1, 21))
    assert all(seen.count(address) == 10 for address in seen)
