"""A datacenter that is lost for good: it is declared dead while the others run, and they go on without it."""

import contextlib
import signal

import pytest
import redis

from cluster import wait_until
from servers import NAMES


def answers(servers, name):
    with contextlib.suppress(redis.RedisError):
        return servers.ask(name, "DBSIZE") >= 0


def figure(servers, name, figure):
    with contextlib.suppress(redis.ConnectionError):
        with redis.Redis("127.0.0.1", servers.port(name), socket_timeout=5) as client:
            return client.info().get(figure)


def declare_dead(servers, name, dead):
    digest = servers.ask(name, "CAUSAL", "DEAD", dead)[0]
    return servers.ask(name, "CAUSAL", "DEAD", dead, "CONFIRM", digest)


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
