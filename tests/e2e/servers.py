"""Server processes started and stopped one by one, one a datacenter, for tests in which some are gone while others go on."""

import os
import signal
import subprocess

import redis

from cluster import binary
from ports import PEERS, Ports

NAMES = ("dc1", "dc2", "dc3")
MIB = 1 << 20
# Two partitions whose logs are cut at 64 MiB a file, and trimmed when a checkpoint is due, each 256 MiB.
TRIMMED_WRITES = 600


def tried(servers, name, *words):
    """The answer of a datacenter, or the error that it gives."""
    try:
        return servers.ask(name, *words)
    except redis.RedisError as error:
        return error


def serves(servers, name):
    """Whether both of two partitions answer."""
    return all(not isinstance(tried(servers, name, "GET", key), Exception) for key in ("a", "b"))


class Servers:
    """One server process a datacenter, started and stopped one by one."""

    def __init__(self, directory):
        self.directory = directory
        self.ports = Ports()
        self.running = {}
        # All datacenters that there will be, by their ports.
        self.names = NAMES
        self.partitions = 2
        # Datacenters in the order of the `node` lines, for those whose lines are others than NAMES.
        self.lines = {}

    def data(self, name):
        return self.directory / name

    def port(self, name):
        return self.ports.first + self.names.index(name)

    def start(self, name, *directives, environment=None):
        ports = [self.port(one) + PEERS for one in self.names]
        lines = self.lines.get(name, NAMES)
        places = [self.names.index(one) if one in self.names else index for index, one in enumerate(lines)]
        nodes = [f"node {one} 127.0.0.1:{ports[place]} cores 1" for one, place in zip(lines, places)]
        own = [f"self {name}", f"port {self.port(name)}", "bind 127.0.0.1", f"dir {self.data(name)}"]
        config = self.directory / f"{name}.conf"
        config.write_text("\n".join([f"partitions {self.partitions}", "appendfsync everysec", *nodes, *own, *directives, ""]))
        with (self.directory / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [binary(), "server", "--config", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(environment or {})},
            )

    def end(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(how)
        process.wait(20)

    def close(self):
        """Kills what still runs, and the ports are for others."""
        for name in list(self.running):
            self.end(name, signal.SIGKILL)
        self.ports.close()

    def ask(self, name, *words):
        with redis.Redis("127.0.0.1", self.port(name), socket_timeout=5, decode_responses=True) as client:
            return client.execute_command(*words)
