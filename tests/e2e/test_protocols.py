"""Ten keyspaces with the ten protocols in one cluster: what all of them keep, what they refuse, and what becomes of a
session whose past has not arrived.

The keyspaces stand in `PROTOCOLS`. A past is made to be missing by a cut between dc1 and dc3 while dc2 passes on what it has
read: dc3 has the album, which depends on a photo of dc1 that it does not have.
"""

import pytest
import redis
from cluster import Cluster, key_in, keys_over_all, wait_until

PROTOCOLS = ["eiger", "eventual", "log", "cops", "cops-gt", "cops-cd", "orbe-dm", "orbe-clock", "cure", "pocc", "ha-pocc"]
KEYSPACE = {protocol: number for number, protocol in enumerate(PROTOCOLS)}
CAUSAL = [protocol for protocol in PROTOCOLS if protocol not in ("eventual", "log")]
# With causality, and without write transactions.
APART = ["cops", "cops-gt", "cops-cd", "orbe-dm", "orbe-clock", "cure", "pocc", "ha-pocc"]
PARTITIONS = 2
FLAGS = [word for protocol, number in KEYSPACE.items() for word in ("--keyspace", f"{number}={protocol}")]


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("family"), delay="5ms", partitions=PARTITIONS, flags=FLAGS)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def relayed(family):
    """The cluster with the link between dc1 and dc3 cut, and healed again afterwards."""
    family.heal_all()
    family.link(1, 3, "cut")
    yield family
    family.heal_all()


def session(cluster, datacenter, protocol):
    return cluster.session(datacenter, db=KEYSPACE[protocol], timeout=15)


def equal_everywhere(cluster, protocol, ask, expected):
    """Every datacenter comes to answer this, each in a session of its own."""
    for datacenter in cluster.each():
        with session(cluster, datacenter, protocol) as client:
            wait_until(lambda: ask(client) == expected, 10, f"{protocol}: dc{datacenter} answers {expected}")  # noqa: B023


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_everyone_writes_is_everywhere(family, protocol):
    names = keys_over_all(PARTITIONS, "text", 6)
    counter, row = key_in(0, PARTITIONS, "counter"), key_in(1, PARTITIONS, "row")
    for datacenter in family.each():
        with session(family, datacenter, protocol) as client:
            for name in names[datacenter - 1 :: 3]:
                assert client.set(name, f"by dc{datacenter}") is True
                assert client.get(name) == f"by dc{datacenter}"
            for _ in range(datacenter):
                client.incr(counter)
            client.hset(row, f"field{datacenter}", datacenter)
    expected = [f"by dc{index % 3 + 1}" for index in range(6)]
    equal_everywhere(family, protocol, lambda client: client.mget(names), expected)
    equal_everywhere(family, protocol, lambda client: client.get(counter), "6")
    fields = {f"field{datacenter}": str(datacenter) for datacenter in family.each()}
    equal_everywhere(family, protocol, lambda client: client.hgetall(row), fields)
    family.converge(timeout=10, keyspace=KEYSPACE[protocol])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_info_says_what_a_keyspace_has(family, protocol):
    with family.client(1) as client:
        keyspace = client.info("keyspaces")[f"keyspace{KEYSPACE[protocol]}"]
    said = [keyspace[name] for name in ("snapshot_reads", "write_transactions", "causality", "available")]
    assert keyspace["protocol"] == protocol
    assert said == {
        "eiger": ["two-rounds", "yes", "yes", "yes"],
        "eventual": ["none", "no", "no", "yes"],
        "log": ["one-round", "yes", "no", "yes"],
        "cops": ["none", "no", "yes", "yes"],
        "cops-gt": ["two-rounds", "no", "yes", "yes"],
        "cops-cd": ["none", "no", "yes", "yes"],
        "orbe-dm": ["none", "no", "yes", "yes"],
        "pocc": ["one-round", "no", "yes", "no"],
    }.get(protocol, ["one-round", "no", "yes", "yes"])


@pytest.mark.parametrize("protocol", ["eiger", "pocc"])
def test_who_looks_for_no_conflicts_says_so(family, protocol):
    with session(family, 1, protocol) as client:
        why = f"keyspace {KEYSPACE[protocol]} uses protocol {protocol}, which looks for no conflicts"
        with pytest.raises(redis.ResponseError, match=why):
            client.execute_command("CAUSAL", "CONFLICTS", "k")


