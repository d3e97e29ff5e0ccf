"""`ensue cluster`: replicas move from node to node while clients write, and nothing acknowledged is lost."""

import signal
import subprocess

import pytest
import redis
from cluster import Crew, binary, wait_until
from replicated import Counter, Group, adds_up

# Five nodes of dc1, of which each partition is on three, and one of dc2.
NODES = (("dc1", 0), ("dc1", 1), ("dc1", 2), ("dc1", 3), ("dc1", 4), ("dc2", 0))


# What a client is answered while an owner changes, or while all nodes stop; it tries again.
TRANSIENT = {"UNAVAILABLE", "UNKNOWN", "LOADING", "STOPPED"}


@pytest.fixture
def group(tmp_path):
    groups = []

    def start(nodes=NODES, *directives):
        one = Group(tmp_path, nodes, "3 dc2:1", *directives)
        groups.append(one)
        for number in range(len(nodes)):
            one.start(number)
        one.wait_until_all_serve(0)
        return one

    yield start
    for one in groups:
        one.close()


def cluster(group, at, *words):
    """What `ensue cluster` says when it asks that node, and its exit status."""
    command = [binary(), "cluster", *words, "--at", f"127.0.0.1:{group.base + at}"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    return done.returncode, done.stdout + done.stderr


def replicas_on(group, at, node):
    """How many replicas a node has, as `ensue cluster show` says."""
    status, text = cluster(group, at, "show")
    assert status == 0, text
    [line] = [line for line in text.splitlines() if line.split()[:2] == ["node", str(node)]]
    return int(line.split()[2])


def files_of_partitions(group, number):
    return [path.name for path in group.data(number).glob("dc1/p*/*") if path.name != "reserve"]


def test_a_node_is_drained_and_filled_again_under_load(group):
    one = group()
    crew = Crew()
    counters = [Counter(one, crew, 7 * number, nodes=5) for number in range(3)]
    for counter in counters:
        crew.add(counter.work)
    status, text = cluster(one, 1, "drain", "0", "--yes")
    assert status == 0 and "done" in text, text
    assert replicas_on(one, 1, 0) == 0
    wait_until(lambda: not files_of_partitions(one, 0), 20, "nothing of the partitions is left there")
    # It goes on serving clients, and whatever happens to it is nothing to the partitions.
    one.end(0, signal.SIGKILL)
    crew.sleep(0.5)
    one.start(0)
    one.wait_until_all_serve(0)
    assert replicas_on(one, 0, 0) == 0, "what the configuration says is not what the group has agreed on"
    status, text = cluster(one, 3, "balance", "--yes")
    assert status == 0, text
    assert replicas_on(one, 2, 0) in (2, 3)
    # What has moved is there after a start, too.
    for number in range(5):
        one.end(number)
    for number in range(5):
        one.start(number)
    one.wait_until_all_serve(4)
    assert replicas_on(one, 4, 0) in (2, 3)
    crew.stop()
    assert sum(sum(counter.acknowledged.values()) for counter in counters) > 100
    assert all(counter.codes <= TRANSIENT for counter in counters), [counter.codes for counter in counters]
    for number in range(len(NODES)):
        wait_until(lambda number=number: adds_up(one, number, counters), 20, f"node {number} has what was acknowledged")


def test_replicas_leave_a_node_that_is_dead_and_it_learns_that_when_it_returns(group):
    one = group()
    one.ask(0, "SET", "before", "1")
    assert files_of_partitions(one, 1)
    one.end(1, signal.SIGKILL)
    status, text = cluster(one, 2, "drain", "1", "--yes")
    assert status == 0, text
    # Two more may fail now, one after the other.
    one.ask(0, "SET", "meanwhile", "2")
    one.start(1)
    wait_until(lambda: not files_of_partitions(one, 1), 20, "its old directories are given up")
    assert replicas_on(one, 0, 1) == 0
    assert one.ask(1, "MGET", "before", "meanwhile") == ["1", "2"]


def test_a_datacenter_gets_a_further_node_by_a_rolling_restart(group):
    before = (("dc1", 0), ("dc1", 1), ("dc1", 2), ("dc2", 0))
    one = group(before)
    crew = Crew()
    counters = [Counter(one, crew, 7 * number) for number in range(3)]
    for counter in counters:
        crew.add(counter.work)
    # The line of the new node is the last one of its datacenter; the numbers of these processes stay what they were.
    one.nodes = (*before, ("dc1", 3))
    for number in range(4):
        crew.sleep(0.5)
        one.end(number)
        one.start(number)
        one.wait_until_all_serve(number)
    one.start(4)
    one.wait_until_all_serve(4)
    assert replicas_on(one, 4, 3) == 0
    status, text = cluster(one, 4, "balance", "--yes")
    assert status == 0, text
    assert [replicas_on(one, 0, node) for node in range(4)] == [3, 3, 3, 3]
    crew.stop()
    assert all(counter.codes <= TRANSIENT for counter in counters), [counter.codes for counter in counters]
    for number in range(5):
        wait_until(lambda number=number: adds_up(one, number, counters), 20, f"node {number} has what was acknowledged")


def test_what_cannot_be_moved_is_refused_and_a_plan_moves_nothing(group):
    nodes = (("dc1", 0), ("dc1", 1), ("dc1", 2), ("dc2", 0))
    one = group(nodes)
    status, text = cluster(one, 0, "drain", "1", "--yes")
    assert status == 1 and "start another node first" in text, text
    assert "nothing is to be moved" in cluster(one, 0, "balance")[1]
    status, text = cluster(one, 0, "move", "0", "--from", "0", "--to", "1")
    assert status == 1 and "node 1 has a replica of partition 0 already" in text, text
    status, text = cluster(one, 3, "show")
    assert status == 1 and "`replicas` is 1 in this datacenter" in text, text
    with one.client(0) as client:
        for words, refusal in [
            ("CAUSAL MOVE 0 0 1", "the node to move to has a replica already"),
            ("CAUSAL MOVE 0 0 3", "nodes of this datacenter are 0 to 2"),
            ("CAUSAL MOVE 4 0 1", "partitions are 0 to 3"),
            ("CAUSAL MOVE 0 0", "wrong number of arguments for 'causal|move'"),
            ("CAUSAL REPLICAS x", "partitions are 0 to 3"),
        ]:
            with pytest.raises(redis.ResponseError, match=refusal.replace("|", r"\|")):
                client.execute_command(*words.split())
        text = client.execute_command("CAUSAL", "REPLICAS", "0")
        assert sorted(line.split(":")[0] for line in text.split() if line.startswith("node")) == ["node0", "node1", "node2"]


def test_a_plan_is_carried_out_when_somebody_agrees(group):
    one = group()
    status, text = cluster(one, 0, "drain", "0")
    assert status == 2 and "nothing was moved" in text, text
    status, text = cluster(one, 0, "drain", "0", "--dry-run")
    assert status == 0 and "replicas now, and 0 then" in text, text
    assert replicas_on(one, 0, 0) > 0
