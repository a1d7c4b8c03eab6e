"""User-space memory of a router for each client connection: idle after an answer, and busy (its request
at an endpoint that does not answer). Resident bytes before and after some thousand connections."""

import os
import selectors
import socket
import ssl
import threading
import time

import load
import machine
from routers import Haproxy, Nginx, Plan, Skein
from tlsfiles import TlsFiles
from support.wait import until

IDLE_MAX_BYTES = 700
TLS_IDLE_MAX_BYTES = 15000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Holder(threading.Thread):
    """An origin that answers /now, and holds every other request for ever."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.listener.setblocking(False)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.held = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.stopping = False
        self.start()

    def run(self):
        while not self.stopping:
            for key, _ in self.selector.select(0.2):
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.read(key.fileobj)

    def accept(self):
        try:
            while True:
                sock, _ = self.listener.accept()
                sock.setblocking(False)
                self.selector.register(sock, selectors.EVENT_READ)
        except BlockingIOError:
            pass

    def read(self, sock):
        try:
            data = sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.selector.unregister(sock)
            sock.close()
        elif data.startswith(b"GET /now "):
            sock.sendall(ANSWER)
        else:
            self.held += 1

    def close(self):
        self.stopping = True
        self.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def request(path):
    return f"GET /{path} HTTP/1.1\r\nHost: {load.host(0)}\r\n\r\n".encode()


def exchange(sock):
    sock.sendall(request("now"))
    data = b""
    while not data.endswith(b"ok"):
        part = sock.recv(65536)
        if not part:
            raise RuntimeError(f"the router closed after {data!r}")
        data += part


def tls_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


TLS = tls_context()


def dial(port, mode):
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    return TLS.wrap_socket(sock, server_hostname=load.host(0)) if mode == "edge" else sock


def settled(pids):
    """Resident bytes once they stand still."""
    last = machine.rss_bytes(pids)
    while True:
        time.sleep(0.3)
        now = machine.rss_bytes(pids)
        if abs(now - last) <= 8192:
            return now
        last = now


def measure(router, mode, holder, count, busy):
    """Bytes per connection."""
    port = router.ports[mode]
    socks = [dial(port, mode) for _ in range(100)]  # warm: pools, tables and code
    for sock in socks:
        exchange(sock)
    before = settled(router.pids())
    held = holder.held
    try:
        for _ in range(count):
            sock = dial(port, mode)
            socks.append(sock)
            if busy:
                sock.sendall(request("hold"))
            else:
                exchange(sock)
        if busy:
            until(lambda: holder.held >= held + count, "all requests are at the endpoint", 60)
        return (settled(router.pids()) - before) / count
    finally:
        for sock in socks:
            sock.close()


def run_memory(out, folder, quick):
    count = 2000 if quick else 4000
    rows = []
    os.makedirs(folder)
    cells = [("plain", False, "idle"), ("plain", True, "busy"), ("tcp", False, "tcp idle"),
             ("edge", False, "edge idle"), ("edge", True, "edge busy")]
    tls = TlsFiles(f"{folder}/files")
    for kind in (Skein, Haproxy, Nginx):
        values = {}
        for mode, busy, name in cells:
            holder = Holder()
            router = kind(Plan(f"{folder}/{name.replace(' ', '-')}",
                               [(load.host(0), [holder.address])],
                               [] if mode == "edge" else [holder.address],
                               tls=tls if mode == "edge" else None,
                               tls_endpoint=holder.address))
            try:
                router.start()
                if mode in router.ports:
                    values[name] = measure(router, mode, holder, count, busy)
                else:
                    out.note(f"memory: no {name} of {router.name}: {router.reasons.get(mode)}")
            finally:
                router.stop()
                holder.close()
        good = "reached" if values["idle"] <= IDLE_MAX_BYTES else "NOT REACHED"
        tls_good = "reached" if values.get("edge idle", 1e9) <= TLS_IDLE_MAX_BYTES else "NOT REACHED"
        rows.append([kind.name, *(f"{values[name]:.0f}" if name in values else "-"
                                  for _, _, name in cells),
                     *([good, tls_good] if kind is Skein else ["", ""])])
        out.data(f"memory-{kind.name}", values)
    out.section(f"Memory: resident bytes of the router per client connection, {count} connections",
                ["router", "plain idle", "plain busy", "tcp idle (both sides)",
                 "edge idle", "edge busy", f"idle <= {IDLE_MAX_BYTES}",
                 f"edge idle <= {TLS_IDLE_MAX_BYTES}"], rows)
    return rows
