"""A past that cannot come: a token of what was never issued or was lost is refused, and nobody waits for it for ever.

Tokens that are forged, of a cluster of the same name that was wiped, of a datacenter that died with what it had
written.
"""

import shutil
import signal

import pytest
import redis
from cluster import freeze, key_in, wait_until
from forging import forged, operations
from replicated import PARTITIONS, Group
from servers import NAMES

PROTOCOLS = ("eiger", "cops", "orbe-dm", "cure", "pocc", "ha-pocc")
VECTORS = ("cure", "pocc", "ha-pocc")
DIRECTIVES = [f"keyspace {number} protocol {protocol}" for number, protocol in enumerate(PROTOCOLS)]
# Further than any clock has come, and not so far that the clock is what is wrong.
AHEAD_MS = 20_000


def session(port, protocol):
    return redis.Redis(
        port=port, db=PROTOCOLS.index(protocol), socket_timeout=10, decode_responses=True, single_connection_client=True
    )


def tried(client, *words):
    """The answer, or the error that it gives."""
    try:
        return client.execute_command(*words)
    except redis.RedisError as error:
        return error


def merge(client, token):
    """`OK`, or the first word of the error."""
    return str(tried(client, "CAUSAL", "MERGE", token, "TIMEOUT", 300)).split()[0]


def start(servers, *names):
    for name in names:
        servers.start(name, *DIRECTIVES)
    for name in names:
        wait_until(lambda: serves(servers.port(name)), 20, f"{name} serves")  # noqa: B023


def serves(port):
    try:
        with session(port, "eiger") as client:
            return client.dbsize() >= 0
    except redis.RedisError:
        return False


def check_later_writes_are_seen(servers, client, protocol):
    client.set(f"later:{protocol}", "seen")
    with session(servers.port("dc3"), protocol) as far:
        wait_until(lambda: far.get(f"later:{protocol}") == "seen", 15, f"{protocol}: dc3 sees what follows")


def test_a_forged_token_of_what_was_never_issued_is_refused(servers):
    start(servers, *NAMES)
    for protocol in ("eiger", *VECTORS):
        ahead = AHEAD_MS if protocol in VECTORS else 1_000
        with session(servers.port("dc1"), protocol) as writer, session(servers.port("dc1"), protocol) as client:
            writer.set("a", "1")
            token = writer.execute_command("CAUSAL", "TOKEN")
            assert merge(client, forged(token, 0, 0)) == "OK", "so far it is a token like another"
            assert merge(client, forged(token, 0, ahead)) == "NEVERISSUED", protocol
            check_later_writes_are_seen(servers, client, protocol)
        # Another datacenter cannot know. A position does not come; a time has come when dc1 answers up to it, and then
        # everything of dc1 up to it is here.
        with session(servers.port("dc2"), protocol) as client:
            assert merge(client, forged(token, 0, ahead)) in (("NOTYET", "OK") if protocol in VECTORS else ("NOTYET",))
            check_later_writes_are_seen(servers, client, protocol)


def test_a_token_of_a_wiped_cluster_of_this_name_is_refused(servers):
    start(servers, *NAMES)
    tokens = {}
    for protocol in PROTOCOLS:
        with session(servers.port("dc1"), protocol) as writer:
            for number in range(100):
                writer.set(f"key{number}", number)
            tokens[protocol] = writer.execute_command("CAUSAL", "TOKEN")
    for name in NAMES:
        servers.end(name, signal.SIGKILL)
        shutil.rmtree(servers.data(name))
    start(servers, *NAMES)
    for protocol, token in tokens.items():
        with session(servers.port("dc1"), protocol) as client:
            # A time has come again. What it stood for is gone, and nothing waits for that.
            expected = "OK" if protocol in VECTORS else "NEVERISSUED"
            assert merge(client, token) == expected, protocol
            assert client.get("key99") is None
            check_later_writes_are_seen(servers, client, protocol)


def test_a_token_of_what_a_directory_took_with_it_is_none_of_what_came_after(servers):
    start(servers, *NAMES)
    for name in ("dc1", "dc3"):
        servers.end(name)
    with session(servers.port("dc2"), "eiger") as writer:
        for number in range(5):
            writer.set("a", f"lost{number}")
        lost = writer.execute_command("CAUSAL", "TOKEN")
    servers.end("dc2", signal.SIGKILL)
    shutil.rmtree(servers.data("dc2"))
    start(servers, *NAMES)
    with session(servers.port("dc2"), "eiger") as writer, session(servers.port("dc1"), "eiger") as far:
        assert writer.get("a") is None
        for number in range(20):
            writer.set("a", number)
        token = writer.execute_command("CAUSAL", "TOKEN")
        [(before, last)], [(after, place)] = operations(lost), operations(token)
        # As many were issued again, in an incarnation of their own, and none of them under a place of before.
        assert after == before + 1 and place > last
        for client in (writer, far):
            assert merge(client, lost) == "OK", "nothing of it will ever come"
        assert merge(writer, forged(token, 1, 1_000)) == "NEVERISSUED"
        assert merge(far, forged(token, 1, 1_000)) == "NOTYET"
        check_later_writes_are_seen(servers, writer, "eiger")


