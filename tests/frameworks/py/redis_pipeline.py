"""redis-py's pipelines, `transaction()` under WATCH, registered scripts and publish-subscribe.

package: redis
"""

import redis
from scenario import HOME, equal, wait_until

client = redis.Redis.from_url(HOME, decode_responses=True)
with client.pipeline() as pipe:
    equal(pipe.set("pipe:a", 1).incr("pipe:a").expire("pipe:a", 60).execute(), [True, 2, True])


def double(pipe):
    value = int(pipe.get("{pipe}:b") or 1)
    pipe.multi()
    pipe.set("{pipe}:b", value * 2)


for _ in range(3):
    client.transaction(double, "{pipe}:b")
equal(client.get("{pipe}:b"), "8")
script = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
equal(script(keys=["pipe:c"], args=[5]), 5)
listener = client.pubsub(ignore_subscribe_messages=True)
listener.subscribe("pipe:news")
wait_until(lambda: client.pubsub_numsub("pipe:news")[0][1] == 1, "the subscription is known")
client.publish("pipe:news", "hello")
equal(wait_until(lambda: listener.get_message(timeout=0.1), "the message")["data"], "hello")
equal(sorted(client.scan_iter("*pipe*", count=10)), ["pipe:a", "pipe:c", "{pipe}:b"])
