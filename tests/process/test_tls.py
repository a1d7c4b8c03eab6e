"""TLS listeners of the data plane: who ends the connection, what is said inside, and how it ends."""

import socket
import ssl

import pytest

from support.pki import Pki, TlsScript, server_context
from support.proxy_driver import Driver, Script, Wire, dial
from support.wait import until

GET = b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n"


@pytest.fixture(name="pki", scope="module")
def fixture_pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


def plain_origin(body=b"plain"):
    def serve(wire, _):
        while True:
            head = wire.head()[2]
            seen.append(head)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    seen = []
    origin = Script(serve)
    origin.seen = seen
    return origin


class Stage:
    """A driver with a TLS listener, a default certificate and an origin."""

    def __init__(self, pki, options="", **settings):
        self.pki = pki
        self.origin = plain_origin()
        self.driver = Driver(listen=("127.0.0.1:0",), listen_tls=("127.0.0.1:0",), **settings)
        self.port = self.driver.port
        self.tls_port = int(self.driver.addresses[1].rsplit(":", 1)[1])
        default = pki.leaf("default.test")
        self.driver.cmd(f"cert default {default.cert} {default.key}")
        self.driver.cmd("policy p")
        self.driver.cmd(f"tls default p {options}")
        self.driver.cmd("tickets 1")
        self.driver.backend("b", self.origin)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.close()
        self.origin.close()

    def edge(self, host, *words, route="test/edge", **options):
        """A host with a certificate of its own."""
        leaf = self.pki.leaf(host)
        self.driver.cmd(f"cert {host} {leaf.cert} {leaf.key}")
        self.driver.rule("/", "b", *words, route=route, term="edge", **options)
        self.driver.cmd(f"host {host} cert={host}")

    def context(self, version=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.pki.authority().cert)
        context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Python would hide a cut
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context

    def connect(self, name, context=None, session=None):
        sock = socket.create_connection(("127.0.0.1", self.tls_port), timeout=10)
        context = context or self.context()
        return Wire(context.wrap_socket(sock, server_hostname=name, session=session,
                                        suppress_ragged_eofs=False))

    def get(self, name, host=None, context=None):
        wire = self.connect(name, context)
        wire.send(GET % (host or name).encode())
        return wire, wire.head()[2]


VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.mark.smoke
@pytest.mark.parametrize("version", VERSIONS, ids=("1.2", "1.3"))
def test_an_edge_route_is_served(pki, version):
    with Stage(pki) as stage:
        stage.edge("a.test")
        wire = stage.connect("a.test", stage.context(version))
        for _ in range(3):
            wire.send(GET % b"a.test")
            assert wire.head()[2].startswith(b"HTTP/1.1 200 ")
            assert wire.exactly(5) == b"plain"
        assert wire.sock.version() == ("TLSv1.2" if version == VERSIONS[0] else "TLSv1.3")
        wire.close()
        head = stage.origin.seen[0]
        assert b"X-Forwarded-Proto: https\r\n" in head
        assert b";proto=https" in head
        metrics = stage.driver.metrics()
        assert metrics['skein_tls_handshakes_total{result="full"}'] == 1


def test_the_name_chooses_the_certificate(pki):
    with Stage(pki) as stage:
        stage.edge("a.test")
        stage.edge("b.test")
        for name in ("a.test", "b.test"):
            wire = stage.connect(name)
            names = wire.sock.getpeercert()["subjectAltName"]
            assert names == (("DNS", name),)
            wire.close()
        context = stage.context()
        context.check_hostname = False
        for name in (None, "unknown.test"):
            wire = stage.connect(name, context)
            assert wire.sock.getpeercert()["subjectAltName"] == (("DNS", "default.test"),)
            wire.close()


def test_unknown_names_may_be_refused(pki):
    with Stage(pki, "strict") as stage:
        stage.edge("a.test")
        stage.get("a.test")[0].close()
        with pytest.raises(ssl.SSLError, match="(?i)unrecognized.name"):
            stage.connect("unknown.test")
        context = stage.context()
        context.check_hostname = False
        stage.connect(None, context).close()


