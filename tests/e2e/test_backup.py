"""`ensue backup` and `ensue restore`: copies of one moment, made under load, written into clusters of other shapes."""

import contextlib
import json
import re
import shutil
import threading
import time

import pytest
import redis
from cluster import Cluster, ensue, keys_over_all, wait_until

WRITERS = 4
PAIRS = 2
PARTITIONS = 8


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three datacenters, of four cores each."""
    flags = ["--cores", 4, "--set", "metrics-port=0"]
    cluster = Cluster(tmp_path_factory.mktemp("source"), delay="5ms", partitions=PARTITIONS, flags=flags)
    cluster.start()
    yield cluster
    cluster.close()


@pytest.fixture
def target(tmp_path):
    """A cluster of another shape, with another protocol."""
    folder = tmp_path / "target"
    folder.mkdir()
    flags = ["--protocol", "cure", "--set", "metrics-port=0"]
    cluster = Cluster(folder, delay="1ms", datacenters=2, partitions=3, flags=flags)
    cluster.start()
    yield cluster
    cluster.close()


def backup(cluster, copies, datacenter=1, *flags):
    done = ensue("backup", "--to", copies, "--from", f"127.0.0.1:{cluster.client_port(datacenter)}", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    folder, summary = done.stdout.splitlines()[-2:]
    return folder, summary


def restore(folder, cluster, *flags):
    return ensue("restore", "--from", folder, "--to", f"127.0.0.1:{cluster.client_port(1)}", *flags)


class Writer(threading.Thread):
    """Counts up in one key, and then in the other, which never overtakes it: by two connections, which know nothing of
    each other, and are served by two cores. The keys live on different cores."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        places = keys_over_all(PARTITIONS, f"w{number}:", PARTITIONS)
        self.first, self.second = places[number % PARTITIONS], places[(number + 3) % PARTITIONS]
        self.clients = [cluster.client(1) for _ in range(2)]
        self.done, self.over = 0, threading.Event()

    def run(self):
        count = 0
        while not self.over.is_set():
            count += 1
            self.clients[0].set(self.first, count)
            self.clients[1].set(self.second, count)
            self.done = count


class Pair(Writer):
    """Counts up in both keys by one transaction, which is in a backup as a whole or not at all."""

    def run(self):
        count = 0
        while not self.over.is_set():
            count += 1
            pipe = self.clients[0].pipeline(transaction=True)
            pipe.set(self.first, count)
            pipe.set(self.second, count)
            pipe.execute()
            self.done = count


def test_a_backup_is_of_one_moment(source, target, tmp_path):
    writers = [Writer(source, number) for number in range(WRITERS)]
    writers += [Pair(source, WRITERS + number) for number in range(PAIRS)]
    for writer in writers:
        writer.start()
    folders = []
    try:
        for _ in range(3):
            before = [writer.done for writer in writers]
            folder, summary = backup(source, tmp_path / "copies")
            folders.append((folder, before, [writer.done for writer in writers]))
            assert "sound" in summary
            time.sleep(1)
    finally:
        for writer in writers:
            writer.over.set()
            writer.join(10)
    client = target.client(2)
    for folder, before, after in folders:
        done = restore(folder, target, "--replace")
        assert done.returncode == 0, done.stdout + done.stderr
        for number, writer in enumerate(writers):
            wanted = target.client(1).get(writer.second)
            wait_until(lambda w=writer, v=wanted: client.get(w.second) == v, 10, "the other datacenter has it")
            first, second = (int(client.get(key) or 0) for key in (writer.first, writer.second))
            # The first key may be one ahead: its answer was on its way.
            ahead = 0 if isinstance(writer, Pair) else 1
            assert second <= first <= second + ahead, f"writer {number} shows {first} and then {second}"
            assert before[number] <= second <= after[number] + 1, "what was acknowledged before is there"


def fill(client):
    client.set("plain", "1")
    client.hset("hash", mapping={"f": "1", "g": "2"})
    client.execute_command("HPEXPIRE", "hash", 600_000, "FIELDS", 1, "f")
    client.rpush("list", *range(5))
    client.sadd("set", "x", "y")
    client.zadd("scores", {"a": 1.5, "b": 2})
    client.set("soon", "x", px=600_000)
    client.pfadd("visits", *range(50))
    client.xadd("stream", {"v": "1"}, id="5-1")
    client.xgroup_create("stream", "group", "0")
    client.incrby("counter", 41)
    client.incr("counter")


