"""`ensue diff`: a real redis-server beside an Ensue, and the datacenters of a cluster beside each other."""

import json
import random
import signal
import subprocess
import time

import pytest
import redis
from cluster import Cluster, Crew, binary, ensue, wait_until
from ports import TLS
from test_import import SERVER, RedisServer, fill, fill_streams

EQUAL, DIFFERENT, UNDECIDED = range(3)
NO_WAIT = ("--rounds", 0)

needs_redis = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: apt-get install redis-server")


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("old"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """An Ensue of one datacenter."""
    cluster = Cluster(tmp_path_factory.mktemp("one"), delay="5ms", datacenters=1)
    cluster.start()
    yield cluster
    cluster.close()


def address(cluster, datacenter=1):
    return f"127.0.0.1:{cluster.client_port(datacenter)}"


def diff(left, right, *words, expected, timeout=60):
    """What it says as JSON: the numbers of each keyspace, by name."""
    done = ensue("diff", left, right, "--json", *words, timeout=timeout)
    assert done.returncode == expected, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["outcome"] == ("equal", "different", "undecided")[expected], said
    return {keyspace["left_keyspace"]: keyspace for keyspace in said["keyspaces"]}


def named(keyspace):
    """The differences of a keyspace: for each key what differs, and the words for it."""
    return {found["key"]: (found["difference"], found["words"]) for found in keyspace["differences"]}


def emptied(old, one):
    with old.client() as client:
        client.flushall()
    with one.client(1) as client:
        client.flushall()


def imported(old, one):
    """The data of a Redis in an Ensue."""
    done = ensue("import", "--from", old.url, "--to", address(one), "--stop-when-caught-up", timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_redis
def test_what_was_imported_is_equal(old, one):
    emptied(old, one)
    fill(old)
    imported(old, one)
    found = diff(old.url, address(one), *NO_WAIT, expected=EQUAL)
    sizes = {keyspace: numbers["equal"] for keyspace, numbers in found.items()}
    with old.client() as client:
        assert sizes == {0: client.dbsize(), 1: 2, 5: 2}
    text = ensue("diff", old.url, address(one), *NO_WAIT)
    assert text.returncode == EQUAL and f"equal: {sum(sizes.values())} keys" in text.stdout, text.stdout
    # The other way round, a part, and one keyspace with another.
    assert diff(address(one), old.url, *NO_WAIT, expected=EQUAL)[0]["equal"] == sizes[0]
    assert diff(old.url, address(one), "--keyspaces", "5", "--match", "te?t", *NO_WAIT, expected=EQUAL)[5]["keys_left"] == 1
    crossed = diff(f"{old.url}/1", f"redis://{address(one)}/5", *NO_WAIT, expected=DIFFERENT)[1]
    assert (crossed["right_keyspace"], crossed["other_value"]) == (5, 2)


# For each difference: the change, the key, what differs, and what the words must have.
LARGE = 3_000
CHANGES = [
    (lambda client: client.set("text", "hallo"), "text", "other_value", '"hallo" left, "hello" right'),
    (lambda client: client.setrange("repeated", 70_001, "X"), "repeated", "other_value", "from byte 69989"),
    (lambda client: client.setrange("large", 5 << 20, "X" * 9), "large", "other_value", "from byte 52428"),
    (lambda client: client.hset("hash", "b", "zwei"), "hash", "other_value", 'field "b": "zwei" left, "two" right'),
    (lambda client: client.hdel("hash:long", "field 7"), "hash:long", "other_value", 'field "field 7" is only right'),
    (lambda client: client.sadd("set", "c"), "set", "other_value", 'member "c" is only left'),
    (lambda client: client.srem("set:long", "member 9"), "set:long", "other_value", 'member "member 9" is only right'),
    (lambda client: client.zadd("zset", {"b": 0.2}), "zset", "other_value", 'member "b": score 0.2 left, 0.1 right'),
    (lambda client: client.zadd("zset:long", {"x": 1}), "zset:long", "other_value", 'member "x" is only left, with score 1'),
    (lambda client: client.lset("list", 1, "2"), "list", "other_value", 'element 1: "2" left, "1" right'),
    (lambda client: client.rpop("list:long"), "list:long", "other_value", "element 4999 is only right"),
    (lambda client: client.xdel("stream", "5-0"), "stream", "other_value", "entry 5-0 is only right"),
    (lambda client: client.xadd("stream:long", {"a": 1}, id="9000-0"), "stream:long", "other_value", "entry 9000-0 is only left"),
    (lambda client: client.execute_command("XSETID", "stream:empty", "8-0"), "stream:empty", "other_value", "last id 8-0 left, 7-0 right"),
    (lambda client: client.xgroup_setid("grouped", "readers", "1-1"), "grouped", "other_value", 'group "readers": last id 1-1'),
    (lambda client: client.pfadd("hll", *range(5_000, 5_100)), "hll", "other_value", "a HyperLogLog with other registers"),
    (lambda client: client.persist("expiring"), "expiring", "other_deadline", "expires never left"),
    (lambda client: client.expire("number", 5_000), "number", "other_deadline", "never right"),
    (lambda client: client.delete("binary"), "binary", "only_right", "a string, only right"),
    (lambda client: client.set("new", 1), "new", "only_left", "a string, only left"),
    (lambda client: retyped(client, "empty"), "empty", "other_type", "a list left, a string right"),
]


def retyped(client, key):
    client.delete(key)
    client.rpush(key, "element")


@needs_redis
def test_each_kind_of_difference_is_found_and_named(old, one):
    emptied(old, one)
    fill(old)
    with old.client() as client:
        client.xadd("grouped", {"a": 1}, id="1-1")
        client.xgroup_create("grouped", "readers", id="0")
    imported(old, one)
    diff(old.url, address(one), *NO_WAIT, expected=EQUAL)
    with old.client() as client:
        for change, *_ in CHANGES:
            change(client)
    words = (old.url, address(one), "--show", 100, "--pause", "10ms", "--keyspaces", "0")
    keyspace = diff(*words, expected=DIFFERENT)[0]
    found = named(keyspace)
    for _, key, difference, part in CHANGES:
        assert key in found and found[key][0] == difference and part in found[key][1], (key, found.get(key))
    assert len(found) == len(CHANGES), found
    counts = {name: sum(difference == name for _, _, difference, _ in CHANGES) for name in keyspace if name in COUNTED}
    assert counts == {name: keyspace[name] for name in COUNTED}
    with old.client() as client:
        assert keyspace["equal"] + len(CHANGES) - 1 == client.dbsize()
    # From the other side, the words are the other way round.
    turned = named(diff(address(one), old.url, "--show", 100, *NO_WAIT, "--keyspaces", "0", expected=DIFFERENT)[0])
    assert turned["text"] == ("other_value", '"hello" left, "hallo" right (5 and 5 bytes)')
    assert turned["new"][0] == "only_right" and turned["binary"][0] == "only_left"
    # Without deadlines there are two fewer.
    without = named(diff(*words, "--ignore-ttl", expected=DIFFERENT)[0])
    assert found.keys() - without.keys() == {"expiring", "number"}
    text = ensue("diff", *words[:2], "--show", 1, *NO_WAIT)
    assert text.returncode == DIFFERENT and f"and {len(CHANGES) - 1} more" in text.stdout, text.stdout
    assert text.stdout.endswith(f"different: {len(CHANGES)} keys\n"), text.stdout


COUNTED = ("only_left", "only_right", "other_type", "other_value", "other_deadline")


@needs_redis
def test_deadlines_are_equal_within_the_tolerance(old, one):
    emptied(old, one)
    later = int(time.time() * 1_000) + 3_600_000
    with old.client() as client, one.client(1) as other:
        client.set("near", 1, pxat=later)
        other.set("near", 1, pxat=later + 1_500)
    diff(old.url, address(one), *NO_WAIT, expected=EQUAL)
    narrow = diff(old.url, address(one), *NO_WAIT, "--ttl-tolerance", "1s", expected=DIFFERENT)[0]
    assert "1.500 s earlier left" in named(narrow)["near"][1]


@needs_redis
def test_both_layouts_of_a_hyperloglog_are_equal(old, one):
    emptied(old, one)
    with old.client() as client, one.client(1) as other:
        for server in (client, other):
            server.pfadd("hll", *range(50))
        # Redis keeps its estimate in the value, and its own layout.
        client.pfcount("hll")
        client.execute_command("PFDEBUG", "TODENSE", "hll")
        assert client.get("hll") != other.execute_command("GET", "hll", NEVER_DECODE=[])
    assert diff(old.url, address(one), *NO_WAIT, expected=EQUAL)[0]["equal"] == 1


@needs_redis
def test_what_cannot_be_judged_is_not_equal(old, one, tmp_path):
    emptied(old, one)
    with old.client() as client, one.client(1) as other:
        for server in (client, other):
            server.set("seen", 1)
            server.set("hidden", 1)
        client.acl_setuser("some", enabled=True, passwords=["+word"], keys=["seen"], commands=["+@read", "+@connection"])
    limited = f"redis://some:word@127.0.0.1:{old.port}"
    found = diff(limited, address(one), *NO_WAIT, expected=UNDECIDED)[0]
    assert (found["equal"], found["unreadable"]) == (1, 1)
    assert "left answers: NOPERM" in named(found)["hidden"][1]
    wrong = ensue("diff", f"redis://some:wrong@127.0.0.1:{old.port}", address(one))
    assert wrong.returncode == UNDECIDED and "WRONGPASS" in wrong.stderr, wrong.stderr
    nobody = ensue("diff", "127.0.0.1:1", address(one))
    assert nobody.returncode == UNDECIDED and "the left server" in nobody.stderr, nobody.stderr


def test_deadlines_of_fields(one):
    """Between two keyspaces of one server that knows them."""
    with one.client(1) as client:
        client.flushall()
    later = int(time.time() * 1_000) + 3_600_000
    for database in (0, 1):
        with one.client(1, db=database) as client:
            for key, fields in (("small", 5), ("large", LARGE)):
                client.hset(key, mapping={f"f{number}": number for number in range(fields)})
                client.execute_command("HPEXPIREAT", key, later + database, "FIELDS", 1, "f3")
    left, right = (f"redis://{address(one)}/{database}" for database in (0, 1))
    assert diff(left, right, *NO_WAIT, expected=EQUAL)[0]["field_deadlines_compared"]
    with one.client(1, db=1) as client:
        client.execute_command("HPEXPIREAT", "small", later + 9_000, "FIELDS", 1, "f3")
        client.execute_command("HPERSIST", "large", "FIELDS", 1, "f3")
    found = named(diff(left, right, *NO_WAIT, expected=DIFFERENT)[0])
    assert {key: difference for key, (difference, _) in found.items()} == {"small": "other_deadline", "large": "other_deadline"}
    assert 'field "f3"' in found["small"][1] and "never right" in found["large"][1]
    diff(left, right, *NO_WAIT, "--ignore-ttl", expected=EQUAL)


def test_bounded_counters(one):
    with one.client(1) as client:
        client.flushall()
    for database in (0, 1):
        with one.client(1, db=database) as client:
            client.execute_command("BCREATE", "stock", 100, "MIN", 0)
    left, right = (f"redis://{address(one)}/{database}" for database in (0, 1))
    diff(left, right, *NO_WAIT, expected=EQUAL)
    with one.client(1) as client:
        client.execute_command("BDECRBY", "stock", 3)
    found = named(diff(left, right, *NO_WAIT, expected=DIFFERENT)[0])
    assert found["stock"] == ("other_value", 'value: "97" left, "100" right')


def test_two_datacenters_under_writes_are_never_different(clean):
    """What is under way is told as changing, if it does not come to rest."""
    with clean.client(1) as client:
        fill_streams(client)
        client.mset({f"still {number}": number for number in range(2_000)})
    clean.converge()
    crew = Crew()
    numbers = random.Random(3)

    def write():
        with clean.client(1) as client:
            while not crew.stopped.is_set():
                number = numbers.randrange(40)
                client.incr(f"hot {number}")
                client.rpush(f"hot list {number}", number)
                client.hset(f"hot hash {number}", number, numbers.random())

    crew.add(write)
    try:
        with clean.client(1) as client:
            wait_until(lambda: client.exists("hot list 7"), 10, "it writes")
        # With so many rounds, what was under way has arrived, or has changed once more.
        words = (address(clean, 1), address(clean, 2), "--pause", "500ms", "--rounds", 5, "--keyspaces", "0")
        done = ensue("diff", *words, "--json")
        assert done.returncode in (EQUAL, UNDECIDED), done.stdout + done.stderr
        found = json.loads(done.stdout)["keyspaces"][0]
        assert found["differences"] == [] and found["equal"] >= 2_000, found
        assert found["equal"] + found["changing"] >= found["keys_left"] - found["not_read_again"], found
        diff(*words, "--changing-max", 120, expected=EQUAL)
    finally:
        crew.stop()
    clean.converge()
    diff(*words, expected=EQUAL)


def test_a_cut_link_makes_a_difference_that_ends_when_it_is_healed(clean):
    words = (address(clean, 1), address(clean, 3), "--pause", "50ms", "--keyspaces", "0")
    with clean.client(1) as client:
        client.set("before", 1)
    clean.converge()
    diff(*words, expected=EQUAL)
    clean.cut_off(3)
    with clean.client(1) as here, clean.client(3) as there:
        here.set("before", 2)
        here.set("here", 1)
        there.sadd("there", "a")
    found = named(diff(*words, expected=DIFFERENT)[0])
    assert found == {
        "before": ("other_value", '"2" left, "1" right (1 and 1 bytes)'),
        "here": ("only_left", "a string, only left"),
        "there": ("only_right", "a set, only right"),
    }
    clean.heal_all()
    clean.converge(timeout=20)
    assert diff(*words, expected=EQUAL)[0]["equal"] == 3


def test_what_goes_on_changing_is_neither_equal_nor_different(clean):
    words = (address(clean, 1), address(clean, 3), "--pause", "500ms", "--rounds", 4, "--keyspaces", "0")
    with clean.client(1) as client:
        client.mset({"hot": 0, "still": 1})
    clean.converge()
    clean.cut_off(3)
    crew = Crew()
    with clean.client(1) as client:
        crew.loop(client.incr, "hot")
        try:
            found = diff(*words, expected=UNDECIDED)[0]
            assert (found["equal"], found["changing"], found["changing_keys"]) == (1, 1, ["hot"])
            diff(*words, "--changing-max", 1, expected=EQUAL)
        finally:
            crew.stop()
    # It has come to rest, and the link is still cut.
    assert named(diff(*words, expected=DIFFERENT)[0])["hot"][0] == "other_value"
    clean.heal_all()
    clean.converge(timeout=20)
    diff(*words, expected=EQUAL)


def test_one_side_may_be_encrypted(dev):
    cluster = dev(delay="5ms", datacenters=2, flags=["--tls"])
    with cluster.client(1) as client:
        client.mset({"a": 1, "b": 2})
    cluster.converge()
    authority = cluster.directory / "data" / "certificates" / "ca.pem"
    encrypted, plain = f"rediss://127.0.0.1:{cluster.client_port(1) + TLS}", f"redis://{address(cluster, 2)}"
    flags = ("--tls", "--cacert", authority)
    assert diff(encrypted, plain, *flags, expected=EQUAL)[0]["equal"] == 2
    without = ensue("diff", encrypted, plain)
    assert without.returncode == UNDECIDED and "rediss:// needs --tls" in without.stderr, without.stderr
    unused = ensue("diff", plain, plain, *flags)
    assert unused.returncode == UNDECIDED and "rediss:// is the encrypted one" in unused.stderr, unused.stderr


def test_a_rate_holds_it_back_and_an_interrupt_ends_it(one, tmp_path):
    with one.client(1) as client:
        client.flushall()
        client.mset({f"key {number}": number for number in range(3_000)})
    log = tmp_path / "diff.txt"
    command = [binary(), "diff", address(one), address(one), "--rate", "1"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        with one.client(1) as client:
            wait_until(lambda: "get" in {info["cmd"] for info in client.client_list()}, 20, "it reads")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == UNDECIDED, log.read_text()
        assert "keyspace 0: interrupted" in log.read_text() and "undecided" in log.read_text()
    finally:
        process.kill()
        process.wait()
