"""Which endpoint gets a request: hash keys, sticky cookies, limits and queues, ejection, retries."""

import collections
import concurrent.futures
import random
import re
import socket
import threading

import pytest

from support import client
from support.api import backend, documents, route
from support.ports import free_port
from support.proxy_driver import Driver, Script, dial, get, quiet_for
from support.wait import SLOW, until


@pytest.fixture
def driver_of():
    """driver_of(**settings): a driver that is ended with the test."""
    made = []

    def make(**settings):
        made.append(Driver(**settings))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def origins_of():
    """origins_of(n): so many origins, each of which says its address in its answers."""
    made = []

    def make(count, **kwargs):
        new = [Named(**kwargs) for _ in range(count)]
        made.extend(new)
        return new

    yield make
    for origin in made:
        origin.gate.set()
        origin.close()


class Named(Script):
    """Answers with its address. While the gate is closed (gate.clear()) requests are held."""

    def __init__(self, status=200, busy=0.0):
        self.gate = threading.Event()
        self.gate.set()
        self.status = status
        self.busy = busy  # seconds that a request takes, so that they overlap
        self.held = 0
        self.most = 0
        self._count = threading.Lock()
        super().__init__(self._answer)

    def _answer(self, wire, _):
        while True:
            self.request(wire)
            with self._count:
                self.held += 1
                self.most = max(self.most, self.held)
            self.gate.wait(30 * SLOW)
            if self.busy:
                quiet_for(self.busy)
            with self._count:
                self.held -= 1
            body = self.address.encode()
            wire.send(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s"
                      % (self.status, len(body), body))


def ask(driver, path="/", fields=""):
    """(status, fields, body as text) on a connection of its own."""
    wire = dial(driver.port)
    try:
        status, answer, body = get(wire, path, fields=fields)
        return status, answer, body.decode()
    finally:
        wire.close()


def who(driver, path="/", fields=""):
    return ask(driver, path, fields)[2]


def cookie_of(fields):
    return re.match(r"([^;]+);", fields["set-cookie"]).group(1)


def series(driver, name, label='backend="b"'):
    return driver.metrics().get(f"{name}{{{label}}}", 0)


# ---- hash keys ----


@pytest.mark.parametrize(
    "kind, requests",
    [
        ("header:X-Key", [("/", f"x-key: {i}\r\n") for i in range(40)]),
        ("cookie:id", [("/", f"Cookie: a=b; id={i}; c=d\r\n") for i in range(40)]),
        ("query:user", [(f"/x?a=1&user={i}", "") for i in range(40)]),
        ("path", [(f"/p/{i}", "") for i in range(40)]),
    ],
)
def test_a_key_goes_to_one_endpoint_everywhere(driver_of, origins_of, kind, requests):
    origins = origins_of(4)
    first, second = driver_of(workers=3), driver_of(workers=1)
    for driver in (first, second):
        driver.backend("b", *origins, balance="hash", hash=kind)
        driver.rule("/", "b")
        driver.host()
    places = [who(first, *request) for request in requests]
    assert [who(second, *request) for request in requests] == places
    assert [who(first, *request) for request in requests] == places
    assert len(set(places)) == 4
    # One leaves: its keys go to the others, and no other key moves.
    gone = origins[2].address
    second.backend("b", *(o for o in origins if o.address != gone), balance="hash", hash=kind)
    for request, place in zip(requests, places):
        now = who(second, *request)
        assert now == place if place != gone else now != gone


def test_what_has_no_key_goes_by_its_address(driver_of, origins_of):
    driver = driver_of()
    driver.backend("b", *origins_of(4), balance="hash", hash="header:X-Key")
    driver.rule("/", "b")
    driver.host()
    assert len({who(driver, f"/{i}") for i in range(10)}) == 1


# ---- sticky cookies ----


