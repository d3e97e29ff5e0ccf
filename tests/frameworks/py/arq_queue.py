"""arq: jobs, a retry, a job under an id, and one deferred.

package: arq
home: yes
tags: the queue and the ids of jobs are hash tags, because it watches a key of each job
"""

import asyncio

from arq import Retry, create_pool
from arq.connections import RedisSettings
from arq.worker import Worker
from scenario import HOME, URLS, equal

QUEUE = "{arq}:queue"


async def add(context, one, other):
    return one + other


async def flaky(context):
    if context["job_try"] == 1:
        raise Retry(defer=0.1)
    return "again"


async def main():
    pools = [await create_pool(RedisSettings.from_dsn(url), default_queue_name=QUEUE) for url in URLS]
    settings = RedisSettings.from_dsn(HOME)
    worker = Worker([add, flaky], redis_settings=settings, queue_name=QUEUE, poll_delay=0.1, handle_signals=False)
    serving = asyncio.create_task(worker.async_run())
    for number, pool in enumerate(pools):
        jobs = [
            await pool.enqueue_job("add", 1, 2, _job_id=f"{{arq}}plain{number}"),
            await pool.enqueue_job("flaky", _job_id=f"{{arq}}flaky{number}"),
            await pool.enqueue_job("add", 2, 2, _defer_by=0.5, _job_id=f"{{arq}}later{number}"),
            await pool.enqueue_job("add", 3, 2, _job_id=f"{{arq}}named{number}"),
        ]
        assert await pool.enqueue_job("add", 3, 2, _job_id=f"{{arq}}named{number}") is None
        equal([await job.result(timeout=30, poll_delay=0.05) for job in jobs], [3, "again", 4, 5])
    # A result can be read before the worker has ended its job, and closing the worker would cancel that.
    while any(not task.done() for task in worker.tasks.values()):
        await asyncio.sleep(0.05)
    await worker.close()
    serving.cancel()


asyncio.run(main())
