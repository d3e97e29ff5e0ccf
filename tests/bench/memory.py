#!/usr/bin/env python3
"""Measures the memory of a key beside Debian's redis-server; prints Markdown.

    memory.py [--only strings,hashes,sets] [--protocols eiger,eventual,cure] [--record FILE]

It needs redis-server and redis-py, and the binary in ENSUE_BIN or target/release/ensue. Each kind of key is loaded into
a server of its own, half of it twice: what the second half takes is what is counted, so that what a server takes once
(buffers, logs in memory) is not. Ensue is two datacenters, one process each, of one partition on one core; one of them
is looked at, when both hold everything and its bytes do not fall any more. Bytes are those in use as the servers'
allocators count them (`used_memory`). Data lies in a temporary folder. Only what was started here is stopped.
"""

import argparse
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import redis  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from ports import Ports  # noqa: E402

# Commands that are sent together.
BATCH = 1_000
# 16 MB, twice what a partition keeps of its stream in memory.
WARM_UP_BATCHES = 20
QUIET_S = 60
# So many readings in a row, this far apart, between which the bytes in use do not fall any more.
READINGS, READING_PAUSE_S = 4, 0.5
READINGS_SPREAD = 0.002
# What has just been written takes more for so long.
YOUNG_S = 8
# The kind of keys that is flushed, the share of their bytes that this may leave, and how long it is waited for.
FLUSHED = "strings"
LEFT_MAX, FLUSH_S = 0.05, 30
JUDGED = 1.15
VALUE = "v" * 64


def strings(number):
    yield "SET", f"key:{number:012}", VALUE


def small_strings(number):
    yield "SET", f"key:{number:012}", "v" * 8


def dated_strings(number):
    yield "SET", f"key:{number:012}", VALUE, "EX", 86_400


def counters(number):
    yield "INCR", f"key:{number:012}"


def hashes(number):
    """A field by each command, as an application sets them."""
    for field in range(10):
        yield "HSET", f"key:{number:012}", f"field{field}", "v" * 16


def sets(number):
    yield "SADD", f"key:{number:012}", *(f"member:{member:04}" for member in range(100))


def zsets(number):
    scored = (part for member in range(10) for part in (member, f"member:{member:04}"))
    yield "ZADD", f"key:{number:012}", *scored


def lists(number):
    yield "RPUSH", f"key:{number:012}", *(f"element:{element:04}" for element in range(10))


def large_hash(number):
    yield "HSET", "hash", f"field:{number:012}", "v" * 16


def large_set(number):
    yield "SADD", "set", f"member:{number:012}"


def large_zset(number):
    yield "ZADD", "zset", number, f"member:{number:012}"


def large_list(number):
    yield "RPUSH", "list", f"element:{number:012}"


# Name, what it is, what is counted, how many of it there are, the commands that make one, and whether it is judged.
LOADS = {
    "strings": ("string of 64 bytes", "key", 100_000, strings, True),
    "small": ("string of 8 bytes", "key", 100_000, small_strings, False),
    "dated": ("string of 64 bytes with a deadline", "key", 100_000, dated_strings, False),
    "counters": ("counter", "key", 100_000, counters, False),
    "hashes": ("hash of 10 fields of 16 bytes", "key", 20_000, hashes, True),
    "sets": ("set of 100 members", "key", 4_000, sets, True),
    "zsets": ("sorted set of 10 members", "key", 20_000, zsets, False),
    "lists": ("list of 10 elements", "key", 10_000, lists, False),
    "large-hash": ("hash of 100,000 fields of 16 bytes", "field", 100_000, large_hash, False),
    "large-set": ("set of 100,000 members", "member", 100_000, large_set, False),
    "large-zset": ("sorted set of 50,000 members", "member", 50_000, large_zset, False),
    "large-list": ("list of 20,000 elements", "element", 20_000, large_list, False),
}


class RedisServer:
    """Debian's server with a log, as Ensue has one."""

    def __init__(self, directory):
        self.ports = Ports()
        self.port = self.ports.first
        folder = pathlib.Path(tempfile.mkdtemp(prefix="redis-", dir=directory))
        words = ["redis-server", "--port", self.port, "--dir", folder, "--appendonly", "yes"]
        words += ["--appendfsync", "everysec", "--save", "", "--auto-aof-rewrite-percentage", 0, "--daemonize", "no"]
        self.log = (folder / "log.txt").open("wb")
        self.process = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until(self.answers, 30, "redis-server answers")

    def answers(self):
        with contextlib.suppress(redis.RedisError), self.client() as client:
            return client.ping()

    def client(self):
        return redis.Redis(port=self.port, socket_timeout=60)

    def is_whole(self, _keys):
        return True

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()
        self.ports.close()


class Ensue:
    """Two datacenters of one protocol; the first one is loaded."""

    def __init__(self, directory, protocol):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ensue-", dir=directory))
        flags = ["--processes", "--protocol", protocol]
        self.cluster = Cluster(folder, delay="1ms", datacenters=2, partitions=1, flags=flags)
        with contextlib.redirect_stdout(None):
            self.cluster.start()

    def client(self):
        return redis.Redis(port=self.cluster.client_port(1), socket_timeout=60)

    def is_whole(self, keys):
        """Whether the other datacenter has everything."""
        with redis.Redis(port=self.cluster.client_port(2), socket_timeout=60) as client:
            return client.dbsize() == keys and len(set(self.cluster.digests())) == 1

    def stop(self):
        with contextlib.redirect_stdout(None):
            self.cluster.close()


