"""RQ: jobs, results, a failure, a dependency and a scheduled job.

package: rq
home: yes
tags: the queue and the ids of jobs are hash tags, because it watches keys of jobs
"""

import datetime
import operator
import time

import redis
from rq import Queue, SimpleWorker
from rq.scheduler import RQScheduler
from scenario import HOME, URLS, equal

for number, url in enumerate(URLS):
    here = Queue("{rq}mail", connection=redis.Redis.from_url(url))
    first = here.enqueue(operator.add, 1, 2, job_id=f"{{rq}}first{number}")
    after = here.enqueue(operator.mul, 3, 4, depends_on=first, job_id=f"{{rq}}after{number}")
    broken = here.enqueue(operator.truediv, 1, 0, job_id=f"{{rq}}broken{number}")
    later = here.enqueue_in(datetime.timedelta(seconds=1), operator.add, 5, 5, job_id=f"{{rq}}later{number}")
    time.sleep(1.1)
    at_home = redis.Redis.from_url(HOME)
    worker = SimpleWorker([Queue("{rq}mail", connection=at_home)], connection=at_home)
    worker.work(burst=True, with_scheduler=False, logging_level="ERROR")
    scheduler = RQScheduler(["{rq}mail"], connection=at_home)
    scheduler.acquire_locks()
    scheduler.enqueue_scheduled_jobs()
    scheduler.release_locks()
    worker = SimpleWorker([Queue("{rq}mail", connection=at_home)], connection=at_home)
    worker.work(burst=True, with_scheduler=False, logging_level="ERROR")
    equal([job.return_value(refresh=True) for job in (first, after, later)], [3, 12, 10])
    assert broken.get_status(refresh=True) == "failed"
    here.failed_job_registry.remove(broken, delete_job=True)
    equal(here.count, 0)
