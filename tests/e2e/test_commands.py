"""A spread of commands through redis-py, as an application would send them. Details are compared elsewhere."""

import collections
import time

import pytest
import redis
from cluster import wait_until


@pytest.fixture
def client(clean):
    with clean.client(1) as client:
        yield client


def test_strings(client):
    assert client.set("a", "1") and client.get("a") == "1"
    assert client.set("a", "2", nx=True) is None
    assert client.set("a", "2", xx=True) and client.get("a") == "2"
    assert client.set("a", "3", get=True) == "2"
    assert client.setnx("b", "x") and not client.setnx("b", "y")
    assert client.getset("b", "z") == "x"
    assert client.getdel("b") == "z" and client.get("b") is None
    assert client.append("text", "hello ") == 6 and client.append("text", "world") == 11
    assert client.strlen("text") == 11 and client.getrange("text", 0, 4) == "hello"
    assert client.mset({"m1": 1, "m2": 2}) and client.mget("m1", "none", "m2") == ["1", None, "2"]
    binary = bytes(range(256))
    client.set("binary", binary)
    with redis.Redis("127.0.0.1", client.connection_pool.connection_kwargs["port"]) as raw:
        assert raw.get("binary") == binary


def test_counters(client):
    assert client.incr("n") == 1 and client.incrby("n", 41) == 42
    assert client.decr("n") == 41 and client.decrby("n", 40) == 1
    assert float(client.incrbyfloat("n", "0.5")) == 1.5
    client.set("word", "hello")
    with pytest.raises(redis.ResponseError, match="not an integer"):
        client.incr("word")
    client.set("most", 2**63 - 1)
    with pytest.raises(redis.ResponseError, match="overflow"):
        client.incr("most")


def test_keys(client):
    client.mset({f"key:{number}": number for number in range(10)})
    client.sadd("other", "x")
    assert client.dbsize() == 11
    assert sorted(client.keys("key:*")) == [f"key:{number}" for number in range(10)]
    assert client.exists("key:1", "key:2", "none") == 2
    assert client.type("other") == "set" and client.type("key:1") == "string" and client.type("none") == "none"
    assert client.delete("key:1", "key:2", "none") == 2 and client.unlink("key:3") == 1
    assert client.rename("key:4", "renamed") and client.get("renamed") == "4" and not client.exists("key:4")
    with pytest.raises(redis.ResponseError, match="no such key"):
        client.rename("none", "some")
    with pytest.raises(redis.ResponseError, match="^WRONGTYPE"):
        client.get("other")


def test_expiry(client):
    client.set("short", "x", px=150)
    assert 0 < client.pttl("short") <= 150
    client.set("long", "x", ex=100)
    assert 0 < client.ttl("long") <= 100
    assert client.persist("long") and client.ttl("long") == -1
    assert client.expire("long", 50) and client.pexpire("long", 40_000)
    assert client.expireat("long", int(time.time()) + 30) and 0 < client.ttl("long") <= 30
    assert client.ttl("none") == -2 and not client.expire("none", 10)
    wait_until(lambda: client.get("short") is None, 5, "the key expires")
    assert client.exists("short") == 0 and client.ttl("short") == -2
    assert client.expire("long", -1) and not client.exists("long")


def test_expiry_elsewhere(clean, client):
    client.set("short", "x", px=600)
    client.hset("row", "f", "v")
    client.pexpire("row", 600)
    client.set("stays", "x")
    clean.converge()
    for datacenter in clean.each():
        other = clean.client(datacenter)
        wait_until(lambda: not other.exists("short", "row"), 5, f"the keys expire in dc{datacenter}")
        assert other.get("stays") == "x" and other.dbsize() == 1


def test_hashes(client):
    assert client.hset("h", mapping={"a": 1, "b": 2}) == 2 and client.hset("h", "a", 3) == 0
    assert client.hget("h", "a") == "3" and client.hmget("h", "a", "none") == ["3", None]
    assert client.hgetall("h") == {"a": "3", "b": "2"} and client.hlen("h") == 2
    assert sorted(client.hkeys("h")) == ["a", "b"] and sorted(client.hvals("h")) == ["2", "3"]
    assert client.hexists("h", "a") and not client.hexists("h", "none")
    assert client.hsetnx("h", "c", 1) and not client.hsetnx("h", "c", 2)
    assert client.hincrby("h", "n", 5) == 5 and client.hincrby("h", "n", -2) == 3
    assert client.hdel("h", "a", "b", "none") == 2
    assert client.hdel("h", "c", "n") == 2 and not client.exists("h")


def test_sets(client):
    assert client.sadd("s", "a", "b", "c") == 3 and client.sadd("s", "a") == 0
    assert client.smembers("s") == {"a", "b", "c"} and client.scard("s") == 3
    assert client.sismember("s", "a") and not client.sismember("s", "z")
    assert client.smismember("s", ["a", "z"]) == [1, 0]
    assert client.srem("s", "a", "z") == 1 and client.scard("s") == 2


