"""One client cannot hurt the others: answers that nobody reads, strangers before the password, browsers."""

import contextlib
import pathlib
import re
import signal
import socket
import time

import pytest
import redis
from cluster import Crew, resident, wait_until

MEGABYTE = 1 << 20
STRANGERS = 200
# Pipelines beside one client that asks for one thing, and how long they are.
PIPELINES, COMMANDS = 20, 1_000
# How many pipelines each of them sends, and what another client may wait then, however busy the machine is.
PIPELINE_ROUNDS, PING_P99_S = 25, 1
# A connection that does not authenticate is ended after ten seconds, looked at twice a second.
AUTHENTICATION_S = 10
PASSWORD = "a long one"


@pytest.fixture
def guarded(servers):
    """One server with a password, and the number of its process."""
    servers.start("dc1", f'requirepass "{PASSWORD}"')
    with redis.Redis("127.0.0.1", servers.port("dc1"), password=PASSWORD, socket_timeout=10) as client:

        def answers():
            with contextlib.suppress(redis.ConnectionError):
                return client.ping()

        wait_until(answers, 20, "it serves")
        yield servers, client, servers.running["dc1"].pid


def connect(servers, name="dc1"):
    return socket.create_connection(("127.0.0.1", servers.port(name)), timeout=10)


def longest_ping(client, seconds):
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        assert client.ping()
        longest = max(longest, time.monotonic() - begin)
    return longest


