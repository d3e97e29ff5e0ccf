"""A keyspace with branches, over a real cluster: every command and constraint, and every error, as docs/branches.md has them."""

import os
import signal

import pytest
import redis
from branching import (
    FLAGS,
    FLAT,
    ROOT,
    begin,
    branch,
    commit,
    leaves,
    log,
    parents,
    rank,
    refusal,
    site_of,
    transaction,
    write,
)
from cluster import Cluster, ensue, wait_until

ARRIVES_S = 15


class Spaces:
    """A keyspace for each test. When those of a cluster are used up, another is started."""

    def __init__(self, factory):
        self.factory, self.clusters, self.unused = factory, [], []

    def next(self):
        if not self.unused:
            self.clusters.append(Cluster(self.factory.mktemp("branches"), delay="5ms", flags=FLAGS).start())
            self.unused = [keyspace for keyspace in range(16) if keyspace != FLAT]
        return Space(self.clusters[-1], self.unused.pop(0))

    def stop(self):
        for cluster in self.clusters:
            cluster.stop()


@pytest.fixture(scope="module")
def spaces(tmp_path_factory):
    spaces = Spaces(tmp_path_factory)
    yield spaces
    spaces.stop()


@pytest.fixture(scope="module")
def spaces_apart(tmp_path_factory):
    """Of other clusters, for tests that cut links."""
    spaces = Spaces(tmp_path_factory)
    yield spaces
    spaces.stop()


class Space:
    """One keyspace, and sessions in it."""

    def __init__(self, cluster, keyspace):
        self.cluster, self.keyspace = cluster, keyspace

    def session(self, datacenter=1):
        return self.cluster.session(datacenter, db=self.keyspace, protocol=3)

    def sessions(self):
        return [self.session(datacenter) for datacenter in self.cluster.each()]

    def same_everywhere(self):
        """Waits until all datacenters have the same states."""
        clients = self.sessions()
        wait_until(lambda: len({branch(client, "DIGEST") for client in clients}) == 1, ARRIVES_S, "equal digests")
        assert len({tuple(leaves(client)) for client in clients}) == 1
        assert len({branch(client, "DIGEST", "LEAVES") for client in clients}) == 1


@pytest.fixture
def space(spaces):
    return spaces.next()


@pytest.fixture
def cut_space(spaces_apart):
    """`x` is `before` everywhere, and no datacenter hears another."""
    space = spaces_apart.next()
    write(space.session(1), x="before")
    space.same_everywhere()
    for one, other in ((1, 2), (1, 3), (2, 3)):
        space.cluster.link(one, other, "cut")
    yield space
    space.cluster.heal_all()


def fork(space):
    """Two branches in one datacenter: `x` is read and written on both."""
    one, two = space.session(), space.session()
    base = write(one, x="base")
    begin(one)
    begin(two)
    for client, value in ((one, "one"), (two, "two")):
        client.get("x")
        client.set("x", value)
    return one, two, base, commit(one), commit(two)


def test_transactions_read_one_state_and_their_own_writes(space):
    one, two = space.session(), space.session()
    assert begin(one) == ROOT
    one.set("k", "mine")
    one.hset("h", mapping={"f": "v"})
    assert one.get("k") == "mine"
    assert two.get("k") is None
    first = commit(one)
    assert site_of(first) == 1 and leaves(two) == [first]
    assert two.get("k") == "mine"

    # Its read state stays what it was, whatever is committed meanwhile.
    assert begin(one) == first
    write(two, k="newer")
    assert one.get("k") == "mine"
    # Nothing was written, so there is no new state.
    assert commit(one) == first

    begin(one)
    one.delete("k", "h")
    assert branch(one, "ABORT") == "OK"
    assert one.get("k") == "newer" and one.hgetall("h") == {"f": "v"}


