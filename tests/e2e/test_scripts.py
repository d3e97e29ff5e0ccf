"""Lua scripts as clients use them: locks, registered scripts, limits, pipelines; in one datacenter and in others."""

import hashlib
import threading

import pytest
import redis
from cluster import key_in, wait_until

PARTITIONS = 2
# A token bucket in the manner of the limiters that web frameworks bring along: a hash, the server's time, a deadline.
BUCKET = """
local capacity, rate, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'stamp')
local tokens, stamp = tonumber(bucket[1]) or capacity, tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - stamp) * rate)
local allowed = tokens >= wanted
if allowed then tokens = tokens - wanted end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'stamp', now)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / rate * 2))
return {allowed and 1 or 0, tostring(tokens)}
"""
# A window of fixed length, as the smallest limiters have it.
WINDOW = """
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count == tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {count, redis.call('PTTL', KEYS[1])}
"""
RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


@pytest.fixture
def client(clean):
    with clean.client(1) as client:
        client.script_flush()
        yield client


def test_locks_are_held_by_one_and_released_by_their_holder(clean, client):
    lock = client.lock("lock", timeout=20)
    assert lock.acquire(blocking=False)
    with clean.client(1) as other:
        theirs = other.lock("lock", timeout=20)
        assert not theirs.acquire(blocking=False)
        lock.extend(30)
        assert 20_000 < client.pttl("lock") <= 50_000
        lock.reacquire()
        lock.release()
        with pytest.raises(redis.exceptions.LockError):
            lock.release()
        assert theirs.acquire(blocking=False)
        theirs.release()


def test_of_many_threads_one_at_a_time_holds_the_lock(clean, client):
    client.set("inside", 0)
    wrong = []

    def work():
        with clean.client(1) as own:
            for _ in range(10):
                with own.lock("many", timeout=20, sleep=0.002):
                    if own.incr("inside") != 1:
                        wrong.append("two are inside")
                    own.decr("inside")

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and client.get("inside") == "0"


def test_a_registered_script_works_on_every_connection_and_after_a_flush(clean, client):
    script = client.register_script("return {KEYS[1], ARGV[1]}")
    assert script(keys=["k"], args=["v"]) == ["k", "v"]
    sha = client.script_load("return redis.call('SET', KEYS[1], ARGV[1])")
    for number in range(20):
        with clean.client(1) as other:
            assert other.evalsha(sha, 1, f"key{number}", "v") == "OK"
    client.script_flush()
    with pytest.raises(redis.exceptions.NoScriptError):
        client.evalsha(sha, 1, "k", "v")
    assert client.script_exists(sha) == [False]
    assert script(keys=["k"], args=["w"]) == ["k", "w"]
    with client.pipeline() as pipeline:
        script(keys=["k"], args=[1], client=pipeline)
        pipeline.set("k", 2)
        pipeline.eval("return redis.call('INCR', KEYS[1])", 1, "k")
        assert pipeline.execute() == [["k", "1"], True, 3]


def test_an_eval_makes_its_script_known_to_all_partitions(client):
    keys = [key_in(partition, PARTITIONS, "p") for partition in range(PARTITIONS)]
    assert client.eval("return redis.call('INCR', KEYS[1]) + 40", 1, keys[0]) == 41
    sha = hashlib.sha1(b"return redis.call('INCR', KEYS[1]) + 40").hexdigest()
    assert client.script_exists(sha) == [True]
    assert client.evalsha(sha, 1, keys[1]) == 41
    with pytest.raises(redis.ResponseError, match="CROSSSLOT"):
        client.evalsha(sha, 2, *keys)


def test_limiters_let_through_what_they_may(clean, client):
    bucket = client.register_script(BUCKET)
    allowed = []

    def ask():
        with clean.client(1) as own:
            for _ in range(20):
                allowed.append(bucket(keys=["bucket"], args=[25, 0.001, 1], client=own)[0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(allowed), sum(allowed)) == (80, 25)
    window = client.register_script(WINDOW)
    answers = [window(keys=["window"], args=[1, 60_000]) for _ in range(5)]
    assert [count for count, _ in answers] == [1, 2, 3, 4, 5]
    assert all(0 < left <= 60_000 for _, left in answers)


def test_what_a_script_did_arrives_everywhere_and_the_script_does_not(clean, client):
    with clean.client(2) as far:
        writes = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[2], 'f', ARGV[1])"
        client.eval(writes, 2, "{t}a", "{t}h", "x")
        wait_until(lambda: far.get("{t}a") == "x" and far.hget("{t}h", "f") == "x", 10, "the effects arrive")
        sha = client.script_load("return 'here'")
        assert far.script_exists(sha) == [False]
    clean.converge()


