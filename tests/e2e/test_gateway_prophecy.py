"""Prophecy as processes: replicas before stock servers, of which some lie or die, and a sketcher before stock clients.

The stage is that of examples/prophecy. Servers are `ensue server` for the Redis protocol, and Python's `http.server`.
"""

import contextlib
import http.client
import importlib.util
import os
import shutil
import socket
import sys
import threading
import time

import pytest
import redis
from cluster import ROOT, binary

sys.path.insert(0, str(ROOT / "examples/prophecy"))
SPEC = importlib.util.spec_from_file_location("prophecy_stage", ROOT / "examples/prophecy/stage.py")
prophecy = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(prophecy)


# A fast read is not given up because the machine is busy, so what was fast can be counted.
PATIENT = ["--fast-patience-ms", "20000"]


def stage(protocol, **settings):
    return prophecy.Stage(binary(), protocol, **settings)


def command(*words):
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


def ask(port, *words):
    """One command over a connection of its own; the reply as it is on the wire."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(command(*words))
        return connection.recv(65536)


def number(port, *words):
    reply = ask(port, *words)
    assert reply.startswith(b":"), reply
    return int(reply[1:])


def exchange(port, *pieces, until_close=True):
    """Bytes of a client, in pieces, and all that comes back."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        got = b""
        # Who refuses need not read what follows.
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.05)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(65536):
                got += chunk
                if not until_close:
                    break
        return got


def test_wrong_bytes_reach_nobody_and_their_replica_is_named():
    with stage("http", faults={3: "wrong"}) as web:
        web.write_page("index.html", "the first page\n")
        pages = {web.page("index.html") for _ in range(150)}
        assert pages == {"the first page\n"}
        assert web.counts("lied")[3] > 0 and web.counts("unagreed")[3] > 0
        for honest in (1, 2, 4):
            assert web.counts("lied")[honest] == web.counts("unagreed")[honest] == 0
        assert web.counts("accepted")[3] == 0
        assert web.figures()["reads_fast_total"] > 50, "one replica answers where the table agrees"


def test_old_bytes_are_not_returned_after_new_ones():
    with stage("http", faults={4: "old"}) as web:
        web.write_page("index.html", "one\n")
        assert {web.page("index.html") for _ in range(20)} == {"one\n"}
        web.write_page("index.html", "three\n")
        pages = [web.page("index.html") for _ in range(100)]
        first = pages.index("three\n")
        assert set(pages[first:]) == {"three\n"}
        figures = web.figures()
        assert figures["transitions_total"] == 1
        assert figures["stale_caught_total"] == web.counts("stale")[4] > 0
        assert web.counts("accepted")[4] < web.counts("asked")[4]


def test_replicated_answers_need_two_that_are_equal():
    """Also without a history table the lie of one reaches nobody."""
    with stage("http", faults={1: "wrong"}, sketch=["--reads", "replicated"]) as web:
        web.write_page("index.html", "page\n")
        assert {web.page("index.html") for _ in range(20)} == {"page\n"}
        assert web.figures()["reads_fast_total"] == 0
        assert web.counts("lied")[1] > 0


def test_reads_on_a_list_of_the_operator_are_always_fast_or_never():
    lists = ["--whitelist", "GET /free*", "--blacklist", "GET /fr?e-not", "--blacklist", "* /slow*"]
    with stage("http", faults={3: "wrong"}, sketch=[*lists, *PATIENT]) as web:
        for name in ("free", "free-not", "slow", "other"):
            web.write_page(name, f"{name}\n")
        pages = {web.page("free") for _ in range(60)}
        assert "free\n" in pages and len(pages) == 2, "what one replica answers is not compared"
        figures = web.figures()
        assert figures["reads_fast_total"] == 60 and figures["reads_replicated_total"] == 0
        for name in ("slow", "free-not"):
            assert {web.page(name) for _ in range(20)} == {f"{name}\n"}
        figures = web.figures()
        assert figures["reads_fast_total"] == 60 and figures["reads_replicated_total"] == 40
        assert {web.page("other") for _ in range(30)} == {"other\n"}
        assert web.figures()["reads_fast_total"] > 60, "what is on no list is read as before"


def test_commands_are_on_a_list_by_their_words():
    lists = ["--blacklist", "HGET page *", "--whitelist", "GET free:*"]
    with stage("redis", sketch=[*lists, *PATIENT]) as store:
        assert ask(store.port, "HSET", "page", "title", "x") == b":1\r\n"
        assert {ask(store.port, "hget", "page", "title") for _ in range(10)} == {b"$1\r\nx\r\n"}
        assert store.figures()["reads_fast_total"] == 0
        assert {ask(store.port, "GET", "free:1") for _ in range(10)} == {b"$-1\r\n"}
        figures = store.figures()
        assert figures["reads_fast_total"] == 10 and figures["reads_replicated_total"] == 10


