"""Certificates as objects: what is refused, what never comes out, what is shown to whom, and when."""

import glob
import json
import os
import socket
import ssl
import time

import pytest

from support.api import backend, documents, route
from support.pki import Pki
from support.ports import free_port
from support.wait import until

SECRET = "PRIVATE KEY"


def text_of(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def certificate(name, leaf, chain=None, namespace="default", **spec):
    return {"kind": "Certificate", "metadata": {"name": name, "namespace": namespace},
            "spec": {"chain": chain or text_of(leaf.cert), "key": text_of(leaf.key), **spec}}


def edge(name, host, **tls):
    return route(name, host, "b", tls={"termination": "Edge", **tls})


@pytest.fixture(name="pki", scope="module")
def fixture_pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture(name="node")
def fixture_node(make_cluster, make_origin):
    node = make_cluster(1)[0]
    node.https_port = free_port()
    node.start(extra=["--listen.https", f"127.0.0.1:{node.https_port}"])
    node.wait_ready()
    node.api.apply(documents(backend("b", make_origin("origin").address)))
    return node


def shown(node, name):
    """The leaf (DER) that a client with this server name (None: without) is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", node.https_port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname=name) as sock:
            return sock.getpeercert(binary_form=True)


def der_of(leaf):
    return ssl.PEM_cert_to_DER_cert(text_of(leaf.cert))


def ask(node, host, ca, path="/"):
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection(("127.0.0.1", node.https_port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname=host) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := sock.recv(65536):
                answer += chunk
            return answer


def test_what_does_not_fit_is_refused_with_a_reason(node, pki):
    one, two = pki.leaf("one.test"), pki.leaf("two.test")
    wrong_key = certificate("web", one)
    wrong_key["spec"]["key"] = text_of(two.key)
    ca = text_of(pki.authority().cert)
    other_ca = text_of(pki.authority("other").cert)
    reversed_chain = certificate("web", one, chain=ca + text_of(one.cert))
    strange_chain = certificate("web", one, chain=text_of(one.cert) + other_ca)
    no_key = certificate("web", one)
    del no_key["spec"]["key"]
    garbage = certificate("web", one)
    garbage["spec"]["key"] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    for document in (wrong_key, reversed_chain, strange_chain, no_key, garbage):
        answer = node.api.apply(documents(document), expect=422)
        assert "spec" in answer.text, answer
        assert text_of(one.key).split("\n")[1] not in answer.text
        assert text_of(two.key).split("\n")[1] not in answer.text
    assert not [c for c in node.api.list("certificates") if c["metadata"]["name"] == "web"]
    node.api.apply(documents(certificate("web", one, chain=text_of(one.cert) + ca)))
    bad = edge("bad", "bad.test", clientAuth={
        "policy": "Required",
        "ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"})
    answer = node.api.apply(documents(bad), expect=422)
    assert "clientAuth.ca" in answer.text, answer
    bad = edge("bad", "bad.test", profile="Custom", minVersion="1.2", ciphers=["NO-SUCH-SUITE"])
    assert "NO-SUCH-SUITE" in node.api.apply(documents(bad), expect=422).text


def test_the_key_never_comes_out_and_is_sealed_on_disk(node, pki):
    leaf = pki.leaf("shop.test", "www.shop.test")
    body = text_of(leaf.key).split("\n")[1]
    document = certificate("web", leaf)
    texts = [node.api.apply(documents(document)).text]
    texts.append(node.api.call("GET", "/v1/namespaces/default/certificates/web", expect=200).text)
    status = json.loads(texts[-1])["status"]
    assert status["names"] == ["shop.test", "www.shop.test"], status
    assert status["expired"] is False and status["keyType"] == "ECDSA P-256", status
    texts.append(node.api.call("GET", "/v1/certificates", expect=200).text)
    for words in (("get", "cert", "-o", "yaml"), ("describe", "cert", "web"), ("export",)):
        told = node.ctl(*words)
        assert told.returncode == 0, told.stderr
        texts.append(told.stdout)
    changed = certificate("web", pki.leaf("shop.test", label="again"))
    texts.append(node.api.apply(documents(changed), query="?dryRun=true").text)
    patched = node.api.call("PATCH", "/v1/namespaces/default/certificates/web",
                            json.dumps({"metadata": {"labels": {"a": "b"}}}),
                            {"Content-Type": "application/merge-patch+json"}, expect=200)
    texts.append(patched.text)
    for text in texts:
        assert body not in text and SECRET not in text
    for path in glob.glob(f"{node.folder}/**", recursive=True):
        if os.path.isdir(path):
            continue
        with open(path, "rb") as file:
            content = file.read()
        assert body.encode() not in content and SECRET.encode() not in content, path
        assert b"BEGIN CERTIFICATE" not in content or "audit" in path, path


def test_what_was_exported_keeps_its_key(node, pki):
    leaf = pki.leaf("keep.test")
    node.api.apply(documents(certificate("keep", leaf), edge("k", "keep.test")))
    exported = node.api.get("certificates", "keep")
    assert "key" not in exported["spec"]
    again = node.api.apply(documents(exported)).json()["items"]
    assert [item["action"] for item in again] == ["unchanged"]
    exported["metadata"]["labels"] = {"team": "shop"}
    again = node.api.apply(documents(exported)).json()["items"]
    assert [item["action"] for item in again] == ["configured"]
    assert shown(node, "keep.test") == der_of(leaf)
    exported["spec"]["chain"] = text_of(pki.leaf("keep.test", label="other").cert)
    answer = node.api.apply(documents(exported), expect=422)
    assert "spec.key" in answer.text, answer


def test_it_is_chosen_by_name_and_replaced_live(node, pki):
    exact, wild = pki.leaf("a.shop.test"), pki.leaf("*.shop.test")
    ca = pki.authority().cert
    node.api.apply(documents(certificate("wild", wild), edge("a", "a.shop.test"),
                             edge("b", "b.shop.test")))
    until(lambda: shown(node, "a.shop.test") == der_of(wild), "the wildcard", 5)
    node.api.apply(documents(certificate("exact", exact)))
    until(lambda: shown(node, "a.shop.test") == der_of(exact), "the exact one", 5)
    assert shown(node, "b.shop.test") == der_of(wild)
    assert ask(node, "a.shop.test", ca).startswith(b"HTTP/1.1 200")

    context = ssl.create_default_context(cafile=ca)
    plain = socket.create_connection(("127.0.0.1", node.https_port), timeout=10)
    with context.wrap_socket(plain, server_hostname="a.shop.test") as sock:
        renewed = pki.leaf("a.shop.test", label="renewed")
        node.api.apply(documents(certificate("exact", renewed)))
        until(lambda: shown(node, "a.shop.test") == der_of(renewed), "the renewed one", 5)
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a.shop.test\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
    node.api.delete("certificates", "exact")
    until(lambda: shown(node, "a.shop.test") == der_of(wild), "the wildcard again", 5)
    assert node.api.get("certificates", "wild")["status"]["routes"] == 2


def test_a_named_one_that_is_missing_is_told(node, pki):
    node.api.apply(documents(edge("m", "m.test", certificate="gone")))
    warnings = node.api.get("routes", "m")["status"]["warnings"]
    assert "default/gone does not exist" in warnings[0], warnings
    node.api.apply(documents(certificate("gone", pki.leaf("m.test"))))
    assert "warnings" not in node.api.get("routes", "m")["status"]
    assert shown(node, "m.test") == der_of(pki.leaf("m.test"))


def test_the_default_one_is_made_once_and_can_be_named(node, pki):
    until(lambda: [c for c in node.api.list("certificates")
                   if c["metadata"]["name"] == "skein-default"], "the default certificate", 20)
    made = node.api.get("certificates", "skein-default")
    until(lambda: shown(node, None), "it is shown", 5)
    assert ssl.PEM_cert_to_DER_cert(made["spec"]["chain"]) == shown(node, None)
    assert shown(node, "nobody.test") == shown(node, None)
    own = pki.leaf("own.test")
    node.api.apply(documents(certificate("own", own), {
        "kind": "Settings", "metadata": {"name": "default"},
        "spec": {"tls": {"defaultCertificate": "default/own", "strictSni": True}}}))
    until(lambda: shown(node, None) == der_of(own), "the named one", 5)
    with pytest.raises(ssl.SSLError):
        shown(node, "nobody.test")
    metrics = node.api.metrics()
    assert metrics['skein_certificate_not_after_seconds{certificate="default/own"}'] > 0


def test_the_oldest_route_decides(node, pki):
    ca = pki.authority().cert
    node.api.apply(documents(certificate("h", pki.leaf("h.test")), edge("old", "h.test")))
    late = edge("late", "h.test", profile="Modern")
    late["spec"]["path"] = "/late"
    node.api.apply(documents(late))
    warnings = node.api.get("routes", "late")["status"]["warnings"]
    assert "default/old decides" in warnings[0], warnings
    assert ask(node, "h.test", ca).startswith(b"HTTP/1.1 200")
    assert ask(node, "h.test", ca, "/late").startswith(b"HTTP/1.1 421")


def settings(**tls):
    return {"kind": "Settings", "metadata": {"name": "default"}, "spec": {"tls": tls}}


def status_of(node, host, ca, leaf=None, path="/"):
    """The answer's status; None: there was none."""
    context = ssl.create_default_context(cafile=ca)
    if leaf is not None:
        context.load_cert_chain(leaf.cert, leaf.key)
    try:
        with socket.create_connection(("127.0.0.1", node.https_port), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname=host) as sock:
                sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n"
                             "Connection: close\r\n\r\n".encode())
                return int(sock.recv(65536).split()[1])
    except (OSError, IndexError):
        return None


