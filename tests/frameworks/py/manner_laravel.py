"""A queue, a lock and two limiters in the manner of Laravel: everything that touches two keys is a script.

Written for this test; only the shape of the keys, and what the scripts do to them, is Laravel's.

package: redis
home: yes
tags: the name of the queue is a hash tag, as its users are told for clusters; so are the slots of the funnel
"""

import json
import threading
import time
import uuid

import redis
from scenario import HOME, URLS, equal, wait_until

QUEUE = ["queues:{mail}", "queues:{mail}:delayed", "queues:{mail}:reserved", "queues:{mail}:notify"]
PUSH = """
redis.call('rpush', KEYS[1], ARGV[1])
redis.call('rpush', KEYS[2], 1)
"""
# Moves what is due from a sorted set to the end of the list, a hundred at a time.
MIGRATE = """
local due = redis.call('zrangebyscore', KEYS[1], '-inf', ARGV[1])
if next(due) == nil then return due end
redis.call('zremrangebyrank', KEYS[1], 0, #due - 1)
for first = 1, #due, 100 do
    redis.call('rpush', KEYS[2], unpack(due, first, math.min(first + 99, #due)))
end
for _ = 1, #due do redis.call('rpush', KEYS[3], 1) end
return due
"""
# What is popped is reserved with one attempt more.
POP = """
local text = redis.call('lpop', KEYS[1])
if not text then return {false, false} end
local job = cjson.decode(text)
job['attempts'] = job['attempts'] + 1
local reserved = cjson.encode(job)
redis.call('zadd', KEYS[2], ARGV[1], reserved)
redis.call('lpop', KEYS[3])
return {text, reserved}
"""
RELEASE = """
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('zadd', KEYS[1], ARGV[2], ARGV[1])
return true
"""
SIZE = "return redis.call('llen', KEYS[1]) + redis.call('zcard', KEYS[2]) + redis.call('zcard', KEYS[3])"
CLEAR = """
local size = redis.call('llen', KEYS[1]) + redis.call('zcard', KEYS[2]) + redis.call('zcard', KEYS[3])
redis.call('del', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return size
"""
UNLOCK = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
# The first slot of several that is free.
FUNNEL = """
for index, held in pairs(redis.call('mget', unpack(KEYS))) do
    if not held then
        redis.call('set', KEYS[index], ARGV[2], 'EX', ARGV[1])
        return KEYS[index]
    end
end
"""
# A window that begins with its first call: whether this call is within it, its end, and what is left.
THROTTLE = """
local function begin()
    redis.call('hmset', KEYS[1], 'start', ARGV[1], 'end', ARGV[1] + ARGV[2], 'count', 1)
    return redis.call('expire', KEYS[1], ARGV[2] * 2)
end
if redis.call('exists', KEYS[1]) == 0 then
    return {begin(), ARGV[1] + ARGV[2], ARGV[3] - 1}
end
if ARGV[1] >= redis.call('hget', KEYS[1], 'start') and ARGV[1] <= redis.call('hget', KEYS[1], 'end') then
    return {
        tonumber(redis.call('hincrby', KEYS[1], 'count', 1)) <= tonumber(ARGV[3]),
        redis.call('hget', KEYS[1], 'end'),
        ARGV[3] - redis.call('hget', KEYS[1], 'count')
    }
end
return {begin(), ARGV[1] + ARGV[2], ARGV[3] - 1}
"""


class Queue:
    def __init__(self, url):
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        names = "PUSH MIGRATE POP RELEASE SIZE CLEAR UNLOCK FUNNEL THROTTLE"
        self.scripts = {name: self.redis.register_script(globals()[name]) for name in names.split()}

    def run(self, name, keys, *args):
        return self.scripts[name](keys=keys, args=args)

    def push(self, name, delay=None):
        text = json.dumps({"uuid": uuid.uuid4().hex, "displayName": name, "attempts": 0, "data": {"list": [1, 2.5]}})
        if delay is None:
            self.run("PUSH", [QUEUE[0], QUEUE[3]], text)
        else:
            self.redis.zadd(QUEUE[1], {text: time.time() + delay})

    def pop(self, retry_after=60):
        for source in QUEUE[1:3]:
            self.run("MIGRATE", [source, QUEUE[0], QUEUE[3]], time.time())
        text, reserved = self.run("POP", [QUEUE[0], QUEUE[2], QUEUE[3]], time.time() + retry_after)
        if text is None and self.redis.blpop(QUEUE[3], 1):
            text, reserved = self.run("POP", [QUEUE[0], QUEUE[2], QUEUE[3]], time.time() + retry_after)
        return text and (json.loads(text), reserved)

    def size(self):
        return self.run("SIZE", QUEUE[:3])


def queues():
    worker = Queue(HOME)
    for url in URLS:
        here = Queue(url)
        here.push("at once")
        here.push("later", delay=0.3)
        equal(here.size(), 2)
        job, reserved = worker.pop()
        equal((job["displayName"], job["attempts"], json.loads(reserved)["attempts"]), ("at once", 0, 1))
        worker.run("RELEASE", QUEUE[1:3], reserved, time.time() + 10)
        job, reserved = wait_until(worker.pop, "what is delayed comes")
        equal(job["displayName"], "later")
        worker.redis.zrem(QUEUE[2], reserved)
        here.push("forgotten")
        equal(worker.pop(retry_after=0.2)[0]["displayName"], "forgotten")
        job, reserved = wait_until(worker.pop, "what its worker forgot comes again")
        equal((job["displayName"], job["attempts"]), ("forgotten", 1))
        equal(here.run("CLEAR", QUEUE), 2)
        with here.redis.pipeline(transaction=False) as pipe:
            for number in range(350):
                pipe.zadd(QUEUE[1], {json.dumps({"displayName": str(number), "attempts": 0}): number})
            pipe.execute()
        threading.Timer(0.3, here.push, ["pushed while a worker waits"]).start()
        names = [wait_until(worker.pop, "the next job")[0]["displayName"] for _ in range(351)]
        equal((names[:3], len(set(names))), (["0", "1", "2"], 351))
        equal(here.run("CLEAR", QUEUE), 351)


def limits():
    first, other = Queue(URLS[0]), Queue(URLS[-1])
    assert first.redis.set("lock:a", "one", nx=True, ex=20)
    assert not other.redis.set("lock:a", "two", nx=True, ex=20)
    equal((other.run("UNLOCK", ["lock:a"], "two"), first.run("UNLOCK", ["lock:a"], "one")), (0, 1))
    slots = [f"{{funnel}}{number}" for number in (1, 2, 3)]
    equal([queue.run("FUNNEL", slots, 20, "id") for queue in (first, other, first, other)], [*slots, None])
    equal(other.run("UNLOCK", slots[1:2], "id"), 1)
    equal(first.run("FUNNEL", slots, 20, "id"), slots[1])
    now = int(time.time())
    answers = [queue.run("THROTTLE", ["throttle"], now, 60, 3) for queue in (first, other) * 2]
    equal([(allowed, left) for allowed, _, left in answers], [(1, 2), (1, 1), (1, 0), (None, -1)])
    equal({int(end) for _, end, _ in answers}, {now + 60})
    equal(first.run("THROTTLE", ["throttle"], now + 61, 60, 3), [1, now + 121, 2])


queues()
limits()
