"""A session's past as a token: carried to another datacenter, and never met by an older value there."""

import threading
import time

import pytest
import redis
from cluster import wait_until


def token_of(client):
    return client.execute_command("CAUSAL", "TOKEN")


def merge(client, token, *words):
    return client.execute_command("CAUSAL", "MERGE", token, *words)


@pytest.fixture
def apart(clean):
    """The shared cluster with dc2 cut off."""
    clean.cut_off(2)
    yield clean
    clean.heal_all()


def test_not_yet_here_then_here(apart):
    with apart.session(1) as writer, apart.session(2) as reader:
        writer.set("account", "new")
        token = token_of(writer)
        begin = time.monotonic()
        with pytest.raises(redis.ResponseError, match="^NOTYET"):
            merge(reader, token, "TIMEOUT", 300)
        took = time.monotonic() - begin
        assert 0.25 < took < 3
        assert reader.get("account") is None
        apart.heal_all()
        assert merge(reader, token, "TIMEOUT", 10_000) in ("OK", True)
        assert reader.get("account") == "new"


def test_merge_answers_as_soon_as_it_is_here(apart):
    with apart.session(1) as writer, apart.session(2) as reader:
        writer.incr("visits")
        token = token_of(writer)
        healing = threading.Timer(0.4, apart.heal_all)
        healing.start()
        begin = time.monotonic()
        assert merge(reader, token, "TIMEOUT", 20_000) in ("OK", True)
        assert time.monotonic() - begin < 15
        assert reader.get("visits") == "1"
        healing.join()


def test_a_past_that_was_only_read_counts(clean):
    """dc3 reads what dc1 wrote; its token holds dc2 back, which is cut off from dc1."""
    clean.client(1).set("seen", "old")
    clean.converge()
    clean.link(1, 2, "cut")
    clean.link(2, 3, "cut")
    try:
        clean.client(1).set("seen", "new")
        with clean.session(3) as reader, clean.session(2) as other:
            wait_until(lambda: reader.get("seen") == "new", 10, "dc3 shows the write")
            with pytest.raises(redis.ResponseError, match="^NOTYET"):
                merge(other, token_of(reader), "TIMEOUT", 200)
            clean.heal_all()
            assert merge(other, token_of(reader), "TIMEOUT", 10_000) in ("OK", True)
            assert other.get("seen") == "new"
    finally:
        clean.heal_all()


def test_many_tokens_back_and_forth(clean):
    """A user whose requests go to a random datacenter always finds what the request before wrote."""
    sessions = [clean.session(datacenter) for datacenter in clean.each()]
    token = token_of(sessions[0])
    for number in range(1, 61):
        session = sessions[number % 3]
        assert merge(session, token, "TIMEOUT", 10_000) in ("OK", True)
        assert int(session.get("steps") or 0) == number - 1
        session.set("steps", number)
        token = token_of(session)
    assert len(token) < 64 * 1024


@pytest.mark.parametrize("token", ["", "nonsense", "AAAA", "A" * 70_000, "%%%"])
def test_what_is_no_token_is_refused(clean, token):
    with clean.session(1) as client:
        with pytest.raises(redis.ResponseError, match="token"):
            merge(client, token)
        damaged = list(token_of(client))
        damaged[5] = "A" if damaged[5] != "A" else "B"
        with pytest.raises(redis.ResponseError, match="token"):
            merge(client, "".join(damaged))
        assert client.ping()


def test_a_token_belongs_to_its_keyspace(clean):
    with clean.session(1) as client, clean.session(1, db=1) as other:
        client.set("k", 1)
        with pytest.raises(redis.ResponseError, match="keyspace"):
            merge(other, token_of(client))


def test_wait_counts_datacenters(apart):
    with apart.session(2) as client:
        assert client.execute_command("CAUSAL", "WAIT", 3) == 3
        client.set("waited", 1)
        assert client.execute_command("CAUSAL", "WAIT", 1, "TIMEOUT", 5_000) >= 1
        assert client.execute_command("CAUSAL", "WAIT", 2, "TIMEOUT", 200) == 1
        apart.heal_all()
        assert client.execute_command("CAUSAL", "WAIT", 3, "TIMEOUT", 20_000) == 3


def test_connections_of_one_session_share_their_past(apart):
    """What one connection wrote is in the token of another one that named the same session, and in no other's."""
    with apart.session(1) as one, apart.session(1) as other, apart.session(1) as stranger, apart.session(2) as far:
        for member in (one, other):
            assert member.execute_command("CAUSAL", "SESSION", "user:17") in ("OK", True)
        one.set("profile", "changed")
        other.get("something else")
        assert merge(far, token_of(stranger), "TIMEOUT", 2_000) in ("OK", True)
        with pytest.raises(redis.ResponseError, match="^NOTYET"):
            merge(far, token_of(other), "TIMEOUT", 200)
        apart.heal_all()
        assert merge(far, token_of(other), "TIMEOUT", 10_000) in ("OK", True)
        assert far.get("profile") == "changed"


def test_eventual_has_no_tokens(dev):
    cluster = dev(delay="1ms", flags=["--protocol", "eventual"])
    with pytest.raises(redis.ResponseError, match="carries no causality"):
        token_of(cluster.client(1))
