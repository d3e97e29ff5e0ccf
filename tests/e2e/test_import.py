"""`ensue import` and `ensue export` against a real redis-server: snapshots, append-only files, and as its replica."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest
import redis
from cluster import Cluster, binary, ensue, wait_until
from ports import Ports

CARRIED, FAILED, INCOMPLETE, INTERRUPTED = range(4)
SERVER = shutil.which("redis-server")
# Filled once and read by several tests.
pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: apt-get install redis-server")

LIBRARY = """#!lua name=sums
redis.register_function('add', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)
"""


class RedisServer:
    """A redis-server of one test, in a folder of its own, on loopback only."""

    def __init__(self, directory, *words):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.ports = Ports()
        self.port = self.ports.first
        command = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory), "--save", ""]
        command += ["--repl-diskless-sync-delay", "0", *words]
        with (self.directory / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.answers, 20, f"redis-server answers: {(self.directory / 'log.txt').read_text()[-600:]}")

    def answers(self):
        assert self.process.poll() is None, (self.directory / "log.txt").read_text()[-2_000:]
        try:
            with self.client() as client:
                return client.ping()
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False

    def client(self, db=0):
        return redis.Redis("127.0.0.1", self.port, db=db, socket_timeout=20)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def saved(self):
        """A snapshot of now."""
        with self.client() as client:
            client.save()
        return self.directory / "dump.rdb"

    def close(self):
        self.process.kill()
        self.process.wait()
        self.ports.close()


@pytest.fixture
def start_redis(tmp_path):
    started = []

    def start(*words, name=None):
        started.append(RedisServer(tmp_path / (name or f"redis{len(started)}"), *words))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("target"), delay="5ms", datacenters=1)
    cluster.start()
    yield cluster
    cluster.close()


@pytest.fixture
def target(cluster):
    """An empty Ensue."""
    with cluster.client(1) as client:
        client.flushall()
        client.execute_command("FUNCTION", "FLUSH")
    return cluster


def imported(cluster, *words, expected=CARRIED):
    done = ensue("import", *words, "--to", f"127.0.0.1:{cluster.port}", timeout=90)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout


def contents(client):
    """Everything that clients see of a database."""
    return {key: value_of(client, key) for key in client.scan_iter(count=1_000)}


def value_of(client, key):
    kind = client.type(key)
    read = {
        b"string": lambda: client.get(key),
        b"list": lambda: client.lrange(key, 0, -1),
        b"set": lambda: client.smembers(key),
        b"hash": lambda: client.hgetall(key),
        b"zset": lambda: client.zrange(key, 0, -1, withscores=True),
        b"stream": lambda: stream_of(client, key),
    }
    return kind, client.execute_command("PEXPIRETIME", key), read[kind]()


def stream_of(client, key):
    about = client.xinfo_stream(key)
    kept = [about[name] for name in ("length", "last-generated-id", "max-deleted-entry-id", "entries-added")]
    groups = []
    for group in client.xinfo_groups(key):
        name = group["name"]
        pending = client.xpending_range(key, name, "-", "+", 1_000)
        owners = [(one["message_id"], one["consumer"], one["times_delivered"]) for one in pending]
        consumers = sorted(one["name"] for one in client.xinfo_consumers(key, name))
        groups.append((name, group["last-delivered-id"], group["entries-read"], owners, consumers))
    return kept, client.xrange(key), groups


def fill(server):
    """All types, in the encodings that Redis has for few and for many elements, with deadlines, in three databases."""
    later = int(time.time() * 1_000) + 3_600_000
    noise = random.Random(1)
    with server.client() as client:
        client.set("text", "hello")
        client.set("number", -12_345)
        client.set("empty", "")
        client.set("binary", bytes(range(256)))
        client.set("repeated", "ab" * 40_000)
        client.set("large", noise.randbytes(12 << 20))
        client.set("expiring", "v", pxat=later)
        client.set(b"key \xff\r\n", "odd")
        client.rpush("list", "a", 1, -1, 300, 70_000, 1 << 40, "a" * 100, "b" * 5_000)
        client.rpush("list:long", *(f"element {number}" for number in range(5_000)))
        client.rpush("list:large", *(noise.randbytes(300_000) for _ in range(8)))
        client.pexpireat("list", later)
        client.sadd("set:numbers", *range(-100, 100), 1 << 20, 1 << 40)
        client.sadd("set", "a", "b", 3)
        client.sadd("set:long", *(f"member {number}" for number in range(3_000)))
        client.hset("hash", mapping={"a": 1, "b": "two", "c": "x" * 60})
        client.hset("hash:long", mapping={f"field {number}": number for number in range(3_000)})
        client.pexpireat("hash:long", later)
        client.zadd("zset", {"a": 1, "b": 0.1, "c": float("inf"), "d": float("-inf"), "e": -2.5})
        client.zadd("zset:long", {f"member {number}": number / 7 for number in range(3_000)})
        fill_streams(client)
        client.pfadd("hll", *range(1_000))
        client.geoadd("places", (13.361389, 38.115556, "Palermo"))
        client.function_load(LIBRARY, replace=True)
    for database in (1, 5):
        with server.client(database) as client:
            client.set("database", database)
            client.set("text", f"of {database}")


def fill_streams(client):
    client.xadd("stream", {"a": 1, "b": "two"}, id="1-1")
    client.xadd("stream", {"a": 2, "b": "three"}, id="1-2")
    client.xadd("stream", {"other": "field"}, id="5-0")
    client.xadd("stream", {"a": 4, "b": ""}, id="1700000000000-0")
    client.xdel("stream", "1-2")
    client.xgroup_create("stream", "readers", id="0")
    client.xgroup_create("stream", "idle", id="$")
    client.xgroup_createconsumer("stream", "readers", "waits")
    client.xreadgroup("readers", "ann", {"stream": ">"}, count=2)
    client.xack("stream", "readers", "1-1")
    for number in range(1, 1_500):
        client.xadd("stream:long", {"n": number, f"field {number % 3}": "x" * 20}, id=f"{number}-0")
    client.xadd("stream:empty", {"a": 1}, id="7-0")
    client.xdel("stream:empty", "7-0")


def all_contents(client_of):
    everything = {}
    for database in (0, 1, 5):
        with client_of(database) as client:
            everything[database] = contents(client)
    return everything


def of_target(cluster):
    return all_contents(lambda database: cluster.client(1, db=database, decode_responses=False, timeout=30))


def of_redis(server):
    return all_contents(server.client)


def without_counts(everything):
    """Streams without how many entries groups have read: Redis' commands for its own replicas do not say it."""

    def plain(value):
        kind, deadline, content = value
        if kind == b"stream":
            kept, entries, groups = content
            content = kept, entries, [(name, last, *rest) for name, last, _, *rest in groups]
        return kind, deadline, content

    return {database: {key: plain(value) for key, value in keys.items()} for database, keys in everything.items()}