@pytest.mark.parametrize("protocol", APART)
def test_writes_over_partitions_are_refused_by_name(family, protocol):
    here, there = key_in(0, PARTITIONS, "here"), key_in(1, PARTITIONS, "there")
    with session(family, 1, protocol) as client:
        client.delete(here, there)
        why = f"over several partitions is refused: keyspace {KEYSPACE[protocol]} uses protocol {protocol}, which has no"
        with pytest.raises(redis.ResponseError, match=f"^MSET {why}"):
            client.mset({here: 1, there: 2})
        both = client.pipeline(transaction=True).set(here, 1).set(there, 2)
        with pytest.raises(redis.ResponseError, match=f"^EXEC {why}"):
            both.execute()
        assert client.mget(here, there) == [None, None], "nothing was executed"
        client.set(here, 1)
        with pytest.raises(redis.ResponseError, match=f"^RENAME {why}"):
            client.rename(here, there)
        assert client.mget(here, there) == ["1", None]
        # In one partition all three are one step.
        assert client.mset({"{one}a": 1, "{one}b": 2}) is True
        assert client.rename("{one}a", "{one}c") is True
        assert client.pipeline(transaction=True).set("{one}a", 3).incr("{one}b").execute() == [True, 3]


@pytest.mark.parametrize("protocol", ["eiger", "eventual", "log"])
def test_the_others_take_them(family, protocol):
    here, there = key_in(0, PARTITIONS, "taken"), key_in(1, PARTITIONS, "taken too")
    with session(family, 1, protocol) as client:
        assert client.mset({here: 1, there: 2}) is True
        assert client.mget(here, there) == ["1", "2"]


def token_of(client):
    return client.execute_command("CAUSAL", "TOKEN")


def merge(client, token, *options):
    return client.execute_command("CAUSAL", "MERGE", token, *options) in ("OK", True)


@pytest.mark.parametrize("protocol", CAUSAL)
def test_a_token_brings_its_past(relayed, protocol):
    with session(relayed, 1, protocol) as writer, session(relayed, 3, protocol) as reader:
        writer.set("carried", "first")
        relayed.heal_all()
        assert merge(reader, token_of(writer), "TIMEOUT", 10_000)
        assert reader.get("carried") == "first"
        relayed.link(1, 3, "cut")
        writer.set("carried", "second")
        with pytest.raises(redis.ResponseError, match="^NOTYET"):
            merge(reader, token_of(writer), "TIMEOUT", 300)
        relayed.heal_all()
        assert merge(reader, token_of(writer), "TIMEOUT", 10_000)
        assert reader.get("carried") == "second"
        assert writer.execute_command("CAUSAL", "WAIT", 3, "TIMEOUT", 10_000) == 3


def album_without_its_photo(cluster, protocol, name):
    """A photo of dc1, and an album of dc2 that shows it: dc3 has the album alone."""
    photo, album = key_in(0, PARTITIONS, f"{name} photo"), key_in(1, PARTITIONS, f"{name} album")
    with session(cluster, 1, protocol) as author, session(cluster, 2, protocol) as editor:
        author.set(photo, "a photo")
        wait_until(lambda: editor.get(photo) == "a photo", 10, "dc2 shows the photo")
        editor.set(album, photo)
    return photo, album


@pytest.mark.parametrize("protocol", ["eiger", "cops", "cops-gt", "cops-cd", "orbe-dm", "orbe-clock", "cure"])
def test_the_album_waits_for_its_photo(relayed, protocol):
    photo, album = album_without_its_photo(relayed, protocol, "hidden")
    with session(relayed, 2, protocol) as stranger, session(relayed, 3, protocol) as reader:
        if protocol.startswith("orbe"):
            # Nothing of a stream shows before what stands before it.
            wait_until(lambda: reader.info("ensue")["ensue_waiting_entries"] > 0, 10, "dc3 has the album, waiting")
        else:
            # In the same stream, behind the album, and depending on nothing.
            behind = key_in(1, PARTITIONS, "behind")
            stranger.set(behind, "here")
            wait_until(lambda: reader.get(behind) == "here", 10, "dc3 shows what came after the album")
        assert [reader.get(album), reader.get(photo)] == [None, None]
        relayed.heal_all()
        wait_until(lambda: reader.get(album) == photo, 10, "dc3 shows the album")
        assert reader.get(photo) == "a photo"


def test_what_values_depend_on_is_stored_until_it_is_everywhere(relayed):
    """COPS-GT, section 5.1: it grows while a datacenter is cut off, and goes when that one has everything."""
    names = keys_over_all(PARTITIONS, "link of a chain", 100)
    with session(relayed, 1, "cops-gt") as writer, session(relayed, 3, "cops-gt") as reader:

        def stored():
            return writer.info("ensue")["ensue_dependency_bytes"]

        before = stored()
        for number, name in enumerate(names):
            writer.set(name, number)
        assert stored() > before + 10 * len(names), "each value with what it depends on"
        assert reader.mget(names) == [None] * len(names)
        relayed.heal_all()
        wait_until(lambda: reader.get(names[-1]) == "99", 10, "dc3 has the last of the chain")
        assert reader.mget(names) == [str(number) for number in range(100)]
        wait_until(lambda: stored() <= before, 30, "nobody need depend on it any more")
        assert writer.mget(names) == [str(number) for number in range(100)]


