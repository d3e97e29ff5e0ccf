"""Lists through redis-py: answers as Redis gives them, queues, and what concurrent changes converge to."""

import pytest
import redis

LONG = 3_000


@pytest.fixture(params=[2, 3])
def client(clean, request):
    with clean.client(1, protocol=request.param) as client:
        yield client


def test_elements(client):
    assert client.rpush("l", "a", "b", "c") == 3 and client.lpush("l", "z", "y") == 5
    assert client.lrange("l", 0, -1) == ["y", "z", "a", "b", "c"] and client.llen("l") == 5
    assert client.type("l") == "list" and client.lindex("l", -1) == "c" and client.lindex("l", 9) is None
    assert client.lset("l", 1, "Z") and client.linsert("l", "BEFORE", "a", "x") == 6
    assert client.linsert("l", "AFTER", "none", "x") == -1 and client.lpos("l", "x") == 2
    assert client.lpos("l", "x", count=0) == [2] and client.lrem("l", 0, "x") == 1
    assert client.lpop("l") == "y" and client.rpop("l", 2) == ["c", "b"] and client.lpop("none", 2) is None
    assert client.lmove("l", "m", "LEFT", "RIGHT") == "Z" and client.rpoplpush("l", "m") == "a"
    assert client.exists("l") == 0 and client.lrange("m", 0, -1) == ["a", "Z"]
    assert client.lmpop(2, "l", "m", direction="RIGHT", count=2) == ["m", ["Z", "a"]]
    assert client.lpushx("l", "a") == 0 and client.rpush("l", *range(9)) == 9
    assert client.ltrim("l", 2, -3) and client.lrange("l", 0, -1) == ["2", "3", "4", "5", "6"]
    with pytest.raises(redis.ResponseError, match="^index out of range"):
        client.lset("l", 5, "x")
    with pytest.raises(redis.ResponseError, match="^WRONGTYPE"):
        client.get("l")
    assert client.rename("l", "n") and client.lrange("n", 0, 1) == ["2", "3"]
    assert list(client.scan_iter(_type="list")) == ["n"]


def test_a_long_queue(client):
    for first in range(0, LONG, 500):
        client.rpush("queue", *range(first, first + 500))
    with client.pipeline() as pipeline:
        for number in range(LONG):
            pipeline.rpush("queue", LONG + number)
            pipeline.lpop("queue")
        answers = pipeline.execute()
    assert answers[1::2] == [str(number) for number in range(LONG)]
    assert client.llen("queue") == LONG and client.lindex("queue", LONG // 2) == str(LONG + LONG // 2)
    assert client.lrange("queue", -2, -1) == [str(2 * LONG - 2), str(2 * LONG - 1)]


def test_transactions_and_scripts(client):
    with client.pipeline(transaction=True) as pipeline:
        pipeline.rpush("l", "a").lpush("l", "b").rpush("l", "c").lpop("l").lrange("l", 0, -1)
        assert pipeline.execute() == [1, 2, 3, "b", ["a", "c"]]
    move = "local all = redis.call('LRANGE', KEYS[1], 0, -1) for _, one in ipairs(all) do " \
        "redis.call('RPUSH', KEYS[2], one) end redis.call('DEL', KEYS[1]) return #all"
    assert client.eval("redis.call('LPUSH', KEYS[1], 'x') return redis.call('RPOP', KEYS[1])", 1, "l") == "c"
    client.rpush("{q}a", "1", "2")
    assert client.eval(move, 2, "{q}a", "{q}b") == 2 and client.lrange("{q}b", 0, -1) == ["1", "2"]


def test_datacenters_push_beside_each_other(clean):
    clients = [clean.client(number) for number in (1, 2)]
    clients[0].rpush("l", "begin")
    clean.converge()
    clean.cut_off(1)
    for number in range(3):
        clients[0].rpush("l", f"a{number}")
        clients[1].rpush("l", f"b{number}")
    assert clients[0].lpop("l") == "begin" and clients[1].lpop("l") == "begin"
    clean.heal_all()
    clean.converge()
    answers = [client.lrange("l", 0, -1) for client in clients]
    assert answers[0] == answers[1]
    assert answers[0] in (["a0", "a1", "a2", "b0", "b1", "b2"], ["b0", "b1", "b2", "a0", "a1", "a2"])
    for client in clients:
        client.close()