def test_commands_alone_and_multi_are_transactions_and_values_have_all_types(space):
    client = space.session()
    client.set("text", "a")
    assert client.incr("count") == 1
    assert client.append("text", "b") == 2
    client.sadd("set", "x", "y")
    before = len(log(client))
    assert client.pipeline(transaction=True).incr("count").hset("hash", "f", 1).srem("set", "y").get("text").execute() == [
        2,
        1,
        1,
        "ab",
    ]
    states = log(client)
    assert len(states) == before + 1
    [leaf] = leaves(client)
    assert sorted(states[leaf][1]) == ["count", "hash", "set"]
    assert branch(client, "GET", "count", leaf) == ["2"]
    assert branch(client, "GET", "hash", leaf) == [{"f": "1"}]
    assert [set(members) for members in branch(client, "GET", "set", leaf)] == [{"x"}]
    assert branch(client, "GET", "nothing", leaf, ROOT) == [None, None]
    client.set("brief", "v", px=60_000)
    assert 0 < client.pttl("brief") <= 60_000
    client.persist("brief")
    assert client.pttl("brief") == -1
    # What fails is not committed.
    before = len(log(client))
    assert refusal(client, "HGET", "text", "f").startswith("WRONGTYPE")
    assert refusal(client, "INCR", "text") == "value is not an integer or out of range"
    assert len(log(client)) == before


def test_conflicts_fork_and_each_session_stays_on_its_branch(space):
    one, two, base, first, second = fork(space)
    assert set(leaves(one)) == {first, second}
    assert parents(one, first) == parents(one, second) == [base]
    assert (one.get("x"), two.get("x")) == ("one", "two")
    one.set("x", "one more")
    assert (one.get("x"), two.get("x")) == ("one more", "two")
    assert "fork" in log(one)[base][2]


# What another transaction writes while `t` reads r and writes w; the end constraint; and where `t` then commits.
ENDS = [
    ("other", None, "after"),
    ("r", None, "beside"),
    ("w", None, "after"),
    ("r", "SERIALIZABILITY", "beside"),
    ("r", "serializability and no-branching", "aborts"),
    ("other", "SERIALIZABILITY AND NO-BRANCHING", "after"),
    ("w", "SNAPSHOT-ISOLATION", "beside"),
    ("r", "SNAPSHOT-ISOLATION", "after"),
    ("w", "SNAPSHOT-ISOLATION AND NO-BRANCHING", "aborts"),
    ("w", "SNAPSHOT-ISOLATION AND NO-BRANCHING OR SERIALIZABILITY", "after"),
    ("r", "READ-COMMITTED", "after"),
    ("r", "ANY", "after"),
    ("r", "NO-BRANCHING", "after"),
    ("r", "SERIALIZABILITY AND K-BRANCHING 2", "aborts"),
    ("r", "SERIALIZABILITY AND K-BRANCHING 3", "beside"),
    ("r", "PARENT", "beside"),
    ("r", "ANCESTOR", "after"),
]


def test_end_constraints_say_where_a_transaction_commits(space):
    other = space.session()
    for written, constraint, expected in ENDS:
        client = space.session()
        read = write(client, r="0", w="0", other="0")
        assert begin(client, "PARENT") == read
        client.get("r")
        client.set("w", 1)
        branch(other, "CHECKOUT", read)
        begin(other, "PARENT")
        other.set(written, "theirs")
        theirs = commit(other)
        case = f"{written} is written, and the end is {constraint}"
        if expected == "aborts":
            told = refusal(client, "BRANCH", "COMMIT", *constraint.split())
            assert told == f"ABORT no state since {read} satisfies {constraint.upper()}", case
            assert client.get("w") == ("theirs" if written == "w" else "0"), case
        else:
            mine = commit(client, constraint)
            assert parents(client, mine) == [theirs if expected == "after" else read], case


def test_an_end_constraint_may_name_a_state(space):
    one, two = space.session(), space.session()
    begin(one)
    one.set("mine", 1)
    middle = write(two, a="1")
    write(two, a="2")
    assert parents(one, commit(one, f"STATE {middle}")) == [middle]


WRONG_CONSTRAINTS = {
    "SOMETIMES": "'SOMETIMES' is no constraint: ANY, SERIALIZABILITY",
    "ANY AND": "a constraint ends where another word must follow",
    "ANY ANY": "'ANY' is no constraint",
    "K-BRANCHING": "K-BRANCHING takes a number of at least 2",
    "K-BRANCHING 1": "K-BRANCHING takes a number of at least 2",
    "K-BRANCHING many": "K-BRANCHING takes a number of at least 2",
    "STATE": "STATE takes the ids of states",
    "STATE nonsense": "STATE takes the ids of states",
}


