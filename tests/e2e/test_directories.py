"""Directories that are lost, empty, exchanged or old: the sick datacenter serves nothing wrong, and the healthy ones go on."""

import json
import re
import shutil
import signal
import threading
import time

import pytest
import redis

from cluster import ensue, wait_until
from servers import MIB, NAMES, TRIMMED_WRITES, serves, tried


# Its states fork, and are in no copy.
BRANCHES = "keyspace 1 protocol tardis"


def start_all(servers, *directives):
    for name in NAMES:
        servers.start(name, *directives)
    for name in NAMES:
        wait_until(lambda one=name: serves(servers, one), 20, f"{name} serves")


def digests(servers):
    return {name: str(tried(servers, name, "CAUSAL", "DIGEST")) for name in NAMES}


def all_agree(servers):
    return len(set(digests(servers).values())) == 1


def fill_beyond_the_first_trim(servers):
    """Writes until no log begins at its beginning any more."""
    with redis.Redis("127.0.0.1", servers.port("dc1"), socket_timeout=20) as client:
        deadline = time.monotonic() + 80
        number = 0
        while number < TRIMMED_WRITES or begins(servers):
            client.set(f"big{number % 8}", bytes(MIB))
            number += 1
            assert time.monotonic() < deadline, f"{begins(servers)} are not trimmed"


def begins(servers):
    logs = {folder: sorted(folder.glob("log-*")) for folder in servers.directory.glob("*/*/p*")}
    return [folder for folder, segments in logs.items() if segments and int(segments[0].name[4:], 16) == 0]


def test_a_first_start_waits_for_the_others_or_for_an_operators_word(servers):
    servers.start("dc1")
    wait_until(lambda: "starts with an empty directory" in str(tried(servers, "dc1", "GET", "a")), 20, "dc1 says that it waits")
    words = str(tried(servers, "dc1", "SET", "a", "1"))
    assert "dc2, dc3" in words and "--first-start alone" in words
    servers.end("dc1")
    servers.start("dc1", "first-start alone")
    wait_until(lambda: tried(servers, "dc1", "SET", "a", "1") is True, 20, "dc1 serves")
    servers.end("dc1")
    # The word counts for the first start only, and the others come when they like.
    servers.start("dc1")
    wait_until(lambda: tried(servers, "dc1", "GET", "a") == "1", 20, "dc1 serves")
    servers.start("dc2")
    servers.start("dc3")
    for name in ("dc2", "dc3"):
        wait_until(lambda one=name: tried(servers, one, "GET", "a") == "1", 20, f"{name} has it")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_empty_directory_is_filled_again_from_logs_that_are_whole(servers, how):
    start_all(servers)
    for number in range(50):
        servers.ask(NAMES[number % 3], "SET", f"key{number}", number)
        servers.ask("dc2", "INCR", f"count{number % 5}")
    wait_until(lambda: all_agree(servers), 20, "all agree")
    before = digests(servers)["dc1"]
    servers.end("dc2", how)
    shutil.rmtree(servers.data("dc2"))
    servers.start("dc2")
    wait_until(lambda: serves(servers, "dc2"), 30, "dc2 serves again")
    assert digests(servers) == dict.fromkeys(NAMES, before)
    assert servers.ask("dc2", "INCR", "count0") == 11
    wait_until(lambda: servers.ask("dc3", "GET", "count0") == "11", 20, "dc2 replicates again")
    assert all(tried(servers, name, "INFO")["ensue_stopped"] == 0 for name in NAMES)


