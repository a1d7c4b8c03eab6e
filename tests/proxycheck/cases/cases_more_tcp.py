"""More of the suite's kinds: TCP routes, stickiness and rate limits. Loaded by run.sh."""

import hashlib
import os
import time

from proxycheck import http1, origin as origins
from proxycheck.kit import require_clear, show
from proxycheck.registry import case
from proxycheck.wire import Timeout


def raw(t, targets, **settings):
    t.router([t.route(targets, host="", termination="tcp", listener="raw")], **settings)


def echo(conn):
    while conn.pull(8.0):
        data = bytes(conn.rx[conn.pos:])
        conn.pos = len(conn.rx)
        if not conn.send(data):
            return


@case("tcp/more-half-close-client", "a client's half-close arrives, the origin may still answer", "RFC 9293 3.6",
      "data-loss", limit=7.0)
def half_close_client(t):
    def handler(conn):
        while conn.pull(5.0):
            pass
        time.sleep(1.5)  # longer than half-closed connections get with some routers
        conn.send(b"got %d" % len(conn.rx))

    raw(t, t.origin(handler))
    client = t.tcp("raw")
    client.send(b"x" * 1000)
    client.fin()
    t.check(client.read_to_end(4.0) == b"got 1000", "got " + show(client.rx))


@case("tcp/more-half-close-both-bulk", "a half-closed upload and a long answer", "RFC 9293 3.6", "data-loss", limit=8.0)
def half_close_bulk(t):
    def handler(conn):
        digest, size = hashlib.sha256(), 0
        while conn.pull(5.0):
            digest.update(conn.rx[conn.pos:])
            size += len(conn.rx) - conn.pos
            conn.pos = len(conn.rx)
        conn.send(digest.digest() + b"y" * 3000000)

    raw(t, t.origin(handler))
    client = t.tcp("raw")
    body = os.urandom(65536) * 40
    client.send(body)
    client.fin()
    data = client.read_to_end(5.0)
    t.check(len(data) == 3000032 and data[:32] == hashlib.sha256(body).digest(), "%d bytes" % len(data))


@case("tcp/more-slow-both", "a slow reader and a slow writer get every byte", "practice", "data-loss", limit=9.0)
def slow_both(t):
    body = os.urandom(65536) * 30

    def handler(conn):
        conn.pull(2.0)
        conn.send(body, timeout=8.0)

    raw(t, t.origin(handler))
    client = t.tcp("raw", rcvbuf=16384)
    client.send(b"go")
    got = hashlib.sha256()
    count = 0
    while count < len(body):
        piece = client.take(min(100000, len(body) - count), 5.0)
        got.update(piece)
        count += len(piece)
        time.sleep(0.02)
    t.check(got.digest() == hashlib.sha256(body).digest(), "the download differs")


@case("tcp/more-origin-reset", "an origin's reset ends the client's side, not cleanly", "practice", "data-loss")
def origin_reset(t):
    def handler(conn):
        conn.pull(2.0)
        conn.send(b"part")
        time.sleep(0.3)
        conn.reset()

    raw(t, t.origin(handler))
    client = t.tcp("raw")
    client.send(b"go")
    t.check(client.take(4, 2.0) == b"part", "got " + show(client.rx))
    t.check(client.ends_within(2.0), "the client's side stayed open")
    t.check(client.end == "rst", "a reset looks like an orderly end: %s" % client.end)


@case("tcp/more-client-reset", "a client's reset frees the origin", "practice", "security")
def client_reset(t):
    target = t.origin(lambda conn: conn.hold(8.0))
    raw(t, target)
    client = t.tcp("raw")
    client.send(b"go")
    t.check(target.wait(lambda o: b"go" in o.received, 2.0), "nothing arrived")
    client.reset()
    t.check(target.wait(lambda o: all(c.end for c in o.conns), 2.5), "the origin's side stayed open")


