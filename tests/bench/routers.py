"""The routers that are compared, each at its best settings and with one thread for traffic.

A router is started with a Plan: which backends there are, behind which hosts and ports. It fills
`ports` by mode; a mode that it cannot serve is missing there and `reasons` says why. A further mode
(edge, passthrough, ...) is a row in MODES, a port in each router's configuration, and a cell.
"""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field

import load
import machine
from origin import NGINX, STREAM_MODULE, listens, tls_lines, user_line
from support.api import documents, route
from support.api import backend as backend_object
from support.cluster import SKEIND, Node, make_key
from support.ports import free_port

HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"
MODES = ("plain", "tcp", "edge", "passthrough", "reencrypt")
PASSTHROUGH_NAME = "localhost"  # what wrk sends as server name; with an address it is none
ORIGIN_NAME = "origin.test"


@dataclass
class Plan:
    """What a router is to do."""

    folder: str
    hosts: list  # [(host, [endpoint address, ...])]: one route and one backend each
    tcp: list = field(default_factory=list)  # endpoint addresses behind the TCP port; empty: none
    bulk: bool = False  # large objects: buffers as each does best with them
    tls: object = None  # TlsFiles; None: no TLS modes
    tls_endpoint: str = ""  # behind passthrough and re-encrypt

    def reencrypted(self):
        """[(number, host)]: as many as there are plain ones."""
        return [(number, load.host(number, "r")) for number in range(len(self.hosts))]


