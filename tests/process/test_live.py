"""A thousand changes of every kind while 200 connections talk: none is lost, no request fails, and
each change is in force at once.

What changes is drawn by seed (SKEIN_LIVE_SEED repeats one): endpoints, weights, states, policies of
routes and backends, targets, settings, and routes beside those in use, on their hosts and ports and
on others. Policies that this version does not offer are found out by a dry run and left out.
"""

import json
import os
import random
import time

import pytest

from support.api import documents
from support.live import Traffic
from support.ports import free_port
from support.wait import SLOW, until

NAMESPACE = "live"
CHANGES = 1000
EXCHANGES = 10  # at least, between two changes
SECONDS = 60.0  # of changes at most, on a machine that is not slow
UNOFFERED = ("not available in this version", "is no kind")

HOSTS = [(f"h{i}.live.test", "/") for i in range(6)] + [
    ("h0.live.test", "/api"), ("h0.live.test", "/api/v2"), ("h1.live.test", "/deep/er"), ("*.wild.test", "/")]
BACKENDS = 5

ROUTE = {
    "timeouts": [{"server": "20s"}, {"connect": "4s", "client": "25s", "server": "25s", "tunnel": "1h"},
                 {"tunnel": "10m"}, {"request": "60s"}, {"queue": "5s"}],
    "forwarded": ["Append", "Replace", "IfNone", "Never"],
    "headers": [
        {"request": [{"action": "Set", "name": "X-Req", "value": "1"}]},
        {"response": [{"action": "Add", "name": "X-Res", "value": "a"},
                      {"action": "Delete", "name": "X-Powered-By"}]},
        {"request": [{"action": "Delete", "name": "X-Drop"}],
         "response": [{"action": "Set", "name": "X-Res", "value": "b"}]},
    ],
    "rewrite": [{"replacePrefix": "/else"}, {"host": "inside.test"}],
    "cors": [{"allowOrigins": ["https://a.test"], "allowMethods": ["GET", "POST"]}],
    "allowFrom": [["127.0.0.0/8"], ["0.0.0.0/0", "::/0"]],
    "denyFrom": [["10.0.0.0/8"], ["2001:db8::/32", "192.0.2.1/32"]],
    "rateLimit": [{"requests": 1000000, "window": "1s"}, {"requests": 500000, "window": "1s", "key": "Route"},
                  {"requests": 1000000, "window": "1s", "key": "Header", "header": "X-Client"}],
    "limits": [{"bodyBytes": 10000000}, {"connections": 10000}],
    "sticky": [{"cookie": "live"}, {"cookie": "other", "maxAge": "1h"}, {"enabled": False}],
    "retries": [{"attempts": 3}, {"attempts": 1, "on": ["ConnectFailure", "Reset"]}, {"attempts": 0}],
    "accessLog": [True, False],
    "captures": [{"request": [{"name": "Host", "maxLength": 10}]}],
    "errorPages": [[{"status": 503, "contentType": "text/plain", "body": "no"}]],
    "compression": [{"mimeTypes": ["text/x-never"]}],
}
BACKEND = {
    "balance": ["Random", "RoundRobin", "LeastConn", "Source", "Hash"],
    "healthCheck": [{"type": "Tcp", "interval": "500ms"}, {"type": "None"},
                    {"type": "Http", "path": "/healthz", "interval": "1s", "rise": 1, "fall": 2}],
    "passiveCheck": [{"failures": 5, "window": "10s", "eject": "2s"}, {"failures": 3}],
    "limits": [{"connectionsPerEndpoint": 1000}, {"requestsPerEndpoint": 1000, "queue": 100}],
    "slowStart": ["2s", "30s"],
    "pool": [{"idlePerEndpoint": 8}, {"idleTimeout": "5s"}, {"requestsPerConnection": 7},
             {"idlePerEndpoint": 0}],
    "panicPercent": [0, 50, 100],
    "proxyProtocol": ["Off", "V1", "V2"],
}
TCP_ROUTE = {
    "timeouts": [{"connect": "4s", "tunnel": "1h"}, {"tunnel": "10m", "clientFin": "5s"}, {"queue": "5s"}],
    "allowFrom": [["127.0.0.0/8"]],
    "denyFrom": [["10.0.0.0/8"]],
    "rateLimit": [{"requests": 1000000, "window": "1s"}],
    "limits": [{"connections": 10000}],
    "retries": [{"attempts": 3}],
    "accessLog": [True, False],
}
SETTINGS = {
    "timeouts": [{"server": "40s", "keepAlive": "100s"}, {"clientHeader": "20s", "connect": "3s"},
                 {"tunnel": "2h", "client": "50s"}],
    "forwarded": ["Append", "Replace", "Never"],
    "limits": [{"headerBytes": 16384}, {"headerCount": 100, "uriBytes": 4096}, {"idlePerEndpoint": 2},
               {"bodyBytes": 100000000}, {"connectionsPerClient": 5000}, {"connections": 20000}],
    "dotSegments": ["Refuse", "Remove", "Keep"],
    "retries": [{"attempts": 1}, {"attempts": 5}],
    "headers": [{"response": [{"action": "Set", "name": "X-All", "value": "1"}]}],
    "errorPages": [[{"status": 404, "contentType": "text/html", "body": "<p>none</p>"}]],
    "trustedProxies": [["10.0.0.0/8"], ["127.0.0.1/32"]],
    "uniqueId": [{"header": "X-Request-Id"}],
    "accessLog": [{"enabled": True}, {"enabled": False}],
    "captures": [{"response": [{"name": "X-Origin", "maxLength": 8}]}],
    "balance": ["LeastConn", "Random"],
    "closedClient": ["Abort", "Continue"],
    "emptyRequests": ["Respond", "Ignore"],
}