def test_subjects_that_are_taken_out_of_settings_lose_access(node, pki):
    ca = pki.authority()
    alice, bob = (pki.leaf(name, label=name, usage="clientAuth") for name in ("alice", "bob"))
    auth = {"policy": "Required", "ca": text_of(ca.cert), "subjects": ["*alice*", "*bob*"]}
    node.api.apply(documents(certificate("s", pki.leaf("s.test")), settings(clientAuth=auth),
                             edge("s", "s.test")))
    until(lambda: status_of(node, "s.test", ca.cert, bob) == 200, "bob is let in", 10)
    node.api.apply(documents(settings(clientAuth={**auth, "subjects": ["*alice*"]})))
    until(lambda: status_of(node, "s.test", ca.cert, bob) == 403, "bob is not any more", 10)
    assert status_of(node, "s.test", ca.cert, alice) == 200


def test_what_settings_demand_is_not_lost_to_an_older_route(node, pki):
    ca, other = pki.authority(), pki.authority("other")
    mallory = pki.leaf("mallory", ca="other", label="mallory", usage="clientAuth")
    node.api.apply(documents(
        certificate("t", pki.leaf("t.test")),
        settings(clientAuth={"policy": "Required", "ca": text_of(ca.cert)}),
        edge("told", "t.test", clientAuth={"policy": "Required", "ca": text_of(other.cert)})))
    private = edge("private", "t.test")
    private["spec"]["path"] = "/private"
    node.api.apply(documents(private))
    until(lambda: status_of(node, "t.test", ca.cert, mallory) == 200, "the older is served", 10)
    assert status_of(node, "t.test", ca.cert, mallory, "/private") == 421
    warnings = node.api.get("routes", "private")["status"]["warnings"]
    assert any("421" in warning for warning in warnings), warnings


def test_a_valid_one_is_shown_whenever_the_others_were_issued(node, pki):
    def stamp(days):
        return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400))

    good = pki.leaf("v.test", label="v-good", span=(stamp(-30), stamp(30)))
    later = pki.leaf("v.test", label="v-later", span=(stamp(1), stamp(60)))
    over = pki.leaf("v.test", label="v-over", span=(stamp(-5), stamp(-1)))
    node.api.apply(documents(certificate("good", good), certificate("later", later),
                             certificate("over", over), edge("v", "v.test")))
    until(lambda: shown(node, "v.test") == der_of(good), "the valid one is shown", 10)
    node.api.delete("certificates", "good")
    until(lambda: shown(node, "v.test") != der_of(good), "another one is shown", 10)
    warnings = node.api.get("routes", "v")["status"]["warnings"]
    assert any("not valid yet" in warning for warning in warnings), warnings
    assert node.api.get("certificates", "over")["status"]["expired"] is True
