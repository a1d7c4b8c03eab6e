"""A storm of peers that keep no rule, while everything about the routes changes; then all is calm.

Endpoints answer with garbage, too early, by halves or never; clients cut, stall, flood and reset;
limits, queues, retries, access lists, stickiness, checks, ports and settings change by seed
(SKEIN_STORM_SEED repeats one, SKEIN_STORM_SECONDS makes it last). What is judged is the node: no
sanitizer has anything to say, it stays small, its gauges return to nothing, every place of every
limit is free again, it serves, and it ends at once.
"""

import os
import time

import pytest

from support import chaos, storm
from support.api import documents, route, tcp_route
from support.exposition import parse
from support.ports import free_port
from support.wait import until

pytestmark = pytest.mark.smoke

NAMESPACE = "storm"
ROUTES, BACKENDS, PORTS = 5, 3, 2
HOSTS = [f"h{i}.storm.test" for i in range(ROUTES)]
MEMORY_MIB = 120

ROUTE = {
    "timeouts": [{"server": "300ms", "client": "300ms"}, {"request": "500ms"}, {"connect": "200ms"},
                 {"queue": "50ms", "tunnel": "300ms"}, {"server": "5s", "client": "5s"}],
    "forwarded": ["Append", "Replace", "IfNone", "Never"],
    "headers": [
        {"request": [{"action": "Set", "name": "X-Path", "value": "%{path}?%{query}"},
                     {"action": "Delete", "name": "X-Client"}],
         "response": [{"action": "Add", "name": "X-Host", "value": "%{host} %{method} %{request.header.X-Client}"}]},
        {"request": [{"action": "Add", "name": "X-Id", "value": "%{request.id} %{request.header.X-Client} %{client.address}"}]},
    ],
    "rewrite": [{"replacePrefix": "/"}, {"replacePath": "/one"}, {"host": "inside.test"}],
    "redirect": [{"scheme": "Https", "replacePrefix": "/"}, {"host": "else.test", "status": 308}],
    "cors": [{"allowOrigins": ["https://a.test"]}, {"allowOrigins": ["*"]}],
    "allowFrom": [["127.0.0.0/8"], ["10.0.0.0/8"], ["0.0.0.0/0"]],
    "denyFrom": [["127.0.0.66/32", "1.0.0.0/8"], ["192.0.2.1/32"]],
    "rateLimit": [{"requests": 50, "window": "1s"}, {"requests": 1, "window": "1s", "key": "Route"},
                  {"requests": 3, "key": "Header", "header": "X-Client", "connections": 2},
                  {"connections": 3}],
    "limits": [{"bodyBytes": 1000}, {"connections": 2}, {"connections": 20}],
    "sticky": [{"cookie": "storm"}, {"cookie": "a", "maxAge": "1h"}],
    "retries": [{"attempts": 3}, {"attempts": 0},
                {"attempts": 2, "on": ["ConnectFailure", "Reset", "Timeout", "Status"],
                 "statuses": [502, 503], "perTry": "200ms"}],
    "accessLog": [True, False],
    "captures": [{"request": [{"name": "X-Client", "maxLength": 8}]}],
    "errorPages": [[{"status": 503, "contentType": "text/plain", "body": "no"}]],
}
BACKEND = {
    "balance": ["Random", "RoundRobin", "LeastConn", "Source", "Hash"],
    "healthCheck": [{"type": "Tcp", "interval": "500ms"}, {"type": "None"},
                    {"type": "Http", "path": "/healthz", "interval": "500ms", "timeout": "200ms",
                     "rise": 1, "fall": 1, "body": "x"}],
    "passiveCheck": [{"failures": 2, "window": "10s", "eject": "1s"}, {"failures": 5}],
    "limits": [{"connectionsPerEndpoint": 1, "queue": 3}, {"connectionsPerEndpoint": 2, "queue": 50},
               {"connectionsPerEndpoint": 3, "queue": 10, "queueTimeout": "100ms"},
               {"connectionsPerEndpoint": 500}],
    "slowStart": ["1s"],
    "pool": [{"idlePerEndpoint": 0}, {"idleTimeout": "1s"}, {"requestsPerConnection": 2}],
    "panicPercent": [0, 50, 100],
    "proxyProtocol": ["Off", "Off", "Off", "V1", "V2"],
}
BESIDE_REDIRECT = {"redirect", "allowFrom", "denyFrom", "accessLog", "rateLimit"}
OF_TCP = ("balance", "slowStart", "proxyProtocol", "limits")
TCP_ROUTE = {
    "timeouts": [{"tunnel": "300ms"}, {"connect": "200ms", "clientFin": "100ms", "serverFin": "100ms"},
                 {"queue": "50ms"}],
    "allowFrom": [["127.0.0.0/8"], ["10.0.0.0/8"]],
    "denyFrom": [["127.0.0.66/32"]],
    "rateLimit": [{"requests": 20, "window": "1s"}, {"connections": 2}],
    "limits": [{"connections": 2}, {"connections": 10}],
    "retries": [{"attempts": 2}, {"attempts": 0}],
    "accessLog": [True, False],
}
SETTINGS = {
    "timeouts": [{"clientHeader": "300ms", "keepAlive": "300ms"}, {"client": "400ms", "server": "400ms"}],
    "limits": [{"connectionsPerClient": 20}, {"headerBytes": 4096, "uriBytes": 1024}, {"idlePerEndpoint": 1}],
    "trustedProxies": [["127.0.0.0/8"], ["10.0.0.0/8"]],
    "dotSegments": ["Refuse", "Remove", "Keep"],
    "headers": [{"response": [{"action": "Set", "name": "X-All", "value": "%{client.address} %{backend} %{endpoint} %{path}"}]}],
    "uniqueId": [{"header": "X-Request-Id"}],
    "accessLog": [{"enabled": True}, {"enabled": False}],
    "closedClient": ["Abort", "Continue"],
    "emptyRequests": ["Respond", "Ignore"],
}

