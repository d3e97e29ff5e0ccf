"""Disks that fail under a real server: one that is full, and one whose sync fails. The rest of the cluster goes on."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest
import redis
from cluster import Crew, key_in, wait_until

SMALL_DISK_MIB = 24
VALUE = "v" * 50_000
WRITES_MAX = 5_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own for the data of dc1."""
    directory = tmp_path / "cluster0/data/dc1"
    directory.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_MIB}m", "ensue-test", directory], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system in memory cannot be mounted here: {mounted.stderr.strip()}")
    yield directory
    # The cluster may not be down yet: whoever still works there keeps the room until it ends.
    subprocess.run(["umount", "--lazy", directory], check=True)


def fill(directory):
    """Takes all the room there is."""
    with contextlib.suppress(OSError), (directory / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(1 << 16))


def write_until(client, prefix, prefixes, count=WRITES_MAX):
    """Writes until an error that begins with one of these; what was acknowledged, and the error."""
    acknowledged = {}
    for number in range(count):
        try:
            client.set(f"{prefix}:{number}", f"{number}{VALUE}")
        except redis.RedisError as error:
            assert str(error).startswith(prefixes), error
            return acknowledged, str(error)
        acknowledged[f"{prefix}:{number}"] = f"{number}{VALUE}"
    raise AssertionError(f"{count} writes, and no error")


def assert_kept(cluster, acknowledged):
    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        lost = [key for key, value in acknowledged.items() if client.get(key) != value]
        assert not lost, f"dc{datacenter} lost {len(lost)} of {len(acknowledged)}: {lost[:5]}"


def test_a_full_disk(small_disk, dev):
    cluster = dev(delay="5ms", partitions=1)
    assert any(small_disk.iterdir()), "dc1 keeps its data elsewhere"
    here, there = cluster.client(1), cluster.client(2)
    here.set("before", "kept")
    fill(small_disk)
    acknowledged, error = write_until(here, "full", ("DISKFULL",))
    assert "reads are answered" in error
    assert here.get("before") == "kept"
    assert all(here.get(key) == value for key, value in acknowledged.items())
    assert here.info()["ensue_disk_full"] == 1
    # The others serve, and keep what dc1 cannot take.
    there.set("from:dc2", "while dc1 was full")
    there.incr("visits", 3)
    (small_disk / "filler").unlink()

    def accepts():
        with contextlib.suppress(redis.ResponseError):
            return here.set("after", "room again")

    wait_until(accepts, 10, "dc1 takes writes again")
    cluster.converge(timeout=15)
    assert_kept(cluster, acknowledged | {"before": "kept", "after": "room again", "from:dc2": "while dc1 was full"})
    assert here.get("visits") == "3"
    assert cluster.stop() == 0


@contextlib.contextmanager
def failing_sync(pid, number):
    """The `number`-th sync of this process fails from now on."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    inject = f"inject=fsync,fdatasync:error=EIO:when={number}"
    process = subprocess.Popen(
        [strace, "-f", "-p", str(pid), "-e", "trace=fsync,fdatasync", "-e", inject, "-o", os.devnull],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first = process.stderr.readline()
        if "attached" not in first:
            pytest.skip(f"strace cannot be attached here: {first.strip()}")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)
        process.stderr.close()


@pytest.mark.parametrize("number", [1, 4])
def test_a_sync_that_fails(dev, number):
    cluster = dev(delay="5ms", partitions=2, flags=["--processes", "--appendfsync", "always"])
    here = cluster.client(1)
    pid = cluster.process_of(1)
    acknowledged = {}
    with failing_sync(pid, number):
        keys = {f"key:{count}": str(count) for count in range(200)}
        error = None
        for key, value in keys.items():
            try:
                here.set(key, value)
                acknowledged[key] = value
            except redis.ResponseError as refused:
                error = str(refused)
                break
        assert error and error.startswith("STOPPED partition p"), error
    stopped = here.info()["ensue_stopped"]
    assert stopped == 1
    # One partition has stopped; the other one of dc1, and dc2, go on.
    served = [partition for partition in range(2) if answers(here, key_in(partition, 2, "other"))]
    assert len(served) == 1
    elsewhere = cluster.client(2)
    for partition in range(2):
        key = key_in(partition, 2, "elsewhere")
        elsewhere.set(key, "dc2")
        acknowledged[key] = "dc2"
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: cluster.process_of(1) not in (None, pid), 20, "dc1 starts again")
    cluster.wait_for_ping(1)
    cluster.converge(timeout=15)
    assert_kept(cluster, acknowledged)
    assert cluster.stop() == 0


def answers(client, key):
    try:
        return client.set(key, "here")
    except redis.ResponseError as error:
        assert str(error).startswith("STOPPED"), error
        return False
