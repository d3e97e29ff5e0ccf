"""Partitions on three nodes: any node is killed and loses its directory, under load, and nothing acknowledged is lost."""

import contextlib
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest
import redis
from cluster import Crew, binary, wait_until
from replicated import KEYS, PARTITIONS, Counter, Group, adds_up

# Three nodes of dc1, which keep each partition three times, and one of dc2.
NODES = (("dc1", 0), ("dc1", 1), ("dc1", 2), ("dc2", 0))
REPLICAS = "3 dc2:1"


@pytest.fixture
def group(tmp_path):
    groups = []

    def start(*directives):
        one = Group(tmp_path, NODES, REPLICAS, *directives)
        groups.append(one)
        for number in range(len(NODES)):
            one.start(number)
        one.wait_until_all_serve(0)
        return one

    yield start
    for one in groups:
        one.close()


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
    owned = {line.split("partition ")[1].split()[0] for line in log.splitlines() if "is led by this core" in line}
    return bool(owned)


def test_the_owner_of_a_partition_heeds_parameters_from_the_start_and_after_an_election(group):
    one = group("min-replicas-to-write 1")

    def refusal(number):
        try:
            return "OK" if one.ask(number, "SET", KEYS[0], "1") else None
        except redis.ResponseError as error:
            return str(error).split()[0]

    wait_until(lambda: refusal(0) == "OK", 30, "dc2 follows")
    one.end(3, signal.SIGKILL)
    wait_until(lambda: refusal(0) == "NOREPLICAS", 30, "nobody follows, and the first owners know it")
    for number in (1, 2):
        one.ask(number, "CONFIG", "SET", "min-replicas-to-write", "0")
    one.end(0, signal.SIGKILL)
    wait_until(lambda: refusal(1) == "OK", 30, "the next owners have what was set on their nodes")


def test_a_node_that_stops_hands_its_partitions_over(group):
    one = group()
    one.ask(0, "SET", "before", "1")
    # Others may have been elected before this node was up: it takes its partitions over.
    wait_until(lambda: "is led by this core" in one.replica_states(0), 30, "it owns partitions")
    one.end(0)
    assert "is led by another core" in one.replica_states(0)
    assert one.ask(1, "GET", "before") == "1"
    one.ask(1, "SET", "meanwhile", "2")
    one.start(0)
    one.wait_until_all_serve(0)
    assert one.ask(0, "GET", "meanwhile") == "2"


def test_an_owner_with_a_damaged_log_leaves_its_partitions_to_the_others(group):
    one = group()
    wait_until(lambda: "partition p0 is led by this core" in one.replica_states(0), 30, "it owns what it is meant to")
    for number in range(400):
        one.ask(0, "SET", f"key:{number}", str(number))
    one.end(0)
    (log,) = one.data(0).glob("dc1/p0000/log-*")
    with log.open("r+b") as file:
        # Far from what a replica reads again when it starts.
        file.seek(log.stat().st_size // 20)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    before = len(one.replica_states(0))
    one.start(0)

    def states():
        return one.replica_states(0)[before:]

    wait_until(lambda: "on this disk is not what was written" in states(), 30, "the damage is found")
    wait_until(lambda: "the replica of partition p0 stopped: log-" in states(), 30, "its replica stops")
    for node in (1, 0):
        one.wait_until_all_serve(node)
        for number in range(0, 400, 7):
            assert one.ask(node, "GET", f"key:{number}") == str(number)
    # It goes the way of a node without a directory.
    one.end(0)
    shutil.rmtree(one.data(0) / "dc1/p0000")
    before = len(one.replica_states(0))
    one.start(0)
    wait_until(lambda: "partition p0 is led by this core" in states(), 60, "it is a full member again")


def test_a_missing_replica_is_on_the_page_of_who_leads(group):
    one = group()

    def figures(number):
        with urllib.request.urlopen(f"http://127.0.0.1:{one.metrics_port(number)}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def sums(*numbers):
        """Over these nodes, by role, and what the groups lack."""
        pages = [figures(number) for number in numbers]
        roles = {role: f'ensue_replica_partitions{{role="{role}"}}' for role in ("leader", "follower", "leaderless")}
        found = {role: sum(page[name] for page in pages) for role, name in roles.items()}
        for name in ("votes_missing", "fragile_partitions"):
            found[name] = sum(page[f"ensue_replica_{name}"] for page in pages)
        return found

    def are(expected, *numbers):
        # A node that starts is not asked at once.
        with contextlib.suppress(OSError):
            return sums(*numbers) == expected

    whole = {"leader": PARTITIONS, "follower": 2 * PARTITIONS, "leaderless": 0, "votes_missing": 0}
    whole |= {"fragile_partitions": 0}
    wait_until(lambda: are(whole, 0, 1, 2), 30, "every group is whole")
    one.end(2, signal.SIGKILL)
    lacking = {"leader": PARTITIONS, "follower": PARTITIONS, "leaderless": 0}
    lacking |= {"votes_missing": PARTITIONS, "fragile_partitions": PARTITIONS}
    wait_until(lambda: are(lacking, 0, 1), 30, "what is missing is counted")
    one.end(1, signal.SIGKILL)
    wait_until(lambda: figures(0)['ensue_replica_partitions{role="leaderless"}'] == PARTITIONS, 30, "nobody leads")
    with one.client(0) as client:
        assert client.info("ensue")["ensue_replica_leaderless_partitions"] == PARTITIONS
    one.start(1)
    one.start(2)
    wait_until(lambda: are(whole, 0, 1, 2), 60, "every group is whole again")
    # A datacenter without replicas shows none of this.
    assert not any("replica_partitions" in name or "replica_votes" in name for name in figures(3))


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
    config.write_text(config.read_text().replace(f"replicas {REPLICAS}", "replicas 1"))
    refused = subprocess.run([binary(), "server", "--config", str(config)], capture_output=True, text=True, timeout=20)
    assert refused.returncode != 0
    assert "3 replicas in the data and 1 in the configuration" in refused.stderr
