#!/usr/bin/python3
"""Skein beside HAProxy and nginx on this machine: see README.md.

    tests/bench/run.py                      everything, about 45 minutes
    tests/bench/run.py --quick              everything briefly, to see that it works
    tests/bench/run.py --cells plain,tcp    cells whose names contain one of these words
    tests/bench/run.py --only table,bulk    sections

SKEIN_BIN is the build folder (build/release). Needs wrk, ab, haproxy, nginx with its stream module.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import figures  # noqa: E402
import machine  # noqa: E402
import memory  # noqa: E402
import micro  # noqa: E402
import routers  # noqa: E402
import table  # noqa: E402
import tail  # noqa: E402
from support.cluster import BIN  # noqa: E402

SECTIONS = ("table", "tls", "bulk", "ab", "memory", "tail", "micro")
TOOLS = {"wrk": "wrk", "ab": "apache2-utils", "haproxy": "haproxy", "nginx": "nginx"}


class Out:
    """Text for people as it comes, and all numbers for a file."""

    def __init__(self, path):
        self.path = path
        self.numbers = {}
        self.tables = []

    def say(self, text=""):
        print(text, flush=True)

    def detail(self, title, headers, rows):
        self.say(f"\n{title}\n{figures.table(headers, rows)}")

    def note(self, text):
        self.say(text)

    def progress(self, row):
        self.say("  " + "  ".join(str(cell) for cell in row))

    def section(self, title, headers, rows):
        full = [row + [""] * (len(headers) - len(row)) for row in rows]
        text = f"\n== {title}\n\n{figures.table(headers, full)}"
        self.tables.append(text)
        self.say(text)

    def data(self, name, value):
        self.numbers[name] = value
        if self.path:
            with open(self.path, "w", encoding="ascii") as file:
                json.dump(self.numbers, file, indent=1)


def wanted_cells(cells, words):
    if not words:
        return list(cells)
    return [cell for cell in cells if any(word in cell.name for word in words)]


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 s, small counts")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cells", default="", help="words; a cell needs one of them in its name")
    parser.add_argument("--only", default="", help=f"sections: {','.join(SECTIONS)}")
    parser.add_argument("--peers", action="store_true",
                        help="tail: reloading HAProxy and nginx as well")
    parser.add_argument("--realtime", action="store_true",
                        help="tail: before all that others do (root)")
    parser.add_argument("--nice", type=int, default=0,
                        help="priority of everything that is started: -15 on a machine that others use")
    parser.add_argument("--json", default="", help="write every number to this file")
    parser.add_argument("--keep", action="store_true", help="keep the working folder")
    return parser.parse_args(argv)


def run(args, out, folder):
    rounds = 3 if args.quick else args.rounds
    words = [word for word in args.cells.split(",") if word]
    only = [word for word in args.only.split(",") if word] or list(SECTIONS)
    for section in only:
        if section not in SECTIONS:
            raise SystemExit(f"no section {section}: {', '.join(SECTIONS)}")
    cells = wanted_cells(table.CELLS, words)
    tls = wanted_cells(table.TLS_CELLS, words)
    bulk = wanted_cells(table.BULK + table.TLS_BULK, words)
    if "table" in only and cells:
        table.run_cells(out, f"{folder}/table", rounds, args.quick, cells)
    if "tls" in only and tls:
        table.run_tls(out, f"{folder}/tls", rounds, args.quick, tls)
    if "bulk" in only and bulk:
        table.run_bulk(out, f"{folder}/bulk", rounds, args.quick, bulk)
    if "ab" in only and not words:
        table.run_ab(out, f"{folder}/ab", min(rounds, 5), args.quick)
    if "memory" in only and not words:
        memory.run_memory(out, f"{folder}/memory", args.quick)
    if "tail" in only and not words:
        with machine.realtime(args.realtime):
            tail.run_tail(out, f"{folder}/tail", args.quick, args.peers)
    if "micro" in only and not words:
        micro.run_micro(out, args.quick)


def main(argv):
    args = parse(argv)
    missing = [f"{tool} ({package})" for tool, package in TOOLS.items()
               if not shutil.which(tool) and not os.path.exists(f"/usr/sbin/{tool}")]
    if missing:
        raise SystemExit("missing: " + ", ".join(missing))
    for program in ("skeind", "skeinctl", "bench/paced", "bench/lookup_bench", "bench/change_bench"):
        if not os.path.exists(os.path.join(BIN, program)):
            raise SystemExit(f"missing: {os.path.join(BIN, program)}: build it, or set SKEIN_BIN")
    machine.raise_file_limit()
    if args.nice:
        machine.set_priority(args.nice)
    out = Out(args.json)
    out.say(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {machine.describe()}")
    out.say(routers.versions())
    out.say(f"router on CPU {machine.ROUTER_CPUS}, origin and client on CPU {machine.REST_CPUS}")
    folder = tempfile.mkdtemp(prefix="skein-bench-")
    os.chmod(folder, 0o755)
    try:
        run(args, out, folder)
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    out.say("\n".join(["", "-- all tables --", *out.tables]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
