"""A datacenter that is lost for good: it is declared dead while the others run, and they go on without it."""

import contextlib
import signal

import pytest
import redis

from cluster import wait_until
from servers import NAMES


def answers(servers, name):
    with contextlib.suppress(redis.ConnectionError):
        return servers.ask(name, "PING")


def figure(servers, name, figure):
    with contextlib.suppress(redis.ConnectionError):
        with redis.Redis("127.0.0.1", servers.port(name), socket_timeout=5) as client:
            return client.info().get(figure)


def test_survivors_go_on_without_a_dead_datacenter(servers):
    for name in NAMES:
        servers.start(name)
    for name in NAMES:
        wait_until(lambda name=name: answers(servers, name), 20, "it serves")
    servers.ask("dc3", "SET", "last", "words")
    wait_until(lambda: servers.ask("dc1", "GET", "last") == "words", 20, "it is replicated")
    servers.end("dc3", signal.SIGKILL)

    with pytest.raises(redis.ResponseError, match="no datacenter of this name"):
        servers.ask("dc1", "CAUSAL", "DEAD", "atlantis")
    with pytest.raises(redis.ResponseError, match="the datacenter itself"):
        servers.ask("dc1", "CAUSAL", "DEAD", "dc1")
    assert servers.ask("dc1", "CAUSAL", "DEAD", "dc3") == "OK"
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
            return "STOPPED" in str(error) and "declared dead" in str(error)
        return False

    wait_until(has_stopped, 20, "the dead one stops")
    assert servers.ask("dc1", "GET", "last") == "words"
