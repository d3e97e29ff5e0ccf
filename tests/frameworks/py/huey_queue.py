"""Huey: tasks, a schedule, a lock and a priority queue.

package: huey
home: yes
"""

import threading

from huey import PriorityRedisHuey, RedisHuey
from huey.exceptions import TaskLockedException
from scenario import HOME, URLS, equal

for kind in (RedisHuey, PriorityRedisHuey):
    name = f"jobs-{kind.__name__.lower()}"
    at_home = kind(name, url=HOME, read_timeout=1)

    def add(one, other):
        return one + other

    task = at_home.task(name="add")(add)
    consumer = at_home.create_consumer(workers=2, periodic=False, scheduler_interval=1)
    consumer.start()
    for url in URLS:
        here = kind(name, url=url)
        remote = here.task(name="add")(add)
        equal(remote(1, 2).get(blocking=True, timeout=30), 3)
        equal(remote.schedule((2, 2), delay=1).get(blocking=True, timeout=30), 4)
        with here.lock_task("one"):
            try:
                with here.lock_task("one"):
                    raise SystemExit("the lock was granted twice")
            except TaskLockedException:
                pass
    consumer.stop(graceful=True)
