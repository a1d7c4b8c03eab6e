"""What stands behind the routers: one nginx with static files, and small ones that can be killed."""

import os
import shutil
import signal
import socket
import subprocess

import machine
from support.ports import free_port
from support.wait import Hopeless, until

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
STREAM_MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"

# Name to size; 6,459 bytes is the page of the oldest published comparisons of OpenShift's router.
FILES = {"1k": 1024, "page": 6459, "8k": 8192, "256k": 256 * 1024, "10m": 10_000_000}

_CONF = """
{user}
daemon off;
master_process off;
worker_rlimit_nofile 20000;
pid nginx.pid;
error_log error.log crit;
events {{ worker_connections 10000; }}
http {{
    access_log off;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
    uwsgi_temp_path tmp; scgi_temp_path tmp;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=100;
    server {{
        {listen}
        {tls}
        root {root};
        default_type application/octet-stream;
    }}
}}
"""


def user_line():
    return "user root;" if os.getuid() == 0 else ""


def tls_lines(tls, cert, key):
    """TLS of an nginx server, as all have it."""
    return (f"ssl_certificate {cert}; ssl_certificate_key {key}; ssl_protocols TLSv1.3; "
            f"ssl_conf_command Ciphersuites {tls.suite}; ssl_ecdh_curve X25519; "
            "ssl_session_tickets on; ssl_session_cache off;")


def make_files(folder):
    """The static files, once for all origins of a run."""
    root = os.path.join(folder, "html")
    os.makedirs(root, exist_ok=True)
    for name, size in FILES.items():
        with open(os.path.join(root, name), "wb") as file:
            file.write((b"Skein is a flock of geese in flight.\n" * (size // 37 + 1))[:size])
    return root


def listens(address, process=None, folder=""):
    def check():
        if process is not None and process.poll() is not None:
            with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as file:
                raise Hopeless(f"ended with {process.returncode}: {file.read()[-2000:]}")
        host, port = address.rsplit(":", 1)
        socket.create_connection((host, int(port)), timeout=1).close()
        return True

    return until(check, f"{address} listens", 20)


class Origin:
    """One nginx process; kill() is what happens to a pod without grace."""

    def __init__(self, folder, name, root, hosts=("127.0.0.1",), tls=None):
        self.folder = os.path.join(folder, name)
        os.makedirs(os.path.join(self.folder, "tmp"), exist_ok=True)
        self.port = free_port()
        self.addresses = [f"{host}:{self.port}" for host in hosts]
        self.address = self.addresses[0]
        listen = " ".join(f"listen {address} backlog=4096;" for address in self.addresses)
        self.tls_address = None
        if tls is not None:
            self.tls_address = f"{hosts[0]}:{free_port()}"
            listen += f" listen {self.tls_address} ssl backlog=4096;"
        with open(os.path.join(self.folder, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(_CONF.format(user=user_line(), listen=listen, root=root,
                                    tls=tls_lines(tls, tls.origin_cert, tls.origin_key)
                                    if tls else ""))
        self.process = None
        self.start()

    def start(self):
        with machine.pinned(machine.REST_CPUS), \
                open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [NGINX, "-p", self.folder, "-e", "error.log", "-c", "nginx.conf"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )
        listens(self.address, self.process, self.folder)

    def pids(self):
        return machine.tree(self.process.pid)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()