def test_every_type_comes_back_in_another_shape(source, target, tmp_path):
    client = source.client(1)
    fill(client)
    other = source.client(1, db=3)
    other.set("elsewhere", "3")
    folder, _ = backup(source, tmp_path / "copies")
    client.set("plain", "after the backup")
    done = restore(folder, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything was carried over" in done.stdout
    there = target.client(2)
    wait_until(lambda: target.client(2, db=3).get("elsewhere") == "3", 10, "it is replicated")
    assert there.get("plain") == "1" and there.hgetall("hash") == {"f": "1", "g": "2"}
    field, none = there.execute_command("HPTTL", "hash", "FIELDS", 2, "f", "g")
    assert 0 < field <= 600_000 and none == -1
    assert there.lrange("list", 0, -1) == ["0", "1", "2", "3", "4"] and there.smembers("set") == {"x", "y"}
    assert there.zrange("scores", 0, -1, withscores=True) == [("a", 1.5), ("b", 2.0)]
    assert 0 < there.pttl("soon") <= 600_000 and there.pfcount("visits") == client.pfcount("visits")
    assert there.xrange("stream") == [("5-1", {"v": "1"})] and there.xinfo_groups("stream")[0]["name"] == "group"
    assert there.get("counter") == "42" and there.incr("counter") == 43

    again = restore(folder, target)
    assert again.returncode == 2 and "keys that exist already" in again.stdout
    assert there.get("counter") == "43", "what exists is left as it is"
    refused = target.client(1).execute_command
    with pytest.raises(redis.ResponseError, match="seal does not match"):
        refused("CAUSAL", "MERGE", client.execute_command("CAUSAL", "TOKEN"))


def test_what_rotted_in_a_copy_is_read_anew(source, target, tmp_path):
    client = source.client(1)
    for number in range(200):
        client.set(f"rots{number}", "y" * 20_000)
    copies = tmp_path / "copies"
    first, _ = backup(source, copies)
    log = max((copies / first).rglob("log-*"), key=lambda file: file.stat().st_size)
    bytes_ = bytearray(log.read_bytes())
    bytes_[len(bytes_) // 2] ^= 1
    log.write_bytes(bytes_)
    assert ensue("fsck", first).returncode == 1
    second, summary = backup_later(source, copies, first)
    assert "sound" in summary and ensue("fsck", second).returncode == 0
    (copies / second / "dc1" / "configuration").write_text("changed")
    refused = restore(second, target)
    assert refused.returncode == 1 and "configuration" in refused.stderr, refused.stdout + refused.stderr


def test_the_next_backup_reads_what_is_new_and_each_is_whole(source, target, tmp_path):
    client = source.client(1)
    for number in range(200):
        client.set(f"large{number}", "x" * 20_000)
    copies = tmp_path / "copies"
    first, _ = backup(source, copies)
    client.set("small", "1")
    second, summary = backup_later(source, copies, first)
    manifest = json.loads((copies / second.rsplit("/", 1)[1] / "backup.json").read_text())
    whole = sum(file["bytes"] for file in manifest["files"])
    assert re.search(r"which [0-9.]+ (bytes|KiB) were read", summary) and whole > 3_000_000, summary
    shutil.rmtree(first)
    assert ensue("fsck", second).returncode == 0
    done = restore(copies, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.client(1).get("small") == "1" and len(target.client(1).get("large199")) == 20_000


def backup_later(cluster, copies, first):
    """The next one, which has another second in its name."""
    wait_until(lambda: time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) not in first, 3, "the next second begins")
    return backup(cluster, copies)


def test_a_damaged_backup_is_not_restored(source, target, tmp_path):
    source.client(1).set("a", "1")
    folder, _ = backup(source, tmp_path / "copies")
    log = max((tmp_path / "copies").glob("*/dc1/p*/log-*"), key=lambda path: path.stat().st_size)
    text = bytearray(log.read_bytes())
    text[len(text) // 2] ^= 1
    log.write_bytes(text)
    done = restore(folder, target)
    assert done.returncode == 1 and "damaged" in done.stderr, done.stdout + done.stderr
    log.write_bytes(text[:-1])
    done = restore(folder, target)
    assert done.returncode == 1 and "bytes, and had" in done.stderr, done.stdout + done.stderr
    (tmp_path / "none").mkdir()
    done = restore(tmp_path / "none", target)
    assert done.returncode == 1 and "no finished backup" in done.stderr
    assert target.client(1).dbsize() == 0


def test_what_is_asked_for_wrongly_is_refused_and_what_is_kept_is_let_go(source, tmp_path):
    client = source.client(1)
    kept = source.directory / "data" / "dc1" / "kept"

    def refused(words, *command):
        with pytest.raises(redis.ResponseError, match=words):
            client.execute_command("CAUSAL", "BACKUP", *command)

    refused("syntax error")
    refused("syntax error", "BEGIN")
    refused("letters, digits and hyphens", "BEGIN", "../../outside")
    refused("no backup of this name", "LIST", "x")
    assert client.execute_command("CAUSAL", "BACKUP", "BEGIN", "x") == "OK"
    names = [name for name, _, _ in client.execute_command("CAUSAL", "BACKUP", "LIST", "x")]
    assert "shape" in names and "p0000/superblock" in names
    refused("no file of this name", "READ", "x", "../../../etc/passwd", 0, 10)
    refused("not an integer", "READ", "x", "shape", -1, 10)
    refused("1048576 bytes at most", "READ", "x", "shape", 0, 1 << 21)
    assert client.execute_command("CAUSAL", "BACKUP", "READ", "x", "shape", 0, 5) == "ensue"
    assert client.execute_command("CAUSAL", "BACKUP", "READ", "x", "shape", 1 << 40, 5) == ""
    assert client.execute_command("CAUSAL", "BACKUP", "BEGIN", "y") == "OK", "the earlier one is let go"
    refused("no backup of this name", "READ", "x", "shape", 0, 5)
    assert kept.exists() and [path.name for path in kept.iterdir()] == ["y"]
    assert client.execute_command("CAUSAL", "BACKUP", "END", "y") == "OK"
    assert not kept.exists()

    client.execute_command("ACL", "SETUSER", "clerk", "on", ">secret", "~*", "+@all", "-@admin")
    done = ensue("backup", "--to", tmp_path / "copies", "--from", f"127.0.0.1:{source.port}", "--user", "clerk", "-a", "secret")
    assert done.returncode == 1 and "NOPERM" in done.stderr, done.stderr
    assert not list((tmp_path / "copies").iterdir())


def test_keys_that_are_too_large_for_one_answer_or_one_write_come_back(tmp_path):
    with contextlib.ExitStack() as running:
        clusters = []
        for name in ("from", "to"):
            (tmp_path / name).mkdir()
            clusters.append(Cluster(tmp_path / name, datacenters=1, flags=["--set", "metrics-port=0"]))
            running.callback(clusters[-1].close)
            clusters[-1].start()
        client, there = (cluster.client(1) for cluster in clusters)
        # Together longer than the longest answer, which their dump would be.
        values = {name: name * (43 << 20) for name in "abc"}
        for name, value in values.items():
            client.hset("large", name, value)
        client.execute_command("HPEXPIRE", "large", 600_000, "FIELDS", 1, "b")
        # An entry has the key with each of its members: they are too much for one write.
        key, members = "k" * 1_000_000, [f"member{number}" for number in range(170)]
        for begin in range(0, len(members), 10):
            client.sadd(key, *members[begin : begin + 10])
        folder, _ = backup(clusters[0], tmp_path / "copies")
        done = ensue("restore", "--from", folder, "--to", f"127.0.0.1:{clusters[1].port}", timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        assert there.hlen("large") == 3
        assert all(there.hget("large", name) == value for name, value in values.items())
        [plain, dated] = there.execute_command("HPTTL", "large", "FIELDS", 2, "a", "b")
        assert plain == -1 and 0 < dated <= 600_000
        assert there.smembers(key) == set(members)
