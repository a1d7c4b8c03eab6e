"""Servers behind the proxy: a scripted one in this process, and a real nginx."""

import os
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.ports import free_port
from support.wait import until


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self):
        origin = self.server.origin
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        with origin.lock:
            origin.count += 1
            origin.requests.append((self.command, self.path, dict(self.headers.items()), body))
            del origin.requests[:-1000]
        if origin.delay:
            time.sleep(origin.delay)
        answer = (origin.name + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("X-Origin", origin.name)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass  # a connection that the proxy closed; what counts is seen by the client


class Origin:
    """Answers every request with its name; counts and keeps what came. delay is in seconds."""

    def __init__(self, name, port=0, delay=0.0):
        self.name = name
        self.delay = delay
        self.count = 0
        self.requests = []
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port or free_port()), _Handler)
        self._server.origin = self
        self.port = self._server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_NGINX_CONF = """
{user}
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
    uwsgi_temp_path tmp; scgi_temp_path tmp;
    keepalive_requests 1000000;
    server {{
        listen 127.0.0.1:{port};
        root html;
        default_type text/plain;
        location / {{ try_files $uri /index.html =404; }}
    }}
}}
"""


class Nginx:
    """A real nginx with static files: / answers with its name, further files as given."""

    def __init__(self, folder, name, files=None):
        self.name = name
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.folder = os.path.join(str(folder), name)
        os.makedirs(os.path.join(self.folder, "html"))
        os.makedirs(os.path.join(self.folder, "tmp"))
        for path, content in {"index.html": name + "\n", **(files or {})}.items():
            with open(os.path.join(self.folder, "html", path), "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        user = "user root;" if os.getuid() == 0 else ""
        with open(os.path.join(self.folder, "nginx.conf"), "w") as file:
            file.write(_NGINX_CONF.format(user=user, port=self.port))
        self.process = None
        self.start()

    def start(self):
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        with open(os.path.join(self.folder, "error.log"), "ab") as log:
            self.process = subprocess.Popen(
                [program, "-p", self.folder, "-e", "error.log", "-c", "nginx.conf"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )
        until(self._listens, f"nginx {self.name} listens")

    def _listens(self):
        assert self.process.poll() is None, f"nginx ended: see {self.folder}/error.log"
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        return True

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(10)
