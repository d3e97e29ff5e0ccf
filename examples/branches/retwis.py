#!/usr/bin/env python3
"""Retwis, a small Twitter, on branches (TARDiS, section 7.2.2), and on keys with locks for comparison.

Run it against a dev cluster:

    cargo run --release -- dev --protocol tardis --keyspace 1=eiger     # in one terminal
    pip install redis
    python3 examples/branches/retwis.py                                 # in another; --port 7001 is the default
    python3 examples/branches/retwis.py --load                          # the same load on both, and their throughput

A post is put on the timelines of all followers. On branches nobody waits for anybody: what conflicts forks, in one datacenter as
between several, and a merge unites timelines and followers and adds up counts. Two who took the same name at the same
time both keep their accounts; one is given another name. On keys, each operation locks what it is going to write.

The load is the paper's post-heavy mix: 65 % of the operations read the own timeline, 5 % follow, 30 % post.
"""

import contextlib
import itertools
import random
import threading
import time

from branches import merge, replace_set, transaction
from retwis_locks import LockedRetwis
from retwis_model import TIMELINE_LENGTH, Retwis, newest_first
from stage import Links, arguments, has_branches, require_branches, session, tell, title, wait_for_same_states

MIX = {"timeline": 65, "follow": 5, "post": 30}
MERGE_PAUSE_S = 0.05


class BranchRetwis(Retwis):
    """Each operation is one transaction, written as if it were alone."""

    @contextlib.contextmanager
    def operation(self):
        with transaction(self.client):
            yield lambda _keys: None


def resolve(merging):
    client = merging.session
    for key in merging.conflicts():
        kind = key.split(":")[1]
        if kind == "timeline":
            posts = {post for timeline in merging.values(key) for post in (timeline or "").split()}
            client.set(key, " ".join(newest_first(posts)[:TIMELINE_LENGTH]))
        elif kind in ("followers", "following"):
            replace_set(client, key, merging.union(key))
        elif kind == "posts":
            client.set(key, merging.counter(key))
        elif kind == "name":
            share_name(merging, key)


def share_name(merging, key):
    """Accounts have ids of their own, so a name that several have taken is given to one, and the others get another."""
    client = merging.session
    first, *others = sorted(set(merging.values(key)) - {None})
    client.set(key, first)
    for account in others:
        names = (f"{key.split(':')[2]}~{number}" for number in itertools.count(2))
        name = next(name for name in names if client.get(f"retwis:name:{name}") in (None, account))
        client.set(f"retwis:name:{name}", account)
        client.hset(f"retwis:account:{account}", "name", name)


def story(links, sessions):
    one, two = (BranchRetwis(client) for client in sessions[:2])
    one.client.delete(*(f"retwis:name:{name}" for name in ("alice", "bruno", "carla", "dora", "dora~2")))
    for name in ("alice", "bruno", "carla"):
        one.create_account(name)
    alice, bruno, carla = map(one.account, ("alice", "bruno", "carla"))
    one.follow(bruno, alice)
    one.follow(carla, alice)
    one.follow(carla, bruno)
    wait_for_same_states(sessions)
    title("Two datacenters go on by themselves")
    with links.cut():
        one.post(alice, "the link is down")
        tell("dc1", "alice posts; carla reads " + shown(one.timeline(carla)))
        two.post(bruno, "hello from dc2")
        two.follow(alice, bruno)
        two.post(bruno, "is anybody there?")
        tell("dc2", "bruno posts, alice follows him; carla reads " + shown(two.timeline(carla)))
        ours, theirs = one.create_account("dora"), two.create_account("dora")
        one.post(ours, "i am dora")
        two.post(theirs, "no, i am")
        tell("", "and a dora is born in both")
    wait_for_same_states(sessions)
    conflicts = sessions[0].execute_command("BRANCH", "CONFLICTS")
    tell("", f"written on both branches: {len(conflicts)} keys, among them a {', '.join(key.split(':')[1] for key in conflicts[:3])}")
    merge(sessions[0], resolve)
    wait_for_same_states(sessions)
    title("Merged")
    read = two.timeline(carla)
    tell("dc2", "carla reads " + shown(read))
    texts = [text for _, text in read]
    assert sorted(texts) == ["hello from dc2", "is anybody there?", "the link is down"], texts
    assert texts.index("is anybody there?") < texts.index("hello from dc2"), texts
    assert two.followers(bruno) == {alice, carla}
    names = {two.name(ours), two.name(theirs)}
    tell("dc2", f"the doras are now {' and '.join(sorted(names))}")
    assert names == {"dora", "dora~2"}, names
    # Nobody is given another's words.
    assert two.timeline(ours) == [(two.name(ours), "i am dora")]
    assert two.timeline(theirs) == [(two.name(theirs), "no, i am")]
    assert two.posts(bruno) == 2