def test_a_datacenter_that_lost_its_directory_serves_nothing_and_stops_nobody(servers):
    start_all(servers, BRANCHES)
    # All that branches is in one partition, and so is `counter`.
    with redis.Redis("127.0.0.1", servers.port("dc1"), db=1, socket_timeout=5) as client:
        for number in range(8):
            client.set(f"branch{number}", number)
    servers.ask("dc1", "SET", "a", "precious")
    servers.ask("dc1", "INCRBY", "counter", 10)
    fill_beyond_the_first_trim(servers)
    wait_until(lambda: servers.ask("dc2", "GET", "counter") == "10", 20, "dc2 has it")

    servers.end("dc2", signal.SIGKILL)
    kept = servers.directory / "kept"
    servers.data("dc2").rename(kept)
    servers.start("dc2", BRANCHES)
    wait_until(lambda: "REJOIN" in str(tried(servers, "dc2", "GET", "counter")), 30, "dc2 says that it cannot serve")
    words = str(tried(servers, "dc2", "INCR", "counter"))
    assert "put that one back" in words and "CAUSAL DEAD" in words
    assert "REJOIN" in str(tried(servers, "dc2", "SET", "counter", "1", "NX"))
    for name in ("dc1", "dc3"):
        servers.ask(name, "INCR", "counter")
        info = servers.ask(name, "INFO")
        assert info["ensue_stopped"] == 0 and info["ensue_refused_dc2_partitions"] >= 1, name
    wait_until(lambda: servers.ask("dc1", "GET", "counter") == "12", 20, "the healthy ones exchange")

    # Doing what the message says works: the right directory is put back.
    servers.end("dc2")
    shutil.rmtree(servers.data("dc2"))
    kept.rename(servers.data("dc2"))
    servers.start("dc2", BRANCHES)
    wait_until(lambda: tried(servers, "dc2", "GET", "counter") == "12", 30, "dc2 is back")
    # The partition without branches may have begun anew meanwhile. Then what is put back is an old copy of its
    # directory: it says so, and what to do.
    is_told = "Start the process again"
    wait_until(lambda: all_agree(servers) or is_told in digests(servers)["dc2"], 20, "all agree, or it says why not")
    if not all_agree(servers):
        servers.end("dc2")
        servers.start("dc2", BRANCHES)
    wait_until(lambda: all_agree(servers), 30, "all agree")
    wait_until(lambda: servers.ask("dc1", "INFO")["ensue_refused_dc2_partitions"] == 0, 20, "dc2 is admitted")

    # The other way out: it is lost for good, and the others go on without it.
    servers.end("dc2", signal.SIGKILL)
    shutil.rmtree(servers.data("dc2"))
    servers.start("dc2", BRANCHES)
    wait_until(lambda: "REJOIN" in str(tried(servers, "dc2", "GET", "counter")), 30, "dc2 says that it cannot serve")
    declare_dead(servers, "dc1", "dc2")
    wait_until(lambda: servers.ask("dc3", "INFO").get("ensue_settled_dc2_partitions") == 2, 20, "dc3 knows")
    wait_until(lambda: "declared dead" in str(tried(servers, "dc2", "GET", "counter")), 20, "dc2 hears of it")
    assert servers.ask("dc1", "INCR", "counter") == 13
    wait_until(lambda: servers.ask("dc3", "GET", "counter") == "13", 20, "the survivors go on")


