"""Clients of three datacenters are recorded through the proxy; the file is judged as what was promised."""

import contextlib
import signal
import subprocess
import time

import pytest
import redis
from cluster import binary, ensue, is_free, wait_until

RECORDERS = 500


@contextlib.contextmanager
def recorder(cluster, path):
    """`ensue check --record` in front of every datacenter, on ports above theirs."""
    words = ["check", "--record", path]
    for datacenter in cluster.each():
        port = cluster.client_port(datacenter)
        words += ["--listen", f"127.0.0.1:{port + RECORDERS}", "--server", f"127.0.0.1:{port}"]
        words += ["--datacenter", f"dc{datacenter}"]
    process = subprocess.Popen([binary(), *map(str, words)], stdout=subprocess.DEVNULL)
    try:
        first = cluster.client_port(1) + RECORDERS
        wait_until(lambda: not is_free(first), 10, "the recorder listens")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def session(cluster, datacenter, **options):
    port = cluster.client_port(datacenter) + RECORDERS
    return redis.Redis(
        port=port, decode_responses=True, single_connection_client=True, socket_timeout=10, **options
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
    checked = ensue("check", path)
    assert checked.returncode == status, checked.stdout + checked.stderr