def assert_equal(found, expected):
    for database, keys in expected.items():
        assert sorted(found[database]) == sorted(keys), f"the keys of database {database}"
        for key, value in keys.items():
            assert found[database][key] == value, f"{key} in database {database}"


def test_a_snapshot(target, start_redis):
    server = start_redis()
    fill(server)
    expected = of_redis(server)
    snapshot = server.saved()
    said = imported(target, "--rdb", snapshot)
    assert "everything was carried over" in said and "1 libraries of functions" in said, said
    assert_equal(of_target(target), expected)
    with target.client(1) as client:
        assert client.fcall("add", 1, "sum", 5) == 5
        client.delete("sum")
        client.set("text", "changed")
        client.hset("hash", "d", "new")
    # Whatever exists is left, and told.
    said = imported(target, "--rdb", snapshot, expected=INCOMPLETE)
    assert "keys that the target has already, left as they are, such as" in said
    with target.client(1) as client:
        assert client.get("text") == "changed"
    imported(target, "--rdb", snapshot, "--replace")
    assert_equal(of_target(target), expected)


def test_databases_are_mapped(target, start_redis):
    server = start_redis()
    with server.client(3) as client:
        client.set("three", 3)
    with server.client(4) as client:
        client.set("four", 4)
    with server.client() as client:
        client.set("zero", 0)
    imported(target, "--rdb", server.saved(), "--db-map", "3:0,0:1,1:-,4:-")
    found = of_target(target)
    assert (list(found[0]), list(found[1])) == ([b"three"], [b"zero"])


