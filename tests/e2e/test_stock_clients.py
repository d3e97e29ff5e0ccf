"""What clients and monitors of Redis rely on beside the data commands: figures, errors, and a quiet end."""

import contextlib
import signal
import socket
import time

import pytest
import redis
from cluster import wait_until

MEBIBYTE = 1 << 20


@pytest.fixture
def client(clean):
    with clean.client(1) as client:
        client.config_resetstat()
        yield client


@pytest.fixture
def single(servers):
    """One server for a test that stops it, and a connection to it."""
    servers.start("dc1", "first-start alone")

    def serves():
        with contextlib.suppress(redis.RedisError):
            return servers.ask("dc1", "SET", "key", "value")

    wait_until(serves, 20, "it serves")
    return servers


def connect(servers):
    return socket.create_connection(("127.0.0.1", servers.port("dc1")), timeout=20)


def everything(connection):
    """What is received until the other side closes."""
    received = b""
    while piece := connection.recv(1 << 16):
        received += piece
    return received


def test_figures_are_true(client):
    client.set("there", 1)
    client.hset("row", "field", 1)
    client.delete("gone")
    for _ in range(10):
        client.get("there")
        client.get("missing")
    client.hget("row", "other")
    client.hmget("row", "field", "other", "third")
    client.mget("there", "missing", "row")
    client.exists("there", "missing")
    client.set("gone", 1)
    client.delete("gone")
    client.ttl("gone")
    stats = client.info("stats")
    # MGET counts the key of another type as there, as Redis does.
    assert (stats["keyspace_hits"], stats["keyspace_misses"]) == (15, 13)
    with pytest.raises(redis.ResponseError):
        client.incr("row")
    commands = client.info("commandstats")
    assert commands["cmdstat_get"]["calls"] == 20 and commands["cmdstat_incrby"]["failed_calls"] == 1
    assert commands["cmdstat_get"]["usec_per_call"] > 0
    assert commands["cmdstat_mget"]["calls"] == 1, "it is one command, on however many partitions"
    assert client.info("errorstats")["errorstat_WRONGTYPE"]["count"] == 1
    client.config_resetstat()
    assert client.info("stats")["keyspace_hits"] == 0 and "cmdstat_get" not in client.info("commandstats")


def test_what_a_monitor_reads(client):
    sections = ("server", "cpu", "memory", "cluster")

    def read():
        info = {name: value for section in sections for name, value in client.info(section).items()}
        wanted = {"uptime_in_seconds", "uptime_in_days", "used_memory_rss", "used_memory_peak", "used_memory_human"}
        wanted |= {"used_cpu_user", "used_cpu_sys", "cluster_enabled"}
        return info if wanted <= info.keys() else None

    # The process is looked at twice a second.
    info = wait_until(read, 10, "everything is reported") or read()
    assert info["used_memory_peak"] > MEBIBYTE and info["used_memory_human"].endswith("M")
    assert info["cluster_enabled"] == 0
    before = info["uptime_in_seconds"]
    wait_until(lambda: client.info("server")["uptime_in_seconds"] > before, 10, "time passes")

    def busy():
        for _ in range(200):
            client.ping()
        return client.info("stats")["instantaneous_ops_per_sec"] >= 100

    wait_until(busy, 20, "the rate follows")
    assert "client|list" in [line["cmd"] for line in client.client_list()]


def test_a_value_that_is_too_long_has_an_answer(client):
    for value in (b"x" * (64 * MEBIBYTE + 1), b"y" * (130 * MEBIBYTE)):
        with pytest.raises(redis.ResponseError, match="proto-max-bulk-len.*64 MiB"):
            client.set("long", value)
    # The connection goes on, and so does a pipeline around it.
    pipeline = client.pipeline(transaction=False)
    pipeline.set("a", 1).set("long", b"x" * (65 * MEBIBYTE)).incr("a")
    answers = pipeline.execute(raise_on_error=False)
    assert answers[0] and isinstance(answers[1], redis.ResponseError) and answers[2] == 2
    assert not client.exists("long")


def test_what_was_sent_before_the_end_is_answered(single):
    """A stopped process receives commands and then is told to end."""
    process = single.running["dc1"]
    with connect(single) as busy, connect(single) as idle, connect(single) as amid:
        for connection in (busy, idle, amid):
            connection.sendall(b"PING\r\n")
            assert connection.recv(7) == b"+PONG\r\n"
        process.send_signal(signal.SIGSTOP)
        busy.sendall(b"INCR n\r\n" * 3_000)
        amid.sendall(b"*3\r\n$3\r\nSET\r\n$4\r\nrest\r\n$4\r\nva")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        assert everything(idle) == b""
        amid.sendall(b"lu\r\nGET rest\r\n")
        expected = b"".join(b":%d\r\n" % number for number in range(1, 3_001))
        assert everything(busy) == expected
        assert everything(amid) in (b"+OK\r\n", b"+OK\r\n$4\r\nvalu\r\n")
    assert process.wait(10) == 0
    single.running.pop("dc1")


def test_the_end_waits_for_nobody_for_long(single):
    process = single.running["dc1"]
    with connect(single) as connection:
        connection.sendall(b"PING\r\n*2\r\n$4\r\nECHO\r\n$100\r\n")
        assert connection.recv(7) == b"+PONG\r\n"
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert everything(connection) == b""
        assert process.wait(10) == 0
        assert time.monotonic() - begin < 8
    single.running.pop("dc1")
