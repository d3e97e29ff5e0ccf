"""TRODS between a stock curl, a stock lighttpd or nginx, and Linux: examples/trods/demo.py in network namespaces.

Skipped, with the reason, where there may be no namespaces or no queues of packets.
"""

import importlib.util

import pytest
from cluster import ROOT, binary

SPEC = importlib.util.spec_from_file_location("trods_demo", ROOT / "examples/trods/demo.py")
demo = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(demo)

REASON = demo.missing()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")


def stage(*words):
    return demo.Stage(demo.parse(["--ensue", binary(), "--size-mb", "10", *words]))


@pytest.fixture(scope="module")
def kept():
    """Two servers whose connections are kept in an Ensue store."""
    with stage("--mode", "kv") as kept:
        yield kept


def assert_unnoticed(result, stage):
    shown = f"{result}\n{stage.tail()}"
    assert result["exit"] == 0 and result["status"] == 200, shown
    assert result["same"], shown
    assert result["connections"] == 1, shown
    assert result["resets"] == 0, shown


@pytest.mark.parametrize("fault", demo.FAULTS)
@pytest.mark.parametrize("part", [0, 0.02, 0.5])
def test_a_download_survives_its_server(kept, fault, part):
    result = kept.download(fault, part)
    assert len(result["servers"]) == 1
    assert_unnoticed(result, kept)


def test_a_record_is_deleted_when_its_connection_is_over():
    # A server that is suspected just then leaves the record to its expiry.
    with stage("--mode", "kv", "--suspect-after-ms", "20000") as calm:
        assert_unnoticed(calm.download(), calm)
        calm.wait("the end of all records", lambda: calm.records() == 0)


@pytest.mark.parametrize("mode", ["ts", "hybrid"])
def test_other_modes_survive_a_machine(mode):
    with stage("--mode", mode) as other:
        for part in (0, 0.5):
            result = other.download("machine", part)
            assert len(result["servers"]) == 1
            assert_unnoticed(result, other)


def test_as_in_the_paper_the_client_reminds():
    with stage("--mode", "kv", "--no-reminders") as plain:
        result = plain.download("machine", 0.5)
        assert len(result["servers"]) == 1
        assert_unnoticed(result, plain)


def test_a_connection_survives_two_servers():
    with stage("--mode", "kv", "--servers", "3") as three:
        result = three.download("machine", 0.3, again=0.6)
        assert len(result["servers"]) == 2
        assert_unnoticed(result, three)


def test_without_trods_the_client_notices():
    with stage("--mode", "pass") as passed:
        result = passed.download("application", 0.5)
        assert len(result["servers"]) == 1
        assert result["exit"] != 0 and not result["same"], result


def test_nothing_is_left_behind():
    with stage("--mode", "kv") as short:
        prefix = short.net.prefix
        assert prefix in demo.run("ip", "netns", "list")
    assert prefix not in demo.run("ip", "netns", "list")
    assert not short.work.exists()
