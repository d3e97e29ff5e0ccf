"""A datacenter that lost power while another one is gone for good: it says whom it waits for, and `ensue recover` lets it do
without.

No machine is restarted here. What a restart without power leaves is made by hand after a kill: the superblocks name another
boot, and the end of each log is cut off.
"""

import contextlib
import signal
import zlib

import redis

from cluster import ensue, wait_until
from servers import NAMES

KEYS = {f"key{number}": f"value{number}" for number in range(50)}
# In a superblock: the flags, the boot, and the checksum of all before it.
FLAGS, BOOT, CHECKSUM = 11, slice(32, 48), slice(88, 92)


def all_shown(servers, name):
    with contextlib.suppress(redis.RedisError):
        return {key: servers.ask(name, "GET", key) for key in KEYS} == KEYS


def lose_power(data):
    """What is left of every partition's folder when the power failed a moment after the last writes."""
    for superblock in data.glob("*/p*/superblock"):
        block = bytearray(superblock.read_bytes())
        assert block[FLAGS] & 3 == 0, "neither a clean stop nor synced before every answer"
        block[BOOT] = bytes(16)
        block[CHECKSUM] = zlib.crc32(block[: CHECKSUM.start]).to_bytes(4, "little")
        superblock.write_bytes(block)
        # The power failed while the witness of the last sync was on its way: a torn one says nothing.
        witness = superblock.parent / "witness"
        torn = bytearray(witness.read_bytes())
        torn[len(torn) // 2] ^= 0xFF
        witness.write_bytes(torn)
        last = sorted(superblock.parent.glob("log-*"))[-1]
        with last.open("r+b") as log:
            log.truncate(last.stat().st_size - 100)


def test_a_lost_tail_is_taken_back_without_a_datacenter_that_is_gone(servers):
    for name in NAMES:
        servers.start(name)
    for key, value in KEYS.items():
        wait_until(lambda k=key, v=value: tried(servers, "SET", k, v) is True, 20, f"{key} is written")
    wait_until(lambda: all_shown(servers, "dc2"), 20, "dc2 has everything")
    servers.end("dc1", signal.SIGKILL)
    servers.end("dc3", signal.SIGKILL)
    lose_power(servers.data("dc1"))

    servers.start("dc1")
    wait_until(lambda: "waits for dc3" in str(tried(servers, "GET", "key0")), 20, "dc1 says whom it waits for")
    words = ["recover", servers.data("dc1"), "--without", "dc3"]
    used = ensue(*words, "--yes")
    assert used.returncode != 0 and "in use" in used.stderr
    servers.end("dc1")

    unknown = ensue("recover", servers.data("dc1"), "--without", "dc9", "--yes")
    assert unknown.returncode != 0 and "there is no datacenter dc9, but dc1, dc2, dc3" in unknown.stderr
    shown = ensue(*words)
    assert shown.returncode == 0 and shown.stdout.count("starts without dc3") == 2
    assert "nothing was changed" in shown.stdout
    done = ensue(*words, "--yes")
    assert done.returncode == 0 and "2 partitions will start without dc3" in done.stdout

    servers.start("dc1")
    wait_until(lambda: all_shown(servers, "dc1"), 20, "dc1 has everything again")
    info = servers.ask("dc1", "INFO")
    assert info["ensue_lost_tails"] > 0 and info["ensue_catching_up"] == 0
    assert servers.ask("dc1", "SET", "later", "1")
    wait_until(lambda: servers.ask("dc2", "GET", "later") == "1", 20, "dc2 goes on with the new incarnation")


def tried(servers, *words, name="dc1"):
    """The answer of a datacenter, or the error that it gives."""
    try:
        return servers.ask(name, *words)
    except redis.RedisError as error:
        return error


def test_a_damaged_partition_is_taken_back_from_the_others(servers):
    for name in NAMES:
        servers.start(name)
    for number, (key, value) in enumerate(KEYS.items()):
        name = NAMES[number % 3]
        wait_until(lambda k=key, v=value, n=name: tried(servers, "SET", k, v, name=n) is True, 20, f"{key} is written")
    servers.ask("dc2", "INCRBY", "counter", 41)
    for name in NAMES:
        wait_until(lambda one=name: all_shown(servers, one), 20, f"{name} has everything")
    wait_until(lambda: servers.ask("dc3", "GET", "counter") == "41", 20, "dc3 has the counter")
    servers.end("dc2")
    for log in servers.data("dc2").glob("*/p0001/log-*"):
        text = bytearray(log.read_bytes())
        text[len(text) // 3] ^= 1
        log.write_bytes(text)
    servers.start("dc2")

    def answers():
        return " ".join(str(tried(servers, "GET", key, name="dc2")) for key in KEYS)

    wait_until(lambda: "partition p1" in answers() and "STOPPED" in answers(), 20, "dc2 says that p1 is damaged")
    used = ensue("recover", servers.data("dc2"), "--rebuild", "--yes")
    assert used.returncode != 0 and "in use" in used.stderr
    servers.end("dc2")

    shown = ensue("recover", servers.data("dc2"), "--rebuild")
    assert shown.returncode == 0 and "p1" in shown.stdout and "p0:" not in shown.stdout, shown.stdout + shown.stderr
    assert "nothing was changed" in shown.stdout
    done = ensue("recover", servers.data("dc2"), "--rebuild", "--yes")
    assert done.returncode == 0 and "takes 1 partitions back" in done.stdout, done.stdout + done.stderr
    assert list(servers.data("dc2").glob("*/p0001.aside-1/log-*")) and not list(servers.data("dc2").glob("*/p0001"))
    servers.start("dc2")
    wait_until(lambda: all_shown(servers, "dc2"), 30, "dc2 has everything again")
    assert servers.ask("dc2", "INCR", "counter") == 42
    wait_until(lambda: servers.ask("dc1", "GET", "counter") == "42", 20, "dc2 replicates again")
    servers.end("dc2")
    sound = ensue("recover", servers.data("dc2"), "--rebuild")
    assert sound.returncode == 0 and "no partition is damaged" in sound.stdout
    assert ensue("fsck", servers.data("dc2")).returncode == 0