def test_begin_constraints_say_which_state_is_read(space):
    one, two, base, first, second = fork(space)
    newest, oldest = (first, second) if leaves(one)[0] == first else (second, first)
    stranger = space.session()
    # A new session has the root for an anchor, of which every state is a descendant.
    for constraint in (None, "ANCESTOR", "ANY", "NO-BRANCHING", "K-BRANCHING 2"):
        assert begin(stranger, constraint) == newest, constraint
        branch(stranger, "ABORT")
    for client, mine in ((one, first), (two, second)):
        for constraint in (None, "ancestor", "PARENT", f"STATE {oldest} AND ANCESTOR OR STATE {mine}"):
            assert begin(client, constraint) == mine, constraint
            branch(client, "ABORT")
    assert begin(one, f"STATE {base}") == base
    assert one.get("x") == "base"
    branch(one, "ABORT")
    assert begin(one, f"STATE {base} {oldest}") == oldest
    branch(one, "ABORT")
    # The fork has two children already.
    branch(one, "CHECKOUT", base)
    told = refusal(one, "BRANCH", "BEGIN", "PARENT", "AND", "NO-BRANCHING")
    assert told.startswith(f"ABORT no state satisfies PARENT AND NO-BRANCHING of {base}: it was collected")
    for constraint in ("SERIALIZABILITY", "SNAPSHOT-ISOLATION", "READ-COMMITTED"):
        told = refusal(one, "BRANCH", "BEGIN", "ANY", "AND", constraint)
        assert told == f"{constraint} is a constraint on the end of a transaction"
    for constraint, why in WRONG_CONSTRAINTS.items():
        assert why in refusal(one, "BRANCH", "BEGIN", *constraint.split()), constraint
        begin(one, "ANY")
        assert why in refusal(one, "BRANCH", "COMMIT", *constraint.split()), constraint
        branch(one, "ABORT")


def test_a_merge_reads_all_branches_and_makes_one(space):
    one, two, base, first, second = fork(space)
    one.set("only", "here")
    with transaction(one):
        one.hset("h", "f", 1)
    newest_of_one = branch(one, "SESSION")["anchor"][0]
    both = sorted([newest_of_one, second], key=rank, reverse=True)
    assert leaves(two) == both
    assert branch(two, "CONFLICTS") == ["x"]
    assert [[state, int(weight)] for state, weight in branch(two, "FORKPOINTS")] == [[base, -1]]
    assert dict(zip(both, branch(two, "GET", "x"), strict=True)) == {newest_of_one: "one", second: "two"}

    assert branch(two, "MERGE") == both
    assert branch(two, "CONFLICTS") == ["x"]
    assert branch(two, "FORKPOINTS")[0][0] == base
    assert dict(zip(both, branch(two, "GET", "h"), strict=True)) == {newest_of_one: {"f": "1"}, second: None}
    assert branch(two, "GET", "x", base) == ["base"]
    # Of what stands on several, the newest is read.
    assert two.get("x") == "two" and two.get("only") == "here"
    two.set("x", "one and two")
    merged = commit(two)
    assert leaves(one) == [merged] and set(parents(one, merged)) == set(both)
    assert (one.get("x"), two.get("only")) == ("one and two", "here")
    assert "merge" in log(one)[merged][2]
    assert refusal(one, "BRANCH", "MERGE").startswith("ABORT")


def test_a_merge_may_name_its_states_and_leave_conflicts_to_the_ids(space):
    one, _, base, first, second = fork(space)
    three = space.session()
    branch(three, "CHECKOUT", base)
    begin(three, "PARENT")
    three.get("x")
    three.set("x", "three")
    third = commit(three)
    assert len(leaves(one)) == 3
    assert set(branch(one, "MERGE", "STATE", first, second)) == {first, second}
    one.set("merged", "yes")
    merged = commit(one)
    assert set(leaves(one)) == {merged, third}
    # The merge wrote nothing there: the higher id of the two wins.
    assert one.get("x") == ("one" if rank(first) > rank(second) else "two")
    assert branch(one, "GET", "x", third, merged) == ["three", one.get("x")]
    assert refusal(one, "BRANCH", "MERGE", "STATE", first).startswith("ABORT a merge takes at least two states")


def test_a_merge_joins_its_branches_though_nothing_is_left_to_be_written(space):
    one, two, _, first, second = fork(space)
    branch(one, "MERGE")
    merged = commit(one)
    assert leaves(two) == [merged] and set(parents(two, merged)) == {first, second}