def highest(process):
    """The most bytes that a process has had resident."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


@pytest.mark.parametrize("command", [b"GET big\r\n", b"MGET big big big big\r\n", b"HGETALL row\r\n"])
def test_answers_that_nobody_reads_are_not_made(clean, command):
    client = clean.session(1)
    client.set("big", "x" * MEGABYTE)
    client.hset("row", mapping={f"field{number}": "x" * 1_000 for number in range(1_000)})
    processes = [clean.process.pid, *clean.children()]
    before = clean.memory()
    for process in processes:
        # The highest memory so far is that of now.
        pathlib.Path(f"/proc/{process}/clear_refs").write_text("5")
    with clean.socket(1) as connection:
        # Of their answers, one to four megabytes each, none is read.
        connection.sendall(command * 1_000)
        longest = longest_ping(client, 1.5)
        grown = sum(map(highest, processes)) - before
    print(f"{command}: memory grew by {grown / MEGABYTE:.0f} MiB, the longest PING took {1_000 * longest:.0f} ms")
    assert grown < 64 * MEGABYTE
    client.delete("big", "row")


def test_who_reads_late_gets_every_answer(clean):
    client = clean.session(1)
    client.set("big", "x" * MEGABYTE)
    client.set("n", 0)
    one = b"$%d\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n"
    with clean.socket(1, timeout=30) as connection:
        connection.sendall(b"GET big\r\nINCR n\r\n" * 50)
        time.sleep(0.3)
        answers = connection.makefile("rb")
        for number in range(1, 51):
            expected = one + b":%d\r\n" % number
            assert answers.read(len(expected)) == expected
    client.delete("big")


def is_stopped(process):
    """Whether no thread of it runs."""
    threads = pathlib.Path(f"/proc/{process}/task").glob("*/stat")
    states = [thread.read_text().rsplit(")", 1)[1].split()[0] for thread in threads]
    return set(states) == {"T"}


def answered(connection, count):
    """The integers that a connection was answered."""
    answers = connection.makefile("rb")
    return [int(answers.readline()[1:]) for _ in range(count)]


def test_a_client_is_answered_before_the_pipelines_of_others(servers):
    """While the process is stopped, twenty clients send a thousand commands each, and then one client a single one.

    All of them count up one key, so an answer says how many commands were executed before it, however long that took.
    """
    servers.start("dc1", "first-start alone")

    def serves():
        with contextlib.suppress(redis.RedisError):
            return servers.ask("dc1", "SET", "n", 0)

    wait_until(serves, 20, "it serves")
    process = servers.running["dc1"]
    with contextlib.ExitStack() as stack:
        pipelines = [stack.enter_context(connect(servers)) for _ in range(PIPELINES)]
        single = stack.enter_context(connect(servers))
        for connection in [*pipelines, single]:
            connection.sendall(b"PING\r\n")
            assert connection.recv(7) == b"+PONG\r\n"
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(process.pid), 20, "it is stopped")
        for connection in [*pipelines, single]:
            connection.sendall(b"INCR n\r\n" * (1 if connection is single else COMMANDS))
        process.send_signal(signal.SIGCONT)

        [before] = answered(single, 1)
        places = [answered(connection, COMMANDS) for connection in pipelines]
    print(f"the single command was number {before} of {PIPELINES * COMMANDS + 1}")
    assert before <= PIPELINES * COMMANDS / 10
    # Nor does one pipeline wait for another: each is answered its first command before any has had a fifth of its own.
    latest_first = max(place[0] for place in places)
    assert all(place[COMMANDS // 5] > latest_first for place in places)
    assert sorted([before, *sum(places, [])]) == list(range(1, PIPELINES * COMMANDS + 2)), "each is executed once"


def write_in_pipelines(connection, rounds):
    """Long pipelines one after the other, each answered before the next one."""
    answer = b"+OK\r\n"
    for number in range(rounds):
        connection.sendall(b"".join(b"SET key%d %d\r\n" % (index % 100, number) for index in range(COMMANDS)))
        left = len(answer) * COMMANDS
        while left:
            part = connection.recv(left)
            assert part, "the server has closed the connection"
            left -= len(part)


def test_a_client_waits_little_beside_pipelines(servers):
    """Twenty clients in pipelines of a thousand, and one that asks for one thing at a time, until they have done."""
    servers.start("dc1", "first-start alone")

    def serves():
        with contextlib.suppress(redis.RedisError):
            return servers.ask("dc1", "SET", "n", 0)

    wait_until(serves, 20, "it serves")
    crew, waits = Crew(), []
    with contextlib.ExitStack() as stack:
        for _ in range(PIPELINES):
            connection = stack.enter_context(connect(servers))
            connection.settimeout(60)
            crew.add(write_in_pipelines, connection, PIPELINE_ROUNDS)
        single = stack.enter_context(connect(servers))
        single.settimeout(60)
        while any(thread.is_alive() for thread in crew.threads):
            begin = time.monotonic()
            single.sendall(b"PING\r\n")
            assert single.recv(7) == b"+PONG\r\n"
            waits.append(time.monotonic() - begin)
            time.sleep(0.002)
        crew.finish()
    waits.sort()
    p50, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(f"{len(waits)} PINGs, p50 {1_000 * p50:.1f} ms, p99 {1_000 * p99:.1f} ms, longest {1_000 * waits[-1]:.1f} ms")
    assert len(waits) > 20, "they were at work for too short a time"
    assert p99 < PING_P99_S


def test_strangers_hold_little_and_are_ended(guarded):
    servers, client, process = guarded
    before = resident(process)
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect(servers)) for _ in range(STRANGERS)]
        for number, stranger in enumerate(strangers):
            with contextlib.suppress(OSError):
                if number % 2:
                    # The start of the longest command that may come before the password.
                    stranger.sendall(b"*10\r\n$3\r\nSET\r\n$16000\r\n" + b"x" * 15_990)
                else:
                    # Answers that are not read.
                    stranger.setblocking(False)
                    for _ in range(1_000):
                        stranger.send(b"GET something\r\n" * 100)
        time.sleep(0.5)
        grown = (resident(process) - before) / STRANGERS
        print(f"{grown / 1024:.0f} KiB a connection before authentication")
        assert grown <= 64 << 10
        assert client.ping()

        for stranger in strangers:
            stranger.settimeout(AUTHENTICATION_S + 10)
            with contextlib.suppress(ConnectionError):
                while stranger.recv(MEGABYTE):
                    pass
        took = time.monotonic() - begin
        assert AUTHENTICATION_S - 1 < took < AUTHENTICATION_S + 10, took
    assert client.ping(), "who has authenticated stays"
    assert "has not authenticated" in (servers.directory / "dc1.log").read_text()


@pytest.mark.parametrize("request_line", [b"POST / HTTP/1.1", b"GET / HTTP/1.1"])
def test_a_browser_gives_no_commands(servers, request_line):
    servers.start("dc1", "first-start alone")

    def answers():
        with contextlib.suppress(redis.RedisError):
            return servers.ask("dc1", "SET", "key", "before")

    wait_until(answers, 20, "it serves")
    with connect(servers) as browser:
        browser.sendall(request_line + b"\r\nHost: localhost\r\nContent-Length: 20\r\n\r\nSET key after\r\n")
        with contextlib.suppress(ConnectionError):
            while browser.recv(MEGABYTE):
                pass
    assert servers.ask("dc1", "GET", "key") == "before"
    assert "speaks HTTP to the port for Redis clients" in (servers.directory / "dc1.log").read_text()
