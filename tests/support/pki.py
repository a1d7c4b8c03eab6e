"""Authorities and certificates for tests, and origins that speak TLS with them."""

import os
import socket
import ssl
import subprocess
import threading
import time

from support.proxy_driver import Script

PAST = ("20200101000000Z", "20200201000000Z")


class Leaf:
    """Paths of a chain and its key."""

    def __init__(self, cert, key):
        self.cert = cert
        self.key = key


class Pki:
    """Certificates made with the openssl command in a folder; each is made once."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.made = {}
        self.serial = 1000

    def _openssl(self, *words):
        done = subprocess.run(("openssl",) + words, cwd=self.folder, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, f"openssl {words[0]}: {done.stderr[-400:]}"

    def _path(self, label, what):
        return os.path.join(self.folder, f"{label}.{what}.pem")

    def _key(self, label, kind="ec"):
        path = self._path(label, "key")
        options = {"ec": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
                   "rsa": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")}[kind]
        self._openssl("genpkey", *options, "-out", path)
        return path

    def authority(self, name="good"):
        label = f"ca-{name}"
        if label not in self.made:
            key = self._key(label)
            cert = self._path(label, "cert")
            self._openssl("req", "-x509", "-new", "-key", key, "-subj", f"/CN=test {name}",
                          "-days", "30", "-out", cert)
            self.made[label] = Leaf(cert, key)
        return self.made[label]

    def leaf(self, *names, ca="good", label=None, kind="ec", span=None, usage="serverAuth"):
        """Signed by an authority; names may be DNS names or IP addresses. span: (from, to)."""
        label = label or f"{ca}-{kind}-{names[0]}".replace("*", "any")
        if label in self.made:
            return self.made[label]
        signer = self.authority(ca)
        key, cert = self._key(label, kind), self._path(label, "cert")
        request, extras = self._path(label, "csr"), self._path(label, "ext")
        self._openssl("req", "-new", "-key", key, "-subj", f"/CN={names[0]}", "-out", request)
        alternatives = [f"IP:{n}" if n.replace(".", "").isdigit() else f"DNS:{n}" for n in names]
        with open(extras, "w", encoding="ascii") as file:
            file.write(f"[leaf]\nsubjectAltName={','.join(alternatives)}\n"
                       f"basicConstraints=CA:FALSE\nextendedKeyUsage={usage}\n")
        self.serial += 1
        if span is None:
            self._openssl("x509", "-req", "-in", request, "-CA", signer.cert, "-CAkey", signer.key,
                          "-set_serial", str(self.serial), "-days", "20", "-extfile", extras,
                          "-extensions", "leaf", "-out", cert)
        else:
            self._dated(request, extras, signer, cert, span)
        self.made[label] = Leaf(cert, key)
        return self.made[label]

    def _dated(self, request, extras, signer, cert, span):
        """Only `openssl ca` takes dates in Debian 12's version."""
        index = os.path.join(self.folder, f"index-{self.serial}")
        config = os.path.join(self.folder, f"ca-{self.serial}.cnf")
        with open(index, "w", encoding="ascii"):
            pass
        with open(config, "w", encoding="ascii") as file:
            file.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={index}\nnew_certs_dir={self.folder}\n"
                       "rand_serial=yes\ndefault_md=sha256\npolicy=p\nunique_subject=no\n"
                       "[p]\ncommonName=supplied\n")
        self._openssl("ca", "-batch", "-notext", "-config", config, "-in", request,
                      "-cert", signer.cert, "-keyfile", signer.key, "-startdate", span[0],
                      "-enddate", span[1], "-extfile", extras, "-extensions", "leaf", "-out", cert)

    def self_signed(self, name):
        label = f"self-{name}"
        if label not in self.made:
            key, cert = self._key(label), self._path(label, "cert")
            self._openssl("req", "-x509", "-new", "-key", key, "-subj", f"/CN={name}", "-days", "9",
                          "-addext", f"subjectAltName=DNS:{name}", "-out", cert)
            self.made[label] = Leaf(cert, key)
        return self.made[label]


def server_context(leaf, version=None, client_ca=None):
    """For an origin. version: the only one; client_ca: it demands a certificate of this one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf.cert, leaf.key)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if client_ca is not None:
        context.load_verify_locations(client_ca.cert)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsScript(Script):
    """A Script whose connections speak TLS. `connections` keeps what each handshake came to:
    (server name, resumed, version, client's certificate), `failed` the errors of others."""

    def __init__(self, context, handler=None, raw_first=None, **options):
        """raw_first(socket): before the handshake, such as to read a PROXY header."""
        self.context = context
        self.raw_first = raw_first
        self.connections = []
        self.failed = []
        self.names = threading.local()
        context.sni_callback = self._on_name
        self.tls_handler = handler or self._serve
        super().__init__(self._secure, **options)

    def _on_name(self, sock, name, context):
        del sock, context
        self.names.value = name

    def _secure(self, wire, number):
        if self.raw_first is not None:
            self.raw_first(wire.sock)
        self.names.value = None
        try:
            wire.sock = self.context.wrap_socket(wire.sock, server_side=True)
        except (ssl.SSLError, OSError) as error:
            self.failed.append(error)
            raise ConnectionError("no handshake") from error
        sock = wire.sock
        self.connections.append((self.names.value, sock.session_reused, sock.version(),
                                 sock.getpeercert()))
        self.tls_handler(wire, number)


def close_notify(wire):
    """End this direction properly; what the other side says to it is not waited for."""
    try:
        wire.sock.settimeout(2)
        wire.sock.unwrap()
    except (ssl.SSLError, OSError):
        pass


_NGINX = """
{user}
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 1024; }}
http {{
    log_format own '$connection $connection_requests $ssl_session_reused $ssl_protocol';
    access_log connections.log own;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
    uwsgi_temp_path tmp; scgi_temp_path tmp;
    client_max_body_size 64m;
    keepalive_requests 1000000;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        ssl_protocols {protocols};
        ssl_session_tickets on;
        ssl_session_cache shared:t:1m;
        root html;
        default_type text/plain;
        location / {{ try_files $uri /index.html =404; }}
    }}
}}
"""


class TlsNginx:
    """A real nginx that speaks TLS; connections() tells of each request by what it came."""

    def __init__(self, folder, leaf, port, files, protocols="TLSv1.2 TLSv1.3"):
        self.folder = os.path.join(str(folder), f"nginx-{port}")
        self.port = port
        self.address = f"127.0.0.1:{port}"
        os.makedirs(os.path.join(self.folder, "html"))
        os.makedirs(os.path.join(self.folder, "tmp"))
        for name, content in files.items():
            with open(os.path.join(self.folder, "html", name), "wb") as file:
                file.write(content)
        user = "user root;" if os.getuid() == 0 else ""
        with open(os.path.join(self.folder, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(_NGINX.format(user=user, port=port, cert=leaf.cert, key=leaf.key,
                                     protocols=protocols))
        with open(os.path.join(self.folder, "error.log"), "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/sbin/nginx", "-p", self.folder, "-e", "error.log", "-c", "nginx.conf"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, self.errors()
                time.sleep(0.02)

    def errors(self):
        with open(os.path.join(self.folder, "error.log"), encoding="utf-8") as file:
            return file.read()

    def connections(self):
        """[(connection, number of the request on it, resumed, protocol)]"""
        with open(os.path.join(self.folder, "connections.log"), encoding="ascii") as file:
            rows = [line.split() for line in file]
        return [(row[0], int(row[1]), row[2] == "r", row[3]) for row in rows]

    def close(self):
        self.process.terminate()
        self.process.wait(10)
