"""Certificates for a measurement: an authority, the routers' certificate and the origin's."""

import os
import subprocess
from dataclasses import dataclass

# The same for all routers and the origin; wrk and ab take what the server prefers.
VERSION = "1.3"
SUITE = "TLS_AES_128_GCM_SHA256"
GROUP = "X25519"

KEYS = {
    "rsa": ["-newkey", "rsa:2048"],
    "p256": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
}


@dataclass
class TlsFiles:
    """Paths. cert and key are the routers', bundle is both in one file."""

    folder: str
    kind: str = "rsa"
    suite: str = SUITE

    def __post_init__(self):
        os.makedirs(self.folder)
        self.ca = self.path("ca.pem")
        self.run("req", "-x509", *KEYS["rsa"], "-nodes", "-days", "30", "-subj", "/CN=bench ca",
                 "-keyout", self.path("ca.key"), "-out", self.ca)
        self.cert, self.key = self.make("router", self.kind, "*.bench.test")
        self.origin_cert, self.origin_key = self.make("origin", "rsa", "origin.test", "localhost")
        self.bundle = self.path("router.bundle")
        with open(self.bundle, "w", encoding="ascii") as file:
            file.write(self.text(self.cert) + self.text(self.key))

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def text(path):
        with open(path, encoding="ascii") as file:
            return file.read()

    @staticmethod
    def run(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    def make(self, name, kind, *hosts):
        cert, key, request = (self.path(f"{name}.{end}") for end in ("pem", "key", "csr"))
        names = self.path(f"{name}.ext")
        with open(names, "w", encoding="ascii") as file:
            file.write("subjectAltName=" + ",".join(f"DNS:{host}" for host in hosts) + "\n")
        self.run("req", *KEYS[kind], "-nodes", "-subj", f"/CN={hosts[0]}", "-keyout", key,
                 "-out", request)
        self.run("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca.key"),
                 "-CAcreateserial", "-days", "30", "-extfile", names, "-out", cert)
        return cert, key
