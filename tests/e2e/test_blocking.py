"""Pops that wait, through redis-py: queues between clients, in one datacenter and from another one."""

import threading
import time

import pytest
import redis

WORKERS = 4
JOBS = 400


@pytest.fixture(params=[2, 3])
def client(clean, request):
    with clean.client(1, protocol=request.param) as client:
        yield client


class Waiting(threading.Thread):
    """A client that asks one thing."""

    def __init__(self, cluster, ask, datacenter=1):
        super().__init__()
        self.client = cluster.client(datacenter)
        self.ask = ask
        self.answer = None
        self.start()

    def run(self):
        try:
            self.answer = self.ask(self.client)
        except redis.RedisError as error:
            self.answer = error

    def end(self):
        self.join(20)
        assert not self.is_alive()
        self.client.close()
        return self.answer


def wait_until_waiting(client, count):
    for _ in range(500):
        if client.info("ensue")["ensue_waiting_pops"] == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"not {count} wait")


def test_hand_over(clean, client):
    one = Waiting(clean, lambda other: other.blpop("a", timeout=10))
    wait_until_waiting(client, 1)
    assert client.rpush("a", "x") == 1
    assert list(one.end()) == ["a", "x"] and client.exists("a") == 0
    wait_until_waiting(client, 0)


def test_what_is_there_is_answered_at_once(client):
    client.rpush("l", "a", "b", "c")
    assert list(client.blpop("l")) == ["l", "a"] and list(client.brpop("l")) == ["l", "c"]
    client.rpush("{q}a", "x", "y", "z")
    assert client.blmove("{q}a", "{q}b", 1, "LEFT", "RIGHT") == "x"
    assert client.brpoplpush("{q}a", "{q}b") == "z" and client.lrange("{q}b", 0, -1) == ["z", "x"]
    assert client.blmpop(1, 2, "{q}none", "{q}b", direction="LEFT", count=2) == ["{q}b", ["z", "x"]]
    client.zadd("z", {"a": 1, "b": 2, "c": 3})
    assert list(client.bzpopmin("z")) == ["z", "a", 1.0] and list(client.bzpopmax("z")) == ["z", "c", 3.0]
    key, members = client.bzmpop(1, 1, "z", min=True)
    assert (key, [(name, float(score)) for name, score in members]) == ("z", [("b", 2.0)])


def test_timeouts(client):
    begin = time.monotonic()
    assert client.blpop("none", timeout=0.2) is None
    assert 0.2 <= time.monotonic() - begin < 5
    assert client.blmove("{q}a", "{q}b", 0.01) is None and client.bzpopmin("none", timeout=0.01) is None
    for timeout, words in [("-1", "timeout is negative"), ("x", "timeout is not a float or out of range")]:
        with pytest.raises(redis.ResponseError, match=f"^{words}"):
            client.execute_command("BLPOP", "none", timeout)


def test_order_of_arrival(clean, client):
    waiting = []
    for number in range(WORKERS):
        waiting.append(Waiting(clean, lambda other: other.blpop("q", timeout=20)))
        wait_until_waiting(client, number + 1)
    for number in range(WORKERS):
        client.rpush("q", number)
    assert [list(one.end()) for one in waiting] == [["q", str(number)] for number in range(WORKERS)]


def test_nothing_is_lost_with_a_client_that_leaves(clean, client):
    gone = clean.client(1, single_connection_client=True)
    gone.connection.send_command("BLPOP", "q", 0)
    wait_until_waiting(client, 1)
    gone.connection.disconnect()
    wait_until_waiting(client, 0)
    client.rpush("q", "x")
    assert client.lrange("q", 0, -1) == ["x"]


def test_workers_do_each_job_once(clean, client):
    """As Celery's and RQ's workers do: pushed at the left, popped at the right by whoever is free."""

    def work(other):
        done = []
        while (job := other.brpop(["jobs"], timeout=20)[1]) != "end":
            done.append(job)
        return done

    workers = [Waiting(clean, work) for _ in range(WORKERS)]
    for number in range(JOBS):
        client.lpush("jobs", number)
    for _ in workers:
        client.lpush("jobs", "end")
    done = [worker.end() for worker in workers]
    assert sorted(int(job) for jobs in done for job in jobs) == list(range(JOBS))
    assert all(jobs == sorted(jobs, key=int) for jobs in done)


def test_a_reliable_queue(clean, client):
    """As resque's and others' do: moved to a list of the worker, removed when it is done."""
    worker = Waiting(clean, lambda other: other.blmove("{w}jobs", "{w}doing", 20, "RIGHT", "LEFT"))
    wait_until_waiting(client, 1)
    client.lpush("{w}jobs", "job")
    assert worker.end() == "job" and client.lrange("{w}doing", 0, -1) == ["job"]
    assert client.lrem("{w}doing", 1, "job") == 1


def test_nobody_waits_in_transactions_and_scripts(client):
    with client.pipeline() as pipeline:
        pipeline.blpop("q").rpush("q", "x").blpop("q")
        nothing, length, popped = pipeline.execute()
    assert (nothing, length, list(popped)) == (None, 1, ["q", "x"])
    assert client.eval("return redis.call('BLPOP', KEYS[1], 0)", 1, "q") is None


def test_an_element_of_another_datacenter_wakes(clean, client):
    waiting = Waiting(clean, lambda other: other.blpop("q", timeout=20), datacenter=2)
    with clean.client(2) as there:
        wait_until_waiting(there, 1)
        client.rpush("q", "far")
        assert list(waiting.end()) == ["q", "far"]
        clean.converge()
        assert there.exists("q") == client.exists("q") == 0
