"""The admin API over the network: TLS, tokens, roles, throttling, and the audit trail."""

import glob
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import time

import pytest

from support.api import backend, documents, route
from support.cluster import run_skeind, skeinctl
from support.wait import SLOW, until


def _openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


class Files:
    """An authority and what it signed, in a folder."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.ca = self._path("ca.pem")
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self._path("ca.key"), "-out", self.ca, "-subj", "/CN=test authority",
                 "-days", "30", "-addext", "keyUsage=critical,keyCertSign")

    def _path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, name, extensions):
        key, request, chain = (self._path(name + end) for end in (".key", ".csr", ".pem"))
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        with open(self._path("ext"), "w", encoding="ascii") as file:
            file.write(extensions)
        _openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._path("ca.key"),
                 "-CAcreateserial", "-out", chain, "-days", "30", "-extfile", self._path("ext"))
        return chain, key

    def server(self, name="server"):
        return self.sign(name, "subjectAltName=DNS:localhost,IP:127.0.0.1\n")


def _tls_arguments(chain, key, ca=None, role=None):
    extra = ["--admin.tls.certificate", chain, "--admin.tls.key", key]
    extra += ["--admin.tls.clientCa", ca] if ca else []
    return extra + (["--admin.tls.clientRole", role] if role else [])


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


class Secure:
    """A node whose admin port speaks TLS; its unix socket makes the first token."""

    def __init__(self, node, files, context=None):
        self.node = node
        self.ca = files.ca
        self.url = f"https://localhost:{node.admin_port}"
        self.context = context or ssl.create_default_context(cafile=files.ca)

    def call(self, method, path, token=None, body=None, headers=None):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.node.admin_port, context=self.context, timeout=20 * SLOW)
        fields = dict(headers or {})
        if token:
            fields["Authorization"] = f"Bearer {token}"
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, str) else json.dumps(body)
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def local(self, *args, **kwargs):
        """skeinctl over the unix socket."""
        return skeinctl(*args, server=f"unix://{self.node.socket}", **kwargs)

    def ctl(self, *args, token=None, env=None, **kwargs):
        environ = {"SKEIN_CA": self.ca, **(env or {})}
        if token:
            environ["SKEIN_TOKEN"] = token
        return skeinctl(*args, server=self.url, env=environ, **kwargs)

    def token(self, name, role, *more):
        made = self.local("token", "create", "--role", role, *more, name)
        assert made.returncode == 0, made.stderr
        secret = made.stdout.strip()
        assert secret.startswith("skein_") and len(secret) == 49, made
        return secret

    def audit(self):
        shown = self.local("audit", "--limit", "1000", "-o", "json")
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)["items"]


def _wait_ready(node):
    until(lambda: node.is_running() and skeinctl(
        "cluster", "-o", "json", server=f"unix://{node.socket}").returncode == 0 and
        _phase(node) == "ready", f"{node.name} is ready")


def _phase(node):
    found = json.loads(skeinctl("cluster", "-o", "json", server=f"unix://{node.socket}").stdout)
    return "ready" if found["ready"] else "not"


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def secure(make_cluster, files):
    node = make_cluster(1)[0]
    node.start(extra=_tls_arguments(*files.server()))
    _wait_ready(node)
    return Secure(node, files)


# ---- roles ----

_ROUTE = {"spec": {"host": "a.example.com", "to": [{"backend": "b"}]}}
_IN_SHOP = "/v1/namespaces/shop/routes/a"
_IN_BANK = "/v1/namespaces/bank/routes/a"
_APPLY_SHOP = route("ap", "ap.example.com", "b", namespace="shop")
_APPLY_BANK = route("ap", "aq.example.com", "b", namespace="bank")
_TOKEN = {"metadata": {"name": "made"}, "spec": {"role": "Viewer"}}

# method, path, body, and the statuses of: nobody, viewer, editor, admin, shop's viewer, shop's editor
_TABLE = [
    ("GET", "/healthz", None, (200, 200, 200, 200, 200, 200)),
    ("GET", "/readyz", None, (200, 200, 200, 200, 200, 200)),
    ("GET", "/v1", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/openapi.json", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/metrics", None, (401, 200, 200, 200, 403, 403)),
    ("GET", "/v1/cluster", None, (401, 200, 200, 200, 403, 403)),
    ("DELETE", "/v1/cluster/members/nobody", None, (401, 403, 403, 404, 403, 403)),
    ("PUT", _IN_SHOP, _ROUTE, (401, 403, 201, 200, 403, 200)),
    ("PATCH", _IN_SHOP, {"spec": {"path": "/x"}}, (401, 403, 200, 200, 403, 200)),
    ("GET", _IN_SHOP, None, (401, 200, 200, 200, 200, 200)),
    ("PUT", _IN_BANK, _ROUTE, (401, 403, 201, 200, 403, 403)),
    ("PATCH", _IN_BANK, {"spec": {"path": "/x"}}, (401, 403, 200, 200, 403, 403)),
    ("GET", _IN_BANK, None, (401, 200, 200, 200, 403, 403)),
    ("GET", "/v1/routes", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/v1/routes?namespace=bank", None, (401, 200, 200, 200, 403, 403)),
    ("GET", "/v1/namespaces/bank/routes", None, (401, 200, 200, 200, 403, 403)),
    ("GET", "/v1/export", None, (401, 200, 200, 200, 200, 200)),
    ("GET", "/v1/export?namespace=bank", None, (401, 200, 200, 200, 403, 403)),
    ("POST", "/v1/apply", _APPLY_SHOP, (401, 403, 200, 200, 403, 200)),
    ("POST", "/v1/apply", _APPLY_BANK, (401, 403, 200, 200, 403, 403)),
    ("POST", "/v1/apply?dryRun=true", _APPLY_BANK, (401, 403, 200, 200, 403, 403)),
    ("PUT", "/v1/namespaces/other", {"spec": {}}, (401, 403, 201, 200, 403, 403)),
    ("GET", "/v1/namespaces", None, (401, 200, 200, 200, 403, 403)),
    ("PUT", "/v1/settings/default", {"spec": {"balance": "Random"}}, (401, 403, 403, 201, 403, 403)),
    ("GET", "/v1/settings/default", None, (401, 200, 200, 200, 403, 403)),
    ("DELETE", "/v1/settings/default", None, (401, 403, 403, 200, 403, 403)),
    ("PUT", "/v1/nodes/r1", {"spec": {"labels": {"a": "b"}}}, (401, 403, 403, 201, 403, 403)),
    ("GET", "/v1/tokens", None, (401, 200, 200, 200, 403, 403)),
    ("POST", "/v1/tokens", _TOKEN, (401, 403, 403, 201, 403, 403)),
    ("PUT", "/v1/tokens/made", _TOKEN, (401, 403, 403, 422, 403, 403)),
    ("DELETE", "/v1/tokens/made", None, (401, 403, 403, 200, 403, 403)),
    ("POST", "/v1/apply", {"kind": "Settings", "metadata": {"name": "default"}, "spec": {}},
     (401, 403, 403, 200, 403, 403)),
    ("GET", "/v1/tickets", None, (401, 200, 200, 200, 403, 403)),
    ("POST", "/v1/tickets/rotate", {}, (401, 403, 403, 200, 403, 403)),
    ("GET", "/v1/audit", None, (401, 403, 403, 200, 403, 403)),
    ("DELETE", _IN_BANK, None, (401, 403, 200, 404, 403, 403)),
    ("DELETE", _IN_SHOP, None, (401, 403, 200, 404, 403, 404)),
    ("GET", "/v1/nothing", None, (401, 404, 404, 404, 404, 404)),
]


def test_every_role_against_every_endpoint(secure):
    users = [None, secure.token("v", "viewer"), secure.token("e", "editor"),
             secure.token("a", "admin"), secure.token("sv", "viewer", "-n", "shop"),
             secure.token("se", "editor", "-n", "shop")]
    wrong = []
    for method, path, body, expected in _TABLE:
        for user, status in zip(users, expected):
            answer = secure.call(method, path, user, body)
            if answer.status != status:
                wrong.append((method, path, users.index(user), status, answer))
            if answer.status == 401:
                assert answer.headers["WWW-Authenticate"].startswith("Bearer"), answer.headers
            if answer.status in (401, 403):
                assert answer.headers["Content-Type"] == "application/problem+json"
    assert not wrong, "\n".join(map(str, wrong))
    # Every endpoint that the API has is in the table above.
    rows = secure.call("GET", "/v1", users[1]).json()["endpoints"]
    assert all(row["role"] in ("admin", "editor", "viewer", "anybody") for row in rows)


def test_a_namespaced_token_sees_and_touches_only_its_namespace(secure):
    admin, shop = secure.token("a", "admin"), secure.token("s", "editor", "-n", "shop")
    both = documents(backend("b", "127.0.0.1:1", namespace="shop"),
                     backend("b", "127.0.0.1:2", namespace="bank"))
    refused = secure.call("POST", "/v1/apply", shop, both, {"Content-Type": "application/yaml"})
    assert refused.status == 403, refused
    assert "bank" in refused.body and "Backend bank/b" in refused.body
    assert secure.call("GET", "/v1/backends", admin).json()["items"] == [], "all or nothing"
    allowed = secure.call("POST", "/v1/apply", admin, both, {"Content-Type": "application/yaml"})
    assert allowed.status == 200, allowed
    seen = secure.call("GET", "/v1/endpoints", shop).json()["items"]
    assert [item["metadata"]["namespace"] for item in seen] == ["shop"]
    assert "bank" not in secure.call("GET", "/v1/export", shop).body
    # A watch tells of its namespace alone, and ends when the token is revoked.
    connection = http.client.HTTPSConnection("127.0.0.1", secure.node.admin_port,
                                             context=secure.context, timeout=20 * SLOW)
    connection.request("GET", "/v1/watch", headers={"Authorization": f"Bearer {shop}"})
    watch = connection.getresponse()
    assert json.loads(watch.readline())["type"] == "start"
    for space in ("bank", "shop"):
        secure.call("PUT", f"/v1/namespaces/{space}/routes/w", admin,
                    {"spec": {"host": f"{space}.example.com", "to": [{"backend": "b"}]}})
    event = json.loads(watch.readline())
    assert event["object"]["metadata"]["namespace"] == "shop", event
    assert secure.local("token", "revoke", "s").returncode == 0
    with pytest.raises(http.client.IncompleteRead) as cut:  # cut, so that nobody takes it for whole
        watch.read()
    assert b"bank" not in cut.value.partial
    connection.close()


# ---- tokens ----

def test_tokens_expire_and_are_revoked(secure):
    short = secure.token("short", "viewer", "--expires", "1500ms")
    assert secure.call("GET", "/v1/routes", short).status == 200
    until(lambda: secure.call("GET", "/v1/routes", short).status == 401, "it has expired")
    assert "expired" in secure.call("GET", "/v1/routes", short).body
    shown = json.loads(secure.local("token", "get", "short", "-o", "json").stdout)
    assert shown["status"]["expired"] is True and "hash" not in shown["spec"], shown
    long = secure.token("long", "viewer", "--expires", "30d", "--description", "for ever, nearly")
    assert secure.call("GET", "/v1/routes", long).status == 200
    listed = secure.local("token", "list").stdout
    assert "long" in listed and "Viewer" in listed and long not in listed
    assert secure.local("token", "revoke", "long").returncode == 0
    gone = secure.call("GET", "/v1/routes", long)
    assert gone.status == 401 and "not known" in gone.body


def test_a_hash_cannot_be_planted(secure):
    admin = secure.token("a", "admin")
    planted = {"kind": "Token", "metadata": {"name": "p"},
               "spec": {"role": "Admin", "hash": "A" * 43 + "="}}
    for method, path in (("POST", "/v1/tokens"), ("PUT", "/v1/tokens/p"), ("POST", "/v1/apply"),
                         ("PATCH", "/v1/tokens/a")):
        answer = secure.call(method, path, admin, planted)
        assert answer.status == 422, (method, path, answer)
    assert secure.call("POST", "/v1/tokens", admin,
                       {"metadata": {"name": "a"}, "spec": {"role": "Viewer"}}).status == 409
    assert secure.call("GET", "/v1/routes", admin).status == 200, "still the same"
    dry = secure.call("POST", "/v1/tokens?dryRun=true", admin,
                      {"metadata": {"name": "d"}, "spec": {"role": "Viewer"}})
    assert dry.status == 200 and "hash" not in dry.body and "skein_" not in dry.body, dry
    scoped = secure.call("POST", "/v1/tokens", admin,
                         {"metadata": {"name": "x"}, "spec": {"role": "Admin", "namespace": "s"}})
    assert scoped.status == 422, scoped


def test_tokens_are_of_the_whole_cluster_and_last(make_cluster, files):
    cluster = make_cluster(2)
    chain, key = files.server()
    extra = _tls_arguments(chain, key)
    first, second = cluster
    first.start(extra=extra)
    _wait_ready(first)
    second.start(join=[first.gossip_address], extra=extra)
    _wait_ready(second)
    here, there = Secure(first, files), Secure(second, files)
    token = here.token("both", "editor", "--wait")
    assert there.call("GET", "/v1/routes", token).status == 200
    second.stop()
    cluster.restart(second, extra=extra)
    _wait_ready(second)
    assert there.call("GET", "/v1/routes", token).status == 200, "after a restart"
    assert here.local("token", "revoke", "both", "--wait").returncode == 0
    assert there.call("GET", "/v1/routes", token).status == 401
    # No secret anywhere: databases, logs, trails, outputs.
    for node in cluster:
        for path in glob.glob(os.path.join(node.folder, "**"), recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    content = file.read()
                assert token.encode() not in content and token[6:].encode() not in content, path


def test_failures_are_throttled_and_good_credentials_are_not(secure):
    good = secure.token("g", "viewer")
    answers = [secure.call("GET", "/v1/routes", "skein_" + "x" * 43) for _ in range(14)]
    statuses = [answer.status for answer in answers]
    assert statuses[:10] == [401] * 10 and 429 in statuses[10:], statuses
    limited = next(answer for answer in answers if answer.status == 429)
    assert 1 <= int(limited.headers["Retry-After"]) <= 7
    assert secure.call("GET", "/v1/routes", good).status == 200, "no neighbour is locked out"
    text = secure.call("GET", "/metrics", good).body
    assert 'skein_admin_auth_failures_total{reason="unknown"} 1' in text
    assert "skein_admin_certificate_not_after_seconds " in text


# ---- listeners ----

def test_off_loopback_without_tls_is_refused(tmp_path):
    where = ("--node.dataDir", str(tmp_path / "d"), "--cluster.bind", "127.0.0.1:0")
    ended = run_skeind("--admin.listen", "0.0.0.0:0", *where)
    assert ended.returncode == 64, ended
    assert "admin.tls.certificate" in ended.stderr and "selfSigned" in ended.stderr
    half = run_skeind("--admin.listen", "0.0.0.0:0", "--admin.tls.certificate", "/nowhere.pem",
                      *where)
    assert half.returncode == 64 and "admin.tls.key" in half.stderr


def test_a_plain_loopback_port_honours_tokens(make_cluster):
    node = make_cluster(1).start()[0]
    assert node.api.call("GET", "/v1/routes").status == 200, "without credentials, as ever"
    made = node.ctl("token", "create", "--role", "viewer", "v")
    token = {"Authorization": "Bearer " + made.stdout.strip()}
    assert node.api.call("GET", "/v1/routes", headers=token).status == 200
    assert node.api.call("PUT", _IN_SHOP, _ROUTE, headers=token).status == 403
    wrong = {"Authorization": "Bearer skein_" + "y" * 43}
    assert node.api.call("GET", "/v1/routes", headers=wrong).status == 401


def test_versions_authorities_and_what_is_no_tls(secure, files):
    address = ("127.0.0.1", secure.node.admin_port)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(address) as raw, pytest.raises(ssl.SSLError):
        old.wrap_socket(raw)
    with pytest.raises(ssl.SSLCertVerificationError):
        Secure(secure.node, files, ssl.create_default_context()).call("GET", "/healthz")
    with socket.create_connection(address, timeout=20 * SLOW) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"https://" in _all(raw)
    for garbage in (b"\x00" * 100, b"\x16\x03\x01\x00\x05hello", os.urandom(4096), b"\x80\x2e"):
        with socket.create_connection(address, timeout=20 * SLOW) as raw:
            raw.sendall(garbage)
            raw.shutdown(socket.SHUT_WR)
            _all(raw)
    # An untrusted certificate, and a plain client, told in words.
    blind = skeinctl("get", "routes", server=secure.url)
    assert blind.returncode == 3 and "--ca FILE" in blind.stderr, blind.stderr
    plain = skeinctl("get", "routes", server=secure.url.replace("https", "http"))
    assert plain.returncode != 0
    loose = skeinctl("get", "routes", "--insecure", server=secure.url)
    assert "warning" in loose.stderr and "401" in loose.stderr, loose.stderr
    assert "SKEIN_TOKEN" in loose.stderr
    assert secure.call("GET", "/healthz").status == 200


def _all(raw):
    data = b""
    try:
        while part := raw.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


@pytest.mark.timing
def test_silent_connections_do_not_keep_others_out(secure):
    address = ("127.0.0.1", secure.node.admin_port)
    silent = [socket.create_connection(address, timeout=20 * SLOW) for _ in range(300)]
    try:
        assert secure.call("GET", "/healthz").status == 200
        began = time.monotonic()
        _all(silent[-1])  # a handshake that does not come is given up
        assert time.monotonic() - began < 15 * SLOW
    finally:
        for raw in silent:
            raw.close()


def test_the_cli_over_tls(secure, tmp_path):
    token = secure.token("c", "editor")
    path = tmp_path / "token"
    path.write_text(token + "\n")
    manifest = documents(backend("b", "127.0.0.1:1"), route("r", "r.example.com", "b"))
    applied = secure.ctl("apply", "-f", "-", token=token, stdin=manifest)
    assert applied.returncode == 0, applied.stderr
    for args in (["--token", token], ["--token-file", str(path)]):
        got = secure.ctl("get", "routes", *args)
        assert got.returncode == 0 and "r.example.com" in got.stdout, got.stderr
    denied = secure.ctl("token", "create", "--role", "admin", "x", token=token)
    assert denied.returncode == 1 and "role admin" in denied.stderr, denied.stderr
    over = skeinctl("get", "routes", "--token", token, server="http://192.0.2.1:7980")
    assert over.returncode == 2 and "https://" in over.stderr, over.stderr


def test_client_certificates(make_cluster, files):
    node = make_cluster(1)[0]
    chain, key = files.sign("operator", "extendedKeyUsage=clientAuth\n")
    node.start(extra=_tls_arguments(*files.server(), ca=files.ca, role="editor"))
    _wait_ready(node)
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(chain, key)
    by_certificate = Secure(node, files, context)
    assert by_certificate.call("PUT", _IN_SHOP, body=_ROUTE).status == 201
    assert by_certificate.call("PUT", "/v1/settings/default", body={"spec": {}}).status == 403
    assert Secure(node, files).call("GET", "/v1/routes").status == 401, "without one"
    other = os.path.join(files.folder, "stranger")
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", other + ".key", "-out", other + ".pem", "-subj", "/CN=stranger")
    stranger = ssl.create_default_context(cafile=files.ca)
    stranger.load_cert_chain(other + ".pem", other + ".key")
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
        Secure(node, files, stranger).call("GET", "/v1/routes")
    assert any("operator" in r["user"] and r["via"] == "certificate" for r in by_certificate.audit())
    listed = by_certificate.ctl("get", "routes", "-A", "--cert", chain, "--key", key)
    assert listed.returncode == 0 and "a.example.com" in listed.stdout, listed.stderr


def test_a_renewed_certificate_is_read_on_sighup(make_cluster, files):
    node = make_cluster(1)[0]
    chain, key = files.server()
    node.start(extra=_tls_arguments(chain, key))
    _wait_ready(node)

    def shown():
        pem = ssl.get_server_certificate(("127.0.0.1", node.admin_port))
        return ssl.PEM_cert_to_DER_cert(pem)

    before = shown()
    files.server()
    node.process.send_signal(signal.SIGHUP)
    until(lambda: shown() != before, "the new one is shown")
    after = shown()
    with open(chain, "w", encoding="ascii") as file:
        file.write("no certificate\n")
    node.process.send_signal(signal.SIGHUP)
    until(lambda: "keeps its certificate" in node.log(), "what is wrong is told")
    assert shown() == after


def test_a_certificate_of_its_own(make_cluster):
    node = make_cluster(1)[0]
    node.start(extra=["--admin.tls.selfSigned", "true"])
    _wait_ready(node)
    chain = os.path.join(node.data, "admin-cert.pem")
    assert os.stat(os.path.join(node.data, "admin-key.pem")).st_mode & 0o077 == 0
    assert "fingerprint=" in node.log()
    made = skeinctl("token", "create", "--role", "viewer", "v", server=f"unix://{node.socket}")
    url = f"https://localhost:{node.admin_port}"
    env = {"SKEIN_TOKEN": made.stdout.strip()}
    good = skeinctl("get", "routes", "--ca", chain, server=url, env=env)
    assert good.returncode == 0, good.stderr
    node.stop()
    with open(chain, "rb") as file:
        before = file.read()
    node.start(extra=["--admin.tls.selfSigned", "true"])
    _wait_ready(node)
    with open(chain, "rb") as file:
        assert file.read() == before, "kept"


# ---- audit ----

def test_the_audit_trail(secure):
    editor = secure.token("deploy", "editor")
    viewer = secure.token("look", "viewer")
    secure.call("PUT", _IN_SHOP, editor, _ROUTE)
    secure.call("PATCH", _IN_SHOP, editor, {"spec": {"path": "/hidden-value"}})
    secure.call("PUT", _IN_SHOP + "?dryRun=true", editor, _ROUTE)
    secure.call("PUT", _IN_SHOP, viewer, _ROUTE)
    secure.call("PUT", _IN_SHOP, editor, {"spec": {"host": "a.example.com"}})
    secure.call("DELETE", _IN_SHOP, editor)
    secure.call("DELETE", _IN_SHOP, "skein_" + "z" * 43)
    trail = secure.audit()
    told = [(r["user"], r["method"], r["status"],
             [(c["action"], c["id"], c.get("fields")) for c in r.get("changes", [])])
            for r in trail]
    uid = f"uid {os.getuid()}"
    assert told == [
        (uid, "POST", 201, [("created", "deploy", None)]),
        (uid, "POST", 201, [("created", "look", None)]),
        ("deploy", "PUT", 201, [("created", "shop/a", None)]),
        ("deploy", "PATCH", 200, [("configured", "shop/a", ["spec.path"])]),
        ("look", "PUT", 403, []),
        ("deploy", "PUT", 422, []),
        ("deploy", "DELETE", 200, [("deleted", "shop/a", None)]),
        ("", "DELETE", 401, []),
    ], told
    assert {r["via"] for r in trail} == {"unix", "token", "nobody"}
    assert {r["from"] for r in trail} == {"unix", "127.0.0.1"}
    assert "hidden-value" not in json.dumps(trail)
    only = secure.local("audit", "--user", "look", "--since", "1h", "-o", "json")
    assert [r["status"] for r in json.loads(only.stdout)["items"]] == [403]
    text = secure.local("audit", "--limit", "3").stdout
    assert "deleted Route shop/a" in text and len(text.splitlines()) == 4, text
    # A record is in the file before the write is answered: killed, it is there.
    secure.call("PUT", _IN_SHOP, editor, _ROUTE)
    secure.node.kill()
    with open(os.path.join(secure.node.data, "audit.log"), encoding="utf-8") as file:
        last = json.loads(file.readlines()[-1])
    assert last["user"] == "deploy" and last["status"] == 201