def test_schemes_are_applied_after_the_match(pki):
    with Stage(pki) as stage:
        stage.edge("deny.test")
        stage.edge("allow.test", insecure="allow")
        stage.edge("redirect.test", insecure="redirect")
        stage.driver.rule("/", "b")
        stage.driver.host("plain.test")
        answers = {}
        for name in ("deny", "allow", "redirect", "plain"):
            wire = dial(stage.port)
            wire.send(b"GET /x/y?z=1 HTTP/1.1\r\nHost: %s.test:81\r\n\r\n" % name.encode())
            answers[name] = wire.head()[2]
            wire.close()
        assert answers["deny"].startswith(b"HTTP/1.1 404 ")
        assert answers["allow"].startswith(b"HTTP/1.1 200 ")
        assert answers["plain"].startswith(b"HTTP/1.1 200 ")
        assert answers["redirect"].startswith(b"HTTP/1.1 308 ")
        place = b"Location: https://redirect.test:%d/x/y?z=1\r\n" % stage.tls_port
        assert place in answers["redirect"]
        # A route without TLS is not there on the TLS port.
        wire, head = stage.get("deny.test", "plain.test")
        assert head.startswith(b"HTTP/1.1 404 ")
        wire.close()


def test_a_host_of_another_policy_is_misdirected(pki):
    with Stage(pki) as stage:
        stage.edge("a.test")
        stage.edge("same.test")
        ca = pki.authority().cert
        stage.driver.cmd(f"policy asking auth=optional ca={ca}")
        stage.driver.rule("/", "b", term="edge")
        stage.driver.cmd("host other.test cert=a.test policy=asking")
        wire, head = stage.get("a.test", "same.test")
        assert head.startswith(b"HTTP/1.1 200 ")
        wire.exactly(5)
        wire.send(GET % b"other.test")
        assert wire.head()[2].startswith(b"HTTP/1.1 421 ")
        wire.close()


def test_client_certificates(pki):
    with Stage(pki) as stage:
        ca = pki.authority("clients")
        stage.driver.cmd(f"policy asking auth=optional ca={ca.cert}")
        leaf = pki.leaf("a.test")
        stage.driver.cmd(f"cert a.test {leaf.cert} {leaf.key}")
        stage.driver.rule("/", "b", "client_cert", term="edge")
        stage.driver.cmd("host a.test cert=a.test policy=asking")
        wire, head = stage.get("a.test")
        assert head.startswith(b"HTTP/1.1 403 ")
        wire.close()
        mine = pki.leaf("me", ca="clients", usage="clientAuth")
        context = stage.context()
        context.load_cert_chain(mine.cert, mine.key)
        wire = stage.connect("a.test", context)
        wire.send(b"GET / HTTP/1.1\r\nHost: a.test\r\nX-SSL-Client-CN: forged\r\n\r\n")
        assert wire.head()[2].startswith(b"HTTP/1.1 200 ")
        wire.close()
        head = stage.origin.seen[-1]
        assert b"X-SSL-Client-CN: me\r\n" in head and b"forged" not in head
        foreign = pki.leaf("them", ca="strangers", usage="clientAuth")
        context = stage.context(VERSIONS[0])
        context.load_cert_chain(foreign.cert, foreign.key)
        with pytest.raises((ssl.SSLError, OSError)):
            stage.get("a.test", context=context)


def test_plain_requests_bear_no_certificate(pki):
    with Stage(pki) as stage:
        stage.edge("allow.test", insecure="allow")
        ca = pki.authority("clients")
        stage.driver.cmd(f"policy asking auth=optional ca={ca.cert}")
        stage.driver.rule("/", "b", "client_cert", term="edge", insecure="allow")
        stage.driver.cmd("host asking.test cert=allow.test policy=asking")
        heads = {}
        for name in (b"allow", b"asking"):
            wire = dial(stage.port)
            wire.send(b"GET / HTTP/1.1\r\nHost: %s.test\r\nX-SSL-Client-CN: forged\r\n\r\n" % name)
            heads[name] = wire.head()[2]
            wire.close()
        assert heads[b"allow"].startswith(b"HTTP/1.1 200 ")
        assert b"forged" not in stage.origin.seen[-1]
        assert heads[b"asking"].startswith(b"HTTP/1.1 403 ")


def test_passthrough_is_untouched(pki):
    with Stage(pki) as stage:
        leaf = pki.leaf("p.test")
        origin = TlsScript(server_context(leaf))
        stage.driver.backend("t", origin)
        stage.driver.rule("", "t", route="test/pass", term="passthrough")
        stage.driver.cmd("host p.test")
        stage.edge("a.test")
        wire, head = stage.get("p.test")
        assert wire.sock.getpeercert()["subjectAltName"] == (("DNS", "p.test"),)
        assert head.startswith(b"HTTP/1.1 200 ")
        wire.close()
        assert origin.connections[0][0] == "p.test"
        wire, head = stage.get("a.test", "p.test")
        assert head.startswith(b"HTTP/1.1 421 ")
        wire.close()
        origin.close()


def client_hello(name="a.test"):
    """The bytes of one, as OpenSSL makes it."""
    inside, outside = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(inside, outside, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outside.read()


def in_records(hello, size):
    message = hello[5:]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part
                    for part in (message[i:i + size] for i in range(0, len(message), size)))


