"""A datacenter is cut off: both sides go on, and agree again after the links heal."""

import os
import time

import pytest
from cluster import Crew, keys_over_all

# `ENSUE_E2E_RUN=10000` for the long version.
RUN = int(os.environ.get("ENSUE_E2E_RUN", 2_000))
HEALED_S = 5


@pytest.mark.parametrize("nodes", [1, 2])
def test_both_sides_serve_and_agree_after_healing(dev, nodes):
    cluster = dev(delay="40ms", nodes=nodes)
    cluster.client(1).set("before", "all")
    cluster.converge()
    cluster.cut_off(1)
    keys = keys_over_all(cluster.partitions, "k", 8)

    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        begin = time.monotonic()
        assert client.get("before") == "all"
        client.set(f"alone:{datacenter}", datacenter)
        client.mset({key: datacenter for key in keys})
        assert set(client.mget(keys)) == {str(datacenter)}
        assert client.pipeline(transaction=True).get("before").mget(keys).execute()[0] == "all"
        written = client.pipeline(transaction=True).set("w1", datacenter).set("w2", datacenter).execute()
        assert written == [True, True]
        client.sadd("all of us", datacenter)
        client.hset("hash", f"from{datacenter}", datacenter)
        # Local latency: nothing here waited for a link of 40 ms, let alone for a dead one.
        assert time.monotonic() - begin < 2

    cut_off, others = cluster.client(1), cluster.client(2)
    time.sleep(0.3)
    assert cut_off.get("alone:2") is None and others.get("alone:1") is None
    assert others.get("alone:3") == "3"

    crew = Crew()
    for datacenter in cluster.each():
        crew.add(count, cluster, datacenter)
    crew.finish(60)
    assert cut_off.get("counter") == str(RUN)

    cluster.heal_all()
    took = cluster.converge(timeout=HEALED_S)
    print(f"converged {took:.2f} s after healing")
    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        assert client.get("counter") == str(3 * RUN)
        assert client.hget("counters", "field") == str(3 * RUN)
        assert client.mget("alone:1", "alone:2", "alone:3") == ["1", "2", "3"]
        assert len(set(client.mget(keys))) == 1
        assert client.get("w1") == client.get("w2")
        assert client.smembers("all of us") == {"1", "2", "3"}
        assert client.hlen("hash") == 3


def count(cluster, datacenter):
    """INCR one at a time, and HINCRBY in pipelines."""
    with cluster.session(datacenter) as client:
        for _ in range(RUN):
            client.incr("counter")
        for _ in range(RUN // 200):
            pipeline = client.pipeline(transaction=False)
            for _ in range(200):
                pipeline.hincrby("counters", "field", 1)
            pipeline.execute()


def test_conflicts_converge(dev):
    cluster = dev(delay="5ms")
    cluster.client(1).set("plain", "old")
    cluster.client(1).hset("row", mapping={"a": "old", "b": "old"})
    cluster.converge()
    for one, other in ((1, 2), (1, 3), (2, 3)):
        cluster.link(one, other, "cut")
    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        client.set("plain", f"by {datacenter}")
        client.hset("row", "a" if datacenter == 1 else "b", f"by {datacenter}")
        client.sadd("members", "same", f"only {datacenter}")
        client.append("text", str(datacenter))
    cluster.client(1).delete("members")
    cluster.client(2).set("base", 100)
    cluster.client(3).incrby("base", 5)
    cluster.client(3).set("string or hash", 1)
    cluster.client(1).hset("string or hash", "f", 1)
    cluster.heal_all()
    cluster.converge(timeout=HEALED_S)
    client = cluster.client(3)
    assert client.get("plain").startswith("by ")
    assert client.hget("row", "a") == "by 1" and client.hget("row", "b").startswith("by ")
    # The delete in dc1 saw what dc1 had added, and nothing of the others.
    assert client.smembers("members") - {"same"} == {"only 2", "only 3"}
    assert client.get("base") == "105"
