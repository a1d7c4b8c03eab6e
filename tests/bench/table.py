"""The table: kinds of routes, kept and closed connections, 64 and 1,000 of them, 1 kB pages; and the
same with large objects, as CPU per GB."""

import os
from dataclasses import dataclass

import figures
import load
from origin import Origin, make_files
from rounds import run_rounds, verdict
from routers import PASSTHROUGH_NAME, Haproxy, HaproxySplice, Nginx, Plan, Skein
from tlsfiles import SUITE, TlsFiles

HOSTS = 100


@dataclass(frozen=True)
class Cell:
    """mode: a key of Router.ports; goal: the ratio of CPU per request to the better peer."""

    mode: str
    close: bool
    connections: int
    goal: float
    full: bool = False  # every connection is a full handshake; else sessions are resumed
    key: str = "rsa"

    @property
    def name(self):
        if self.full:
            return f"{self.mode}-full-{self.key}-{self.connections}"
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

TLS_CELLS = [
    Cell("edge", False, 64, 0.85),
    Cell("edge", False, 1000, 0.85),
    Cell("edge", True, 64, 0.92),
    Cell("edge", True, 1000, 0.92),
    Cell("edge", True, 64, 0.95, full=True),
    Cell("edge", True, 64, 0.95, full=True, key="p256"),
    Cell("passthrough", False, 64, 1.02),
    Cell("passthrough", False, 1000, 1.02),
    Cell("passthrough", True, 64, 0.95),
    Cell("passthrough", True, 1000, 0.95),
    Cell("reencrypt", False, 64, 0.85),
    Cell("reencrypt", False, 1000, 0.85),
    Cell("reencrypt", True, 64, 0.92),
    Cell("reencrypt", True, 1000, 0.92),
]


def prefix_of(mode):
    """Of the hosts that are served so."""
    return "r" if mode == "reencrypt" else "h"


def base_of(mode):
    """What the URLs of this mode begin with; the host in it is the server name, an address is none."""
    if mode in ("plain", "tcp"):
        return "http://127.0.0.1"
    return f"https://{PASSTHROUGH_NAME}" if mode == "passthrough" else "https://127.0.0.1"


@dataclass(frozen=True)
class Bulk:
    """An object of this size over that kind of route; goal: the ratio of CPU per GB."""

    mode: str
    path: str
    connections: int
    goal: float = 0.90
    suite: str = SUITE

    @property
    def name(self):
        tls = f"-{self.suite[4:11].lower().replace('_', '')}" if self.mode == "edge" else ""
        return f"bulk-{self.mode}-{self.path}{tls}"


TLS_BULK = [Bulk("edge", path, connections, 0.95, suite)
            for suite in (SUITE, "TLS_AES_256_GCM_SHA384")
            for path, connections in (("256k", 16), ("10m", 4))]
BULK = [Bulk(mode, path, connections)
        for mode in ("plain", "tcp") for path, connections in (("8k", 32), ("256k", 16), ("10m", 4))]


class Field:
    """An origin and started routers in front of it; a context."""

    def __init__(self, folder, kinds, bulk=False, hosts=HOSTS, tls=None):
        self.folder = folder
        os.makedirs(folder)
        self.root = make_files(folder)
        self.origin = Origin(folder, "origin", self.root, tls=tls)
        self.routers = []
        plan = Plan(folder, [(load.host(i), [self.origin.address]) for i in range(hosts)],
                    [] if tls else [self.origin.address], bulk, tls, self.origin.tls_address)
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


def measure_full(cell, quick):
    def measure(router):
        answer = load.ab(router.ports[cell.mode], "1k", cell.connections, 600 if quick else 1500,
                         base_of(cell.mode), load.host(0))
        answer["units"] = answer["requests"]
        answer["errors"] = answer["failed"] + answer["non2xx"]
        return answer

    return measure


def measure_wrk(field, cell, quick):
    wrk = load.Wrk(field.folder, "1k", cell.close, HOSTS, prefix_of(cell.mode))
    seconds = 1 if quick or cell.connections < 1000 else 2

    def measure(router):
        answer = wrk.run(router.ports[cell.mode], cell.connections, seconds, base_of(cell.mode))
        answer["units"] = answer["requests"]
        answer["rate"] = answer["requests"] * 1e6 / answer["us"]
        return answer

    return measure


def run_field(out, field, wanted, quick, cells, rows):
    for cell in cells:
        there, missing = field.serving(cell.mode)
        if not comparable(there):
            unavailable(out, cell, missing, rows)
            continue
        measure = measure_full(cell, quick) if cell.full else measure_wrk(field, cell, quick)
        rounds = run_rounds(there, field.origin.pids(), measure, wanted)
        report_cell(out, cell, rounds, rows, missing)


def run_cells(out, folder, wanted, quick, cells):
    rows = []
    with Field(folder, (Skein, Haproxy, Nginx)) as field:
        run_field(out, field, wanted, quick, cells, rows)
    section_cells(out, "Table", rows)
    return rows


def run_tls(out, folder, wanted, quick, cells):
    """The same with TLS 1.3, one suite and one curve for all."""
    rows = []
    for key in ("rsa", "p256"):
        chosen = [cell for cell in cells if cell.key == key]
        if chosen:
            tls = TlsFiles(f"{folder}-files-{key}", key)
            with Field(f"{folder}-{key}", (Skein, Haproxy, Nginx), tls=tls) as field:
                run_field(out, field, wanted, quick, chosen, rows)
    section_cells(out, f"TLS 1.3, {SUITE}, X25519, RSA 2048 (p256: P-256); close: resumed", rows)
    return rows


def section_cells(out, title, rows):
    out.section(f"{title}: medians over rounds; ratio = CPU per request of Skein / better peer of a round",
                ["cell", "ratio [quartiles]", "goal", "verdict", "us skein", "us haproxy",
                 "us nginx", "errors", "rounds", "rejected"], rows)


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


def run_bulk_field(out, field, wanted, quick, cells, rows):
    seconds = 1 if quick else 2
    for cell in cells:
        there, missing = field.serving(cell.mode)
        if not comparable(there):
            unavailable(out, cell, missing, rows)
            continue
        wrk = load.Wrk(field.folder, cell.path, False, 1)

        def measure(router, cell=cell, wrk=wrk):
            answer = wrk.run(router.ports[cell.mode], cell.connections, seconds, base_of(cell.mode))
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


def run_bulk(out, folder, wanted, quick, cells):
    rows = []
    plain = [cell for cell in cells if cell.mode != "edge"]
    if plain:
        kinds = (Skein, Haproxy, HaproxySplice, Nginx)
        with Field(folder, kinds, bulk=True, hosts=1) as field:
            run_bulk_field(out, field, wanted, quick, plain, rows)
    for suite in sorted({cell.suite for cell in cells if cell.mode == "edge"}):
        tls = TlsFiles(f"{folder}-files-{suite}", suite=suite)
        kinds = (Skein, Haproxy, HaproxySplice, Nginx)
        with Field(f"{folder}-{suite}", kinds, bulk=True, hosts=1, tls=tls) as field:
            chosen = [cell for cell in cells if cell.mode == "edge" and cell.suite == suite]
            run_bulk_field(out, field, wanted, quick, chosen, rows)
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
