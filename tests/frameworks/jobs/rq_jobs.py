"""`produce URL FROM TO` sends jobs, `work URL FILE` does them until it is stopped."""

import os
import sys
import time

import redis
from rq import Queue, Retry, SimpleWorker


def job(number):
    with open(os.environ["DONE"], "a") as done:
        done.write(f"{number}\n")


def produce(queue, begin, end):
    import rq_jobs

    for number in range(begin, end):
        while True:
            try:
                queue.enqueue(rq_jobs.job, number, job_id=f"job-{number}", retry=Retry(max=5), result_ttl=0)
                break
            except Exception as error:  # noqa: BLE001, whatever it is, a producer tries again
                print(f"again: {error}"[:120], flush=True)
                time.sleep(0.2)


if __name__ == "__main__":
    connection = redis.Redis.from_url(sys.argv[2], socket_timeout=30)
    queue = Queue("jobs", connection=connection)
    if sys.argv[1] == "produce":
        produce(queue, int(sys.argv[3]), int(sys.argv[4]))
    os.environ["DONE"] = sys.argv[3]
    while sys.argv[1] == "work":
        # A worker that loses its connection in the middle of a job ends, and is started again, as by a supervisor.
        try:
            SimpleWorker([queue], connection=connection, maintenance_interval=5).work(logging_level="ERROR")
            break
        except (redis.RedisError, OSError) as error:
            print(f"again: {error}"[:120], flush=True)
            time.sleep(0.5)