def merged(parts):
    return {name: value for name, value in parts.items() if value is not None}


class World:
    """What is configured, and the next change of it."""

    def __init__(self, api, rng, http, tcp):
        self.api, self.rng = api, rng
        self.http, self.raw = http, tcp  # endpoints
        self.routes = {f"r{i}": {} for i in range(len(HOSTS))}
        self.targets = {name: [(f"b{i % BACKENDS}", 100)] for i, name in enumerate(self.routes)}
        self.tcp_routes = {}
        self.backends = {f"b{i}": {} for i in range(BACKENDS)}
        self.endpoints = {name: self.draw_endpoints(self.http) for name in self.backends}
        self.settings = {}
        self.others = set()
        self.left_out, self.wrong = [], []  # not offered; refused otherwise, so this test is at fault
        self.made = {}  # changes by kind

    # ---- what there is, as objects ----

    def draw_endpoints(self, pool):
        """A few, at least one of which takes all."""
        chosen = self.rng.sample(pool, self.rng.randint(1, len(pool)))
        made = [{"address": e.address, "weight": self.rng.choice((1, 100, 256))} for e in chosen]
        for endpoint in made[1:]:
            roll = self.rng.random()
            if roll < 0.2:
                endpoint["state"] = "Drain" if roll < 0.1 else "Disabled"
            elif roll < 0.3:
                endpoint["weight"] = 0
        return made

    def _object(self, kind, name, spec):
        return {"kind": kind, "metadata": {"namespace": NAMESPACE, "name": name}, "spec": spec}

    def route(self, name):
        host, path = HOSTS[int(name[1:])]
        to = [{"backend": b, "weight": w} for b, w in self.targets[name]]
        return self._object("Route", name, {"host": host, "path": path, "to": to, **self.routes[name]})

    def tcp_route(self, name):
        port, to, policy = self.tcp_routes[name]
        spec = {"port": port, "to": [{"backend": b, "weight": w} for b, w in to], **policy}
        return self._object("TcpRoute", name, spec)

    def backend(self, name):
        spec = dict(self.backends[name])
        if spec.get("balance") == "Hash":
            spec["hash"] = self.rng.choice([{"on": "Path"}, {"on": "Header", "name": "X-Client"}])
        if name.startswith("t"):
            spec["protocol"] = "Tcp"
            if "hash" in spec:
                spec["hash"] = {"on": "ClientAddress"}
        return self._object("Backend", name, {**spec, "endpoints": self.endpoints[name]})

    def settings_object(self):
        return {"kind": "Settings", "metadata": {"name": "default"}, "spec": self.settings}

    def everything(self):
        return [{"kind": "Namespace", "metadata": {"name": NAMESPACE}}, self.settings_object(),
                *map(self.backend, self.backends), *map(self.route, self.routes),
                *map(self.tcp_route, self.tcp_routes)]

    # ---- what this version offers ----

    def keep_offered(self, label, table, make):
        """The table without what this version does not offer."""
        kept = {}
        for field, choices in table.items():
            for choice in choices:
                answer = self.api.call("POST", "/v1/apply?dryRun=true", documents(*make({field: choice})))
                if answer.status == 200:
                    kept.setdefault(field, []).append(choice)
                    continue
                if answer.status != 422 or not any(u in answer.text for u in UNOFFERED):
                    self.wrong.append(f"{label}.{field}: {json.dumps(choice)}: {answer}")
                self.left_out.append(f"{label}.{field}={json.dumps(choice)}")
        return kept

    def find_offered(self):
        space = {"kind": "Namespace", "metadata": {"name": NAMESPACE}}
        plain = self.backend("b0")

        def route(policy):
            made = self.route("r0")
            return [space, plain, {**made, "spec": {**made["spec"], **policy}}]

        def backend(policy):
            more = {"hash": {"on": "ClientAddress"}} if policy.get("balance") == "Hash" else {}
            return [space, {**plain, "spec": {**plain["spec"], **policy, **more}}]

        def settings(policy):
            return [{**self.settings_object(), "spec": policy}]

        def tcp_route(policy):
            spec = {"port": 20001, "to": [{"backend": "b0"}], **policy}
            return [space, {**plain, "spec": {**plain["spec"], "protocol": "Tcp"}},
                    self._object("TcpRoute", "t", spec)]

        self.route_table = self.keep_offered("Route", ROUTE, route)
        self.backend_table = self.keep_offered("Backend", BACKEND, backend)
        self.settings_table = self.keep_offered("Settings", SETTINGS, settings)
        self.tcp_table = self.keep_offered("TcpRoute", {"": [None]}, lambda _: tcp_route({}))
        has_tcp = bool(self.tcp_table)
        if has_tcp:
            self.tcp_table = self.keep_offered("TcpRoute", TCP_ROUTE, tcp_route)
        assert not self.wrong, "\n".join(self.wrong)
        return has_tcp

    def add_tcp(self, ports):
        self.spare_ports = [free_port(), free_port(), free_port()]
        for i, port in enumerate(ports):
            self.backends[f"t{i}"] = {}
            self.endpoints[f"t{i}"] = self.draw_endpoints(self.raw)
            self.tcp_routes[f"p{i}"] = (port, [(f"t{i}", 100)], {})

    # ---- changes ----

    def vary(self, policy, table):
        """Set, change or take away one to three fields."""
        for field in self.rng.sample(sorted(table), min(len(table), self.rng.randint(1, 3))):
            if field in policy and self.rng.random() < 0.3:
                del policy[field]
            else:
                policy[field] = self.rng.choice(table[field])

    def apply(self, *objects):
        self.api.apply(documents(*objects))

    def change_endpoints(self):
        name = self.rng.choice(sorted(self.backends))
        self.endpoints[name] = self.draw_endpoints(self.raw if name.startswith("t") else self.http)
        self.apply(self.backend(name))

    def change_one_endpoint(self):
        """Each endpoint is an object of its own."""
        name = self.rng.choice(sorted(self.backends))
        pool = self.raw if name.startswith("t") else self.http
        endpoint = {"address": self.rng.choice(pool).address, "weight": self.rng.choice((0, 1, 100)),
                    "state": self.rng.choice(("Active", "Drain", "Disabled"))}
        others = [e for e in self.endpoints[name] if e["address"] != endpoint["address"]]
        if not any(e.get("state", "Active") == "Active" and e["weight"] > 0 for e in others):
            endpoint.update(weight=7, state="Active")
        path = f"{name}/{endpoint['address']}"
        if len(others) == len(self.endpoints[name]) or self.rng.random() < 0.6:
            self.api.put("endpoints", path, {"backend": name, **endpoint}, NAMESPACE)
            self.endpoints[name] = others + [endpoint]
        elif endpoint["weight"] == 7:
            return  # the last that takes anything
        else:
            self.api.delete("endpoints", path, NAMESPACE)
            self.endpoints[name] = others

    def change_targets(self):
        name = self.rng.choice(sorted(self.routes))
        chosen = self.rng.sample([f"b{i}" for i in range(BACKENDS)], self.rng.randint(1, 3))
        self.targets[name] = [(b, self.rng.choice((0, 1, 100))) for b in chosen[1:]] + [(chosen[0], 50)]
        self.apply(self.route(name))

    def change_route(self):
        name = self.rng.choice(sorted(self.routes))
        self.vary(self.routes[name], self.route_table)
        self.apply(self.route(name))

    def change_tcp_route(self):
        name = self.rng.choice(sorted(self.tcp_routes))
        port, _, policy = self.tcp_routes[name]
        self.vary(policy, self.tcp_table)
        backends = [b for b in sorted(self.backends) if b.startswith("t")]
        to = [(b, self.rng.choice((1, 100))) for b in self.rng.sample(backends, self.rng.randint(1, len(backends)))]
        self.tcp_routes[name] = (port, to, policy)
        self.apply(self.tcp_route(name))

    def change_backend(self):
        name = self.rng.choice(sorted(self.backends))
        table = self.backend_table
        if name.startswith("t"):  # what means nothing without HTTP is refused there
            table = {field: [c for c in table[field] if "Http" not in str(c)]
                     for field in ("balance", "healthCheck", "slowStart", "proxyProtocol") if field in table}
        self.vary(self.backends[name], table)
        self.apply(self.backend(name))

    def change_settings(self):
        self.vary(self.settings, self.settings_table)
        self.apply(self.settings_object())

    def change_others(self):
        """Routes that come and go beside those in use: on their hosts and ports, too."""
        if self.others and self.rng.random() < 0.5:
            kind, name = self.rng.choice(sorted(self.others))
            self.api.delete(kind, name, NAMESPACE)
            self.others.remove((kind, name))
            return
        number = self.made.get("change_others", 0)
        if self.tcp_routes and self.rng.random() < 0.3:
            ports = [port for port, _, _ in self.tcp_routes.values()]  # claimed already
            spec = {"port": self.rng.choice([*ports, *self.spare_ports]), "to": [{"backend": "t0"}]}
            self.vary(spec, self.tcp_table)
            self.apply(self._object("TcpRoute", f"o{number}", spec))
            self.others.add(("tcproutes", f"o{number}"))
            return
        host, path = self.rng.choice([
            (self.rng.choice(HOSTS)[0], f"/o{number}/x"),
            (f"o{number}.live.test", "/"),
            ("*.live.test", f"/w{number}"),
            ("www.wild.test" if number % 7 == 0 else "far.wild.test", f"/never{number}"),
            self.rng.choice(HOSTS),  # claimed by an older route: not admitted
        ])
        spec = {"host": host, "path": path, "to": [{"backend": "gone"}, {"backend": "b0", "weight": 0}]}
        if host == "www.wild.test":
            spec["host"] = "other.wild.test"  # an exact host takes all paths from its wildcard
        self.vary(spec, self.route_table)
        self.apply(self._object("Route", f"o{number}", spec))
        self.others.add(("routes", f"o{number}"))

    def change_many(self):
        """Everything at once, some of it changed."""
        for name in self.rng.sample(sorted(self.routes), 3):
            self.vary(self.routes[name], self.route_table)
        self.vary(self.settings, self.settings_table)
        self.apply(*self.everything())

    def check_in_force(self, node):
        """What was changed last counts for the next request, whoever sends it."""
        name = self.rng.choice(sorted(self.routes))
        host, path = HOSTS[int(name[1:])]
        self.api.get("routes", name, NAMESPACE)  # read once what was applied is with the workers
        answer = node.get(host.replace("*", "www"), path)
        assert answer.status == 200, f"{name}: {answer}"
        names = {e.address: e.name for e in self.http}
        may = {names[e["address"]] for backend, weight in self.targets[name] if weight > 0
               for e in self.endpoints[backend] if e["weight"] > 0 and e.get("state", "Active") == "Active"}
        assert answer.headers["X-Origin"] in may, f"{name}: {answer.headers['X-Origin']} is none of {may}"
        edits = self.routes[name].get("headers", {}).get("response", [])
        wanted = [e["value"] for e in edits if e["name"] == "X-Res"]
        assert answer.headers.get_all("X-Res", []) == wanted, f"{name}: {answer.headers.as_string()}"
        assert (answer.headers["X-All"] is not None) == ("headers" in self.settings)

    def change(self):
        kinds = [(self.change_endpoints, 20), (self.change_one_endpoint, 15), (self.change_targets, 12),
                 (self.change_route, 20), (self.change_backend, 12), (self.change_settings, 6),
                 (self.change_others, 12), (self.change_many, 1)]
        if self.tcp_routes:
            kinds.append((self.change_tcp_route, 8))
        kind = self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        kind()
        self.made[kind.__name__] = self.made.get(kind.__name__, 0) + 1


