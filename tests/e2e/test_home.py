"""Keys with a home: what is written there happens once, wherever its clients are."""

import threading

import pytest
import redis
from cluster import Cluster, wait_until

PATIENCE_S = 20
FLAGS = ["--set", "keyspace=0 home lock:* dc1", "--set", "home-wait-max=1000", "--set", "request-timeout=1500"]


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Locks of keyspace 0 are at home in dc1."""
    cluster = Cluster(tmp_path_factory.mktemp("homes"), delay="5ms", flags=FLAGS)
    cluster.start()
    client = cluster.client(3)

    def arrives():
        try:
            return client.set("lock:ready", "yes")
        except redis.RedisError:
            return False

    wait_until(arrives, PATIENCE_S, "dc3 has a link to the home")
    yield cluster
    cluster.close()


def together(*calls):
    """What these return, called at the same time."""
    found = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def call(place, what):
        barrier.wait()
        found[place] = what()

    threads = [threading.Thread(target=call, args=(place, what)) for place, what in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_one_of_two_datacenters_gets_a_lock(homes):
    clients = [homes.session(datacenter) for datacenter in (2, 3)]
    for turn in range(30):
        key = f"lock:{turn}"
        taken = together(*(lambda c=client, n=n: c.set(key, n, nx=True) for n, client in enumerate(clients)))
        assert sorted(map(bool, taken)) == [False, True], f"{key}: {taken}"
        # Whoever asks sees the same holder, and what its session did.
        assert {client.get(key) for client in clients} <= {str(taken.index(True)), None}
        assert clients[taken.index(True)].get(key) == str(taken.index(True))
        assert clients[taken.index(True)].delete(key) == 1


def test_increments_have_different_answers(homes):
    clients = [homes.session(datacenter) for datacenter in homes.each()]

    def count(client):
        return [client.incr("lock:count") for _ in range(50)]

    answers = [answer for found in together(*(lambda c=c: count(c) for c in clients)) for answer in found]
    assert sorted(answers) == list(range(1, 151))


def test_the_locks_of_redis_py_are_locks(homes):
    one, other = homes.client(2), homes.client(3)
    lock = one.lock("lock:redis-py", timeout=30)
    assert lock.acquire(blocking=False)
    assert not other.lock("lock:redis-py", timeout=30).acquire(blocking=False)
    lock.extend(10)
    lock.release()
    assert other.lock("lock:redis-py", timeout=30).acquire(blocking=False)


def test_a_transaction_is_executed_at_home(homes):
    client = homes.session(2)
    with client.pipeline(transaction=True) as pipe:
        pipe.set("lock:{t}a", 1).incr("lock:{t}b").get("lock:{t}a")
        assert pipe.execute() == [True, 1, "1"]
    assert client.mget("lock:{t}a", "lock:{t}b") == ["1", "1"]
    with pytest.raises(redis.ResponseError, match="^CROSSHOME "):
        client.mset({"lock:{t}a": 1, "{t}other": 1})


def test_what_a_transaction_publishes_follows_it_from_the_datacenter_of_its_client(homes):
    with homes.client(2) as listener, listener.pubsub() as pubsub:
        pubsub.subscribe("done")
        assert pubsub.parse_response()[0] == "subscribe"
        with homes.session(2).pipeline(transaction=True) as pipe:
            pipe.publish("done", "first").set("lock:published", 1).get("lock:published").publish("done", "last")
            assert pipe.execute() == [1, True, "1", 1]
        # Who hears of it reads what was written.
        assert pubsub.parse_response()[2] == "first"
        assert homes.session(2).get("lock:published") == "1"
        assert pubsub.parse_response()[2] == "last"
    with homes.session(2).pipeline(transaction=True) as pipe:
        pipe.set("lock:published", 2).dbsize().publish("done", "never")
        with pytest.raises(redis.ResponseError, match="DBSIZE inside a MULTI of keys with a home elsewhere"):
            pipe.execute()
    assert homes.session(1).get("lock:published") == "1"


def test_what_is_watched_at_a_home_is_exact_from_everywhere(homes):
    clients = [homes.session(datacenter) for datacenter in homes.each()]

    def count(client):
        def increment(pipe):
            value = int(pipe.get("lock:watched") or 0)
            pipe.multi()
            pipe.set("lock:watched", value + 1)

        for _ in range(20):
            client.transaction(increment, "lock:watched")

    together(*(lambda c=client: count(c) for client in clients))
    assert homes.client(1).get("lock:watched") == "60"
    with homes.client(2).pipeline() as pipe:
        pipe.watch("lock:watched")
        homes.client(3).set("lock:watched", "other")
        pipe.multi()
        pipe.set("lock:watched", "lost")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    with homes.client(2).pipeline() as pipe, pytest.raises(redis.ResponseError, match="^CROSSHOME "):
        pipe.watch("lock:watched", "other")


def test_without_a_link_nothing_happens_and_after_it_all_goes_on(homes):
    client = homes.client(3)
    assert client.set("lock:away", "before")
    homes.link(1, 3, "cut")

    def is_away():
        try:
            client.set("lock:away", "during")
        except redis.ResponseError as error:
            assert str(error).split()[0] in ("HOMEAWAY", "UNKNOWN"), error
            return str(error).startswith("HOMEAWAY dc1, the home of these keys, cannot be reached")
        return False

    wait_until(is_away, PATIENCE_S, "the link is known to be cut")
    assert client.get("lock:away") in ("before", "during", None), "reads go on here"
    assert homes.client(2).set("lock:elsewhere", 1, nx=True), "from where the home can be reached, it is written"
    homes.link(1, 3, "heal")

    def is_back():
        try:
            return client.set("lock:away", "after")
        except redis.ResponseError:
            return False

    wait_until(is_back, PATIENCE_S, "the home is back")
    wait_until(lambda: client.get("lock:away") == "after", PATIENCE_S, "what was written there is here")
