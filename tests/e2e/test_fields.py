"""Fields of hashes with deadlines, and conditions on values, through redis-py."""

import time

import pytest
import redis


@pytest.fixture(params=[2, 3])
def client(clean, request):
    with clean.client(1, protocol=request.param) as client:
        yield client


def hsetex(client, key, fields, *options):
    words = [word for pair in fields.items() for word in pair]
    return client.execute_command("HSETEX", key, *options, "FIELDS", len(fields), *words)


def hgetex(client, key, fields, *options):
    return client.execute_command("HGETEX", key, *options, "FIELDS", len(fields), *fields)


def hgetdel(client, key, *fields):
    return client.execute_command("HGETDEL", key, "FIELDS", len(fields), *fields)


def test_deadlines_of_fields(client):
    client.hset("h", mapping={"f": "1", "g": "2", "n": "3"})
    assert client.httl("h", "f", "none") == [-1, -2] and client.httl("none", "f") == [-2]
    assert client.hexpire("h", 100, "f", "none") == [1, -2] and client.hexpire("h", 50, "f", "g", gt=True) == [0, 0]
    assert 99 <= client.httl("h", "f")[0] <= 100 and 99_000 < client.hpttl("h", "f")[0] <= 100_000
    at = int(time.time()) + 50
    assert client.hexpireat("h", at, "g") == [1] and client.hexpiretime("h", "g") == [at]
    assert client.hpexpireat("h", at * 1000 + 1, "g") == [1]
    assert client.hpexpiretime("h", "g", "n") == [at * 1000 + 1, -1]
    assert client.hpersist("h", "f", "n", "none") == [1, -1, -2] and client.httl("h", "f") == [-1]
    client.hset("h", "g", "5")
    assert client.httl("h", "g") == [-1]
    client.hexpire("h", 100, "n")
    assert client.hincrby("h", "n", 4) == 7 and client.httl("h", "n") == [100]
    assert client.hpexpire("h", 0, "f") == [2] and client.hgetall("h") == {"g": "5", "n": "7"}


def test_fields_expire(client):
    client.hset("h", mapping={"f": "1", "g": "2"})
    assert client.hpexpire("h", 150, "f") == [1] and client.hget("h", "f") == "1"
    time.sleep(0.2)
    assert client.hget("h", "f") is None and client.hlen("h") == 1 and client.hkeys("h") == ["g"]
    assert client.hscan("h")[1] == {"g": "2"} and client.hrandfield("h", 5) == ["g"]
    assert client.hpexpire("h", 100, "g") == [1]
    time.sleep(0.15)
    assert client.exists("h") == 0 and client.type("h") == "none" and client.dbsize() == 0
    assert client.hset("h", "f", "3") == 1 and client.httl("h", "f") == [-1] and client.ttl("h") == -1


def test_values_with_deadlines(client):
    assert hsetex(client, "h", {"f": 1}, "EX", 100) == 1 and client.httl("h", "f") == [100]
    assert hsetex(client, "h", {"f": 2, "g": 2}, "KEEPTTL") == 1 and client.httl("h", "f", "g") == [100, -1]
    assert hsetex(client, "h", {"f": 3, "x": 3}, "FXX") == 0 and hsetex(client, "h", {"f": 3, "x": 3}, "FNX") == 0
    assert hgetex(client, "h", ["f", "none"], "PERSIST") == ["2", None] and client.httl("h", "f") == [-1]
    assert hgetex(client, "h", ["g"], "PX", 50_000) == ["2"] and client.httl("h", "g") == [50]
    assert hgetdel(client, "h", "f", "none") == ["2", None] and client.hgetall("h") == {"g": "2"}
    assert hgetdel(client, "h", "g") == ["2"] and client.exists("h") == 0
    with pytest.raises(redis.ResponseError, match="numfields"):
        client.execute_command("HGETDEL", "h", "FIELDS", 2, "f")


def test_deadlines_go_along(client):
    hsetex(client, "{k}h", {"f": 1, "g": 2}, "EX", 100)
    client.hset("{k}h", "g", "3")
    assert client.copy("{k}h", "{k}c") and client.httl("{k}c", "f", "g") == [100, -1]
    assert client.rename("{k}c", "other") and client.httl("other", "f", "g") == [100, -1]
    assert client.hgetall("other") == {"f": "1", "g": "3"} and client.exists("{k}c") == 0


def test_a_dump_has_the_deadlines(clean):
    with clean.client(1, decode_responses=False) as client:
        hsetex(client, "h", {"f": 1}, "EX", 100)
        client.hset("h", "g", "2")
        client.restore("copy", 0, client.dump("h"))
        assert client.httl("copy", "f", "g") == [100, -1] and client.hgetall("copy") == {b"f": b"1", b"g": b"2"}


def test_other_datacenters_see_deadlines(clean):
    with clean.client(1) as here, clean.client(2) as there:
        here.hset("h", mapping={"f": "1", "g": "2"})
        here.hpexpire("h", 700, "f")
        deadline = time.time() + 10
        while there.hpttl("h", "f")[0] <= 0:
            assert time.time() < deadline
            time.sleep(0.01)
        assert there.hexpire("h", 100, "g") == [1]
        time.sleep(0.8)
        assert there.hgetall("h") == {"g": "2"} and here.hget("h", "f") is None


def test_conditions_on_values(client):
    assert client.set("k", "v") and client.execute_command("SET", "k", "w", "IFEQ", "x") is None
    assert client.execute_command("SET", "k", "w", "IFEQ", "v") and client.get("k") == "w"
    digest = client.execute_command("DIGEST", "k")
    assert len(digest) == 16 and client.execute_command("DIGEST", "none") is None
    assert client.execute_command("SET", "k", "x", "IFDNE", digest) is None
    assert client.execute_command("SET", "k", "x", "IFDEQ", digest, "GET", get=True) == "w"
    assert client.execute_command("DELEX", "k", "IFNE", "x") == 0
    assert client.execute_command("DELEX", "k", "IFEQ", "x") == 1 and client.exists("k") == 0
