"""Five replicated data types, written twice: on branches, and for a store of keys. The same story is told to both.

Run it against a dev cluster:

    cargo run --release -- dev --protocol tardis --keyspace 1=eiger     # in one terminal
    pip install redis
    python3 examples/branches/crdts                                     # in another; --port 7001 is the default

Two datacenters change a counter, a register and a set while they cannot hear each other; then each type is merged in its way. At
the end the lines of code of both are counted.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import flat  # noqa: E402, found through the line above
import on_branches  # noqa: E402
from lines import code_lines  # noqa: E402
from stage import Links, arguments, has_branches, require_branches, session, tell, title, wait_for, wait_for_same_states  # noqa: E402

REPLICAS = ["dc1", "dc2"]


class Replica:
    """One object of each type."""

    def __init__(self, types, client, *names):
        self.client = client
        self.likes = types.OpCounter(client, "crdt:likes", *names)
        self.stock = types.PNCounter(client, "crdt:stock", *names)
        self.title = types.LWWRegister(client, "crdt:title", *names)
        self.mood = types.MVRegister(client, "crdt:mood", *names)
        self.guests = types.ORSet(client, "crdt:guests", *names)

    def objects(self):
        return [self.likes, self.stock, self.title, self.mood, self.guests]

    def shown(self):
        return [
            self.likes.value(),
            self.stock.value(),
            self.title.value(),
            sorted(self.mood.values()),
            sorted(self.guests.members()),
        ]


def begin(one):
    one.likes.add(10)
    one.stock.increment(20)
    one.title.assign("untitled")
    one.mood.assign("calm")
    one.guests.add("ada")
    one.guests.add("bob")


def diverge(one, two):
    one.likes.add(1)
    two.likes.add(2)
    one.stock.decrement(5)
    two.stock.decrement(7)
    one.title.assign("by dc1")
    two.title.assign("by dc2")
    one.mood.assign("happy")
    two.mood.assign("sad")
    one.guests.remove("ada")
    one.guests.remove("bob")
    two.guests.remove("bob")
    two.guests.add("bob")
    two.guests.add("cyd")
    tell("dc1", f"{one.shown()}")
    tell("dc2", f"{two.shown()}")


def check(before, shown):
    likes, stock, register, mood, guests = shown
    assert likes == before[0] + 3 and stock == before[1] - 12, shown
    assert register in ("by dc1", "by dc2"), shown
    # Bob was added anew while another took him out: he stays. Ada was only taken out.
    assert (mood, guests) == (["happy", "sad"], ["bob", "cyd"]), shown


def play_on_branches(links, sessions):
    title("On branches")
    one, two = (Replica(on_branches, client) for client in sessions)
    begin(one)
    wait_for_same_states(sessions)
    before = one.shown()
    with links.cut():
        diverge(one, two)
    wait_for_same_states(sessions)
    on_branches.merge(one.client, one.objects())
    wait_for_same_states(sessions)
    tell("", f"merged, everywhere: {two.shown()}")
    check(before, one.shown())
    assert one.shown() == two.shown()


def play_flat(links, sessions):
    title("On keys")
    one, two = (Replica(flat, client, name, REPLICAS) for client, name in zip(sessions, REPLICAS, strict=True))

    def merged():
        for replica in (one, two):
            flat.merge(replica.client, replica.objects())
        return one.shown() == two.shown()

    begin(one)
    wait_for("both have merged the beginning", merged)
    before = one.shown()
    with links.cut():
        diverge(one, two)
    wait_for("both have merged what they did", merged)
    tell("", f"merged, everywhere: {two.shown()}")
    check(before, one.shown())


def main():
    options = arguments(__doc__)
    ports = [options.port, options.port + 1]
    sessions = [session(port, options.keyspace) for port in ports]
    require_branches(sessions[0], options.keyspace)
    links = Links(options.port)
    play_on_branches(links, sessions)
    others = [session(port, options.flat) for port in ports]
    if has_branches(others[0]):
        tell("", f"keyspace {options.flat} has branches, too: start with --keyspace {options.flat}=eiger to see both")
    else:
        play_flat(links, others)
    title("Lines of code")
    on, helper, keys = (code_lines(path) for path in (FOLDER / "on_branches.py", FOLDER.parent / "branches.py", FOLDER / "flat.py"))
    tell("", f"on branches {on}, and {helper} that all examples share; on keys {keys}")


if __name__ == "__main__":
    main()
