"""What routes and Settings do to requests and responses, through the admin API and real sockets."""

import socket
import threading

import pytest

from support import client
from support.api import backend, documents, route
from support.cluster import Cluster
from support.echo import Echo, Request, ok
from support.wait import SLOW, until


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("shape"), 1).start()
    yield cluster[0]
    cluster.stop()


@pytest.fixture
def echo():
    origin = Echo()
    yield origin
    origin.close()


class Answer(Request):
    """A response head and body as they came."""

    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.version, status, self.reason = (lines[0] + " ").split(" ", 2)
        self.status = int(status)
        self.lines = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]


class Shape:
    """A route of its own for one test, and requests to it."""

    def __init__(self, node, echo, name):
        self.node, self.echo, self.name = node, echo, name
        self.host = f"{name}.example.com"
        self.changes = 0

    def set(self, path="/", **spec):
        """Replace the route; back when it is in force."""
        self.changes += 1
        headers = spec.setdefault("headers", {})
        probe = route(f"probe-{self.name}", self.host, "web", namespace=self.name,
                      path=f"/probe-{self.changes}", pathType="Exact")
        targets = () if "redirect" in spec else ("web",)
        if not headers:
            del spec["headers"]
        main = route("web", self.host, *targets, namespace=self.name, path=path, **spec)
        if "redirect" in spec:
            del main["spec"]["to"]
        self.node.api.apply(documents(
            {"kind": "Namespace", "metadata": {"name": self.name}},
            backend("web", self.echo.address, namespace=self.name), main, probe))
        until(lambda: client.get(self.node.http_port, self.host,
                                 f"/probe-{self.changes}").status == 200, "the route is in force")
        return self

    def refused(self, **spec):
        """The faults of a route that must not be accepted: {field: text}."""
        targets = () if "redirect" in spec else ("web",)
        main = route("web", self.host, *targets, namespace=self.name, **spec)
        if "redirect" in spec:
            del main["spec"]["to"]
        answer = self.node.api.call("POST", "/v1/apply", documents(main), expect=422).json()
        return {fault["path"].rpartition(" ")[2]: fault["message"] for fault in answer["errors"]}

    def ask(self, path="/", method="GET", lines=(), body=b"", version="1.1", port=None):
        text = [f"{method} {path} HTTP/{version}", f"Host: {self.host}", *lines,
                "Connection: close", "", ""]
        data = client.send_raw(port or self.node.http_port, "\r\n".join(text).encode("latin-1") + body)
        return Answer(data)

    def seen(self, path="/", **kwargs):
        """What the origin got."""
        answer = self.ask(path, **kwargs)
        assert answer.status == 200, (answer.status, answer.body)
        return self.echo.last()


@pytest.fixture
def shape(node, echo, unique):
    return Shape(node, echo, unique)


@pytest.fixture
def with_settings(node):
    """with_settings(**spec): Settings for this test."""
    def put(**spec):
        node.api.put("settings", "default", spec)
    yield put
    node.api.put("settings", "default", {})


# ---- access ----

def test_access_lists(shape):
    shape.set(allowFrom=["127.0.0.0/8"])
    assert shape.ask().status == 200
    shape.set(allowFrom=["10.0.0.0/8", "2001:db8::/32"])
    answer = shape.ask()
    assert answer.status == 403 and b"not allowed" in answer.body
    shape.set(allowFrom=["127.0.0.0/8"], denyFrom=["127.0.0.1"])
    assert shape.ask().status == 403, "what is denied is not allowed"
    shape.set(denyFrom=["10.0.0.0/8"])
    assert shape.ask().status == 200
    shape.set(allowFrom=["::ffff:127.0.0.0/104"])
    assert shape.ask().status == 200, "a mapped network is the IPv4 one"
    faults = shape.refused(allowFrom=["127.0.0.0/8", "127.0.0.1/8"])
    assert "spec.allowFrom[1]" in faults


