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