def test_hellos_may_come_in_any_pieces(pki):
    with Stage(pki) as stage:
        stage.edge("a.test")
        hello = client_hello()
        for bytes_, step in ((hello, 1), (in_records(hello, 100), 50), (in_records(hello, 1), 700)):
            with socket.create_connection(("127.0.0.1", stage.tls_port), timeout=10) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for i in range(0, len(bytes_), step):
                    sock.sendall(bytes_[i:i + step])
                assert sock.recv(3) == b"\x16\x03\x03"  # a handshake record: ServerHello


def test_what_is_no_hello_gets_a_clean_end(pki):
    with Stage(pki, "inspect=300") as stage:
        stage.edge("a.test")

        def answer(bytes_):
            with socket.create_connection(("127.0.0.1", stage.tls_port), timeout=10) as sock:
                if bytes_:
                    sock.sendall(bytes_)
                data = b""
                try:
                    while part := sock.recv(4096):
                        data += part
                except ConnectionResetError:
                    pass
                return data

        assert answer(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert answer(b"\x00\x01\x02\x03") == b""
        assert answer(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00") == b"\x15\x03\x03\x00\x02\x02\x32"
        assert answer(b"\x16\x03\x01\x40\x00\x01\x01\x00\x00")[:1] == b"\x15"
        assert answer(b"") == b""  # too late
        assert answer(client_hello()[:50]) == b""
        metrics = stage.driver.metrics()
        name = 'skein_tls_hello_faults_total{reason="%s"}'
        assert metrics[name % "plain_http"] == 1
        assert metrics[name % "timeout"] == 2
        assert metrics[name % "malformed"] == 3


def test_large_bodies_both_ways(pki):
    size = 3_000_000
    body = bytes(range(256)) * (size // 256 + 1)

    def echo(wire, _):
        head = wire.head()[2]
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        data = wire.exactly(length)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
        wire.send(data)

    origin = Script(echo)
    with Stage(pki) as stage:
        stage.driver.backend("b", origin)
        stage.edge("a.test")
        for version in VERSIONS:
            wire = stage.connect("a.test", stage.context(version))
            wire.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % len(body))
            wire.send(body)
            assert wire.head()[2].startswith(b"HTTP/1.1 200 ")
            assert wire.exactly(len(body)) == body
            wire.close()
    origin.close()


def test_ends_are_told_and_cuts_are_visible(pki):
    def until_close(wire, number):
        wire.head()
        if number == 0:
            wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole")
        else:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    origin = Script(until_close)
    with Stage(pki) as stage:
        stage.driver.backend("b", origin)
        stage.edge("a.test")
        context = stage.context()
        wire = stage.connect("a.test", context)
        wire.send(b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n")
        wire.until(b"whole")
        assert wire.sock.recv(10) == b""
        wire.close()
        wire = stage.connect("a.test", context)
        wire.send(GET % b"a.test")
        wire.until(b"half")
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            wire.sock.recv(10)
        wire.close()
    origin.close()


def test_sessions_resume_and_domains_part(pki):
    with Stage(pki) as stage:
        stage.edge("a.test")
        stage.edge("b.test")
        for version in VERSIONS:
            context = stage.context(version)
            wire, _ = stage.get("a.test", context=context)
            session = wire.sock.session
            wire.close()
            wire = stage.connect("a.test", context, session)
            assert wire.sock.session_reused
            wire.close()
            context.check_hostname = False
            for other in ("b.test", "unknown.test", None):
                wire = stage.connect(other, context, session)
                assert not wire.sock.session_reused
                wire.close()
            for other, resumes in (("unknown.test", False), (None, True)):
                wire, _ = stage.get(other, "a.test", context)
                session = wire.sock.session
                wire.close()
                wire = stage.connect(other, context, session)
                assert wire.sock.session_reused == resumes
                wire.close()


def test_a_flood_of_handshakes_is_bounded(pki):
    with Stage(pki, "handshakes=4", workers=1, client_header_ms=500) as stage:
        stage.edge("a.test")
        hello = client_hello()
        socks = []
        for _ in range(12):
            sock = socket.create_connection(("127.0.0.1", stage.tls_port), timeout=10)
            sock.sendall(hello)
            socks.append(sock)
        # Those that do not go on are given up, and the others have their turn.
        for sock in socks:
            assert sock.recv(3) == b"\x16\x03\x03"
        until(lambda: stage.driver.connections() == 0, "all are given up")
        for sock in socks:
            sock.close()
        stage.get("a.test")[0].close()
