"""What other people's programs say of an Edge route: curl, Chromium, testssl.sh."""

import base64
import hashlib
import json
import os
import shutil
import subprocess

import pytest

from support.api import backend, documents, route
from support.cluster import Node, make_key
from support.origin import Origin
from support.ports import free_port
from support.wait import until

NAME = "app.test"
PAGE = "hello over TLS"


def _run(*words, **kwargs):
    return subprocess.run(words, capture_output=True, text=True, check=False, **kwargs)


@pytest.fixture(name="edge", scope="module")
def fixture_edge(tmp_path_factory):
    """(node, port): an Edge route for NAME, in the Intermediate profile, with an RSA certificate."""
    folder = tmp_path_factory.mktemp("tools")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    made = _run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90",
                "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
                "-keyout", key, "-out", cert)
    assert made.returncode == 0, made.stderr
    node = Node(str(folder), "edge", make_key(str(folder / "cluster.key")))
    port = free_port()
    origin = Origin(PAGE)
    node.start(extra=["--listen.https", f"127.0.0.1:{port}"])
    try:
        node.wait_ready()
        with open(cert, encoding="ascii") as chain, open(key, encoding="ascii") as secret:
            certificate = {"kind": "Certificate", "metadata": {"name": "app"},
                           "spec": {"chain": chain.read(), "key": secret.read()}}
        way = route("app", NAME, "app")
        way["spec"]["tls"] = {"termination": "Edge", "certificate": "app"}
        node.api.apply(documents(certificate, backend("app", origin.address), way))
        node.cert = cert
        until(lambda: _curl(node, port).returncode == 0, "the route is served", 10)
        yield node, port
    finally:
        node.stop()
        origin.close()
    assert node.faults() is None


def _curl(node, port, *more):
    return _run("curl", "-sS", "--max-time", "10", "--cacert", node.cert,
                "--resolve", f"{NAME}:{port}:127.0.0.1", *more, f"https://{NAME}:{port}/")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_curl_gets_the_page(edge, version):
    node, port = edge
    answer = _curl(node, port, f"--tlsv{version}", "--tls-max", version, "-w", "%{http_code}")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == PAGE + "\n200"


def test_curl_does_not_get_it_below_the_profile(edge):
    node, port = edge
    answer = _curl(node, port, "--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")
    assert answer.returncode == 35, answer  # the handshake failed
    assert "protocol version" in answer.stderr, answer.stderr


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.timing
def test_chromium_shows_the_page(edge, tmp_path):
    node, port = edge
    public = _run("openssl", "x509", "-in", node.cert, "-pubkey", "-noout").stdout
    der = base64.b64decode("".join(public.splitlines()[1:-1]))
    pin = base64.b64encode(hashlib.sha256(der).digest()).decode()
    shown = _run(
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-dev-shm-usage", "--disable-background-networking",
        f"--user-data-dir={tmp_path}", f"--host-resolver-rules=MAP {NAME} 127.0.0.1",
        f"--ignore-certificate-errors-spki-list={pin}", "--dump-dom", f"https://{NAME}:{port}/",
        timeout=120,
    )
    assert PAGE in shown.stdout, shown


@pytest.mark.skipif(shutil.which("testssl") is None, reason="testssl.sh is not installed")
@pytest.mark.skipif(not os.environ.get("SKEIN_LONG"), reason="takes minutes: tests/run.sh --long")
@pytest.mark.timing
def test_testssl_finds_nothing_above_low(edge, tmp_path, show):
    _, port = edge
    report = str(tmp_path / "report.json")
    _run("testssl", "--quiet", "--warnings", "off", "--color", "0", "--ip", "127.0.0.1",
         "--jsonfile", report, f"https://{NAME}:{port}", timeout=900)
    with open(report, encoding="utf-8") as file:
        findings = json.load(file)
    # A self-signed certificate without revocation, and what headers the application sets, are not
    # the router's.
    theirs = ("cert_", "DNS_CAArecord", "security_headers")
    ours = [f for f in findings if not f["id"].startswith(theirs)]
    assert len(ours) > 50, findings
    bad = [f for f in ours if f["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL")]
    show(f"testssl.sh: {len(ours)} findings, none above LOW but {bad}")
    assert bad == []
