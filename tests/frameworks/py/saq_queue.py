"""SAQ: jobs, a retry, a scheduled job.

package: saq
home: yes
tags: the name of the queue and the keys of jobs have a hash tag, because its scripts use several keys
"""

import asyncio
import time

from saq import Job, Queue, Worker
from scenario import HOME, URLS, equal


async def add(context, *, one, other):
    return one + other


async def flaky(context):
    if context["job"].attempts == 1:
        raise ValueError("once more")
    return "again"


async def main():
    at_home = Queue.from_url(HOME, name="{saq}")
    worker = Worker(at_home, [add, flaky], concurrency=2, timers={"schedule": 1, "sweep": 600})
    serving = asyncio.create_task(worker.start())
    # Its first sweep aborts a job that it sees between two lists.
    await asyncio.sleep(2)
    for number, url in enumerate(URLS):
        here = Queue.from_url(url, name="{saq}")
        equal(await here.apply("add", one=1, other=2, timeout=30, key=f"{{saq}}plain{number}"), 3)
        equal(await here.apply("flaky", retries=3, timeout=30, key=f"{{saq}}flaky{number}"), "again")
        data = {"one": 2, "other": 2}
        later = Job("add", kwargs=data, scheduled=int(time.time()) + 1, key=f"{{saq}}later{number}")
        job = await here.enqueue(later)
        await job.refresh(until_complete=30)
        equal(job.result, 4)
        await here.disconnect()
    await worker.stop()
    serving.cancel()


asyncio.run(main())