def test_a_merge_does_not_hide_a_conflict_that_it_has_not_seen(space):
    """Both branches go on while they are merged, and write the same key."""
    one, two, _, first, second = fork(space)
    merger = space.session()
    branch(merger, "MERGE")
    one.set("late", "one")
    two.set("late", "two")
    merger.set("x", "both")
    merged = commit(merger)
    # Below one of the two at most: the other is a leaf, and the next merge is told.
    assert len(leaves(merger)) == 2
    assert "late" in branch(merger, "CONFLICTS")
    assert sorted(branch(merger, "GET", "late")) == ["one", "two"]
    assert branch(merger, "GET", "x", merged) == ["both"]


def test_weights_count_everything_once_though_merges_crossed(space):
    """Two merges of the same branches, each with something of its own, are merged."""
    clients = [space.session(), space.session()]
    base = write(clients[0], n="100")
    branch(clients[1], "CHECKOUT", base)
    for client in clients:
        begin(client, "PARENT")
    for client, add in zip(clients, (1, 2), strict=True):
        client.incrby("n", add)
    both = [commit(client) for client in clients]
    for client in clients:
        branch(client, "MERGE", "STATE", *both)
    for client, add in zip(clients, (10, 20), strict=True):
        client.set("n", counted(client, "n") + add)
    merges = [commit(client) for client in clients]
    assert set(leaves(clients[0])) == set(merges)
    assert [client.get("n") for client in clients] == ["113", "123"]
    weights = {state: int(weight) for state, weight in branch(clients[0], "FORKPOINTS")}
    assert weights == {both[0]: -1, both[1]: -1, base: 1}
    branch(clients[0], "MERGE")
    assert counted(clients[0], "n") == 133
    branch(clients[0], "ABORT")


def counted(client, key):
    """A counter in a merge, as the weights say."""
    total = sum(int(value) for value in branch(client, "GET", key))
    for state, weight in branch(client, "FORKPOINTS"):
        [value] = branch(client, "GET", key, state)
        total += int(weight) * int(value)
    return total


def test_states_can_be_listed_compared_and_looked_at(space):
    one, two, base, first, second = fork(space)
    states = branch(one, "LOG")
    ids = [state for state, *_ in states]
    assert set(ids) == {ROOT, base, first, second} and ids[-2:] == [base, ROOT]
    told = log(one)
    assert told[first] == ([base], ["x"], {"leaf"}) and told[ROOT][0] == []
    assert [state for state, *_ in branch(one, "LOG", "COUNT", 2)] == ids[:2]
    assert [state for state, *_ in branch(one, "LOG", base)] == [base, ROOT]
    assert [state for state, *_ in branch(one, "LOG", "COUNT", 1, first)] == [first]
    one.hset("h", "f", "v")
    leaf = branch(one, "SESSION")["anchor"][0]
    assert branch(one, "DIFF", leaf, second) == [["h", {"f": "v"}, None], ["x", "one", "two"]]
    assert branch(one, "DIFF", leaf, leaf) == []
    info = branch(one, "INFO")
    assert (int(info["states"]), int(info["leaves"]), int(info["keys"])) == (5, 2, 2)
    assert int(info["commits"]) >= 4 and int(info["forks"]) >= 1 and int(info["transactions"]) == 0
    for name in ("records", "chains", "waiting", "collected", "merges", "aborts", "bytes"):
        assert int(info[name]) >= 0, name
    digest = branch(one, "DIGEST")
    assert len(digest) == 16 and int(digest, 16) >= 0 and digest == branch(two, "DIGEST")
    one.set("h2", 1)
    assert branch(one, "DIGEST") != digest


def test_a_session_knows_its_place_and_its_defaults(space):
    one, _, base, first, second = fork(space)
    told = branch(one, "SESSION")
    assert (told["anchor"], told["transaction"], told["reads"]) == ([first], "none", [])
    assert (told["begin"], told["end"]) == ("ANCESTOR", "SERIALIZABILITY")
    begin(one)
    told = branch(one, "SESSION")
    assert (told["transaction"], told["reads"]) == ("single", [first])
    branch(one, "ABORT")
    branch(one, "MERGE")
    told = branch(one, "SESSION")
    assert told["transaction"] == "merge" and set(told["reads"]) == {first, second}
    branch(one, "ABORT")
    assert branch(one, "CHECKOUT", second) == "OK"
    assert one.get("x") == "two"
    assert branch(one, "SESSION")["anchor"] == [second]
    defaults = ["BEGIN", "PARENT", "END", "SERIALIZABILITY", "AND", "NO-BRANCHING"]
    assert branch(one, "DEFAULTS", *defaults) == "OK"
    told = branch(one, "SESSION")
    assert (told["begin"], told["end"]) == ("PARENT", "SERIALIZABILITY AND NO-BRANCHING")
    # A plain command is held to them: both children of the base wrote what it reads, so there is no leaf for it.
    branch(one, "CHECKOUT", base)
    assert one.get("x") == "base"
    told = refusal(one, "APPEND", "x", "!")
    assert told == f"ABORT no state since {base} satisfies SERIALIZABILITY AND NO-BRANCHING"
    assert one.incr("n") == 1


