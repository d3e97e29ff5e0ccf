"""What a stranger meets first: the start, the handshake, raw sockets, the other subcommands, the stop."""

import socket

import pytest
import redis
from cluster import ensue, wait_until


def exchange(connection, request, ending):
    """Sends bytes and reads until the answer ends as told."""
    connection.sendall(request)
    answer = b""
    while not answer.endswith(ending):
        part = connection.recv(65_536)
        assert part, f"closed after {answer!r}"
        answer += part
    return answer


def test_every_datacenter_answers(shared):
    for datacenter in shared.each():
        assert shared.client(datacenter).ping()
    text = shared.log.read_text(errors="replace")
    for datacenter in shared.each():
        assert f"dc{datacenter}" in text
        assert str(shared.client_port(datacenter)) in text


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_versions_of_the_protocol(clean, protocol):
    client = clean.client(1, protocol=protocol)
    client.hset("hash", mapping={"a": "1", "b": "2"})
    client.sadd("set", "x", "y")
    assert client.hgetall("hash") == {"a": "1", "b": "2"}
    assert client.smembers("set") == {"x", "y"}
    assert client.get("nothing") is None


def test_hello(clean):
    with clean.socket(1) as connection:
        answer = exchange(connection, b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*1\r\n$4\r\nPING\r\n", b"+PONG\r\n")
        assert answer.startswith(b"%7\r\n")
        answer = exchange(connection, b"HELLO 2\r\nPING\r\n", b"+PONG\r\n")
        assert answer.startswith(b"*14\r\n")
        answer = exchange(connection, b"HELLO 9\r\n", b"\r\n")
        assert answer.startswith(b"-NOPROTO")


def test_inline_commands(clean):
    with clean.socket(1) as connection:
        assert exchange(connection, b"PING\r\n", b"\r\n") == b"+PONG\r\n"
        assert exchange(connection, b"set greeting \"two words\"\n", b"\r\n") == b"+OK\r\n"
        assert exchange(connection, b"\r\n\r\nGET greeting\r\n", b"words\r\n") == b"$9\r\ntwo words\r\n"


def test_pipelining_keeps_the_order(clean):
    count = 5_000
    sets = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\np%d\r\n$%d\r\n%d\r\n" % (len(f"p{i}"), i, len(f"{i}"), i) for i in range(count))
    gets = b"".join(b"*2\r\n$3\r\nGET\r\n$%d\r\np%d\r\n" % (len(f"p{i}"), i) for i in range(count))
    expected = b"+OK\r\n" * count + b"".join(b"$%d\r\n%d\r\n" % (len(f"{i}"), i) for i in range(count)) + b"+PONG\r\n"
    with clean.socket(1, timeout=30) as connection:
        answer = exchange(connection, sets + gets + b"PING\r\n", b"+PONG\r\n")
    assert answer == expected


def test_a_command_in_pieces(clean):
    with clean.socket(1) as connection:
        for byte in b"*2\r\n$4\r\nECHO\r\n$5\r\nhe":
            connection.sendall(bytes([byte]))
        assert exchange(connection, b"llo\r\n", b"hello\r\n") == b"$5\r\nhello\r\n"


def test_quit_closes(clean):
    with clean.socket(1) as connection:
        assert exchange(connection, b"QUIT\r\n", b"\r\n") == b"+OK\r\n"
        assert connection.recv(1) == b""


def test_cli(clean):
    assert clean.cli(1, "SET", "from", "the shell").stdout.strip() in ("OK", '"OK"')
    done = clean.cli(1, "GET", "from")
    assert done.returncode == 0 and "the shell" in done.stdout
    done = clean.cli(1, "NONSENSE")
    assert "unknown command" in done.stdout + done.stderr
    wait_until(lambda: "the shell" in clean.cli(2, "GET", "from").stdout, 10, "the write is in dc2")


def test_cli_without_a_server():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = ensue("cli", "-p", unused.getsockname()[1], "PING")
    assert done.returncode != 0
    assert done.stderr.strip() and "panicked" not in done.stderr


def test_status(clean):
    done = ensue("status", "--port", clean.port)
    assert done.returncode == 0, done.stderr
    for datacenter in clean.each():
        assert f"dc{datacenter}" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["dev", "--protocol", "nonsense"],
        ["dev", "--partitions", "0"],
        ["dev", "--datacenters", "99"],
        ["dev", "--delay", "soon"],
        ["dev", "--nonsense"],
        ["nonsense"],
        ["server", "--config", "/nonexistent/ensue.conf"],
        ["server", "--appendfsync", "sometimes"],
    ],
)
def test_bad_arguments_are_explained(words, tmp_path):
    where = ["--dir", tmp_path] if words[0] == "dev" else []
    done = ensue(*words, *where)
    assert done.returncode not in (0, 101), done
    assert done.stderr.strip() and "panicked" not in done.stderr, done
    wrong = [word.lstrip("-") for word in words[-2:]]
    assert any(word in done.stderr for word in wrong), f"the message names none of {wrong}: {done.stderr}"


def test_link_names_what_it_does_not_know(clean):
    done = ensue("link", "dc1", "dc9", "cut", "--port", clean.port)
    assert done.returncode != 0 and "dc9" in done.stdout + done.stderr
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = ensue("link", "dc1", "dc2", "cut", "--port", unused.getsockname()[1])
    assert done.returncode != 0 and "panicked" not in done.stderr


def test_info(clean):
    client = clean.client(1)
    client.set("one", 1)
    info = client.info()
    assert int(str(info["redis_version"]).split(".")[0]) >= 7
    assert info["server_name"] == "ensue"
    assert info["loading"] == 0
    assert info["connected_clients"] >= 1
    assert info["role"] == "master"
    assert info["used_memory"] > 0
    assert info["maxmemory_policy"] == "noeviction"
    assert info["db0"]["keys"] == 1
    assert client.info("keyspace")["db0"]["keys"] == 1
    assert "redis_version" not in client.info("keyspace")


def test_command_describes_itself(clean):
    client = clean.client(1)
    names = client.command()
    assert client.command_count() == len(names)
    assert "get" in {name.lower() for name in names}
    assert client.execute_command("COMMAND INFO", "mget")[0][0] == "mget"
    assert client.execute_command("COMMAND DOCS", "get")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        client.execute_command("NONSENSE", "a", "b")


def test_connection_commands(clean):
    client = clean.session(1)
    assert client.echo("hello") == "hello"
    assert client.client_setname("tester")
    assert client.client_getname() == "tester"
    assert client.client_id() > 0
    assert client.client_info()["name"] == "tester"
    assert any(other["name"] == "tester" for other in client.client_list())
    seconds, microseconds = client.time()
    assert seconds > 1_600_000_000 and 0 <= microseconds < 1_000_000
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert client.config_get("save") == {"save": ""}


def test_what_is_stopped_cleanly_is_there_again(dev):
    cluster = dev(delay="1ms")
    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        client.set(f"from:{datacenter}", datacenter)
        client.incr("counter")
        client.hset("hash", f"field{datacenter}", datacenter)
    cluster.converge()
    assert cluster.stop() == 0
    cluster.start()
    for datacenter in cluster.each():
        client = cluster.client(datacenter)
        assert client.mget("from:1", "from:2", "from:3") == ["1", "2", "3"]
        assert client.get("counter") == "3"
        assert client.hlen("hash") == 3
    for datacenter in cluster.each():
        cluster.client(datacenter).incr("counter")
    cluster.converge()
    assert cluster.client(1).get("counter") == "6"
