"""An origin that health checks look at: what it answers to them, and to others, can be changed.

Requests for a path that begins with /healthz count as checks. A check is answered with the next
status of `script` while there is one, then with `status`.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self):
        origin = self.server.origin
        is_check = self.path.startswith("/healthz")
        with origin.lock:
            if is_check:
                origin.checks.append((self.command, self.path, dict(self.headers.items())))
                status = origin.script.pop(0) if origin.script else origin.status
                body = origin.body
            else:
                origin.count += 1
                status = origin.traffic_status
                body = origin.name
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    do_GET = do_HEAD = do_POST = do_OPTIONS = _serve

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass


class Checked:
    def __init__(self, name="origin", port=0, host="127.0.0.1"):
        self.name = name
        self.lock = threading.Lock()
        self.status = 200
        self.script = []
        self.body = "all is well"
        self.traffic_status = 200
        self.checks = []
        self.count = 0
        self._server = _Server((host, port), _Handler)
        self._server.origin = self
        self.port = self._server.server_address[1]
        self.address = f"{host}:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def check_count(self):
        with self.lock:
            return len(self.checks)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