def test_an_append_only_file(target, start_redis):
    server = start_redis("--appendonly", "yes")
    fill(server)
    with server.client() as client:
        # The rewrite makes these the snapshot in front, and what follows the commands behind it.
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "it is rewritten")
        client.incr("counter", 5)
        client.spop("set:long", 7)
        client.eval("redis.call('set', 'by script', 1) redis.call('rpush', 'list', 'x')", 0)
        with client.pipeline(transaction=True) as transaction:
            transaction.hincrby("hash", "a", 41).lpop("list").set("in a transaction", "v", ex=5_000)
            transaction.execute()
        client.delete("repeated")
        client.rename("zset", "zset:renamed")
        client.xreadgroup("readers", "bob", {"stream": ">"})
        client.expire("set", 9_000)
    expected = of_redis(server)
    folder = server.directory / "appendonlydir"
    imported(target, "--aof", folder)
    assert_equal(without_counts(of_target(target)), without_counts(expected))
    # Cut off amid the last command, as a crash leaves it.
    with target.client(1) as client:
        client.flushall()
    last = max(folder.glob("*.incr.aof"), key=lambda path: path.stat().st_size)
    last.write_bytes(last.read_bytes()[:-3])
    said = imported(target, "--aof", folder, "--replace", expected=INCOMPLETE)
    assert "the last command, which is cut off" in said


def append_only(path, *commands):
    """A file of these commands, each a line."""
    words = [line.split() for line in commands]
    text = "".join(f"*{len(line)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in line) for line in words)
    path.write_text(text)
    return path


def test_a_flush_empties_what_was_there_before_it_and_nothing_behind_it(target, start_redis, tmp_path):
    # With `everysec` a write may wait for a sync before it is in the file.
    server = start_redis("--appendonly", "yes", "--appendfsync", "always")
    for database in range(2):
        with server.client(database) as client:
            client.set("of the snapshot", database)
    with server.client() as client:
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], 20, "it is rewritten")
        client.flushall()
        client.set("behind", 1)
    imported(target, "--aof", server.directory / "appendonlydir")
    found = of_target(target)
    assert (list(found[0]), list(found[1])) == ([b"behind"], [])
    file = append_only(tmp_path / "flush.aof", "SELECT 0", "MULTI", "SET a 1", "FLUSHALL", "SET b 2", "EXEC")
    imported(target, "--aof", file)
    assert list(of_target(target)[0]) == [b"b"]


def test_a_target_that_takes_nothing_now_is_waited_for(target, tmp_path):
    commands = [f"INCR n{number % 7}" for number in range(2_500)]
    file = append_only(tmp_path / "counters.aof", "SELECT 0", *commands)
    with target.client(1) as client:
        client.config_set("min-replicas-to-write", 1)
        healed = threading.Timer(2, client.config_set, ("min-replicas-to-write", 0))
        healed.start()
        imported(target, "--aof", file)
        healed.join()
        assert sum(int(client.get(f"n{number}")) for number in range(7)) == 2_500


