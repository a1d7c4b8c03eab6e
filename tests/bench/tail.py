"""The slowest answers while endpoints come and go: a constant rate from an open-loop client, a backend
that scales from four endpoints to two and back, and endpoints that are killed the moment they leave
the configuration. Skein is told through its admin API; the peers get their file rewritten and are
reloaded."""

import json
import os
import subprocess
import threading
import time

import load
import machine
from origin import Origin, make_files
from routers import Direct, Haproxy, Nginx, Plan, Skein
from support.cluster import BIN

RATE, CONNECTIONS = 1000, 50
P9999_MAX_MS = 20.0


def start_client(port, seconds):
    with machine.pinned(machine.REST_CPUS):
        return subprocess.Popen(
            [os.path.join(BIN, "bench", "paced"), "--connect", f"127.0.0.1:{port}", "--host",
             load.host(0), "--path", "/1k", "--rate", str(RATE), "--connections",
             str(CONNECTIONS), "--seconds", str(seconds)],
            stdout=subprocess.PIPE, text=True,
        )


class Scaling(threading.Thread):
    """Takes half of the endpoints away and brings them back, at planned moments."""

    def __init__(self, origins, change, period, seconds):
        super().__init__(daemon=True)
        self.origins = origins
        self.change = change
        self.period = period
        self.seconds = seconds
        self.moments = []  # (seconds since the start, what, how long the change took in ms)
        self.fault = None

    def run(self):
        try:
            self.scale()
        except Exception as fault:  # told by the main thread
            self.fault = fault

    def scale(self):
        start = time.monotonic()
        leaving = self.origins[len(self.origins) // 2:]
        for turn in range(1, int(self.seconds / self.period)):
            time.sleep(max(0.0, start + turn * self.period - time.monotonic()))
            down = turn % 2 == 1
            if not down:
                for origin in leaving:
                    origin.start()
            begun = time.monotonic()
            there = self.origins[:len(self.origins) // 2] if down else self.origins
            self.change([origin.address for origin in there])
            took = (time.monotonic() - begun) * 1000
            if down:
                for origin in leaving:
                    origin.kill()
            self.moments.append((round(begun - start, 3), "4 to 2" if down else "2 to 4",
                                 round(took, 2)))


def reloading(router):
    def change(addresses):
        router.plan.hosts[0] = (load.host(0), addresses)
        router.reload()
    return change


def run_one(kind, folder, seconds, period):
    """(answer of the client, moments, steal and foreign load)."""
    os.makedirs(folder)
    root = make_files(folder)
    origins = [Origin(folder, f"origin{i}", root) for i in range(4)]
    router = None
    try:
        addresses = [origin.address for origin in origins]
        if kind is Direct:
            router, scaling = Direct(addresses[0]).start(), None
        else:
            router = kind(Plan(folder, [(load.host(0), addresses)])).start()
            change = (lambda to: router.set_endpoints(0, to)) if kind is Skein else reloading(router)
            scaling = Scaling(origins, change, period, seconds)

        def ours():
            return machine.cpu_ns(router.pids() + [pid for origin in origins
                                                   for pid in origin.pids()]) + load.children_ns()

        for client in (start_client(router.ports["plain"], 1), None):  # warm
            if client is not None:
                client.communicate(timeout=60)
        window = machine.Window(ours)
        client = start_client(router.ports["plain"], seconds)
        if scaling is not None:
            scaling.start()
        text, _ = client.communicate(timeout=seconds + 60)
        noise = window.end()
        if scaling is not None:
            scaling.join()
            if scaling.fault is not None:
                raise scaling.fault
        return json.loads(text), scaling.moments if scaling else [], noise
    finally:
        if router is not None:
            router.stop()
        for origin in origins:
            origin.stop()


def run_tail(out, folder, quick, peers):
    seconds, period = (12, 2) if quick else (60, 10)
    rows = []
    kinds = (Direct, Skein) + ((Haproxy, Nginx) if peers else ())
    os.makedirs(folder)
    for kind in kinds:
        answer, moments, noise = run_one(kind, f"{folder}/{kind.name}", seconds, period)
        good = answer["errors"] == 0 and answer["p99.99"] < P9999_MAX_MS
        word = ("reached" if good else "NOT REACHED") if kind is Skein else ""
        faults = ", ".join(f"{name} {count}" for name, count in answer["faults"].items())
        rows.append([kind.name, answer["answered"], answer["errors"],
                     *(f"{answer[key]:.2f}" for key in ("p50", "p99", "p99.9", "p99.99", "max")),
                     f"{noise[0] * 100:.1f} / {noise[1] * 100:.0f}", word, faults])
        slow = ", ".join(f"{took:.1f} ms at {at:.2f} s" for at, took in answer["worst"][:5])
        out.note(f"tail {kind.name}: slowest {slow}")
        if moments:
            out.note("  changes at " + ", ".join(f"{at:.2f} s ({what}, {took:.1f} ms)"
                                                 for at, what, took in moments))
        out.data(f"tail-{kind.name}", {"answer": answer, "moments": moments, "noise": noise})
    out.section(f"Tail: {RATE} requests/s on {CONNECTIONS} connections for {seconds} s, 4 to 2 to 4 "
                f"endpoints every {period} s; ms from the planned instant; direct: no router, no changes",
                ["router", "answered", "errors", "p50", "p99", "p99.9", "p99.99", "max",
                 "steal / foreign %", "no error, p99.99 < 20", "faults"], rows)
    return rows
