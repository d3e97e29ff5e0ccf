"""Pottery: a lock, an id that all draw once, a dictionary, a deque, a counter and a Bloom filter.

package: pottery
"""

from pottery import NextID, RedisCounter, RedisDeque, RedisDict, RedisList, RedisSet, Redlock
from redis import Redis
from scenario import HOME, equal

client = Redis.from_url(HOME)
lock, other = (Redlock(key="job", masters={client}, auto_release_time=20) for _ in range(2))
assert lock.acquire()
assert not other.acquire(blocking=False)
lock.extend()
lock.release()
ids = NextID(key="ids", masters={client})
equal([next(ids), next(ids)], [1, 2])
cart = RedisDict({"a": 1}, redis=client, key="{p}cart")
cart.update({"b": 2})
equal(dict(cart), {"a": 1, "b": 2})
del cart["a"]
equal(cart.pop("b"), 2)
row = RedisDeque("abc", maxlen=3, redis=client, key="{p}row")
row.append("d")
equal(list(row), ["b", "c", "d"])
row.rotate(1)
equal(row.popleft(), "d")
items = RedisList([1, 2, 3], redis=client, key="{p}items")
items[1] = 9
del items[0]
equal(list(items), [9, 3])
members = RedisSet("ab", redis=client, key="{p}members")
members |= RedisSet("bc", redis=client, key="{p}more")
equal(set(members), set("abc"))
count = RedisCounter("aab", redis=client, key="{p}count")
equal(count.most_common(1), [("a", 2)])