# What must be nothing once everybody has gone.
AT_REST = ("skein_client_connections", "skein_listener_connections", "skein_tunnels",
           "skein_backend_queue_length", "skein_endpoint_in_flight", "skein_upstream_connections",
           "skein_health_checks_in_flight")


def named(kind, name, spec):
    return {"kind": kind, "metadata": {"namespace": NAMESPACE, "name": name}, "spec": spec}


class Weather:
    """What changes while the peers storm."""

    def __init__(self, api, rng, http, raw, ports):
        self.api, self.rng, self.http, self.raw, self.ports = api, rng, http, raw, ports
        self.specs = {}
        self.changes = 0

    def policy(self, table, fields=None):
        fields = sorted(fields or table)
        chosen = self.rng.sample(fields, self.rng.randint(0, min(5, len(fields))))
        policy = {field: self.rng.choice(table[field]) for field in chosen}
        if "redirect" in policy and (self.rng.random() < 0.7 or not BESIDE_REDIRECT >= policy.keys()):
            del policy["redirect"]
        return policy

    def endpoints(self, pool):
        made = [{"address": e.address, "weight": self.rng.choice((0, 1, 100))}
                for e in self.rng.sample(pool, self.rng.randint(0, len(pool)))]
        for endpoint in made:
            if self.rng.random() < 0.2:
                endpoint["state"] = self.rng.choice(("Drain", "Disabled"))
        roll = self.rng.random()
        if roll < 0.1:  # nobody is there
            made.append({"address": "127.0.0.1:1"})
        elif roll < 0.2:
            made.append({"address": f"localhost:{self.rng.choice(pool).port}"})
        elif roll < 0.25:
            made.append({"address": "nobody.invalid:80"})
        return made

    def route(self, name):
        chosen = self.rng.sample(range(BACKENDS), self.rng.randint(1, BACKENDS))
        to = [(f"b{i}", self.rng.choice((0, 1, 100))) for i in chosen]
        policy = self.policy(ROUTE)
        if "redirect" in policy:
            to = []
        return route(name, HOSTS[int(name[1:])], *to, namespace=NAMESPACE, **policy)

    def backend(self, name):
        tcp = name.startswith("t")
        spec = self.policy(BACKEND, OF_TCP if tcp else None)
        if spec.get("balance") == "Hash":
            spec["hash"] = {"on": "ClientAddress"} if tcp else self.rng.choice(
                ({"on": "Path"}, {"on": "Header", "name": "X-Client"}, {"on": "Cookie", "name": "a"}))
        if tcp:
            spec["protocol"] = "Tcp"
        return named("Backend", name, {**spec, "endpoints": self.endpoints(self.raw if tcp else self.http)})

    def tcp_route(self, index):
        return tcp_route(f"p{index}", self.ports[index], f"t{self.rng.randint(0, 1)}",
                         namespace=NAMESPACE, **self.policy(TCP_ROUTE))

    def settings(self):
        return {"kind": "Settings", "metadata": {"name": "default"}, "spec": self.policy(SETTINGS)}

    def everything(self):
        return [{"kind": "Namespace", "metadata": {"name": NAMESPACE}}, self.settings(),
                *(self.backend(f"b{i}") for i in range(BACKENDS)),
                *(self.backend(f"t{i}") for i in range(2)),
                *(self.route(f"r{i}") for i in range(ROUTES)),
                *(self.tcp_route(i) for i in range(PORTS))]

    def change(self):
        roll = self.rng.random()
        if roll < 0.3:
            made = self.backend(f"b{self.rng.randrange(BACKENDS)}")
        elif roll < 0.4:
            made = self.backend(f"t{self.rng.randrange(2)}")
        elif roll < 0.75:
            made = self.route(f"r{self.rng.randrange(ROUTES)}")
        elif roll < 0.85:
            made = self.tcp_route(self.rng.randrange(PORTS))
        elif roll < 0.92:
            self.api.delete("tcproutes", f"p{self.rng.randrange(PORTS)}", NAMESPACE, expect=(200, 204, 404))
            made = None
        elif roll < 0.94:
            self.api.delete("routes", f"r{self.rng.randrange(ROUTES)}", NAMESPACE, expect=(200, 204, 404))
            made = None
        else:
            made = self.settings()
        if made is not None:
            self.api.apply(documents(made))
        self.changes += 1

    def calm(self, address):
        """Every route with one gentle endpoint, one place for one request, and nothing else."""
        one = {"limits": {"connections": 1}}
        self.api.apply(documents(
            {"kind": "Settings", "metadata": {"name": "default"},
             "spec": {"limits": {"connectionsPerClient": 1}}},
            *(named("Backend", f"b{i}", {"endpoints": [{"address": address}]}) for i in range(BACKENDS)),
            *(route(f"r{i}", HOSTS[i], "b0", namespace=NAMESPACE, **one) for i in range(ROUTES))))


