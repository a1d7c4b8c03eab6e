"""Byte streams of clients and endpoints: every kind of message and of fault, for split tests.

Run as a program, it writes them into two folders, as first inputs of fuzz_stream and fuzz_reply.

`REQUESTS`: what a client sends on one connection, and the statuses that it gets (interim ones too).
`REPLIES`: what an endpoint sends for one request, and what the client sees of it. Limits are those
of `LIMITS`. The texts are short, so that they can be cut at every byte; what has to be long is
repeated from parts.
"""

import os
import sys
from dataclasses import dataclass

LIMITS = {"header_bytes_max": 8192, "header_count_max": 64, "uri_bytes_max": 2048}


@dataclass
class Requests:
    name: str
    raw: bytes
    statuses: tuple
    end: str  # "probe": a last request with Connection: close follows; "fin": the client ends


@dataclass
class Reply:
    name: str
    asked: str  # G: GET, H: HEAD, U: GET with Upgrade, 0: GET by HTTP/1.0
    raw: bytes
    status: int  # 0: the client sees no response at all
    whole: bool  # the client sees its end
    close: bool  # the endpoint closes behind it


PROBE = b"GET /last HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"


def _lines(first, *fields, body=b""):
    head = "\r\n".join([first, *fields, "", ""])
    return head.encode("latin-1") + (body if isinstance(body, bytes) else body.encode("latin-1"))


def _get(*fields, first="GET / HTTP/1.1", host="Host: a.test"):
    return _lines(first, *([host] if host else []), *fields)


def _post(*fields, body=b"", first="POST /p HTTP/1.1"):
    return _lines(first, "Host: a.test", *fields, body=body)


def _chunked(body, *fields, first="POST /c HTTP/1.1"):
    return _post("Transfer-Encoding: chunked", *fields, body=body, first=first)


REQUESTS = []


def _ok(name, raw, *statuses):
    """Taken as it is; what follows on the connection is served."""
    REQUESTS.append(Requests(name, raw, (statuses or (200,)) + (200,), "probe"))


def _bad(name, raw, *statuses):
    """Refused, and nothing behind it is served."""
    REQUESTS.append(Requests(name, raw, statuses or (400,), "probe"))


def _last(name, raw, *statuses):
    """Taken, but the connection ends with it."""
    REQUESTS.append(Requests(name, raw, statuses or (200,), "probe"))


def _open(name, raw, *statuses):
    """Never complete: the client ends its direction."""
    REQUESTS.append(Requests(name, raw, statuses, "fin"))


# ---- requests: sound ----

_ok("get", _get())
_ok("get-many-fields", _get(*(f"X-{i}: {'v' * i}" for i in range(40))))
_ok("get-query", _get(first="GET /a/b%20c;d=e?x=1&y=%zz?z HTTP/1.1"))
_ok("get-absolute", _get(first="GET http://a.test/abs?q HTTP/1.1"))
_ok("get-absolute-empty-path", _get(first="GET http://A.test:80 HTTP/1.1", host="Host: a.test:80"))
_ok("options-star", _get(first="OPTIONS * HTTP/1.1"))
_ok("head", _get(first="HEAD /h HTTP/1.1"))
_ok("other-method", _get(first="FROBNICATE /x HTTP/1.1"))
_ok("method-of-one-letter", _get(first="M /x HTTP/1.1"))
_ok("blank-lines-first", b"\r\n\r\n" + _get())
_ok("host-in-capitals", _get(host="HOST: A.TEST.:80"))
_ok("space-around-values", _get("X-A:   b \t ", "X-B:\tc", "X-C:", "X-D: \t "))
_ok("obs-text", _get("X-A: \xe4\xf6\xfc\xff"))
_ok("tabs-in-value", _get("X-A: a\tb\t\tc"))
_ok("colons", _get("X-A: a:b::", "X-B::"))
_ok("cookie-and-auth", _get("Cookie: a=b; c=d", "Authorization: Basic Zm9vOmJhcg=="))
_ok("cookies-and-ours", _get("Cookie: a=b; ROUTE=AAAAAAAAAAAAAAAA; c=d", "Cookie: ROUTE=x", "Cookie: e"))
_ok("hop-by-hop", _get("Connection: x-mine, keep-alive", "X-Mine: 1", "Keep-Alive: timeout=5",
                       "TE: trailers, deflate", "Proxy-Connection: close", "Proxy: x"))