@pytest.mark.timing
def test_thousand_changes_lose_nothing(make_cluster, show):
    seed = int(os.environ.get("SKEIN_LIVE_SEED", "20260"))
    rng = random.Random(seed)
    with Traffic(seed) as traffic:
        change_and_watch(make_cluster, show, seed, rng, traffic)


def in_force(route):
    assert route["status"]["admitted"] and not route["status"].get("warnings"), route["status"]
    return True


def change_and_watch(make_cluster, show, seed, rng, traffic):
    http = [traffic.endpoint(f"e{i}") for i in range(6)]
    raw = [traffic.endpoint(f"t{i}", raw=True) for i in range(4)]
    cluster = make_cluster(1)
    node = cluster[0]
    node.start(extra=["--listen.maxConnections", "5000"])
    node.wait_ready()
    world = World(node.api, rng, http, raw)
    has_tcp = world.find_offered()
    if has_tcp:
        world.add_tcp([free_port(), free_port()])
    world.apply(*world.everything())

    for index, (host, path) in enumerate(HOSTS):
        host = host.replace("*", "www")
        until(lambda host=host, path=path: node.get(host, path).status == 200, f"{host}{path} serves")
        traffic.add("http", 12 if has_tcp else 15, node.http_port, host, path)
        traffic.add("upgrade", 4 if has_tcp else 5, node.http_port, host, path)
    for name, (port, _, _) in world.tcp_routes.items():
        until(lambda name=name: in_force(node.api.get("tcproutes", name, NAMESPACE)), f"port {port} is open")
        traffic.add("tcp", 20, node.tcp_host, port)
    until(lambda: traffic.lost or (traffic.alive == 200 and traffic.exchanges > 400), "all connections talk", 20)
    assert not traffic.lost, traffic.lost[:5]

    begin, before = time.monotonic(), traffic.exchanges
    while traffic.change < CHANGES and time.monotonic() - begin < SECONDS * SLOW:
        world.change()
        traffic.change += 1
        if traffic.change % 4 == 0:
            world.check_in_force(node)
        seen = traffic.exchanges + EXCHANGES
        until(lambda: traffic.exchanges >= seen or traffic.lost, "the connections talk on", pause=0.001)
        assert not traffic.lost, f"seed {seed}: " + "; ".join(traffic.lost[:5])
    seconds = time.monotonic() - begin
    during = traffic.exchanges - before
    if traffic.alive == 200:
        last = traffic.exchanges
        until(lambda: traffic.exchanges > last + 400 or traffic.lost, "all connections talk on", 20)
    traffic.stop()
    kinds = ", ".join(f"{name[7:]} {count}" for name, count in sorted(world.made.items()))
    show(f"seed {seed}: {traffic.change} changes in {seconds:.1f} s ({kinds})")
    show(f"200 connections, {40 if has_tcp else 0} of them TCP and {40 if has_tcp else 50} upgraded, "
         f"{during} exchanges meanwhile, {len(traffic.lost)} lost")
    if world.left_out:
        fields = sorted({text.partition("=")[0] for text in world.left_out})
        show(f"not (wholly) offered by this version: {', '.join(fields)}")
    assert not traffic.lost, f"seed {seed}: " + "; ".join(traffic.lost[:5])
    assert traffic.alive == 200
    assert traffic.change == CHANGES, f"only {traffic.change} changes in {seconds:.0f} s"
    assert during > 1000