def get(port, **headers):
    """The status of `/index.html`, and the names of the headers of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/index.html", headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, {name.lower() for name in answer.headers}


def test_the_operator_says_which_headers_count():
    settings = ["--ignore-header", "User-Agent", "--ignore-header", "x-trace", "--remove-header", "last-modified"]
    with stage("http", sketch=[*settings, *PATIENT], others=[[]]) as web:
        web.write_page("index.html", "page\n")
        for number in web.numbers:
            # Correct replicas disagree on the time of the file.
            os.utime(web.site(number) / "index.html", (1_600_000_000 + number * 100, 1_600_000_000 + number * 100))
        assert get(web.sketcher_ports[1])[0] == 502, "no two are equal"
        for turn in range(20):
            status, headers = get(web.port, User_Agent=f"browser {turn}", X_Trace=str(turn))
            assert status == 200 and "last-modified" not in headers and "content-length" in headers
        figures = web.figures()
        assert figures["reads_replicated_total"] == 1 and figures["reads_fast_total"] == 19
        get(web.port, User_Agent="browser", Cookie="me")
        assert web.figures()["reads_replicated_total"] == 2, "other headers still make another request"


@pytest.mark.parametrize(
    "protocol, words, why",
    [
        ("redis", ["--remove-header", "Date"], "this group speaks the Redis protocol"),
        ("http", ["--ignore-header", "Set Cookie"], "is no name of a header"),
        ("http", ["--remove-header", "Content-Length"], "says where a response ends"),
    ],
)
def test_headers_that_make_no_sense_are_refused(protocol, words, why):
    with pytest.raises(AssertionError, match=why), stage(protocol, sketch=words):
        pass


def test_a_web_server_is_served_as_it_speaks():
    with stage("http") as web:
        web.write_page("index.html", "page\n")
        request = b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n"
        answer = exchange(web.port, request[:9], request[9:])
        assert answer.startswith(b"HTTP/1.0 200 OK\r\n") and answer.endswith(b"\r\n\r\npage\n")
        assert b"\r\nDate:" not in answer, "what is not compared is not returned"
        head = exchange(web.port, b"HEAD /index.html HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"Content-Length: 5\r\n" in head and head.endswith(b"\r\n\r\n")
        assert exchange(web.port, b"GET /none HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 404 ")
        post = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        answer = exchange(web.port, post, b"abc")
        assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 501 ")
        assert web.figures()["writes_total"] == 1


NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class NginxStage(prophecy.Stage):
    """The servers are nginx, which speaks HTTP/1.1 and keeps connections open."""

    def start_server(self, number):
        port, home = prophecy.free_port(), self.directory / f"nginx-{number}"
        home.mkdir()
        self.site(number).mkdir()
        paths = "".join(f"{kind}_temp_path {home};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        stored = "location /put { return 200 stored; }"
        server = f"server {{ listen 127.0.0.1:{port}; root {self.site(number)}; {stored} }}"
        (home / "conf").write_text(
            f"daemon off; master_process off; pid {home}/pid; events {{}} http {{ access_log off; {paths} {server} }}"
        )
        self.start(f"server-{number}", [NGINX, "-e", home / "log", "-p", home, "-c", home / "conf"], port)
        self.ports[number] = port


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_connections_are_kept_open():
    with NginxStage(binary(), "http") as web:
        web.write_page("index.html", "a page of nginx\n")
        connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
        ends = set()
        for _ in range(50):
            connection.request("GET", "/index.html")
            ends.add(connection.sock.getsockname())
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"a page of nginx\n")
            tag = answer.getheader("ETag")
        assert len(ends) == 1, "one connection"
        connection.request("GET", "/index.html", headers={"If-None-Match": tag})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (304, b"")
        connection.request("PUT", "/put", body=iter([b"in ", b"chunks"]), encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"stored")
        connection.request("HEAD", "/index.html")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Content-Length")) == (200, "16")
        answer.read()
        # Requests of one connection are answered in their order, also if they come at once.
        get = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"
        last = b"GET /index.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        answers = exchange(web.port, get % b"index.html" + get % b"none" + last)
        assert [part[:3] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]
        figures = web.figures()
        assert figures["reads_fast_total"] > 40 and figures["writes_total"] == 1
        assert not any(web.counts("lied").values())


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"hello\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", b"501"),
        (b"POST / HTTP/1.1\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n", b"501"),
        (b"\r\nHEAD /index.html HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n" + b"a" * 1_100_000, b"413"),
    ],
)
def test_what_is_no_request_is_refused(plain_web, request_bytes, status):
    answer = exchange(plain_web.port, request_bytes, until_close=False)
    assert answer.startswith(b"HTTP/1.1 " + status), answer


def test_a_request_that_gets_no_response_ends_nobody():
    """Python's server closes the connection of this request. So it does again, when a replica executes all again."""
    with stage("http") as web:
        web.write_page("index.html", "page\n")
        for _ in range(2):
            answer = exchange(web.port, b"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 502 ") and b"gave no response" in answer, answer
        assert web.page("index.html") == "page\n"
        for replica in (1, 2):
            web.end(f"replica-{replica}")
            web.start_replica(replica)
        # Three have to agree, and two of them have begun again.
        web.end("replica-4")
        answer = exchange(web.port, b"PUT /index.html HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.0 501 "), answer
        assert not any(web.counts("lied").values())