@case("tcp/more-idle-cut", "an idle connection ends in time", "practice", limit=7.0)
def idle_cut(t):
    target = t.origin(echo)
    raw(t, target, timeouts={"tunnel": 1.5})
    client = t.tcp("raw")
    client.send(b"x")
    t.check(client.take(1, 2.0) == b"x", "no echo")
    t.check(client.ends_within(4.5), "still open after 4.5 s with a limit of 1.5 s")
    t.check(target.wait(lambda o: all(c.end for c in o.conns), 1.0), "the origin's side stayed open")


@case("tcp/more-byte-by-byte", "single bytes pass at once", "practice", "friendliness")
def single_bytes(t):
    raw(t, t.origin(echo))
    client = t.tcp("raw")
    began = time.monotonic()
    for n in range(100):
        client.send(b"%c" % n)
        t.check(client.take(1, 2.0) == b"%c" % n, "byte %d" % n)
    t.check(time.monotonic() - began < 2.0, "100 round trips took %.1f s" % (time.monotonic() - began))


@case("tcp/more-many", "a hundred connections at once", "practice")
def many(t):
    target = t.origin(echo)
    raw(t, target)
    clients = [t.tcp("raw") for _ in range(100)]
    for n, client in enumerate(clients):
        client.send(b"%03d" % n)
    for n, client in enumerate(clients):
        t.check(client.take(3, 3.0) == b"%03d" % n, "connection %d" % n)


@case("tcp/more-silent-close", "a client that says nothing and leaves", "practice")
def silent_close(t):
    target = t.origin(echo)
    raw(t, target)
    for _ in range(20):
        t.tcp("raw").close()
    client = t.tcp("raw")
    client.send(b"still")
    t.check(client.take(5, 2.0) == b"still", "no echo afterwards")
    t.check(target.wait(lambda o: sum(not c.end for c in o.conns) <= 1, 2.0), "ends were not passed on")


@case("tcp/more-dies-in-the-middle", "an endpoint that dies does not take others' connections", "practice")
def dies(t):
    first, second = t.origin(echo), t.origin(echo)
    raw(t, [first, second])
    clients = [t.tcp("raw") for _ in range(10)]
    for client in clients:
        client.send(b"a")
        t.check(client.take(1, 2.0) == b"a", "no echo")
    first.stop()
    alive = 0
    for client in clients:
        try:
            alive += client.send(b"b") and client.take(1, 1.0) == b"b"
        except Timeout:
            pass
    t.check(alive >= 1, "no connection survived")
    for n in range(4):
        client = t.tcp("raw")
        client.send(b"c")
        t.check(client.take(1, 3.0) == b"c", "new connection %d" % n)


# -- stickiness ------------------------------------------------------------------------------------------


def cookie_of(msg, name="ROUTEID"):
    found = [v.split(";")[0].split("=", 1)[1] for v in msg.all("set-cookie") if v.startswith(name + "=")]
    return found[0] if found else None


def named(label):
    return origins.serve(lambda req: http1.response(200, label.encode(), [("X-Cookies", "|".join(req.all("cookie")))]))


@case("sticky/more-dead-endpoint", "a cookie of an endpoint that died falls back, and a fresh one is set", "practice",
      limit=8.0)
def sticky_dead(t):
    a, b = t.origin(named("A")), t.origin(named("B"))
    t.router([t.route([a, b], sticky={"cookie": "ROUTEID"})])
    first = t.fetch("/")
    cookie = cookie_of(first)
    t.check(cookie, "no cookie")
    (a if first.body == b"A" else b).stop()
    for n in range(3):
        msg = t.fetch("/%d" % n, headers=[("Cookie", "ROUTEID=" + cookie)], timeout=4.0)
        t.check(msg.status == 200 and msg.body != first.body, "request %d got %r" % (n, msg))
        t.check(cookie_of(msg) not in (None, cookie), "no fresh cookie")