@pytest.fixture
def five(tmp_path):
    """dc1 on two nodes, so that one partition can be away while another one receives; dc2 and dc3 on one each."""
    group = Group(tmp_path, (("dc1", 0), ("dc1", 1), ("dc2", 0), ("dc3", 0)), 1, *DIRECTIVES)
    yield group
    group.close()


def test_what_was_lost_with_a_dead_datacenter_is_not_waited_for(five):
    first, second, dc2, dc3 = (five.base + number for number in range(4))
    for number in range(4):
        five.start(number)
    for number in range(4):
        five.wait_until_all_serve(number)
    lost, shown, other = key_in(0, PARTITIONS, "lost"), key_in(1, PARTITIONS, "shown"), key_in(3, PARTITIONS, "other")
    # Nobody receives what dc3 writes into this partition, and dc1 receives what it writes into that one.
    five.end(0, signal.SIGKILL)
    five.end(2, signal.SIGKILL)
    tokens, readers = {}, {}
    for protocol in PROTOCOLS:
        with session(dc3, protocol) as writer:
            writer.set(lost, "lost")
            writer.set(shown, "shown")
            tokens[protocol] = writer.execute_command("CAUSAL", "TOKEN")
        readers[protocol] = session(second, protocol)
        if protocol in ("pocc", "ha-pocc"):
            wait_until(lambda: readers[protocol].get(shown) == "shown", 10, f"{protocol} shows it")  # noqa: B023
        else:
            readers[protocol].get(shown)
    five.end(3, signal.SIGKILL)
    five.start(0)
    five.start(2)
    for number in (0, 1, 2):
        five.wait_until_all_serve(number)
    with session(second, "eiger") as operator:
        digest = operator.execute_command("CAUSAL", "DEAD", "dc3")[0]
        declare = ("CAUSAL", "DEAD", "dc3", "CONFIRM", digest)
        wait_until(lambda: tried(operator, *declare) in ("OK", True), 20, "dc3 is declared dead")
        settled = lambda: operator.info().get("ensue_settled_dc3_partitions") == PARTITIONS
        wait_until(settled, 20, "what is left of dc3 is everywhere")

    for protocol, token in tokens.items():
        for port in (first, dc2):
            with session(port, protocol) as client:
                assert merge(client, token) == "DISCARDED", (protocol, port)
                assert client.get(lost) is None
                client.set(other, protocol)
                assert tried(client, "CAUSAL", "WAIT", 2, "TIMEOUT", 10_000) == 2, protocol
    for protocol in ("pocc", "ha-pocc"):
        reader = readers[protocol]
        assert "DISCARDED" in str(tried(reader, "CAUSAL", "WAIT", 2, "TIMEOUT", 500)), protocol
        assert "DISCARDED" in str(tried(reader, "GET", shown)), protocol
        assert reader.get(other) == protocol and reader.get(lost) is None
        assert tried(reader, "CAUSAL", "WAIT", 2, "TIMEOUT", 10_000) == 2, protocol


@pytest.mark.parametrize("cut", ["silent", "down"])
def test_a_restart_serves_what_rests_on_the_others_times(servers, cut):
    start(servers, *NAMES)
    # Both writes are in one partition: the other one has only been told the time of the first.
    far_key, key, other = key_in(0, 2, "far"), key_in(0, 2, "a"), key_in(1, 2, "other")
    with session(servers.port("dc2"), "cure") as far, session(servers.port("dc1"), "cure") as client:
        far.set(far_key, "1")
        token = far.execute_command("CAUSAL", "TOKEN")
        wait_until(lambda: merge(client, token) == "OK", 10, "dc1 has it")
        client.set(key, "1")
        # At once: what it learns from the others later is not what the write rests on.
        servers.end("dc1", signal.SIGKILL)
    for name in ("dc2", "dc3"):
        if cut == "silent":
            freeze(servers.running[name].pid)
        else:
            servers.end(name, signal.SIGKILL)
    start(servers, "dc1")
    with session(servers.port("dc1"), "cure") as client:
        answers = []
        wait_until(lambda: answers.append(tried(client, "GET", key)) or answers[-1] == "1", 20, "dc1 serves it")
        assert not [answer for answer in answers if "BLOCKED" in str(answer)], answers
        assert client.get(far_key) == "1" and client.get(other) is None
        assert client.mget(key, far_key, other) == ["1", "1", None]
        assert client.incr(other) == 1
    for name in ("dc2", "dc3"):
        if cut == "silent":
            servers.running[name].send_signal(signal.SIGCONT)
        else:
            start(servers, name)
    with session(servers.port("dc3"), "cure") as far:
        wait_until(lambda: tried(far, "GET", other) == "1", 30, "dc3 has it when it is back")
