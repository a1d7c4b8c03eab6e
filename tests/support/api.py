"""The admin API of one node, as the tests speak it."""

import json
import re

from support import client
from support.wait import until


class ApiError(AssertionError):
    """A status that the test did not ask for."""


class Api:
    def __init__(self, port):
        self.port = port

    def call(self, method, path, body=None, headers=None, timeout=20.0, expect=None):
        """body: bytes or text as they are, anything else as JSON. expect: status or statuses."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        if isinstance(body, str):
            body = body.encode()
        answer = client.request(self.port, method, path, body, headers, timeout)
        if expect is not None:
            wanted = expect if isinstance(expect, (tuple, list, set)) else (expect,)
            if answer.status not in wanted:
                raise ApiError(f"{method} {path}: wanted {wanted}, got {answer}")
        return answer

    @staticmethod
    def path(kind, name=None, namespace="default"):
        """Path of a kind's objects ("routes"), or of one of them."""
        if name is None:
            return f"/v1/{kind}"
        if kind in _CLUSTER_WIDE:
            return f"/v1/{kind}/{name}"
        return f"/v1/namespaces/{namespace}/{kind}/{name}"

    def get(self, kind, name, namespace="default"):
        return self.call("GET", self.path(kind, name, namespace), expect=200).json()

    def list(self, kind, query=""):
        return self.call("GET", f"/v1/{kind}{query}", expect=200).json()["items"]

    def put(self, kind, name, spec, namespace="default", labels=None, headers=None, expect=(200, 201)):
        metadata = {"name": name}
        if kind not in _CLUSTER_WIDE:
            metadata["namespace"] = namespace
        if labels:
            metadata["labels"] = labels
        body = {"kind": _KINDS[kind], "metadata": metadata, "spec": spec}
        return self.call("PUT", self.path(kind, name, namespace), body, headers, expect=expect)

    def delete(self, kind, name, namespace="default", expect=(200, 204)):
        return self.call("DELETE", self.path(kind, name, namespace), expect=expect)

    def apply(self, manifest, query="", expect=200, headers=None):
        return self.call("POST", f"/v1/apply{query}", manifest, headers, expect=expect)

    def cluster(self):
        return self.call("GET", "/v1/cluster", expect=200).json()

    def metrics(self):
        """{"name{label="x"}": value}"""
        text = self.call("GET", "/metrics", expect=200).text
        samples = {}
        for line in text.splitlines():
            match = re.fullmatch(r"([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)", line)
            if match:
                samples[match.group(1)] = float(match.group(2))
        return samples

    def metric(self, name):
        """The sum over all label sets of a metric."""
        return sum(
            value for key, value in self.metrics().items() if key.partition("{")[0] == name
        )

    def is_ready(self):
        return self.call("GET", "/readyz").status == 200

    def wait_ready(self, timeout=30.0):
        until(self.is_ready, f"node with admin port {self.port} is ready", timeout)


_CLUSTER_WIDE = ("namespaces", "settings", "nodes")
_KINDS = {
    "namespaces": "Namespace",
    "routes": "Route",
    "backends": "Backend",
    "endpoints": "Endpoint",
    "settings": "Settings",
    "tcproutes": "TcpRoute",
    "nodes": "Node",
}


def route(name, host, *targets, namespace="default", path=None, **spec):
    """A Route object. A target is a backend's name or (name, weight)."""
    to = [{"backend": t} if isinstance(t, str) else {"backend": t[0], "weight": t[1]} for t in targets]
    body = {"host": host, "to": to, **spec}
    if path is not None:
        body["path"] = path
    return {"kind": "Route", "metadata": {"namespace": namespace, "name": name}, "spec": body}


def tcp_route(name, port, *targets, namespace="default", **spec):
    """A TcpRoute object. A target is a backend's name or (name, weight)."""
    to = [{"backend": t} if isinstance(t, str) else {"backend": t[0], "weight": t[1]} for t in targets]
    return {"kind": "TcpRoute", "metadata": {"namespace": namespace, "name": name},
            "spec": {"port": port, "to": to, **spec}}


def backend(name, *addresses, namespace="default", **spec):
    """A Backend object with its endpoints."""
    body = {"endpoints": [{"address": address} for address in addresses], **spec}
    return {"kind": "Backend", "metadata": {"namespace": namespace, "name": name}, "spec": body}


def documents(*objects):
    """One manifest of several objects: JSON is YAML."""
    return "\n---\n".join(json.dumps(item) for item in objects)
