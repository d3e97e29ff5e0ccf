#!/usr/bin/env python3
"""Moves a redis-server that is written to over to Ensue, as docs/migrating.md says, and compares; prints Markdown.

    cutover.py [--keys N] [--rate N] [--seconds S] [--record FILE]

It needs redis-server and redis-py, and the binary in ENSUE_BIN or target/release/ensue. The source gets N mixed keys:
strings, hashes, lists, sets, sorted sets, streams, counters, and some with a deadline. A writer then writes to it at a
rate, and never stops: `ensue import --from` takes the snapshot and follows; when its lag is small, the writer is
switched over. The pause is what the writer sees: from the last answer of the source to the first of Ensue, with the
`WAIT` of the guide between them. Every write that was answered is then looked for in Ensue, those of before and of
after the cut, and all keys of both are compared. Data lies in a temporary folder. Only what was started here is
stopped.
"""

import argparse
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import redis  # noqa: E402
from cluster import Cluster, binary, wait_until  # noqa: E402
from redis.backoff import NoBackoff  # noqa: E402
from redis.retry import Retry  # noqa: E402
from test_import import RedisServer  # noqa: E402

BATCH = 2_000
# Writes of one round trip.
BURST = 50
COMPARED_TOGETHER = 500
FAR_MS = 10**12 * 4


def load(client, number):
    """One of the mixed keys."""
    kind = number % 10
    if kind < 5:
        client.set(f"s:{number}", f"value {number} " + "x" * (number % 64))
    elif kind == 5:
        client.hset(f"h:{number}", mapping={f"field{place}": number + place for place in range(4)})
    elif kind == 6:
        client.rpush(f"l:{number}", *range(number, number + 4))
    elif kind == 7:
        client.sadd(f"m:{number}", *range(number, number + 4))
    elif kind == 8:
        client.zadd(f"z:{number}", {f"member{place}": number + place / 4 for place in range(3)})
    elif number % 100 == 9:
        client.xadd(f"x:{number}", {"field": number})
    else:
        client.set(f"d:{number}", number, pxat=FAR_MS + number)


class Writer(threading.Thread):
    """Writes to whatever it is pointed at, and remembers what was answered."""

    def __init__(self, client, keys, rate):
        super().__init__(daemon=True)
        self.client, self.keys, self.rate = client, keys, rate
        self.random = random.Random(7)
        self.answered = 0
        self.next = None
        self.switched = threading.Event()
        self.over = threading.Event()
        self.last_s = self.first_s = None
        self.before = 0
        self.failure = None

    def write(self, pipe, number):
        """Write `number` is of a key of its own, and beside it of one that is there."""
        which = number % 5
        if which == 0:
            pipe.set(f"w:{number}", number)
        elif which == 1:
            pipe.incr("w:counter")
        elif which == 2:
            pipe.rpush(f"w:list:{number % 1_000}", number)
        elif which == 3:
            pipe.hset(f"h:{10 * self.random.randrange(self.keys // 10) + 5}", f"w{number % 7}", number)
        else:
            pipe.sadd(f"w:set:{number % 100}", number)

    def run(self):
        try:
            self.write_on()
        except Exception as error:  # noqa: BLE001
            self.failure = error

    def write_on(self):
        begin_s, begun = time.monotonic(), self.answered
        while not self.over.is_set():
            if self.next is not None and not self.switched.is_set():
                # The application is stopped, and started again with the other address.
                self.last_s, self.before = time.monotonic(), self.answered
                self.client = self.next()
                self.switched.set()
            with self.client.pipeline(transaction=False) as pipe:
                for number in range(self.answered, self.answered + BURST):
                    self.write(pipe, number)
                pipe.execute()
            if self.switched.is_set() and self.first_s is None:
                self.first_s = time.monotonic()
                begin_s, begun = self.first_s, self.answered
            self.answered += BURST
            ahead_s = (self.answered - begun) / self.rate - (time.monotonic() - begin_s)
            if ahead_s > 0:
                time.sleep(ahead_s)


READ = {
    b"string": lambda pipe, key: pipe.get(key),
    b"list": lambda pipe, key: pipe.lrange(key, 0, -1),
    b"set": lambda pipe, key: pipe.smembers(key),
    b"hash": lambda pipe, key: pipe.hgetall(key),
    b"zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
    b"stream": lambda pipe, key: pipe.xrange(key),
}


def values(client, keys, kinds):
    with client.pipeline(transaction=False) as pipe:
        for key, kind in zip(keys, kinds):
            READ[kind](pipe, key)
            pipe.pexpiretime(key)
        return pipe.execute()


def types(client, keys):
    with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.type(key)
        return pipe.execute()


def compare(source, target, written):
    """How many keys are equal; whatever was written after the cut is only in the target."""
    count = 0
    together = []

    def check():
        kinds = types(source, together)
        assert kinds == types(target, together), "types"
        for key, one, other in zip(together, *(pairs(values(client, together, kinds)) for client in (source, target))):
            assert one == other, (key, one, other)

    for key in source.scan_iter(count=5_000):
        if key.startswith(b"w:") or key.startswith(b"h:"):
            continue
        together.append(key)
        count += 1
        if len(together) == COMPARED_TOGETHER:
            check()
            together.clear()
    check()
    # What the writer wrote: all that was answered, before the cut and after it.
    expected = {"set": {}, "list": {}, "member": {}, "hash": {}}
    for number in range(written):
        which = number % 5
        if which == 0:
            expected["set"][f"w:{number}"] = number
        elif which == 2:
            expected["list"].setdefault(f"w:list:{number % 1_000}", []).append(str(number).encode())
        elif which == 4:
            expected["member"].setdefault(f"w:set:{number % 100}", set()).add(str(number).encode())
    assert int(target.get("w:counter")) == len([number for number in range(written) if number % 5 == 1])
    names = list(expected["set"])
    for begin in range(0, len(names), BATCH):
        part = names[begin:begin + BATCH]
        assert target.mget(part) == [str(expected["set"][name]).encode() for name in part]
    for name, elements in expected["list"].items():
        found = target.lrange(name, 0, -1)
        assert found == elements, (name, found, elements, source.lrange(name, 0, -1))
    for name, members in expected["member"].items():
        assert target.smembers(name) == members, name
    return count


