"""MGET and MULTI never show a part of an MSET, in any datacenter, under load, with links flapping."""

import random

import pytest
from cluster import Crew, keys_over_all

LOAD_S = 6


class Counts:
    """What the threads did, so that a test that did nothing fails."""

    def __init__(self):
        self.writes = 0
        self.reads = 0
        self.values = set()


def mset(cluster, datacenter, keys, counts, crew):
    with cluster.session(datacenter) as client:
        number = 0
        while not crew.stopped.is_set():
            number += 1
            value = f"dc{datacenter}-{number}"
            if number % 4:
                client.mset({key: value for key in keys})
            else:
                pipeline = client.pipeline(transaction=True)
                for key in keys:
                    pipeline.set(key, value)
                pipeline.execute()
            counts.writes += 1
            crew.sleep(0.002)


def mget(cluster, datacenter, keys, counts, crew):
    with cluster.session(datacenter) as client:
        number = 0
        while not crew.stopped.is_set():
            number += 1
            if number % 4:
                values = client.mget(keys)
            else:
                pipeline = client.pipeline(transaction=True)
                for key in keys:
                    pipeline.get(key)
                values = pipeline.execute()
            assert len(set(values)) == 1, f"dc{datacenter} shows a mixture: {dict(zip(keys, values))}"
            counts.reads += 1
            counts.values.add(values[0])


def flap(cluster, crew):
    one, other = random.sample(list(cluster.each()), 2)
    shape = random.choice([("cut",), ("delay", 0), ("delay", 3), ("delay", 30)])
    cluster.link(one, other, *shape)
    crew.sleep(random.uniform(0.02, 0.15))
    cluster.link(one, other, "heal")


@pytest.mark.parametrize("nodes", [1, 2])
def test_no_mixture_of_one_mset(dev, nodes):
    cluster = dev(delay="5ms", nodes=nodes, partitions=4)
    keys = keys_over_all(cluster.partitions, "k", 8)
    crew, counts = Crew(), {datacenter: Counts() for datacenter in cluster.each()}
    for datacenter in cluster.each():
        crew.add(mset, cluster, datacenter, keys, counts[datacenter], crew)
        crew.add(mget, cluster, datacenter, keys, counts[datacenter], crew)
    crew.loop(flap, cluster, crew)
    crew.sleep(LOAD_S)
    crew.stop()
    cluster.heal_all()
    cluster.converge(timeout=10)
    answers = [cluster.client(datacenter).mget(keys) for datacenter in cluster.each()]
    assert len({value for answer in answers for value in answer}) == 1, answers
    for datacenter, count in counts.items():
        print(f"dc{datacenter}: {count.writes} writes, {count.reads} reads of {len(count.values)} values")
        assert count.writes > 20 and count.reads > 20
        origins = {value[:3] for value in count.values if value}
        assert len(origins) > 1, f"dc{datacenter} never saw what another datacenter wrote"


def test_a_pair_moves_together_across_types(dev):
    """A transaction over a string, a hash and a set: a snapshot elsewhere has all of it or nothing."""
    cluster = dev(delay="3ms")
    crew = Crew()
    string, row, members = keys_over_all(cluster.partitions, "t", 3)
    looks = []

    def write():
        with cluster.session(1) as client:
            number = 0
            while not crew.stopped.is_set():
                number += 1
                pipeline = client.pipeline(transaction=True)
                pipeline.set(string, number).hset(row, "number", number).sadd(members, number).execute()
                crew.sleep(0.002)

    def read(datacenter):
        with cluster.session(datacenter) as client:
            while not crew.stopped.is_set():
                pipeline = client.pipeline(transaction=True)
                number, field, size = pipeline.get(string).hget(row, "number").scard(members).execute()
                assert number == field and size == int(number or 0), (number, field, size)
                looks.append(number)

    crew.add(write)
    for datacenter in cluster.each():
        crew.add(read, datacenter)
    crew.sleep(3)
    crew.stop()
    assert len(set(looks)) > 20
