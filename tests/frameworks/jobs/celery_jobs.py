"""`produce URL FROM TO` sends jobs, `work URL FILE` does them until it is stopped."""

import os
import sys
import time

from celery import Celery

os.environ.setdefault("C_FORCE_ROOT", "1")
app = Celery("celery_jobs", broker=sys.argv[2])
app.conf.update(
    # What a worker took and did not acknowledge comes back after this time.
    broker_transport_options={"global_keyprefix": "{celery}", "visibility_timeout": 20, "socket_timeout": 10},
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
)


@app.task(name="job")
def job(number):
    with open(sys.argv[3], "a") as done:
        done.write(f"{number}\n")


def produce(begin, end):
    for number in range(begin, end):
        while True:
            try:
                job.apply_async((number,), retry=False)
                break
            except Exception as error:  # noqa: BLE001, whatever it is, a producer tries again
                print(f"again: {error}"[:120], flush=True)
                time.sleep(0.2)


if __name__ == "__main__":
    if sys.argv[1] == "produce":
        produce(int(sys.argv[3]), int(sys.argv[4]))
    else:
        app.worker_main(["worker", "-P", "threads", "-c", "2", "-l", "ERROR", "--without-gossip", "--without-mingle"])
