"""A server whose log lost its end while it was down: files deleted or cut by hand after `kill -9` and after a clean stop.

One datacenter alone: nobody else could tell what is missing.
"""

import shutil
import signal

import pytest
import redis
from cluster import ensue, key_in, wait_until
from servers import Servers

PARTITIONS = 2
VALUE = "v" * 4_000


class Alone(Servers):
    """The first of the servers, without the others."""

    def start(self, *directives):
        super().start("dc1", *directives)

    def client(self):
        return redis.Redis(port=self.port("dc1"), socket_timeout=5, decode_responses=True)

    def wait_for_ping(self):
        def answers():
            try:
                return self.ask("dc1", "PING")
            except redis.ConnectionError:
                return False

        wait_until(answers, 20, "the server answers")


@pytest.fixture
def alone(tmp_path, monkeypatch):
    monkeypatch.setattr("servers.NAMES", ("dc1",))
    server = Alone(tmp_path)
    yield server
    for name in list(server.running):
        server.end(name, signal.SIGKILL)


def fill(server, count=300):
    """Writes that are all synced when they are answered; the last key of partition 0."""
    client = server.client()
    for number in range(count):
        client.set(f"key:{number}", VALUE)
    key = key_in(0, PARTITIONS, "last")
    client.set(key, "there")
    client.set(key_in(1, PARTITIONS, "last"), "there")
    return key


def newest(folder):
    return sorted(folder.glob("log-*"))[-1]


def delete(folder):
    newest(folder).unlink()


def cut(folder):
    path = newest(folder)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def cut_a_byte(folder):
    path = newest(folder)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)


def without(name):
    def harm(folder):
        (folder / name).unlink()

    harm.__name__ = f"without_{name}"
    return harm


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("harm", [delete, cut, cut_a_byte, without("superblock"), without("witness")])
def test_a_log_that_lost_its_end(alone, how, harm):
    alone.start("appendfsync always")
    alone.wait_for_ping()
    key = fill(alone)
    alone.end("dc1", how)
    folder = alone.data("dc1") / "dc1" / "p0000"
    whole = alone.directory / "whole"
    shutil.copytree(folder, whole)
    harm(folder)

    told = ensue("fsck", alone.data("dc1"))
    assert told.returncode == 1 and "1 damaged" in told.stdout, told.stdout

    alone.start("appendfsync always")
    alone.wait_for_ping()
    # The other partition serves; this one says what is wrong, for reads and for writes.
    wait_until(lambda: alone.ask("dc1", "GET", key_in(1, PARTITIONS, "last")) == "there", 5, "partition 1 serves")
    for words in (["GET", key], ["SET", key, "other"]):
        with pytest.raises(redis.ResponseError, match="^STOPPED partition p0 has stopped: .* is damaged at byte "):
            alone.ask("dc1", *words)
    alone.end("dc1", signal.SIGTERM)

    # Put back, all of it is there.
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    assert ensue("fsck", alone.data("dc1")).returncode == 0
    alone.start("appendfsync always")
    alone.wait_for_ping()
    wait_until(lambda: alone.ask("dc1", "GET", key) == "there", 5, "partition 0 serves")


MIB = 1 << 20
# Two segments of 64 MiB, of which the newest is nearly full.
LARGE_WRITES = 124


def fill_segments(server):
    """Partition 0 has them, all synced under `everysec`; its last key."""
    key = key_in(0, PARTITIONS, "last")
    with server.client() as client:
        client.set(key_in(1, PARTITIONS, "last"), "there")
        for number in range(LARGE_WRITES):
            client.set(key_in(0, PARTITIONS, f"large{number % 8}"), bytes(MIB))
        client.set(key, "there")
    # A session of this keyspace knows its own writes in a single datacenter, too, and waits until they are synced, and
    # with them what stands before them in the log.
    with redis.Redis(port=server.port("dc1"), db=1, socket_timeout=25, single_connection_client=True) as client:
        client.set(key, "there")
        assert client.execute_command("CAUSAL", "WAIT", 1, "TIMEOUT", 20_000) == 1
    return key


def said(server, *words):
    try:
        return str(server.ask("dc1", *words))
    except redis.exceptions.BusyLoadingError:
        return "LOADING"
    except redis.ResponseError as error:
        return str(error)


def cut_to(size):
    def harm(folder):
        with newest(folder).open("r+b") as file:
            file.truncate(size)

    return harm


def test_a_full_segment_that_is_lost_under_everysec_is_noticed(alone):
    directives = ("appendfsync everysec", "keyspace 1 protocol cure")
    alone.start(*directives)
    alone.wait_for_ping()
    wait_until(lambda: said(alone, "DBSIZE") == "0", 20, "it serves")
    key = fill_segments(alone)
    alone.end("dc1", signal.SIGKILL)
    folder = alone.data("dc1") / "dc1" / "p0000"
    name, size = newest(folder).name, newest(folder).stat().st_size
    assert len(list(folder.glob("log-*"))) > 1 and size > 48 * MIB, "the newest one is large, and not alone"
    whole = alone.directory / "whole"
    folder.rename(whole)
    # Nothing of it, its beginning, all but 16 MiB, all but the last MiB; the last one is gone as a file.
    for harm in (cut_to(0), cut_to(MIB), cut_to(size - 16 * MIB), cut_to(size - MIB), delete):
        shutil.copytree(whole, folder)
        harm(folder)
        left = {path.name: path.stat().st_size for path in folder.glob("log-*")}
        told = ensue("fsck", alone.data("dc1"))
        assert told.returncode == 1 and "1 damaged" in told.stdout, told.stdout
        alone.start(*directives)
        alone.wait_for_ping()
        other = key_in(1, PARTITIONS, "last")
        wait_until(lambda: said(alone, "GET", other) == "there", 20, "partition 1 serves")  # noqa: B023
        wait_until(lambda: "LOADING" not in said(alone, "GET", key), 20, "partition 0 has read its log")
        damaged = "^STOPPED partition p0 has stopped: log-[0-9a-f]* is damaged at byte .* was durable up to"
        for words in (["GET", key], ["SET", key, "other"], ["STRLEN", key_in(0, PARTITIONS, "large0")]):
            with pytest.raises(redis.ResponseError, match=damaged):
                alone.ask("dc1", *words)
        alone.end("dc1", signal.SIGTERM)
        assert {path.name: path.stat().st_size for path in folder.glob("log-*")} == left, "nothing more is cut off"
        shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    assert newest(folder).name == name and ensue("fsck", alone.data("dc1")).returncode == 0
    alone.start(*directives)
    alone.wait_for_ping()
    wait_until(lambda: said(alone, "GET", key) == "there", 20, "partition 0 serves")
    assert alone.ask("dc1", "STRLEN", key_in(0, PARTITIONS, "large3")) == MIB
