"""The table: kinds of routes, kept and closed connections, 64 and 1,000 of them, 1 kB pages; and the
same with large objects, as CPU per GB."""

import os
from dataclasses import dataclass

import figures
import load
from origin import Origin, make_files
from rounds import run_rounds, verdict
from routers import Haproxy, HaproxySplice, Nginx, Plan, Skein

HOSTS = 100


@dataclass(frozen=True)
class Cell:
    """mode: a key of Router.ports; goal: the ratio of CPU per request to the better peer."""

    mode: str
    close: bool
    connections: int
    goal: float

    @property
    def name(self):
        return f"{self.mode}-{'close' if self.close else 'keepalive'}-{self.connections}"


CELLS = [
    Cell("plain", False, 64, 0.90),
    Cell("plain", False, 1000, 0.90),
    Cell("plain", True, 64, 0.92),
    Cell("plain", True, 1000, 0.92),
    Cell("tcp", False, 64, 1.02),
    Cell("tcp", False, 1000, 1.02),
    Cell("tcp", True, 64, 0.95),
    Cell("tcp", True, 1000, 0.95),
]


@dataclass(frozen=True)
class Bulk:
    """An object of this size over that kind of route; goal: the ratio of CPU per GB."""

    mode: str
    path: str
    connections: int
    goal: float = 0.90

    @property
    def name(self):
        return f"bulk-{self.mode}-{self.path}"


BULK = [Bulk(mode, path, connections)
        for mode in ("plain", "tcp") for path, connections in (("8k", 32), ("256k", 16), ("10m", 4))]


class Field:
    """An origin and started routers in front of it; a context."""

    def __init__(self, folder, kinds, bulk=False, hosts=HOSTS):
        self.folder = folder
        os.makedirs(folder)
        self.root = make_files(folder)
        self.origin = Origin(folder, "origin", self.root)
        self.routers = []
        plan = Plan(folder, [(load.host(i), [self.origin.address]) for i in range(hosts)],
                    [self.origin.address], bulk)
        try:
            for kind in kinds:
                self.routers.append(kind(plan))
                self.routers[-1].start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for router in self.routers:
            router.stop()
        self.origin.stop()

    def serving(self, mode):
        """(routers with that mode, why others are left out)."""
        there = [router for router in self.routers if mode in router.ports]
        missing = [f"{router.name}: {router.reasons.get(mode, 'not available')}"
                   for router in self.routers if mode not in router.ports]
        return there, missing


def comparable(there):
    return len(there) >= 2 and any(router.name == "skein" for router in there)


def unavailable(out, cell, missing, rows):
    out.note(f"{cell.name}: not available: {'; '.join(missing)}")
    rows.append([cell.name, "-", f"{cell.goal:.2f}", "not available"])


def run_cells(out, folder, wanted, quick, cells):
    rows = []
    with Field(folder, (Skein, Haproxy, Nginx)) as field:
        for cell in cells:
            there, missing = field.serving(cell.mode)
            if not comparable(there):
                unavailable(out, cell, missing, rows)
                continue
            wrk = load.Wrk(field.folder, "1k", cell.close, HOSTS)
            seconds = 1 if quick or cell.connections < 1000 else 2

            def measure(router):
                answer = wrk.run(router.ports[cell.mode], cell.connections, seconds)
                answer["units"] = answer["requests"]
                answer["rate"] = answer["requests"] * 1e6 / answer["us"]
                return answer

            rounds = run_rounds(there, field.origin.pids(), measure, wanted)
            report_cell(out, cell, rounds, rows, missing)
    out.section("Table: medians over rounds; ratio = CPU per request of Skein / better peer of a round",
                ["cell", "ratio [quartiles]", "goal", "verdict", "us skein", "us haproxy",
                 "us nginx", "errors", "rounds", "rejected"], rows)
    return rows


def report_cell(out, cell, rounds, rows, missing):
    ratios = rounds.ratios()
    noisy = " (noisy)" if rounds.noisy else ""
    detail = []
    for name in rounds.names:
        detail.append([name, f"{rounds.median(name, 'cost') / 1000:.2f}",
                       f"{rounds.median(name, 'rate'):.0f}",
                       f"{rounds.median(name, 'p50') / 1000:.2f}",
                       f"{rounds.median(name, 'p99') / 1000:.2f}", rounds.total(name, "errors")])
    out.detail(f"{cell.name}{noisy}", ["router", "CPU us/request", "requests/s", "p50 ms", "p99 ms",
                                       "errors"], detail)
    for line in missing:
        out.note(f"{cell.name}: not compared with {line}")
    costs = {name: f"{rounds.median(name, 'cost') / 1000:.2f}" for name in rounds.names}
    rows.append([cell.name, figures.spread(ratios), f"{cell.goal:.2f}",
                 verdict(figures.median(ratios), cell.goal) + noisy,
                 costs.get("skein", "-"), costs.get("haproxy", "-"), costs.get("nginx", "-"),
                 rounds.total("skein", "errors"), rounds.count(), len(rounds.rejected)])
    out.data(cell.name, {"ratios": ratios, "goal": cell.goal, "noisy": rounds.noisy,
                         "rejected": rounds.rejected, "runs": rounds.runs})


