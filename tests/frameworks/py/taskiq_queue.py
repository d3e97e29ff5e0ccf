"""taskiq: tasks over a list and over a stream, with results.

package: taskiq-redis
home: yes
"""

import asyncio

from scenario import HOME, URLS, equal
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend, RedisStreamBroker


async def main():
    for kind in (ListQueueBroker, RedisStreamBroker):
        at = lambda url: kind(url, queue_name=f"taskiq-{kind.__name__}").with_result_backend(  # noqa: E731
            RedisAsyncResultBackend(url)
        )
        at_home = at(HOME)

        @at_home.task(task_name="add")
        async def add(one: int, other: int) -> int:
            return one + other

        at_home.is_worker_process = True
        await at_home.startup()
        serving = asyncio.create_task(run_receiver_task(at_home))
        for url in URLS:
            here = at(url)
            remote = here.task(task_name="add")(add.original_func)
            await here.startup()
            for number in range(5):
                task = await remote.kiq(number, number)
                equal((await task.wait_result(timeout=30)).return_value, 2 * number)
            await here.shutdown()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await at_home.shutdown()


asyncio.run(main())
