"""aiocache: values, increments, compare-and-set, a lock that lets one compute, and clearing a namespace alone.

package: aiocache
"""

import asyncio
from urllib.parse import urlsplit

import aiocache
from aiocache.lock import OptimisticLock, OptimisticLockError, RedLock
from scenario import HOME, equal


async def main():
    try:
        from aiocache import RedisCache  # noqa: F401
    except ImportError:
        pass
    place = urlsplit(HOME)
    try:
        cache = aiocache.RedisCache(endpoint=place.hostname, port=place.port, namespace="one:")
    except TypeError:
        import redis.asyncio

        cache = aiocache.RedisCache(redis.asyncio.Redis.from_url(HOME), namespace="one:")
    await cache.set("a", "1")
    await cache.multi_set([("b", "2"), ("c", "3")])
    equal(await cache.multi_get(["a", "b", "none"]), ["1", "2", None])
    equal(await cache.increment("count", 2), 2)
    assert await cache.add("d", "4")
    try:
        await cache.add("d", "5")
        raise SystemExit("a key was added twice")
    except ValueError:
        pass
    async with OptimisticLock(cache, "a") as lock:
        await cache.set("a", "9")
        try:
            await lock.cas("10")
            raise SystemExit("a changed value was replaced")
        except OptimisticLockError:
            pass
    calls = []

    async def compute():
        async with RedLock(cache, "e", lease=5):
            if await cache.get("e") is None:
                calls.append(1)
                await asyncio.sleep(0.05)
                await cache.set("e", "5")

    await asyncio.gather(*(compute() for _ in range(5)))
    equal(len(calls), 1)
    await cache.clear(namespace="one:")
    equal(await cache.get("a"), None)


asyncio.run(main())
