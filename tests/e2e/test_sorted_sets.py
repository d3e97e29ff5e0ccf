"""Sorted sets through redis-py: answers as Redis gives them, and what concurrent changes converge to."""

import pytest
import redis


@pytest.fixture(params=[2, 3])
def client(clean, request):
    with clean.client(1, protocol=request.param) as client:
        yield client


def pairs(answer):
    """Members with scores as tuples, whichever protocol version brought them."""
    return [(member, float(score)) for member, score in answer]


def test_scores(client):
    assert client.zadd("z", {"a": 1, "b": 2.5, "c": "inf"}) == 3
    assert client.zadd("z", {"a": 1, "d": -1}) == 1
    assert client.zadd("z", {"a": 3, "b": 2.5}, ch=True) == 1
    assert client.zadd("z", {"a": 9, "x": 1}, nx=True) == 1 and client.zadd("z", {"y": 1}, xx=True) == 0
    assert client.zadd("z", {"a": 2}, gt=True, ch=True) == 0 and client.zadd("z", {"a": 2}, lt=True, ch=True) == 1
    assert client.zadd("z", {"a": 0.5}, incr=True) == 2.5 and client.zadd("z", {"a": 1}, incr=True, nx=True) is None
    assert client.zscore("z", "a") == 2.5 and client.zscore("z", "none") is None
    assert client.zmscore("z", ["b", "none", "c"]) == [2.5, None, float("inf")]
    assert client.zcard("z") == 5 and client.zcard("none") == 0 and client.type("z") == "zset"
    assert client.zrem("z", "x", "none") == 1
    assert client.zincrby("z", 0.1, "n") == 0.1 and client.zincrby("z", 0.2, "n") == 0.1 + 0.2
    with pytest.raises(redis.ResponseError, match="^resulting score is not a number"):
        client.zincrby("z", "-inf", "c")
    with pytest.raises(redis.ResponseError, match="^value is not a valid float"):
        client.execute_command("ZADD", "z", "x", "a")
    with pytest.raises(redis.ResponseError, match="^WRONGTYPE"):
        client.get("z")


def test_ranges(client):
    client.zadd("z", {"a": 1, "b": 2, "c": 2, "d": 3})
    assert client.zrange("z", 0, -1) == ["a", "b", "c", "d"] and client.zrevrange("z", 0, 1) == ["d", "c"]
    assert pairs(client.zrange("z", 0, 0, desc=True, withscores=True)) == [("d", 3.0)]
    assert client.zrangebyscore("z", "(1", 3, start=1, num=1) == ["c"]
    assert pairs(client.zrevrangebyscore("z", "+inf", 2, withscores=True)) == [("d", 3.0), ("c", 2.0), ("b", 2.0)]
    assert client.zrange("z", 2, 1, byscore=True, desc=True, offset=0, num=2) == ["c", "b"]
    assert client.zcount("z", 2, "(3") == 2 and client.zrank("z", "c") == 2 and client.zrevrank("z", "c") == 1
    assert client.execute_command("ZRANK", "z", "c", "WITHSCORE") == [2, "2" if client_version(client) == 2 else 2.0]
    client.zadd("lex", {name: 0 for name in "abcd"})
    assert client.zrangebylex("lex", "[b", "(d") == ["b", "c"] and client.zlexcount("lex", "-", "+") == 4
    assert client.zrevrangebylex("lex", "+", "-", start=1, num=2) == ["c", "b"]
    assert client.zremrangebylex("lex", "-", "(c") == 2 and client.zremrangebyrank("lex", 0, 0) == 1
    assert client.zremrangebyscore("z", 2, 2) == 2 and client.zrange("z", 0, -1) == ["a", "d"]


def client_version(client):
    return client.connection_pool.connection_kwargs["protocol"]


def test_answers_of_both_versions(client):
    """What a client library hides: RESP2 has flat arrays of strings, RESP3 pairs with doubles."""
    client.zadd("z", {"a": 1.5, "b": 2})
    connection = client.connection_pool.get_connection()
    try:

        def ask(*words):
            connection.send_command(*words)
            return connection.read_response()

        if client_version(client) == 2:
            assert ask("ZRANGE", "z", 0, -1, "WITHSCORES") == ["a", "1.5", "b", "2"]
            assert ask("ZSCORE", "z", "a") == "1.5" and ask("ZPOPMAX", "z", 1) == ["b", "2"]
        else:
            assert ask("ZRANGE", "z", 0, -1, "WITHSCORES") == [["a", 1.5], ["b", 2.0]]
            assert ask("ZSCORE", "z", "a") == 1.5 and ask("ZPOPMAX", "z", 1) == [["b", 2.0]]
        assert len(ask("ZPOPMIN", "z")) == 2 and ask("ZPOPMIN", "z") == []
    finally:
        client.connection_pool.release(connection)