@pytest.fixture(scope="module")
def plain_web():
    with stage("http") as web:
        yield web


@pytest.fixture(scope="module")
def store():
    """Four servers of the Redis protocol, one of which lies."""
    with stage("redis", faults={2: "wrong"}) as store:
        yield store


def test_a_write_is_read_by_everybody(store):
    assert ask(store.port, "SET", "k", "first") == b"+OK\r\n"
    assert {ask(store.port, "GET", "k") for _ in range(60)} == {b"$5\r\nfirst\r\n"}
    before = store.figures()["reads_fast_total"]
    assert before > 0
    ask(store.port, "SET", "k", "other")
    values = [ask(store.port, "GET", "k") for _ in range(60)]
    changed = values.index(b"$5\r\nother\r\n")
    assert set(values[changed:]) == {b"$5\r\nother\r\n"} and set(values[:changed]) <= {b"$5\r\nfirst\r\n"}
    assert store.counts("lied")[2] > 0 and store.counts("accepted")[2] == 0


def test_concurrent_writes_are_executed_once_each(store):
    results, threads = [], []

    def add():
        for _ in range(20):
            results.append(number(store.port, "INCR", "sum"))

    for _ in range(10):
        threads.append(threading.Thread(target=add))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(1, 201))


def test_commands_of_a_connection_are_refused_and_it_goes_on(store):
    pieces = command("CLIENT", "SETNAME", "a"), command("TIME"), b"PING\r\n", b"*1\r\n$x\r\n"
    replies = exchange(store.port, *pieces).split(b"\r\n")
    assert replies[0].startswith(b"-ERR `CLIENT` changes the state of a connection")
    assert replies[1].startswith(b"-ERR the replies to `TIME` differ")
    assert replies[2] == b"+PONG", "an inline command"
    assert replies[3].startswith(b"-ERR ")


def test_commands_that_block_or_depend_on_the_time_reach_no_server(store):
    long = "x" * (1 << 20)
    sent = [command("SET", "fixed", "old"), command("SET", "fixed", long), command("GET", "fixed")]
    sent += [command("BLPOP", "none", "0"), command("SHUTDOWN"), command("SET", "fixed", "5", "PX", "300")]
    replies = exchange(store.port, b"".join(sent) + command("GET", "fixed") + b"*1\r\n$x\r\n").split(b"\r\n")
    assert replies[0] == b"+OK" and replies[1].startswith(b"-ERR "), "each command has its reply"
    assert replies[2:4] == [b"$3", b"old"]
    assert replies[4].startswith(b"-ERR `BLPOP` is none of the commands")
    assert replies[5].startswith(b"-ERR `SHUTDOWN` is none of the commands")
    assert replies[6].startswith(b"-ERR what `SET` does depends on the time")
    assert replies[7:9] == [b"$3", b"old"]


def test_a_stock_client_of_redis(store):
    client = redis.Redis(port=store.port, protocol=2, decode_responses=True)
    assert client.set("stock", "1") and [client.get("stock") for _ in range(20)] == ["1"] * 20
    assert client.hset("hash", mapping={"x": 1, "y": 2}) == 2
    assert client.hgetall("hash") == {"x": "1", "y": "2"}
    pipeline = client.pipeline(transaction=False)
    pipeline.set("stock", "2").get("none").incr("pipelined")
    assert pipeline.execute() == [True, None, 1]
    with pytest.raises(redis.ResponseError, match="changes the state of a connection"):
        redis.Redis(port=store.port, protocol=3).get("stock")


def test_strangers_get_no_link(store):
    port = store.group_ports[1]
    assert exchange(port, b"GET / HTTP/1.1\r\n\r\n" + b"a" * 64) == b""
    # The role of a sketcher, without its key: the replica proves itself, and waits for a proof.
    greeting = b"ensue prophecy 1" + bytes([2, 0, 0, 0, 0]) + b"n" * 32
    assert len(exchange(port, greeting, b"p" * 16, b"a" * 64)) == 48
    assert number(store.port, "INCR", "after-strangers") == 1


