"""What one datacenter writes the others show, in an order that respects causality."""

import os
import random

import pytest
from cluster import Crew, key_in, wait_until

# `ENSUE_E2E_TRIES=10000` for the long version.
TRIES = int(os.environ.get("ENSUE_E2E_TRIES", 1_000))
ALBUM_PAUSE_S = 0.004


def test_a_write_is_readable_elsewhere(shared):
    shared.client(1).set("written", "in dc1")
    for datacenter in (2, 3):
        reader = shared.client(datacenter)
        wait_until(lambda: reader.get("written") == "in dc1", 10, f"dc{datacenter} shows the write", pause=0.002)


def test_every_type_travels(clean):
    writer = clean.client(2)
    writer.set("string", "s", ex=1_000)
    writer.incrby("counter", 7)
    writer.hset("hash", mapping={"a": 1, "b": 2})
    writer.hdel("hash", "a")
    writer.sadd("set", "x", "y")
    writer.srem("set", "y")
    writer.set("gone", 1)
    writer.delete("gone")
    clean.converge()
    for datacenter in clean.each():
        reader = clean.client(datacenter)
        assert reader.get("string") == "s" and 0 < reader.ttl("string") <= 1_000
        assert reader.get("counter") == "7"
        assert reader.hgetall("hash") == {"b": "2"}
        assert reader.smembers("set") == {"x"}
        assert not reader.exists("gone")


def shake(crew, cluster, delays):
    """Changes the delay of a random link, again and again."""
    one, other = random.sample(list(cluster.each()), 2)
    cluster.link(one, other, "delay", random.choice(delays))
    crew.sleep(0.05)


def album_story(cluster, tries):
    """A photo, then its album entry, in two partitions; counts how often a reader elsewhere finds no photo.

    Returns how often the entries were looked at, and the misses.
    """
    crew = Crew()
    looked = {2: 0, 3: 0}
    misses = []
    album = key_in(0, cluster.partitions, "album")

    def photo(number):
        return key_in(1, cluster.partitions, f"photo:{number}")

    def write():
        with cluster.session(1) as writer:
            for number in range(1, tries + 1):
                writer.set(photo(number), f"picture {number}")
                writer.set(album, number)
                if not crew.sleep(ALBUM_PAUSE_S):
                    return

    def read(datacenter):
        with cluster.session(datacenter) as reader:
            seen = 0
            while seen < tries and not crew.stopped.is_set():
                newest = int(reader.get(album) or 0)
                if newest == seen:
                    continue
                looked[datacenter] += 1
                if reader.get(photo(newest)) != f"picture {newest}":
                    misses.append((datacenter, newest))
                seen = newest

    flapping = Crew()
    flapping.loop(shake, flapping, cluster, [0, 2, 5, 10, 20])
    crew.add(write)
    for datacenter in looked:
        crew.add(read, datacenter)
    try:
        crew.finish(90)
    finally:
        flapping.stop()
    return looked, misses


def test_a_photo_is_never_missing_from_its_album(dev):
    # Two cores a node: the two partitions have links of their own, and one may be faster.
    cluster = dev(delay="10ms", flags=["--cores", "2"])
    looked, misses = album_story(cluster, TRIES)
    assert not misses, f"{len(misses)} photos were missing, the first in (datacenter, number) {misses[0]}"
    assert all(count > TRIES // 20 for count in looked.values()), f"too few tries: {looked}"


def test_eventual_converges_and_promises_no_more(dev):
    cluster = dev(delay="10ms", flags=["--cores", "2", "--protocol", "eventual"])
    looked, misses = album_story(cluster, TRIES // 4)
    print(f"eventual: {len(misses)} photos missing in {sum(looked.values())} looks")
    cluster.converge()


def test_an_answer_is_never_seen_before_its_question(dev):
    """A chain over three datacenters: each one reads what the one before wrote, then writes."""
    cluster = dev(delay="5ms")
    crew = Crew()
    rounds = 40
    names = {1: key_in(0, 2, "question"), 2: key_in(1, 2, "answer")}

    def ask():
        with cluster.session(1) as client:
            for number in range(1, rounds + 1):
                client.set(names[1], number)
                if not crew.sleep(0.05):
                    return

    def answer():
        with cluster.session(2) as client:
            seen = 0
            while seen < rounds and not crew.stopped.is_set():
                newest = int(client.get(names[1]) or 0)
                if newest > seen:
                    seen = newest
                    client.set(names[2], seen)

    def watch():
        with cluster.session(3) as client:
            seen = 0
            while seen < rounds and not crew.stopped.is_set():
                seen = int(client.get(names[2]) or 0)
                question = int(client.get(names[1]) or 0)
                assert question >= seen, f"answer {seen} is here, question {question} is the newest"

    # The direct way is far slower than the way round.
    cluster.link(1, 3, "delay", 150)
    for work in (ask, answer, watch):
        crew.add(work)
    crew.finish(60)


@pytest.mark.parametrize("nodes", [2])
def test_more_nodes_change_nothing(dev, nodes):
    cluster = dev(delay="2ms", nodes=nodes)
    writer = cluster.client(1)
    writer.mset({f"key{number}": number for number in range(100)})
    for number in range(100):
        writer.incr(f"counter{number % 10}")
    cluster.converge()
    for datacenter in cluster.each():
        reader = cluster.client(datacenter)
        assert reader.mget([f"key{number}" for number in range(100)]) == [str(number) for number in range(100)]
        assert sum(int(value) for value in reader.mget([f"counter{n}" for n in range(10)])) == 100