def at_rest(node):
    metrics = node.api.metrics()
    left = {name: value for name, value in metrics.items()
            if name.partition("{")[0] in AT_REST and value != 0}
    assert not left, left
    return True


class Scene:
    """A node, everything that is configured on it, and who storms."""

    def __init__(self, make_cluster):
        self.seed = int(os.environ.get("SKEIN_STORM_SEED", "4711"))
        self.foes = storm.Foes(self.seed)
        http = [storm.Endpoint(self.foes, f"http{i}") for i in range(4)]
        raw = [storm.Endpoint(self.foes, f"raw{i}", raw=True) for i in range(2)]
        self.endpoints = http + raw
        self.node = make_cluster(1, workers=int(os.environ.get("SKEIN_STORM_WORKERS", "2")))[0]
        self.node.start(extra=[
            "--listen.proxyProtocol.trusted", f"{storm.PROXY_SOURCE}/32", "--listen.maxConnections", "400",
            "--node.drainTimeout", "3s", "--log.access", os.path.join(self.node.folder, "access")])
        self.node.wait_ready()
        ports = [free_port() for _ in range(PORTS)]
        self.weather = Weather(self.node.api, self.foes.rng("weather"), http, raw, ports)
        self.weather.api.apply(documents(*self.weather.everything()))
        self.clients = storm.Clients(self.foes, self.node, HOSTS, ports)
        self.memory = 0.0

    def rage(self, seconds):
        """Changes while the clients storm, who go on afterwards."""
        node = self.node
        self.foes.run("client", self.clients.step, 20)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.weather.change()
            self.foes.pause(0.02)
            if self.weather.changes % 20 == 0:
                parse(node.api.call("GET", "/metrics", expect=200).text)
                self.memory = max(self.memory, chaos.memory_mib(node))
            assert node.is_running(), node.log_tail()

    def end(self):
        self.foes.stop()
        for endpoint in self.endpoints:
            endpoint.close()


def test_storm(make_cluster, show):
    scene = Scene(make_cluster)
    seed, node, weather, foes = scene.seed, scene.node, scene.weather, scene.foes
    try:
        scene.rage(float(os.environ.get("SKEIN_STORM_SECONDS", "20")))
    finally:
        scene.end()
    until(lambda: at_rest(node), f"seed {seed}: everything is at rest", 20)
    for name in ("skein_requests_total", "skein_tunnels_total", "skein_tcp_bytes_total",
                 "skein_proxy_header_faults_total", "skein_backend_queued_total"):
        assert node.api.metric(name) > 0, f"seed {seed}: {name}: nothing of the kind happened"
    gentle = storm.Endpoint(storm.Foes(seed), "gentle")
    gentle.gentle = True
    weather.calm(gentle.address)
    for host in HOSTS:
        # The only place of its route and of its client, so none was lost. It is free again when the
        # node has seen the last connection end.
        for _ in range(3):
            until(lambda host=host: node.get(host).status == 200, f"seed {seed}: {host} serves", 20)
    gentle.foes.stop()
    gentle.close()
    until(lambda: at_rest(node), f"seed {seed}: everything is at rest once more", 20)
    assert scene.memory < MEMORY_MIB or chaos.is_sanitized(node), f"{scene.memory:.0f} MiB"
    assert not chaos.error_lines(node), chaos.error_lines(node)
    begin = time.monotonic()
    node.stop()
    took = time.monotonic() - begin
    assert not node.faults(), node.faults()
    show(f"seed {seed}: {weather.changes} changes, {sum(foes.done.values())} deeds of "
         f"{len(foes.done)} kinds, at most {scene.memory:.0f} MiB; ended in {took:.1f} s")


def test_a_node_stops_in_the_storm(make_cluster):
    scene = Scene(make_cluster)
    try:
        scene.rage(3)
        scene.node.stop(10)  # within the time of draining, and with exit code 0
    finally:
        scene.end()
    assert not scene.node.faults(), scene.node.faults()
