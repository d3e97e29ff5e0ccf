"""Whether clients should come to a datacenter: what those ask that fail over by themselves."""

import asyncio
import contextlib
import inspect
import json
import signal
import types

import pytest
import redis
from cluster import wait_until
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


def test_the_health_check_of_redis_py_goes_by_it(servers):
    """Unmodified: it polls each datacenter on one port, so each has an address of its own here."""
    multidb = pytest.importorskip("redis.asyncio.multidb.healthcheck", reason="this redis-py has none")
    metrics = servers.port("dc1") + METRICS
    names = {"dc1": "127.0.0.2", "dc2": "127.0.0.3", "dc3": "127.0.0.4"}
    for name, host in names.items():
        servers.start(name, f"bind {host}", f"metrics-bind {host}", f"metrics-port {metrics}")
    for host in names.values():
        wait_until(lambda host=host: ready(metrics, host), 30, f"{host} is available")

    def is_healthy(name):
        # One check a database: the one that a client shares among its databases has one address for all.
        check = multidb.LagAwareHealthCheck(rest_api_port=metrics, lag_aware_tolerance=2000)
        client = redis.Redis(names[name], servers.port(name))
        database = types.SimpleNamespace(client=client, health_check_url=f"http://{names[name]}")
        parameters = inspect.signature(check.check_health).parameters
        with contextlib.closing(client):
            return asyncio.run(check.check_health(*[database, client][: len(parameters)]))

    assert is_healthy("dc1") and is_healthy("dc2")
    servers.end("dc1", signal.SIGKILL)
    with pytest.raises(Exception):
        is_healthy("dc1")
    # The link to the one that failed is down, and nobody waits for it.
    wait_until(lambda: "the link to dc1 is down" in get(metrics, "/readyz", names["dc2"])[2], 20, "dc2 sees it")
    assert is_healthy("dc2")
    # Who comes back alone serves when it has asked the others.
    servers.start("dc1", f"bind {names['dc1']}", f"metrics-bind {names['dc1']}", f"metrics-port {metrics}")
    wait_until(lambda: ready(metrics, names["dc1"]), 30, "dc1 is available again")
    assert is_healthy("dc1")


def ready(port, host):
    try:
        return get(port, LAG + "2000", host)[0] == 200
    except OSError:
        return False
