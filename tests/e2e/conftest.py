"""Fixtures: clusters by shape. Tests that do no harm share one; tests that cut links or kill take their own."""

import signal

import pytest
from cluster import Cluster
from servers import Servers

TEST_S = 100


@pytest.fixture(autouse=True)
def time_limit():
    """No test hangs: the main thread is interrupted."""

    def over(_signal, _frame):
        raise TimeoutError(f"the test took longer than {TEST_S} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, TEST_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def dev(tmp_path):
    """Starts clusters for one test: `dev(delay="5ms", nodes=2)`."""
    started = []

    def start(**shape):
        directory = tmp_path / f"cluster{len(started)}"
        directory.mkdir(exist_ok=True)
        cluster = Cluster(directory, **shape)
        started.append(cluster)
        return cluster.start()

    yield start
    for cluster in started:
        cluster.close()


@pytest.fixture
def servers(tmp_path):
    """Servers that a test starts by name; those still running at its end are killed."""
    servers = Servers(tmp_path)
    yield servers
    servers.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One cluster for the tests of a module, on fast links."""
    cluster = Cluster(tmp_path_factory.mktemp("shared"), delay="5ms")
    cluster.start()
    yield cluster
    cluster.close()


@pytest.fixture
def clean(shared):
    """The shared cluster with healed links and nothing in the first two keyspaces."""
    shared.heal_all()
    for keyspace in (0, 1):
        with shared.client(1, db=keyspace) as client:
            client.flushdb()
        shared.converge(keyspace=keyspace)
    return shared
