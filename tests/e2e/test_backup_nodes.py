"""`ensue backup` of a datacenter with several nodes, with replicas and without: of one moment, restored into one node."""

import json
import shutil
import signal
import threading

import pytest
import redis
from cluster import Cluster, ensue, key_in, wait_until
from replicated import PARTITIONS, Group

WRITERS = 4


@pytest.fixture
def group(tmp_path):
    groups = []

    def start(nodes, replicas):
        folder = tmp_path / "source"
        folder.mkdir()
        one = Group(folder, tuple(("dc1", number) for number in range(nodes)), replicas)
        groups.append(one)
        for number in range(nodes):
            one.start(number)
        for number in range(nodes):
            one.wait_until_all_serve(number)
        return one

    yield start
    for one in groups:
        one.close()


@pytest.fixture
def target(tmp_path):
    """One node, and another number of partitions."""
    folder = tmp_path / "target"
    folder.mkdir()
    cluster = Cluster(folder, datacenters=1, partitions=3, flags=["--set", "metrics-port=0"])
    cluster.start()
    yield cluster
    cluster.close()


def backup(group, number, copies):
    return ensue("backup", "--to", copies, "--from", f"127.0.0.1:{group.base + number}", timeout=60)


def restore(folder, target, *flags):
    return ensue("restore", "--from", folder, "--to", f"127.0.0.1:{target.port}", *flags, timeout=60)


class Writer(threading.Thread):
    """Counts up in one key, and then in the other, which never overtakes it: by two connections to two nodes."""

    def __init__(self, group, number, nodes):
        super().__init__(daemon=True)
        self.first = key_in(number % PARTITIONS, PARTITIONS, f"w{number}:first")
        self.second = key_in((number + 1) % PARTITIONS, PARTITIONS, f"w{number}:second")
        self.clients = [group.client(0), group.client(nodes - 1)]
        self.done, self.over = 0, threading.Event()

    def run(self):
        count = 0
        while not self.over.is_set():
            count += 1
            self.set(0, self.first, count)
            self.set(1, self.second, count)
            self.done = count

    def set(self, client, key, count):
        # It may be sent twice: owners move while nodes start.
        while not self.over.is_set():
            try:
                return self.clients[client].set(key, count)
            except redis.ResponseError:
                self.over.wait(0.01)


