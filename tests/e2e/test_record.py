"""Clients of three datacenters are recorded through the proxy; the file is judged as what was promised."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis
from cluster import binary, ensue, freeze, wait_until
from ports import RECORDERS, Ports, is_free


@contextlib.contextmanager
def recorder(cluster, path):
    """`ensue check --record` in front of every datacenter, on ports above theirs."""
    with recording({f"dc{datacenter}": cluster.client_port(datacenter) for datacenter in cluster.each()}, path):
        yield


@contextlib.contextmanager
def recording(servers, path):
    """A recorder in front of servers, by the names of their datacenters."""
    words = ["check", "--record", path]
    for name, port in servers.items():
        words += ["--listen", f"127.0.0.1:{port + RECORDERS}", "--server", f"127.0.0.1:{port}", "--datacenter", name]
    process = subprocess.Popen([binary(), *map(str, words)], stdout=subprocess.DEVNULL)
    try:
        for port in servers.values():
            wait_until(lambda port=port: not is_free(port + RECORDERS), 10, "the recorder listens")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def session(cluster, datacenter, **options):
    port = cluster.recorder_port(datacenter)
    return redis.Redis(
        "127.0.0.1", port, decode_responses=True, single_connection_client=True, socket_timeout=10, **options
    )


def photo_and_album(cluster):
    """Alice takes Bob off the list, behind a link that is cut; her phone, which has seen it, adds a photo."""
    alice, phone, bob = session(cluster, 1), session(cluster, 2), session(cluster, 3, protocol=3)
    alice.set("readers", "bob and carol")
    alice.set("photo", "a sunset")
    alice.incr("likes")
    alice.hset("comments", mapping={"1": "nice", "2": "warm"})
    wait_until(lambda: bob.get("photo") == "a sunset", 10, "the photo arrives")
    cluster.link(1, 3, "cut")
    alice.set("readers", "carol")
    wait_until(lambda: phone.get("readers") == "carol", 10, "the phone sees the list")
    # A pipeline of redis-py would take another connection, and so another session.
    phone.set("photo", "a party")
    phone.incr("likes", 2)
    for _ in range(60):
        bob.get("photo")
        bob.get("readers")
        time.sleep(0.01)
    cluster.link(1, 3, "heal")
    cluster.converge()
    for client in (alice, phone, bob):
        client.mget("photo", "readers")
        client.get("likes")
        client.hgetall("comments")
        client.close()


@pytest.mark.parametrize("protocol, status", [("eiger", 0), ("eventual", 1)])
def test_the_record_of_a_photo_and_an_album(dev, tmp_path, protocol, status):
    cluster = dev(delay="5ms", flags=["--protocol", protocol])
    path = tmp_path / "run.jsonl"
    with recorder(cluster, path):
        photo_and_album(cluster)
    judged(path, status)


class Raw:
    """A connection without a client's ideas: commands leave as one row of bytes, cut wherever the test wants."""

    def __init__(self, port, piece=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("rb")
        self.piece = piece

    def send(self, *commands):
        text = b"".join(encoded(command.split()) for command in commands)
        piece = self.piece or len(text)
        for begin in range(0, len(text), piece):
            self.socket.sendall(text[begin : begin + piece])

    def ask(self, *commands):
        """Sends all, then reads all the answers."""
        self.send(*commands)
        return [self.answer() for _ in commands]

    def answer(self):
        line = self.answers.readline()
        assert line.endswith(b"\r\n"), f"the connection ended: {line}"
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            return None if rest == "-1" else self.answers.read(int(rest) + 2)[:-2].decode()
        if kind in b"*~":
            return [self.answer() for _ in range(int(rest))]
        if kind == b"%":
            return [self.answer() for _ in range(2 * int(rest))]
        return int(rest) if kind == b":" else None if kind == b"_" else rest

    def close(self):
        self.answers.close()
        self.socket.close()


def encoded(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)


def transactions(path):
    """The transactions of a history, which is whole."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["event"] == "history" and lines[-1]["event"] == "end"
    return [line for line in lines if "event" not in line]


def operations(path):
    return [transaction["operations"] for transaction in transactions(path)]


def judged(path, status=0, *words):
    done = ensue("check", *words, path)
    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("piece", [None, 1, 7])
@pytest.mark.parametrize("version", [2, 3])
def test_pipelines_and_transactions_however_they_are_cut(clean, tmp_path, piece, version):
    path = tmp_path / "run.jsonl"
    with recorder(clean, path):
        client = Raw(clean.recorder_port(1), piece)
        client.ask(f"HELLO {version}")
        assert client.ask("SET a one", "GET a", "INCR n", "GET missing") == ["OK", "one", 1, None]
        assert client.ask("MULTI", "SET a two", "HSET row f v", "EXEC")[-1] == ["OK", 1]
        assert client.ask("MULTI", "SET a three", "DISCARD", "GET a")[-1] == "two"
        assert client.ask("HGETALL row", "MGET a b")[-1] == ["two", None]
        client.close()
    assert operations(path) == [
        [{"write": "a", "value": "one"}],
        [{"read": "a", "value": "one"}],
        [{"add": "n", "delta": 1}, {"count": "n", "value": 1}],
        [{"read": "missing", "value": None}],
        # The answer 1 says that the field was not there.
        [{"write": "a", "value": "two"}, {"read": "row[f]", "value": None}, {"write": "row[f]", "value": "v"}],
        [{"read": "a", "value": "two"}],
        [{"read": "row[f]", "value": "v"}, {"row": "row"}],
        [{"read": "a", "value": "two"}, {"read": "b", "value": None}],
    ]
    judged(path)


def test_a_token_carries_the_past_into_another_session(clean, tmp_path):
    path = tmp_path / "run.jsonl"
    with recorder(clean, path):
        one, other = session(clean, 1), session(clean, 2)
        one.set("letter", "written")
        token = one.execute_command("CAUSAL", "TOKEN")
        assert other.execute_command("CAUSAL", "MERGE", token, "TIMEOUT", 10_000) in (True, "OK")
        assert other.get("letter") == "written"
        one.close()
        other.close()
    found = transactions(path)
    named = {line["token"] for line in found if "token" in line}
    merged = {name for line in found for name in line.get("merges", [])}
    assert named and merged and merged <= named
    judged(path)
    # Had the other session not seen the letter, the token would give it away.
    path.write_text(path.read_text().replace('{"read":"letter","value":"written"}', '{"read":"letter","value":null}'))
    judged(path, status=1)


def test_renames_and_flushes_are_judged(clean, tmp_path):
    path = tmp_path / "run.jsonl"
    with recorder(clean, path):
        writer, reader = session(clean, 1), session(clean, 2)
        writer.mset({"draft": "first", "note": "n1"})
        writer.set("draft", "second")
        writer.rename("draft", "letter")
        wait_until(lambda: reader.get("letter") == "second", 10, "the letter arrives")
        assert reader.get("note") == "n1"
        flusher = session(clean, 1, db=1)
        flusher.set("page", "old")
        flusher.flushdb()
        flusher.set("page", "new")
        assert flusher.get("page") == "new"
        for client in (writer, reader, flusher):
            client.close()
    assert [{"rename": "draft", "to": "letter"}] in operations(path) and [{"flush": 1}] in operations(path)
    judged(path)
    recorded = path.read_text()
    # Who has read the new name has the past of the rename; and what was flushed is not there.
    for read, other in (
        ('{"read":"note","value":"n1"}', '{"read":"note","value":null}'),
        ('{"read":"[1]page","value":"new"}', '{"read":"[1]page","value":"old"}'),
    ):
        assert read in recorded
        path.write_text(recorded.replace(read, other))
        judged(path, status=1)


@pytest.mark.parametrize("home_reads, status", [("yes", 0), ("no", 1)])
def test_keys_with_a_home_are_linearizable_if_they_are_read_there(dev, tmp_path, home_reads, status):
    flags = ["--set", "keyspace=0 home lock:* dc1", "--set", f"keyspace=0 home-reads {home_reads}"]
    cluster = dev(delay="5ms", flags=flags)
    for datacenter in cluster.each():
        wait_until(lambda to=datacenter: is_taken(cluster.client(to), "lock:ready"), 20, "the home can be reached")
    path = tmp_path / "run.jsonl"
    with recorder(cluster, path):
        clients = {datacenter: session(cluster, datacenter) for datacenter in cluster.each()}

        def work(name, client):
            for turn in range(20):
                client.set("lock:last", f"{name}-{turn}")
                client.get("lock:last")
                client.set(f"lock:{turn}", name, nx=True)
                client.get(f"lock:{turn}")

        threads = [threading.Thread(target=work, args=each) for each in clients.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if home_reads == "no":
            cluster.link(1, 3, "cut")
            clients[1].set("lock:last", "unheard")
            assert clients[3].get("lock:last") != "unheard"
            cluster.link(1, 3, "heal")
        for client in clients.values():
            client.close()
    done = ensue("check", "--property", "linearizable", path)
    assert done.returncode == status, done.stdout
    assert ensue("check", path).returncode == 0


@pytest.mark.parametrize("home, status", [("jobs:*", 0), ("other:*", 1)])
def test_a_queue_with_a_home_is_popped_once_and_any_queue_at_least_once(dev, tmp_path, home, status):
    cluster = dev(delay="5ms", flags=["--set", f"keyspace=0 home {home} dc1"])
    for datacenter in cluster.each():
        wait_until(lambda to=datacenter: is_taken(cluster.client(to), "other:ready"), 20, "the home can be reached")
        wait_until(lambda to=datacenter: is_taken(cluster.client(to), "jobs:ready"), 20, "the home can be reached")
    path = tmp_path / "run.jsonl"
    with recorder(cluster, path):
        clients = {datacenter: session(cluster, datacenter) for datacenter in cluster.each()}
        clients[1].rpush("jobs:{mail}", "early", "next")
        wait_until(lambda: clients[3].lrange("jobs:{mail}", 0, -1) == ["early", "next"], 10, "the queue arrives")
        if status == 1:
            cluster.link(1, 3, "cut")
            assert clients[1].lpop("jobs:{mail}") == clients[3].lpop("jobs:{mail}") == "early"
            cluster.link(1, 3, "heal")
            cluster.converge()

        def work(name, client):
            for turn in range(20):
                client.rpush("jobs:{mail}", f"{name}-{turn}")
                client.blpop(["jobs:{mail}"], 1)
                client.lmove("jobs:{mail}", "jobs:{mail}:done", "LEFT", "RIGHT")

        threads = [threading.Thread(target=work, args=each) for each in clients.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cluster.converge()
        for datacenter in cluster.each():
            last = session(cluster, datacenter, client_name="ensue-final")
            last.lrange("jobs:{mail}", 0, -1)
            last.lrange("jobs:{mail}:done", 0, -1)
            last.close()
        for client in clients.values():
            client.close()
    judged(path, status, "--property", "popped-once")
    judged(path, 0, "--property", "popped-at-least-once")
    # Had the second job been answered as the first, it would be lost, and the first popped twice.
    recorded = path.read_text()
    popped = '{"pop":"jobs:{mail}","value":"next"}'
    assert popped in recorded
    path.write_text(recorded.replace(popped, popped.replace("next", "early")))
    judged(path, 1, "--property", "popped-once")
    judged(path, 1, "--property", "popped-at-least-once")


def is_taken(client, key):
    """Whether the home of a key answers."""
    try:
        return client.set(key, "yes")
    except redis.RedisError:
        return False


def test_a_server_that_dies_with_a_request_leaves_its_outcome_unknown(dev, tmp_path):
    cluster = dev(delay="5ms", flags=["--processes"])
    path = tmp_path / "run.jsonl"
    with recorder(cluster, path):
        client = Raw(cluster.recorder_port(1))
        assert client.ask("SET before sure") == ["OK"]
        server = cluster.process_of(1)
        freeze(server)
        client.send("SET during perhaps")
        time.sleep(0.2)
        os.kill(server, signal.SIGKILL)
        assert client.answers.readline() == b""
        client.close()
        wait_until(lambda: cluster.process_of(1) not in (None, server), 20, "dc1 starts again")
        cluster.wait_for_ping(1)
        later = session(cluster, 1)
        assert later.get("before") == "sure"
        assert later.get("during") in (None, "perhaps")
        later.close()
    writes = [line for line in transactions(path) if any("write" in step for step in line["operations"])]
    # No end is no answer.
    assert [(line["operations"][0]["write"], line["end"] is None) for line in writes] == [
        ("before", False),
        ("during", True),
    ]
    judged(path)


@pytest.fixture
def redis_server(tmp_path):
    """A Redis, for what it says is what clients are used to."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    ports = Ports()
    port = ports.first
    words = [program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", tmp_path]
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: not is_free(port), 10, "redis-server listens")
        yield port
    finally:
        process.terminate()
        process.wait(10)
        ports.close()


def test_any_server_that_speaks_the_protocol(redis_server, tmp_path):
    path = tmp_path / "run.jsonl"
    numbers = itertools.count()
    with recording({"dc1": redis_server}, path):
        clients = [Raw(redis_server + RECORDERS, piece) for piece in (None, 1, 3, 50)]
        for round_ in range(30):
            for client in clients:
                client.send(
                    f"SET x v{next(numbers)}",
                    "GET x",
                    "MULTI",
                    f"MSET x v{next(numbers)} y v{next(numbers)}",
                    "INCR n",
                    "EXEC",
                    "MGET x y",
                    f"HSET row f{round_} v{next(numbers)}",
                    "HGETALL row",
                    "APPEND blob not-recorded",
                    "GET n",
                )
            for client in clients:
                for _ in range(11):
                    client.answer()
        for client in clients:
            client.close()
    found = operations(path)
    assert sum({"add": "n", "delta": 1} in each for each in found) == 30 * len(clients)
    done = ensue("check", "--json", path)
    verdicts = {verdict["property"]: verdict for verdict in json.loads(done.stdout)["verdicts"]}
    assert not [verdict for verdict in verdicts.values() if verdict["verdict"] == "violated"]


def test_what_cannot_be_recorded_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("precious")
    with Ports() as ports:
        ends = ["--listen", f"127.0.0.1:{ports.first}", "--server", "127.0.0.1:1"]
        done = ensue("check", "--record", path, *ends)
        assert done.returncode == 2 and "never continued" in done.stderr
        assert path.read_text() == "precious"
        more = f"127.0.0.1:{ports.first + 1}"
        unequal = ensue("check", "--record", tmp_path / "new", *ends, "--listen", more)
    assert unequal.returncode == 2 and "--server" in unequal.stderr
    assert not (tmp_path / "new").exists()
