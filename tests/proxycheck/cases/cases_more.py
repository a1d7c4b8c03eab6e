"""More of the suite's kinds, where a router of this make could be wrong. Loaded by run.sh."""

import time

from proxycheck import http1, origin as origins
from proxycheck.kit import (bad_response, get, hostile, post, body_is, require_clear, require_own_answer,
                            require_refusal, show)
from proxycheck.registry import case, register
from proxycheck.wire import Timeout

CHUNKED = "Transfer-Encoding: chunked"

# -- framing and smuggling ----------------------------------------------------------------------

for _slug, _title, _lines, _body, _rule in (
    ("cl-leading-zeros", "Content-Length with leading zeros", ["Content-Length: 000005"], b"hello", "serve"),
    ("cl-hex", "Content-Length in hexadecimal", ["Content-Length: 0x5"], b"hello", "reject"),
    ("cl-inner-space", "a space inside Content-Length", ["Content-Length: 1 0"], b"0123456789", "reject"),
    ("cl-nul", "NUL behind Content-Length's digits", ["Content-Length: 5\0"], b"hello", "reject"),
    ("cl-trailing-comma", "a comma behind Content-Length", ["Content-Length: 5,"], b"hello", "safe"),
    ("cl-vertical-tab", "a vertical tab before Content-Length's digits", ["Content-Length: \x0b5"], b"hello",
     "reject"),
    ("te-space-in-name", "a space inside Transfer-Encoding's name", ["Transfer Encoding: chunked",
     "Content-Length: 5"], b"0\r\n\r\n", "reject"),
    ("te-empty", "an empty Transfer-Encoding with Content-Length", ["Transfer-Encoding:", "Content-Length: 5"],
     b"hello", "reject"),
    ("te-comma-first", "an empty element before chunked", ["Transfer-Encoding: ,chunked"],
     b"5\r\nhello\r\n0\r\n\r\n", "safe"),
    ("te-comma-last", "an empty element behind chunked", ["Transfer-Encoding: chunked,"],
     b"5\r\nhello\r\n0\r\n\r\n", "safe"),
    ("te-http10", "chunked in HTTP/1.0 with keep-alive", None, b"", "reject"),
    ("cl-then-te-then-cl", "lengths around a coding", ["Content-Length: 5", CHUNKED, "Content-Length: 5"],
     b"0\r\n\r\n", "reject"),
    ("cl-nominated-twice", "Connection names Content-Length and Host",
     ["Connection: content-length, host, close", "Content-Length: 5"], b"hello", "serve"),
):
    _raw = post(_lines, _body) if _lines else (
        b"POST /first HTTP/1.0\r\nHost: app.test\r\nConnection: keep-alive\r\n" + CHUNKED.encode()
        + b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    hostile("smuggling/more-" + _slug, _title, "RFC 9112 6.1, 6.3", _raw, rule=_rule)

for _slug, _title, _body, _rule in (
    ("size-tab", "a tab behind the chunk size", b"5\t\r\nhello\r\n0\r\n\r\n", "safe"),
    ("size-17-digits", "a chunk size of seventeen digits", b"00000000000000005\r\nhello\r\n0\r\n\r\n", "safe"),
    ("size-underscore", "an underscore in the chunk size", b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n", "cut"),
    ("size-plus", "a plus sign before the chunk size", b"+5\r\nhello\r\n0\r\n\r\n", "cut"),
    ("size-2-64", "a chunk size of 2^64", b"10000000000000000\r\nhello\r\n0\r\n\r\n", "cut"),
    ("ext-cr", "bare CR inside an extension", b"5;a\rb\r\nhello\r\n0\r\n\r\n", "safe"),
    ("ext-nul", "NUL inside an extension", b"5;a\0b\r\nhello\r\n0\r\n\r\n", "safe"),
    ("ext-without-semicolon", "an extension without semicolon", b"5 a=b\r\nhello\r\n0\r\n\r\n", "safe"),
    ("data-cr-only", "CR alone behind the data", b"5\r\nhello\r0\r\n\r\n", "cut"),
    ("last-data", "bytes behind the last chunk's line", b"0\r\nX\r\n\r\n", "safe"),
    ("trailer-te", "a transfer coding in the trailers", b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
     "safe"),
    ("trailer-fold", "a folded trailer", b"5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n", "safe"),
    ("trailer-nul", "NUL in a trailer", b"5\r\nhello\r\n0\r\nX-A: \0\r\n\r\n", "safe"),
):
    hostile("smuggling/more-chunk-" + _slug, _title, "RFC 9112 7.1", post([CHUNKED], _body), rule=_rule,
            extra=(lambda t, found, replies: None) if _rule == "cut" else None, fin=_rule == "cut")

for _slug, _title, _raw, _rule in (
    ("lf-lines", "a request with bare LF line ends", b"GET /first HTTP/1.1\nHost: app.test\n\n", "safe"),
    ("mixed-ends", "one LF among CRLFs", b"GET /first HTTP/1.1\r\nHost: app.test\nX-A: b\r\n\r\n", "safe"),
    ("crcrlf", "CR CR LF", b"GET /first HTTP/1.1\r\nHost: app.test\r\r\n\r\n", "safe"),
    ("empty-line-twice", "two empty lines before the request line", b"\r\n\r\n" + get(), "safe"),
    ("fold-last", "a folded last line", get("X-A: b\r\n\tc"), "safe"),
    ("name-space", "a space inside a field name", get("X A: b"), "reject"),
    ("name-nul", "NUL in a field name", get("X\0A: b"), "reject"),
    ("name-slash", "a slash in a field name", get("X/A: b"), "reject"),
    ("value-nul", "NUL in a value", get("X-A: a\0b"), "safe"),
    ("value-del", "DEL in a value", get("X-A: a\x7fb"), "safe"),
    ("http-slash-only", "a request line of HTTP/1.1 alone", b"HTTP/1.1\r\n\r\n", "reject"),
    ("post-no-length", "a POST without length has no body", post([], b"") , "serve"),
    ("dot-names", "segments that only begin with dots", get(target="/.well-known/a/..b/...c/d."), "serve"),
    ("pipe-in-target", "a bar and braces in the target", get(target="/a|b{c}^`\"<>\\d"), "safe"),
    ("asterisk-path", "a target of two asterisks", get(target="**"), "reject"),
    ("options-absolute-empty", "OPTIONS with an absolute target without path",
     b"OPTIONS http://app.test HTTP/1.1\r\nHost: app.test\r\n\r\n", "safe"),
    ("absolute-capitals", "an absolute target in capitals",
     b"GET HTTP://APP.TEST/first HTTP/1.1\r\nHost: app.test\r\n\r\n", "serve"),
    ("absolute-query", "an absolute target with only a query",
     b"GET http://app.test?a=b HTTP/1.1\r\nHost: app.test\r\n\r\n", "serve"),
    ("absolute-fragment", "an absolute target with a fragment",
     b"GET http://app.test/a#b HTTP/1.1\r\nHost: app.test\r\n\r\n", "safe"),
    ("absolute-other-port", "an absolute target with another port than Host",
     b"GET http://app.test:81/ HTTP/1.1\r\nHost: app.test:80\r\n\r\n", "safe"),
):
    hostile("framing/more-" + _slug, _title, "RFC 9112 2, 3", _raw, rule=_rule)


@case("framing/more-head-error", "an error for HEAD has no body", "RFC 9110 9.3.2")
def head_error(t):
    t.simple()
    client = t.http()
    for host in ("none.test", "app.test", "none.test"):
        msg = client.ask(http1.request("/x", "HEAD", host), "HEAD")
        t.check(msg.status == (200 if host == "app.test" else 404), "got %r" % msg)
    t.check(t.fetch("/y", client=client).body == b"/y", "out of step after errors for HEAD")


@case("framing/more-http10-keep-alive", "HTTP/1.0 with keep-alive is kept", "RFC 9112 9.3", "friendliness")
def http10_kept(t):
    t.simple()
    client = t.http()
    for n in range(3):
        client.send(b"GET /%d HTTP/1.0\r\nHost: app.test\r\nConnection: Keep-Alive\r\n\r\n" % n)
        msg = client.read_response("GET")
        t.check(msg is not None and msg.body == b"/%d" % n, "request %d: %r" % (n, msg))


# -- limits ----------------------------------------------------------------------------------------


def _fits(slug, title, raw_of, **limits):
    def run(t):
        origin = t.simple(limits=limits)
        raw = raw_of()
        client = t.http()
        client.send(raw)
        msg = client.read_response("GET", 3.0)
        t.check(msg is not None and msg.status == 200, "what must be accepted got %s" % (msg and msg.status))
        t.check(len(require_clear(t, origin)[0].headers) >= raw.count(b"\r\n") - 2, "fields were lost")

    register("limits/more-" + slug, title, "the adapter's contract", "correctness", run)


def section(size):
    """A request whose field lines and empty line are this long."""
    start, host, end = b"GET /first HTTP/1.1\r\n", b"Host: app.test\r\n", b"\r\n"
    filler = size - len(host) - len(end) - len(b"X-Fill: \r\n")
    return start + host + b"X-Fill: " + b"f" * filler + b"\r\n" + end


_fits("header-bytes", "a header section of max_header_bytes", lambda: section(32768))
_fits("header-bytes-16k", "a header section of a smaller max_header_bytes", lambda: section(16384),
      max_header_bytes=16384)
_fits("header-lines", "max_headers field lines", lambda: get(*["X-%d: 1" % n for n in range(127)]))
_fits("header-lines-50", "a smaller max_headers of field lines", lambda: get(*["X-%d: 1" % n for n in range(49)]),
      max_headers=50)
_fits("long-target", "a target of 8000 bytes", lambda: get(target="/" + "t" * 7999))

# -- hop-by-hop ------------------------------------------------------------------------------------


def _stays(slug, title, fields, gone, kept=("x-end",)):
    def run(t):
        origin = t.simple()
        client = t.http()
        client.send(post(["X-End: 1", *fields], b"", "/first", "GET"))
        msg = client.read_response("GET")
        t.check(msg is not None and msg.status == 200, "got %r" % msg)
        for name in gone:
            t.check(not origin.requests[0].all(name), "%s reached the origin" % name)
        for name in kept:
            t.check(origin.requests[0].all(name), "%s was lost" % name)

    register("hop-by-hop/more-" + slug, title, "RFC 9110 7.6.1", "correctness", run)


_stays("te", "TE is for one hop", ["TE: gzip, deflate;q=0.5"], ["te"])
_stays("upgrade-alone", "Upgrade without Connection", ["Upgrade: websocket"], ["upgrade"])
_stays("proxy-connection", "Proxy-Connection", ["Proxy-Connection: keep-alive"], ["proxy-connection"])
_stays("http2-settings", "an h2c upgrade is not passed on",
       ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
       ["upgrade", "http2-settings"])
_stays("nominated-forwarded", "Connection cannot take away what the router says",
       ["Connection: X-Forwarded-For, X-Forwarded-Proto, Forwarded"], [],
       ["x-end", "x-forwarded-for", "x-forwarded-proto"])
_stays("nominated-many", "thirty names in Connection", ["Connection: " + ", ".join("x-%d" % n for n in range(30)),
       *("X-%d: 1" % n for n in range(30))], ["x-0", "x-29"])


@case("hop-by-hop/more-response", "what an origin says of its connection stays there", "RFC 9110 7.6.1")
def response_hops(t):
    t.simple(origins.serve(http1.response(200, b"ok", [
        ("Connection", "Set-Cookie, Content-Length, X-Hop"), ("X-Hop", "1"), ("Proxy-Connection", "close"),
        ("Upgrade", "h2c"), ("X-End", "2")])))
    msg = t.fetch("/")
    t.check(msg.complete and msg.body == b"ok" and msg.all("x-end") == ["2"], "got %r" % msg.headers)
    t.check(not msg.all("x-hop") and not msg.all("upgrade") and not msg.all("proxy-connection"),
            "got %r" % msg.headers)


# -- forwarding --------------------------------------------------------------------------------------


def _for(slug, fields, policy, wanted, name="x-forwarded-for"):
    def run(t):
        origin = t.simple(forwarded=policy)
        t.fetch("/", headers=fields)
        got = [v.strip() for v in origin.requests[0].items(name) if v.strip()]
        t.check(got == wanted, "%s arrived as %r" % (name, origin.requests[0].all(name)))

    register("forwarding/more-" + slug, "%s of %r" % (policy, fields), "RFC 7239 4; practice", "correctness", run)


_for("for-empty", [("X-Forwarded-For", "")], "append", ["127.0.0.1"])
_for("for-two-lines", [("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-For", "10.0.0.2, 10.0.0.3")], "append",
     ["10.0.0.1", "10.0.0.2", "10.0.0.3", "127.0.0.1"])
_for("for-none", [], "append", ["127.0.0.1"])
_for("if-none-some", [("X-Forwarded-Proto", "gopher")], "if-none", ["127.0.0.1"])
_for("never-kept", [("X-Forwarded-For", "10.0.0.1")], "never", ["10.0.0.1"])
_for("replace-none", [], "replace", ["http"], "x-forwarded-proto")


@case("forwarding/more-open-quote", "an unfinished quote in Forwarded does not swallow the router's element",
      "RFC 7239 4", "security")
def open_quote(t):
    origin = t.simple()
    t.fetch("/", headers=[("Forwarded", 'for="10.0.0.1;proto=https')])
    line = ", ".join(origin.requests[0].all("forwarded"))
    t.check(line.count('"') % 2 == 0 and "127.0.0.1" in line, "arrived as %r" % line)


# -- responses ------------------------------------------------------------------------------------------

for _slug, _title, _raw, _rule, _more in (
    ("cl-list", "Content-Length: 2, 2", b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "sound", {}),
    ("cl-same-twice", "the same Content-Length twice",
     b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", "sound", {"body": b"ok"}),
    ("cl-huge", "a Content-Length of 2^64",
     b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nok", "502", {"then": "close"}),
    ("te-identity", "the identity coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok", "sound",
     {"then": "close"}),
    ("te-chunked-twice", "chunked, chunked",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "sound", {}),
    ("te-capitals", "CHUNKED", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n2\r\nok\r\n0\r\n\r\n",
     "serve", {"body": b"ok"}),
    ("100-unasked", "100 that nobody asked for",
     b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "serve", {"body": b"ok"}),
    ("199", "an unknown interim status",
     b"HTTP/1.1 199 Odd\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "serve", {"body": b"ok"}),
    ("101-unasked", "101 that nobody asked for",
     b"HTTP/1.1 101 No\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "502", {}),
    ("103-length", "an interim response with Content-Length",
     b"HTTP/1.1 103 H\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "sound",
     {"body": b"ok"}),
    ("204-length", "a 204 with a length and a body", b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", "sound",
     {}),
    ("205-length", "a 205", b"HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n", "serve", {"body": b""}),
    ("304-chunked", "a 304 that says chunked", b"HTTP/1.1 304 Not\r\nTransfer-Encoding: chunked\r\n\r\n", "serve",
     {}),
    ("600", "status 600", b"HTTP/1.1 600 Odd\r\nContent-Length: 2\r\n\r\nok", "sound", {}),
    ("nul-in-value", "NUL in a response field",
     b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 2\r\n\r\nok", "sound", {"body": b"ok"}),
    ("no-colon", "a response field without colon", b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\nok",
     "sound", {}),
    ("chunk-lf", "chunk lines ended by LF", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n",
     "sound", {}),
    ("chunk-ext", "chunk extensions",
     b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a="b;c"\r\nok\r\n0;x\r\n\r\n', "serve",
     {"body": b"ok"}),
    ("cut-trailers", "closes inside the trailers",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-A: ", "visible", {"then": "close"}),
    ("cut-last-line", "closes before the last empty line",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "visible", {"then": "close"}),
    ("stall-header", "stalls inside the header", b"HTTP/1.1 200 OK\r\nX-A: ", "502", {"then": "hold", "wait": 6.0}),
    ("rst-header", "resets inside the header", b"HTTP/1.1 200 OK\r\nX-A: ", "502", {"then": "rst"}),
    ("rst-interim", "resets behind an interim response", b"HTTP/1.1 103 H\r\n\r\n", "502", {"then": "rst"}),
    ("leading-crlf", "an empty line before the status line",
     b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "sound", {}),
    ("http09", "a response of HTTP/0.9", b"<html>hello</html>", "sound", {"then": "close"}),
    ("shttp", "another protocol's name", b"HTTQ/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "sound", {}),
    ("version-1-2", "HTTP/1.2", b"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", "sound", {}),
):
    bad_response("upstream-faults/more-" + _slug, _title, "RFC 9112 4, 6.3, 7.1", _raw, _rule, **_more)

bad_response("upstream-faults/more-head-length-body", "a body behind a HEAD's response", "RFC 9110 9.3.2",
             http1.response(200, b"hello"), "sound", method="HEAD")
bad_response("upstream-faults/more-http10-client-close", "a cut body for an HTTP/1.0 client", "RFC 9112 8",
             b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "visible", then="rst",
             version="HTTP/1.0", severity="data-loss",
             extra=lambda t, client, msg: None)

# -- exchanges -------------------------------------------------------------------------------------------


@case("retry/more-put-body", "a PUT's body arrives whole when its pooled connection was stale",
      "RFC 9110 9.2.2", "data-loss", limit=7.0)
def put_again(t):
    def handler(conn):
        served = 0
        while True:
            req = conn.read_request()
            if req is None or (conn.index == 0 and served == 1):
                return
            served += 1
            conn.send(http1.response(200, req.body))

    origin = t.simple(handler)
    client = t.http()
    t.check(t.fetch("/one", client=client).status == 200, "the first request failed")
    body = b"0123456789" * 1000
    client.send(http1.request("/two", "PUT", body=body))
    msg = client.read_response("PUT", 4.0)
    t.check(msg is not None and (msg.status >= 500 or msg.body == body), "got %r" % msg)
    t.check(all(r.body == body for r in origin.requests if r.target == "/two" and r.complete), "arrived otherwise")


@case("pooling/more-head-keeps", "HEAD, 204 and 304 keep the origin's connection in step", "RFC 9112 6.3")
def bodiless_keep(t):
    def answer(req):
        if req.target == "/204":
            return b"HTTP/1.1 204 None\r\n\r\n"
        if req.target == "/304":
            return b"HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n"
        full = http1.response(200, req.target.encode())
        return full[:full.find(b"\r\n\r\n") + 4] if req.method == "HEAD" else full

    origin = t.simple(origins.serve(answer))
    client = t.http()
    for n in range(3):
        t.check(t.fetch("/h", method="HEAD", client=client).status == 200, "HEAD failed")
        t.check(t.fetch("/204", client=client).status == 204, "204 failed")
        t.check(t.fetch("/304", client=client).status == 304, "304 failed")
        t.check(t.fetch("/g%d" % n, client=client).body == b"/g%d" % n, "GET out of step")
    t.check(origin.accepted <= 2, "%d connections" % origin.accepted)


@case("upgrade/more-early-data", "bytes behind an upgrade request arrive behind it", "RFC 9110 7.8", "data-loss")
def early_data(t):
    def handler(conn):
        conn.read_request()
        time.sleep(0.2)
        conn.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
        got = conn.take(5, 3.0)
        conn.send(got)
        conn.hold(2.0)

    t.simple(handler)
    client = t.http()
    client.send(get("Connection: Upgrade", "Upgrade: websocket") + b"early")
    msg = client.read_response("GET")
    t.check(msg is not None and msg.status == 101, "got %r" % msg)
    t.check(client.take(10, 3.0) == b"helloearly", "the tunnel's bytes differ")


@case("upgrade/more-client-reset", "a client that resets its tunnel frees the origin", "practice")
def client_reset(t):
    def handler(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        conn.hold(6.0)

    origin = t.simple(handler)
    client = t.http()
    client.send(get("Connection: Upgrade", "Upgrade: websocket"))
    t.check(client.read_response("GET").status == 101, "no upgrade")
    client.reset()
    t.check(origin.wait(lambda o: all(c.end for c in o.conns), 2.0), "the origin's side stayed open")


@case("upgrade/more-idle-cut", "an idle tunnel ends in time", "practice", limit=8.0)
def tunnel_cut(t):
    def handler(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        conn.hold(8.0)

    t.simple(handler, timeouts={"tunnel": 1.5})
    client = t.http()
    client.send(get("Connection: Upgrade", "Upgrade: websocket"))
    t.check(client.read_response("GET").status == 101, "no upgrade")
    t.check(client.ends_within(5.0), "still open 5 s later with a tunnel timeout of 1.5 s")


@case("expect/more-refused-closed", "417 of the router's own or the origin's leaves no body behind",
      "RFC 9110 10.1.1", "security")
def expect_and_pipeline(t):
    origin = t.simple(origins.naive)
    client = t.http()
    client.send(post(["Expect: nonsense", "Content-Length: 41"],
                     b"GET /smuggled HTTP/1.1\r\nHost: app.test\r\n\r\n"))
    replies = client.collect()
    require_clear(t, origin)
    if not origin.requests:
        require_refusal(t, client, replies)


@case("timeouts/more-drip-body", "a body that drips steadily is not given up", "practice", "data-loss", limit=9.0)
def drip_body(t):
    origin = t.simple(origins.serve(lambda req: http1.response(200, req.body)))
    client = t.http()
    client.send(post(["Content-Length: 5"]))
    for n in range(5):
        time.sleep(1.0)
        client.send(b"%d" % n)
    msg = client.read_response("POST", 3.0)
    t.check(msg is not None and msg.body == b"01234", "got %r" % msg)
    require_clear(t, origin)


@case("timeouts/more-silent-client", "a connection without a byte is closed in time", "practice", limit=7.0)
def silent_client(t):
    t.simple()
    client = t.http()
    t.check(not client.ends_within(1.0), "closed at once")
    t.check(client.ends_within(4.0), "still open after 5 s with a header timeout of 2 s")


@case("timeouts/more-unread-upload", "an origin that reads nothing of an upload is given up", "practice", limit=9.0)
def unread_upload(t):
    t.simple(lambda conn: time.sleep(7.0))
    client = t.http()
    client.send(post(["Content-Length: 60000000"]))
    began = time.monotonic()
    while time.monotonic() - began < 6.0 and client.send(b"u" * 65536, timeout=0.5):
        pass
    try:
        msg = client.read_response("POST", 5.0)
    except Timeout:
        msg = None
        t.check(client.end, "left hanging")
    t.check(msg is None or msg.status in (502, 504), "got %r" % msg)


@case("streaming/more-upload-length", "5 MB up with Content-Length, byte for byte", "practice", "data-loss", limit=8.0)
def upload_length(t):
    import hashlib
    import os

    origin = t.simple(origins.serve(
        lambda req: http1.response(200, hashlib.sha256(req.body).hexdigest().encode())))
    body = os.urandom(65536) * 80
    msg = t.fetch("/", method="PUT", body=body, timeout=7.0)
    t.check(msg.body == hashlib.sha256(body).hexdigest().encode(), "the upload differs")
    t.check(len(origin.requests) == 1, "%d requests" % len(origin.requests))


@case("streaming/more-trailers-late", "trailers that come a second later", "RFC 9112 7.1.2")
def late_trailers(t):
    def handler(conn):
        conn.read_request()
        conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\n")
        time.sleep(1.0)
        conn.send(b"X-T: 1\r\n\r\n")
        conn.hold(1.0)

    t.simple(handler)
    msg = t.fetch("/", timeout=4.0)
    t.check(msg.complete and msg.body == b"ok" and not msg.problems, "got %r" % msg)


@case("drain/more-idle-closed", "idle connections are closed when draining", "practice", limit=8.0)
def drain_idle(t):
    import os
    import signal

    t.simple()
    client, busy = t.http(), t.http()
    t.fetch("/", client=client)
    t.fetch("/", client=busy)
    if not t.router_.drain:
        return
    t.drained = True
    os.kill(t.router_.drain["pid"], getattr(signal, t.router_.drain["signal"]))
    t.check(client.ends_within(3.0), "an idle connection stayed open")
    t.check(not client.rx[client.pos:], "got " + show(client.rx[client.pos:], 60))


@case("slow-client/more-many-pipelined", "fifty pipelined requests are answered in order", "RFC 9112 9.3.2")
def many_pipelined(t):
    origin = t.simple()
    client = t.http()
    client.send(b"".join(get(target="/%d" % n) for n in range(50)))
    for n in range(50):
        msg = client.read_response("GET", 3.0)
        t.check(msg is not None and msg.body == b"/%d" % n, "answer %d was %r" % (n, msg))
    t.check(len(origin.requests) == 50, "%d arrived" % len(origin.requests))


@case("slow-client/more-pipelined-slow", "a slow answer does not let a later one pass it", "RFC 9112 9.3.2")
def pipelined_slow(t):
    def answer(req):
        time.sleep(0.4 if req.target == "/slow" else 0)
        return http1.response(200, req.target.encode())

    t.simple(origins.serve(answer))
    client = t.http()
    client.send(get(target="/slow") + get(target="/fast"))
    got = [client.read_response("GET", 3.0).body for _ in range(2)]
    t.check(got == [b"/slow", b"/fast"], "got %r" % got)


@case("routing/more-target-unchanged", "odd but legal targets arrive as they were sent", "RFC 3986")
def targets(t):
    origin = t.simple()
    client = t.http()
    wanted = ["/a%2e%2eb", "/a//b", "/a/b/", "/a?", "/a??b?", "/%7Euser", "/a;b=c/d", "/a:b", "/a@b", "/?a=%2F..%2F",
              "/a/.b", "/-._~", "/a%20b+c"]
    for target in wanted:
        msg = t.fetch(target, client=client)
        t.check(msg.status == 200, "%s got %d" % (target, msg.status))
    t.check([r.target for r in origin.requests] == wanted, "arrived: %r" % [r.target for r in origin.requests])


@case("routing/more-own-answer", "own answers keep the connection in step", "RFC 9112 9.3")
def own_answers(t):
    t.simple()
    client = t.http()
    for n in range(4):
        require_own_answer(t, client, "/%d" % n)
        msg = t.fetch("/%d" % n, host="none.test", client=client)
        t.check(msg.status in (404, 421, 503), "got %d" % msg.status)
        t.check(body_is(b"") is not None and msg.complete, "not complete")
