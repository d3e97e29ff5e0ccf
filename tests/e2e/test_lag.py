"""A datacenter that was away for more than memory holds takes the rest out of the log."""

import redis
from cluster import wait_until

WRITES = 120_000


def test_a_long_lag_of_small_writes_is_made_up(servers):
    servers.names, servers.partitions = ["dc1", "dc2"], 1
    servers.lines = {name: servers.names for name in servers.names}
    for name in servers.names:
        servers.start(name)
    wait_until(lambda: all(answers(servers, name) for name in servers.names), 20, "both serve")
    wait_until(lambda: servers.ask("dc2", "DBSIZE") == 1, 20, "they are linked")
    servers.end("dc2")
    with redis.Redis("127.0.0.1", servers.port("dc1")) as client:
        for begin in range(0, WRITES, 10_000):
            with client.pipeline(transaction=False) as pipe:
                for number in range(begin, begin + 10_000):
                    pipe.set(f"k{number}", "v")
                pipe.execute()
    servers.start("dc2")
    wait_until(lambda: answers(servers, "dc2"), 20, "it serves again")
    wait_until(lambda: servers.ask("dc2", "DBSIZE") == WRITES + 1, 60, "all has arrived")


def answers(servers, name):
    try:
        return servers.ask(name, "SET", "both", "serve")
    except redis.RedisError:
        return False
