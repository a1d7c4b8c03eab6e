"""What the machine says: CPU time of processes in nanoseconds, steal, load by others, memory.

CPU time is the first field of /proc/PID/task/*/schedstat, summed over all threads of all processes
of a router: it is exact on a noisy machine, where ticks and rates are not.
"""

import contextlib
import os
import re
import resource
import time

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def cpus():
    return sorted(os.sched_getaffinity(0))


ALL_CPUS = cpus()
ROUTER_CPUS = ALL_CPUS[:1]  # the router alone
REST_CPUS = ALL_CPUS[1:2] or ALL_CPUS[:1]  # origin and client share one


@contextlib.contextmanager
def pinned(to):
    """Processes started within inherit these CPUs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, to)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def raise_file_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def set_priority(nice):
    """Of this process and all it starts. Where the kernel groups sessions, it is the group's that counts."""
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write(str(nice))


@contextlib.contextmanager
def realtime(on):
    """What is started within runs before everything else, whatever others do. For light loads only."""
    if not on:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except OSError:
            pass
    return found


def tree(pid):
    """The process and all that came from it."""
    pids = [pid]
    for one in pids:
        pids += children(one)
    return pids


def cpu_ns(pids):
    total = 0
    for pid in pids:
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except OSError:
                pass
    return total


def rss_bytes(pids):
    """Exact, unlike VmRSS, which each thread updates in batches."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            total += int(re.search(r"^Rss:\s+(\d+) kB", file.read(), re.M).group(1)) * 1024
    return total


def _stat():
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:]]
    user, nice, system, idle, wait, irq, softirq, steal = fields[:8]
    return user + nice + system + irq + softirq, steal


class Window:
    """From start to end(): how much of the machine was stolen, and how much others used of it.

    `ours` gives the CPU time of everything that belongs to the measurement.
    """

    def __init__(self, ours):
        self.ours = ours
        self.busy, self.steal = _stat()
        self.ns = ours()
        self.start = time.monotonic_ns()

    def end(self):
        """(stolen, foreign), each as a share of the time of all CPUs."""
        capacity = (time.monotonic_ns() - self.start) * len(ALL_CPUS)
        busy, steal = _stat()
        stolen = (steal - self.steal) * TICK_NS / capacity
        foreign = ((busy - self.busy) * TICK_NS - (self.ours() - self.ns)) / capacity
        return stolen, max(foreign, 0.0)


def describe():
    model = "?"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        match = re.search(r"model name\s*: (.*)", file.read())
        if match:
            model = match.group(1)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{len(ALL_CPUS)} CPUs ({model}), Linux {os.uname().release}, load {load}"