def test_pops_draws_and_walks(client):
    client.zadd("z", {f"m{number:04}": number for number in range(1_500)})
    assert client.zrank("z", "m0700") == 700 and client.zrange("z", -2, -1) == ["m1498", "m1499"]
    assert client.zcount("z", 100, "(200") == 100
    drawn = client.zrandmember("z", 20)
    assert len(set(drawn)) == 20 and len(client.zrandmember("z", -30)) == 30
    assert dict(client.zscan_iter("z", count=100)) == {f"m{number:04}": float(number) for number in range(1_500)}
    assert pairs(client.zpopmin("z", 2)) == [("m0000", 0.0), ("m0001", 1.0)]
    assert pairs(client.zpopmax("z", 1)) == [("m1499", 1499.0)]
    assert client.zremrangebyrank("z", 0, -4) == 1_494 and client.zrange("z", 0, -1) == ["m1496", "m1497", "m1498"]
    key, popped = client.zmpop(2, ["none{z}", "{z}"], min=True) or (None, None)
    assert key is None and popped is None


def test_several_keys(client):
    client.zadd("{k}a", {"x": 1, "y": 2})
    client.zadd("{k}b", {"y": 10, "z": 20})
    client.sadd("{k}s", "x")
    assert pairs(client.zunion(["{k}a", "{k}b"], withscores=True)) == [("x", 1.0), ("y", 12.0), ("z", 20.0)]
    assert client.zinter(["{k}a", "{k}s"]) == ["x"] and client.zdiff(["{k}a", "{k}b"]) == ["x"]
    assert client.zintercard(2, ["{k}a", "{k}b"]) == 1
    assert client.zunionstore("{k}t", {"{k}a": 2, "{k}b": 0.5}, aggregate="max") == 3
    assert pairs(client.zrange("{k}t", 0, -1, withscores=True)) == [("x", 2.0), ("y", 5.0), ("z", 10.0)]
    assert client.zrangestore("{k}u", "{k}t", 1, -1) == 2 and client.zdiffstore("{k}t", ["{k}t", "{k}u"]) == 1
    assert client.zmpop(2, ["{k}none", "{k}t"], max=True)[0] == "{k}t" and not client.exists("{k}t")
    assert client.rename("{k}u", "elsewhere") and client.zscore("elsewhere", "z") == 10
    apart = [f"key{number}" for number in range(20)]
    with pytest.raises(redis.ResponseError, match="^CROSSSLOT|in several partitions"):
        client.zunion(apart)


def test_in_a_transaction(client):
    with client.pipeline(transaction=True) as pipeline:
        pipeline.zadd("z", {"a": 1}).zincrby("z", 2, "a").zrange("z", 0, -1).zcard("z")
        assert pipeline.execute() == [1, 3.0, ["a"], 1]


def test_concurrent_changes_converge(clean):
    one, two = clean.client(1), clean.client(2)
    one.zadd("board", {"a": 1, "b": 1, "c": 1, "d": 1})
    clean.converge()
    clean.cut_off(1)
    one.zincrby("board", 2, "a")
    two.zincrby("board", 0.1, "a")
    one.zadd("board", {"b": 100})
    two.zincrby("board", 5, "b")
    one.zincrby("board", 7, "c")
    two.zrem("board", "c")
    two.zadd("board", {"new": 9})
    one.delete("board")
    clean.heal_all()
    clean.converge(20)
    for datacenter in (1, 2, 3):
        client = clean.client(datacenter)
        scores = dict(pairs(client.zrange("board", 0, -1, withscores=True)))
        # What the delete had seen is gone; increments that it had not seen stay, and so does the member that was new.
        assert scores == {"a": 0.1, "b": 5.0, "new": 9.0}, datacenter


def test_increments_add_up_everywhere(clean):
    clients = [clean.client(datacenter) for datacenter in (1, 2, 3)]
    for round_number in range(40):
        for client in clients:
            client.zincrby("board", round_number % 3 + 0.1, "a")
    clean.converge(20)
    scores = [client.zscore("board", "a") for client in clients]
    assert len(set(scores)) == 1 and scores[0] == pytest.approx(3 * sum(number % 3 + 0.1 for number in range(40)))