@pytest.mark.parametrize("protocol", ["cure", "eiger"])
def test_a_lost_directory_is_filled_by_a_copy_when_the_logs_are_trimmed(servers, protocol):
    protocol = f"keyspace 0 protocol {protocol}"
    for name in NAMES:
        servers.start(name, protocol)
    for name in NAMES:
        wait_until(lambda one=name: serves(servers, one), 20, f"{name} serves")
    for number in range(200):
        servers.ask("dc2", "SET", f"old{number}", str(number))
    early = copied(servers, "dc2", "early", protocol)
    servers.ask("dc2", "SADD", "set", *range(500))
    servers.ask("dc2", "INCRBY", "counter", "10")
    fill_beyond_the_first_trim(servers)
    servers.ask("dc1", "DEL", "old7")
    wait_until(lambda: all_agree(servers), 30, "all agree")

    # Its disk is gone. An old backup does not help, and an empty directory does.
    restore(servers, "dc2", early, protocol)
    wait_until(lambda: "Start the process again" in str(tried(servers, "dc2", "GET", "counter")), 30, "it is too old")
    servers.end("dc2")
    servers.start("dc2", protocol)
    wait_until(lambda: "REJOIN" in str(tried(servers, "dc2", "GET", "counter")), 30, "what it lacks was trimmed")
    # The process is killed again while it takes the copy.
    servers.end("dc2", signal.SIGKILL)
    shutil.rmtree(servers.data("dc2"))
    servers.ask("dc3", "INCRBY", "counter", "1")
    servers.start("dc2", protocol)
    wait_until(lambda: "takes a copy" in (servers.directory / "dc2.log").read_text(), 20, "dc2 takes a copy")
    servers.end("dc2", signal.SIGKILL)
    servers.start("dc2", protocol)
    answers = set()
    wait_until(lambda: answers.add(str(tried(servers, "dc2", "GET", "counter"))) or "11" in answers, 60, "dc2 is back")
    assert not {answer for answer in answers if answer.isdigit()} - {"11"}, "it serves nothing before it has everything"
    wait_until(lambda: serves(servers, "dc2") and all_agree(servers), 30, "all agree")
    assert servers.ask("dc2", "GET", "old8") == "8" and servers.ask("dc2", "GET", "old7") is None
    assert servers.ask("dc2", "SCARD", "set") == 500
    assert servers.ask("dc2", "INCRBY", "counter", "5") == 16
    for name in ("dc1", "dc3"):
        wait_until(lambda one=name: servers.ask(one, "GET", "counter") == "16", 20, f"{name} takes what dc2 writes")
        info = servers.ask(name, "INFO")
        assert info["ensue_stopped"] == 0 and info["ensue_refused_dc2_partitions"] == 0, name


class Pairs:
    """Writes one number into a key of every partition, by one transaction after the other."""

    def __init__(self, servers, name, keys):
        self.servers, self.name, self.keys = servers, name, keys
        self.number = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        with redis.Redis("127.0.0.1", self.servers.port(self.name), socket_timeout=20) as client:
            while not self.stopped.wait(0.001):
                client.mset(dict.fromkeys(self.keys, self.number + 1))
                self.number += 1

    def end(self):
        self.stopped.set()
        self.thread.join()


def test_transactions_that_copies_cut_are_whole(servers):
    servers.partitions = 4
    start_all(servers)
    keys = [f"k{number}" for number in range(32)]
    servers.ask("dc2", "MSET", *[word for key in keys for word in (key, 0)])
    with redis.Redis("127.0.0.1", servers.port("dc1"), socket_timeout=20) as client:
        deadline, number = time.monotonic() + 160, 0
        while number < 2 * TRIMMED_WRITES or begins(servers):
            client.set(f"big{number % 40}", bytes(MIB))
            number += 1
            assert time.monotonic() < deadline, f"{begins(servers)} are not trimmed"

    servers.end("dc2", signal.SIGKILL)
    shutil.rmtree(servers.data("dc2"))
    writers = [Pairs(servers, "dc1", keys), Pairs(servers, "dc3", [f"d{key}" for key in keys])]
    try:
        servers.start("dc2")
        seen = []
        for writer in writers:
            read = lambda one=writer: tried(servers, "dc2", "MGET", *one.keys)
            wait_until(lambda: not isinstance(seen.append(read()) or seen[-1], Exception), 60, "dc2 serves")
        for writer in writers:
            for _ in range(50):
                read = servers.ask("dc2", "MGET", *writer.keys)
                assert len(set(read)) == 1, "a transaction is seen as a whole"
    finally:
        for writer in writers:
            writer.end()
    log = (servers.directory / "dc2.log").read_text()
    assert all(re.search(rf"p{number}\b.*takes a copy", log) for number in range(4)), log
    wait_until(lambda: all_agree(servers), 30, "all agree")
    for writer in writers:
        assert writer.number > 0 and set(servers.ask("dc2", "MGET", *writer.keys)) == {str(writer.number)}


def declare_dead(servers, by, name):
    digest = servers.ask(by, "CAUSAL", "DEAD", name)[0]
    servers.ask(by, "CAUSAL", "DEAD", name, "CONFIRM", digest, "FORCE")


