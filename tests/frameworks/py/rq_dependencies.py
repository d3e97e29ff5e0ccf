"""RQ: a job that waits for another one. RQ watches keys of both, and ids of jobs may have no hash tag.

package: rq
home: yes
fails: four, it watches a key of a job and writes others
"""

import operator

import redis
from rq import Queue, SimpleWorker
from scenario import HOME, URLS, equal

for url in URLS:
    here = Queue("mail", connection=redis.Redis.from_url(url))
    first = here.enqueue(operator.add, 1, 2)
    after = here.enqueue(operator.mul, 3, 4, depends_on=first)
    at_home = redis.Redis.from_url(HOME)
    worker = SimpleWorker([Queue("mail", connection=at_home)], connection=at_home)
    worker.work(burst=True, with_scheduler=False, logging_level="ERROR")
    equal([job.return_value(refresh=True) for job in (first, after)], [3, 12])