def test_a_stream_keeps_its_order_and_knows_no_other(relayed):
    """Of one datacenter's writes the later one shows with the earlier one; what another one made of them shows alone."""
    here, there = key_in(0, PARTITIONS, "first of log"), key_in(1, PARTITIONS, "second of log")
    photo, album = album_without_its_photo(relayed, "log", "streamed")
    with session(relayed, 1, "log") as writer, session(relayed, 3, "log") as reader:
        wait_until(lambda: reader.get(album) == photo, 10, "dc3 shows the album of dc2")
        assert reader.get(photo) is None
        for number in range(50):
            writer.set(here, number)
            writer.set(there, number)
        both = writer.pipeline(transaction=True).set(here, 50).incr(there)
        assert both.execute() == [True, 50]
        relayed.heal_all()

        def in_order():
            second, first = reader.get(there), reader.get(here)
            assert int(first or -1) >= int(second or -1), "a write shows before the one before it"
            return first == "50"

        wait_until(in_order, 10, "dc3 has all of dc1's stream")
        assert reader.mget(photo, here, there) == ["a photo", "50", "50"]
        with pytest.raises(redis.ResponseError, match="keyspace .* uses protocol log, which carries no causality"):
            reader.execute_command("CAUSAL", "TOKEN")


def test_a_read_whose_past_is_missing_is_blocked(relayed):
    photo, album = album_without_its_photo(relayed, "pocc", "blocked")
    with session(relayed, 3, "pocc") as reader, session(relayed, 3, "pocc") as stranger:
        wait_until(lambda: fresh_get(relayed, "pocc", album) == photo, 10, "dc3 shows the album")
        assert reader.get(album) == photo
        for ask in (lambda: reader.get(photo), lambda: reader.mget(album, photo), lambda: reader.set(photo, "mine")):
            with pytest.raises(redis.ResponseError, match="^BLOCKED .*dc1 (is [0-9]+ ms behind|has not been heard yet) at p"):
                ask()
        # Who depends on nothing is served, and is shown what is here.
        assert stranger.get(photo) is None
        relayed.heal_all()
        wait_until(lambda: answers(lambda: reader.get(photo)) == "a photo", 10, "the session goes on with its past")
        assert reader.mget(album, photo) == [photo, "a photo"]


def test_a_read_whose_past_is_missing_falls_back_once(relayed):
    photo, album = album_without_its_photo(relayed, "ha-pocc", "fallen")
    with session(relayed, 3, "ha-pocc") as reader:
        wait_until(lambda: fresh_get(relayed, "ha-pocc", album) == photo, 10, "dc3 shows the album")
        assert reader.get(album) == photo
        with pytest.raises(redis.ResponseError, match="^FALLBACK .*dc1 (is [0-9]+ ms behind|has not been heard yet) at p"):
            reader.get(photo)
        # A session of its own from here: it sees what is stable, which is neither of them, and waits for nothing.
        assert [reader.get(photo), reader.get(album)] == [None, None]
        assert reader.mget(album, photo) == [None, None]
        assert reader.set("{own}note", "still here") is True
        assert reader.get("{own}note") == "still here"
        relayed.heal_all()
        wait_until(lambda: reader.mget(album, photo) == [photo, "a photo"], 10, "the session shows all again")
        assert reader.get("{own}note") == "still here"


def test_a_named_session_falls_back_once(relayed):
    photo, album = album_without_its_photo(relayed, "ha-pocc", "named")
    with session(relayed, 3, "ha-pocc") as reader, session(relayed, 3, "ha-pocc") as other:
        for member in (reader, other):
            assert member.execute_command("CAUSAL", "SESSION", "album reader") in ("OK", True)
        wait_until(lambda: fresh_get(relayed, "ha-pocc", album) == photo, 10, "dc3 shows the album")
        assert reader.get(album) == photo
        for member in (reader, other):
            with pytest.raises(redis.ResponseError, match="^FALLBACK"):
                member.get(photo)
            assert [member.get(photo), member.get(album)] == [None, None]
            assert member.set("{named}note", "of this member") is True
        assert reader.get("{named}note") == "of this member"
        relayed.heal_all()
        for member in (reader, other):
            wait_until(lambda: member.mget(album, photo) == [photo, "a photo"], 10, "both show all again")  # noqa: B023


def fresh_get(cluster, protocol, key):
    """As a session without a past."""
    with session(cluster, 3, protocol) as client:
        return client.get(key)


def answers(ask):
    """The answer, or nothing while the session is blocked."""
    try:
        return ask()
    except redis.ResponseError as error:
        assert str(error).startswith("BLOCKED")
        return None
