"""A datacenter is added to three that serve: a rolling restart with one `node` line more, and its first start."""

import threading

import pytest
import redis
from cluster import wait_until
from servers import MIB, NAMES, TRIMMED_WRITES, serves, tried

ALL = (*NAMES, "dc4")


def digest(servers, name):
    return str(tried(servers, name, "CAUSAL", "DIGEST"))


class Writer:
    """Counts in one datacenter after the other, and knows what was acknowledged."""

    def __init__(self, servers):
        self.servers, self.acknowledged, self.tries = servers, 0, 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while not self.stopped.wait(0.01):
            self.tries += 1
            answer = tried(self.servers, NAMES[self.tries % 3], "INCR", "counted")
            self.acknowledged += not isinstance(answer, Exception)

    def end(self):
        self.stopped.set()
        self.thread.join()


def restart_with_all(servers, name, *directives):
    servers.end(name)
    servers.lines[name] = ALL
    servers.start(name, *directives)
    wait_until(lambda: serves(servers, name), 30, f"{name} serves again")


@pytest.mark.parametrize(("protocol", "is_trimmed"), [("eiger", False), ("eiger", True), ("cure", True)])
def test_a_fourth_datacenter_joins_while_three_serve(servers, protocol, is_trimmed):
    servers.names = ALL
    said = f"keyspace 0 protocol {protocol}"
    for name in NAMES:
        servers.start(name, said)
    for name in NAMES:
        wait_until(lambda one=name: serves(servers, one), 20, f"{name} serves")
    for number in range(200):
        servers.ask(NAMES[number % 3], "SET", f"old{number}", number)
    servers.ask("dc2", "SADD", "set", *range(500))
    if is_trimmed:
        with redis.Redis("127.0.0.1", servers.port("dc1"), socket_timeout=5) as client:
            for number in range(TRIMMED_WRITES):
                client.set(f"big{number % 40}", bytes(MIB))
    servers.ask("dc1", "DEL", "old7")

    writer = Writer(servers)
    try:
        restart_with_all(servers, "dc1", said)
        restart_with_all(servers, "dc2", said)
        # It is started too early: dc3 does not know it, and it says so.
        servers.lines["dc4"] = ALL
        servers.start("dc4", said)
        said_by_dc4 = lambda: str(tried(servers, "dc4", "SET", "a", "1"))
        wait_until(lambda: "waits for dc3" in said_by_dc4(), 20, "dc4 says for whom it waits")
        restart_with_all(servers, "dc3", said)
        wait_until(lambda: serves(servers, "dc4"), 60, "dc4 serves")
        servers.ask("dc4", "SET", "from:dc4", "seen")
        for name in NAMES:
            wait_until(lambda one=name: tried(servers, one, "GET", "from:dc4") == "seen", 20, f"{name} has it")
        assert servers.ask("dc4", "GET", "old9") == "9" and servers.ask("dc4", "GET", "old7") is None
        assert servers.ask("dc4", "SCARD", "set") == 500
    finally:
        writer.end()
    wait_until(lambda: len({digest(servers, name) for name in ALL}) == 1, 30, "all have the same")
    counted = int(servers.ask("dc4", "GET", "counted"))
    assert writer.acknowledged <= counted <= writer.tries
    with redis.Redis("127.0.0.1", servers.port("dc4"), socket_timeout=10) as client:
        client.set("everywhere", "1")
        assert client.execute_command("CAUSAL", "WAIT", 4, "TIMEOUT", 5000) == 4
    assert servers.ask("dc1", "INFO")["ensue_other_datacenters"] == ["dc2", "dc3", "dc4"]

    # Nobody goes back to the shorter list.
    servers.end("dc1")
    servers.lines["dc1"] = NAMES
    servers.start("dc1", said)
    assert servers.running.pop("dc1").wait(20) != 0
    log = (servers.directory / "dc1.log").read_text()
    assert "its datacenters are dc1 dc2 dc3 dc4, and the `node` lines name dc1 dc2 dc3" in log
