"""A datacenter of two nodes, beside another: what needs one that was killed is refused at once; a node that reads a long log says so at once."""

import signal
import subprocess
import time

import pytest
import redis
from cluster import binary, key_in, wait_until
from ports import PEERS, Ports

PARTITIONS = 4
# A partition lives on core p modulo the cores: of two nodes of one core each, the odd ones are on the second.
HERE, AWAY = 0, 1
# Far below the request timeout of five seconds.
AT_ONCE_S = 0.5


# The nodes by number: two of dc1, one of dc2.
NODES = (("dc1", 0), ("dc1", 1), ("dc2", 0))


class Pair:
    """Two server processes of one datacenter and one of another, on free ports."""

    def __init__(self, directory, *directives):
        self.directory = directory
        self.ports = Ports()
        self.base = self.ports.first
        self.directives = directives
        self.running = {}

    def start(self, number):
        ports = [self.base + PEERS + 8 * one for one in range(len(NODES))]
        nodes = [f"node {name} 127.0.0.1:{port} cores 1" for (name, _), port in zip(NODES, ports)]
        name, index = NODES[number]
        own = [f"self {name} {index}", f"port {self.base + number}", "bind 127.0.0.1", f"dir {self.directory / f'data{number}'}"]
        config = self.directory / f"node{number}.conf"
        config.write_text("\n".join([f"partitions {PARTITIONS}", *nodes, *own, *self.directives, ""]))
        with (self.directory / f"node{number}.log").open("ab") as log:
            self.running[number] = subprocess.Popen(
                [binary(), "server", "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def end(self, number, how=signal.SIGTERM):
        process = self.running.pop(number)
        process.send_signal(how)
        process.wait(20)

    def wait_for_the_end_of(self, number):
        """Until the first node knows that this one is down."""
        name, index = NODES[number]
        told = f"to core {index} of {name} is down"
        wait_until(lambda: told in (self.directory / "node0.log").read_text(), 5, told)

    def client(self, number, timeout=20):
        return redis.Redis(
            port=self.base + number, socket_timeout=timeout, decode_responses=True, single_connection_client=True
        )

    def serves(self, number):
        try:
            with self.client(number) as client:
                return client.dbsize() >= 0
        except redis.RedisError:
            return False

    def wait(self, number):
        wait_until(lambda: self.serves(number), 20, f"node {number} reaches every partition")


@pytest.fixture
def pair(tmp_path):
    pairs = []

    def start(*directives):
        pairs.append(Pair(tmp_path, *directives))
        for number in range(len(NODES)):
            pairs[-1].start(number)
        for number in range(len(NODES)):
            pairs[-1].wait(number)
        return pairs[-1]

    yield start
    for one in pairs:
        for number in list(one.running):
            one.end(number, signal.SIGKILL)


def refused_at_once(client, *words):
    begin = time.monotonic()
    with pytest.raises(redis.RedisError) as refused:
        client.execute_command(*words)
    took = time.monotonic() - begin
    assert took < AT_ONCE_S, f"{words} took {took:.2f} s: {refused.value}"
    return str(refused.value)


@pytest.mark.parametrize("protocol", ["eiger", "cops-gt", "pocc", "orbe-clock", "eventual"])
def test_what_needs_a_killed_node_is_refused_at_once(pair, protocol):
    pair = pair(f"keyspace 0 protocol {protocol}")
    near, far = key_in(HERE, PARTITIONS, "near"), key_in(AWAY, PARTITIONS, "far")
    with pair.client(0) as client:
        assert client.set(near, 1) and client.set(far, 1)
        pair.end(1, signal.SIGKILL)
        pair.wait_for_the_end_of(1)

        away = "is on a node that is down or cannot be reached: nothing was executed"
        for words in (
            ("GET", far),
            ("SET", far, 2),
            ("MGET", near, far),
            ("DBSIZE",),
            ("FLUSHDB",),
            ("RENAME", far, near),
        ):
            assert away in refused_at_once(client, *words), words
        if protocol in ("eiger", "cops-gt", "pocc", "orbe-clock"):
            # What it read and wrote there cannot be asked about either.
            refused = refused_at_once(client, "CAUSAL", "WAIT", 2)
            assert away in refused, refused
        if protocol == "eiger":
            transaction = client.pipeline(transaction=True)
            transaction.set(near, 3).set(far, 3)
            begin = time.monotonic()
            with pytest.raises(redis.RedisError, match="nothing was executed"):
                transaction.execute()
            assert time.monotonic() - begin < AT_ONCE_S
        # The rest goes on, and nothing of what was refused was executed.
        assert client.get(near) == "1"
        begin = time.monotonic()
        assert client.info("ensue")["ensue_silent_peers"] == 3
        assert time.monotonic() - begin < AT_ONCE_S

        pair.start(1)
        pair.wait(0)
        assert client.mget(near, far) == ["1", "1"]


def test_a_token_of_a_killed_node_is_refused_at_once(pair):
    pair = pair()
    far = key_in(AWAY, PARTITIONS, "far")
    with pair.client(0) as client, pair.client(2) as other:
        other.set(far, 1)
        token = other.execute_command("CAUSAL", "TOKEN")
        pair.end(1, signal.SIGKILL)
        pair.wait_for_the_end_of(1)
        assert "nothing was executed" in refused_at_once(client, "CAUSAL", "MERGE", token)


def test_a_long_log_is_read_beside_the_clients(pair):
    pair = pair()
    for partition in range(PARTITIONS):
        with pair.client(partition % 2, timeout=60) as client:
            key = key_in(partition, PARTITIONS, "many")
            tag = f"{{{key}}}"
            for block in range(10):
                pipeline = client.pipeline(transaction=False)
                for number in range(10_000):
                    pipeline.set(f"{tag}{block}:{number}", "0123456789")
                pipeline.execute()
    for number in (0, 1):
        pair.end(number, signal.SIGKILL)
    for number in (0, 1):
        pair.start(number)

    heard, slowest = set(), 0.0
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for number in (0, 1):
            try:
                with pair.client(number) as client:
                    begin = time.monotonic()
                    try:
                        client.get(key_in(number, PARTITIONS, "many"))
                        heard.add((number, "served"))
                    except redis.BusyLoadingError:
                        heard.add((number, "LOADING"))
                    except redis.ResponseError as error:
                        assert str(error).startswith("UNAVAILABLE"), error
                    slowest = max(slowest, time.monotonic() - begin)
            except redis.ConnectionError:
                pass
        if {(0, "served"), (1, "served")} <= heard:
            break
    # A machine may be so busy that the log is read before the first client is let in: then nothing says LOADING.
    assert {(0, "served"), (1, "served")} <= heard, heard
    assert slowest < AT_ONCE_S, f"an answer took {slowest:.2f} s"
    for number in (0, 1):
        pair.wait(number)
    with pair.client(0) as client:
        assert client.dbsize() == PARTITIONS * 100_000
