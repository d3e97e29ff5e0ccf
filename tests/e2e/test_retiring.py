"""A datacenter is removed from three that serve: it takes no more writes, the others have everything, and go on."""

import signal

import pytest
import redis
from cluster import ensue, wait_until
from servers import NAMES, serves, tried

WRITES = 100
OTHERS = ("dc1", "dc2")


def info(servers, name):
    return servers.ask(name, "INFO")


def refusal(servers, name, *words):
    """The word with which a datacenter refuses something."""
    answer = tried(servers, name, *words)
    return str(answer).split(" ")[0] if isinstance(answer, redis.RedisError) else answer


def retire(servers, name):
    shown = servers.ask(name, "CAUSAL", "RETIRE", name)
    assert len(shown) == 3 and shown[2].startswith(f"CAUSAL RETIRE {name} CONFIRM {shown[0]}"), shown
    assert servers.ask(name, "CAUSAL", "RETIRE", name, "CONFIRM", shown[0]) in ("OK", True)


def status(servers, name):
    return ensue("status", "--port", servers.port(name)).stdout


def start_all(servers, *directives):
    for name in NAMES:
        servers.start(name, *directives)
    for name in NAMES:
        wait_until(lambda one=name: serves(servers, one), 20, f"{name} serves")


@pytest.mark.parametrize("protocol", ["eiger", "cure", "pocc"])
def test_nothing_is_lost_with_a_datacenter_that_is_removed(servers, protocol):
    start_all(servers, f"keyspace 0 protocol {protocol}")
    with redis.Redis("127.0.0.1", servers.port("dc3"), decode_responses=True) as client:
        for number in range(WRITES):
            client.set(f"of:dc3:{number}", number)
            client.incr("counted")
        assert "say it at a node of dc3" in str(tried(servers, "dc1", "CAUSAL", "RETIRE", "dc3"))
        retire(servers, "dc3")
        with pytest.raises(redis.RedisError, match="RETIRING dc3 is being removed"):
            client.set("late", "1")
        token = None
        try:
            # What it hands out at last is good elsewhere.
            assert client.get("of:dc3:7") == "7"
            token = client.execute_command("CAUSAL", "TOKEN")
        except redis.RedisError as error:
            assert "RETIRED" in str(error)
    # It has written a little; it is done soon, and says so to everybody.
    wait_until(lambda: refusal(servers, "dc3", "GET", "a") == "RETIRED", 30, "dc3 has retired")
    wait_until(lambda: refusal(servers, "dc3", "GET", "b") == "RETIRED", 30, "dc3 has retired")
    assert refusal(servers, "dc3", "SET", "a", "1") == "RETIRED"
    assert "retired: its nodes may be stopped" in status(servers, "dc3")
    for name in OTHERS:
        is_known = lambda one=name: info(servers, one).get("ensue_retired_dc3_partitions") == 2
        wait_until(is_known, 20, f"{name} knows it")
    servers.end("dc3", signal.SIGKILL)
    for name in OTHERS:
        wait_until(lambda one=name: "serving, dc3 retired" in status(servers, one), 20, f"{name} serves on")
        assert info(servers, name)["ensue_ready"] == 1
        assert info(servers, name)["ensue_discarded"] == 0
        with redis.Redis("127.0.0.1", servers.port(name), decode_responses=True, socket_timeout=10) as client:
            if token:
                assert client.execute_command("CAUSAL", "MERGE", token) in ("OK", True)
            assert [client.get(f"of:dc3:{n}") for n in range(WRITES)] == [str(n) for n in range(WRITES)]
            assert client.incr("counted") > WRITES
            assert client.execute_command("CAUSAL", "WAIT", 2, "TIMEOUT", 5000) == 2
    digests = lambda: {str(tried(servers, name, "CAUSAL", "DIGEST")) for name in OTHERS}
    wait_until(lambda: len(digests()) == 1, 20, "both have the same")

    # Its process starts again and is told; the others do without it after a restart, too.
    servers.start("dc3", f"keyspace 0 protocol {protocol}")
    wait_until(lambda: refusal(servers, "dc3", "GET", "a") == "RETIRED", 30, "dc3 is told again")
    servers.end("dc1", signal.SIGKILL)
    servers.end("dc3")
    servers.start("dc1", f"keyspace 0 protocol {protocol}")
    wait_until(lambda: serves(servers, "dc1"), 30, "dc1 serves again")
    assert servers.ask("dc1", "GET", "of:dc3:7") == "7"


def test_a_removal_goes_on_where_it_was(servers):
    start_all(servers)
    servers.ask("dc3", "SET", "a", "1")
    servers.end("dc2")
    wait_until(lambda: info(servers, "dc3")["ensue_link_dc2"] == "down", 20, "dc3 sees that dc2 is down")
    assert refusal(servers, "dc3", "CAUSAL", "RETIRE", "dc3") == "NORETIRE"
    servers.start("dc2")
    begins = lambda: refusal(servers, "dc3", "CAUSAL", "RETIRE", "dc3") != "NORETIRE"
    wait_until(begins, 20, "dc2 is back")

    # dc2 takes nothing for a while, which dc3 does not know yet: the removal begins and waits, also after a restart.
    servers.running["dc2"].send_signal(signal.SIGSTOP)
    servers.ask("dc3", "SET", "a", "2")
    retire(servers, "dc3")
    assert refusal(servers, "dc3", "SET", "a", "3") == "RETIRING"
    servers.end("dc3", signal.SIGKILL)
    servers.start("dc3")
    wait_until(lambda: refusal(servers, "dc3", "GET", "a") == "2", 20, "dc3 reads on")
    assert refusal(servers, "dc3", "SET", "a", "3") == "RETIRING"
    assert "retiring: takes no writes" in status(servers, "dc3")
    is_said = lambda: info(servers, "dc1").get("ensue_retiring_dc3_partitions") == 2
    wait_until(is_said, 20, "dc1 knows that dc3 is being removed")
    servers.running["dc2"].send_signal(signal.SIGCONT)
    wait_until(lambda: refusal(servers, "dc3", "GET", "a") == "RETIRED", 30, "dc3 has retired")
    wait_until(lambda: info(servers, "dc2").get("ensue_retired_dc3_partitions") == 2, 20, "dc2 knows it")
    assert servers.ask("dc2", "GET", "a") == "2"


def test_a_home_is_not_removed(servers):
    start_all(servers, "keyspace 0 home lock:* dc2")
    answer = str(tried(servers, "dc2", "CAUSAL", "RETIRE", "dc2"))
    assert "it is the home of lock:* in keyspace 0" in answer
    assert servers.ask("dc2", "SET", "lock:a", "1") in ("OK", True)