@pytest.mark.parametrize(("nodes", "replicas"), [(2, "1"), (3, "3")])
def test_a_backup_of_several_nodes_is_of_one_moment(group, target, tmp_path, nodes, replicas):
    one = group(nodes, replicas)
    one.ask(0, "HSET", "hash", "f", "1")
    writers = [Writer(one, number, nodes) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    folders = []
    try:
        for number in range(2):
            before = [writer.done for writer in writers]
            # Whichever node is asked.
            done = backup(one, number, tmp_path / f"copies{number}")
            assert done.returncode == 0, done.stdout + done.stderr
            folder, summary = done.stdout.splitlines()[-2:]
            assert f"{PARTITIONS} partitions" in summary and "sound" in summary
            folders.append((folder, before, [writer.done for writer in writers]))
    finally:
        for writer in writers:
            writer.over.set()
            writer.join(20)
    client = target.client(1)
    for folder, before, after in folders:
        done = restore(folder, target, "--replace")
        assert done.returncode == 0, done.stdout + done.stderr
        assert client.hgetall("hash") == {"f": "1"}
        for number, writer in enumerate(writers):
            first, second = (int(client.get(key) or 0) for key in (writer.first, writer.second))
            # The first key may be one ahead: its answer was on its way.
            assert second <= first <= second + 1, f"writer {number} shows {first} and then {second}"
            assert before[number] <= second <= after[number] + 1, "what was acknowledged before is there"


def test_without_a_node_there_is_no_copy_unless_others_have_its_partitions(group, target, tmp_path):
    one = group(3, "3")
    one.ask(0, "SET", "before", "1")
    one.end(2, signal.SIGKILL)
    one.wait_until_all_serve(0)
    done = backup(one, 1, tmp_path / "copies")
    assert done.returncode == 0, done.stdout + done.stderr
    assert restore(tmp_path / "copies", target).returncode == 0
    assert target.client(1).get("before") == "1"
    one.end(1, signal.SIGKILL)
    done = backup(one, 0, tmp_path / "none")
    assert done.returncode == 1 and "there is no copy" in done.stderr, done.stdout + done.stderr
    assert not list((tmp_path / "none").iterdir())


def test_a_part_of_a_datacenter_is_refused_by_name(group, target, tmp_path):
    one = group(2, "1")
    one.ask(0, "SET", "before", "1")
    done = backup(one, 1, tmp_path / "copies")
    assert done.returncode == 0, done.stdout + done.stderr
    [folder] = (tmp_path / "copies").iterdir()
    manifest = json.loads((folder / "backup.json").read_text())
    pieces = {piece["node"]: piece["partitions"] for piece in manifest["nodes"]}
    assert sorted(pieces) == [0, 1] and sorted(pieces[0] + pieces[1]) == list(range(PARTITIONS))
    lost = pieces[1][0]
    shutil.rmtree(folder / "dc1" / f"p{lost:04}")
    refused = restore(folder, target)
    assert refused.returncode == 1 and f"p{lost:04}" in refused.stderr, refused.stderr
    manifest["files"] = [file for file in manifest["files"] if not file["name"].startswith(f"p{lost:04}/")]
    (folder / "backup.json").write_text(json.dumps(manifest))
    refused = restore(folder, target)
    assert refused.returncode == 1 and f"partition {lost}, which node 1 had, is not in it" in refused.stderr, refused.stderr
    assert target.client(1).dbsize() == 0

    one.end(1, signal.SIGKILL)
    done = backup(one, 0, tmp_path / "none")
    assert done.returncode == 1 and "node 1: " in done.stderr, done.stdout + done.stderr

    with one.client(0) as client:
        for words, refusal in [
            ("BEGIN x", "several nodes"),
            ("NODE 2 BEGIN x HOLD 10", "nodes of this datacenter are 0 to 1"),
            ("NODE 0 BEGIN x HOLD 201", "held for 1 to 200 ms"),
            ("NODE 0 BEGIN x HOLD 0", "held for 1 to 200 ms"),
            ("NODE 0", "syntax error"),
            ("NODE 0 LIST x", "no backup of this name"),
            ("NODE 1 LIST x", "there is no link to that node"),
        ]:
            with pytest.raises(redis.ResponseError, match=refusal):
                client.execute_command("CAUSAL", "BACKUP", *words.split())
        steps = client.execute_command("CAUSAL", "BACKUP", "NODE", 0, "BEGIN", "x", "HOLD", 10)
        assert len(steps) == 3 and steps[1] == 10_000
        assert client.execute_command("CAUSAL", "BACKUP", "NODE", 0, "END", "x") == "OK"
        assert client.execute_command("CAUSAL", "BACKUP", "NODES") == 2


def test_a_node_that_is_asked_by_another_one_says_what_it_is_asked(group):
    one = group(2, "1")
    with one.client(0) as client:
        ask = client.execute_command
        wait_until(lambda: "up" in str(client.info("ensue").get("ensue_link_dc1", "up")), 10, "the nodes are linked")
        assert ask("CAUSAL", "BACKUP", "NODE", 1, "BEGIN", "x", "HOLD", 10)[1] == 10_000
        names = {name for name, _, _ in ask("CAUSAL", "BACKUP", "NODE", 1, "LIST", "x")}
        assert "shape" in names and sum(name.endswith("/superblock") for name in names) == PARTITIONS // 2
        assert ask("CAUSAL", "BACKUP", "NODE", 1, "READ", "x", "shape", 0, 5) == "ensue"
        with pytest.raises(redis.ResponseError, match="no file of this name"):
            ask("CAUSAL", "BACKUP", "NODE", 1, "READ", "x", "../shape", 0, 5)
        assert ask("CAUSAL", "BACKUP", "NODE", 1, "END", "x") == "OK"
