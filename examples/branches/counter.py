#!/usr/bin/env python3
"""A counter on branches (TARDiS, Figure 3): incremented as if there were one datacenter, merged with a few lines.

Run it against a dev cluster:

    cargo run --release -- dev --protocol tardis     # in one terminal
    pip install redis
    python3 examples/branches/counter.py             # in another; --port 7001 is the default

While the links are cut, each datacenter counts on a branch of its own. A merge adds up the branches and takes away what they
had in common, which `BRANCH FORKPOINTS` weighs: once for a plain fork. Then two datacenters merge at the same time, and what they made of it
is merged: the branches have crossed, there are several fork points, and their weights keep the sum right.
"""

from branches import Merge, merge, transaction
from stage import Links, arguments, require_branches, session, tell, title, wait_for_same_states

COUNTER = "visits"


def increment(client, by=1):
    with transaction(client):
        client.set(COUNTER, int(client.get(COUNTER) or 0) + by)


def decrement(client, by=1):
    increment(client, -by)


def resolve(merging: Merge):
    total = sum(int(value or 0) for value in merging.values(COUNTER))
    for value, (_, weight) in zip(merging.common(COUNTER), merging.forks, strict=True):
        total += int(value or 0) * int(weight)
    merging.session.set(COUNTER, total)


def shown(sessions):
    return [int(one.get(COUNTER) or 0) for one in sessions]


def main():
    options = arguments(__doc__)
    sessions = [session(options.port + number, options.keyspace) for number in range(3)]
    one, two, three = sessions
    require_branches(one, options.keyspace)
    links = Links(options.port)
    with transaction(one):
        one.set(COUNTER, 10)
    wait_for_same_states(sessions)
    tell("dc1", "the counter begins at 10")

    title("Each datacenter counts for itself")
    with links.cut():
        increment(one, 5)
        increment(one)
        decrement(two, 2)
        increment(three, 4)
        for number, value in enumerate(shown(sessions), 1):
            tell(f"dc{number}", f"the counter is {value}")
    wait_for_same_states(sessions)
    tell("", f"leaves, seen everywhere: {' '.join(one.execute_command('BRANCH', 'LIST'))}")
    merge(one, resolve)
    wait_for_same_states(sessions)
    tell("dc1", f"merged: {one.get(COUNTER)}")
    assert shown(sessions) == [18, 18, 18], shown(sessions)

    title("Two datacenters merge at the same time")
    with links.cut():
        increment(one)
        increment(two, 2)
    wait_for_same_states(sessions)
    with links.cut():
        merge(one, resolve)
        increment(one, 100)
        tell("dc1", f"merged, and then 100 more: {one.get(COUNTER)}")
        increment(two, 200)
        merge(two, resolve)
        tell("dc2", f"200 more, and then merged: {two.get(COUNTER)}")
    wait_for_same_states(sessions)
    forks = one.execute_command("BRANCH", "FORKPOINTS")
    tell("", "fork points and weights: " + ", ".join(f"{state} {weight}" for state, weight in forks))
    merge(one, resolve)
    wait_for_same_states(sessions)
    tell("dc1", f"merged: {one.get(COUNTER)}")
    assert shown(sessions) == [321, 321, 321], shown(sessions)
    print("\nevery increment counts exactly once")


if __name__ == "__main__":
    main()
