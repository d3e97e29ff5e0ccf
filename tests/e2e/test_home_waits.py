"""Commands that wait at the home of their keys, which is elsewhere: what comes there is popped once, and for nobody."""

import os
import signal
import threading

import pytest
import redis
from cluster import Cluster, wait_until

PATIENCE_S = 20
FLAGS = ["--set", "keyspace=0 home job:* dc1", "--set", "home-wait-max=1000", "--set", "request-timeout=1500", "--processes"]


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Queues of keyspace 0 are at home in dc1."""
    cluster = Cluster(tmp_path_factory.mktemp("waits"), delay="5ms", flags=FLAGS)
    cluster.start()
    for datacenter in (2, 3):
        wait_until(lambda d=datacenter: reaches_home(cluster, d), PATIENCE_S, f"dc{datacenter} reaches the home")
    yield cluster
    cluster.close()


def reaches_home(cluster, datacenter):
    try:
        return cluster.client(datacenter).set("job:ready", "yes")
    except redis.RedisError:
        return False


class Asker(threading.Thread):
    """Asks once, in a thread of its own."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.answer = ask, None
        self.start()

    def run(self):
        try:
            self.answer = self.ask()
        except redis.RedisError as error:
            self.answer = error

    def result(self):
        self.join(PATIENCE_S)
        assert not self.is_alive(), "no answer"
        return self.answer


def waits_at_home(homes, count=1):
    """So many requests of other datacenters are being executed at the home."""
    client = homes.client(1)
    executing = lambda: client.info()["ensue_home_requests_executing"] == count  # noqa: E731
    wait_until(executing, PATIENCE_S, f"{count} wait at the home")


def test_each_kind_of_command_waits_there(homes):
    worker, far, here = homes.client(2), homes.client(3), homes.client(1)
    asker = Asker(lambda: worker.blpop("job:l", timeout=10))
    waits_at_home(homes)
    assert far.rpush("job:l", "a") == 1
    assert asker.result() == ("job:l", "a")
    asker = Asker(lambda: worker.blmove("job:{m}", "job:{m}taken", 10, "LEFT", "RIGHT"))
    waits_at_home(homes)
    here.rpush("job:{m}", "b")
    assert asker.result() == "b"
    assert here.lrange("job:{m}taken", 0, -1) == ["b"]
    asker = Asker(lambda: worker.bzpopmin("job:z", timeout=10))
    waits_at_home(homes)
    here.zadd("job:z", {"c": 2})
    assert asker.result() == ("job:z", "c", 2.0)
    here.xgroup_create("job:s", "workers", mkstream=True)
    asker = Asker(lambda: worker.xreadgroup("workers", "one", {"job:s": ">"}, block=10_000))
    waits_at_home(homes)
    entry = far.xadd("job:s", {"n": "1"})
    assert asker.result() == [["job:s", [(entry, {"n": "1"})]]]
    assert worker.xack("job:s", "workers", entry) == 1
    assert worker.blpop("job:l", timeout=0.3) is None


def test_workers_everywhere_take_each_job_once(homes):
    jobs = [f"{datacenter}-{number}" for datacenter in homes.each() for number in range(60)]
    taken = {datacenter: [] for datacenter in homes.each()}

    def work(datacenter):
        client = homes.client(datacenter)
        while found := client.blpop("job:many", timeout=1.5):
            taken[datacenter].append(found[1])

    workers = [threading.Thread(target=work, args=(datacenter,)) for datacenter in homes.each() for _ in range(2)]
    for worker in workers:
        worker.start()
    for job in jobs:
        homes.client(int(job[0])).rpush("job:many", job)
    for worker in workers:
        worker.join()
    assert sorted(job for some in taken.values() for job in some) == sorted(jobs)
    assert all(taken.values()), f"somebody elsewhere got nothing: {taken}"


def test_a_client_that_leaves_and_one_that_is_unblocked_take_nothing(homes):
    here, far = homes.client(1), homes.client(2)
    leaver = homes.socket(2)
    leaver.sendall(b"BLPOP job:gone 0\r\n")
    waits_at_home(homes)
    leaver.close()
    waits_at_home(homes, 0)
    waiter = homes.client(2)
    number = waiter.client_id()
    asker = Asker(lambda: waiter.blpop("job:gone", timeout=0))
    waits_at_home(homes)
    assert far.client_unblock(number)
    assert asker.result() is None
    waits_at_home(homes, 0)
    here.rpush("job:gone", "kept")
    assert far.blpop("job:gone", timeout=5) == ("job:gone", "kept")


def test_it_waits_on_while_the_link_is_cut(homes):
    worker, here = homes.client(3, timeout=60), homes.client(1)
    asker = Asker(lambda: worker.blpop("job:cut", timeout=0))
    waits_at_home(homes)
    homes.link(1, 3, "cut")
    waits_at_home(homes, 0)
    here.rpush("job:cut", "first")
    assert here.llen("job:cut") == 1, "nothing is popped for who cannot hear it"
    homes.link(1, 3, "heal")
    assert asker.result() == ("job:cut", "first")


def test_a_home_that_is_killed_may_have_popped(homes):
    worker = homes.client(2, timeout=60)
    asker = Asker(lambda: worker.blpop("job:kill", timeout=0))
    waits_at_home(homes)
    os.kill(homes.process_of(1), signal.SIGKILL)
    homes.wait_for_ping(1, 30)
    error = asker.result()
    assert isinstance(error, redis.ResponseError) and str(error).startswith("UNKNOWN dc1, the home"), error
    wait_until(lambda: reaches_home(homes, 2), PATIENCE_S, "the home is back")
    homes.client(1).rpush("job:kill", "later")
    assert worker.blpop("job:kill", timeout=10) == ("job:kill", "later")
