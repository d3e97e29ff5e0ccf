"""Walrus: containers, a cache, a rate limit, a lock, a model with indexes, autocompletion and a consumer group.

package: walrus
tags: names carry one hash tag where commands and scripts use several keys
"""

from scenario import HOME, equal
from walrus import Database

database = Database.from_url(HOME)
row = database.Hash("row")
row.update(one="1", two="2")
equal(row["one"], b"1")
scores = database.ZSet("scores")
scores.add({"a": 1, "b": 2})
equal(list(scores.range(0, -1)), [b"a", b"b"])
items = database.List("items")
items.extend(["a", "b"])
equal([items[0], items.popright()], [b"a", b"b"])
left, right = database.Set("{s}left"), database.Set("{s}right")
left.add("a", "b")
right.add("b", "c")
equal(left & right, {b"b"})
cache = database.cache("cache")
calls = []


@cache.cached(timeout=60)
def slow(number):
    calls.append(number)
    return number * 2


equal([slow(1), slow(1), len(calls)], [2, 2, 1])
limit = database.rate_limit("limit", limit=2, per=60)
equal([limit.limit("who") for _ in range(3)], [False, False, True])
lock = database.lock("{l}lock", ttl=10_000)
assert lock.acquire()
assert not database.lock("{l}lock", ttl=10_000).acquire(block=False)
assert lock.release()
group = database.consumer_group("readers", ["stream"])
group.create()
group.set_id("$")
group.stream.add({"field": "value"})
equal([fields for _, entries in group.read() for _, fields in entries], [{b"field": b"value"}])
words = database.autocomplete(namespace="{words}")
words.store("lisbon")
words.store("london")
equal(sorted(words.search("l")), ["lisbon", "london"])