class Router:
    """One process or a tree of them, alone on its CPU."""

    name = ""

    def __init__(self, plan):
        self.plan = plan
        self.folder = os.path.join(plan.folder, self.name.replace("+", "-"))
        os.makedirs(self.folder, exist_ok=True)
        self.ports = {}
        self.reasons = {}
        self.process = None

    def spawn(self, *command):
        with machine.pinned(machine.ROUTER_CPUS), \
                open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        for port in self.ports.values():
            listens(f"127.0.0.1:{port}", self.process, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(text)
        os.rename(path + ".new", path)
        return path

    def pids(self):
        return machine.tree(self.process.pid)

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        pids = self.pids()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in pids[1:]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Skein(Router):
    """skeind as a first node of a cluster, one worker, changed through its admin API."""

    name = "skein"
    tcp_setting = None  # does this build know listen.tcp? asked once

    def __init__(self, plan):
        super().__init__(plan)
        key = make_key(os.path.join(self.folder, "cluster.key"))
        self.node = Node(self.folder, "n1", key, workers=1)
        self.api = self.node.api

    @classmethod
    def knows_tcp(cls):
        if cls.tcp_setting is None:
            text = subprocess.run([SKEIND, "--help"], capture_output=True, text=True, check=False)
            cls.tcp_setting = "listen.tcp" in text.stdout + text.stderr
        return cls.tcp_setting

    def start(self):
        extra = ["--log.level", "warn"]
        want_tcp = bool(self.plan.tcp)
        if want_tcp and not self.knows_tcp():
            self.reasons["tcp"] = "no setting listen.tcp"
            want_tcp = False
        if want_tcp:
            extra += ["--listen.tcp", "127.0.0.1"]
        if self.plan.tls:
            self.ports["edge"] = self.ports["passthrough"] = self.ports["reencrypt"] = free_port()
            extra += ["--listen.https", f"127.0.0.1:{self.ports['edge']}"]
        with machine.pinned(machine.ROUTER_CPUS):
            self.node.start(extra=extra)
        self.process = self.node.process
        self.node.wait_ready()
        objects = []
        for number, (host, endpoints) in enumerate(self.plan.hosts):
            objects.append(backend_object(f"b{number}", *endpoints))
            objects.append(route(f"r{number}", host, f"b{number}"))
            if self.plan.tls:
                objects[-1]["spec"]["tls"] = {"termination": "Edge", "insecure": "Allow"}
        if self.plan.tls:
            objects = self.tls_objects() + objects
        for at in range(0, len(objects), 200):
            self.api.apply(documents(*objects[at:at + 200]))
        self.ports["plain"] = self.node.http_port
        if want_tcp:
            self.start_tcp()
        return self

    def tls_objects(self):
        tls = self.plan.tls
        certificate = {"kind": "Certificate", "metadata": {"name": "bench"},
                       "spec": {"chain": tls.text(tls.cert), "key": tls.text(tls.key)}}
        settings = {"kind": "Settings", "metadata": {"name": "default"}, "spec": {"tls": {
            "defaultCertificate": "default/bench", "profile": "Custom", "minVersion": "1.3",
            "ciphersuites": [tls.suite], "groups": ["X25519"]}}}
        objects = [certificate, settings]
        for number, host in self.plan.reencrypted():
            objects.append(backend_object(f"t{number}", self.plan.tls_endpoint))
            objects.append(route(f"t{number}", host, f"t{number}"))
            objects[-1]["spec"]["tls"] = {
                "termination": "Reencrypt", "destinationCa": tls.text(tls.ca),
                "serverName": ORIGIN_NAME}
        objects.append(route("pass", PASSTHROUGH_NAME, "t0"))
        objects[-1]["spec"]["tls"] = {"termination": "Passthrough"}
        return objects

    def start_tcp(self):
        port = free_port()
        spec = {"port": port, "to": [{"backend": "tcp"}]}
        objects = [backend_object("tcp", *self.plan.tcp),
                   {"kind": "TcpRoute", "metadata": {"namespace": "default", "name": "t"},
                    "spec": spec}]
        answer = self.api.call("POST", "/v1/apply", documents(*objects))
        if answer.status != 200:
            self.reasons["tcp"] = f"TcpRoute refused ({answer.status})"
            return
        try:
            listens(f"127.0.0.1:{port}", self.process, self.folder)
        except AssertionError as error:
            self.reasons["tcp"] = f"TcpRoute does not listen: {error}"
            return
        self.ports["tcp"] = port

    def set_endpoints(self, number, endpoints):
        """Answered after the data plane has it."""
        self.api.apply(documents(backend_object(f"b{number}", *endpoints)))

    def stop(self):
        if self.node.is_running():
            self.node.terminate()
            try:
                self.node.process.wait(20)
            except subprocess.TimeoutExpired:
                self.node.kill()


class Haproxy(Router):
    """One thread, connections to servers reused always."""

    name = "haproxy"
    splice = ""

    def config(self):
        lines = [
            "global",
            "  nbthread 1", "  maxconn 9000", "  maxpipes 500", "  hard-stop-after 60s",
            f"  stats socket {self.folder}/sock level admin expose-fd listeners",
            # 16 kB buffers serve small messages best, larger ones bulk.
            "  tune.bufsize 65536" if self.plan.bulk else "",
            "defaults",
            "  mode http", "  maxconn 9000", "  option http-keep-alive", "  http-reuse always",
            "  timeout connect 5s", "  timeout client 1h", "  timeout server 1h",
            "  timeout http-keep-alive 1h", "  timeout http-request 1h", "  retries 3",
            "  option redispatch 1", "  default-server pool-purge-delay 1h", self.splice,
            "frontend plain",
            f"  bind 127.0.0.1:{self.ports['plain']} backlog 4096",
            f"  use_backend %[req.hdr(host),map({self.folder}/hosts.map)]",
        ]
        for number, (_, endpoints) in enumerate(self.plan.hosts):
            lines.append(f"backend b{number}")
            lines += [f"  server s{i} {a}" for i, a in enumerate(endpoints)]
        if self.plan.tcp:
            lines += ["listen tcp", "  mode tcp", f"  bind 127.0.0.1:{self.ports['tcp']} backlog 4096"]
            lines += [f"  server s{i} {a}" for i, a in enumerate(self.plan.tcp)]
        if self.plan.tls:
            lines += self.tls_config()
        names = [(host, f"b{number}") for number, (host, _) in enumerate(self.plan.hosts)]
        names += [(host, f"t{number}") for number, host in self.plan.reencrypted()]
        self.write("hosts.map", "".join(f"{host} {backend}\n" for host, backend in names))
        return self.write("haproxy.cfg", "\n".join(line for line in lines if line) + "\n")

    def tls_config(self):
        """One port for what ends here, one for what goes on untouched."""
        tls = self.plan.tls
        bind = (f"ssl crt {tls.bundle} ssl-min-ver TLSv1.3 ciphersuites {tls.suite} "
                "curves X25519 alpn http/1.1")
        server = (f"ssl verify required ca-file {tls.ca} sni str({ORIGIN_NAME}) "
                  f"verifyhost {ORIGIN_NAME} ciphersuites {tls.suite}")
        lines = ["frontend edge", f"  bind 127.0.0.1:{self.ports['edge']} backlog 4096 {bind}",
                 f"  use_backend %[req.hdr(host),map({self.folder}/hosts.map)]",
                 "frontend passthrough", "  mode tcp",
                 f"  bind 127.0.0.1:{self.ports['passthrough']} backlog 4096",
                 "  tcp-request inspect-delay 5s",
                 "  tcp-request content accept if { req_ssl_hello_type 1 }",
                 f"  use_backend pass if {{ req_ssl_sni -i {PASSTHROUGH_NAME} }}",
                 "backend pass", "  mode tcp", f"  server s0 {self.plan.tls_endpoint}"]
        for number, _ in self.plan.reencrypted():
            lines += [f"backend t{number}", f"  server s0 {self.plan.tls_endpoint} {server}"]
        return lines

    def start(self):
        self.ports["plain"] = free_port()
        if self.plan.tcp:
            self.ports["tcp"] = free_port()
        if self.plan.tls:
            self.ports["edge"] = self.ports["reencrypt"] = free_port()
            self.ports["passthrough"] = free_port()
        self.spawn(HAPROXY, "-W", "-f", self.config())
        return self

    def reload(self):
        """As its unit file does: the master starts new processes, the old ones finish."""
        self.config()
        self.process.send_signal(signal.SIGUSR2)


class HaproxySplice(Haproxy):
    """Moves the bytes of answers inside the kernel; off in its defaults."""

    name = "haproxy+splice"
    splice = "  option splice-response"


class Nginx(Router):
    """One worker, connections to upstreams kept."""

    name = "nginx"

    def config(self):
        lines = [
            f"load_module {STREAM_MODULE};" if self.plan.tcp or self.plan.tls else "", user_line(),
            "daemon off;", "worker_processes 1;", "worker_rlimit_nofile 20000;",
            "pid nginx.pid;", "error_log /dev/null crit;", "worker_shutdown_timeout 60s;",
            "events { worker_connections 19000; accept_mutex off; }",
            "http {", "access_log off;", "server_names_hash_max_size 4096;",
            "server_names_hash_bucket_size 128;",
            *(f"{what}_temp_path tmp;" for what in ("client_body", "proxy", "fastcgi", "uwsgi",
                                                    "scgi")),
            "keepalive_requests 1000000000;", "keepalive_timeout 1h;",
            "proxy_http_version 1.1;", 'proxy_set_header Connection "";',
            "proxy_set_header Host $host;",
        ]
        if self.plan.bulk:
            lines += ["proxy_max_temp_file_size 0;", "proxy_buffer_size 64k;",
                      "proxy_buffers 8 64k;", "proxy_busy_buffers_size 128k;"]
        for number, (host, endpoints) in enumerate(self.plan.hosts):
            lines += [f"upstream u{number} {{", *(f"server {a};" for a in endpoints),
                      "keepalive 64; keepalive_requests 1000000000; keepalive_timeout 1h; }",
                      f"server {{ listen 127.0.0.1:{self.ports['plain']}"
                      f"{' backlog=4096' if number == 0 else ''};",
                      f"server_name {host}; location / {{ proxy_pass http://u{number}; }} }}"]
            if self.plan.tls:
                lines.append(self.tls_server(number, host, f"proxy_pass http://u{number};"))
        if self.plan.tls:
            lines += self.reencrypt_config()
        lines.append("}")
        if self.plan.tls:
            lines += ["stream {", f"map $ssl_preread_server_name $to {{ {PASSTHROUGH_NAME} pass; }}",
                      f"upstream pass {{ server {self.plan.tls_endpoint}; }}",
                      f"server {{ listen 127.0.0.1:{self.ports['passthrough']} backlog=4096;",
                      "ssl_preread on; proxy_pass $to; proxy_timeout 1h;",
                      "proxy_buffer_size 64k;" if self.plan.bulk else "", "} }"]
        if self.plan.tcp:
            lines += ["stream {", "upstream t {", *(f"server {a};" for a in self.plan.tcp), "}",
                      f"server {{ listen 127.0.0.1:{self.ports['tcp']} backlog=4096;",
                      "proxy_pass t; proxy_timeout 1h;",
                      "proxy_buffer_size 64k;" if self.plan.bulk else "", "} }"]
        return self.write("nginx.conf", "\n".join(line for line in lines if line) + "\n")

    def tls_server(self, number, host, location):
        tls = self.plan.tls
        options = "" if number else " default_server backlog=4096"
        return (f"server {{ listen 127.0.0.1:{self.ports['edge']} ssl{options}; "
                f"server_name {host}; {tls_lines(tls, tls.cert, tls.key)} "
                f"location / {{ {location} }} }}")

    def reencrypt_config(self):
        tls = self.plan.tls
        location = (f"proxy_ssl_verify on; proxy_ssl_trusted_certificate {tls.ca}; "
                    f"proxy_ssl_name {ORIGIN_NAME}; proxy_ssl_server_name on; "
                    "proxy_ssl_protocols TLSv1.3; proxy_ssl_session_reuse on; "
                    f"proxy_ssl_conf_command Ciphersuites {tls.suite}; ")
        lines = []
        for number, host in self.plan.reencrypted():
            lines += [f"upstream t{number} {{ server {self.plan.tls_endpoint};",
                      "keepalive 64; keepalive_requests 1000000000; keepalive_timeout 1h; }",
                      self.tls_server(number + 1, host, f"{location} proxy_pass https://t{number};")]
        return lines

    def start(self):
        os.makedirs(os.path.join(self.folder, "tmp"), exist_ok=True)
        self.ports["plain"] = free_port()
        if self.plan.tls:
            self.ports["edge"] = self.ports["reencrypt"] = free_port()
            if os.path.exists(STREAM_MODULE):
                self.ports["passthrough"] = free_port()
            else:
                self.reasons["passthrough"] = f"no {STREAM_MODULE}"
        if self.plan.tcp and os.path.exists(STREAM_MODULE):
            self.ports["tcp"] = free_port()
        elif self.plan.tcp:
            self.reasons["tcp"] = f"no {STREAM_MODULE}"
            self.plan = Plan(self.plan.folder, self.plan.hosts, [], self.plan.bulk)
        self.config()
        self.spawn(NGINX, "-p", self.folder, "-e", "/dev/null", "-c", "nginx.conf")
        return self

    def reload(self):
        self.config()
        self.process.send_signal(signal.SIGHUP)


class Direct:
    """No router: the client speaks to the origin. A control for times and rates."""

    name = "direct"

    def __init__(self, address):
        port = int(address.rsplit(":", 1)[1])
        self.ports = {mode: port for mode in MODES}
        self.reasons = {}

    def start(self):
        return self

    def pids(self):
        return []

    def stop(self):
        pass


def versions():
    """One line that says what was compared."""
    def first(*command):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return (run.stdout + run.stderr).strip().split("\n", maxsplit=1)[0]

    return f"{first(SKEIND, '--version')}; {first(HAPROXY, '-v')}; {first(NGINX, '-v')}"