def pairs(flat):
    return list(zip(flat[::2], flat[1::2]))


def check_hashes(target, source, writer, keys):
    """Fields of hashes are the source's, and what was written to them after the cut."""
    replayed = Writer(None, keys, 1)
    last = {}

    class Noted:
        def __getattr__(self, _):
            return lambda *words: None

        def hset(self, key, field, number):
            last[key, field] = number

    noted = Noted()
    for number in range(writer.answered):
        replayed.write(noted, number)
    wanted = {}
    for (key, field), number in last.items():
        wanted.setdefault(key, {})[field.encode()] = str(number).encode()
    names = [f"h:{number}" for number in range(5, keys, 10)]
    for begin in range(0, len(names), BATCH):
        part = names[begin:begin + BATCH]
        found = []
        for client in (source, target):
            with client.pipeline(transaction=False) as pipe:
                for name in part:
                    pipe.hgetall(name)
                found.append(pipe.execute())
        for name, before, now in zip(part, *found):
            assert now == {**before, **wanted.get(name, {})}, (name, before, now)
    return len(names)


def measure(options, folder):
    limits = ["--repl-backlog-size", "512mb", "--client-output-buffer-limit", "replica 0 0 0"]
    server = RedisServer(folder / "redis", *limits)
    cluster = Cluster(folder / "target", delay="5ms", datacenters=1, partitions=2)
    (folder / "target").mkdir()
    cluster.start()
    process = None
    try:
        source = server.client()
        for begin in range(0, options.keys, BATCH):
            with source.pipeline(transaction=False) as pipe:
                for number in range(begin, min(begin + BATCH, options.keys)):
                    load(pipe, number)
                pipe.execute()
        loaded = source.dbsize()
        # A write that is sent twice because its answer was late would count twice.
        once = {"retry": Retry(NoBackoff(), 0), "socket_timeout": 120}
        writer = Writer(redis.Redis("127.0.0.1", server.port, **once), options.keys, options.rate)
        writer.start()
        log = folder / "import.txt"
        begun_s = time.monotonic()
        with log.open("ab") as output:
            process = subprocess.Popen(
                [binary(), "import", "--from", server.url, "--to", f"127.0.0.1:{cluster.port}", "--state",
                 str(folder / "state")],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )
        follows = lambda: "now following" in log.read_text() or process.poll() is not None  # noqa: E731
        wait_until(follows, 3_600, "it follows", pause=0.2)
        assert process.poll() is None, log.read_text()[-2_000:]
        snapshot_s = time.monotonic() - begun_s

        def lag():
            [replica] = [value for key, value in source.info("replication").items() if key.startswith("slave")] or [{}]
            return source.info("replication")["master_repl_offset"] - replica.get("offset", 0)

        wait_until(lambda: lag() < 200_000, 3_600, "it has caught up", pause=0.2)
        caught_up_s = time.monotonic() - begun_s
        written_before = writer.answered
        time.sleep(options.seconds)
        rate = (writer.answered - written_before) / options.seconds
        waits = wait_until(lambda: lag() < 200_000, 600, "it is close") and server.client()

        def switch():
            # Nothing is written any more; the import acknowledges what it has applied.
            acknowledged = waits.wait(1, 60_000)
            assert acknowledged == 1, "the import acknowledges"
            return redis.Redis("127.0.0.1", cluster.port, **once)

        writer.next = switch
        wait_until(lambda: writer.first_s is not None or writer.failure, 120, "the writer has gone over")
        time.sleep(2)
        writer.over.set()
        writer.join(30)
        assert writer.failure is None, writer.failure
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
        report = log.read_text()
        assert status == 0, report[-2_000:]
        target = redis.Redis("127.0.0.1", cluster.port, socket_timeout=60)
        compared = compare(source, target, writer.answered)
        compared += check_hashes(target, source, writer, options.keys)
        applied = re.findall(r"(\d+) commands applied", report)
        return {
            "keys at the start": loaded, "writes a second while it followed": round(rate),
            "seconds until the snapshot was imported": round(snapshot_s),
            "seconds until it had caught up": round(caught_up_s),
            "writes before the cut": writer.before, "writes after it": writer.answered - writer.before,
            "commands applied from the stream": int(applied[-1]) if applied else 0,
            "pause of the writer in ms": round(1_000 * (writer.first_s - writer.last_s)),
            "keys compared, all equal": compared, "answered writes looked for, all found": writer.answered,
        }
    finally:
        if process is not None:
            process.kill()
            process.wait()
        cluster.close()
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=10, help="how long it is followed when it has caught up")
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cutover") as folder:
        found = measure(options, pathlib.Path(folder))
    lines = ["| what | found |", "|---|--:|", *(f"| {what} | {value:,} |" for what, value in found.items())]
    print("\n".join(lines))
    if options.record:
        options.record.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
