"""Crowds of connections that say nothing, little, or half of something: they cost little, and keep nobody out for long.

`ENSUE_CROWD=10000` makes the crowds as large as `maxclients`; what a connection took is printed (`-s`).
"""

import contextlib
import os
import resource
import selectors
import socket
import time

import pytest
from cluster import ensue, wait_until
from ports import PEERS, TLS

CROWD = int(os.environ.get("ENSUE_CROWD", "1000"))
# What a connection may take of the server's memory before it has authenticated.
BYTES_EACH_MAX = 64 << 10
# Of a small crowd, what the allocator keeps for itself would count for more than the connections.
BYTES_BESIDE = 8 << 20
PASSWORD = "a long one"
# A command as long as one may be before a password was given, without its end.
HALF_A_COMMAND = b"*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$16384\r\n" + b"x" * 16_000
# The head of a record of TLS, and a part of the longest handshake message, of which it does not hold the end.
HALF_A_HANDSHAKE = b"\x16\x03\x01\x40\x00\x01\x00\xff\xf0\x03\x03" + b"x" * 16_000


@pytest.fixture(autouse=True)
def files():
    """This process may hold the crowd."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < CROWD + 1_000:
        pytest.skip("this user may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Crowd:
    """Connections to a port, each of which has sent these bytes as far as the server takes them."""

    def __init__(self, port, count, said=b""):
        self.members = []
        for _ in range(count):
            member = socket.create_connection(("127.0.0.1", port), timeout=20)
            member.setblocking(False)
            self.members.append(member)
        left = {member: said for member in self.members if said}
        with selectors.DefaultSelector() as selector:
            for member in left:
                selector.register(member, selectors.EVENT_WRITE)
            until = time.monotonic() + 8
            while left and time.monotonic() < until:
                for key, _ in selector.select(1):
                    member = key.fileobj
                    with contextlib.suppress(BlockingIOError):
                        try:
                            left[member] = left[member][member.send(left[member]):]
                        except OSError:
                            left[member] = b""
                    if not left[member]:
                        selector.unregister(member)
                        del left[member]

    def open(self):
        """How many the server has not closed."""
        return sum(map(is_open, self.members))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.close()


def is_open(member):
    while True:
        try:
            if not member.recv(4096):
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False


def resident(servers, name):
    """Bytes of memory that the process takes, of the allocator and of everything else."""
    with open(f"/proc/{servers.running[name].pid}/status") as status:
        [line] = [line for line in status if line.startswith("VmRSS:")]
    return int(line.split()[1]) << 10


def started(servers, *directives):
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", f"maxclients {CROWD + 100}", *directives)

    def listens():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", servers.port("dc1")), timeout=5):
            return True

    wait_until(listens, 20, "it listens")


def answer(port, *lines):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"".join(line + b"\r\n" for line in lines))
        heard = b""
        while heard.count(b"\r\n") < len(lines):
            part = client.recv(4096)
            if not part:
                break
            heard += part
    return heard


def check_memory(servers, port, said, is_served, what):
    before = resident(servers, "dc1")
    with Crowd(port, CROWD, said) as crowd:
        most = 0

        def has_taken_all():
            nonlocal most
            now = resident(servers, "dc1")
            grown, most = now > most, max(most, now)
            return not grown

        wait_until(has_taken_all, 20, "nothing more arrives", pause=0.5)
        there = crowd.open()
        # Others are served meanwhile.
        assert is_served()
        taken = most - before
        print(f"{what}: {CROWD} connections, {there} open, {taken / CROWD / 1024:.1f} KiB each")
        assert taken < CROWD * BYTES_EACH_MAX + BYTES_BESIDE, f"{taken / CROWD:.0f} bytes a connection"
        assert there > CROWD / 2, "they are there while it is measured"
        wait_until(lambda: crowd.open() == 0, 30, "who has not authenticated is disconnected", pause=0.5)


@pytest.mark.parametrize("said", [b"", HALF_A_COMMAND], ids=["silent", "half a command"])
def test_who_has_not_authenticated_takes_little(servers, said):
    started(servers, f'requirepass "{PASSWORD}"')
    port = servers.port("dc1")

    def is_served():
        return answer(port, b'AUTH "a long one"', b"PING") == b"+OK\r\n+PONG\r\n"

    check_memory(servers, port, said, is_served, "before a password")


def test_who_has_not_finished_a_handshake_takes_little(servers, tmp_path):
    assert ensue("certificates", "--out", tmp_path / "ours", "dc1").returncode == 0
    ours, port = tmp_path / "ours", servers.ports.first + TLS
    files = [f"tls-cert-file {ours}/dc1-node0.pem", f"tls-key-file {ours}/dc1-node0.key"]
    started(servers, *files, f"tls-ca-cert-file {ours}/ca.pem", f"tls-port {port}")

    def is_served():
        return answer(servers.port("dc1"), b"PING") == b"+PONG\r\n"

    check_memory(servers, port, HALF_A_HANDSHAKE, is_served, "before the end of a handshake")


def test_idle_and_slow_clients_keep_nobody_from_being_served(servers):
    """Without a password they stay; who comes beyond `maxclients` is told so."""
    started(servers)
    port = servers.port("dc1")
    before = resident(servers, "dc1")
    with Crowd(port, CROWD // 2) as idle, Crowd(port, CROWD - CROWD // 2, b"*2\r\n$4\r\nECHO\r\n$5\r\nhe") as slow:
        assert answer(port, b"SET crowd 1", b"GET crowd") == b"+OK\r\n$1\r\n1\r\n"
        time.sleep(1)
        assert (idle.open(), slow.open()) == (CROWD // 2, CROWD - CROWD // 2)
        taken = resident(servers, "dc1") - before
        print(f"idle and slow clients: {CROWD}, {taken / CROWD / 1024:.1f} KiB each")
        with Crowd(port, 100) as rest:
            wait_until(lambda: answer(port, b"PING") == b"-ERR max number of clients reached\r\n", 10, "it is full")
            assert rest.open() == 100
        # Whoever is slow is answered when it has said all.
        slow.members[0].setblocking(True)
        slow.members[0].settimeout(20)
        slow.members[0].sendall(b"llo\r\n")
        assert slow.members[0].recv(100) == b"$5\r\nhello\r\n"
        wait_until(lambda: answer(port, b"PING") == b"+PONG\r\n", 10, "there is room again")


@pytest.mark.parametrize("said", [b"", b"\x10\x00\x00\x00half a hello"], ids=["silent", "half a hello"])
def test_strangers_at_a_peer_port_are_few_and_links_come_up_all_the_same(servers, said):
    for name in ("dc1", "dc2"):
        servers.lines[name] = ["dc1", "dc2"]
    servers.start("dc1")
    wait_until(lambda: is_up(servers, "dc1"), 20, "dc1 answers")
    before = resident(servers, "dc1")
    with Crowd(servers.port("dc1") + PEERS, CROWD, said) as crowd:
        wait_until(lambda: crowd.open() <= 64, 10, "so many are let in and no more")
        taken = resident(servers, "dc1") - before
        print(f"strangers at a peer port: {CROWD}, {taken / 1024:.0f} KiB together")
        assert taken < 64 * BYTES_EACH_MAX + BYTES_BESIDE
        servers.start("dc2")
        wait_until(lambda: link(servers, "dc1", "dc2") == link(servers, "dc2", "dc1") == "up", 30, "they are linked")
        wait_until(lambda: crowd.open() == 0, 10, "strangers are disconnected")


def is_up(servers, name):
    with contextlib.suppress(Exception):
        return bool(servers.ask(name, "INFO", "server"))


def link(servers, name, peer):
    with contextlib.suppress(Exception):
        return servers.ask(name, "INFO", "everything").get(f"ensue_link_{peer}")
