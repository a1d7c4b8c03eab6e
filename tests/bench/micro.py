"""Costs without traffic: finding the rule for a request, changing an endpoint among many routes."""

import json
import os
import subprocess

import machine
from support.cluster import BIN

LOOKUP_MAX_NS = 300
CHANGE_MAX_MS = 1.0


def program(name, *args):
    with machine.pinned(machine.ROUTER_CPUS):
        run = subprocess.run([os.path.join(BIN, "bench", name), *args], capture_output=True,
                             text=True, timeout=300, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{name}: {run.stdout}{run.stderr}")
    return json.loads(run.stdout)


def run_micro(out, quick):
    rows = []
    for hosts in (10, 10_000, 100_000):
        answer = program("lookup_bench", str(hosts))
        worst = answer["random_ns"]
        rows.append([hosts, f"{worst:.0f}", f"{answer['random_best_ns']:.0f}",
                     f"{answer['same_ns']:.0f}",
                     "reached" if worst <= LOOKUP_MAX_NS else "NOT REACHED"])
        out.data(f"lookup-{hosts}", answer)
    out.section("Look-up of a rule, ns: canonical host and path, host, rule (one thread, alone on its CPU)",
                ["hosts", "random hosts", "best of 9", "one host", f"<= {LOOKUP_MAX_NS}"], rows)
    rows = []
    for routes in (100, 20_000 if quick else 100_000):
        # All threads of this program on one CPU would measure the scheduler.
        with machine.pinned(machine.ALL_CPUS):
            answer = json.loads(subprocess.run(
                [os.path.join(BIN, "bench", "change_bench"), str(routes)], capture_output=True,
                text=True, timeout=300, check=True).stdout)
        rows.append([routes, f"{answer['plane_median_ms']:.4f}", f"{answer['plane_p99_ms']:.4f}",
                     f"{answer['plane_worst_ms']:.4f}", f"{answer['table_median_ms']:.4f}",
                     "reached" if answer["plane_p99_ms"] <= CHANGE_MAX_MS else "NOT REACHED"])
        out.data(f"change-{routes}", answer)
    out.section("One change of an endpoint, ms: from the table of objects to every worker (500 changes)",
                ["routes", "median", "99 %", "worst", "table, median", f"99 % <= {CHANGE_MAX_MS:.0f}"],
                rows)
    return rows
