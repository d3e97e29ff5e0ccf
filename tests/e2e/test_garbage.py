"""Bytes that make no sense, on the ports of clients and of peers: an error or a closed connection, and life goes on."""

import contextlib
import random
import socket
import time

import pytest
from cluster import wait_until

MEGABYTE = 1 << 20
GROWTH_MAX = 400 * MEGABYTE

HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n\r\n"
NOT_REDIS = {
    "http": HTTP,
    "post": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(range(200)),
    "bulk without array": b"$5\r\nhello\r\n",
    "bulk of minus one": b"*1\r\n$-1\r\n",
    "bulk length no number": b"*1\r\n$abc\r\n",
    "bulk too long": b"*1\r\n$536870913\r\n",
    "bulk far too long": b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$99999999999999999999\r\n",
    "too many arguments": b"*1048577\r\n",
    "far too many arguments": b"*9223372036854775807\r\n",
    "count no number": b"*x\r\n",
    "endless count": b"*" + b"1" * 70_000,
    "endless length": b"*1\r\n$" + b"1" * 70_000,
    "endless inline": b"a" * 200_000,
    "unbalanced quotes": b'SET a "b\r\n',
}


# What comes before can be read as lines, each with a command nobody knows; after these nothing can be read.
FRAMING_LOST = set(NOT_REDIS) - {"http", "post", "tls", "bulk without array"}


@pytest.fixture(scope="module")
def victim(shared):
    shared.client(1).set("alive", "yes")
    shared.converge()
    yield shared


@pytest.fixture(autouse=True)
def lives_on(victim):
    """After each test every datacenter serves and replicates, and memory has not run away."""
    before = victim.memory()
    yield
    name = f"after:{random.random()}"
    for datacenter in victim.each():
        client = victim.client(datacenter)
        assert client.ping() and client.get("alive") == "yes"
        client.sadd(name, datacenter)
    victim.converge(timeout=10)
    for datacenter in victim.each():
        assert victim.client(datacenter).scard(name) == 3
    growth = victim.memory() - before
    assert growth < GROWTH_MAX, f"memory grew by {growth / MEGABYTE:.0f} MiB"


def drain(connection, seconds=3.0):
    """What comes back until the other side closes or is silent, and whether it closed."""
    answer, end = b"", time.monotonic() + seconds
    connection.settimeout(0.3)
    while time.monotonic() < end:
        try:
            part = connection.recv(MEGABYTE)
        except TimeoutError:
            return answer, False
        except ConnectionError:
            return answer, True
        if not part:
            return answer, True
        answer += part
    return answer, False


def send(connection, data):
    """Sends as much as the other side takes before it closes."""
    connection.settimeout(3)
    with contextlib.suppress(ConnectionError, TimeoutError):
        connection.sendall(data)


@pytest.mark.parametrize("name", NOT_REDIS)
def test_what_is_not_redis_gets_an_error(victim, name):
    with victim.socket(1) as connection:
        send(connection, NOT_REDIS[name])
        answer, closed = drain(connection)
        assert not answer or answer.startswith(b"-"), answer[:100]
        if name in FRAMING_LOST:
            assert closed, f"the framing is lost, and the connection still open: {answer[:100]}"
        elif not closed:
            connection.shutdown(socket.SHUT_WR)
            assert drain(connection)[1], "we closed our side, and the server waits for more"


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes(victim, seed):
    chance = random.Random(seed)
    for _ in range(5):
        with victim.socket(1) as connection:
            send(connection, chance.randbytes(chance.randrange(1, 100_000)))
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            drain(connection)