_ok("forwarded", _get("X-Forwarded-For: 9.9.9.9", "Forwarded: for=9.9.9.9", "X-Forwarded-For: 8.8.8.8"))
_ok("post-length", _post("Content-Length: 11", body=b"hello world"))
_ok("post-length-0", _post("Content-Length: 0"))
_ok("post-length-leading-zeros", _post("Content-Length: 0005", body=b"hello"))
_ok("get-with-body", _post("Content-Length: 5", body=b"hello", first="GET /b HTTP/1.1"))
_ok("body-like-a-request", _post("Content-Length: 40", body=_get()[:36].ljust(40, b"!")))
_ok("chunked", _chunked(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"))
_ok("chunked-empty", _chunked(b"0\r\n\r\n"))
_ok("chunked-capitals", _chunked(b"00000A\r\n0123456789\r\n000\r\n\r\n"))
_ok("chunked-extensions", _chunked(b'5;a=b;c="d\\"e;\t" \r\nhello\r\n3 ; x \r\nabc\r\n0;last\r\n\r\n'))
_ok("chunked-trailers", _chunked(b"3\r\nabc\r\n0\r\nX-T: 1\r\nX-U:\t2 \r\n\r\n", "Trailer: X-T"))
_ok("chunked-trailers-forbidden",
    _chunked(b"3\r\nabc\r\n0\r\nHost: evil\r\nX-T: 1\r\nContent-Length: 5\r\nContent-Lengthy: 6\r\n\r\n"))
_ok("chunked-many-chunks", _chunked(b"".join(b"1\r\n%c\r\n" % (97 + i) for i in range(26)) + b"0\r\n\r\n"))
_ok("chunked-case-of-coding", _post("transfer-encoding: CHUNKED", body=b"1\r\na\r\n0\r\n\r\n"))
_ok("pipelined", _get(first="GET /1 HTTP/1.1") + _post("Content-Length: 3", body=b"abc")
    + _chunked(b"2\r\nxy\r\n0\r\n\r\n") + _get(first="GET /4 HTTP/1.1"), 200, 200, 200, 200)
_ok("pipelined-crlf-between", _post("Content-Length: 3", body=b"abc\r\n") + b"\r\n" + _get(), 200, 200)
_ok("pipelined-unknown-host", _get() + _get(host="Host: no.test") + _get(), 200, 404, 200)
_ok("pipelined-head", _get(first="HEAD /h HTTP/1.1") + _get() + _get(first="HEAD / HTTP/1.1"), 200, 200, 200)
_ok("expect", _post("Content-Length: 4", "Expect: 100-continue", body=b"body"), 100, 200)
_ok("expect-chunked", _chunked(b"4\r\nbody\r\n0\r\n\r\n", "expect: 100-Continue"), 100, 200)
_ok("expect-nothing", _get("Expect: 100-continue"), 100, 200)
_ok("http10-keep-alive", _get("Connection: keep-alive", first="GET / HTTP/1.0"))
_ok("http10-expect", _post("Content-Length: 2", "Connection: keep-alive", "Expect: 100-continue", body=b"hi",
                           first="POST /p HTTP/1.0"))
_ok("refused-upgrade", _get("Connection: upgrade", "Upgrade: refused"))
_ok("upgrade-with-body", _post("Connection: upgrade", "Upgrade: echo", "Content-Length: 2", body=b"hi"))
_ok("upgrade-h2c", _get("Connection: upgrade, http2-settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"))
_ok("target-at-limit", _get(first="GET /" + "u" * 2047 + " HTTP/1.1"))
_ok("fields-at-limit", _get(*(["A: b"] * 63)))
_ok("head-near-limit", _get("X: " + "y" * 8100))
_ok("max-forwards-0", _get("Max-Forwards: 0", first="OPTIONS / HTTP/1.1"))
_last("unknown-host-with-body", _lines("POST / HTTP/1.1", "Host: no.test", "Content-Length: 3", body="abc"), 404)

_last("close", _get("Connection: close"))
_last("close-post", _post("Content-Length: 3", "Connection: Close", body=b"abc"))
_last("close-chunked", _chunked(b"3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", "Connection: foo, close"))
_last("http10", _get(first="GET / HTTP/1.0"))
_last("http10-no-host", _get(first="GET / HTTP/1.0", host=None), 404)
_last("connect", _get(first="CONNECT a.test:443 HTTP/1.1", host="Host: a.test:443"), 405)

# ---- requests: tunnels ----

_UPGRADE = _get("Connection: Upgrade", "Upgrade: echo", "Sec-WebSocket-Key: y", first="GET /ws HTTP/1.1")
_open("upgrade", _UPGRADE, 101)
_open("upgrade-early", _UPGRADE + b"early bytes\r\n\r\n\x00\xff", 101)
_open("upgrade-early-request", _UPGRADE + _get(), 101)
_open("pipelined-upgrade", _get() + _UPGRADE + b"x", 200, 101)

# ---- requests: never complete ----

_open("nothing", b"", 400)
_open("blank-lines", b"\r\n\r\n")
_open("cut-line", b"GET / HTTP/1.")
_open("cut-field", b"GET / HTTP/1.1\r\nHost: a.t")
_open("cut-before-end", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r")
_open("cut-length", _post("Content-Length: 10", body=b"hello"))
_open("cut-chunk-size", _chunked(b"5\r\nhello\r\n1"))
_open("cut-chunk", _chunked(b"5\r\nhel"))
_open("cut-trailer", _chunked(b"5\r\nhello\r\n0\r\nX-T: 1\r\n"))
_open("cut-behind-whole", _get() + b"GET /2 HT", 200)

# ---- requests: refused ----

_bad("lf-alone", b"GET / HTTP/1.1\nHost: a.test\n\n")
_bad("lf-in-fields", b"GET / HTTP/1.1\r\nHost: a.test\nX-A: b\r\n\r\n")
_bad("cr-alone", _get("X-A: b\rX-C: d"))
_bad("nul-in-value", _get("X-A: b\0c"))
_bad("control-in-value", _get("X-A: b\x01c"))
_bad("del-in-value", _get("X-A: b\x7fc"))
_bad("nul-first", b"\0" + _get())
_bad("obs-fold", _get("X-A: b\r\n c"))
_bad("obs-fold-tab", _get("X-A: b\r\n\tc"))
_bad("fold-behind-request-line", b"GET / HTTP/1.1\r\n Host: a.test\r\n\r\n")
_bad("space-before-colon", _get("X-A : b"))
_bad("tab-before-colon", _get("Content-Length\t: 5"))
_bad("no-colon", _get("X-A"))
_bad("empty-name", _get(": b"))
_bad("name-no-token", _get("X(A): b"))
_bad("name-obs-text", _get("X\xe4: b"))
_bad("method-no-token", _get(first="GE(T / HTTP/1.1"))
_bad("method-leading-space", b" " + _get())
_bad("method-too-long", _get(first="M" * 70 + " / HTTP/1.1"))
_bad("two-spaces", _get(first="GET  / HTTP/1.1"))
_bad("space-in-target", _get(first="GET /a b HTTP/1.1"))
_bad("tab-in-line", _get(first="GET\t/ HTTP/1.1"))
_bad("trailing-space", _get(first="GET / HTTP/1.1 "))
_bad("fragment", _get(first="GET /a#b HTTP/1.1"))
_bad("target-no-slash", _get(first="GET a/b HTTP/1.1"))
_bad("target-obs-text", _get(first="GET /\xe4 HTTP/1.1"))
_bad("star-with-get", _get(first="GET * HTTP/1.1"))
_bad("absolute-other-scheme", _get(first="GET ftp://a.test/ HTTP/1.1"))
_bad("absolute-userinfo", _get(first="GET http://u@a.test/ HTTP/1.1"))
_bad("absolute-other-host", _get(first="GET http://b.test/ HTTP/1.1"))
_bad("http09", b"GET /\r\n")
_bad("version-2", _get(first="GET / HTTP/2.0"), 505)
_bad("version-12", _get(first="GET / HTTP/1.2"), 505)
_bad("version-lower-case", _get(first="GET / http/1.1"))
_bad("version-two-digits", _get(first="GET / HTTP/1.10"))
_bad("preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
_bad("no-host", _get(host=None))
_bad("two-hosts", _get("Host: a.test"))
_bad("empty-host", _get(host="Host:"))
_bad("host-with-path", _get(host="Host: a.test/x"))
_bad("host-with-comma", _get(host="Host: a.test, b.test"))
_bad("host-bad-port", _get(host="Host: a.test:99999"))
_bad("length-sign", _post("Content-Length: +5", body=b"hello"))
_bad("length-space", _post("Content-Length: 1 1", body=b"hello"))
_bad("length-list", _post("Content-Length: 5, 5", body=b"hello"))
_bad("length-twice", _post("Content-Length: 5", "Content-Length: 5", body=b"hello"))
_bad("length-empty", _post("Content-Length:", body=b"hello"))
_bad("length-hex", _post("Content-Length: 0x5", body=b"hello"))
_bad("length-huge", _post("Content-Length: 9223372036854775808", body=b"hello"))
_bad("length-and-coding", _post("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"))
_bad("coding-and-length", _post("Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\n"))
_bad("coding-twice", _post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"))
_bad("coding-unknown", _post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 501)
_bad("coding-not-last", _post("Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n"))
_bad("coding-identity", _post("Transfer-Encoding: identity", body=b"0\r\n\r\n"))
_bad("coding-vertical-tab", _post("Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"))
_bad("coding-quoted", _post('Transfer-Encoding: "chunked"', body=b"0\r\n\r\n"))
_bad("coding-http10", _post("Transfer-Encoding: chunked", body=b"0\r\n\r\n", first="POST / HTTP/1.0"))
_bad("connection-no-token", _get("Connection: a(b)"))
_bad("target-too-long", _get(first="GET /" + "u" * 2048 + " HTTP/1.1"), 414)
_bad("fields-too-many", _get(*(["A: b"] * 64)), 431)
_bad("head-too-big", _get("X: " + "y" * 8192), 431)
_bad("blank-lines-too-many", b"\r\n" * 5 + _get())
_bad("behind-a-whole-one", _get() + b"GET / HTTP/1.1\r\nHost: a.test\r\nBad\r\n\r\n", 200, 400)
_ok("dot-segments", _get(first="GET /a/../b HTTP/1.1"), 400)
_ok("bad-escape", _get(first="GET /%zz HTTP/1.1"), 400)
_ok("expectation", _get("Expect: the-unexpected"), 417)

for _name, _body in {
    "size-empty": b"\r\nhello\r\n0\r\n\r\n",
    "size-sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "size-minus": b"-5\r\nhello\r\n0\r\n\r\n",
    "size-0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size-letters": b"xyz\r\n0\r\n\r\n",
    "size-leading-space": b" 5\r\nhello\r\n0\r\n\r\n",
    "size-too-many-digits": b"00000000000000005\r\nhello\r\n0\r\n\r\n",
    "size-huge": b"fffffffffffffff1\r\nhello\r\n0\r\n\r\n",
    "line-lf": b"5\nhello\r\n0\r\n\r\n",
    "line-cr": b"5\rhello\r\n0\r\n\r\n",
    "extension-lf": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "extension-control": b"5;a\x01\r\nhello\r\n0\r\n\r\n",
    "extension-quoted-crlf": b'5;a="\r\nhello\r\n0\r\n\r\n',
    "data-too-long": b"3\r\nhello\r\n0\r\n\r\n",
    "data-then-lf": b"5\r\nhello\n0\r\n\r\n",
    "data-then-other": b"5\r\nhelloXY0\r\n\r\n",
    "trailer-no-colon": b"1\r\na\r\n0\r\nX-T\r\n\r\n",
    "trailer-space": b"1\r\na\r\n0\r\nX-T : 1\r\n\r\n",
    "trailer-fold": b"1\r\na\r\n0\r\nX-T: 1\r\n 2\r\n\r\n",
    "trailer-lf": b"1\r\na\r\n0\r\nX-T: 1\n\r\n",
    "trailer-control": b"1\r\na\r\n0\r\nX-T: \x02\r\n\r\n",
    "end-lf": b"1\r\na\r\n0\r\n\n",
    "end-cr": b"1\r\na\r\n0\r\n\rX",
}.items():
    _bad("chunk-" + _name, _chunked(_body))
_bad("chunk-extensions-too-long", _chunked(b"1;" + b"e" * 5000 + b"\r\na\r\n0\r\n\r\n"))
_bad("trailers-too-big", _chunked(b"1\r\na\r\n0\r\n" + b"X-T: yyyyyyyyyy\r\n" * 70 + b"\r\n"), 431)


# ---- replies ----

REPLIES = []


def _reply(name, raw, status=200, asked="G", whole=True, close=False):
    REPLIES.append(Reply(name, asked, raw if isinstance(raw, bytes) else raw.encode("latin-1"), status, whole,
                         close))


def _garbled(name, raw, asked="G"):
    """Answered with 502: nothing of it was passed on."""
    _reply(name, raw, 502, asked, True, False)


def _cut(name, raw, asked="G", close=True):
    """The client sees a response that does not end."""
    _reply(name, raw, 200, asked, False, close)


_OK = "HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + "Transfer-Encoding: chunked\r\n\r\n"

_reply("length", _OK + "Content-Length: 5\r\nX-A: b\r\n\r\nhello")
_reply("length-0", _OK + "Content-Length: 0\r\n\r\n")
_reply("length-close", _OK + "Content-Length: 5\r\nConnection: close\r\n\r\nhello", close=True)
_reply("dated", _OK + "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 1\r\n\r\nx")
_reply("no-reason", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok")
_reply("no-reason-no-space", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok")
_reply("odd-reason", "HTTP/1.1 299 So \xe4 lala\tyes\r\nContent-Length: 2\r\n\r\nok", 299)
_reply("status-999", "HTTP/1.1 999 What\r\nContent-Length: 2\r\n\r\nok", 999)
_reply("chunked", _CHUNKED + "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
_reply("chunked-extensions", _CHUNKED + '5;a="b\\"";c\r\nhello\r\n1 ;x\r\n!\r\n0;z\r\n\r\n')
_reply("chunked-trailers", _OK + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
       "2\r\nok\r\n0\r\nX-T: 7\r\nSet-Cookie: a=b\r\n\r\n")
_reply("chunked-empty", _CHUNKED + "0\r\n\r\n")
_reply("until-close", _OK + "X-A: b\r\n\r\nhello world", close=True)
_reply("until-close-empty", _OK + "\r\n", close=True)
_reply("http10-until-close", "HTTP/1.0 200 OK\r\n\r\nold", close=True)
_reply("http10-length", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", close=True)
_reply("http10-keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nold")
_reply("204", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", 204)
_reply("204-length", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", 204)
_reply("304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n", 304)
_reply("304-chunked", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", 304)
_reply("head", _OK + "Content-Length: 1000\r\n\r\n", asked="H")
_reply("head-chunked", _OK + "Transfer-Encoding: chunked\r\n\r\n", asked="H")
_reply("head-none", _OK + "\r\n", asked="H")
_reply("hints", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
       + _OK + "Content-Length: 2\r\n\r\nok")
_reply("hints-then-chunked", "HTTP/1.1 199 Odd\r\n\r\n" + _CHUNKED + "2\r\nok\r\n0\r\n\r\n")
_reply("hop-by-hop", _OK + "Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n"
       "Proxy-Connection: x\r\nUpgrade: h2c\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nok")
_reply("spaces", _OK + "Content-Length: \t2 \t\r\nX-A:\r\nX-B:   \r\n\r\nok")
_reply("many-cookies", _OK + "".join(f"Set-Cookie: c{i}=v; Path=/\r\n" for i in range(30))
       + "Content-Length: 2\r\n\r\nok")
_reply("many-chunks", _CHUNKED + "".join(f"1\r\n{chr(97 + i)}\r\n" for i in range(26)) + "0\r\n\r\n")
_reply("big-head", _OK + "X: " + "y" * 6000 + "\r\nContent-Length: 2\r\n\r\nok")
_reply("surplus", _OK + "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
_reply("surplus-crlf", _OK + "Content-Length: 2\r\n\r\nok\r\n")
_reply("surplus-behind-head", _OK + "Content-Length: 5\r\n\r\nhello", asked="H")
_reply("surplus-behind-304", "HTTP/1.1 304 Not Modified\r\n\r\nhello", 304)
_reply("surplus-behind-chunks", _CHUNKED + "2\r\nok\r\n0\r\n\r\nHTTP/1.1 500 No\r\n\r\n")
_reply("old-client-length", _OK + "Content-Length: 2\r\n\r\nok", asked="0")
_reply("old-client-chunked", _CHUNKED + "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", asked="0")
_reply("old-client-hints", "HTTP/1.1 103 Early Hints\r\n\r\n" + _OK + "\r\nhello", asked="0", close=True)
_reply("upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"
       "raw\r\n\r\n\x01bytes", 101, asked="U", close=True)
_reply("upgrade-refused", _OK + "Content-Length: 2\r\n\r\nok", asked="U")
_reply("upgrade-hinted", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Yes\r\nConnection: Upgrade\r\n"
       "Upgrade: echo\r\n\r\nhello", 101, asked="U", close=True)

_cut("cut-length", _OK + "Content-Length: 10\r\n\r\nhello")
_cut("cut-chunk", _CHUNKED + "5\r\nhel")
_cut("cut-last-chunk", _CHUNKED + "5\r\nhello\r\n")
_cut("cut-trailer", _CHUNKED + "5\r\nhello\r\n0\r\nX-T: 1\r\n")
_cut("cut-end", _CHUNKED + "5\r\nhello\r\n0\r\n\r")
_cut("cut-old-client", _CHUNKED + "5\r\nhello\r\n", asked="0")
_cut("chunk-garbled", _CHUNKED + "5\r\nhello\r\nzz\r\n", close=False)
_cut("chunk-lf", _CHUNKED + "5\r\nhello\r\n3\nabc", close=False)
_cut("chunk-too-long", _CHUNKED + "5\r\nhello\r\n3\r\nabcdef\r\n0\r\n\r\n", close=False)
_cut("trailer-garbled", _CHUNKED + "5\r\nhello\r\n0\r\nX T: 1\r\n\r\n", close=False)

for _name, _raw in {
    "not-http": "hello world, this is no response\r\n\r\n",
    "lf-alone": "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "leading-crlf": "\r\n" + _OK + "Content-Length: 2\r\n\r\nok",
    "status-two-digits": "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-four-digits": "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-letters": "HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\nok",
    "status-099": "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok",
    "version-2": "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "two-spaces": "HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok",
    "obs-fold": _OK + "X-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok",
    "space-before-colon": _OK + "Content-Length : 2\r\n\r\nok",
    "no-colon": _OK + "Content-Length 2\r\n\r\nok",
    "nul": _OK + "X-A: \0\r\nContent-Length: 2\r\n\r\nok",
    "cr-alone": _OK + "X-A: b\rc\r\nContent-Length: 2\r\n\r\nok",
    "length-sign": _OK + "Content-Length: +2\r\n\r\nok",
    "length-twice": _OK + "Content-Length: 2\r\nContent-Length: 3\r\n\r\noks",
    "length-list": _OK + "Content-Length: 2, 2\r\n\r\nok",
    "length-and-coding": _OK + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "coding-unknown": _OK + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "coding-not-last": _OK + "Transfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "101-unasked": "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n",
    "hints-then-garbled": "HTTP/1.1 103 Early Hints\r\n\r\nnonsense of some length\r\n\r\n",
    "too-many-fields": _OK + "A: b\r\n" * 1200 + "Content-Length: 2\r\n\r\nok",
    "too-big-head": _OK + "X: " + "y" * 70000 + "\r\n\r\n",
    "too-many-hints": "HTTP/1.1 103 Early Hints\r\n\r\n" * 200 + _OK + "Content-Length: 2\r\n\r\nok",
}.items():
    _garbled("garbled-" + _name, _raw)
_garbled("garbled-101-no-upgrade", "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n\r\n", "U")


def inputs_of(program):
    """[(name, bytes)] of the inputs of fuzz_stream or fuzz_reply."""
    if program == "fuzz_stream":
        return [(c.name, c.raw + (PROBE if c.end == "probe" else b"")) for c in REQUESTS]
    return [(c.name, c.asked.encode() + c.raw) for c in REPLIES]


def write_inputs(program, folder):
    os.makedirs(folder, exist_ok=True)
    for name, raw in inputs_of(program):
        if len(raw) < 20000:  # the work of cutting everywhere is its square
            with open(os.path.join(folder, name), "wb") as file:
                file.write(raw)


if __name__ == "__main__":
    write_inputs("fuzz_stream", sys.argv[1])
    write_inputs("fuzz_reply", sys.argv[2])