def shown(timeline):
    return ", ".join(f"{author}: {text}" for author, text in timeline) or "nothing"


class Load:
    """Clients that each do one operation after the other until the time is over."""

    def __init__(self, retwis, port, keyspace, options):
        self.make = lambda: retwis(session(port, keyspace))
        self.options = options
        self.end = threading.Event()
        self.errors = []
        self.done = dict.fromkeys(MIX, 0)
        self.lock = threading.Lock()
        first = self.make()
        self.accounts = [first.create_account(f"user{number}-{time.time_ns()}") for number in range(options.users)]
        chance = random.Random(1)
        for follower, followed in itertools.product(self.accounts, repeat=2):
            if follower != followed and chance.random() < options.following / options.users:
                first.follow(follower, followed)

    def run(self):
        """Operations a second."""
        threads = [threading.Thread(target=self.work, args=[number]) for number in range(self.options.clients)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        self.end.wait(self.options.seconds)
        self.end.set()
        for thread in threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        return sum(self.done.values()) / (time.monotonic() - begin)

    def work(self, number):
        try:
            retwis, chance = self.make(), random.Random(number)
            done = dict.fromkeys(MIX, 0)
            while not self.end.is_set():
                [kind] = chance.choices(list(MIX), weights=MIX.values())
                account, other = chance.sample(self.accounts, 2)
                if kind == "timeline":
                    retwis.timeline(account)
                elif kind == "follow":
                    retwis.follow(account, other)
                else:
                    retwis.post(account, f"number {done['post']} of client {number}")
                done[kind] += 1
            with self.lock:
                for kind, count in done.items():
                    self.done[kind] += count
        except Exception as error:  # noqa: BLE001, the main thread raises it
            self.errors.append(error)
            self.end.set()


class Merger(threading.Thread):
    """Merges whatever has forked, again and again."""

    def __init__(self, client):
        super().__init__()
        self.client = client
        self.end = threading.Event()
        self.merged = 0
        self.most = 1

    def run(self):
        while not self.end.wait(MERGE_PAUSE_S):
            self.most = max(self.most, len(self.client.execute_command("BRANCH", "LIST")))
            self.merged += merge(self.client, resolve) is not None

    def stop(self):
        self.end.set()
        self.join()


def load(options):
    count = f"{options.clients} clients in dc1, {options.seconds} s, {options.users} users who follow {options.following} each"
    title(f"Post-heavy: {count}")
    branching = Load(BranchRetwis, options.port, options.keyspace, options)
    merger = Merger(session(options.port, options.keyspace))
    merger.start()
    try:
        rate = branching.run()
    finally:
        merger.stop()
    merge(merger.client, resolve)
    tell("", f"on branches: {rate:6.0f} operations/s ({merger.merged} merges, of up to {merger.most} branches)")
    flat = session(options.port, options.flat)
    if has_branches(flat):
        tell("", f"keyspace {options.flat} has branches, too: start with --keyspace {options.flat}=eiger to compare")
        return
    locking = Load(LockedRetwis, options.port, options.flat, options)
    rate = locking.run()
    tell("", f"with locks:  {rate:6.0f} operations/s")


def main():
    options = arguments(
        __doc__,
        ("--load", {"action": "store_true", "help": "measure throughput instead of telling the story"}),
        ("--seconds", {"type": float, "default": 5, "help": "how long each load lasts"}),
        ("--clients", {"type": int, "default": 8, "help": "clients of the load, each a thread"}),
        ("--users", {"type": int, "default": 50, "help": "users of the load"}),
        ("--following", {"type": int, "default": 10, "help": "how many others each user follows, in the mean"}),
    )
    sessions = [session(options.port + number, options.keyspace) for number in range(3)]
    require_branches(sessions[0], options.keyspace)
    if options.load:
        load(options)
    else:
        story(Links(options.port), sessions)


if __name__ == "__main__":
    main()