def test_the_client_behind_trusted_proxies(shape, with_settings):
    shape.set(allowFrom=["192.0.2.0/24"],
              headers={"request": [{"name": "X-Client", "value": "%{client.address}|%{client.port}"}]})
    assert shape.ask(lines=["X-Forwarded-For: 192.0.2.1"]).status == 403, "nobody is trusted"
    with_settings(trustedProxies=["127.0.0.0/8", "10.0.0.0/8"])
    until(lambda: shape.ask(lines=["X-Forwarded-For: 192.0.2.1"]).status == 200, "settings are in force")
    for value, status, seen in [
        ("192.0.2.1", 200, "192.0.2.1|"),
        ("192.0.2.1:4711", 200, "192.0.2.1|4711"),
        ("198.51.100.7, 192.0.2.1", 200, "192.0.2.1|"),
        ("192.0.2.1, 198.51.100.7", 403, None),  # the right-most untrusted one is the client
        ("192.0.2.1, 10.0.0.1, 127.0.0.9", 200, "192.0.2.1|"),
        ("192.0.2.1, unknown", 403, None),  # nobody vouches for what is left of it
        ("192.0.2.1, x, 10.0.0.1", 403, None),
    ]:
        answer = shape.ask(lines=[f"X-Forwarded-For: {value}"])
        assert answer.status == status, value
        if seen:
            assert shape.echo.last().field("x-client") == seen, value
    assert shape.ask(lines=['Forwarded: for="[2001:db8::1]";proto=http, for=192.0.2.9']).status == 200
    assert shape.ask(lines=['Forwarded: for=192.0.2.9, for="_hidden"']).status == 403
    assert shape.ask(lines=["X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 198.51.100.1"]).status == 403
    assert shape.ask().status == 403


def test_forwarded_fields_of_untrusted_peers_are_dropped(shape, with_settings):
    shape.set()
    spoof = ["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.1"]
    request = shape.seen(lines=spoof)
    assert request.fields("x-forwarded-for") == ["192.0.2.1, 127.0.0.1"]
    with_settings(trustedProxies=["10.0.0.0/8"])
    until(lambda: shape.seen(lines=spoof).fields("x-forwarded-for") == ["127.0.0.1"], "Append replaces")
    request = shape.echo.last()
    assert request.fields("x-forwarded-proto") == ["http"]
    assert request.field("forwarded").startswith("for=127.0.0.1;")
    with_settings(trustedProxies=["10.0.0.0/8"], forwarded="IfNone")
    until(lambda: shape.seen(lines=spoof).fields("x-forwarded-for") == ["127.0.0.1"], "IfNone, too")
    with_settings(trustedProxies=["10.0.0.0/8"], forwarded="Never")
    until(lambda: shape.seen(lines=spoof).fields("x-forwarded-for") == ["192.0.2.1"], "Never touches nothing")
    with_settings(trustedProxies=["127.0.0.1"])
    until(lambda: shape.seen(lines=spoof).fields("x-forwarded-for") == ["192.0.2.1, 127.0.0.1"], "trusted")


# ---- limits ----

def test_rate_limit(shape):
    shape.set(rateLimit={"requests": 5, "window": "1h", "scope": "Node"})
    answers = [shape.ask() for _ in range(7)]
    assert [a.status for a in answers] == [200] * 5 + [429] * 2
    wait = int(answers[-1].field("retry-after"))
    assert 700 < wait <= 720, "an hour for five is one in twelve minutes"
    shape.set(rateLimit={"requests": 5, "window": "1h", "scope": "Node"}, denyFrom=["10.0.0.0/8"])
    assert shape.ask().status == 429, "a change of something else forgets nothing"
    shape.set(rateLimit={"requests": 6, "window": "1h"})
    assert shape.ask().status == 200, "another limit begins anew"
    shape.set(rateLimit={"requests": 1, "window": "1h", "burst": 3})
    assert [shape.ask().status for _ in range(4)] == [200, 200, 200, 429]
    shape.set()
    assert shape.ask().status == 200


