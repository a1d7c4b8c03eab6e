#!/usr/bin/python3
"""Gates that do not depend on the machine: instructions counted by single steps (steps.c).

    gate.py lookup BUILD    instructions of a look-up with 100,000 hosts
    gate.py change BUILD    instructions of an endpoint change with 100,000 routes and with 100
    gate.py paced BUILD     the open-loop client charges a pause to all who would have come
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time

LOOKUPS = 100  # LOOKUPS_COUNTED of lookup_bench.c
LOOKUP_MAX = 1500
CHANGE_GROWTH_MAX = 2.0


def regions(build, *command):
    """Instructions of each region of a program."""
    bench = os.path.join(build, "bench")
    run = subprocess.run(
        [os.path.join(bench, "steps"), os.path.join(bench, command[0]), *command[1:], "--marks"],
        capture_output=True, text=True, timeout=300, check=False,
    )
    if run.returncode != 0:
        raise SystemExit(f"steps: {run.stdout}{run.stderr}")
    return [int(line.split()[2]) for line in run.stdout.splitlines() if line.startswith("region")]


def lookup(build):
    costs = {hosts: regions(build, "lookup_bench", str(hosts))[0] / LOOKUPS
             for hosts in (10, 100000)}
    for hosts, cost in costs.items():
        print(f"{hosts} hosts: {cost:.0f} instructions per look-up (at most {LOOKUP_MAX})")
    return costs[100000] <= LOOKUP_MAX


def change(build):
    costs = {routes: sorted(regions(build, "change_bench", str(routes)))
             for routes in (100, 100000)}
    medians = {routes: counts[len(counts) // 2] for routes, counts in costs.items()}
    for routes, counts in costs.items():
        print(f"{routes} routes: {medians[routes]} instructions per endpoint change, {counts}")
    growth = medians[100000] / medians[100]
    print(f"growth {growth:.2f} (at most {CHANGE_GROWTH_MAX})")
    return growth <= CHANGE_GROWTH_MAX


PAUSE_SECONDS = 0.4


class Stub:
    """Answers at once, but for one pause in the middle during which nobody gets an answer."""

    def __init__(self, pause_at):
        self.pause_at = pause_at
        self.seen = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        data = b""
        while True:
            part = sock.recv(4096)
            if not part:
                return
            data += part
            while b"\r\n\r\n" in data:
                data = data[data.index(b"\r\n\r\n") + 4:]
                with self.lock:  # held while it pauses: everybody waits
                    self.seen += 1
                    if self.seen == self.pause_at:
                        time.sleep(PAUSE_SECONDS)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def paced(build):
    """In 2 s of 200 requests/s one pause of 0.4 s: 80 requests were planned in it, and those of its
    first quarter waited for more than 0.7 of it. A client that counts from the real send would have
    seen as many slow ones as it has connections: 4."""
    stub = Stub(150)
    run = subprocess.run(
        [os.path.join(build, "bench", "paced"), "--connect", f"127.0.0.1:{stub.port}", "--rate",
         "200", "--connections", "4", "--seconds", "2"],
        capture_output=True, text=True, timeout=60, check=True,
    )
    answer = json.loads(run.stdout)
    print(json.dumps({key: answer[key] for key in answer if key != "worst"}))
    slow = [took for _, took in answer["worst"] if took >= PAUSE_SECONDS * 1000 * 0.7]
    print(f"{len(slow)} of the 20 slowest took at least 0.7 of the pause")
    # 20 of 400 are 5 %, so the 99 % time is inside the pause as well.
    return (answer["answered"] == 400 and answer["errors"] == 0 and stub.seen == 400
            and len(slow) == 20 and answer["max"] >= PAUSE_SECONDS * 1000 * 0.95
            and answer["p99"] >= PAUSE_SECONDS * 1000 * 0.7)


if __name__ == "__main__":
    passed = {"lookup": lookup, "change": change, "paced": paced}[sys.argv[1]](sys.argv[2])
    print("passed" if passed else "FAILED")
    sys.exit(0 if passed else 1)
