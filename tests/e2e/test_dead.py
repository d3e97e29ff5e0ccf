"""A datacenter that is lost for good: it is declared dead while the others run, and they go on without it."""

import contextlib
import signal

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cluster import Crew, freeze, key_in, keys_over_all, wait_until
from servers import NAMES

PARTITIONS = 2


def answers(servers, name):
    with contextlib.suppress(redis.RedisError):
        return servers.ask(name, "DBSIZE") >= 0


def figure(servers, name, figure):
    with contextlib.suppress(redis.ConnectionError):
        with redis.Redis("127.0.0.1", servers.port(name), socket_timeout=5) as client:
            return client.info().get(figure)


def declare_dead(servers, name, dead, *words):
    digest = servers.ask(name, "CAUSAL", "DEAD", dead)[0]
    return servers.ask(name, "CAUSAL", "DEAD", dead, "CONFIRM", digest, *words)


def declare_dead_by_force(servers, name, dead):
    """The digest changes with what is received meanwhile."""

    def declared():
        try:
            return declare_dead(servers, name, dead, "FORCE") == "OK"
        except redis.ResponseError as error:
            assert str(error).startswith("CHANGED"), error
            return False

    wait_until(declared, 20, f"{dead} is declared dead")


class Witness:
    """Counts up in one partition of a datacenter, and notes what is acknowledged after the first refusal."""

    def __init__(self, port, crew, partition):
        self.port, self.crew, self.key = port, crew, key_in(partition, PARTITIONS, "counted")
        self.acknowledged, self.refused, self.unknown, self.afterwards = 0, 0, 0, []

    def work(self):
        while not self.crew.stopped.is_set():
            # What is sent again by itself would count twice.
            options = {"socket_timeout": 30, "single_connection_client": True, "retry": Retry(NoBackoff(), 0)}
            with redis.Redis(port=self.port, **options) as client:
                while not self.crew.stopped.is_set():
                    self.step(client)

    def step(self, client):
        try:
            count = client.incr(self.key)
        except redis.ResponseError as error:
            # One that was under way when the partition heard of it.
            assert str(error).startswith(("DECLAREDDEAD", "UNKNOWN", "STOPPED")), error
            refused = str(error).startswith("DECLAREDDEAD")
            self.refused, self.unknown = self.refused + refused, self.unknown + (not refused)
            return
        self.acknowledged = count
        if self.refused:
            self.afterwards.append(count)


@contextlib.contextmanager
def witnesses(port):
    """At work; in the end each has been refused, and nothing was acknowledged after that."""
    crew = Crew()
    each = [Witness(port, crew, partition) for partition in range(PARTITIONS)]
    for witness in each:
        crew.add(witness.work)
    wait_until(lambda: all(witness.acknowledged > 20 for witness in each), 20, "it acknowledges")
    yield each
    wait_until(lambda: all(witness.refused > 20 for witness in each), 20, "it hears of it and stops acknowledging")
    crew.stop()
    assert not any(witness.afterwards for witness in each), [witness.afterwards[:3] for witness in each]


@pytest.mark.parametrize("state", ["linked", "paused"])
def test_a_living_datacenter_declared_dead_stops_acknowledging_when_it_hears_of_it(servers, state):
    for name in NAMES:
        servers.start(name)
    for name in NAMES:
        wait_until(lambda name=name: answers(servers, name), 20, "it serves")
    with witnesses(servers.port("dc3")) as each:
        with pytest.raises(redis.ResponseError, match="LINKED|CHANGED"):
            declare_dead(servers, "dc1", "dc3")
        if state == "paused":
            freeze(servers.running["dc3"].pid)
        declare_dead_by_force(servers, "dc1", "dc3")
        if state == "paused":
            servers.running["dc3"].send_signal(signal.SIGCONT)
    wait_until(lambda: figure(servers, "dc3", "ensue_declared_dead") == PARTITIONS, 20, "it says so")
    for key in keys_over_all(PARTITIONS, "late", 4):
        for words in (["SET", key, "1"], ["GET", key]):
            with pytest.raises(redis.ResponseError, match="^DECLAREDDEAD"):
                servers.ask("dc3", *words)
    # The others have a beginning of what it counted, the same everywhere, and go on.
    for name in ("dc1", "dc2"):
        wait_until(lambda name=name: figure(servers, name, "ensue_settled_dc3_partitions") == 2, 20, "it is settled")
    for witness in each:
        agree = lambda: servers.ask("dc1", "GET", witness.key) == servers.ask("dc2", "GET", witness.key)  # noqa: B023
        wait_until(agree, 20, "the survivors agree")
        before = int(servers.ask("dc1", "GET", witness.key) or 0)
        assert 0 < before <= witness.acknowledged + witness.unknown
        assert servers.ask("dc1", "INCR", witness.key) == before + 1
        wait_until(lambda: servers.ask("dc2", "GET", witness.key) == str(before + 1), 20, "they go on")  # noqa: B023


