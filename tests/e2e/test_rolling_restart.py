"""Every node of three datacenters is restarted under load, and of five replicas two are lost: nobody notices for long."""

import contextlib
import re
import shutil
import signal
import urllib.request

import pytest
import redis
from cluster import Crew, wait_until
from replicated import KEYS, PARTITIONS, Counter, Group, adds_up

# What a client is answered while an owner changes, or while its node stops or starts: it asks again.
RETRIABLE = {"UNAVAILABLE", "UNKNOWN", "LOADING", "STOPPED"}


@pytest.fixture
def group(tmp_path):
    groups = []

    def start(nodes, replicas):
        one = Group(tmp_path, nodes, replicas)
        groups.append(one)
        for number in range(len(nodes)):
            one.start(number)
        one.wait_until_all_serve(0, 60)
        return one

    yield start
    for one in groups:
        one.close()


class Reader(Counter):
    """Reads what others count, in one datacenter, which never goes back there."""

    def __init__(self, group, crew, first):
        super().__init__(group, crew, 0)
        self.first, self.seen, self.reads = first, dict.fromkeys(KEYS, 0), 0

    def work(self):
        number = 0
        while not self.crew.stopped.is_set():
            number += 1
            try:
                # Three nodes of one datacenter, whose partitions each have one owner.
                with self.group.client(self.first + number % 3) as client:
                    for _ in range(20):
                        self.read(client)
                        if not self.crew.sleep(0.01):
                            return
            except (redis.RedisError, OSError):
                self.crew.sleep(0.02)

    def read(self, client):
        try:
            found = [int(value or 0) for value in client.mget(KEYS)]
        except redis.ResponseError as error:
            self.codes.add(str(error).split()[0])
            return
        self.reads += 1
        back = {key: (self.seen[key], value) for key, value in zip(KEYS, found) if value < self.seen[key]}
        assert not back, f"counters go back: {back}"
        self.seen = dict(zip(KEYS, found))


def test_every_node_of_three_datacenters_is_restarted_under_load(group):
    nodes = tuple((f"dc{datacenter}", node) for datacenter in (1, 2, 3) for node in range(3))
    one = group(nodes, "3")
    for number in range(len(nodes)):
        one.wait_until_all_serve(number, 60)
    crew = Crew()
    counters = [Counter(one, crew, 7 * number, nodes=len(nodes)) for number in range(3)]
    readers = [Reader(one, crew, first) for first in (0, 3)]
    for worker in [*counters, *readers]:
        crew.add(worker.work)
    for number in range(len(nodes)):
        crew.sleep(0.5)
        one.end(number)
        one.start(number)
        one.wait_until_all_serve(number)
    crew.stop()
    assert all(worker.codes <= RETRIABLE for worker in [*counters, *readers]), [one.codes for one in counters]
    assert sum(sum(counter.acknowledged.values()) for counter in counters) > 100
    assert all(reader.reads > 10 for reader in readers)
    for number in range(len(nodes)):
        wait_until(lambda number=number: adds_up(one, number, counters), 20, f"node {number} has what was acknowledged")


def test_of_five_replicas_two_may_be_lost_at_once(group):
    nodes = tuple(("dc1", node) for node in range(5))
    one = group(nodes, "5")
    crew = Crew()
    counters = [Counter(one, crew, 7 * number, nodes=5) for number in range(2)]
    for counter in counters:
        crew.add(counter.work)
    crew.sleep(0.5)
    lost = (0, 3)
    for number in lost:
        one.end(number, signal.SIGKILL)
    for number in lost:
        shutil.rmtree(one.data(number))
    one.wait_until_all_serve(1)
    one.ask(1, "SET", "meanwhile", "1")
    for number in lost:
        one.start(number)
    # Those that were lost are believed to have votes until the new ones say who they are.
    for number in lost:
        wait_until(lambda number=number: replicates_all(one, number), 60, f"node {number} is a full member again")
    wait_until(lambda: votes(one, 1) == {0, 1, 2, 3, 4}, 60, "all five have votes again")
    # Two others may be lost now.
    for number in (1, 2):
        one.end(number, signal.SIGKILL)
    one.wait_until_all_serve(0)
    crew.stop()
    assert one.ask(0, "GET", "meanwhile") == "1"
    for number in (0, 3, 4):
        wait_until(lambda number=number: adds_up(one, number, counters), 20, f"node {number} has what was acknowledged")


def replicates_all(group, number):
    """By its own word."""
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(f"http://127.0.0.1:{group.metrics_port(number)}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        counts = re.findall(r'^ensue_replica_partitions\{role="(?:leader|follower)"\} (\d+)', page, re.M)
        return sum(map(int, counts)) == PARTITIONS


def votes(group, number):
    """The nodes that have a vote in every partition."""
    found = []
    for partition in range(PARTITIONS):
        text = group.ask(number, "CAUSAL", "REPLICAS", partition)
        lines = [line for line in text.split() if line.startswith("node") and "vote=yes,heard=yes" in line]
        found.append({int(line.split(":")[0][4:]) for line in lines})
    return set.intersection(*found)
