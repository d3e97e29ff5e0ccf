"""Celery: tasks, results, a retry, a group, a chord and a countdown. Producers are in all datacenters.

package: celery
home: yes
tags: `global_keyprefix` of the broker is a hash tag, because a worker waits at several lists
"""

import subprocess
import sys

from scenario import HOME, URLS, equal

from celery import Celery, chord, group


def application(url):
    app = Celery("celery_queue", broker=url, backend=url)
    prefix = {"global_keyprefix": "{celery}"}
    app.conf.update(
        broker_transport_options=prefix,
        result_backend_transport_options=prefix,
        broker_connection_retry_on_startup=True,
        worker_hijack_root_logger=False,
    )
    return app


app = application(HOME)


@app.task(name="add")
def add(one, other):
    return one + other


@app.task(name="total")
def total(numbers):
    return sum(numbers)


@app.task(name="flaky", bind=True, max_retries=2)
def flaky(self):
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    return "again"


def main():
    # The name of this file is that of the module, so that a worker knows the same tasks.
    code = f"import sys; sys.argv = ['worker', {HOME!r}]; import celery_queue; celery_queue.serve()"
    worker = subprocess.Popen([sys.executable, "-c", code])
    try:
        for url in URLS:
            with application(url) as here:
                here.set_current()
                send = lambda name, *args, **options: here.signature(name, args=args, **options)  # noqa: E731
                equal(send("add", 1, 2).apply_async().get(timeout=40), 3)
                equal(send("flaky").apply_async().get(timeout=40), "again")
                equal(send("add", 1, 3).apply_async(countdown=1).get(timeout=40), 4)
                many = group([send("add", n, n) for n in range(5)], app=here)
                equal(many.apply_async().get(timeout=40), [0, 2, 4, 6, 8])
                folded = chord([send("add", n, n) for n in range(5)], app=here)(send("total"))
                equal(folded.get(timeout=40), 20)
    finally:
        worker.terminate()
        worker.wait(20)


def serve():
    app.worker_main(["worker", "-P", "threads", "-c", "2", "-l", "WARNING", "--without-mingle"])


if __name__ == "__main__":
    main()
