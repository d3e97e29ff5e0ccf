"""Streams through redis-py: answers as Redis gives them, groups, readers that wait, and what is merged."""

import threading
import time

import pytest
import redis

LONG = 2_000


@pytest.fixture(params=[2, 3])
def client(clean, request):
    with clean.client(1, protocol=request.param) as client:
        yield client


def test_streams_are_copied_renamed_and_restored_as_a_whole(client):
    for number in range(1, 251):
        client.xadd("s{t}", {"n": number, "m": "x"}, id=f"{number}-1")
    client.xgroup_create("s{t}", "g", id="0")
    client.xreadgroup("g", "alice", {"s{t}": ">"}, count=100)
    client.xreadgroup("g", "bob", {"s{t}": ">"}, count=5)
    client.xdel("s{t}", "7-1")
    told = client.xinfo_stream("s{t}", full=True)
    assert client.copy("s{t}", "copied{t}") and client.xinfo_stream("copied{t}", full=True) == told
    client.rename("copied{t}", "renamed{t}")
    assert client.xinfo_stream("renamed{t}", full=True) == told and not client.exists("copied{t}")
    restore = "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]))"
    assert client.eval(restore, 2, "s{t}", "restored{t}") == "OK"
    assert client.xinfo_stream("restored{t}", full=True) == told
    delivered = client.xreadgroup("g", "carol", {"renamed{t}": ">"}, count=1)
    assert "106-1" in str(delivered)


def entries(answer):
    """Of the only stream that was read; RESP3 answers a map."""
    found = answer.get("s", []) if isinstance(answer, dict) else answer[0][1] if answer else []
    return found[0] if found and isinstance(found[0], list) else found


def test_entries(client):
    assert client.xadd("s", {"a": 1}, id="1-1") == "1-1" and client.xadd("s", {"a": 2}, id="1-*") == "1-2"
    drawn = client.xadd("s", {"a": 3, "b": 4})
    assert client.xlen("s") == 3 and client.type("s") == "stream"
    assert client.xrange("s", max="1-1") == [("1-1", {"a": "1"})]
    assert client.xrevrange("s", count=1) == [(drawn, {"a": "3", "b": "4"})]
    assert [one for one, _ in entries(client.xread({"s": "1-1"}))] == ["1-2", drawn]
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        client.xadd("s", {"a": 1}, id="1-1")
    with pytest.raises(redis.ResponseError, match="^WRONGTYPE"):
        client.lpush("s", "a")
    assert client.xdel("s", "1-1", "9-9") == 1 and client.xtrim("s", maxlen=1, approximate=False) == 1
    told = client.xinfo_stream("s")
    assert (told["length"], told["entries-added"], told["last-generated-id"]) == (1, 3, drawn)
    assert list(client.scan_iter(_type="stream")) == ["s"]


def test_groups(client):
    for number in range(LONG):
        client.xadd("s", {"n": number})
    client.xgroup_create("s", "g", "0")
    seen = []
    while found := entries(client.xreadgroup("g", "alice", {"s": ">"}, count=300)):
        seen += [int(fields["n"]) for _, fields in found]
        client.xack("s", "g", *[one for one, _ in found[1:]])
    assert seen == list(range(LONG))
    pending = client.xpending("s", "g")
    assert pending["pending"] == 7 and pending["consumers"] == [{"name": "alice", "pending": 7}]
    claimed = client.xautoclaim("s", "g", "bob", 0, count=3)
    assert len(claimed[1]) == 3 and client.xpending_range("s", "g", "-", "+", 9, "bob")[0]["times_delivered"] == 2
    assert [one["name"] for one in client.xinfo_consumers("s", "g")] == ["alice", "bob"]
    assert client.xinfo_groups("s")[0]["lag"] == 0


def test_readers_wait(clean):
    answers = {}

    def read(name, ask):
        with clean.client(1) as other:
            answers[name] = ask(other)

    with clean.client(1) as client:
        client.xgroup_create("s", "g", mkstream=True)
        asks = {
            "late": lambda other: other.xread({"s": "9999999999999-0"}, block=1_000),
            "last": lambda other: other.xread({"s": "$"}, block=10_000),
            "one": lambda other: other.xreadgroup("g", "one", {"s": ">"}, block=10_000),
            "two": lambda other: other.xreadgroup("g", "two", {"s": ">"}, block=10_000),
        }
        threads = [threading.Thread(target=read, args=ask) for ask in asks.items()]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        first, second = client.xadd("s", {"n": 1}), client.xadd("s", {"n": 2})
        for thread in threads:
            thread.join()
    assert not answers["late"] and entries(answers["last"])[0][0] == first
    assert sorted(one for name in ("one", "two") for one, _ in entries(answers[name])) == [first, second]


def test_transactions_and_scripts(client):
    with client.pipeline(transaction=True) as pipeline:
        pipeline.xadd("s", {"a": 1}, id="1-1").xread({"s": "$"}, block=10_000).xlen("s")
        assert pipeline.execute()[2] == 1
    script = "redis.call('XADD', KEYS[1], '2-1', 'a', '2') return redis.call('XRANGE', KEYS[1], '2', '+')"
    assert client.eval(script, 1, "s") == [["2-1", ["a", "2"]]]


def test_datacenters_have_their_own_logs(clean):
    clients = [clean.client(number) for number in (1, 2)]
    clients[0].xgroup_create("s", "g", "0", mkstream=True)
    clean.converge()
    clean.cut_off(1)
    for number in range(3):
        for datacenter, client in enumerate(clients):
            client.xadd("s", {"from": f"{datacenter}-{number}"})
    # What this datacenter has is delivered, and what arrives later with lower ids is, too.
    seen = [fields["from"] for _, fields in entries(clients[1].xreadgroup("g", "c", {"s": ">"}))]
    assert seen == ["1-0", "1-1", "1-2"]
    clean.heal_all()
    clean.converge()
    answers = [client.xrange("s") for client in clients]
    assert answers[0] == answers[1] and len({one for one, _ in answers[0]}) == 6
    late = [fields["from"] for _, fields in entries(clients[1].xreadgroup("g", "c", {"s": ">"}))]
    assert late == ["0-0", "0-1", "0-2"]
    for client in clients:
        client.close()