def used_memory(server):
    with server.client() as client:
        return client.info("memory")["used_memory"]


def settled_memory(server):
    """The bytes in use when they do not fall any more."""
    time.sleep(YOUNG_S)
    used, end = [], time.monotonic() + QUIET_S
    while time.monotonic() < end:
        used.append(used_memory(server))
        recent = used[-READINGS:]
        if len(recent) == READINGS and max(recent) - min(recent) <= READINGS_SPREAD * max(recent):
            break
        time.sleep(READING_PAUSE_S)
    return used[-1]


def load(server, numbers, commands):
    with server.client() as client:
        for begin in range(numbers.start, numbers.stop, BATCH):
            pipeline = client.pipeline(transaction=False)
            for number in range(begin, min(begin + BATCH, numbers.stop)):
                for command in commands(number):
                    pipeline.execute_command(*command)
            pipeline.execute()
        keys = client.dbsize()
    wait_until(lambda: server.is_whole(keys), 120, "the other datacenter has everything", pause=0.5)
    return settled_memory(server)


def warm_up(server):
    """Fills what a server keeps of the latest writes for others, whatever they were."""
    with server.client() as client:
        for _ in range(WARM_UP_BATCHES):
            pipeline = client.pipeline(transaction=False)
            for _ in range(100):
                pipeline.set("warm", "w" * 8_000)
            pipeline.execute()
        client.delete("warm")


def flush(server, without, full):
    """How high the bytes in use rise after `FLUSHALL`, as a share of those before it, and the seconds until they are
    nearly those without any key."""
    most, begin = full, time.monotonic()
    with server.client() as client:
        client.flushall()
    while time.monotonic() - begin < FLUSH_S:
        used = used_memory(server)
        most = max(most, used)
        if used - without <= LEFT_MAX * (full - without):
            return most / full, time.monotonic() - begin
        time.sleep(0.1)
    return most / full, None


def measure(start, count, commands, flushes, note):
    """Bytes of one key or element, and what `FLUSHALL` does, if that is asked for."""
    server = start()
    try:
        warm_up(server)
        half = load(server, range(count // 2), commands)
        full = load(server, range(count // 2, count), commands)
        flushed = flush(server, 2 * half - full, full) if flushes else None
        note(f"{half} {full}, flushed: {flushed}")
        return (full - half) / (count - count // 2), flushed
    finally:
        server.stop()


def table(rows, protocols):
    lines = [f"| what | redis-server | {' | '.join(f'`{name}` | ratio' for name in protocols)} |"]
    lines.append(f"|---|--:|{'--:|--:|' * len(protocols)}")
    for what, unit, is_judged, figures in rows:
        of_redis = figures["redis"]
        cells = [f"{what}, a {unit}" + (" (judged)" if is_judged else ""), f"{of_redis:,.0f}"]
        for name in protocols:
            cells += [f"{figures[name]:,.0f}", f"{figures[name] / of_redis:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def told(most, seconds):
    """What `FLUSHALL` did to the bytes in use."""
    end = f"more than {FLUSH_S} s" if seconds is None else f"{seconds:.0f} s"
    return f"rise to {most:.1f} times those before, and are gone but for {100 * LEFT_MAX:.0f} % after {end}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(LOADS), help="kinds of keys, with commas")
    parser.add_argument("--protocols", default="eiger,eventual,cure", help="protocols, with commas")
    parser.add_argument("--record", type=pathlib.Path, help="write the page into this file, too")
    parser.add_argument("--verbose", action="store_true", help="print every measurement to standard error")
    options = parser.parse_args()
    if not shutil.which("redis-server"):
        raise SystemExit("redis-server is not installed (Debian: apt install redis)")
    protocols = options.protocols.split(",")

    def note(line):
        if options.verbose:
            print(line, file=sys.stderr, flush=True)

    rows, flushes = [], {}
    with tempfile.TemporaryDirectory(prefix="ensue-memory-") as name:
        starts = {"redis": lambda: RedisServer(name)}
        starts |= {protocol: (lambda protocol=protocol: Ensue(name, protocol)) for protocol in protocols}
        for kind in options.only.split(","):
            what, unit, count, commands, is_judged = LOADS[kind]
            figures = {}
            for server, start in starts.items():
                figures[server], flushed = measure(
                    start, count, commands, kind == FLUSHED, lambda line: note(f"{kind} {server}: {line}")
                )
                if flushed:
                    flushes[server] = flushed
            rows.append((what, unit, is_judged, figures))
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    flushed = "\n".join(f"- `{name}`: {told(*each)}." for name, each in flushes.items())
    page = f"""# Memory of a key

Made by `tests/bench/memory.py --record docs/figures/memory.md`. redis-server {version.removeprefix("v=")}; Ensue is two
datacenters of one partition, of which one is counted, when both hold everything. Bytes in use, as the allocators count
them, of a key, or of a field or a member of a large one. Judged are strings of 64 bytes, hashes of 10 fields set one by
one and sets of 100 members: at most {JUDGED} times redis-server. Nobody has asked sorted sets and lists for their
order, which is kept from then on.

{table(rows, protocols)}

After `FLUSHALL` of the strings of 64 bytes, the bytes in use

{flushed}
"""
    print(page)
    if options.record:
        options.record.write_text(page)


if __name__ == "__main__":
    main()
