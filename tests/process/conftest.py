"""Fixtures of the process tests. The support modules are imported as `support.<name>`."""

import os
import sys

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.cluster import BIN, SKEIND, Cluster  # noqa: E402
from support.origin import Nginx, Origin  # noqa: E402

_alive = []  # clusters of the running test, for the report of its failure


def pytest_configure(config):
    config.addinivalue_line("markers", "smoke: a short way through everything, for slow builds")
    config.addinivalue_line("markers", "timing: measures time or takes long; left out of sanitizer builds")


def pytest_sessionstart(session):
    if not os.access(SKEIND, os.X_OK):
        pytest.exit(f"no {SKEIND}: build first, or set SKEIN_BIN", returncode=3)


def pytest_report_header(config):
    return f"binaries: {BIN}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for cluster in _alive:
            report.sections.append(("node logs", cluster.logs()))


@pytest.fixture
def show(capfd):
    """Print a measured number so that it is seen without -s."""

    def out(text):
        with capfd.disabled():
            print(f"\n    {text}", end="", flush=True)

    return out


@pytest.fixture
def make_cluster(tmp_path):
    """make_cluster(size=3, ...): clusters of this test alone, not started yet."""
    made = []

    def make(size=3, **kwargs):
        cluster = Cluster(tmp_path / f"c{len(made)}", size, **kwargs)
        made.append(cluster)
        _alive.append(cluster)
        return cluster

    yield make
    errors = []
    for cluster in made:
        try:
            cluster.stop()
        except AssertionError as error:
            errors.append(str(error))
        _alive.remove(cluster)
    assert not errors, "\n".join(errors)


@pytest.fixture
def cluster(make_cluster):
    """Three nodes of this test alone: it may kill them."""
    return make_cluster(3).start()


@pytest.fixture(scope="session")
def _shared_cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("shared"), 3).start()
    yield cluster
    cluster.stop()


@pytest.fixture
def shared(_shared_cluster):
    """Three nodes that many tests use: none stops them, each uses names of its own."""
    _alive.append(_shared_cluster)
    for node in _shared_cluster:
        assert node.is_running(), f"{node.name} has ended\n{node.log_tail()}"
    yield _shared_cluster
    _alive.remove(_shared_cluster)
    for node in _shared_cluster:
        assert node.is_running(), f"{node.name} has ended\n{node.log_tail()}"


@pytest.fixture
def make_origin():
    """make_origin(name, delay=0): scripted origins."""
    made = []

    def make(name, **kwargs):
        made.append(Origin(name, **kwargs))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


@pytest.fixture
def make_nginx(tmp_path):
    """make_nginx(name, files=None): real origins."""
    made = []

    def make(name, files=None):
        made.append(Nginx(tmp_path, name, files))
        return made[-1]

    yield make
    for nginx in made:
        nginx.close()


@pytest.fixture
def unique(request):
    """A name that no other test uses: fit for namespaces, objects and host labels."""
    text = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())
    return text.removeprefix("test-")[:50].strip("-")