def test_a_sketcher_that_starts_again_is_not_taken_for_its_former_self(store):
    assert [number(store.port, "INCR", "restarts") for _ in range(3)] == [1, 2, 3]
    store.restart_sketcher()
    assert [number(store.port, "INCR", "restarts") for _ in range(3)] == [4, 5, 6]


def test_a_replica_that_was_killed_executes_everything_again():
    with stage("redis") as store:
        assert [number(store.port, "INCR", "n") for _ in range(5)] == [1, 2, 3, 4, 5]
        store.end("replica-1")
        assert [number(store.port, "INCR", "n") for _ in range(30)] == list(range(6, 36))
        with pytest.raises(AssertionError, match="not in its first state"):
            store.start_replica(1)
        store.end("server-1")
        store.start_server(1)
        store.start_replica(1)
        has_all = lambda: ask(store.ports[1], "GET", "n") == b"$2\r\n35\r\n"
        prophecy.wait_until(has_all, "the blocks that it missed")
        # Now it is needed: three of four decide.
        store.end("replica-3")
        assert [number(store.port, "INCR", "n") for _ in range(5)] == list(range(36, 41))


def went_back(reads):
    """Two reads, the second begun after the first had returned, of which the second returned an older value."""
    latest = (0.0, 0)
    by_return, by_call = sorted(reads, key=lambda read: read[1]), sorted(reads)
    for called, _, value in by_call:
        while by_return and by_return[0][1] < called:
            latest = max(latest, by_return.pop(0)[1:], key=lambda found: found[1])
        if value < latest[1]:
            return latest, (called, value)
    return None


def test_the_judge_of_reads_sees_one_that_goes_back():
    assert went_back([(0, 1, 5), (2, 3, 5), (2, 4, 6)]) is None
    assert went_back([(0, 3, 6), (1, 2, 5), (2, 4, 5)]) is None, "reads that overlap"
    assert went_back([(0, 1, 6), (2, 3, 5)]) is not None


def test_reads_never_go_back_while_a_server_lies_and_another_replica_dies():
    """One writer counts a key up; whatever a reader has seen, no later read of anybody is older."""
    with stage("redis", faults={2: "wrong"}) as store:
        ask(store.port, "SET", "k", "0")
        reads, written, wrong, stop = [], [0], [], threading.Event()

        def write():
            written[0] += 1
            if (reply := ask(store.port, "SET", "k", str(written[0]))) != b"+OK\r\n":
                wrong.append(reply)

        def read():
            called = time.monotonic()
            reply = ask(store.port, "GET", "k")
            value = int(reply.split(b"\r\n")[1]) if reply.split(b"\r\n")[-2].isdigit() else None
            reads.append((called, time.monotonic(), value))
            if value is None or value > written[0]:
                wrong.append((reply, written[0]))

        def repeat(work):
            while not stop.is_set() and not wrong:
                work()

        works = (write, read, read, read, read)
        threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            time.sleep(2)
            store.end("replica-1")
            time.sleep(2)
            store.end("server-1")
            store.start_server(1)
            store.start_replica(1)
            time.sleep(2)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert wrong == []
        assert len(reads) > 50 and written[0] > 10, f"{len(reads)} reads, {written[0]} writes"
        assert went_back(reads) is None
        assert store.figures()["reads_fast_total"] > 0 and store.counts("lied")[2] > 0


def test_a_group_that_was_killed_goes_on_with_its_order():
    with stage("redis") as store:
        assert [number(store.port, "INCR", "n") for _ in range(20)] == list(range(1, 21))
        for replica in store.numbers:
            store.end(f"replica-{replica}")
            store.end(f"server-{replica}")
        # One has lost its disk, too.
        shutil.rmtree(store.directory / "replica-4")
        for replica in store.numbers:
            store.start_server(replica)
            store.start_replica(replica)
        assert number(store.port, "INCR", "n") == 21


def test_with_too_few_replicas_nothing_is_answered():
    with stage("redis") as store:
        assert ask(store.port, "SET", "k", "v") == b"+OK\r\n"
        assert ask(store.port, "GET", "k") == b"$1\r\nv\r\n"
        store.end("replica-1")
        store.end("replica-2")
        reply = ask(store.port, "INCR", "n")
        assert reply == b"-UNANSWERED too few replicas answer\r\n"
        # What one replica can answer is answered: the history table knows it. Half of the replicas are silent.
        assert ask(store.port, "GET", "k") in (b"$1\r\nv\r\n", reply)
        store.end("server-1")
        store.start_server(1)
        store.start_replica(1)
        assert ask(store.port, "GET", "k") == b"$1\r\nv\r\n"
