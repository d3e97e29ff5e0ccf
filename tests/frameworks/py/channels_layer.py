"""channels-redis: both layers send to a channel and to a group.

package: channels-redis
tags: the prefix is a hash tag, because scripts of the first layer use several channels
fails: four, its scripts name none of their keys
"""

import asyncio

from channels_redis.core import RedisChannelLayer
from channels_redis.pubsub import RedisPubSubChannelLayer
from scenario import HOME, equal


async def main():
    for kind in (RedisChannelLayer, RedisPubSubChannelLayer):
        layer = kind(hosts=[HOME], prefix="{channels}")
        one, other = await layer.new_channel(), await layer.new_channel()
        await layer.send(one, {"type": "one"})
        equal(await asyncio.wait_for(layer.receive(one), 20), {"type": "one"})
        for channel in (one, other):
            await layer.group_add("room", channel)
        await layer.group_send("room", {"type": "all"})
        equal([await asyncio.wait_for(layer.receive(channel), 20) for channel in (one, other)], [{"type": "all"}] * 2)
        await layer.group_discard("room", other)
        waiting = asyncio.create_task(layer.receive(one))
        await asyncio.sleep(0.2)
        await layer.group_send("room", {"type": "less"})
        equal(await asyncio.wait_for(waiting, 20), {"type": "less"})
        await layer.flush()


asyncio.run(main())