def test_holders_stay(driver_of, origins_of):
    origins = origins_of(4)
    driver = driver_of()
    driver.backend("b", *origins)
    driver.rule("/", "b", sticky="sid")
    driver.host()
    places = {}
    for _ in range(30):
        status, fields, body = ask(driver)
        assert status == 200
        assert re.fullmatch(
            r"sid=[A-Za-z0-9_-]{16}; Path=/; HttpOnly; SameSite=Lax", fields["set-cookie"]
        )
        assert fields["cache-control"] == "private"
        assert str(origins[0].port) not in fields["set-cookie"]
        places[cookie_of(fields)] = body
    assert len(places) == 4
    for cookie, place in places.items():
        for _ in range(5):
            _, fields, body = ask(driver, fields=f"Cookie: {cookie}\r\n")
            assert body == place
            assert "set-cookie" not in fields


def test_the_cookie_is_taken_out_on_the_way(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of()
    driver.backend("b", origin)
    driver.rule("/", "b", sticky="sid")
    driver.host()
    for sent, arrives in [
        ("sid=x", None),
        ("a=1; sid=x", "a=1"),
        ("sid=x; a=1;b=2", "a=1; b=2"),
        ("a=1; sid=x; b=2; sid=y", "a=1; b=2"),
        ("xsid=1; sid2=2", "xsid=1; sid2=2"),
        ("a; sid=x", "a"),
        ("; ;sid=x;", None),
    ]:
        ask(driver, fields=f"Cookie: {sent}\r\n")
        assert origin.requests[-1][1].get("cookie") == arrives, sent


def test_a_cookie_of_a_dead_endpoint_is_issued_again(driver_of, origins_of):
    one, two = origins_of(2)
    driver = driver_of()
    driver.backend("b", one)
    driver.rule("/", "b", sticky="sid")
    driver.host()
    cookie = cookie_of(ask(driver)[1])
    driver.backend("b", one, two)
    changes = [
        (lambda: driver.health("b", one, "down"), lambda: driver.health("b", one, "up")),
        (lambda: driver.backend("b", two), lambda: driver.backend("b", one, two)),
        (one.close, lambda: None),
    ]
    for change, back in changes:
        assert who(driver, fields=f"Cookie: {cookie}\r\n") == one.address
        change()
        _, fields, body = ask(driver, fields=f"Cookie: {cookie}\r\n")
        assert body == two.address
        assert cookie_of(fields) != cookie
        back()


def test_garbage_is_no_cookie(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of()
    driver.backend("b", origin)
    driver.rule("/", "b", sticky="sid")
    driver.host()
    for value in ("", "x", "A" * 16, "A" * 15 + "=", "A" * 5000, "\x80" * 16):
        wire = dial(driver.port)
        wire.send(b"GET / HTTP/1.1\r\nHost: a.test\r\nCookie: sid=%s\r\n\r\n"
                  % value.encode("latin-1"))
        status, fields, _ = wire.response()
        wire.close()
        assert (status, "set-cookie" in fields) == (200, True)


def test_drained_and_weightless_endpoints_keep_their_holders(driver_of, origins_of):
    one, two, three = origins_of(3)
    driver = driver_of()
    driver.backend("b", one, two)
    driver.rule("/", "b", sticky="sid")
    driver.host()
    cookies = {}
    while len(cookies) < 2:
        _, fields, body = ask(driver)
        cookies[body] = cookie_of(fields)
    driver.backend("b", f"{one.address}*0", f"{two.address}!", three)
    for _ in range(20):
        assert who(driver) == three.address
    for place, cookie in cookies.items():
        for _ in range(5):
            _, fields, body = ask(driver, fields=f"Cookie: {cookie}\r\n")
            assert (body, "set-cookie" in fields) == (place, False)


def test_a_holder_stays_with_the_backend_of_its_cookie(driver_of, origins_of):
    old, new = origins_of(2)
    driver = driver_of()
    driver.backend("v1", old)
    driver.backend("v2", new)
    driver.rule("/", "v1", "v2*0", sticky="sid")
    driver.host()
    cookie = cookie_of(ask(driver)[1])
    driver.rule("/", "v1*0", "v2", sticky="sid")
    driver.host()
    assert who(driver) == new.address
    assert who(driver, fields=f"Cookie: {cookie}\r\n") == old.address


def test_a_backend_without_endpoints_leaves_its_share_to_the_others(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of()
    driver.backend("empty")
    driver.backend("b", origin)
    driver.rule("/", "empty*9", "b*1")
    driver.host()
    for _ in range(20):
        assert who(driver) == origin.address


# ---- limits and queues ----


def start(driver, count, fields="", method="GET"):
    """Wires with a request each, in order of their arrival in the queue."""
    wires = []
    for i in range(count):
        wire = dial(driver.port)
        wire.send(f"{method} /{i} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n")
        wires.append(wire)
    return wires


def test_the_limit_holds_and_the_oldest_goes_first(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of(workers=3)
    driver.backend("b", origin, limit=1, queue=100)
    driver.rule("/", "b")
    driver.host()
    origin.gate.clear()
    wires = start(driver, 1)
    until(lambda: origin.held == 1, "the first one is there")
    for i in range(1, 9):
        wire = dial(driver.port)
        wire.send(f"GET /{i} HTTP/1.1\r\nHost: a.test\r\n\r\n")
        wires.append(wire)
        until(lambda: series(driver, "skein_backend_queue_length") == i, "it waits")
    origin.gate.set()
    for wire in wires:
        assert wire.response()[0] == 200
    assert [line.split()[1] for line, _, _ in origin.requests] == [f"/{i}" for i in range(9)]
    assert origin.most == 1
    assert series(driver, "skein_backend_queue_length") == 0
    assert series(driver, "skein_backend_queued_total") == 8
    for wire in wires:
        wire.close()


def test_a_full_queue_refuses(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of()
    driver.backend("b", origin, limit=1, queue=1)
    driver.rule("/", "b")
    driver.host()
    origin.gate.clear()
    wires = start(driver, 1)
    until(lambda: origin.held == 1, "the first one is there")
    wires += start(driver, 1)
    until(lambda: series(driver, "skein_backend_queue_length") == 1, "the second one waits")
    status, fields, _ = ask(driver)
    assert (status, "retry-after" in fields) == (503, True)
    assert driver.metrics()['skein_answers_total{code="503",reason="queue_full"}'] == 1
    origin.gate.set()
    for wire in wires:
        assert wire.response()[0] == 200
        wire.close()


def test_waiting_ends_in_time(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of(queue_ms=300)
    driver.backend("b", origin, limit=1, queue=10)
    driver.rule("/", "b")
    driver.host()
    origin.gate.clear()
    (first,) = start(driver, 1)
    until(lambda: origin.held == 1, "the first one is there")
    status, fields, _ = ask(driver)
    assert (status, fields["retry-after"]) == (503, "1")
    assert series(driver, "skein_backend_queue_timeouts_total") == 1
    origin.gate.set()
    assert first.response()[0] == 200
    assert ask(driver)[0] == 200
    first.close()


def test_who_goes_away_leaves_the_queue(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of()
    driver.backend("b", origin, limit=1, queue=10)
    driver.rule("/", "b")
    driver.host()
    origin.gate.clear()
    (first,) = start(driver, 1)
    until(lambda: origin.held == 1, "the first one is there")
    leaves, stays = start(driver, 2)
    until(lambda: series(driver, "skein_backend_queue_length") == 2, "both wait")
    leaves.reset()
    until(lambda: series(driver, "skein_backend_queue_length") == 1, "one has left")
    origin.gate.set()
    assert (first.response()[0], stays.response()[0]) == (200, 200)
    assert len(origin.requests) == 2
    first.close()
    stays.close()


def test_bodies_wait_with_their_requests(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of()
    driver.backend("b", origin, limit=1, queue=10)
    driver.rule("/", "b")
    driver.host()
    origin.gate.clear()
    (first,) = start(driver, 1)
    until(lambda: origin.held == 1, "the first one is there")
    size = 3_000_000
    body = bytes(i % 251 for i in range(size))
    wire = dial(driver.port)
    wire.send(f"POST /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n")
    sender = threading.Thread(target=wire.send, args=(body,), daemon=True)
    sender.start()
    until(lambda: series(driver, "skein_backend_queue_length") == 1, "it waits")
    before = driver.memory_kib()
    quiet_for(0.2)
    assert driver.memory_kib() - before < 1024  # not all of it was read
    origin.gate.set()
    assert first.response()[0] == 200
    assert wire.response()[0] == 200
    sender.join()
    assert origin.requests[-1][2] == body
    first.close()
    wire.close()


def test_a_removed_limit_lets_all_go(driver_of, origins_of):
    (origin,) = origins_of(1)
    driver = driver_of(workers=2)
    driver.backend("b", origin, limit=1, queue=10)
    driver.rule("/", "b")
    driver.host()
    origin.gate.clear()
    wires = start(driver, 6)
    until(lambda: series(driver, "skein_backend_queue_length") == 5, "they wait")
    driver.backend("b", origin)
    until(lambda: origin.held == 6, "all are there")
    origin.gate.set()
    for wire in wires:
        assert wire.response()[0] == 200
        wire.close()


def test_holders_wait_for_their_endpoint(driver_of, origins_of):
    one, two = origins_of(2)
    driver = driver_of(workers=1)
    driver.backend("b", one, two, limit=1, queue=10)
    driver.rule("/", "b", sticky="sid")
    driver.host()
    cookies = {}
    while len(cookies) < 2:
        _, fields, body = ask(driver)
        cookies[body] = cookie_of(fields)
    one.gate.clear()
    mine = f"Cookie: {cookies[one.address]}\r\n"
    wires = start(driver, 2, mine)
    until(lambda: series(driver, "skein_backend_queue_length") == 1, "the second holder waits")
    for _ in range(5):
        assert who(driver) == two.address  # the others do not
    one.gate.set()
    for wire in wires:
        assert wire.response()[2].decode() == one.address
        wire.close()


def test_the_limit_is_never_exceeded(driver_of, origins_of):
    origins = origins_of(3, busy=0.002)
    driver = driver_of(workers=4)
    driver.backend("b", *origins, limit=2, queue=1000, balance="least")
    driver.rule("/", "b")
    driver.host()

    def work(_):
        wire = dial(driver.port, 30)
        answers = [get(wire)[0] for _ in range(50)]
        wire.close()
        return answers

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = [status for part in pool.map(work, range(24)) for status in part]
    assert collections.Counter(answers) == {200: 1200}
    assert max(origin.most for origin in origins) == 2
    assert series(driver, "skein_backend_queue_length") == 0
    assert series(driver, "skein_backend_queued_total") > 0


def test_nothing_is_left_behind_by_changes(driver_of, origins_of):
    """Limits, endpoints and verdicts change while clients wait, leave and come back."""
    origins = origins_of(4, busy=0.001)
    origins[3].status = 503
    driver = driver_of(workers=4, queue_ms=200, client_fin_ms=50)
    setting = {"failures": 3, "window": 300, "eject": 100, "max_ejected": 50, "panic": 50,
               "slow_start": 300}
    driver.backend("b", *origins, limit=2, queue=8, **setting)
    driver.rule("/", "b", sticky="sid", attempts=2, retry_on=15, statuses="503", per_try=5000)
    driver.host()
    over = threading.Event()
    seen = collections.Counter()
    faults = []

    def work(number):
        turn = random.Random(number)
        cookie = ""
        try:
            while not over.is_set():
                wire = dial(driver.port, 30)
                for _ in range(turn.randrange(1, 6)):
                    head = f"GET /{number} HTTP/1.1\r\nHost: a.test\r\n{cookie}\r\n"
                    if turn.random() < 0.3:
                        head = head.replace("GET", "PUT", 1)[:-2] + "Content-Length: 3\r\n\r\nxyz"
                    wire.send(head)
                    if turn.random() < 0.1:
                        wire.reset()
                        break
                    status, fields, _ = wire.response()
                    seen[status] += 1
                    if "set-cookie" in fields:
                        cookie = f"Cookie: {cookie_of(fields)}\r\n" if turn.random() < 0.5 else ""
                    if fields.get("connection") == "close":
                        break
                wire.close()
        except Exception as fault:  # told below
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    turn = random.Random(1)
    for _ in range(150):
        some = turn.sample(origins, turn.randrange(0, 5))
        limit = turn.choice([0, 1, 2, 3])
        balance = turn.choice(["random", "least", "rr", "hash"])
        driver.backend("b", *some, balance=balance, limit=limit, queue=turn.choice([0, 3, 50]),
                       **setting)
        for origin in some:
            if turn.random() < 0.3:
                driver.health("b", origin, turn.choice(["up", "down"]))
        quiet_for(0.01)
    driver.backend("b", *origins, limit=2, queue=50, **setting)
    over.set()
    for thread in threads:
        thread.join()
    assert not faults, faults[0]
    assert set(seen) <= {200, 503}
    assert seen[200] > 0
    until(lambda: driver.connections() == 0, "all are gone")
    series_now = driver.metrics()
    assert series_now['skein_backend_queue_length{backend="b"}'] == 0
    assert not [name for name, value in series_now.items()
                if name.startswith("skein_endpoint_in_flight") and value != 0]
    # And what is there works as before.
    assert ask(driver)[0] == 200


# ---- availability ----


def spread(driver, count=40):
    return collections.Counter(who(driver) for _ in range(count))


def test_verdicts_of_checks_are_obeyed(driver_of, origins_of):
    origins = origins_of(4)
    driver = driver_of()
    driver.backend("b", *origins, panic=50, balance="rr")
    driver.rule("/", "b")
    driver.host()
    assert len(spread(driver)) == 4
    driver.health("b", origins[0], "down")
    driver.health("b", origins[1], "down")
    assert set(spread(driver)) == {origins[2].address, origins[3].address}
    assert series(driver, "skein_backend_endpoints_available") == 2
    driver.health("b", origins[2], "down")
    assert len(spread(driver)) == 4  # panic: rather all than one
    assert series(driver, "skein_backend_panic") == 1
    for origin in origins[:3]:
        driver.health("b", origin, "up")
    assert len(spread(driver)) == 4
    assert series(driver, "skein_backend_panic") == 0


def test_failing_endpoints_are_left_out_for_a_time(driver_of, origins_of):
    good, bad = origins_of(2)
    bad.status = 500
    driver = driver_of(workers=1)
    driver.backend("b", good, bad, balance="rr", failures=3, window=60000, eject=1500,
                   max_ejected=50)
    driver.rule("/", "b")
    driver.host()
    until(lambda: ask(driver) and series(driver, "skein_backend_ejections_total") == 1, "it is out")
    assert len(bad.requests) == 3
    assert set(spread(driver, 10)) == {good.address}
    bad.status = 200
    until(lambda: who(driver) == bad.address, "it is back")
    # The last one is never left out.
    bad.status = good.status = 500
    spread(driver, 40)
    assert series(driver, "skein_backend_endpoints_available") >= 1


# ---- retries ----


def test_a_status_is_asked_elsewhere(driver_of, origins_of):
    good, bad = origins_of(2)
    bad.status = 503
    driver = driver_of(workers=1)
    driver.backend("b", good, bad, balance="rr")
    driver.rule("/", "b", attempts=1, retry_on=8, statuses="502+503")
    driver.host()
    assert spread(driver, 10) == {good.address: 10}
    assert len(bad.requests) >= 5
    wire = dial(driver.port)
    answers = [get(wire, method="POST", fields="Content-Length: 0\r\n")[0] for _ in range(4)]
    wire.close()
    assert sorted(answers) == [200, 200, 503, 503]  # may not be repeated
    good.status = 503
    assert ask(driver)[0] == 503  # the last answer is better than none


def test_the_time_of_one_try(driver_of, origins_of):
    good, slow = origins_of(2)
    slow.gate.clear()
    driver = driver_of(workers=1)
    driver.backend("b", good, slow, balance="rr")
    driver.rule("/", "b", attempts=1, retry_on=4, per_try=300)
    driver.host()
    assert spread(driver, 4) == {good.address: 4}
    slow.gate.set()


def test_repetitions_have_a_budget(driver_of, origins_of):
    (good,) = origins_of(1)
    driver = driver_of(workers=1)
    driver.backend("b", f"127.0.0.1:{free_port()}*256", f"127.0.0.1:{free_port()}*256", good)
    driver.rule("/", "b", attempts=5, retry_on=1)
    driver.host()
    wire = dial(driver.port)
    statuses = collections.Counter(get(wire)[0] for _ in range(200))
    wire.close()
    made = series(driver, "skein_backend_retries_total")
    refused = series(driver, "skein_backend_retries_refused_total")
    # A fifth of 200, and three for each second of the window of ten.
    assert made <= 40 + 2 * 30
    assert (refused > 0) == (statuses[502] > 0)


def test_the_whole_exchange_has_a_limit(driver_of, origins_of):
    (origin,) = origins_of(1)
    origin.gate.clear()
    driver = driver_of()
    driver.serve(origin, request_ms=300)
    assert ask(driver)[0] == 504
    assert driver.metrics()['skein_answers_total{code="504",reason="request_timeout"}'] == 1


def test_a_limit_cuts_what_has_begun(driver_of):
    def trickle(wire, _):
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        while True:
            wire.send(b".")
            quiet_for(0.05)

    origin = Script(trickle)
    driver = driver_of()
    driver.serve(origin, request_ms=400)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert wire.head()[0].startswith("HTTP/1.1 200")
    with pytest.raises((EOFError, ConnectionError, AssertionError)):
        body = wire.rest()
        assert len(body) == 100
    wire.close()
    origin.close()


# ---- slow connects ----


@pytest.fixture
def black_hole():
    """An address whose accept queue is full: a connect to it neither succeeds nor fails."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fill = [socket.socket() for _ in range(4)]
    for sock in fill:
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    for sock in (*fill, listener):
        sock.close()


def test_a_slow_connect_is_raced(driver_of, origins_of, black_hole):
    (good,) = origins_of(1)
    driver = driver_of(workers=1, connect_ms=600000)
    driver.backend("b", black_hole, good, balance="rr")
    driver.rule("/", "b")
    driver.host()
    size = 100_000
    for i in range(6):
        wire = dial(driver.port)
        if i % 2 == 0:
            assert get(wire)[2].decode() == good.address
        else:
            wire.send(f"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n")
            wire.send(b"x" * size)
            assert wire.response()[2].decode() == good.address
            assert len(good.requests[-1][2]) == size
        wire.close()
    # Who lost is passed over for a second, so not each of them had to race.
    assert 1 <= series(driver, "skein_backend_connects_raced_total") <= 3


def test_the_only_endpoint_is_not_raced(driver_of, black_hole):
    driver = driver_of(workers=1, connect_ms=300)
    driver.backend("b", black_hole)
    driver.rule("/", "b")
    driver.host()
    assert ask(driver)[0] == 504
    assert series(driver, "skein_backend_connects_raced_total") == 0


def test_all_that_races_may_be_lost(driver_of, black_hole, origins_of):
    """Both connects hang; the client goes, or the time is over."""
    (good,) = origins_of(1)
    driver = driver_of(workers=1, connect_ms=600)
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen(0)
    fill = [socket.socket() for _ in range(4)]
    for sock in fill:
        sock.setblocking(False)
        sock.connect_ex(other.getsockname())
    driver.backend("b", black_hole, f"127.0.0.1:{other.getsockname()[1]}", balance="rr")
    driver.rule("/", "b")
    driver.host()
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    until(lambda: series(driver, "skein_backend_connects_raced_total") == 1, "it is raced")
    wire.reset()
    until(lambda: driver.connections() == 0, "the client is gone")
    assert ask(driver)[0] == 504
    driver.backend("b", good)
    assert ask(driver)[0] == 200
    for sock in (*fill, other):
        sock.close()


# ---- half-closed clients ----


def test_half_closed_clients_get_little_patience(driver_of, origins_of):
    (origin,) = origins_of(1)
    origin.gate.clear()
    driver = driver_of(client_fin_ms=200)
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.at_end()
    wire.close()
    origin.gate.set()
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.response()[0] == 200  # what is ready is answered
    wire.close()


def test_settings_may_ask_for_more(driver_of, origins_of):
    (origin,) = origins_of(1)
    origin.gate.clear()
    driver = driver_of(client_fin_ms=100, continue_closed=1)
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    wire.sock.shutdown(socket.SHUT_WR)
    until(lambda: origin.held == 1, "it is there")
    quiet_for(0.4)
    origin.gate.set()
    assert wire.response()[0] == 200
    wire.close()


def test_half_closed_tunnels_have_limits(driver_of):
    ended = threading.Event()

    def upgrade(wire, _):
        wire.head()
        wire.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        assert wire.exactly(4) == b"ping"
        wire.send("pong")
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.exactly(4) == b"more"  # the other direction goes on
        assert wire.at_end()  # until it is silent for too long
        ended.set()

    origin = Script(upgrade)
    driver = driver_of(server_fin_ms=300)
    driver.serve(origin)
    wire = dial(driver.port)
    wire.send("GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
    assert wire.head()[0].startswith("HTTP/1.1 101")
    wire.send("ping")
    assert wire.exactly(4) == b"pong"
    assert wire.at_end()
    wire.send("more")
    assert ended.wait(20 * SLOW)
    wire.close()
    origin.close()


# ---- through the API, on several nodes ----


def via(node, host, cookie=None, path="/"):
    headers = {"Cookie": cookie} if cookie else {}
    answer = client.get(node.http_port, host, path, headers=headers)
    assert answer.status == 200, answer
    issued = answer.headers.get("Set-Cookie")
    return answer.text.strip(), issued and issued.split(";")[0]


def test_a_cookie_means_the_same_on_every_node(shared, unique, make_origin):
    origins = {name: make_origin(name) for name in ("one", "two", "three")}
    host = f"{unique}.example.com"
    api = shared[0].api
    api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("b", *(o.address for o in origins.values()), namespace=unique),
            route("r", host, "b", namespace=unique, sticky={}),
        ),
        "?wait=all",
    )
    cookies = {}
    until(lambda: cookies.update([via(shared[0], host)]) or len(cookies) == 3, "all were drawn")
    for name, cookie in cookies.items():
        assert re.fullmatch(r"[0-9a-f]{32}=[A-Za-z0-9_-]{16}", cookie)
        for node in shared:
            assert via(node, host, cookie) == (name, None)
    # Draining: holders stay, nobody else comes. Disabled: nothing at all.
    (stored,) = [
        item for item in api.list("endpoints", f"?namespace={unique}")
        if item["spec"]["address"] == origins["one"].address
    ]
    for state, stays in (("Drain", True), ("Disabled", False), ("Active", True)):
        stored["spec"]["state"] = state
        api.apply(documents({k: stored[k] for k in ("kind", "metadata", "spec")}), "?wait=all")
        for node in shared:
            name, issued = via(node, host, cookies["one"])
            assert (name == "one", issued is None) == (stays, stays), state
            if state == "Drain":
                assert "one" not in {via(node, host)[0] for _ in range(20)}


def test_keys_mean_the_same_on_every_node(shared, unique, make_origin):
    origins = [make_origin(f"o{i}") for i in range(4)]
    host = f"{unique}.example.com"
    shared[1].api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("b", *(o.address for o in origins), namespace=unique, balance="Hash",
                    hash={"on": "Path"}),
            backend("s", *(o.address for o in origins), namespace=unique, balance="Source"),
            route("r", host, "b", namespace=unique),
            route("s", f"s.{host}", "s", namespace=unique),
        ),
        "?wait=all",
    )
    places = [[via(node, host, path=f"/{i}")[0] for i in range(20)] for node in shared]
    assert places[0] == places[1] == places[2]
    assert len(set(places[0])) == 4
    assert len({via(node, f"s.{host}")[0] for node in shared for _ in range(5)}) == 1


def test_limits_of_a_backend(shared, unique, make_origin):
    origin = make_origin("slow", delay=0.05)
    host = f"{unique}.example.com"
    shared[0].api.apply(
        documents(
            {"kind": "Namespace", "metadata": {"name": unique}},
            backend("b", origin.address, namespace=unique,
                    limits={"connectionsPerEndpoint": 1, "queue": 2, "queueTimeout": "30s"},
                    pool={"idlePerEndpoint": 1, "requestsPerConnection": 2}),
            route("r", host, "b", namespace=unique),
        ),
        "?wait=all",
    )
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.get(shared[0].http_port, host).status, range(8)))
    counts = collections.Counter(answers)
    assert counts[200] >= 3 and counts[503] == 8 - counts[200]