def test_a_snapshot_that_is_cut_is_damage_in_an_append_only_file_too(target, start_redis, tmp_path):
    server = start_redis()
    fill(server)
    whole = server.saved().read_bytes()
    file = tmp_path / "cut.aof"
    file.write_bytes(whole[: len(whole) // 2])
    done = ensue("import", "--aof", file, "--to", f"127.0.0.1:{target.port}")
    assert done.returncode == FAILED and "cut.aof" in done.stderr, done.stdout + done.stderr


def test_an_export_is_loaded_by_redis(target, start_redis, tmp_path):
    server = start_redis()
    fill(server)
    imported(target, "--rdb", server.saved())
    expected = of_target(target)
    folder = tmp_path / "other"
    folder.mkdir()
    done = ensue("export", "--rdb", folder / "dump.rdb", "--from", f"127.0.0.1:{target.port}", timeout=60)
    assert done.returncode == CARRIED, done.stdout + done.stderr
    assert "not a snapshot of one moment" in done.stdout
    other = start_redis(name="other")
    assert_equal(of_redis(other), expected)
    with other.client() as client:
        assert client.fcall("add", 1, "sum", 5) == 5
    again = ensue("export", "--rdb", folder / "dump.rdb", "--from", f"127.0.0.1:{target.port}")
    assert again.returncode == FAILED and "exists" in again.stderr


class Writer(threading.Thread):
    """Writes of many kinds, one after the other, until it is told to stop."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.is_over, self.count = server, threading.Event(), 0

    def run(self):
        chance = random.Random(7)
        with self.server.client() as client, self.server.client(5) as other:
            while not self.is_over.is_set():
                number = chance.randrange(200)
                choices = [
                    lambda: client.set(f"live:{number}", self.count, px=chance.choice([None, 60_000_000])),
                    lambda: client.incr("live:counter"),
                    lambda: client.rpush("live:list", self.count),
                    lambda: client.lpop("live:list"),
                    lambda: client.spop("set:long"),
                    lambda: client.delete(f"live:{number}"),
                    lambda: client.zincrby("zset:long", 0.5, f"member {number}"),
                    lambda: client.xadd("live:stream", {"n": self.count}, maxlen=500),
                    lambda: client.eval("redis.call('hincrby', KEYS[1], 'f', 1)", 1, f"live:hash:{number}"),
                    lambda: other.set("database", self.count),
                    lambda: client.pipeline().incr("live:a").incr("live:b").execute(),
                    lambda: client.set("live:brief", 1, px=1),
                ]
                chance.choice(choices)()
                self.count += 1

    def stop(self):
        self.is_over.set()
        self.join(20)


def started_import(cluster, log, *words):
    command = [binary(), "import", *map(str, words), "--to", f"127.0.0.1:{cluster.port}"]
    with log.open("ab") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_a_running_server_is_followed(target, start_redis, tmp_path, diskless):
    server = start_redis("--repl-diskless-sync", diskless, "--repl-backlog-size", "64mb")
    fill(server)
    writer = Writer(server)
    writer.start()
    log = tmp_path / "import.txt"
    process = started_import(target, log, "--from", server.url, "--state", tmp_path / "state")
    try:
        wait_until(lambda: "now following" in log.read_text() or process.poll() is not None, 40, "it follows")
        with server.client() as client:
            # A link that breaks is made again, and the stream continued.
            wait_until(lambda: client.client_kill_filter(_type="slave"), 10, "the link is cut")
            before = writer.count
            wait_until(lambda: writer.count > before + 500, 20, "it writes on")
            syncs = client.info("stats")
            # One that was interrupted continues where it was; how far behind the writer it is then is up to the machine.
            process.send_signal(signal.SIGINT)
            is_behind = process.wait(20) == INTERRUPTED
            assert is_behind == ("bytes of the source are not applied" in log.read_text()), log.read_text()
            assert is_behind or process.returncode == CARRIED, log.read_text()
            process = started_import(target, log, "--from", server.url, "--state", tmp_path / "state")
            before = writer.count
            wait_until(lambda: writer.count > before + 500, 20, "it writes on")
            # Cutting over: the writers stop, the import acknowledges everything, and has applied it then.
            writer.stop()
            client.set("live:last", writer.count)
            wait_until(lambda: client.wait(1, 1_000) == 1 or process.poll() is not None, 40, "all is acknowledged")
            assert client.info("stats")["sync_full"] == syncs["sync_full"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == CARRIED, log.read_text()
    finally:
        writer.stop()
        process.kill()
        process.wait()
    assert_equal(of_target(target), of_redis(server))
    assert "lag 0 bytes" in log.read_text(), log.read_text()


def test_following_stops_when_it_has_caught_up(target, start_redis):
    server = start_redis("--requirepass", "s3cret:word")
    url = f"redis://:s3cret%3aword@127.0.0.1:{server.port}"
    with redis.Redis("127.0.0.1", server.port, password="s3cret:word") as client:
        client.set("k", "v")
        said = imported(target, "--from", url, "--stop-when-caught-up")
        assert "stopped at offset" in said and "1 keys: 1 string" in said
        # What is there is not mixed with what comes.
        done = ensue("import", "--from", url, "--to", f"127.0.0.1:{target.port}", "--stop-when-caught-up")
        assert done.returncode == FAILED and "has 1 keys: empty it, or give --replace" in done.stderr
        client.set("k", "w")
        imported(target, "--from", url, "--stop-when-caught-up", "--replace")
    with target.client(1) as client:
        assert client.get("k") == "w"


def test_an_interruption_is_no_success_where_the_source_does_not_answer(target, start_redis, tmp_path):
    server, log = start_redis(), tmp_path / "import.txt"
    words = ["--from", server.url, "--state", tmp_path / "state"]
    with server.client() as client:
        client.set("k", "v")
    process = started_import(target, log, *words)
    wait_until(lambda: "now following" in log.read_text() or process.poll() is not None, 40, "it follows")
    os.kill(server.process.pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == INTERRUPTED, log.read_text()
    os.kill(server.process.pid, signal.SIGCONT)
    said = log.read_text()
    assert "the source did not answer: it is not known" in said and "everything was carried over" not in said, said
    with server.client() as client:
        client.set("late", "w")
    # A database makes it another import.
    done = ensue("import", "--from", f"{server.url}/0", "--state", tmp_path / "state", "--to", f"127.0.0.1:{target.port}")
    assert done.returncode == FAILED and "belongs to another import" in done.stderr, done.stderr
    process = started_import(target, log, *words)
    with target.client(1) as client:
        wait_until(lambda: client.get("late") == "w" or process.poll() is not None, 40, "it goes on")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == CARRIED, log.read_text()


def test_what_is_written_of_the_data_is_for_its_user_alone(target, start_redis, tmp_path):
    server = start_redis()
    with server.client() as client:
        client.set("k", "v")
    before = os.umask(0o022)
    try:
        imported(target, "--rdb", server.saved(), "--state", tmp_path / "state")
        done = ensue("export", "--rdb", tmp_path / "out.rdb", "--from", f"127.0.0.1:{target.port}")
        assert done.returncode == CARRIED, done.stderr
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("state", "out.rdb")] == [0o600, 0o600]
    folders = [path for path in pathlib.Path(target.directory).rglob("*") if path.name in ("shape", "p0000")]
    assert folders and not any(path.stat().st_mode & 0o077 for path in folders), folders


def many(server, count=15_000):
    with server.client() as client:
        for begin in range(0, count, 5_000):
            with client.pipeline(transaction=False) as pipeline:
                for number in range(begin, begin + 5_000):
                    pipeline.rpush(f"key:{number}", number, "x" * 50)
                pipeline.execute()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_import_continues(target, start_redis, tmp_path, how):
    server = start_redis()
    many(server)
    snapshot, state, log = server.saved(), tmp_path / "state", tmp_path / "import.txt"
    with target.client(1) as client:
        client.rpush("key:0", "of somebody else")
        process = started_import(target, log, "--rdb", snapshot, "--state", state)
        wait_until(lambda: client.dbsize() > 1_000, 20, "it has begun")
        process.send_signal(how)
        assert process.wait(20) == (INTERRUPTED if how == signal.SIGINT else -how)
        assert client.dbsize() < 15_000
        said = imported(target, "--rdb", snapshot, "--state", state, expected=INCOMPLETE)
        assert "14999 keys: 14999 list" in said and "1 keys that the target has already" in said, said
        assert client.delete("key:0")
        imported(target, "--rdb", snapshot, expected=INCOMPLETE)
    assert_equal(of_target(target), of_redis(server))


def test_what_is_damaged_is_told_with_its_place(target, start_redis, tmp_path):
    server = start_redis()
    with server.client() as client:
        client.mset({f"key:{number}": "x" * 30 for number in range(100)})
    whole = server.saved().read_bytes()
    cut, changed, other = tmp_path / "cut.rdb", tmp_path / "changed.rdb", tmp_path / "other.rdb"
    cut.write_bytes(whole[: len(whole) // 2])
    changed.write_bytes(whole[:-200] + bytes([whole[-200] ^ 4]) + whole[-199:])
    other.write_bytes(b"PNG, and not a snapshot")
    damaged = [(cut, "the file ends too early"), (changed, "at byte"), (other, "does not begin as an RDB file")]
    for path, words in damaged:
        done = ensue("import", "--rdb", path, "--to", f"127.0.0.1:{target.port}", "--replace")
        assert done.returncode == FAILED and words in done.stderr and "at byte" in done.stderr, done.stderr
    done = ensue("import", "--rdb", tmp_path / "none", "--to", f"127.0.0.1:{target.port}")
    assert done.returncode == FAILED and "cannot open" in done.stderr
    assert not os.path.exists(tmp_path / "none")