def test_a_ceiling_ends_what_is_above_it(space):
    one, two, base, first, second = fork(space)
    branch(one, "MERGE")
    one.set("merged", "yes")
    merged = commit(one)
    space.same_everywhere()
    assert branch(one, "CEILING") == "OK"
    told = log(one)
    assert told[merged][2] == {"leaf", "merge", "ceiling"} and "above" in told[base][2]
    assert refusal(two, "BRANCH", "BEGIN", "STATE", base) == f"ABORT no state satisfies STATE {base}"
    # It can still be looked at, and another datacenter has promised nothing.
    assert branch(two, "GET", "x", base) == ["base"]
    elsewhere = space.session(2)
    assert begin(elsewhere, f"STATE {base}") == base
    assert commit(elsewhere) == base
    for client in space.sessions()[1:]:
        assert branch(client, "CEILING") == "OK"
    for client in space.sessions():
        wait_until(lambda: int(branch(client, "INFO")["states"]) == 1, ARRIVES_S, "all above is collected")  # noqa: B023
        assert [(state, above) for state, (above, _, _) in log(client).items()] == [(merged, [])]
        for gone in (first, second, base):
            assert refusal(client, "BRANCH", "GET", "x", gone).startswith(f"COLLECTED {gone}"), gone
        assert client.get("x") == ("one" if rank(first) > rank(second) else "two")
    space.same_everywhere()


WRONG_COMMANDS = {
    "BRANCH": "wrong number of arguments",
    "BRANCH SOMETHING": "unknown subcommand 'SOMETHING'. Try BRANCH HELP.",
    "BRANCH LOG COUNT x": "value is not an integer or out of range",
    "BRANCH LOG COUNT": "a state has a name",
    "BRANCH DIFF 1.0": "wrong number of arguments",
    "BRANCH GET": "wrong number of arguments",
    "BRANCH CHECKOUT": "wrong number of arguments",
    "BRANCH DEFAULTS x": "syntax error",
}


def test_every_error_is_typed(space):
    one, _, base, first, second = fork(space)
    assert refusal(one, "BRANCH", "GET", "x", "99.1") == "NOSTATE 99.1 has not arrived here"
    for command in (["CHECKOUT"], ["LOG"], ["CEILING"], ["FORKPOINTS", first], ["CONFLICTS", first], ["DIFF", first]):
        assert refusal(one, "BRANCH", *command, "99.1").startswith("NOSTATE 99.1"), command
        assert refusal(one, "BRANCH", *command, "nonsense").startswith("a state has a name such as 12.0"), command
    for command in ("COMMIT", "ABORT"):
        assert refusal(one, "BRANCH", command) == "NOTRANSACTION there is no transaction: BRANCH BEGIN first"
    begin(one)
    for command in (["BEGIN"], ["MERGE"], ["CHECKOUT", first]):
        assert refusal(one, "BRANCH", *command) == "a transaction is open: BRANCH COMMIT or BRANCH ABORT first"
    branch(one, "ABORT")
    for command, why in WRONG_COMMANDS.items():
        assert why in refusal(one, *command.split()), command
    with space.cluster.session(1, db=FLAT) as flat:
        for command in (["BEGIN"], ["LIST"], ["LOG"], ["INFO"]):
            told = refusal(flat, "BRANCH", *command)
            assert told == f"NOBRANCHES keyspace {FLAT} has no branches: its protocol is eiger", command


