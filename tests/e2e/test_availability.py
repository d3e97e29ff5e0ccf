"""Whether clients should come to a datacenter: what those ask that fail over by themselves."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import pytest
import redis
from cluster import ROOT, wait_until
from ports import METRICS
from test_metrics import get, is_up, page

LAG = "/v1/bdbs/1/availability?extend_check=lag&availability_lag_tolerance_ms="


def available(port, path="/v1/bdbs/1/availability", host="127.0.0.1"):
    status, kind, text = get(port, path, host)
    assert kind == "application/json"
    return status, json.loads(text)


def test_a_datacenter_that_serves_is_available_with_and_without_lag(clean):
    port = clean.port + METRICS
    _, databases = available(port, "/v1/bdbs")
    [database] = databases
    [endpoint] = database["endpoints"]
    assert database["uid"] == 1
    assert endpoint["dns_name"] == "127.0.0.1" and endpoint["addr"] == ["127.0.0.1"]
    assert endpoint["port"] == clean.port
    for path in ("/v1/bdbs/1/availability", LAG + "5000", "/v1/local/bdbs/1/endpoint/availability?extend_check=lag"):
        assert available(port, path) == (200, {}), path
    status, body = available(port, "/v1/bdbs/2/availability")
    assert (status, body["error_code"]) == (404, "db_not_found")
    status, body = available(port, LAG + "soon")
    assert (status, body["error_code"]) == (400, "invalid_param")


def test_a_cut_link_makes_nobody_unavailable_and_catching_up_does(dev):
    cluster = dev(delay="5ms")
    port = cluster.port + METRICS + 1
    cluster.link(1, 2, "cut")
    with cluster.client(1) as client:
        client.set("before", "v")
        wait_until(lambda: page(cluster, 2)['ensue_link_up{peer="dc1"}'] == 0, 20, "the cut is seen")
        # What dc1 writes nobody in dc2 can know, and dc1 may be the one that failed.
        assert available(port, LAG + "0") == (200, {})
        # A write that dc3 passes on the past of: dc2 learns of it, and waits for what it depends on.
        client.set("past", "1")
        with cluster.client(3) as third:
            wait_until(lambda: third.get("past") == "1", 10, "dc3 has it")
            third.set("follows", "2")
        wait_until(lambda: page(cluster, 2)['ensue_replication_behind_entries{peer="dc3"}'] > 0, 10, "it waits")
        status, body = wait_until(
            lambda: (said := available(port, LAG + "300"))[0] == 503 and said, 10, "dc2 is behind dc3"
        )
        assert body["error_code"] == "lag" and "ms behind dc3, and 300 are tolerated" in body["description"]
        assert available(port) == (200, {})
    cluster.link(1, 2, "heal")
    wait_until(lambda: available(port, LAG + "300") == (200, {}), 20, "dc2 has caught up")


def test_who_does_not_serve_says_so(servers):
    port = servers.port("dc1") + METRICS
    # Alone, it waits for the others before it serves.
    servers.start("dc1", f"metrics-port {port}")
    wait_until(lambda: is_up(port), 20, "dc1 listens")

    def waits():
        status, body = available(port)
        assert status == 503 and body["error_code"] == "bdb_unavailable", "it does not serve meanwhile"
        return "wait for the other datacenters" in body["description"]

    wait_until(waits, 20, "it says what it waits for")


def test_a_pause_of_the_clients_makes_nobody_unavailable(servers):
    port = servers.port("dc1") + METRICS
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", f"metrics-port {port}")
    wait_until(lambda: is_up(port) and available(port)[0] == 200, 20, "dc1 serves")
    # Longer than the test.
    assert servers.ask("dc1", "CLIENT", "PAUSE", 120_000)
    assert available(port) == (200, {})
    assert get(port, "/metrics")[0] == 200


@pytest.fixture
def failover():
    """Starts `failover.py` with a redis-py that has such clients: that of the tests, or one in a folder of its own."""
    folder = os.environ.get("REDIS_PY_FAILOVER")
    environment = {**os.environ, **({"PYTHONPATH": folder} if folder else {})}
    with contextlib.ExitStack() as running:

        def start(*words):
            command = [sys.executable, ROOT / "tests/e2e/failover.py", *map(str, words)]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            running.enter_context(process)
            running.callback(process.kill)
            return process

        if "No module named" in start().communicate()[1]:
            pytest.skip("this redis-py has no clients that fail over, and REDIS_PY_FAILOVER names no other")
        yield start


NAMES = {"dc1": "127.0.0.2", "dc2": "127.0.0.3", "dc3": "127.0.0.4"}


def start_each_on_its_address(servers, names=NAMES):
    """Such clients poll all datacenters on one port, so each has an address of its own here. The port."""
    port = servers.port("dc1") + METRICS
    for name in names:
        host = NAMES[name]
        servers.start(name, f"bind {host}", f"metrics-bind {host}", f"metrics-port {port}")
    for name in names:
        wait_until(lambda name=name: ready(port, NAMES[name]), 30, f"{name} is available")
    return port


def test_the_health_check_of_redis_py_goes_by_it(servers, failover):
    """Unmodified: one check a datacenter."""
    metrics = start_each_on_its_address(servers)

    def health(name):
        said, errors = failover(metrics, f"{NAMES[name]}:{servers.port(name)}").communicate()
        assert said, errors
        return said.strip()

    assert health("dc1") == "healthy" and health("dc2") == "healthy"
    servers.end("dc1", signal.SIGKILL)
    assert "unhealthy: " in health("dc1")
    # The link to the one that failed is down, and nobody waits for it.
    wait_until(lambda: "the link to dc1 is down" in get(metrics, "/readyz", NAMES["dc2"])[2], 20, "dc2 sees it")
    assert health("dc2") == "healthy"
    # Who comes back alone serves when it has asked the others.
    start_each_on_its_address(servers, ["dc1"])
    assert health("dc1") == "healthy"


def test_a_client_of_redis_py_goes_to_another_datacenter(servers, failover):
    metrics = start_each_on_its_address(servers)
    client = failover(metrics, *(f"{host}:{servers.port(name)}" for name, host in NAMES.items()))

    def answer(*words):
        print(*words, file=client.stdin, flush=True)
        said = client.stdout.readline().strip()
        return said or pytest.fail(client.communicate()[1])

    def process():
        """Where commands go now."""
        return re.search(r"'process_id': (\d+)", answer("INFO", "server"))

    assert answer("SET", "before", "1") in ("True", "OK")
    assert int(process()[1]) == servers.running["dc1"].pid
    servers.end("dc1", signal.SIGKILL)
    wait_until(process, 20, "another one answers")
    assert int(process()[1]) in {server.pid for server in servers.running.values()}
    assert answer("SET", "after", "2") in ("True", "OK")
    for name in servers.running:
        with redis.Redis(NAMES[name], servers.port(name)) as other:
            wait_until(lambda: other.get("after") == b"2", 20, f"{name} shows what was written")


def ready(port, host):
    try:
        return get(port, LAG + "2000", host)[0] == 200
    except OSError:
        return False