def run_bulk(out, folder, wanted, quick, cells):
    rows = []
    seconds = 1 if quick else 2
    with Field(folder, (Skein, Haproxy, HaproxySplice, Nginx), bulk=True, hosts=1) as field:
        for cell in cells:
            there, missing = field.serving(cell.mode)
            if not comparable(there):
                unavailable(out, cell, missing, rows)
                continue
            wrk = load.Wrk(field.folder, cell.path, False, 1)

            def measure(router):
                answer = wrk.run(router.ports[cell.mode], cell.connections, seconds)
                answer["units"] = answer["bytes"] / 1e9
                answer["rate"] = answer["bytes"] * 1e6 / answer["us"] / 1e6
                return answer

            rounds = run_rounds(there, field.origin.pids(), measure, wanted)
            ratios = rounds.ratios()
            noisy = " (noisy)" if rounds.noisy else ""
            costs = {name: f"{rounds.median(name, 'cost') / 1e6:.0f}" for name in rounds.names}
            rates = {name: f"{rounds.median(name, 'rate'):.0f}" for name in rounds.names}
            rows.append([cell.name, figures.spread(ratios), f"{cell.goal:.2f}",
                         verdict(figures.median(ratios), cell.goal) + noisy,
                         *(f"{costs.get(router.name, '-')} ({rates.get(router.name, '-')})"
                           for router in field.routers),
                         rounds.total("skein", "errors"), rounds.count(), len(rounds.rejected)])
            out.data(cell.name, {"ratios": ratios, "goal": cell.goal, "noisy": rounds.noisy,
                                 "rejected": rounds.rejected, "runs": rounds.runs})
            out.progress(rows[-1])
    out.section("Bulk: CPU ms per GB (MB/s); ratio to the better peer of a round",
                ["cell", "ratio [quartiles]", "goal", "verdict", "skein", "haproxy",
                 "haproxy+splice", "nginx", "errors", "rounds", "rejected"], rows)
    return rows


def run_ab(out, folder, wanted, quick):
    """The oldest test of the field: a page over a TCP port, two endpoints on other addresses."""
    connections, requests = 1000, 10000 if quick else 50000
    os.makedirs(folder)
    root = make_files(folder)
    origin = Origin(folder, "origin", root, hosts=("127.0.0.2", "127.0.0.3"))
    plan = Plan(folder, [(load.host(0), origin.addresses)], origin.addresses)
    routers, rows = [], []
    try:
        for kind in (Skein, Haproxy, Nginx):
            routers.append(kind(plan).start())
        there = [router for router in routers if "tcp" in router.ports]
        for router in routers:
            if router not in there:
                out.note(f"ab: no {router.name}: {router.reasons.get('tcp', '?')}")
                rows.append([router.name, "not available"])

        def measure(router):
            answer = load.ab(router.ports["tcp"], "page", connections, requests)
            answer["units"] = answer["requests"]
            return answer

        rounds = run_rounds(there, origin.pids(), measure, wanted)
        for router in there:
            name = router.name
            rows.append([name, rounds.total(name, "failed") + rounds.total(name, "non2xx"),
                         f"{rounds.median(name, 'rate'):.0f}", f"{rounds.median(name, 'p50'):.0f}",
                         f"{rounds.median(name, 'p99'):.0f}", f"{rounds.median(name, 'max'):.0f}",
                         f"{rounds.median(name, 'cost') / 1000:.1f}", rounds.count(),
                         len(rounds.rejected)])
        out.data("ab", rounds.runs)
    finally:
        for router in routers:
            router.stop()
        origin.stop()
    out.section(f"ab -r -c {connections} -n {requests}, page of 6,459 bytes over a TCP port, two endpoints",
                ["router", "failed", "requests/s", "50 % ms", "99 % ms", "longest ms",
                 "CPU us/request", "rounds", "rejected"], rows)
    return rows