def test_datacenters_that_do_not_hear_each_other_fork_and_one_merges(cut_space):
    apart = cut_space.sessions()
    one, two, three = apart
    for number, client in enumerate(apart, 1):
        client.get("x")
        client.set("x", f"by {number}")
        client.set(f"only {number}", number)
        assert client.get("x") == f"by {number}"
        assert len(leaves(client)) == 1
    cut_space.cluster.heal_all()
    cut_space.same_everywhere()
    assert {site_of(leaf) for leaf in leaves(two)} == {1, 2, 3}
    # Each session stays where it was.
    assert [client.get("x") for client in apart] == ["by 1", "by 2", "by 3"]
    assert branch(three, "CONFLICTS") == ["x"]
    branch(two, "MERGE")
    assert sorted(branch(two, "GET", "x")) == ["by 1", "by 2", "by 3"]
    two.set("x", "by all")
    merged = commit(two)
    cut_space.same_everywhere()
    for client in apart:
        assert leaves(client) == [merged]
        assert client.mget("x", "only 1", "only 2", "only 3") == ["by all", "1", "2", "3"]


def test_a_token_carries_the_place_to_another_datacenter(cut_space):
    one, two, _ = cut_space.sessions()
    one.set("x", "seen by the session")
    two.set("x", "of another branch")
    token = one.execute_command("CAUSAL", "TOKEN")
    with pytest.raises(redis.ResponseError, match="^NOTYET"):
        two.execute_command("CAUSAL", "MERGE", token, "TIMEOUT", 50)
    assert two.get("x") == "of another branch"
    cut_space.cluster.heal_all()
    fresh = cut_space.session(2)
    assert fresh.execute_command("CAUSAL", "MERGE", token, "TIMEOUT", 10_000) in ("OK", True)
    assert fresh.get("x") == "seen by the session"
    # Both pasts: no branch has them yet, until somebody merges.
    assert two.execute_command("CAUSAL", "MERGE", token, "TIMEOUT", 10_000) in ("OK", True)
    assert len(branch(two, "SESSION")["anchor"]) == 2
    assert refusal(two, "GET", "x").startswith("ABORT no state satisfies ANCESTOR of ")
    branch(fresh, "MERGE")
    fresh.set("x", "of both")
    commit(fresh)
    assert two.get("x") == "of both"


def test_a_killed_datacenter_comes_back_with_all_branches(dev):
    cluster = dev(delay="5ms", flags=[*FLAGS, "--processes", "--appendfsync", "always"])
    space = Space(cluster, 0)
    one, two, base, first, second = fork(space)
    two.set("more", 1)
    begin(one)
    one.set("lost", "with the process")
    open_session = one
    space.same_everywhere()
    states, digest = log(space.session(2)), branch(space.session(2), "DIGEST")
    os.kill(cluster.process_of(1), signal.SIGKILL)
    cluster.wait_for_ping(1, 30)
    with pytest.raises((redis.ConnectionError, redis.ResponseError)):
        commit(open_session)
    back = space.session(1)
    assert log(back) == states and branch(back, "DIGEST") == digest
    assert back.get("lost") is None
    branch(back, "MERGE")
    assert sorted(branch(back, "GET", "x")) == ["one", "two"]
    back.set("x", "merged after")
    merged = commit(back)
    space.same_everywhere()
    assert [leaves(client) for client in space.sessions()] == [[merged]] * 3
    # All at once.
    for datacenter in cluster.each():
        os.kill(cluster.process_of(datacenter), signal.SIGKILL)
    for datacenter in cluster.each():
        cluster.wait_for_ping(datacenter, 30)
    space.same_everywhere()
    assert [client.get("x") for client in space.sessions()] == ["merged after"] * 3


def configured(servers, *lines):
    """Three servers with branches in the first keyspace, as these directives say."""
    for name in ("dc1", "dc2", "dc3"):
        servers.start(name, "keyspace 0 protocol tardis", *lines)

    def clients():
        return [redis.Redis("127.0.0.1", servers.port(name), decode_responses=True, protocol=3, single_connection_client=True) for name in ("dc1", "dc2", "dc3")]

    def ready():
        try:
            return [leaves(client) for client in clients()] == [[ROOT]] * 3
        except redis.RedisError:
            return False

    wait_until(ready, 20, "the servers answer")
    return clients()


def test_too_many_states_are_refused_until_a_ceiling_is_placed(servers):
    one, *_ = clients = configured(servers, "branch-states-max 20", "branch-ceiling-every 0")
    for number in range(30):
        try:
            one.set("k", number)
        except redis.ResponseError as error:
            told = str(error)
            break
    else:
        raise AssertionError("thirty states fit into twenty")
    assert told == "BRANCHFULL 20 states: place a ceiling (BRANCH CEILING), or merge"
    assert one.get("k") == str(number - 1)
    last = leaves(one)
    for client in clients:
        wait_until(lambda: leaves(client) == last, ARRIVES_S, "all have it")  # noqa: B023
        branch(client, "CEILING")

    def written():
        try:
            return one.set("k", "again")
        except redis.ResponseError:
            return False

    wait_until(written, ARRIVES_S, "there is room again")


