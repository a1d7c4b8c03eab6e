"""What an exchange and a connection may cost: numbers that hold on every machine."""

import resource

import pytest

from support import gauge
from support.proxy_driver import Driver, Script, dial
from support.wait import until

INSTRUCTIONS_MAX = 6150  # per plain keep-alive exchange, in user space; libc differs by processor
CALLS_MAX = 4  # besides epoll_wait
IDLE_BYTES_MAX = 700  # per client connection that has been served and is kept
IDLE_CONNECTIONS = 5000
BUSY_CONNECTIONS = 500


@pytest.fixture
def origin(make_nginx):
    return make_nginx("nginx", {"1k.html": gauge.BODY}).address


def need(*tools):
    reason = gauge.why_not(*tools)
    if reason:
        pytest.skip(reason)


def test_instructions(origin, show):
    need("valgrind")
    cost = gauge.instructions(origin)
    show(f"{cost:.0f} user-space instructions per exchange (at most {INSTRUCTIONS_MAX})")
    assert cost <= INSTRUCTIONS_MAX


def test_allocations(origin, show):
    need("valgrind")
    cost = gauge.allocations(origin)
    show(f"{cost:.3f} heap allocations per exchange (at most 0)")
    assert cost <= 0


def test_system_calls(origin, show):
    need("strace")
    calls = gauge.system_calls(origin)
    show(", ".join(f"{name} {count:.2f}" for name, count in sorted(calls.items())))
    assert calls.get("epoll_ctl", 0) == 0
    waits = calls.get("epoll_wait", 0) + calls.get("epoll_pwait", 0)
    # To a hundredth: the two runs may differ by a read while they start or end.
    assert round(sum(calls.values()) - waits, 2) <= CALLS_MAX


def test_memory(origin, show):
    need()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need_files = IDLE_CONNECTIONS + 1500
    if hard != resource.RLIM_INFINITY and hard < need_files:
        pytest.skip(f"needs {need_files} files, {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need_files), hard))
    try:
        show(f"{_idle(origin):.0f} bytes per idle client connection (at most {IDLE_BYTES_MAX})")
        show(f"{_busy():.0f} bytes per busy one, with its connection to the endpoint")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _idle(origin):
    driver = Driver(workers=1)
    driver.serve(origin)
    wires = []

    def grow(count):
        for _ in range(count):
            wires.append(dial(driver.port))
            gauge.exchange(wires[-1])
        return gauge.memory(driver)

    first = grow(1000)
    per = (grow(IDLE_CONNECTIONS - 1000) - first) / (IDLE_CONNECTIONS - 1000)
    for wire in wires:
        wire.close()
    driver.close()
    assert per <= IDLE_BYTES_MAX
    return per


def _busy():
    """Requests that are sent on and not answered."""
    silent = Script(lambda wire, number: (wire.head(), wire.rest()))
    driver = Driver(workers=1)
    driver.serve(silent)
    wires = []

    def grow(count):
        for _ in range(count):
            wires.append(dial(driver.port))
            wires[-1].send(gauge.REQUEST)
        until(lambda: silent.accepted == len(wires), "all requests have reached the origin")
        return gauge.memory(driver)

    first = grow(100)
    per = (grow(BUSY_CONNECTIONS - 100) - first) / (BUSY_CONNECTIONS - 100)
    for wire in wires:
        wire.close()
    driver.close()
    silent.close()
    return per
