"""What an exchange costs the data plane, in numbers that do not depend on the machine.

Each is the difference of two runs of proxy_driver with different numbers of exchanges, so that what
starting and ending cost falls out. The load is a fixed one: connections in lockstep, each request
sent to all of them before the answers are read.
"""

import os
import re
import shutil
import tempfile

from support.cluster import BIN
from support.proxy_driver import Driver, dial

CONNECTIONS = 16
WARM_ROUNDS = 20
ROUNDS = 125
EXCHANGES = CONNECTIONS * ROUNDS

BODY = b"x" * 1024
REQUEST = (
    b"GET /1k.html HTTP/1.1\r\nHost: a.test\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"
)


def why_not(*tools):
    """Why these numbers cannot be taken here, or None."""
    try:
        with open(os.path.join(BIN, "CMakeCache.txt"), encoding="utf-8") as file:
            kind = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w*)", file.read(), re.M).group(1)
    except OSError:
        kind = "Release"  # binaries without their build folder
    if kind != "Release":
        return f"for release builds only, not for {kind}"
    for tool in tools:
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    return None


def exchange(wire, request=REQUEST):
    wire.send(request)
    answer(wire)


def answer(wire):
    head = wire.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
    assert wire.exactly(len(BODY)) == BODY


def _run(origin, rounds, under, serve):
    driver = Driver(workers=1, under=under, listen_tls=("127.0.0.1:0",) if serve else ())
    connect = serve(driver) if serve else driver.serve(origin)
    wires = [connect() if connect else dial(driver.port, 60) for _ in range(CONNECTIONS)]
    for wire in wires:
        exchange(wire)
    for _ in range(rounds):
        for wire in wires:
            wire.send(REQUEST)
        for wire in wires:
            answer(wire)
    for wire in wires:
        wire.close()
    driver.close()


def _difference(origin, command, read, serve=None):
    """command(path) runs the driver and leaves a report at path, read(text) takes it in."""
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for rounds in (WARM_ROUNDS, WARM_ROUNDS + ROUNDS):
            path = os.path.join(folder, str(rounds))
            _run(origin, rounds, command(path), serve)
            with open(path, encoding="utf-8") as file:
                results.append(read(file.read()))
        return results


def instructions(origin):
    """User-space instructions per exchange."""
    few, many = _difference(
        origin,
        lambda path: ("valgrind", "--tool=callgrind", "-q", f"--callgrind-out-file={path}"),
        lambda text: int(re.search(r"^(?:summary|totals): (\d+)", text, re.M).group(1)),
    )
    return (many - few) / EXCHANGES


def allocations(origin):
    """Calls of malloc and its kin per exchange."""
    few, many = _difference(
        origin,
        lambda path: ("valgrind", "--leak-check=no", f"--log-file={path}"),
        lambda text: int(
            re.search(r"total heap usage: ([\d,]+) allocs", text).group(1).replace(",", "")
        ),
    )
    return (many - few) / EXCHANGES


def system_calls(origin, serve=None):
    """Calls per exchange by name, those that occur. serve(driver): instead of the plain way, with a
    TLS listener beside; it may return how clients connect."""

    def read(text):
        rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", text, re.M)
        return {name: int(calls) for calls, name in rows if name != "total"}

    few, many = _difference(
        origin, lambda path: ("strace", "-f", "-c", "-o", path), read, serve
    )
    calls = {name: (count - few.get(name, 0)) / EXCHANGES for name, count in many.items()}
    return {name: count for name, count in calls.items() if count != 0}


def memory(driver):
    """Bytes of anonymous memory in use."""
    with open(f"/proc/{driver.process.pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Anonymous:\s+(\d+) kB", file.read(), re.M).group(1)) * 1024