def test_rate_limit_by_header_and_route(shape):
    shape.set(rateLimit={"requests": 2, "window": "1h", "key": "Header", "header": "X-Api-Key"})
    for key in ("a", "b"):
        assert [shape.ask(lines=[f"x-api-KEY: {key}"]).status for _ in range(3)] == [200, 200, 429]
    assert [shape.ask().status for _ in range(3)] == [200, 200, 429], "without one, by address"
    shape.set(rateLimit={"requests": 2, "window": "1h", "key": "Route"})
    assert [shape.ask(lines=[f"X-Api-Key: {i}"]).status for i in range(3)] == [200, 200, 429]
    faults = shape.refused(rateLimit={"requests": 2, "scope": "Cluster"})
    assert "Node" in faults["spec.rateLimit.scope"]


def _held(echo, path, count):
    """Answers of the path wait until the event is set."""
    release, arrived = threading.Event(), threading.Semaphore(0)

    def answer(_):
        arrived.release()
        release.wait(20 * SLOW)
        return ok(b"late")
    echo.answers[path] = answer
    return release, lambda: [arrived.acquire(timeout=10 * SLOW) for _ in range(count)]


def _ask_later(shape, path, results):
    thread = threading.Thread(target=lambda: results.append(shape.ask(path).status), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("spec,status", [
    ({"rateLimit": {"connections": 2}}, 429),
    ({"rateLimit": {"connections": 2, "key": "Route"}}, 429),
    ({"limits": {"connections": 2}}, 503),
])
def test_requests_at_once(node, echo, unique, spec, status):
    shape = Shape(node, echo, unique).set(**spec)
    release, wait = _held(echo, "/slow", 2)
    results = []
    threads = [_ask_later(shape, "/slow", results) for _ in range(2)]
    assert all(wait())
    answer = shape.ask("/other")
    assert answer.status == status and answer.field("retry-after") == "1"
    shape.set(**spec, denyFrom=["10.0.0.0/8"])  # asks /probe, which has no limit
    assert shape.ask("/other").status == status, "a change of something else forgets nobody"
    release.set()
    for thread in threads:
        thread.join()
    assert results == [200, 200]
    until(lambda: shape.ask("/other").status == 200, "places are given back")


def test_body_limit(shape, with_settings):
    shape.set(limits={"bodyBytes": 1000})
    assert shape.ask(method="POST", lines=["Content-Length: 1000"], body=b"x" * 1000).status == 200
    assert shape.ask(method="POST", lines=["Content-Length: 1001"], body=b"x" * 1001).status == 413
    chunk = b"%x\r\n%s\r\n" % (600, b"y" * 600)
    lines = ["Transfer-Encoding: chunked"]
    assert shape.ask(method="POST", lines=lines, body=chunk + b"0\r\n\r\n").status == 200
    assert shape.ask(method="POST", lines=lines, body=chunk * 2 + b"0\r\n\r\n").status == 413
    with_settings(limits={"bodyBytes": 500})
    shape.set()
    until(lambda: shape.ask(method="POST", lines=["Content-Length: 501"], body=b"x" * 501).status == 413,
          "the limit of Settings")
    shape.set(limits={"bodyBytes": 600})
    assert shape.ask(method="POST", lines=["Content-Length: 501"], body=b"x" * 501).status == 200
    shape.set(limits={"bodyBytes": 0})
    assert shape.ask(method="POST", lines=lines, body=chunk * 9 + b"0\r\n\r\n").status == 200


def test_connections_per_client(shape, with_settings, node):
    shape.set()
    with_settings(limits={"connectionsPerClient": 3})
    open_now = []

    def one_more():
        sock = socket.create_connection(("127.0.0.1", node.http_port), timeout=5 * SLOW)
        try:
            sock.sendall(f"GET / HTTP/1.1\r\nHost: {shape.host}\r\n\r\n".encode())
            answered = sock.recv(4096).startswith(b"HTTP/1.1 200")
        except ConnectionError:
            answered = False
        if answered:
            open_now.append(sock)
        else:
            sock.close()
        return answered
    def settled():
        while open_now:
            open_now.pop().close()
        return [one_more() for _ in range(5)] == [True, True, True, False, False]
    until(settled, "three are served")
    open_now.pop().close()
    until(one_more, "who leaves makes room")
    for sock in open_now:
        sock.close()


def test_connections_that_ask_for_nothing(node, with_settings):
    def nothing():
        return client.send_raw(node.http_port, b"", half_close=True)
    assert nothing().startswith(b"HTTP/1.1 400 ")
    with_settings(emptyRequests="Ignore")
    until(lambda: nothing() == b"", "settings are in force")
    with_settings(emptyRequests="Respond", timeouts={"clientHeader": "300ms"})
    until(lambda: client.send_raw(node.http_port, b"").startswith(b"HTTP/1.1 408 "), "late ones as well")
    with_settings(emptyRequests="Ignore", timeouts={"clientHeader": "300ms"})
    until(lambda: client.send_raw(node.http_port, b"") == b"", "and they are ignored")
    assert client.send_raw(node.http_port, b"GET").startswith(b"HTTP/1.1 408 ")


# ---- redirects and rewriting ----

@pytest.mark.parametrize("path,redirect,asked,location,status", [
    ("/", {"scheme": "Https"}, "/a/b?c=d", "https://HOST/a/b?c=d", 302),
    ("/", {"scheme": "Https", "status": 301}, "/", "https://HOST/", 301),
    ("/", {"scheme": "Https", "port": 8443, "status": 308}, "/x", "https://HOST:8443/x", 308),
    ("/", {"scheme": "Https", "port": 443}, "/x", "https://HOST/x", 302),
    ("/", {"host": "new.example.com"}, "/x?", "http://new.example.com/x?", 302),
    ("/", {"port": 81}, "/x", "http://HOST:81/x", 302),
    ("/old", {"replacePrefix": "/new"}, "/old/x?y", "http://HOST/new/x?y", 302),
    ("/old", {"replacePrefix": "/"}, "/old", "http://HOST/", 302),
    ("/old", {"replacePrefix": "/"}, "/old//evil.com/", "http://HOST/evil.com/", 302),
    ("/old", {"replacePath": "/gone", "status": 303}, "/old/x/y?z=1", "http://HOST/gone?z=1", 303),
    ("/", {"replacePath": "/n"}, "/%0d%0aSet-Cookie:x", "http://HOST/n", 302),
    ("/", {"scheme": "Https"}, "/%0d%0aSet-Cookie:x", "https://HOST/%0d%0aSet-Cookie:x", 302),
    ("/", {"scheme": "Https"}, '/a"<b>?"q"', "https://HOST/a%22%3Cb%3E?%22q%22", 302),
])
def test_redirect(shape, path, redirect, asked, location, status):
    shape.set(path=path, redirect=redirect)
    before = len(shape.echo.requests)
    answer = shape.ask(asked)
    assert answer.status == status
    assert answer.fields("location") == [location.replace("HOST", shape.host)]
    assert len(shape.echo.requests) == before, "no endpoint is asked"


def test_redirect_keeps_the_port_that_was_asked_for(shape):
    shape.set(redirect={"replacePath": "/n"})
    text = f"GET / HTTP/1.1\r\nHost: {shape.host}:8080\r\nConnection: close\r\n\r\n"
    answer = Answer(client.send_raw(shape.node.http_port, text.encode()))
    assert answer.field("location") == f"http://{shape.host}:8080/n"
    shape.set(redirect={"scheme": "Https"})
    answer = Answer(client.send_raw(shape.node.http_port, text.encode()))
    assert answer.field("location") == f"https://{shape.host}/", "another scheme, another port"
    assert shape.ask(method="HEAD").body == b""
    faults = shape.refused(redirect={"scheme": "Same"})
    assert "itself" in faults["spec.redirect"]
    assert "spec.redirect.replacePath" in shape.refused(redirect={"replacePath": "/a\r\nX: y"})
    assert "spec.redirect.host" in shape.refused(redirect={"host": "a b"})


@pytest.mark.parametrize("path,replacement,asked,upstream", [
    ("/foo", "/bar", "/foo/x", "/bar/x"),
    ("/foo", "/bar", "/foo", "/bar"),
    ("/foo", "/bar", "/foo/", "/bar/"),
    ("/foo", "/bar", "/foo?q=/foo", "/bar?q=/foo"),
    ("/foo", "/", "/foo", "/"),
    ("/foo", "/", "/foo/", "/"),
    ("/foo", "/", "/foo/x", "/x"),
    ("/foo", "/", "/foo?a", "/?a"),
    ("/foo", "/bar/", "/foo/x", "/bar/x"),
    ("/foo", "/bar/", "/foo", "/bar/"),
    ("/", "/bar", "/x", "/bar/x"),
    ("/", "/bar", "/", "/bar/"),
    ("/foo/", "/bar", "/foo/x", "/bar/x"),
    ("/foo/", "/bar/", "/foo/x", "/bar/x"),
    (None, "/bar", "/x", "/bar/x"),
    ("/a+b", "/z", "/a+b/x", "/z/x"),
    ("/v1.0", "/z", "/v1.0/x", "/z/x"),
    ("/foo", "/b%20r", "/foo/%2F%41", "/b%20r/%2F%41"),
    ("/foo", "/bar", "/%66oo/x", "/bar/x"),
    ("/a/b", "/c", "/a/b/c//d", "/c/c//d"),
    ("/foo", "/", "/foo//x", "/x"),
])
def test_rewrite_prefix(shape, path, replacement, asked, upstream):
    shape.set(path=path, rewrite={"replacePrefix": replacement})
    assert shape.seen(asked).target == upstream


def test_rewrite_leaves_other_paths_alone(shape):
    shape.set(path="/v1.0", rewrite={"replacePrefix": "/z"})
    assert shape.ask("/v1x0/x").status == 404, "a dot is a dot"
    assert shape.ask("/v1.0x").status == 404, "whole segments"


def test_rewrite_path_and_host(shape, with_settings):
    shape.set(path="/a", rewrite={"replacePath": "/b", "host": "Inside.example.com"})
    request = shape.seen("/a/x?q=1")
    assert request.target == "/b?q=1"
    assert request.fields("host") == ["inside.example.com"]
    assert request.fields("x-forwarded-host") == [shape.host]
    shape.set(path="/a", pathType="Exact", rewrite={"replacePrefix": "/b"})
    assert shape.seen("/a").target == "/b"
    absolute = f"GET http://{shape.host}/a HTTP/1.0\r\n\r\n"
    shape.set(path="/a", rewrite={"host": "inside.example.com"})
    assert Answer(client.send_raw(shape.node.http_port, absolute.encode())).status == 200
    assert shape.echo.last().fields("host") == ["inside.example.com"]
    with_settings(dotSegments="Remove")
    shape.set(path="/a", rewrite={"replacePrefix": "/b"})
    until(lambda: shape.seen("/x/../a/./y?z").target == "/b/y?z", "dot segments go first")


# ---- headers ----

def test_request_headers(shape, with_settings):
    shape.set(headers={"request": [
        {"action": "Set", "name": "X-Set", "value": "new"},
        {"action": "Add", "name": "X-Add", "value": "more"},
        {"action": "Delete", "name": "X-Gone"},
        {"action": "Set", "name": "X-Renamed", "value": "%{request.header.X-Gone}"},
        {"action": "Set", "name": "X-Absent", "value": "%{request.header.x-nothing}"},
        {"action": "Set", "name": "X-Percent", "value": "100%%"},
    ]})
    request = shape.seen(lines=["x-SET: old", "X-Set: older", "X-Add: one", "X-Gone: a", "x-gone: b",
                                "X-Absent: claimed", "Traceparent: 00-ab-cd-01", "Tracestate: a=b"])
    assert request.fields("x-set") == ["new"]
    assert request.fields("x-add") == ["one", "more"]
    assert request.fields("x-gone") == []
    assert request.fields("x-renamed") == ["a, b"]
    assert request.fields("x-absent") == [], "a value that is nothing is no field"
    assert request.fields("x-percent") == ["100%"]
    assert request.fields("traceparent") == ["00-ab-cd-01"] and request.fields("tracestate") == ["a=b"]
    with_settings(headers={"request": [{"name": "X-Set", "value": "settings"},
                                       {"name": "X-All", "value": "%{node}"}]})
    until(lambda: shape.seen().fields("x-all") == ["r1"], "settings are in force")
    assert shape.echo.last().fields("x-set") == ["new"], "the rule has the last word on requests"


def test_variables(shape, node):
    names = ["client.address", "host", "path", "query", "method", "route", "namespace", "backend", "node",
             "scheme", "listener.port", "request.header.X-In", "request.header.X-Twice"]
    edits = [{"name": f"V-{i}", "value": f"<%{{{name}}}>"} for i, name in enumerate(names)]
    late = [{"name": "V-Endpoint", "value": "%{endpoint}"}, {"name": "V-Out", "value": "%{response.header.x-origin}"}]
    shape.set(path="/p", headers={"request": edits, "response": edits + late})
    shape.echo.answers["/p/%41"] = ok(b"x", "X-Origin: o1")
    answer = shape.ask("/p/%41?a=b&c", lines=["X-In: in", "X-Twice: 1", "X-Twice: 2"])
    want = ["127.0.0.1", shape.host, "/p/%41", "a=b&c", "GET", "web", shape.name, "web", "r1", "http",
            str(node.http_port), "in", "1, 2"]
    for side in (shape.echo.last(), answer):
        assert [side.field(f"v-{i}") for i in range(len(names))] == [f"<{text}>" for text in want]
    assert answer.field("v-endpoint") == shape.echo.address
    assert answer.field("v-out") == "o1"
    port = int(shape.set(headers={"request": [{"name": "V", "value": "%{client.port}"}]}).seen().field("v"))
    assert port > 0


def test_response_headers(shape, with_settings):
    shape.echo.answers["/"] = ok(b"body", "Server: thing/1.2", "X-Set: a", "X-Set: b", "X-Keep: k")
    shape.set(headers={"response": [
        {"action": "Delete", "name": "server"},
        {"action": "Set", "name": "X-Set", "value": "one of %{response.header.x-set}"},
        {"action": "Add", "name": "X-Keep", "value": "%{method} %{path}"},
    ]})
    with_settings(headers={"response": [{"name": "X-Frame-Options", "value": "DENY"},
                                        {"name": "X-Path", "value": "%{path}"}]})
    until(lambda: shape.ask().field("x-frame-options") == "DENY", "settings are in force")
    answer = shape.ask()
    assert len(answer.fields("date")) == 1, "the router adds what the endpoint left out"
    shape.set(headers={"response": [{"name": "Date", "value": "never"}]})
    assert shape.ask().fields("date") == ["never"]
    shape.set(headers={"response": [{"action": "Delete", "name": "Date"}]})
    assert shape.ask().fields("date") == []


def test_response_headers_in_order(shape, with_settings):
    shape.echo.answers["/"] = ok(b"body", "Server: thing/1.2", "X-Set: a", "X-Set: b", "X-Keep: k")
    shape.set(headers={"response": [
        {"action": "Delete", "name": "server"},
        {"action": "Set", "name": "X-Set", "value": "one of %{response.header.x-set}"},
        {"action": "Add", "name": "X-Keep", "value": "%{method} %{path}"},
    ]})
    with_settings(headers={"response": [{"name": "X-Path", "value": "%{path}"}]})
    until(lambda: shape.ask().field("x-path") == "/", "settings are in force")
    answer = shape.ask()
    assert answer.fields("server") == []
    assert answer.fields("x-set") == ["one of a, b"]
    assert answer.fields("x-keep") == ["k", "GET /"]
    assert answer.field("x-path") == "/"
    assert answer.body == b"body"


def test_what_cannot_be_edited_is_refused_with_its_place(shape):
    for name in ("Host", "Content-Length", "transfer-encoding", "Connection", "TE", "Upgrade", "Trailer",
                 "Keep-Alive", "Proxy", "Expect", "Cookie", "Set-Cookie", "Strict-Transport-Security"):
        faults = shape.refused(headers={"request": [{"name": "X-A", "value": "a"}, {"name": name, "value": "x"}]})
        assert "cannot be changed" in faults["spec.headers.request[1].name"], name
    for value, part in [("%{nothing}", "accepted are client.address"), ("%{host", "begins no variable"),
                        ("50%", "%%"), ("%{endpoint}", "accepted are"), ("a\r\nb", "control byte"),
                        ("%{request.header.a b}", "header name")]:
        faults = shape.refused(headers={"request": [{"name": "X-A", "value": value}]})
        assert part in faults["spec.headers.request[0].value"], value


def test_edits_of_forwarded_fields_win(shape):
    shape.set(headers={"request": [{"name": "X-Forwarded-Proto", "value": "https"},
                                   {"action": "Delete", "name": "Forwarded"}]})
    request = shape.seen(lines=["X-Forwarded-Proto: ftp"])
    assert request.fields("x-forwarded-proto") == ["https"]
    assert request.fields("forwarded") == []
    assert request.fields("x-forwarded-for") == ["127.0.0.1"]


def test_request_id(shape, with_settings):
    shape.set(headers={"response": [{"name": "X-Request-Id", "value": "%{request.id}"}]})
    with_settings(uniqueId={"header": "X-Request-Id"})
    until(lambda: shape.seen().field("x-request-id"), "settings are in force")
    ids = set()
    for _ in range(5):
        answer = shape.ask(lines=["X-Request-Id: mine", "x-request-id: other"])
        (seen,) = shape.echo.last().fields("x-request-id")
        assert answer.field("x-request-id") == seen
        assert len(seen) == 32 and int(seen, 16) >= 0
        ids.add(seen)
    assert len(ids) == 5, "who is not trusted does not choose"
    with_settings(uniqueId={"header": "X-Request-Id", "format": "%{node}-%{client.address}-%{random}"})
    until(lambda: shape.seen().field("x-request-id").startswith("r1-127.0.0.1-"), "a format")
    with_settings(uniqueId={"header": "X-Request-Id"}, trustedProxies=["127.0.0.1"])
    until(lambda: shape.seen(lines=["X-Request-Id: mine"]).fields("x-request-id") == ["mine"], "trusted")
    assert len(shape.seen().field("x-request-id")) == 32


def test_hsts_of_settings_is_for_tls_only(shape, with_settings):
    shape.set()
    shape.echo.answers["/"] = ok(b"x", "Strict-Transport-Security: max-age=1")
    with_settings(hsts={"maxAge": "1d", "includeSubdomains": True}, trustedProxies=["127.0.0.1"])
    secure = ["X-Forwarded-Proto: https"]
    until(lambda: shape.ask(lines=secure).fields("strict-transport-security")
          == ["max-age=86400; includeSubDomains"], "settings are in force")
    assert shape.ask().fields("strict-transport-security") == ["max-age=1"]


# ---- CORS ----

def test_cors_preflight(shape):
    shape.set(cors={"allowOrigins": ["https://a.example.com", "https://b.example.com:8443"],
                    "allowMethods": ["GET", "PUT"], "allowHeaders": ["X-A", "X-B"], "maxAge": "10m",
                    "allowCredentials": True})
    ask = ["Origin: https://a.example.com", "Access-Control-Request-Method: PUT",
           "Access-Control-Request-Headers: x-a"]
    before = len(shape.echo.requests)
    answer = shape.ask(method="OPTIONS", lines=ask)
    assert answer.status == 204 and answer.body == b"" and answer.fields("content-length") == []
    assert answer.fields("access-control-allow-origin") == ["https://a.example.com"]
    assert answer.field("access-control-allow-methods") == "GET, PUT"
    assert answer.field("access-control-allow-headers") == "X-A, X-B"
    assert answer.field("access-control-allow-credentials") == "true"
    assert answer.field("access-control-max-age") == "600"
    assert "Origin" in answer.field("vary")
    answer = shape.ask(method="OPTIONS", lines=["Origin: https://evil.example.com", *ask[1:]])
    assert answer.status == 204 and not [n for n, _ in answer.lines if n.lower().startswith("access-control")]
    assert "Origin" in answer.field("vary")
    assert len(shape.echo.requests) == before, "no endpoint is asked"
    assert shape.ask(method="OPTIONS", lines=ask[:1]).status == 200, "an OPTIONS that is no preflight passes"
    shape.set(cors={"allowOrigins": ["*"]})
    answer = shape.ask(method="OPTIONS", lines=ask)
    assert answer.field("access-control-allow-origin") == "*"
    assert answer.field("access-control-allow-methods") == "PUT"
    assert answer.field("access-control-allow-headers") == "x-a"


def test_cors_of_responses(shape):
    shape.echo.answers["/"] = ok(b"x", "Access-Control-Allow-Origin: *", "access-control-foo: x", "Vary: Accept")
    shape.set(cors={"allowOrigins": ["https://a.example.com"], "exposeHeaders": ["X-A"],
                    "allowCredentials": True}, rateLimit={"requests": 3, "window": "1h"})
    answer = shape.ask(lines=["Origin: https://A.example.com"])
    assert answer.fields("access-control-allow-origin") == ["https://A.example.com"]
    assert answer.field("access-control-expose-headers") == "X-A"
    assert answer.field("access-control-allow-credentials") == "true"
    assert answer.fields("access-control-foo") == []
    assert answer.fields("vary") == ["Accept", "Origin"]
    answer = shape.ask(lines=["Origin: https://evil.example.com"])
    assert not [n for n, _ in answer.lines if n.lower().startswith("access-control")]
    assert shape.ask().fields("vary") == ["Accept", "Origin"]
    answer = shape.ask(lines=["Origin: https://a.example.com"])
    assert answer.status == 429 and answer.field("access-control-allow-origin") == "https://a.example.com"
    assert answer.field("retry-after")
    faults = shape.refused(cors={"allowOrigins": ["*"], "allowCredentials": True})
    assert "spec.cors.allowOrigins[0]" in faults


# ---- error pages ----

def test_error_pages(shape, with_settings, node):
    with_settings(errorPages=[{"status": 404, "contentType": "application/json", "body": '{"no":1}'},
                              {"status": 403, "body": "<p>settings</p>"},
                              {"status": 400, "body": "bad"}])
    missing = "GET / HTTP/1.1\r\nHost: nowhere.example.com\r\nConnection: close\r\n\r\n"

    def ask(text):
        return Answer(client.send_raw(node.http_port, text.encode()))
    until(lambda: ask(missing).body == b'{"no":1}', "settings are in force")
    answer = ask(missing)
    assert answer.status == 404 and answer.field("content-type") == "application/json"
    answer = ask(missing.replace("GET", "HEAD"))
    assert answer.body == b"" and answer.field("content-length") == "8"
    assert ask("GET / HTTP/1.1\r\nHost: a b\r\n\r\n").body == b"bad", "before the route is known, too"
    shape.set(denyFrom=["127.0.0.1"])
    answer = shape.ask()
    assert answer.body == b"<p>settings</p>" and answer.field("content-type") == "text/html; charset=utf-8"
    shape.set(denyFrom=["127.0.0.1"], errorPages=[{"status": 403, "contentType": "text/plain", "body": "route"}])
    assert shape.ask().body == b"route"
    shape.set(errorPages=[{"status": 403, "contentType": "text/plain", "body": "route"}])
    shape.echo.answers["/"] = ok(b"mine", status="403 Forbidden")
    assert shape.ask().body == b"mine", "what the endpoint answers is the endpoint's"


def test_a_route_that_is_changed_under_traffic_fails_no_request(shape, make_origin):
    origin = make_origin("steady")
    shape.set()
    shape.node.api.apply(backend("web", origin.address, namespace=shape.name))
    with client.Load([shape.node.http_port], shape.host, clients=4) as load:
        for turn in range(20):
            shape.set(headers={"response": [{"name": "X-Turn", "value": f"{turn} %{{path}}"}]},
                      rateLimit={"requests": 1000000000}, rewrite={"replacePrefix": f"/t{turn}"})
            shape.node.api.apply(backend("web", origin.address, namespace=shape.name))
    assert not load.lost, load.lost[:3]