def test_commands_with_random_bytes_inside(victim):
    """Well framed, and nonsense: every command gets exactly one answer, in order."""
    chance = random.Random(1)
    names = [b"SET", b"MSET", b"HSET", b"EXPIRE", b"SCAN", b"CAUSAL", b"CLIENT", b"CONFIG", b"INCRBY", b"SADD", b"nonsense"]
    with victim.socket(1, timeout=20) as connection:
        reader = connection.makefile("rb")
        for number in range(300):
            words = [chance.choice(names), *(chance.randbytes(chance.randrange(0, 40)) for _ in range(chance.randrange(0, 6)))]
            request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
            mark = b"mark-%d" % number
            connection.sendall(request + b"*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n" % (len(mark), mark))
            while True:
                line = reader.readline()
                assert line, f"closed after {words}"
                if line == mark + b"\r\n":
                    break


def test_promises_of_much_reserve_little(victim):
    before = victim.memory()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(victim.socket(1)) for _ in range(60)]
        for index, connection in enumerate(connections):
            if index % 2:
                connection.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$67108864\r\nstart")
            else:
                connection.sendall(b"*1048576\r\n$4\r\nMGET\r\n")
        time.sleep(0.5)
        assert victim.client(1).ping()
        assert victim.memory() - before < GROWTH_MAX


def test_a_value_too_long_is_refused_and_a_long_one_is_not(victim):
    client = victim.client(1, timeout=30)
    value = "x" * (8 * MEGABYTE)
    client.set("long", value)
    assert client.strlen("long") == len(value)
    wait_until(lambda: victim.client(2).strlen("long") == len(value), 20, "the long value is in dc2")
    client.delete("long")


def test_half_closed_connections_get_their_answers(victim):
    for _ in range(20):
        with victim.socket(1) as connection:
            connection.sendall(b"GET alive\r\nPING\r\n")
            connection.shutdown(socket.SHUT_WR)
            answer, closed = drain(connection)
            assert answer == b"$3\r\nyes\r\n+PONG\r\n" and closed
    for data in (b"*2\r\n$3\r\nGET\r\n$5\r\nali", b"*3", b"GET al"):
        with victim.socket(1) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            _, closed = drain(connection)
            assert closed


def test_connections_that_vanish(victim):
    for number in range(300):
        connection = victim.socket(1 + number % 3)
        if number % 3 == 0:
            connection.sendall(b"*2\r\n$3\r\nGET\r\n")
        elif number % 3 == 1:
            # A reset, not an orderly end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(b"GET alive\r\n" * 50)
        connection.close()


def test_a_slow_reader_stops_only_itself(victim):
    client = victim.client(1, timeout=30)
    client.set("big", "x" * MEGABYTE)
    before = victim.memory()
    with victim.socket(1) as connection:
        connection.settimeout(0.5)
        # Half a gigabyte of answers, of which none is read.
        send(connection, b"GET big\r\n" * 500)
        time.sleep(1)
        assert client.ping()
        assert victim.memory() - before < GROWTH_MAX / 2
    client.delete("big")


def test_garbage_from_peers(victim):
    ports = victim.peer_ports()
    assert len(ports) >= 3, f"the cluster listens for peers on {ports}"
    chance = random.Random(2)
    pieces = [
        HTTP,
        b"*1\r\n$4\r\nPING\r\n",
        b"\0" * 4096,
        b"\xff" * 4096,
        b"\xff\xff\xff\x7f" + b"\0" * 100,
        b"\n" * 100,
        chance.randbytes(100_000),
        chance.randbytes(7),
        b"a" * 1_000_000,
    ]
    for port in [*ports, victim.admin_port]:
        for piece in pieces:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                send(connection, piece)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                drain(connection, seconds=1)


def test_silent_peers_do_not_keep_the_door(victim):
    with contextlib.ExitStack() as stack:
        for port in victim.peer_ports():
            for _ in range(80):
                with contextlib.suppress(OSError):
                    stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=1))
        # The cluster works while they stand there, and a link that breaks comes back.
        try:
            victim.link(1, 2, "cut")
            victim.client(1).set("behind", "strangers")
            time.sleep(0.2)
        finally:
            victim.link(1, 2, "heal")
        wait_until(lambda: victim.client(2).get("behind") == "strangers", 20, "the stream is resumed")