def test_walks(client):
    client.mset({f"walk:{number}": number for number in range(500)})
    client.hset("rows", mapping={f"f{number}": number for number in range(1_500)})
    client.sadd("members", *range(1_500))
    assert set(client.scan_iter("walk:*", count=50)) == {f"walk:{number}" for number in range(500)}
    assert list(client.scan_iter(_type="set")) == ["members"]
    assert dict(client.hscan_iter("rows", count=100)) == {f"f{number}": str(number) for number in range(1_500)}
    assert dict(client.hscan_iter("rows", match="f1?")) == {f"f1{number}": f"1{number}" for number in range(10)}
    assert set(client.sscan_iter("members", count=100)) == {str(number) for number in range(1_500)}


def test_transactions(client):
    with client.pipeline(transaction=True) as pipeline:
        answers = pipeline.set("a", 1).incr("a").get("a").hset("h", "f", 1).incr("h").execute(raise_on_error=False)
    assert answers[:4] == [True, 2, "2", 1]
    assert isinstance(answers[4], redis.ResponseError), "one command of the wrong type fails alone"
    assert client.pipeline(transaction=True).get("a").hgetall("h").execute() == ["2", {"f": "1"}]
    with client.pipeline(transaction=False) as pipeline:
        for number in range(1_000):
            pipeline.incr("fast")
        assert pipeline.execute() == list(range(1, 1_001))


def test_discard_and_errors_inside_multi(clean):
    with clean.session(1) as client:
        # redis-py would make a boolean of the answer.
        client.set_response_callback("SET", lambda answer, **_options: answer)
        assert client.execute_command("MULTI") in ("OK", True)
        assert client.execute_command("SET", "queued", 1) == "QUEUED"
        assert client.execute_command("DISCARD") in ("OK", True)
        assert client.get("queued") is None
        client.execute_command("MULTI")
        with pytest.raises(redis.ResponseError, match="unknown command"):
            client.execute_command("NONSENSE")
        with pytest.raises(redis.exceptions.ExecAbortError):
            client.execute_command("EXEC")
        with pytest.raises(redis.ResponseError, match="without MULTI"):
            client.execute_command("EXEC")


def test_a_pipeline_that_leaves_its_keyspace_is_refused(client):
    with pytest.raises(redis.ResponseError, match="SELECT"):
        client.pipeline(transaction=True).set("a", 1).execute_command("SELECT", 1).execute()


@pytest.mark.parametrize("words", [("NOSUCH", "name", 0), ("NOSUCH", "key", 1)])
def test_what_does_not_exist_says_so(client, words):
    with pytest.raises(redis.ResponseError, match="unknown command"):
        client.execute_command(*words)


def test_keyspaces_are_apart(clean):
    zero, one = clean.client(1), clean.client(1, db=1)
    zero.set("key", "in 0")
    one.set("key", "in 1")
    assert zero.get("key") == "in 0" and one.get("key") == "in 1"
    with pytest.raises(redis.ResponseError, match="out of range"):
        zero.execute_command("SELECT", 16)
    clean.converge()
    clean.converge(keyspace=1)
    assert clean.client(3, db=1).get("key") == "in 1"
    one.flushdb()
    assert zero.get("key") == "in 0" and one.get("key") is None


def test_flush_is_replicated(clean, client):
    client.mset({f"f{number}": number for number in range(50)})
    client.hset("row", "f", 1)
    clean.converge()
    assert clean.client(2).dbsize() == 51
    clean.client(2).flushdb()
    clean.client(2).set("after", 1)
    clean.converge()
    for datacenter in clean.each():
        other = clean.client(datacenter)
        assert other.dbsize() == 1 and other.get("after") == "1"
    clean.client(3).flushall()
    wait_until(lambda: client.dbsize() == 0, 10, "the flush is everywhere")


def test_random_keys_are_fair(client):
    """Each of a hundred keys over all partitions is drawn about as often as any other."""
    client.mset({f"fair:{number}": number for number in range(100)})
    pipeline = client.pipeline(transaction=False)
    for _ in range(5_000):
        pipeline.randomkey()
    drawn = collections.Counter(pipeline.execute())
    assert len(drawn) == client.dbsize() == 100
    assert 20 <= min(drawn.values()) and max(drawn.values()) <= 90, drawn


def test_a_walk_ends_soon_after_a_flush(client):
    """Steps go by the keys that are there, not by how many there were."""
    for first in range(0, 20_000, 1_000):
        client.mset({f"many:{number}": number for number in range(first, first + 1_000)})
    client.flushdb()
    client.set("left", 1)

    def steps():
        cursor, found = client.scan(0)
        count = 1
        while cursor:
            cursor, more = client.scan(cursor)
            found += more
            count += 1
        assert found == ["left"]
        return count

    # Some partitions are empty, and are asked all the same.
    wait_until(lambda: steps() <= 10, 30, "the deleted keys are forgotten")
