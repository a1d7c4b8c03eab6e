"""Rounds: every router once, within seconds, in an order that rotates; and what they add up to.

A machine's speed drifts by half within minutes, so only runs that stand side by side are compared:
each round gives the ratio of Skein's cost to that of the better peer in the same round, and the
result is the median of these ratios with its quartiles. A round in which the host stole time or
others used the machine is rejected and repeated, up to a limit.
"""

import time

import figures
import load
import machine

STEAL_MAX = 0.01
FOREIGN_MAX = 0.08
SETTLE_SECONDS = 0.03  # for the ends of connections, before the clock of the router is read


class Rounds:
    """Results of one cell: runs[name] is a list of dicts, one for each accepted round."""

    def __init__(self, names):
        self.names = names
        self.runs = {name: [] for name in names}
        self.rejected = []  # (stolen, foreign)
        self.noisy = False  # too many were rejected, so the rejected ones count as well
        self.kept = {name: [] for name in names}

    def add(self, results, stolen, foreign):
        for name in self.names:
            self.kept[name].append(results[name])
        if stolen > STEAL_MAX or foreign > FOREIGN_MAX:
            self.rejected.append((stolen, foreign))
            return
        for name in self.names:
            self.runs[name].append(results[name])

    def count(self):
        return len(self.runs[self.names[0]])

    def finish(self, wanted):
        if self.count() < max(3, wanted // 2):
            self.noisy = True
            self.runs = self.kept

    def median(self, name, key):
        return figures.median([run[key] for run in self.runs[name]])

    def total(self, name, key):
        return sum(run[key] for run in self.runs[name])

    def ratios(self, key="cost", subject="skein"):
        """Per round: the subject's value over the smallest of its peers."""
        peers = [name for name in self.names if name != subject]
        return [run[key] / min(self.runs[peer][i][key] for peer in peers)
                for i, run in enumerate(self.runs[subject])]


def run_rounds(routers, origin_pids, measure, wanted):
    """measure(router) runs the load once and gives a dict with "units" (what cost is divided by).

    Adds "cost": nanoseconds of the router's CPU per unit.
    """
    def ours():
        pids = list(origin_pids)
        for router in routers:
            pids += router.pids()
        return machine.cpu_ns(pids) + load.children_ns()

    for router in routers:  # warm: pools filled, code and files in memory
        measure(router)
    rounds = Rounds([router.name for router in routers])
    attempts = 0
    while rounds.count() < wanted and attempts < wanted * 2:
        order = [routers[(attempts + i) % len(routers)] for i in range(len(routers))]
        window = machine.Window(ours)
        results = {}
        for router in order:
            before = machine.cpu_ns(router.pids())
            result = measure(router)
            time.sleep(SETTLE_SECONDS)
            spent = machine.cpu_ns(router.pids()) - before
            result["cost"] = spent / result["units"] if result["units"] > 0 else float("inf")
            results[router.name] = result
        rounds.add(results, *window.end())
        attempts += 1
    rounds.finish(wanted)
    return rounds


def verdict(ratio, goal):
    if goal is None:
        return ""
    return "reached" if ratio <= goal else "NOT REACHED"
