"""Values as a whole, functions and the administration of a server through redis-py, as Redis has them."""

import time

import pytest
import redis

LIBRARY = """#!lua name=counters
redis.register_function('add', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)
redis.register_function{function_name='peek', callback=function(keys) return redis.call('get', keys[1]) end,
    flags={'no-writes'}}
"""


@pytest.fixture(params=[2, 3])
def client(clean, request):
    with clean.client(1, protocol=request.param) as client:
        yield client


def test_copies_dumps_and_sorting(client):
    client.rpush("{k}l", 3, 10, 2)
    assert client.sort("{k}l") == ["2", "3", "10"] and client.sort("{k}l", alpha=True, desc=True) == ["3", "2", "10"]
    client.mset({"{k}w2": 1, "{k}w3": 9, "{k}w10": 5})
    assert client.sort("{k}l", by="{k}w*", get=["#", "{k}w*"], groups=True) == [("2", "1"), ("10", "5"), ("3", "9")]
    assert client.sort("{k}l", store="{k}s") == 3 and client.lrange("{k}s", 0, -1) == ["2", "3", "10"]
    with pytest.raises(redis.ResponseError, match="the keys of .sort. are in several partitions"):
        client.sort("{k}l", by="w*")
    assert client.copy("{k}l", "{k}m") and not client.copy("{k}l", "{k}m") and client.copy("{k}s", "{k}m", replace=True)
    with pytest.raises(redis.ResponseError, match="^BUSYKEY"):
        client.restore("{k}m", 0, b"x" * 20)
    with pytest.raises(redis.ResponseError, match="DUMP payload version or checksum are wrong"):
        client.restore("new", 0, b"x" * 20)


def test_a_dump_is_restored(clean):
    with clean.client(1, decode_responses=False) as client:
        client.hset("h", mapping={"f": "v", "n": 12})
        client.zadd("z", {"a": 1.5, "b": float("inf")})
        for key in ("h", "z"):
            dump = client.dump(key)
            assert client.restore(f"copy:{key}", 5_000, dump) and client.dump(f"copy:{key}") == dump
            assert 4_000 < client.pttl(f"copy:{key}") <= 5_000


def test_hyperloglogs(client):
    for first in range(0, 10_000, 500):
        client.pfadd("{k}a", *range(first, first + 500))
    client.pfadd("{k}b", *range(9_000, 12_000))
    assert abs(client.pfcount("{k}a") - 10_000) < 300
    assert client.pfmerge("{k}c", "{k}a", "{k}b") and abs(client.pfcount("{k}c") - 12_000) < 360


def test_functions(client):
    assert client.function_load(LIBRARY, replace=True) == "counters"
    assert client.fcall("add", 1, "n", 5) == 5 and client.fcall_ro("peek", 1, "n") == "5"
    with pytest.raises(redis.ResponseError, match="already exists"):
        client.function_load(LIBRARY)
    with pytest.raises(redis.ResponseError, match="write flag using"):
        client.fcall_ro("add", 1, "n", 5)
    assert client.function_delete("counters")
    with pytest.raises(redis.ResponseError, match="Function not found"):
        client.fcall("add", 1, "n", 5)


def test_clients_are_told_of_what_they_cache(clean):
    with clean.client(1, protocol=3) as reader, clean.client(1) as writer:
        connection = reader.connection_pool.get_connection()
        told = []
        connection._parser.set_invalidation_push_handler(told.append)

        def ask(*words):
            connection.send_command(*words)
            return connection.read_response()

        assert ask("CLIENT", "TRACKING", "ON") in ("OK", b"OK")
        ask("GET", "cached")
        writer.set("cached", "new")
        deadline = time.monotonic() + 5
        while not told and time.monotonic() < deadline:
            ask("PING")
        assert told and "cached" in str(told[0])
        reader.connection_pool.release(connection)


def test_keyspace_events(clean):
    with clean.client(1) as client:
        client.config_set("notify-keyspace-events", "KEA")
        events = client.pubsub(ignore_subscribe_messages=True)
        events.psubscribe("__keyevent@0__:*")
        events.get_message(timeout=2)
        client.set("k", "v", ex=100)
        client.delete("k")
        seen = []
        deadline = time.monotonic() + 5
        while len(seen) < 3 and time.monotonic() < deadline:
            message = events.get_message(timeout=0.2)
            seen += [message["channel"].split(":")[1]] if message else []
        assert seen == ["set", "expire", "del"]
        client.config_set("notify-keyspace-events", "")


def test_administration(clean):
    with clean.client(1) as client, clean.client(1) as other:
        name = other.client_id()
        assert client.client_kill_filter(_id=str(name)) == 1
        assert other.ping(), "it connects anew"
        client.config_set("slowlog-log-slower-than", 0)
        client.set("k", "v")
        assert client.slowlog_len() > 0 and client.slowlog_reset()
        client.config_set("slowlog-log-slower-than", 10_000)
        with pytest.raises(redis.ResponseError, match="can't set immutable config"):
            client.config_set("port", 1)
        assert client.wait(0, 100) >= 0
