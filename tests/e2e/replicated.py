"""Datacenters whose partitions are replicated over several server processes, and clients that count what was acknowledged."""

import signal
import subprocess
import time

import redis
from cluster import binary, wait_until
from ports import METRICS, PEERS, Ports
from redis.backoff import NoBackoff
from redis.retry import Retry

PARTITIONS = 4
KEYS = [f"counter:{number}" for number in range(24)]


class Group:
    """Server processes of `nodes`, pairs of a datacenter and a number there, on free ports."""

    def __init__(self, directory, nodes, replicas, *directives):
        self.directory = directory
        self.nodes = nodes
        self.ports = Ports()
        self.base = self.ports.first
        self.directives = (f"replicas {replicas}", *directives)
        self.running = {}

    def data(self, number):
        return self.directory / f"data{number}"

    def metrics_port(self, number):
        return self.base + METRICS + number

    def start(self, number):
        ports = [self.base + PEERS + 8 * one for one in range(len(self.nodes))]
        nodes = [f"node {name} 127.0.0.1:{port} cores 1" for (name, _), port in zip(self.nodes, ports)]
        name, index = self.nodes[number]
        own = [f"self {name} {index}", f"port {self.base + number}", "bind 127.0.0.1", f"dir {self.data(number)}"]
        own += [f"metrics-port {self.metrics_port(number)}"]
        lines = [f"partitions {PARTITIONS}", "loglevel notice", *nodes, *own, *self.directives, ""]
        config = self.directory / f"node{number}.conf"
        config.write_text("\n".join(lines))
        with (self.directory / f"node{number}.log").open("ab") as log:
            self.running[number] = subprocess.Popen(
                [binary(), "server", "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def end(self, number, how=signal.SIGTERM):
        process = self.running.pop(number)
        process.send_signal(how)
        process.wait(20)

    def client(self, number, timeout=10):
        # What is sent again by itself would count twice.
        return redis.Redis(
            port=self.base + number,
            socket_timeout=timeout,
            decode_responses=True,
            single_connection_client=True,
            retry=Retry(NoBackoff(), 0),
        )

    def wait_until_all_serve(self, number, timeout=30):
        def serves():
            try:
                with self.client(number) as client:
                    return len(client.mget(KEYS)) == len(KEYS)
            except (redis.RedisError, OSError):
                return False

        wait_until(serves, timeout, f"node {number} reads every partition")

    def ask(self, number, *words):
        """What a command answers that may be sent twice: a partition may be on its way to another node."""
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.client(number) as client:
                    return client.execute_command(*words)
            except (redis.RedisError, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def replica_states(self, number):
        """What has become of the partitions of a node, by its log."""
        return (self.directory / f"node{number}.log").read_text()

    def close(self):
        for number in list(self.running):
            self.running[number].kill()
            self.running[number].wait()
        self.ports.close()


class Counter:
    """Increments through any node of dc1; knows how often that was acknowledged, and how often it may have been."""

    def __init__(self, group, crew, offset, nodes=3):
        self.group, self.crew, self.offset, self.nodes = group, crew, offset, nodes
        self.acknowledged = dict.fromkeys(KEYS, 0)
        self.unknown = dict.fromkeys(KEYS, 0)
        # The first words of the errors that were answered.
        self.codes = set()

    def work(self):
        number = self.offset
        while not self.crew.stopped.is_set():
            number += 1
            try:
                with self.group.client(number % self.nodes) as client:
                    for _ in range(50):
                        number += 1
                        self.step(client, KEYS[number % len(KEYS)])
                        if self.crew.stopped.is_set():
                            return
            except (redis.RedisError, OSError):
                self.crew.sleep(0.02)

    def step(self, client, key):
        try:
            client.incr(key)
            self.acknowledged[key] += 1
        except redis.ResponseError as error:
            # Nothing happened, or it is said that something may have.
            self.codes.add(str(error).split()[0])
            self.unknown[key] += str(error).startswith(("UNKNOWN", "STOPPED"))
        except (redis.RedisError, OSError):
            self.unknown[key] += 1
            raise


def adds_up(group, number, counters):
    try:
        with group.client(number) as client:
            found = [int(value or 0) for value in client.mget(KEYS)]
    except (redis.RedisError, OSError):
        return False
    for key, value in zip(KEYS, found):
        least = sum(counter.acknowledged[key] for counter in counters)
        most = least + sum(counter.unknown[key] for counter in counters)
        if not least <= value <= most:
            return False
    return True
