"""Partitions on three nodes: any node is killed and loses its directory, under load, and nothing acknowledged is lost."""

import shutil
import signal
import subprocess
import time

import pytest
import redis
from cluster import Crew, binary, wait_until
from ports import PEERS, Ports

# Three nodes of dc1, which keep each partition three times, and one of dc2.
NODES = (("dc1", 0), ("dc1", 1), ("dc1", 2), ("dc2", 0))
REPLICAS = "replicas 3 dc2:1"
PARTITIONS = 4
KEYS = [f"counter:{number}" for number in range(24)]


class Group:
    """Server processes of two datacenters on free ports."""

    def __init__(self, directory, *directives):
        self.directory = directory
        self.ports = Ports()
        self.base = self.ports.first
        self.directives = directives
        self.running = {}

    def data(self, number):
        return self.directory / f"data{number}"

    def start(self, number):
        ports = [self.base + PEERS + 8 * one for one in range(len(NODES))]
        nodes = [f"node {name} 127.0.0.1:{port} cores 1" for (name, _), port in zip(NODES, ports)]
        name, index = NODES[number]
        own = [f"self {name} {index}", f"port {self.base + number}", "bind 127.0.0.1", f"dir {self.data(number)}"]
        lines = [f"partitions {PARTITIONS}", REPLICAS, "loglevel notice", *nodes, *own, *self.directives, ""]
        config = self.directory / f"node{number}.conf"
        config.write_text("\n".join(lines))
        with (self.directory / f"node{number}.log").open("ab") as log:
            self.running[number] = subprocess.Popen(
                [binary(), "server", "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def end(self, number, how=signal.SIGTERM):
        process = self.running.pop(number)
        process.send_signal(how)
        process.wait(20)

    def client(self, number, timeout=10):
        return redis.Redis(
            port=self.base + number, socket_timeout=timeout, decode_responses=True, single_connection_client=True
        )

    def wait_until_all_serve(self, number, timeout=30):
        def serves():
            try:
                with self.client(number) as client:
                    return len(client.mget(KEYS)) == len(KEYS)
            except (redis.RedisError, OSError):
                return False

        wait_until(serves, timeout, f"node {number} reads every partition")

    def ask(self, number, *words):
        """What a command answers that may be sent twice: a partition may be on its way to another node."""
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.client(number) as client:
                    return client.execute_command(*words)
            except (redis.RedisError, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def replica_states(self, number):
        """What has become of the partitions of a node, by its log."""
        return (self.directory / f"node{number}.log").read_text()

    def close(self):
        for number in list(self.running):
            self.running[number].kill()
            self.running[number].wait()
        self.ports.close()


@pytest.fixture
def group(tmp_path):
    groups = []

    def start(*directives):
        one = Group(tmp_path, *directives)
        groups.append(one)
        for number in range(len(NODES)):
            one.start(number)
        one.wait_until_all_serve(0)
        return one

    yield start
    for one in groups:
        one.close()


class Counter:
    """Increments through any node of dc1; knows how often that was acknowledged, and how often it may have been."""

    def __init__(self, group, crew, offset):
        self.group, self.crew, self.offset = group, crew, offset
        self.acknowledged = dict.fromkeys(KEYS, 0)
        self.unknown = dict.fromkeys(KEYS, 0)

    def work(self):
        number = self.offset
        while not self.crew.stopped.is_set():
            number += 1
            try:
                with self.group.client(number % 3) as client:
                    for _ in range(50):
                        number += 1
                        self.step(client, KEYS[number % len(KEYS)])
                        if self.crew.stopped.is_set():
                            return
            except (redis.RedisError, OSError):
                self.crew.sleep(0.02)

    def step(self, client, key):
        try:
            client.incr(key)
            self.acknowledged[key] += 1
        except redis.ResponseError as error:
            # Nothing happened, or it is said that something may have.
            self.unknown[key] += str(error).startswith("UNKNOWN")
        except (redis.RedisError, OSError):
            self.unknown[key] += 1
            raise


@pytest.mark.parametrize("directives", [(), ("appendfsync always", "replica-lease yes")])
def test_any_node_may_lose_its_directory(group, directives):
    one = group(*directives)
    crew = Crew()
    counters = [Counter(one, crew, 7 * number) for number in range(4)]
    for counter in counters:
        crew.add(counter.work)
    for number in range(3):
        crew.sleep(0.5)
        one.end(number, signal.SIGKILL)
        others = [other for other in range(3) if other != number]
        for other in others:
            one.wait_until_all_serve(other)
        shutil.rmtree(one.data(number))
        one.start(number)
        one.wait_until_all_serve(number)
        # Until it has everything, and its vote, the next one may not be lost.
        wait_until(lambda number=number: has_votes(one, number), 30, "it is a full member again")
    crew.stop()
    for number in range(len(NODES)):
        wait_until(lambda number=number: adds_up(one, number, counters), 20, f"node {number} has what was acknowledged")


def has_votes(group, number):
    """The node owns partitions again, which only a member with a vote is given."""
    log = group.replica_states(number).rsplit("clients are served", 1)[-1]
    owned = {line.split("partition ")[1].split()[0] for line in log.splitlines() if "lives here" in line}
    return bool(owned)


def adds_up(group, number, counters):
    try:
        with group.client(number) as client:
            found = [int(value or 0) for value in client.mget(KEYS)]
    except (redis.RedisError, OSError):
        return False
    for key, value in zip(KEYS, found):
        least = sum(counter.acknowledged[key] for counter in counters)
        most = least + sum(counter.unknown[key] for counter in counters)
        if not least <= value <= most:
            return False
    return True


def test_a_node_that_stops_hands_its_partitions_over(group):
    one = group()
    one.ask(0, "SET", "before", "1")
    # Others may have been elected before this node was up: it takes its partitions over.
    wait_until(lambda: "lives here" in one.replica_states(0), 30, "it owns partitions")
    one.end(0)
    assert "lives elsewhere" in one.replica_states(0)
    assert one.ask(1, "GET", "before") == "1"
    one.ask(1, "SET", "meanwhile", "2")
    one.start(0)
    one.wait_until_all_serve(0)
    assert one.ask(0, "GET", "meanwhile") == "2"


def test_two_of_three_are_needed(group):
    one = group()
    one.end(1, signal.SIGKILL)
    one.end(2, signal.SIGKILL)
    with one.client(0) as client:
        deadline = time.monotonic() + 20
        while True:
            # What it remembers may be old: it says nothing.
            try:
                client.get(KEYS[0])
                assert time.monotonic() < deadline, "a replica that is alone answers"
            except redis.ResponseError as error:
                assert str(error).startswith(("UNAVAILABLE", "UNKNOWN")), error
                break
    one.start(1)
    one.wait_until_all_serve(0)


def test_replicas_fit_the_nodes_and_the_data(group, tmp_path):
    words = ["server", "--dir", str(tmp_path / "none"), "--port", "0", "--replicas", "3"]
    refused = subprocess.run([binary(), *words], capture_output=True, text=True, timeout=20)
    assert refused.returncode != 0
    assert "has 1 nodes, and `replicas` asks for 3" in refused.stderr
    one = group()
    one.end(0)
    config = tmp_path / "node0.conf"
    config.write_text(config.read_text().replace(REPLICAS, "replicas 1"))
    refused = subprocess.run([binary(), "server", "--config", str(config)], capture_output=True, text=True, timeout=20)
    assert refused.returncode != 0
    assert "3 replicas in the data and 1 in the configuration" in refused.stderr
