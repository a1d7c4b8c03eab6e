"""Load generators: wrk and ab, as processes on the CPU of the clients, and what they say."""

import json
import os
import re
import resource
import subprocess
import time

import machine

_SCRIPT = """
local count, path, close = %d, "%s", %s
local requests, at = {}, 0
function init(args)
    for i = 1, count do
        local headers = {["Host"] = "%s" .. (i - 1) .. ".bench.test"}
        if close then headers["Connection"] = "close" end
        requests[i] = wrk.format("GET", path, headers)
    end
end
function request()
    at = at %% count + 1
    return requests[at]
end
function done(summary, latency, _)
    local e = summary.errors
    io.write(string.format('RESULT {"requests": %%d, "bytes": %%d, "us": %%d, "p50": %%.0f, ' ..
        '"p99": %%.0f, "connect": %%d, "read": %%d, "write": %%d, "status": %%d, "timeout": %%d}\\n',
        summary.requests, summary.bytes, summary.duration, latency:percentile(50),
        latency:percentile(99), e.connect, e.read, e.write, e.status, e.timeout))
end
"""

ERRORS = ("connect", "read", "write", "status", "timeout")


def host(number, prefix="h"):
    return f"{prefix}{number}.bench.test"


def children_ns():
    """CPU time of the harness itself and of what it has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((usage.ru_utime + usage.ru_stime) * 1e9)


class Wrk:
    """A wrk command for one kind of request; run() is one run of it."""

    def __init__(self, folder, path="1k", close=False, hosts=100, prefix="h"):
        self.script = os.path.join(folder, f"wrk-{prefix}-{path}-{'close' if close else 'keep'}.lua")
        with open(self.script, "w", encoding="ascii") as file:
            file.write(_SCRIPT % (hosts, "/" + path, "true" if close else "false", prefix))

    def run(self, port, connections, seconds, base="http://127.0.0.1"):
        """base: with https the host in it is the server name that is sent."""
        with machine.pinned(machine.REST_CPUS):
            result = subprocess.run(
                ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s",
                 "--timeout", "20s", "-s", self.script, f"{base}:{port}"],
                capture_output=True, text=True, timeout=seconds + 60, check=False,
            )
        match = re.search(r"^RESULT (.*)$", result.stdout, re.M)
        if result.returncode != 0 or not match:
            raise RuntimeError(f"wrk: {result.stdout}{result.stderr}")
        answer = json.loads(match.group(1))
        answer["errors"] = sum(answer[name] for name in ERRORS)
        return answer


def ab(port, path, connections, requests, base="http://127.0.0.1", host_header=None):
    """ab's own words, as numbers. Over https every connection is a full handshake."""
    extra = ["-H", f"Host: {host_header}"] if host_header else []
    with machine.pinned(machine.REST_CPUS):
        result = subprocess.run(
            ["ab", "-q", "-r", "-c", str(connections), "-n", str(requests), *extra,
             f"{base}:{port}/{path}"],
            capture_output=True, text=True, timeout=300, check=False,
        )

    def number(pattern):
        match = re.search(pattern, result.stdout, re.M)
        return float(match.group(1)) if match else None

    rate = number(r"^Requests per second:\s+([\d.]+)")
    if rate is None:
        raise RuntimeError(f"ab: {result.stdout[-2000:]}{result.stderr[-2000:]}")
    return {
        "requests": int(number(r"^Complete requests:\s+(\d+)")),
        "failed": int(number(r"^Failed requests:\s+(\d+)")),
        "non2xx": int(number(r"^Non-2xx responses:\s+(\d+)") or 0),
        "rate": rate,
        "p50": number(r"^\s+50%\s+(\d+)"),
        "p99": number(r"^\s+99%\s+(\d+)"),
        "max": number(r"^\s+100%\s+(\d+)"),
    }