def listed_writes(servers):
    """What the stopped partitions of dc2 took after their starts, as their messages say how to list it."""
    servers.end("dc2")
    log = (servers.directory / "dc2.log").read_text()
    places = set(re.findall(r"--writes-after (\d+:\d+\.\d+)", log))
    listed = [ensue("fsck", servers.data("dc2"), "--writes-after", place) for place in places]
    assert places and all(one.returncode == 0 for one in listed)
    lines = [json.loads(line) for one in listed for line in one.stdout.splitlines()]
    servers.start("dc2")
    return [effect for line in lines for effect in line["effects"] if effect["put"] == "fork"]


def go_back_to_an_old_copy(servers):
    """dc2 has written `a`, and twenty keys after the copy of its directory that it is left with, stopped."""
    start_all(servers)
    servers.ask("dc2", "SET", "a", "1")
    wait_until(lambda: servers.ask("dc1", "GET", "a") == "1", 20, "dc1 has it")
    servers.end("dc2")
    copy = servers.directory / "copy"
    shutil.copytree(servers.data("dc2"), copy)
    servers.start("dc2")
    wait_until(lambda: serves(servers, "dc2"), 20, "dc2 serves")
    for number in range(20):
        servers.ask("dc2", "SET", f"later{number}", number)
    for name in ("dc1", "dc3"):
        wait_until(lambda one=name: servers.ask(one, "GET", "later19") == "19", 20, f"{name} has all")
    servers.end("dc2")
    replace_data(servers, "dc2", copy)


def test_an_old_copy_of_a_directory_is_noticed_and_not_merged(servers):
    go_back_to_an_old_copy(servers)

    # Alone it cannot know, serves, and takes writes; at the first contact it stops, and says how many.
    servers.end("dc1")
    servers.end("dc3")
    servers.start("dc2")
    wait_until(lambda: tried(servers, "dc2", "SET", "b", "fork") is True, 20, "the old copy serves")
    wait_until(lambda: tried(servers, "dc2", "SET", "a", "fork") is True, 20, "the old copy serves")
    servers.start("dc1")
    servers.start("dc3")
    wait_until(lambda: "writes were taken on it" in str(tried(servers, "dc2", "GET", "a")), 20, "dc2 notices")
    for name in ("dc1", "dc3"):
        wait_until(lambda one=name: tried(servers, one, "GET", "a") == "1", 20, f"{name} serves what it had")
        assert servers.ask(name, "GET", "b") is None and servers.ask(name, "INFO")["ensue_stopped"] == 0
    assert len(listed_writes(servers)) == 2
    # It is not served by the next start either; with an empty directory everything comes back.
    servers.end("dc2")
    servers.start("dc2")
    wait_until(lambda: "REJOIN" in str(tried(servers, "dc2", "GET", "a")), 20, "it is still the old copy")
    servers.end("dc2")
    shutil.rmtree(servers.data("dc2"))
    servers.start("dc2")
    wait_until(lambda: tried(servers, "dc2", "GET", "later19") == "19", 30, "everything is back")
    # The other partition may be filled a moment later.
    wait_until(lambda: serves(servers, "dc2"), 30, "dc2 serves")
    assert servers.ask("dc2", "GET", "b") is None


def test_an_old_copy_that_has_stopped_hears_at_once_that_it_was_declared_dead(servers):
    go_back_to_an_old_copy(servers)
    servers.start("dc2")
    for key in ("a", "b"):
        wait_until(lambda one=key: "STOPPED" in str(tried(servers, "dc2", "GET", one)), 20, "dc2 notices")
    declare_dead(servers, "dc1", "dc2")
    for key in ("a", "b"):
        wait_until(lambda one=key: "DECLAREDDEAD" in str(tried(servers, "dc2", "GET", one)), 20, "dc2 hears of it")
    info = servers.ask("dc2", "INFO")
    assert info["ensue_declared_dead"] == 2 and not info.get("ensue_stopped"), "what it says is true without a restart"


def replace_data(servers, name, directory):
    shutil.rmtree(servers.data(name))
    directory.rename(servers.data(name))


