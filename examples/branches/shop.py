#!/usr/bin/env python3
"""A game shop on branches (TARDiS, Figure 4): the last copy is sold twice, and one customer gets an apology.

Run it against a dev cluster:

    cargo run --release -- dev --protocol tardis     # in one terminal
    pip install redis
    python3 examples/branches/shop.py                # in another; --port 7001 is the default

The shop sells a board game and an extension pack that is of no use without the game. Stock is a counter an item, and the
shop keeps who bought what. Two rules hold on every branch: no stock below zero, and nobody has the pack without the game.
Both can break when branches that keep them are put together, so the merge looks at all keys at once: stock, buyers and carts.
"""

from branches import merge, replace_set, transaction
from stage import Links, arguments, paint, require_branches, session, tell, title, wait_for_same_states

PRICES = {"game": 40, "pack": 25}
# What an item is of no use without.
NEEDS = {"pack": "game"}


def stock(item):
    return f"shop:stock:{item}"


def buyers(item):
    return f"shop:buyers:{item}"


def cart(customer):
    return f"shop:cart:{customer}"


APOLOGIES = "shop:apologies"


class SoldOut(Exception):
    pass


def buy(client, customer, *items):
    """All of the items, or nothing."""
    with transaction(client):
        for item in items:
            left = int(client.get(stock(item)))
            needed = NEEDS.get(item)
            if left == 0 or (needed and not client.sismember(cart(customer), needed)):
                raise SoldOut(item)
            client.set(stock(item), left - 1)
            client.sadd(buyers(item), customer)
            client.sadd(cart(customer), item)


def return_item(client, customer, item):
    """Back to the shelf, with what is of no use without it."""
    with transaction(client):
        take_back(client, customer, item)


def take_back(client, customer, item):
    if not client.srem(cart(customer), item):
        return
    client.srem(buyers(item), customer)
    client.set(stock(item), int(client.get(stock(item))) + 1)
    for other, needed in NEEDS.items():
        if needed == item:
            take_back(client, customer, other)


def apologize(client, customer, item):
    take_back(client, customer, item)
    client.sadd(APOLOGIES, f"{customer}: {item}")


def worth(client, customer):
    return sum(PRICES[item] for item in client.smembers(cart(customer)))


def resolve(merging):
    client = merging.session
    conflicts = set(merging.conflicts())
    # What each branch did is kept, all of it, whatever rule that breaks.
    for key in conflicts:
        if key.startswith("shop:stock:"):
            client.set(key, merging.counter(key))
        else:
            replace_set(client, key, merging.union(key))
    # Then the rules. Whoever spends most keeps what was sold twice.
    for item in PRICES:
        ordered = set(client.smembers(buyers(item))) - bought_before(merging, item)
        cheapest_first = sorted(ordered, key=lambda customer: (worth(client, customer), customer))
        for customer in cheapest_first:
            if int(client.get(stock(item))) < 0:
                apologize(client, customer, item)
    # One customer may have used two branches: the game went back on one, and the pack was bought on the other.
    for item, needed in NEEDS.items():
        for customer in client.smembers(buyers(item)):
            if not client.sismember(cart(customer), needed):
                apologize(client, customer, item)


def bought_before(merging, item):
    """Who had the item before the branches forked: no order of theirs is in question."""
    return set.intersection(*(set(members or []) for members in merging.common(buyers(item))))


def rules_hold(client):
    for item in PRICES:
        assert int(client.get(stock(item))) >= 0, item
        for customer in client.smembers(buyers(item)):
            assert client.sismember(cart(customer), item)
            assert item not in NEEDS or client.sismember(cart(customer), NEEDS[item]), f"{customer} has no use for {item}"


def report(client, customers):
    for item in PRICES:
        tell("", f"{item}: {client.get(stock(item))} left, bought by {', '.join(sorted(client.smembers(buyers(item)))) or 'nobody'}")
    for apology in sorted(client.smembers(APOLOGIES)):
        tell("", paint("bad", f"sorry, {apology}"))
    for customer in customers:
        tell("", f"{customer} has {', '.join(sorted(client.smembers(cart(customer)))) or 'nothing'}")
    rules_hold(client)


def open_shop(client, **left):
    with transaction(client):
        client.delete(APOLOGIES, *map(cart, ("alice", "bruno", "carla")), *map(buyers, PRICES))
        for item, count in left.items():
            client.set(stock(item), count)


def main():
    options = arguments(__doc__)
    sessions = [session(options.port + number, options.keyspace) for number in range(3)]
    one, two, _ = sessions
    require_branches(one, options.keyspace)
    links = Links(options.port)

    title("The last game is sold in two datacenters")
    open_shop(one, game=1, pack=5)
    wait_for_same_states(sessions)
    with links.cut():
        buy(one, "alice", "game")
        tell("dc1", "alice buys the game")
        buy(two, "bruno", "game", "pack")
        tell("dc2", "bruno buys the game and the pack")
        try:
            buy(two, "carla", "game")
        except SoldOut as item:
            tell("dc2", f"carla wants the {item}: there is none left here")
    wait_for_same_states(sessions)
    tell("", f"written on both branches: {', '.join(one.execute_command('BRANCH', 'CONFLICTS'))}")
    merge(one, resolve)
    wait_for_same_states(sessions)
    report(two, ["alice", "bruno"])
    assert two.smembers(APOLOGIES) == {"alice: game"}
    assert two.get(stock("game")) == "0" and two.get(stock("pack")) == "4"
    assert two.smembers(cart("bruno")) == {"game", "pack"}

    title("A customer with two phones")
    open_shop(one, game=3, pack=5)
    buy(one, "carla", "game")
    wait_for_same_states(sessions)
    with links.cut():
        return_item(one, "carla", "game")
        tell("dc1", "carla gives the game back")
        buy(two, "carla", "pack")
        tell("dc2", "carla buys the pack")
    wait_for_same_states(sessions)
    merge(two, resolve)
    wait_for_same_states(sessions)
    report(one, ["carla"])
    assert one.get(stock("game")) == "3" and one.get(stock("pack")) == "5"
    assert one.smembers(APOLOGIES) == {"carla: pack"}
    print("\nno stock below zero, and nobody has the pack without the game")


if __name__ == "__main__":
    main()