def test_a_runaway_script_is_stopped_and_has_changed_nothing(client):
    client.set("k", "before")
    for text in [
        "redis.call('SET', KEYS[1], 'x'); ('a'):gsub('a', function() while true do end end)",
        "('a'):gsub('a', function() while true do pcall(redis.call, 'APPEND', KEYS[1], 'x') end end)",
        "redis.call('DEL', KEYS[1]) local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end",
        "return (('a'):rep(32)):find(('a?'):rep(32) .. ('a'):rep(32))",
    ]:
        with pytest.raises(redis.ResponseError, match="SCRIPTSTOPPED"):
            client.eval(text, 1, "k")
        assert client.get("k") == "before"
    with pytest.raises(redis.ResponseError, match="NOTBUSY"):
        client.script_kill()


@pytest.fixture
def soon_busy(client):
    """Commands are refused when a script has run for a tenth of a second."""
    client.config_set("busy-reply-threshold", 100)
    yield client
    client.config_set("busy-reply-threshold", 5000)


def in_background(clean, text, key):
    """Runs a script on a connection of its own; what came of it is put into the list."""
    outcome = []

    def run():
        with clean.client(1, timeout=60) as own:
            try:
                outcome.append(own.eval(text, 1, key))
            except redis.ResponseError as error:
                outcome.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def is_busy(client, key):
    try:
        client.get(key)
    except redis.ResponseError as error:
        return str(error).startswith("BUSY ") or "busy running a script" in str(error)
    return False


def test_a_long_script_makes_its_partition_busy_until_it_is_killed(clean, soon_busy):
    here, elsewhere = key_in(0, PARTITIONS, "busy"), key_in(1, PARTITIONS, "idle")
    thread, outcome = in_background(clean, "while true do redis.call('GET', KEYS[1]) end", here)
    with clean.client(1) as other:
        wait_until(lambda: is_busy(other, here), 20, "the partition is busy")
        other.set(elsewhere, "served")
        assert other.get(elsewhere) == "served"
        with pytest.raises(redis.ResponseError, match="busy running a script"):
            other.set(here, "refused")
        assert other.script_kill()
        thread.join()
        assert "killed by user" in outcome[0]
        assert other.get(here) is None
        with pytest.raises(redis.ResponseError, match="NOTBUSY"):
            other.script_kill()


def test_a_long_script_that_has_written_is_not_killed_and_ends_as_one_step(clean, soon_busy):
    key = key_in(0, PARTITIONS, "busy")
    text = "for i = 1, 500000 do redis.call('INCR', KEYS[1]) end return redis.call('GET', KEYS[1])"
    thread, outcome = in_background(clean, text, key)
    with clean.client(1) as other, clean.client(2) as far:
        wait_until(lambda: is_busy(other, key), 20, "the partition is busy")
        with pytest.raises(redis.ResponseError, match="UNKILLABLE"):
            other.script_kill()
        assert far.get(key) is None
        thread.join()
        assert outcome == ["500000"]
        assert other.get(key) == "500000"
        wait_until(lambda: far.get(key) == "500000", 10, "the one entry arrives")


def test_a_release_by_compare_and_delete_in_a_pipeline(client):
    with client.pipeline(transaction=False) as pipeline:
        pipeline.set("l", "mine")
        pipeline.eval(RELEASE, 1, "l", "theirs")
        pipeline.eval(RELEASE, 1, "l", "mine")
        pipeline.eval(RELEASE, 1, "l", "mine")
        assert pipeline.execute() == [True, 0, 1, 0]


def test_commands_describe_themselves(client):
    found = client.command_getkeys("EVAL", "return 1", 2, "a", "", "c")
    assert found == ["a", ""]
    assert "movablekeys" in str(client.execute_command("COMMAND", "INFO", "evalsha"))
    client.config_resetstat()
    client.eval("return 1", 0)
    assert client.info("commandstats")["cmdstat_eval"]["calls"] == 1


def test_patterns_of_sort_in_a_script_are_of_its_partition(client):
    list_key, elsewhere = key_in(0, PARTITIONS, "list"), key_in(1, PARTITIONS, "weight")
    client.rpush(list_key, 1, 2, 3)
    client.mset({elsewhere + "_1": 3})
    sort = "return redis.call('SORT', KEYS[1], 'BY', ARGV[1])"
    with pytest.raises(redis.ResponseError, match="CROSSSLOT"):
        client.eval(sort, 1, list_key, elsewhere + "_*")
    assert client.eval(sort, 1, list_key, "nosort") == client.lrange(list_key, 0, -1)


def test_a_script_writes_into_the_log(clean):
    with clean.client(1) as client:
        client.eval("redis.log(redis.LOG_WARNING, 'number', ARGV[1]) redis.log(redis.LOG_DEBUG, 'no')", 0, 4711)
    logged = clean.log.read_text()
    assert "script: number 4711" in logged and "script: no\n" not in logged
