"""Random stories on branches: six sessions count, add and take out while links are cut and healed, and merge whenever they like. In the
end, when all is merged, every increment counts once, and a set has what was added and not taken out.

A story is drawn from its number, but for what the network decides. `ENSUE_E2E_STORIES=500` for more of them.
"""

import os
import random
import sys

import pytest
from branching import FLAGS, branch
from cluster import ROOT, Cluster, wait_until

sys.path[:0] = [str(ROOT / "examples" / "branches"), str(ROOT / "examples" / "branches" / "crdts")]

import branches  # noqa: E402, found through the line above
import on_branches  # noqa: E402

STORIES = int(os.environ.get("ENSUE_E2E_STORIES", 40))
SETTLE_S = 20
LINKS = ((1, 2), (1, 3), (2, 3))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("stories"), delay="3ms", flags=FLAGS)
    cluster.start()
    yield cluster
    cluster.stop()


class Story:
    def __init__(self, cluster, number):
        self.cluster, self.chance, self.number = cluster, random.Random(number), number
        self.clients = [cluster.session(datacenter, protocol=3) for datacenter in (1, 2, 3, 1, 2, 3)]
        self.counters = [on_branches.PNCounter(client, f"counter:{number}") for client in self.clients]
        self.sets = [on_branches.ORSet(client, f"set:{number}") for client in self.clients]
        self.cut = set()
        self.total = 0
        # Additions by their tags.
        self.added, self.removed = {}, set()

    def tell(self):
        acts = {self.count: 30, self.fork: 6, self.add: 19, self.remove: 15, self.ceiling: 5, self.merge: 25, self.links: 15}
        for _ in range(self.chance.randint(10, 40)):
            [act] = self.chance.choices(list(acts), weights=acts.values())
            act(self.chance.randrange(6))

    def count(self, at):
        by = self.chance.randint(-50, 99)
        self.counters[at].add(by)
        self.total += by

    def fork(self, at):
        """Two sessions of one datacenter read and write the same."""
        pair = [at, (at + 3) % 6]
        for one in pair:
            branch(self.clients[one], "BEGIN")
        for one in pair:
            self.count(one)
        for one in pair:
            branch(self.clients[one], "COMMIT")

    def add(self, at):
        self.sets[at].add(self.chance.choice("abc"))
        self.added.update(self.tags(at))

    def remove(self, at):
        member = self.chance.choice("abc")
        with branches.transaction(self.clients[at]):
            seen = [tag for tag, held in self.tags(at).items() if held == member]
            for tag in seen:
                self.clients[at].hdel(self.sets[at].key, tag)
        self.removed.update(seen)

    def ceiling(self, at):
        branch(self.clients[at], "CEILING")

    def merge(self, at):
        def resolve(merging):
            conflicts = merging.conflicts()
            for one in (self.counters[at], self.sets[at]):
                if one.key in conflicts:
                    one.resolve(merging)
            self.clients[at].set("merged by", at)

        return branches.merge(self.clients[at], resolve)

    def links(self, _at):
        self.shape({link for link in LINKS if self.chance.random() < 0.6})

    def shape(self, cut):
        for link in LINKS:
            if (link in cut) != (link in self.cut):
                self.cluster.link(*link, "cut" if link in cut else "heal")
        self.cut = cut

    def tags(self, at):
        return self.clients[at].hgetall(self.sets[at].key)

    def settle(self):
        self.shape(set())

        def agree():
            return len({branch(client, "DIGEST", "LEAVES") for client in self.clients[:3]}) == 1

        wait_until(agree, SETTLE_S, f"story {self.number}: all have the same leaves")
        self.merge(0)
        wait_until(agree, SETTLE_S, f"story {self.number}: all have the merge")

    def judge(self):
        expected = {tag: member for tag, member in self.added.items() if tag not in self.removed}
        for at in range(6):
            assert len(branch(self.clients[at], "LIST")) == 1, f"story {self.number}"
            assert self.counters[at].value() == self.total, f"story {self.number}"
            assert self.tags(at) == expected, f"story {self.number}"
            self.clients[at].close()


def test_every_story_adds_up(world):
    for number in range(STORIES):
        story = Story(world, number)
        story.tell()
        story.settle()
        story.judge()