def test_a_datacenter_that_was_cut_off_when_it_was_declared_dead_stops_when_it_is_linked_again(dev):
    cluster = dev(delay="5ms", partitions=PARTITIONS)
    cluster.client(3).set("shared", "before")
    cluster.converge()
    cluster.cut_off(3)
    operator = cluster.client(1)
    wait_until(lambda: operator.info().get("ensue_link_dc3") == "down", 20, "dc1 misses it")
    with witnesses(cluster.client_port(3)):
        digest = operator.execute_command("CAUSAL", "DEAD", "dc3")[0]
        assert operator.execute_command("CAUSAL", "DEAD", "dc3", "CONFIRM", digest) in ("OK", True)
        with cluster.client(3) as client:
            assert client.set("shared", "fork"), "it cannot know"
            wait_until(lambda: operator.info().get("ensue_dead_dc3_partitions") == PARTITIONS, 20, "it is declared")
            assert "ensue_declared_dead" not in client.info() and client.get("shared") == "fork"
        # One of the two links is enough.
        cluster.link(2, 3, "heal")
    for datacenter in (1, 2):
        assert cluster.client(datacenter).get("shared") == "before"
    with pytest.raises(redis.ResponseError, match="^DECLAREDDEAD"):
        cluster.client(3).get("shared")


def test_survivors_go_on_without_a_dead_datacenter(servers):
    for name in NAMES:
        servers.start(name)
    for name in NAMES:
        wait_until(lambda name=name: answers(servers, name), 20, "it serves")
    servers.ask("dc3", "SET", "last", "words")
    wait_until(lambda: servers.ask("dc1", "GET", "last") == "words", 20, "it is replicated")
    with pytest.raises(redis.ResponseError, match="LINKED dc3 is not dead"):
        declare_dead(servers, "dc1", "dc3")
    servers.end("dc3", signal.SIGKILL)

    with pytest.raises(redis.ResponseError, match="no datacenter of this name"):
        servers.ask("dc1", "CAUSAL", "DEAD", "atlantis")
    with pytest.raises(redis.ResponseError, match="the datacenter itself"):
        servers.ask("dc1", "CAUSAL", "DEAD", "dc1")
    with pytest.raises(redis.ResponseError, match="CHANGED this is no digest of dc3"):
        servers.ask("dc1", "CAUSAL", "DEAD", "dc3", "CONFIRM", "0123456789abcdef")
    wait_until(lambda: "no link to dc3 is up" in servers.ask("dc1", "CAUSAL", "DEAD", "dc3"), 20, "it is missed")
    assert declare_dead(servers, "dc1", "dc3") == "OK"
    for name in ("dc1", "dc2"):
        wait_until(lambda name=name: figure(servers, name, "ensue_settled_dc3_partitions") == 2, 20, "it is settled")
    wait_until(lambda: servers.ask("dc2", "GET", "last") == "words", 20, "both have it")
    assert servers.ask("dc1", "CAUSAL", "DISCARDED") == [], "nothing waited for what is lost"
    assert servers.ask("dc1", "CAUSAL", "WAIT", "3", "TIMEOUT", "50") == 2, "the dead one has nothing, not even that"
    assert servers.ask("dc1", "WAIT", "2", "50") == 1
    servers.ask("dc1", "SET", "after", "that")
    wait_until(lambda: servers.ask("dc2", "GET", "after") == "that", 20, "they go on")

    # A survivor that starts again still knows, and so does one that was away.
    servers.end("dc2", signal.SIGKILL)
    servers.start("dc2")
    wait_until(lambda: figure(servers, "dc2", "ensue_settled_dc3_partitions") == 2, 20, "it knows")

    servers.start("dc3")

    def has_stopped():
        try:
            servers.ask("dc3", "GET", "last")
        except redis.ConnectionError:
            return False
        except redis.ResponseError as error:
            return str(error).startswith("DECLAREDDEAD dc3 was declared dead")
        return False

    wait_until(has_stopped, 20, "the dead one stops")
    # It remembers that, though it can reach nobody who would say so again. (Killed within the moment in which it writes
    # that down, it would not.)
    servers.end("dc3", signal.SIGTERM)
    for name in ("dc1", "dc2"):
        servers.end(name, signal.SIGTERM)
    servers.start("dc3")
    wait_until(has_stopped, 20, "it stays stopped")
    with pytest.raises(redis.ResponseError, match="DECLAREDDEAD"):
        servers.ask("dc3", "SET", "last", "word")
    assert figure(servers, "dc3", "ensue_declared_dead") == 2
    servers.start("dc1")
    wait_until(lambda: answers(servers, "dc1"), 20, "a survivor serves")
    assert servers.ask("dc1", "GET", "last") == "words"
