"""Channels over datacenters: who receives what, and that a message never comes before what its publisher had seen."""

import contextlib
import time

import pytest
import redis
from cluster import wait_until
from ports import SECOND_NODES

PUBLISHED = 60
PATIENCE_S = 20


def subscriber(cluster, datacenter, *channels, protocol=2, **options):
    pubsub = cluster.client(datacenter, protocol=protocol, **options).pubsub(ignore_subscribe_messages=False)
    for channel in channels:
        pubsub.subscribe(channel)
        assert message(pubsub)["type"] == "subscribe"
    return pubsub


def message(pubsub, timeout=PATIENCE_S):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = pubsub.get_message(timeout=0.2)
        if found is not None:
            return found
    return None


def ready(cluster, publisher, pubsub, channel):
    """Publishes until something arrives: then the publisher's datacenter knows of the subscriber."""
    client = cluster.client(publisher)

    def arrives():
        client.publish(channel, "ready")
        return message(pubsub, 0.3) is not None

    wait_until(arrives, PATIENCE_S, "the subscriber is known")
    while message(pubsub, 1) is not None:
        pass


def info(cluster, datacenter, name):
    return cluster.client(datacenter).info("everything").get(name, 0)


@pytest.mark.parametrize("protocol", [2, 3])
def test_who_subscribes_receives_from_every_datacenter(clean, protocol):
    pubsub = subscriber(clean, 2, "news", protocol=protocol)
    for publisher in clean.each():
        ready(clean, publisher, pubsub, "news")
        clean.client(publisher).publish("news", f"from {publisher}")
        found = message(pubsub)
        assert (found["type"], found["channel"], found["data"]) == ("message", "news", f"from {publisher}")
    pubsub.psubscribe("n*s")
    assert message(pubsub)["data"] == 2
    # The patterns of one datacenter are known in it at once.
    assert clean.client(2).publish("news", "twice") == 2
    assert {message(pubsub)["type"], message(pubsub)["type"]} == {"message", "pmessage"}
    pubsub.unsubscribe()
    pubsub.punsubscribe()
    assert [message(pubsub)["type"] for _ in range(2)] == ["unsubscribe", "punsubscribe"]
    assert clean.client(2).publish("news", "nobody") == 0


def test_publish_counts_the_own_datacenter_only(clean):
    here, there = subscriber(clean, 1, "count"), subscriber(clean, 2, "count")
    ready(clean, 1, there, "count")
    while message(here, 0.5) is not None:
        pass
    client = clean.client(1)
    assert client.publish("count", "x") == 1
    assert client.pubsub_numsub("count") == [("count", 1)]
    assert "count" in client.pubsub_channels("c*")
    assert client.execute_command("PUBSUB", "NUMPAT") == 0
    assert message(here)["data"] == message(there)["data"] == "x"


def test_shard_channels_are_apart(clean):
    client = clean.client(1)
    pubsub = clean.client(1).pubsub()
    pubsub.execute_command("SSUBSCRIBE", "shard")
    assert pubsub.parse_response()[0] == "ssubscribe"
    assert client.publish("shard", "no") == 0
    assert client.execute_command("SPUBLISH", "shard", "yes") == 1
    assert pubsub.parse_response() == ["smessage", "shard", "yes"]
    assert client.execute_command("PUBSUB", "SHARDNUMSUB", "shard") == ["shard", 1]
    assert client.execute_command("PUBSUB", "SHARDCHANNELS") == ["shard"]


def test_a_message_never_comes_before_the_write(clean):
    """Each message names a number that its publisher has written before, in a key of any partition."""
    pubsub = subscriber(clean, 2, "written")
    ready(clean, 1, pubsub, "written")
    reader = clean.client(2)
    with clean.session(1) as writer:
        for number in range(PUBLISHED):
            writer.set(f"at:{number}", number)
            writer.publish("written", number)
    for number in range(PUBLISHED):
        found = message(pubsub)
        assert found["data"] == str(number), "in the order in which they were published"
        assert reader.get(f"at:{number}") == str(number)


def test_a_message_waits_for_a_past_that_comes_by_another_link(clean):
    """dc1 writes; dc3 reads that and publishes. dc2, which dc1 cannot reach, hands the message out when it is there."""
    pubsub = subscriber(clean, 2, "relayed")
    ready(clean, 3, pubsub, "relayed")
    clean.link(1, 2, "cut")
    try:
        clean.client(1).set("seen", "new")
        with clean.session(3) as relay:
            wait_until(lambda: relay.get("seen") == "new", PATIENCE_S, "dc3 shows the write")
            relay.publish("relayed", "look")
        assert message(pubsub, 1.5) is None
        assert info(clean, 2, "ensue_pubsub_waiting") == 1
        assert clean.client(2).get("seen") is None
        clean.link(1, 2, "heal")
        assert message(pubsub)["data"] == "look"
        assert clean.client(2).get("seen") == "new"
    finally:
        clean.heal_all()


@pytest.mark.parametrize("protocol", ["eiger", "cops", "cops-gt", "cure", "pocc", "ha-pocc", "orbe-dm", "orbe-clock"])
def test_every_causal_protocol_keeps_the_order(dev, protocol):
    cluster = dev(delay="10ms", flags=("--protocol", protocol))
    pubsub = subscriber(cluster, 2, "written")
    ready(cluster, 1, pubsub, "written")
    reader = cluster.client(2)
    with cluster.session(1) as writer:
        for number in range(20):
            writer.set(f"at:{number}", number)
            writer.publish("written", number)
    for number in range(20):
        assert message(pubsub)["data"] == str(number)
        assert reader.get(f"at:{number}") == str(number)


def test_several_nodes_and_their_cores(dev):
    cluster = dev(delay="5ms", nodes=2)
    second = cluster.client_port(1) + SECOND_NODES
    pubsub = subscriber(cluster, 1, "news")
    other = redis.Redis(port=second, decode_responses=True)
    wait_until(lambda: other.publish("news", "hello") == 1, PATIENCE_S, "the other node knows the subscriber")
    assert message(pubsub)["data"] == "hello"
    assert other.pubsub_numsub("news") == [("news", 1)]
    assert info(cluster, 1, "pubsub_channels") == 1
    other.close()


def test_a_subscriber_that_does_not_read_is_disconnected(servers):
    servers.start("dc1", "first-start alone", "client-output-buffer-limit pubsub 1mb 0 0")
    wait_until(lambda: serves(servers), PATIENCE_S, "it serves")
    with redis.Redis(port=servers.port("dc1")) as client:
        slow = redis.Redis(port=servers.port("dc1")).pubsub()
        slow.subscribe("flood")
        assert slow.parse_response()[0] == b"subscribe"
        wait_until(lambda: client.publish("flood", b"x" * (1 << 20)) == 0, PATIENCE_S, "it is disconnected")
        assert client.info("stats")["client_output_buffer_limit_disconnections"] == 1


def serves(servers):
    with contextlib.suppress(redis.RedisError):
        return servers.ask("dc1", "SET", "key", "value")
    return False
