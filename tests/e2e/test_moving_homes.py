"""A home moves from dc1 to dc2 and back while clients of three datacenters work: each command happens once."""

import signal
import threading
import time

import pytest
import redis
from cluster import Crew, wait_until
from redis.backoff import NoBackoff
from redis.retry import Retry
from servers import NAMES, serves, tried

PATIENCE_S = 30
# Nothing was executed.
REFUSALS = ("HOMEAWAY", "NOTYET", "BLOCKED", "UNAVAILABLE", "LOADING", "TAILLOST", "EXECABORT")
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class Load:
    """What clients did, and were answered."""

    def __init__(self, servers):
        self.servers = servers
        self.answers = []
        self.doubtful = 0
        self.holder = None
        self.taken = 0
        self.mutex = threading.Lock()

    def client(self, name):
        once = Retry(NoBackoff(), 0)
        return redis.Redis("127.0.0.1", self.servers.port(name), decode_responses=True, retry=once, socket_timeout=10)

    def count(self, name):
        try:
            with self.client(name) as client:
                for _ in range(20):
                    value = client.incr("job:count")
                    with self.mutex:
                        self.answers.append(value)
        except redis.RedisError as error:
            with self.mutex:
                self.doubtful += not str(error).startswith(REFUSALS)
            time.sleep(0.01)

    def lock(self, name, token):
        try:
            with self.client(name) as client:
                is_mine = client.set("job:lock", token, nx=True)
        except redis.RedisError:
            # It may hold the lock: then it is the one that can release it.
            is_mine = False
        if is_mine:
            with self.mutex:
                assert self.holder is None, f"{token} was granted what {self.holder} holds"
                self.holder = token
                self.taken += 1
        with self.mutex:
            self.holder = None if self.holder == token else self.holder
        self.release(name, token)
        time.sleep(0.002)

    def release(self, name, token):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                with self.client(name) as client:
                    client.eval(RELEASE, 1, "job:lock", token)
                return
            except redis.RedisError:
                time.sleep(0.02)
        raise AssertionError(f"{token} could not release the lock")


def home(servers, name):
    return tried(servers, name, "CAUSAL", "HOME")


def move(servers, name, to):
    wait_until(lambda: tried(servers, name, "CAUSAL", "HOME", "job:*", to) in ("OK", True), PATIENCE_S, f"it moves to {to}")


def has_moved(servers, to, version):
    expected = [[0, "job:*", to, version, "serves"]]
    return all(home(servers, name) == expected for name in NAMES)


def start(servers, name, protocol):
    directives = ["keyspace 0 home job:* dc1", "home-wait-max 1000", "request-timeout 1500"]
    servers.start(name, f"keyspace 0 protocol {protocol}", *directives)


def progress(load, what):
    before = len(load.answers), load.taken
    wait_until(lambda: len(load.answers) > before[0] + 30 and load.taken > before[1], PATIENCE_S, what)


@pytest.mark.parametrize("protocol", ["eiger", "cure", "eventual"])
def test_what_happens_at_a_home_that_moves_happens_once(servers, protocol):
    for name in NAMES:
        start(servers, name, protocol)
    for name in NAMES:
        wait_until(lambda one=name: serves(servers, one), 20, f"{name} serves")
        counts = lambda one=name: not isinstance(tried(servers, one, "GET", "job:count"), Exception)
        wait_until(counts, PATIENCE_S, f"{name} has a link to the home")
    for to in ("dc2", "dc3"):
        assert "say it at a node of dc1" in str(tried(servers, "dc2", "CAUSAL", "HOME", "job:*", to))
    assert "no home with exactly the pattern" in str(tried(servers, "dc1", "CAUSAL", "HOME", "job:", "dc2"))
    load, crew = Load(servers), Crew()
    for name in NAMES:
        crew.loop(load.count, name)
        crew.loop(load.lock, name, f"{name} {id(load)}")
    progress(load, "work at dc1")
    move(servers, "dc1", "dc2")
    wait_until(lambda: has_moved(servers, "dc2", 1), PATIENCE_S, "dc2 is the home everywhere")
    progress(load, "work at dc2")
    move(servers, "dc2", "dc1")
    servers.end("dc2", signal.SIGKILL)
    time.sleep(0.5)
    start(servers, "dc2", protocol)
    wait_until(lambda: has_moved(servers, "dc1", 2), PATIENCE_S, "dc1 is the home again, everywhere")
    progress(load, "work at dc1 again")
    crew.stop(PATIENCE_S + 10)
    assert len(load.answers) == len(set(load.answers)), "an answer was given twice"
    final = int(servers.ask("dc1", "GET", "job:count"))
    assert len(load.answers) <= final <= len(load.answers) + load.doubtful, (len(load.answers), final, load.doubtful)
    assert max(load.answers) <= final
