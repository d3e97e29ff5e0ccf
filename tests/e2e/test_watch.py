"""WATCH through redis-py: optimistic transactions that are exact in a datacenter, and what is refused by name."""

import threading

import pytest
import redis


@pytest.fixture
def client(clean):
    with clean.client(1) as client:
        yield client


def test_counting_by_reading_and_writing_loses_nothing(clean):
    """Eight clients of one datacenter, each of which adds 25 by WATCH, GET, MULTI, SET, EXEC."""
    repeated = []

    def add():
        with clean.client(1) as client:
            for _ in range(25):

                def step(pipeline):
                    repeated.append(None)
                    number = int(pipeline.get("{c}n") or 0)
                    pipeline.multi()
                    pipeline.set("{c}n", number + 1)

                client.transaction(step, "{c}n")

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clean.converge()
    for datacenter in (1, 2, 3):
        with clean.client(datacenter) as client:
            assert client.get("{c}n") == "200"
    assert len(repeated) >= 200


def test_what_arrives_ends_watching_and_what_has_not_arrived_is_merged(clean):
    one, two = clean.client(1), clean.client(2)
    one.set("k", "old")
    clean.converge()
    with one.pipeline() as pipeline:
        pipeline.watch("k")
        two.set("k", "new")
        clean.converge()
        pipeline.multi()
        pipeline.set("k", "mine")
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    clean.link(1, 2, "cut")
    clean.link(1, 3, "cut")
    with one.pipeline() as pipeline:
        pipeline.watch("k")
        two.set("k", "elsewhere")
        pipeline.multi()
        pipeline.set("k", "mine")
        assert pipeline.execute() == [True]
    clean.heal_all()
    clean.converge(20)
    assert one.get("k") == two.get("k")


def test_a_field_of_a_hash_moves_once(client):
    client.hset("{m}from", "f", "v")
    with client.pipeline() as first, client.pipeline() as second:
        for pipeline in (first, second):
            pipeline.watch("{m}from", "{m}to")
            value = pipeline.hget("{m}from", "f")
            pipeline.multi()
            pipeline.hdel("{m}from", "f")
            pipeline.hset("{m}to", "f", value)
        assert first.execute() == [1, 1]
        with pytest.raises(redis.WatchError):
            second.execute()


def test_unwatch_and_discard_forget(client):
    with client.pipeline() as pipeline:
        pipeline.watch("a")
        client.set("a", 1)
        pipeline.unwatch()
        pipeline.multi()
        pipeline.set("a", 2)
        assert pipeline.execute() == [True]


def test_keys_of_several_partitions_are_refused(client):
    refused = 0
    for number in range(20):
        with client.pipeline() as pipeline:
            pipeline.watch("watched")
            pipeline.multi()
            pipeline.set(f"other:{number}", 1)
            try:
                pipeline.execute()
            except redis.ResponseError as error:
                assert "CROSSSLOT" in str(error) or "one hash tag" in str(error), error
                refused += 1
    assert 0 < refused < 20
