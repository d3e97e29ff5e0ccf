"""The applications of examples/branches run as their headers say, and the data types keep what they promise in both versions."""

import os
import subprocess
import sys

import pytest
from branching import FLAGS, FLAT
from cluster import ROOT, Cluster, binary, wait_until

EXAMPLES = ROOT / "examples" / "branches"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "crdts")]

import branches  # noqa: E402, found through the line above
import flat  # noqa: E402
import on_branches  # noqa: E402
from lines import code_lines  # noqa: E402

REPLICAS = ["dc1", "dc2", "dc3"]
AGREE_S = 20


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("examples"), delay="5ms", flags=FLAGS)
    cluster.start()
    yield cluster
    cluster.stop()


# The story, and what it must have said.
STORIES = {
    "counter.py": ["merged: 18", "merged: 321", "every increment counts exactly once"],
    "shop.py": ["sorry, alice: game", "sorry, carla: pack", "no stock below zero"],
    "wikipedia.py": ["the picture does not", "written on both: page:banditoni:content", "nobody's text is lost"],
    "retwis.py": ["carla reads", "the doras are now dora and dora~2"],
    "crdts": ["On branches", "On keys", "merged, everywhere", "Lines of code"],
}


def run(cluster, name, *options):
    command = [sys.executable, str(EXAMPLES / name), "--port", str(cluster.port), *options]
    environment = {**os.environ, "ENSUE_BIN": binary()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=80, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout, "colours without a terminal"
    return done.stdout


@pytest.mark.parametrize("name", STORIES)
def test_the_story_ends_well_twice(world, name):
    """The second time there are keys and states of the first."""
    for _ in range(2):
        told = run(world, name)
        for words in STORIES[name]:
            assert words in told, told


def test_retwis_is_loaded_on_branches_and_with_locks(world):
    told = run(world, "retwis.py", "--load", "--seconds", "2", "--users", "10", "--clients", "4")
    for version in ("on branches:", "with locks:"):
        [line] = [line for line in told.splitlines() if version in line]
        assert int(line.split(":")[1].split()[0]) > 0, told


class Replicas:
    """Objects of one type in the three datacenters, in one of the two versions."""

    def __init__(self, cluster, types, keyspace):
        self.cluster, self.types = cluster, types
        self.clients = [cluster.session(datacenter, db=keyspace, protocol=3) for datacenter in cluster.each()]
        self.on_branches = types is on_branches
        self.made = []

    def of(self, name, key):
        make = getattr(self.types, name)
        names = [()] * 3 if self.on_branches else [(replica, REPLICAS) for replica in REPLICAS]
        self.made.append([make(client, key, *more) for client, more in zip(self.clients, names, strict=True)])
        return self.made[-1]

    def merged(self, objects, shown):
        """Heals the links, merges in each datacenter all that was made, until all show the same; and that."""
        self.cluster.heal_all()
        if self.on_branches:
            wait_until(self.same_states, AGREE_S, "the same states everywhere")

        mergers = list(zip(self.clients, zip(*self.made, strict=True), strict=True))

        def agree():
            for client, here in mergers:
                self.types.merge(client, here)
            if self.on_branches:
                # All merged at the same time, so their merges have to be merged: one of them does that, or it would not end.
                del mergers[1:]
            answers = [shown(one) for one in objects]
            return answers[0:1] * 3 == answers and not self.forked() and answers

        return wait_until(agree, AGREE_S, "all replicas show the same")[0]

    def same_states(self):
        return len({client.execute_command("BRANCH", "DIGEST", "LEAVES") for client in self.clients}) == 1

    def forked(self):
        return self.on_branches and (not self.same_states() or len(self.clients[0].execute_command("BRANCH", "LIST")) > 1)

    def settle(self, objects, shown, expected):
        assert self.merged(objects, shown) == expected

    def cut(self):
        for one, other in ((1, 2), (1, 3), (2, 3)):
            self.cluster.link(one, other, "cut")


@pytest.fixture(params=["on_branches", "flat"])
def replicas(world, request):
    """Both versions are held to the same tests."""
    yield Replicas(world, on_branches, 2) if request.param == "on_branches" else Replicas(world, flat, FLAT)
    world.heal_all()


def test_counters_add_up(replicas):
    ops, both = replicas.of("OpCounter", "likes"), replicas.of("PNCounter", "stock")
    for round_of in range(1, 3):
        replicas.cut()
        for number, (likes, stock) in enumerate(zip(ops, both, strict=True), 1):
            likes.add(number)
            likes.add()
            stock.increment(10 * number)
            stock.decrement(number)
        replicas.settle(ops, lambda one: one.value(), 9 * round_of)
        replicas.settle(both, lambda one: one.value(), 54 * round_of)


def test_a_register_keeps_one_value_and_the_next_assignment_replaces_it(replicas):
    registers = replicas.of("LWWRegister", "title")
    replicas.cut()
    for number, register in enumerate(registers, 1):
        register.assign(f"by {number}")
        assert register.value() == f"by {number}"
    assert replicas.merged(registers, lambda one: one.value()) in ("by 1", "by 2", "by 3")
    registers[0].assign("after all")
    replicas.settle(registers, lambda one: one.value(), "after all")


def test_a_multi_value_register_keeps_what_was_assigned_at_the_same_time(replicas):
    registers = replicas.of("MVRegister", "mood")
    registers[0].assign("calm")
    replicas.settle(registers, lambda one: one.values(), {"calm"})
    replicas.cut()
    registers[0].assign("happy")
    registers[1].assign("sad")
    assert registers[2].values() == {"calm"}
    replicas.settle(registers, lambda one: one.values(), {"happy", "sad"})
    registers[2].assign("calm")
    replicas.settle(registers, lambda one: one.values(), {"calm"})
    # The same value again is an assignment, too.
    replicas.cut()
    registers[0].assign("calm")
    registers[1].assign("angry")
    replicas.settle(registers, lambda one: one.values(), {"calm", "angry"})


def test_what_is_added_to_a_set_while_another_takes_it_out_stays(replicas):
    sets = replicas.of("ORSet", "guests")
    for name in ("ada", "bob", "cyd"):
        sets[0].add(name)
    replicas.settle(sets, lambda one: one.members(), {"ada", "bob", "cyd"})
    replicas.cut()
    sets[0].remove("ada")
    sets[1].remove("ada")
    sets[0].remove("bob")
    sets[1].remove("bob")
    sets[1].add("bob")
    sets[2].add("cyd")
    sets[0].remove("cyd")
    sets[2].add("dan")
    sets[2].remove("dan")
    sets[2].remove("nobody")
    replicas.settle(sets, lambda one: one.members(), {"bob", "cyd"})
    sets[1].remove("bob")
    replicas.settle(sets, lambda one: one.members(), {"cyd"})


def test_sets_and_counters_are_merged_rightly_after_merges_that_crossed(world):
    """What two have both taken out does not come back, and what two have both put in is not lost."""
    one, two = (world.session(1, db=3, protocol=3) for _ in range(2))
    one.sadd("s", "kept", "out")
    one.set("n", 10)
    base = one.execute_command("BRANCH", "LIST")[0]
    two.execute_command("BRANCH", "CHECKOUT", base)
    for client in (one, two):
        client.execute_command("BRANCH", "BEGIN", "PARENT")
        client.srem("s", "out")
        client.sadd("s", "in")
        client.incrby("n", 5)
    both = [client.execute_command("BRANCH", "COMMIT") for client in (one, two)]

    def resolve(merging, own=None, add=0):
        branches.replace_set(merging.session, "s", merging.union("s") | ({own} if own else set()))
        merging.session.set("n", merging.counter("n") + add)

    for client in (one, two):
        client.execute_command("BRANCH", "MERGE", "STATE", *both)
    for client, own in ((one, "first"), (two, "second")):
        resolve(branches.Merge(client, both), own, 100)
    for client in (one, two):
        client.execute_command("BRANCH", "COMMIT")
    assert len(one.execute_command("BRANCH", "LIST")) == 2
    branches.merge(one, resolve)
    assert one.smembers("s") == {"kept", "in", "first", "second"}
    assert one.get("n") == "220"


def test_branches_take_at_most_half_of_the_code():
    """Without blank lines, comments and documentation; the other half of paper section 7.2.1."""
    on, keys = (code_lines(EXAMPLES / "crdts" / name) for name in ("on_branches.py", "flat.py"))
    assert 2 * on <= keys, f"{on} lines on branches, {keys} on keys"


def test_lines_of_code_are_counted_without_what_is_no_code(tmp_path):
    file = tmp_path / "some.py"
    file.write_text('"""About.\n\nMore."""\n\n# A comment.\nx = """two\nlines"""\n\n\ndef f():\n    """Says."""\n    return (\n        x\n    )\n')
    assert code_lines(file) == 6
