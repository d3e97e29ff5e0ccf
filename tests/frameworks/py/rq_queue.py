"""RQ: jobs, results, a failure and a scheduled job.

package: rq
home: yes
tags: the name of the queue is a hash tag, because a worker moves a job between two lists
fails: four, it watches a key of a job and writes others
"""

import datetime
import operator
import time

import redis
from rq import Queue, SimpleWorker
from rq.scheduler import RQScheduler
from scenario import HOME, URLS, equal


def work():
    at_home = redis.Redis.from_url(HOME)
    worker = SimpleWorker([Queue("{rq}mail", connection=at_home)], connection=at_home)
    worker.work(burst=True, with_scheduler=False, logging_level="ERROR")


for url in URLS:
    here = Queue("{rq}mail", connection=redis.Redis.from_url(url))
    first = here.enqueue(operator.add, 1, 2)
    broken = here.enqueue(operator.truediv, 1, 0)
    later = here.enqueue_in(datetime.timedelta(seconds=1), operator.add, 5, 5)
    time.sleep(1.1)
    work()
    scheduler = RQScheduler(["{rq}mail"], connection=redis.Redis.from_url(HOME))
    scheduler.acquire_locks()
    scheduler.enqueue_scheduled_jobs()
    scheduler.release_locks()
    work()
    equal([job.return_value(refresh=True) for job in (first, later)], [3, 10])
    assert broken.get_status(refresh=True) == "failed"
    equal(here.count, 0)
