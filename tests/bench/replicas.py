#!/usr/bin/env python3
"""Kills nodes of a datacenter with replicas, again and again, and measures what replicas cost; prints Markdown.

    replicas.py [--runs 100] [--rounds 3] [--commands 200000] [--json FILE] [--record FILE]

Three nodes of dc1 keep each partition three times, beside one node of dc2. Clients write without a pause: increments,
and fields of hashes that are written once. In each run one node of dc1, in turn, is killed with -9, its directory is
deleted while the others serve, and it is started again with an empty one; the next run begins when it has every vote
and owns its share again. What was acknowledged is looked for after each run, and at the end on every node: each sum
and each field. A write whose answer was lost may be there or not.

An outage is the longest time between two answers that a client of one partition gets, which sends again at once, to
another node if one does not answer. Partitions that the killed node owned are counted apart from the others.

Then the processor time of commands is measured with one replica and with three, with and without a lease, in turns, so
that a busy machine is unfair to all alike: of all three processes, as the kernel counts it, for keys of the node that
the clients are connected to. It needs redis-benchmark, and the binary in ENSUE_BIN or target/release/ensue. Data lies
in a temporary folder. Only what was started here is stopped.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from cluster import key_in, wait_until  # noqa: E402
from fairness import processor_s  # noqa: E402
from replicated import PARTITIONS, Group  # noqa: E402

THREE = (("dc1", 0), ("dc1", 1), ("dc1", 2))
NODES = (*THREE, ("dc2", 0))
# Between two commands of a client: two clients a partition leave the machine something to do.
PAUSE_S = 0.004
# What a client may be told while an owner changes, or while a node starts or stops.
RETRIABLE = ("UNAVAILABLE", "UNKNOWN", "LOADING", "STOPPED", "TRYAGAIN")
# Of an error, that a write may have been made all the same.
UNKNOWN = ("UNKNOWN", "STOPPED")
COSTS = {
    "one replica": ("replicas 1",),
    "three replicas": ("replicas 3",),
    "three, with a lease": ("replicas 3", "replica-lease yes"),
}


class Answer(Exception):
    """An error that a node answers."""


class Client:
    """One connection, without anything that sends by itself."""

    def __init__(self, port, timeout=5):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        parts = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts))
        return self.read()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection has ended")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-":
            raise Answer(rest)
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        return [self.read() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.socket.close()


class Prober:
    """A client of one partition that asks without end, and knows when it was answered."""

    def __init__(self, group, partition):
        self.group, self.partition = group, partition
        self.key = key_in(partition, PARTITIONS, "count")
        self.number, self.client = partition, None
        # When the last answer came, and the longest time between two since somebody asked.
        self.last, self.longest = time.monotonic(), 0.0
        self.codes = {}
        self.lock = threading.Lock()

    def work(self, over):
        while not over.is_set():
            try:
                if self.client is None:
                    self.client = Client(self.group.base + self.number % len(THREE))
                self.step()
                self.answered()
                time.sleep(PAUSE_S)
            except Answer as error:
                code = str(error).split()[0]
                self.codes[code] = self.codes.get(code, 0) + 1
                time.sleep(PAUSE_S)
            except OSError:
                self.leave()
                time.sleep(PAUSE_S)

    def leave(self):
        """The next node is asked."""
        if self.client is not None:
            self.client.close()
        self.client, self.number = None, self.number + 1

    def answered(self):
        now = time.monotonic()
        with self.lock:
            self.longest = max(self.longest, now - self.last)
            self.last = now

    def take_longest(self):
        """The longest time since this was asked before; the present one counts."""
        with self.lock:
            longest = max(self.longest, time.monotonic() - self.last)
            self.longest = 0.0
            return longest


class Reader(Prober):
    def step(self):
        self.client.call("GET", self.key)


class Writer(Prober):
    """Counts, and writes fields that are written once, into a hash a run."""

    def __init__(self, group, partition):
        super().__init__(group, partition)
        self.acknowledged = self.unknown = self.written = 0
        self.fields, self.run = {0: set()}, 0

    def hash_of(self, run):
        # The same partition as its counter.
        return f"{{{self.key}}}:{run}"

    def step(self):
        with self.uncertain():
            self.client.call("INCR", self.key)
            self.acknowledged += 1
        run, self.written = self.run, self.written + 1
        self.client.call("HSET", self.hash_of(run), self.written, run)
        self.fields[run].add(str(self.written))

    @contextlib.contextmanager
    def uncertain(self):
        try:
            yield
        except Answer as error:
            self.unknown += str(error).startswith(UNKNOWN)
            raise
        except OSError:
            self.unknown += 1
            raise

    def begin_run(self, run):
        self.fields[run] = set()
        self.run = run

    def lost(self, client, runs):
        """What was acknowledged and is not there, in words."""
        least = self.acknowledged
        count = int(client.call("GET", self.key) or 0)
        # It counts on while this is asked.
        most = self.acknowledged + self.unknown + 1
        if not least <= count <= most:
            yield f"{self.key} is {count}, {least} were acknowledged and {self.unknown} are unknown"
        for run in runs:
            wanted = set(self.fields[run])
            found = client.call("HGETALL", self.hash_of(run))
            missing = wanted - set(found[::2])
            if missing:
                yield f"{len(missing)} of {len(wanted)} fields of {self.hash_of(run)}"


def retried(ask, timeout=30):
    """What may be asked twice."""
    end = time.monotonic() + timeout
    while True:
        try:
            return ask()
        except (Answer, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def ask(group, number, *words):
    def once():
        with contextlib.closing(Client(group.base + number)) as client:
            return client.call(*words)

    return retried(once)


def groups_of(group, number):
    """Of each partition its owner, and who has a vote in it."""
    found = []
    for partition in range(PARTITIONS):
        text = ask(group, number, "CAUSAL", "REPLICAS", partition)
        fields = dict(line.split(":", 1) for line in text.split())
        members = {int(name[4:]): value.split(",") for name, value in fields.items() if name.startswith("node")}
        voters = {node for node, value in members.items() if "vote=yes" in value and "heard=yes" in value}
        found.append((int(fields["owner"]), voters))
    return found


class Kills:
    """The runs."""

    def __init__(self, group, progress):
        self.group, self.progress = group, progress
        self.writers = [Writer(group, partition) for partition in range(PARTITIONS)]
        self.readers = [Reader(group, partition) for partition in range(PARTITIONS)]
        self.probers = [*self.writers, *self.readers]
        self.over = threading.Event()
        self.threads = [threading.Thread(target=prober.work, args=(self.over,)) for prober in self.probers]
        self.found = {name: [] for name in ("write", "read", "other write", "other read", "calm")}
        self.rejoins, self.returns, self.lost, self.owned = [], [], [], []

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(20)

    def take(self, owned=None):
        """Longest times without an answer since this was last asked: of these partitions, and of all others."""
        for prober in self.probers:
            name, longest = "write" if prober in self.writers else "read", prober.take_longest()
            if owned is None:
                self.found["calm"].append(longest)
            else:
                self.found[name if prober.partition in owned else f"other {name}"].append(longest)

    def run(self, run):
        group, number = self.group, run % len(THREE)
        other = (number + 1) % len(THREE)
        for writer in self.writers:
            writer.begin_run(run)
        self.wait_until_owned(number, other)
        for prober in self.probers:
            prober.take_longest()
        time.sleep(0.5)
        self.take()
        owned = [partition for partition, (owner, _) in enumerate(groups_of(group, other)) if owner == number]
        for prober in self.probers:
            prober.take_longest()
        group.end(number, signal.SIGKILL)
        shutil.rmtree(group.data(number))
        since = time.monotonic()
        wait_until(lambda: self.all_answered(since), 30, "all partitions take writes again")
        time.sleep(0.5)
        self.take(owned)
        self.owned.append(len(owned))
        began = time.monotonic()
        group.start(number)
        everyone = set(range(len(THREE)))
        whole = lambda: all(voters == everyone for _, voters in groups_of(group, other))  # noqa: E731
        wait_until(whole, 60, f"node {number} has every vote again")
        self.rejoins.append(time.monotonic() - began)
        self.wait_until_owned(number, other)
        self.returns.append(time.monotonic() - began)
        self.look(number, [run])

    def wait_until_owned(self, number, other):
        """Until a node owns what it is meant to."""
        share = set(range(number, PARTITIONS, len(THREE)))
        owned = lambda: {place for place, (owner, _) in enumerate(groups_of(self.group, other)) if owner == number}  # noqa: E731
        wait_until(lambda: share <= owned(), 60, f"node {number} owns its share")

    def all_answered(self, since):
        return all(prober.last > since for prober in self.probers)

    def look(self, number, runs):
        """Whether a node shows what was acknowledged before."""
        def once():
            with contextlib.closing(Client(self.group.base + number, 60)) as client:
                return [words for writer in self.writers for words in writer.lost(client, runs)]

        found = retried(once)
        for words in found:
            self.progress(f"LOST, node {number}: {words}")
        self.lost += [f"node {number}: {words}" for words in found]


def kills(arguments, progress):
    with tempfile.TemporaryDirectory() as folder:
        group = Group(pathlib.Path(folder), NODES, "3 dc2:1", f"appendfsync {arguments.appendfsync}")
        with contextlib.closing(group):
            for number in range(len(NODES)):
                group.start(number)
            group.wait_until_all_serve(0)
            try:
                with Kills(group, progress) as all_runs:
                    for run in range(arguments.runs):
                        all_runs.run(run)
                        write, own = all_runs.found["write"], all_runs.owned[-1]
                        worst = max(write[-own:], default=0) if own else 0
                        progress(f"run {run}: {worst:.2f} s without writes, back after {all_runs.rejoins[-1]:.1f} s")
                runs = range(arguments.runs)
                # What came last is on its way to dc2.
                wait_until(lambda: agree(group), 30, "all nodes have the same data")
                for number in range(len(NODES)):
                    all_runs.look(number, runs)
            except BaseException:
                keep_logs(group, arguments)
                raise
            if all_runs.lost:
                keep_logs(group, arguments)
        return result_of(all_runs, arguments)


def keep_logs(group, arguments):
    if arguments.keep:
        shutil.copytree(group.directory, arguments.keep, dirs_exist_ok=True)


def agree(group):
    return len({str(ask(group, number, "CAUSAL", "DIGEST")) for number in range(len(NODES))}) == 1


def result_of(all_runs, arguments):
    codes = {}
    for prober in all_runs.probers:
        for code, count in prober.codes.items():
            codes[code] = codes.get(code, 0) + count
    return {
        "runs": arguments.runs,
        "appendfsync": arguments.appendfsync,
        "lost": all_runs.lost,
        "increments": sum(writer.acknowledged for writer in all_runs.writers),
        "fields": sum(len(fields) for writer in all_runs.writers for fields in writer.fields.values()),
        "unknown": sum(writer.unknown for writer in all_runs.writers),
        "codes": codes,
        "other_codes": sorted(set(codes) - set(RETRIABLE)),
        "owned": sum(all_runs.owned),
        "outage_s": {name: spread(values) for name, values in all_runs.found.items()},
        "rejoin_s": spread(all_runs.rejoins),
        "owns_again_s": spread(all_runs.returns),
    }


def spread(values):
    """Median, 95 in a hundred, and worst."""
    values = sorted(values)
    if not values:
        return None
    most = values[min(int(0.95 * len(values)), len(values) - 1)]
    return [round(one, 3) for one in (statistics.median(values), most, values[-1])]


class Costs:
    """Datacenters of three nodes that differ in their replicas."""

    def __init__(self, arguments, stack):
        self.arguments, self.groups, self.idle = arguments, {}, {}
        for name, (replicas, *more) in COSTS.items():
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            group = Group(folder, THREE, replicas.split()[1], *more)
            stack.enter_context(contextlib.closing(group))
            for number in range(len(THREE)):
                group.start(number)
            group.wait_until_all_serve(0)
            self.groups[name] = group
        self.tags = {name: self.own_tag(group) for name, group in self.groups.items()}

    def own_tag(self, group):
        """What keys begin with that live on the node which is asked."""
        if "replicas 1" in group.directives:
            # The first partition is on the first node.
            return key_in(0, PARTITIONS, "tag")

        def owned():
            return [partition for partition, (owner, _) in enumerate(groups_of(group, 0)) if owner == 0]

        return key_in(wait_until(owned, 60, "the first node owns a partition")[0], PARTITIONS, "tag")

    def used_s(self, name):
        return sum(processor_s(process.pid) for process in self.groups[name].running.values())

    def trial(self, name, words, clients, pipeline, commands):
        """Microseconds of processor time a command, and the median of what a client waits in milliseconds.

        What three idle processes would have taken meanwhile is none of the commands': it is more, the busier the
        machine is with other things."""
        command = ["redis-benchmark", "-p", self.groups[name].base, "-c", clients, "-P", pipeline, "-n", commands]
        command += ["-r", 10_000, "--csv", *words]
        before, began = self.used_s(name), time.monotonic()
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        used = self.used_s(name) - before - self.idle[name] * (time.monotonic() - began)
        median = float(done.stdout.splitlines()[-1].split('","')[4])
        return 1e6 * used / commands, median

    def measure(self, progress):
        found = {}
        for number in range(self.arguments.rounds):
            names = list(self.groups)
            for name in names if number % 2 == 0 else reversed(names):
                self.idle[name] = self.idle_share(name)
                key = f"{{{self.tags[name]}}}:__rand_int__"
                for what, words in (("SET", ("SET", key, "x" * 32)), ("GET", ("GET", key))):
                    us, _ = self.trial(name, words, 50, 16, self.arguments.commands)
                    _, waits = self.trial(name, words, 1, 1, self.arguments.commands // 40)
                    found.setdefault(f"{what}, {name}", []).append((us, waits))
                found.setdefault(f"idle, {name}", []).append((1e3 * self.idle[name], 0))
            progress(f"round {number} of {self.arguments.rounds} of the costs is done")
        return {key: [round(statistics.median(part), 3) for part in zip(*values)] for key, values in found.items()}

    def idle_share(self, name):
        """The part of a core that three processes take for nothing."""
        before, began = self.used_s(name), time.monotonic()
        time.sleep(5)
        return (self.used_s(name) - before) / (time.monotonic() - began)


def costs(arguments, progress):
    with contextlib.ExitStack() as stack:
        return Costs(arguments, stack).measure(progress)


def report(result):
    lines = []
    if kill := result.get("kills"):
        lines += report_of_kills(kill)
    if cost := result.get("costs"):
        lines += ["", "| | SET, µs | ratio | GET, µs | ratio | SET alone, ms | GET alone, ms | idle, ‰ of a core |"]
        lines += ["|---|--:|--:|--:|--:|--:|--:|--:|"]
        for name in COSTS:
            (set_us, set_ms), (get_us, get_ms), (idle, _) = (cost[f"{what}, {name}"] for what in ("SET", "GET", "idle"))
            ratios = [us / cost[f"{what}, one replica"][0] for us, what in ((set_us, "SET"), (get_us, "GET"))]
            lines += [
                f"| {name} | {set_us:.2f} | {ratios[0]:.2f} | {get_us:.2f} | {ratios[1]:.2f} | {set_ms:.3f} "
                f"| {get_ms:.3f} | {idle:.0f} |"
            ]
    return "\n".join(lines) + "\n"


def report_of_kills(kill):
    codes = ", ".join(f"`{code}` {count:,}" for code, count in sorted(kill["codes"].items())) or "none"
    lines = [
        f"{kill['runs']} kills (`appendfsync {kill['appendfsync']}`), after which {kill['owned']} partitions got another "
        f"owner. Acknowledged were {kill['increments']:,} increments and {kill['fields']:,} fields; lost: "
        f"{len(kill['lost'])}. Unknown increments: {kill['unknown']}. Errors: {codes}.",
        "",
        "| seconds | median | 95 % | worst |", "|---|--:|--:|--:|",
    ]
    names = {
        "write": "no write, of a partition that the killed node owned", "read": "no read of such a partition",
        "other write": "no write, of another partition", "other read": "no read of another partition",
        "calm": "half a second before, of any",
    }
    rows = {title: kill["outage_s"][name] for name, title in names.items()}
    rows |= {"until an empty node has every vote": kill["rejoin_s"], "until it owns its share again": kill["owns_again_s"]}
    for title, values in rows.items():
        lines += [f"| {title} | " + " | ".join(f"{value:.2f}" for value in values or [float('nan')] * 3) + " |"]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commands", type=int, default=200_000)
    parser.add_argument("--appendfsync", default="everysec")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="where files of a failed measurement are kept")
    arguments = parser.parse_args()

    def progress(words):
        print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)

    result = {}
    if arguments.runs:
        result["kills"] = kills(arguments, progress)
    if arguments.rounds:
        result["costs"] = costs(arguments, progress)
    text = report(result)
    print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.record:
        arguments.record.write_text(text)
    lost = result.get("kills", {})
    return 1 if lost.get("lost") or lost.get("other_codes") else 0


if __name__ == "__main__":
    sys.exit(main())
