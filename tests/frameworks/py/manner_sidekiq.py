"""A queue in the manner of Sidekiq: lists, sorted sets of what is scheduled, retried and dead, and beating workers.

Written for this test; only the shape of the keys, and which commands touch them, is Sidekiq's.

package: redis
home: yes
tags: all keys have one hash tag, because workers wait at several lists, and clients push in a `MULTI`
"""

import json
import threading
import time
import uuid

import redis
from scenario import HOME, URLS, equal, wait_until

QUEUES = ["{sk}queue:critical", "{sk}queue:default"]
# Takes what is due; of several pollers one gets it.
DUE = """
local due = redis.call('zrange', KEYS[1], '-inf', ARGV[1], 'byscore', 'limit', 0, ARGV[2])
if #due > 0 then redis.call('zrem', KEYS[1], unpack(due)) end
return due
"""


class Client:
    def __init__(self, url):
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.due = self.redis.register_script(DUE)

    def push(self, *jobs):
        with self.redis.pipeline(transaction=True) as pipe:
            now = time.time()
            later = {json.dumps(job): job["at"] for job in jobs if "at" in job}
            if later:
                pipe.zadd("{sk}schedule", later)
            for job in jobs:
                if "at" not in job:
                    pipe.sadd("{sk}queues", job["queue"])
                    pipe.lpush(f"{{sk}}queue:{job['queue']}", json.dumps({**job, "enqueued_at": now}))
            pipe.execute()

    def poll(self):
        for name in ("{sk}retry", "{sk}schedule"):
            while texts := self.due(keys=[name], args=[time.time(), 100]):
                self.push(*[{key: value for key, value in json.loads(text).items() if key != "at"} for text in texts])


class Worker(Client):
    def __init__(self, url):
        super().__init__(url)
        self.name, self.done, self.ends = uuid.uuid4().hex, [], False

    def beat(self):
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.sadd("{sk}processes", self.name)
            pipe.exists(f"{{sk}}{self.name}")
            pipe.hset(f"{{sk}}{self.name}", mapping={"busy": 0, "beat": time.time(), "rss": 1})
            pipe.expire(f"{{sk}}{self.name}", 60)
            pipe.rpop(f"{{sk}}{self.name}-signals")
            return pipe.execute()[-1]

    def work(self):
        while not self.ends:
            self.ends = self.beat() == "TERM"
            fetched = self.redis.brpop(QUEUES, timeout=1)
            if fetched:
                self.process(json.loads(fetched[1]))

    def process(self, job):
        failed = job["class"] == "Broken" or (job["class"] == "Flaky" and job.get("retry_count", 0) == 0)
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.incr("{sk}stat:processed")
            if failed:
                job["retry_count"] = job.get("retry_count", 0) + 1
                dead = job["retry_count"] > 1
                pipe.zadd("{sk}dead" if dead else "{sk}retry", {json.dumps(job): time.time() + 0.2})
                pipe.zremrangebyrank("{sk}dead", 0, -1001)
                pipe.incr("{sk}stat:failed")
            pipe.execute()
        if not failed:
            self.done.append(job["jid"])


def job(name, queue="default", **more):
    return {"class": name, "queue": queue, "jid": uuid.uuid4().hex, "args": [1, {"a": None}], **more}


workers = [Worker(HOME), Worker(HOME)]
threads = [threading.Thread(target=worker.work, daemon=True) for worker in workers]
for thread in threads:
    thread.start()
jobs, clients = [], [Client(url) for url in URLS]
for client in clients:
    jobs += [job("Hard") for _ in range(200)]
    client.push(*jobs[-200:])
    jobs += [job("Hard", "critical"), job("Flaky"), job("Hard", at=time.time() + 0.5), job("Broken")]
    for one in jobs[-4:]:
        client.push(one)


def all_done():
    for client in clients:
        client.poll()
    return sum(len(worker.done) for worker in workers) == len(jobs) - len(clients)


wait_until(all_done, "all jobs are done once", 40)
equal(
    sorted(jid for worker in workers for jid in worker.done),
    sorted(job["jid"] for job in jobs if job["class"] != "Broken"),
)
for client in clients:
    wait_until(lambda: client.redis.zcard("{sk}dead") == len(URLS), "the broken are dead")  # noqa: B023
    found = [json.loads(text)["class"] for text, _ in client.redis.zscan_iter("{sk}dead", match="*Broken*")]
    equal(found, ["Broken"] * len(URLS))
    processed, failed = client.redis.mget("{sk}stat:processed", "{sk}stat:failed")
    equal((int(processed), int(failed)), (len(jobs) + 2 * len(URLS), 3 * len(URLS)))
    equal(client.redis.smembers("{sk}queues"), {"critical", "default"})
for name in clients[-1].redis.smembers("{sk}processes"):
    clients[-1].redis.lpush(f"{{sk}}{name}-signals", "TERM")
for thread in threads:
    thread.join(20)
    assert not thread.is_alive(), "a worker is told to end"