@case("sticky/more-among-many", "the cookie is found among many, and only it is taken out", "RFC 6265 5.4")
def sticky_among(t):
    a, b = t.origin(named("A")), t.origin(named("B"))
    t.router([t.route([a, b], sticky={"cookie": "ROUTEID"})])
    first = t.fetch("/")
    cookie = cookie_of(first)
    lines = (["x=1; ROUTEID=%s; y=\"a b\"; XROUTEID=2" % cookie], ["ROUTEID=" + cookie], ["x=1", "ROUTEID=%s" % cookie, "y=2"],
             ["x=1;ROUTEID=%s;y" % cookie], ["ROUTEID=%s; ROUTEID=other" % cookie])
    kept = ("x=1; y=\"a b\"; XROUTEID=2", "", "x=1|y=2", "x=1; y", "")
    for cookies, wanted in zip(lines, kept):
        msg = t.fetch("/", headers=[("Cookie", c) for c in cookies])
        t.check(msg.body == first.body, "%r left its endpoint" % cookies)
        got = "; ".join(msg.get("x-cookies").split("|")) if msg.get("x-cookies") else ""
        t.check(got.replace(";", "; ").replace(";  ", "; ") == wanted.replace("|", "; "),
                "of %r the origin got %r" % (cookies, msg.get("x-cookies")))


@case("sticky/more-large-cookies", "twenty kilobytes of other cookies pass", "practice")
def sticky_large(t):
    a = t.origin()
    t.router([t.route(a, sticky={"cookie": "ROUTEID"})])
    cookie = cookie_of(t.fetch("/"))
    others = "; ".join("c%d=%s" % (n, "v" * 450) for n in range(44))
    msg = t.fetch("/", headers=[("Cookie", others + "; ROUTEID=" + cookie)])
    t.check(msg.status == 200, "got %d" % msg.status)
    t.check(a.requests[-1].all("cookie") == [others], "%d bytes arrived" % sum(map(len, a.requests[-1].all("cookie"))))


@case("sticky/more-hostile-values", "odd cookie values harm nobody", "practice", "security")
def sticky_hostile(t):
    a = t.origin()
    t.router([t.route(a, sticky={"cookie": "ROUTEID"})])
    for value in ("", "=", "A" * 16, "A" * 15, "_" * 16, "-" * 4000, "\xff\xfe", '"', "127.0.0.1", "%00", "a b", ";;;"):
        msg = t.fetch("/", headers=[("Cookie", "ROUTEID=" + value)])
        t.check(msg.status == 200 and cookie_of(msg), "%r got %r" % (value, msg))
        t.check(not any("ROUTEID" in c for c in a.requests[-1].all("cookie")), "%r was passed on" % value)
    require_clear(t, a, 50)


# -- rate limits ---------------------------------------------------------------------------------------------


@case("limits/more-rate-limit-answer", "429 is a sound response with Retry-After", "RFC 6585 4", "friendliness")
def rate_answer(t):
    t.simple(rate_limit={"requests": 2, "seconds": 5})
    client = t.http()
    seen = [t.fetch("/%d" % n, client=client) for n in range(6)]
    refused = [m for m in seen if m.status == 429]
    t.check(len(refused) >= 2, "statuses %r" % [m.status for m in seen])
    t.check(all(m.complete and m.get("retry-after").isdigit() for m in refused), "no Retry-After")


@case("limits/more-rate-limit-post", "a limited POST leaves the connection in step", "RFC 9112 9.3", "security")
def rate_post(t):
    origin = t.simple(rate_limit={"requests": 1, "seconds": 5})
    client = t.http()
    body = b"GET /smuggled HTTP/1.1\r\nHost: app.test\r\n\r\n"
    for _ in range(4):
        if client.end:
            client = t.http()
        client.send(http1.request("/p", "POST", body=body))
        msg = client.read_response("POST", 3.0)
        t.check(msg is not None and msg.status in (200, 429), "got %r" % msg)
        if "close" in msg.options("connection"):
            client = t.http()
    require_clear(t, origin, 4)
