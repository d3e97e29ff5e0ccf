"""`kill -9` of each datacenter in turn, under load: what was acknowledged is there afterwards, in every datacenter."""

import os
import signal
import time

import pytest
import redis
from cluster import Crew, keys_over_all, wait_until

LOAD_S = 0.8
RESTART_S = 30
CHUNK = 500


class Writer:
    """Writes in one datacenter and remembers what was acknowledged, and what only may have happened."""

    def __init__(self, cluster, datacenter, crew):
        self.cluster, self.datacenter, self.crew = cluster, datacenter, crew
        self.pair = keys_over_all(cluster.partitions, f"pair{datacenter}-", 2)
        self.acknowledged = {}
        self.counted = self.counted_at_most = 0
        self.last_pair = 0
        self.failures = []

    def work(self):
        number = 0
        while not self.crew.stopped.is_set():
            try:
                with self.cluster.session(self.datacenter, timeout=8) as client:
                    while not self.crew.stopped.is_set():
                        number += 1
                        self.step(client, number)
            except (redis.RedisError, OSError) as error:
                self.failures.append((time.monotonic(), repr(error)))
                self.crew.sleep(0.05)

    def step(self, client, number):
        key = f"key:{self.datacenter}:{number}"
        client.set(key, number)
        self.acknowledged[key] = str(number)
        self.counted_at_most += 1
        client.incr("counter")
        self.counted += 1
        client.mset({key: number for key in self.pair})
        self.last_pair = number
        pipeline = client.pipeline(transaction=False)
        for place in range(5):
            pipeline.hset(f"row:{self.datacenter}", f"{number}.{place}", number)
        pipeline.execute()


@pytest.mark.parametrize("nodes", [1, 2])
def test_nothing_acknowledged_is_lost(dev, nodes):
    cluster = dev(delay="5ms", nodes=nodes, flags=["--processes"])
    crew = Crew()
    writers = [Writer(cluster, datacenter, crew) for datacenter in cluster.each()]
    for writer in writers:
        crew.add(writer.work)
    crew.sleep(LOAD_S)
    for datacenter in cluster.each():
        begin = time.monotonic()
        kill(cluster, datacenter)
        for writer in writers:
            if writer.datacenter != datacenter:
                unexpected = [error for at, error in writer.failures if at > begin]
                assert not unexpected, f"dc{datacenter} was killed, dc{writer.datacenter} failed: {unexpected[0]}"
        crew.sleep(LOAD_S)
    crew.stop()
    judge(cluster, writers)

    for datacenter in cluster.each():
        os.kill(cluster.process_of(datacenter), signal.SIGKILL)
    for datacenter in cluster.each():
        cluster.wait_for_ping(datacenter, RESTART_S)
    judge(cluster, writers)
    assert cluster.stop() == 0


def kill(cluster, datacenter):
    """Kills what serves a datacenter, and waits until another process does."""
    before = cluster.process_of(datacenter)
    assert before and before != cluster.process.pid, f"dc{datacenter} has no process of its own"
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: cluster.process_of(datacenter) not in (None, before), RESTART_S, f"dc{datacenter} starts again")
    cluster.wait_for_ping(datacenter, RESTART_S)


def judge(cluster, writers):
    cluster.converge(timeout=20)
    least = sum(writer.counted for writer in writers)
    most = sum(writer.counted_at_most for writer in writers)
    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        for writer in writers:
            assert len(writer.acknowledged) > 20, f"too little load: {writer.failures[-1:]}"
            lost = missing(client, writer.acknowledged)
            assert not lost, f"dc{datacenter} lost {len(lost)} keys written in dc{writer.datacenter}: {lost[:5]}"
            one, other = client.mget(writer.pair)
            assert one == other and int(one) >= writer.last_pair
            row = client.hgetall(f"row:{writer.datacenter}")
            assert len(row) >= 5 * (len(writer.acknowledged) - len(writer.failures) - 1)
        assert least <= int(client.get("counter")) <= most
    print(f"{least} increments acknowledged, {most} attempted, counter {client.get('counter')}")


def missing(client, expected):
    keys = list(expected)
    lost = []
    for begin in range(0, len(keys), CHUNK):
        chunk = keys[begin : begin + CHUNK]
        lost += [key for key, value in zip(chunk, client.mget(chunk)) if value != expected[key]]
    return lost