def test_one_datacenter_may_be_the_one_that_merges(servers):
    one, two, _ = configured(servers, "branch-merging-datacenter dc1")
    base = write(one, x="0")
    wait_until(lambda: leaves(two) == [base], ARRIVES_S, "dc2 has it")
    for client in (one, one):
        branch(client, "CHECKOUT", base)
        begin(client, "PARENT")
        client.incr("x")
        commit(client)
    wait_until(lambda: len(leaves(two)) == 2, ARRIVES_S, "dc2 has both")
    assert refusal(two, "BRANCH", "MERGE") == "NOTMERGER branches are merged in dc1"
    assert len(branch(one, "MERGE")) == 2
    one.set("x", 2)
    commit(one)
    assert len(leaves(one)) == 1


def test_a_transaction_that_is_left_alone_is_ended(servers):
    one, *_ = configured(servers, "branch-transaction-timeout 200")
    begin(one)
    one.set("k", "v")
    other = redis.Redis("127.0.0.1", servers.port("dc1"), protocol=3, decode_responses=True)
    wait_until(lambda: int(branch(other, "INFO")["transactions"]) == 0, ARRIVES_S, "nothing runs")
    # What was meant for the transaction does not become a transaction of its own, up to its end.
    for command in (["SET", "other", 1], ["BRANCH", "BEGIN"], ["GET", "k"], ["BRANCH", "COMMIT"]):
        assert refusal(one, *command).startswith("NOTRANSACTION the transaction is over: it was idle for too long"), command
    assert one.mget("k", "other") == [None, None]


def test_the_states_can_be_drawn(space):
    from cluster import ensue

    one, two, base, first, second = fork(space)
    branch(one, "MERGE")
    one.set("x", "both")
    merged = commit(one)
    address = ["-p", space.cluster.client_port(2), "-n", space.keyspace]
    wait_until(lambda: leaves(space.session(2)) == [merged], ARRIVES_S, "dc2 has the merge")
    drawn = ensue("branches", *address)
    assert drawn.returncode == 0, drawn.stderr
    lines = drawn.stdout.splitlines()
    assert lines[0] == f"* {merged} dc1 (leaf) x" and lines[1] == "|\\", drawn.stdout
    assert lines[4] == "|/" and lines[5] == f"* {base} dc1 x", drawn.stdout
    watched = ensue("branches", *address, "--watch", "--seconds", 1)
    assert watched.returncode == 0 and f"* {merged}" in watched.stdout
    picture = space.cluster.directory / "branches.svg"
    assert ensue("branches", *address, "--svg", picture).returncode == 0
    assert picture.read_text().startswith("<svg") and merged in picture.read_text()
    refused = ensue("branches", "-p", space.cluster.client_port(1), "-n", FLAT)
    assert refused.returncode == 1 and "NOBRANCHES keyspace 1 has no branches" in refused.stderr


def test_a_dev_cluster_takes_directives(dev):
    flags = ("--protocol", "tardis", "--set", "branch-leaves-max=2")
    cluster = dev(datacenters=1, delay="1ms", flags=flags)
    sessions = [cluster.session(1, protocol=3) for _ in range(3)]
    sessions[0].set("x", 1)
    for session in sessions:
        branch(session, "BEGIN")
        session.incr("x")
    branch(sessions[0], "COMMIT")
    branch(sessions[1], "COMMIT")
    with pytest.raises(redis.ResponseError, match="^BRANCHFULL 2 leaves"):
        branch(sessions[2], "COMMIT")
    sessions[0].set("y", 1)
    assert cluster.client(1).info("keyspace")["db0"]["keys"] == 2, "those of any branch"


@pytest.mark.parametrize("directive", ["branch-leaves-max", "branch-leaves-max=many", "no-such-thing=1"])
def test_a_directive_that_makes_no_sense_is_refused(directive, tmp_path):
    refused = ensue("dev", "--dir", tmp_path / "data", "--set", directive)
    assert refused.returncode != 0 and directive.split("=")[0] in refused.stderr, refused.stderr