def test_an_old_copy_does_not_spread_its_writes_past_one_that_has_heard_of_newer_ones(servers):
    start_all(servers)
    servers.ask("dc1", "SET", "a", "1")
    for name in ("dc2", "dc3"):
        wait_until(lambda one=name: servers.ask(one, "GET", "a") == "1", 20, f"{name} has it")
    servers.end("dc1")
    copy = servers.directory / "copy"
    shutil.copytree(servers.data("dc1"), copy)
    servers.start("dc1")
    servers.end("dc2")
    wait_until(lambda: tried(servers, "dc1", "SET", "a", "2") is True, 20, "dc1 serves")
    wait_until(lambda: servers.ask("dc3", "GET", "a") == "2", 20, "dc3 has the newer one")
    servers.end("dc1")
    # dc2 has not received it, and hears that dc3 has.
    servers.start("dc2")
    wait_until(lambda: tried(servers, "dc2", "GET", "a") == "1", 20, "dc2 serves what it has")
    wait_until(lambda: servers.ask("dc2", "INFO")["ensue_linked_dc3"] == 2, 20, "dc2 and dc3 are linked")
    time.sleep(2)
    servers.end("dc3")
    replace_data(servers, "dc1", copy)
    servers.start("dc1")
    wait_until(lambda: tried(servers, "dc1", "SET", "a", "fork") is True, 20, "the old copy serves")
    wait_until(lambda: servers.ask("dc1", "INFO").get("ensue_refused_dc2_partitions") == 1, 20, "dc1 waits for dc3")
    time.sleep(1)
    assert servers.ask("dc2", "GET", "a") == "1"
    servers.start("dc3")
    wait_until(lambda: "writes were taken on it" in str(tried(servers, "dc1", "GET", "a")), 20, "dc1 knows")
    assert servers.ask("dc2", "GET", "a") == "1" and servers.ask("dc3", "GET", "a") == "2"
    # What the message says helps: an empty directory is filled with the newest.
    servers.end("dc1")
    shutil.rmtree(servers.data("dc1"))
    servers.start("dc1")
    for name in NAMES:
        wait_until(lambda one=name: tried(servers, one, "GET", "a") == "2", 30, f"{name} has the newest")


def test_a_directory_of_another_cluster_is_not_served(servers):
    start_all(servers)
    servers.ask("dc2", "SET", "a", "foreign")
    for name in NAMES:
        servers.end(name)
    foreign = servers.directory / "foreign"
    servers.data("dc2").rename(foreign)
    for name in ("dc1", "dc3"):
        shutil.rmtree(servers.data(name))
    start_all(servers)
    servers.ask("dc1", "SET", "a", "1")
    wait_until(lambda: servers.ask("dc2", "GET", "a") == "1", 20, "dc2 has it")
    servers.end("dc2")
    kept = servers.directory / "kept"
    servers.data("dc2").rename(kept)
    foreign.rename(servers.data("dc2"))
    servers.start("dc2")
    for key in ("a", "b"):
        wait_until(lambda one=key: "REJOIN" in str(tried(servers, "dc2", "GET", one)), 20, "dc2 leaves it")
    servers.end("dc2")
    servers.start("dc2")
    wait_until(lambda: "REJOIN" in str(tried(servers, "dc2", "GET", "a")), 20, "dc2 does not serve it again")
    assert "REJOIN" in str(tried(servers, "dc2", "SET", "a", "2"))
    for name in ("dc1", "dc3"):
        assert servers.ask(name, "GET", "a") == "1" and servers.ask(name, "INFO")["ensue_stopped"] == 0
    servers.end("dc2")
    replace_data(servers, "dc2", kept)
    servers.start("dc2")
    wait_until(lambda: tried(servers, "dc2", "GET", "a") == "1", 20, "the right one is back")


def copied(servers, name, to, *directives):
    """A copy of the directory of a datacenter that is stopped for it and started again."""
    servers.end(name)
    copy = servers.directory / "copies" / to
    shutil.copytree(servers.data(name), copy)
    servers.start(name, *directives)
    wait_until(lambda: serves(servers, name), 20, f"{name} serves")
    return copy


