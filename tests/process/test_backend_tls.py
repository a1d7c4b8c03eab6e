"""A node whose backends speak TLS: objects, live change, health checks."""

import pytest

from support.api import backend, documents, route
from support.client import get
from support.pki import PAST, Pki, TlsScript, server_context
from support.proxy_driver import Script
from support.wait import until

NAME = "origin.test"
CHECK = {"interval": "100ms", "intervalDown": "100ms", "timeout": "5s", "rise": 1, "fall": 1}


@pytest.fixture(name="node", scope="module")
def fixture_node(tmp_path_factory):
    from support.cluster import Cluster

    cluster = Cluster(tmp_path_factory.mktemp("tls"), 1).start()
    yield cluster[0]
    cluster.stop()


@pytest.fixture(name="pki", scope="module")
def fixture_pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(name="origins")
def fixture_origins(pki):
    made = []

    def make(leaf=None, **options):
        made.append(TlsScript(server_context(leaf or pki.leaf(NAME), **options)))
        return made[-1]

    make.keep = made.append
    yield make
    for origin in made:
        origin.close()


def text(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def demands(pki, ca="good", name=NAME, **more):
    return {"ca": text(pki.authority(ca).cert), "serverName": name, **more}


def put(node, unique, *addresses, more=(), **spec):
    node.api.apply(documents({"kind": "Namespace", "metadata": {"name": unique}}, *more,
                             backend("web", *addresses, namespace=unique, **spec),
                             route("web", f"{unique}.test", "web", namespace=unique)))


def status(node, unique):
    return get(node.http_port, f"{unique}.test").status


def serves(node, unique, code):
    until(lambda: status(node, unique) == code, f"it is answered {code}")


def health(node, unique, origin):
    return node.api.get("endpoints", f"web/{origin.address}", unique).get("status", {})


def wait_health(node, unique, origin, state, words=""):
    def reached():
        now = health(node, unique, origin)
        assert now.get("health") == state and words in now.get("message", ""), now
        return True

    until(reached, f"{origin.address} is {state}", 20)


def test_what_a_backend_demands_can_be_changed_live(node, unique, pki, origins):
    origin = origins()
    put(node, unique, origin.address, tls=demands(pki))
    serves(node, unique, 200)
    assert origin.connections[0][0] == NAME
    for tls in (demands(pki, ca="other"), demands(pki, name="elsewhere.test")):
        put(node, unique, origin.address, tls=tls)
        serves(node, unique, 502)
    until(lambda: "hostname mismatch: expected elsewhere.test" in node.log(), "the log says why")
    put(node, unique, origin.address, tls=demands(pki, ca="other", verify="Skip"))
    serves(node, unique, 200)
    put(node, unique, origin.address, tls=demands(pki))
    serves(node, unique, 200)


def test_certificates_of_our_own_are_named(node, unique, pki, origins):
    own = pki.leaf("router.test", label="client", usage="clientAuth")
    origin = origins(client_ca=pki.authority())
    certificate = {"kind": "Certificate", "metadata": {"name": "own", "namespace": unique},
                   "spec": {"chain": text(own.cert), "key": text(own.key)}}
    put(node, unique, origin.address, more=[certificate],
        tls=demands(pki, clientCertificate="own"))
    serves(node, unique, 200)
    assert origin.connections[0][3]["subject"] == ((("commonName", "router.test"),),)


@pytest.mark.parametrize("kind", ["Tcp", "Http"])
def test_checks_speak_tls_as_the_backend_does(node, unique, pki, origins, kind):
    origin = origins()
    put(node, unique, origin.address, tls=demands(pki), healthCheck={"type": kind, **CHECK})
    wait_health(node, unique, origin, "Up")
    put(node, unique, origin.address, tls=demands(pki, name="elsewhere.test"),
        healthCheck={"type": kind, **CHECK})
    wait_health(node, unique, origin, "Down", "certificate: ")
    put(node, unique, origin.address, tls=demands(pki), healthCheck={"type": kind, **CHECK})
    wait_health(node, unique, origin, "Up")


def test_checks_say_what_is_wrong(node, unique, pki, origins):
    past = origins(pki.leaf(NAME, label="past", span=PAST))
    stranger = origins(pki.self_signed(NAME))
    plain = Script(lambda wire, _: (wire.fill(), wire.send("HTTP/1.1 400 Bad Request\r\n\r\n")))
    origins.keep(plain)
    put(node, unique, past.address, stranger.address, plain.address, tls=demands(pki),
        healthCheck={"type": "Tcp", **CHECK})
    wait_health(node, unique, past, "Down", "certificate: certificate has expired")
    wait_health(node, unique, stranger, "Down", "certificate: self")
    wait_health(node, unique, plain, "Down", "TLS: ")


def test_checks_may_differ_from_the_traffic(node, unique, pki, origins):
    origin = origins()
    # A handshake though the traffic is plain, by what is described for routes and checks.
    put(node, unique, origin.address, tls=demands(pki, enabled=False),
        healthCheck={"type": "Tcp", "tls": True, **CHECK})
    wait_health(node, unique, origin, "Up")
    assert origin.connections
    put(node, unique, origin.address, tls=demands(pki, name="elsewhere.test"),
        healthCheck={"type": "Tcp", "tls": False, **CHECK})
    wait_health(node, unique, origin, "Up")


def test_a_check_by_tls_wants_to_know_whom_to_trust(node, unique):
    answer = node.api.apply(documents(
        {"kind": "Namespace", "metadata": {"name": unique}},
        backend("web", "127.0.0.1:1", namespace=unique,
                healthCheck={"type": "Tcp", "tls": True})), expect=422)
    assert "healthCheck.tls" in str(answer), answer