def restore(servers, name, copy, *directives):
    """A datacenter is killed and started on a copy. Its own directory is kept."""
    servers.end(name, signal.SIGKILL)
    kept = servers.directory / "copies" / "newest"
    shutil.rmtree(kept, ignore_errors=True)
    servers.data(name).rename(kept)
    shutil.copytree(copy, servers.data(name))
    servers.start(name, *directives)
    return kept


def check_until_told(servers, words):
    """The sick one serves what its directory has, if anything, until it says these words; then nothing."""
    for key in ("a", "b"):
        answers = []
        told = lambda: answers.append(str(tried(servers, "dc2", "GET", key))) or words in answers[-1]  # noqa: B023
        wait_until(told, 40, f"dc2 says: {words}")
        assert "newest" not in answers, "the copy does not have it"
    for words_of_client in (["GET", "a"], ["SET", "b", "fork"], ["INCR", "counter"], ["DBSIZE"]):
        assert isinstance(tried(servers, "dc2", *words_of_client), redis.ResponseError), words_of_client


def healthy_go_on(servers):
    count = servers.ask("dc1", "INCR", "counter")
    wait_until(lambda: servers.ask("dc3", "GET", "counter") == str(count), 20, "the healthy ones exchange")
    for name in ("dc1", "dc3"):
        assert servers.ask(name, "MGET", "a", "b") == ["newest", "newest"], name
        assert servers.ask(name, "INFO")["ensue_stopped"] == 0, name


def check_all_are_well(servers):
    wait_until(lambda: tried(servers, "dc2", "MGET", "a", "b") == ["newest", "newest"], 40, "dc2 is well")
    wait_until(lambda: all_agree(servers), 30, "all agree")
    count = servers.ask("dc2", "INCR", "counter")
    for name in ("dc1", "dc3"):
        wait_until(
            lambda one=name: servers.ask(one, "GET", "counter") == str(count), 20, f"{name} takes what dc2 writes"
        )
        info = servers.ask(name, "INFO")
        assert info["ensue_stopped"] == 0 and info["ensue_refused_dc2_partitions"] == 0, name


def test_old_copies_from_before_and_after_the_first_trim(servers):
    start_all(servers)
    for key in ("a", "b"):
        servers.ask("dc2", "SET", key, "old")
    early = copied(servers, "dc2", "early")
    servers.ask("dc2", "INCRBY", "counter", 10)
    fill_beyond_the_first_trim(servers)
    wait_until(lambda: all_agree(servers), 30, "all agree")
    late = copied(servers, "dc2", "late")
    for key in ("a", "b"):
        servers.ask("dc2", "SET", key, "newest")
    servers.ask("dc1", "INCR", "counter")
    wait_until(lambda: all_agree(servers), 30, "all agree")

    # What this one lacks the others have: it takes that back at the next start, as its message says.
    restore(servers, "dc2", late)
    check_until_told(servers, "Start the process again: then the partition takes back what the other datacenters have")
    healthy_go_on(servers)
    servers.end("dc2")
    servers.start("dc2")
    check_all_are_well(servers)

    # What this one lacks was trimmed: the right directory has to come back.
    kept = restore(servers, "dc2", early)
    check_until_told(servers, "Start the process again")
    healthy_go_on(servers)
    servers.end("dc2")
    servers.start("dc2")
    check_until_told(servers, "If it is lost, put this one away and start with an empty one, which takes a copy")
    healthy_go_on(servers)
    servers.end("dc2")
    replace_data(servers, "dc2", kept)
    servers.start("dc2")
    check_all_are_well(servers)

    # Or it is lost for good.
    restore(servers, "dc2", early)
    check_until_told(servers, "Start the process again")
    declare_dead(servers, "dc1", "dc2")
    wait_until(lambda: servers.ask("dc3", "INFO").get("ensue_settled_dc2_partitions") == 2, 20, "dc3 knows")
    check_until_told(servers, "DECLAREDDEAD")
    healthy_go_on(servers)
    servers.end("dc2")
    servers.start("dc2")
    check_until_told(servers, "DECLAREDDEAD")
