"""Dramatiq: messages with a delay, a retry and results.

package: dramatiq
home: yes
waits: results are waited for at the home
tags: `namespace` of the broker is a hash tag, because its script uses several keys
"""

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from scenario import HOME, URLS, equal

tries = []


def broker_at(url):
    broker = RedisBroker(url=url, namespace="{dramatiq}")
    broker.add_middleware(Results(backend=RedisBackend(url=url)))
    dramatiq.set_broker(broker)
    return broker


at_home = broker_at(HOME)


@dramatiq.actor(store_results=True)
def add(one, other):
    return one + other


@dramatiq.actor(store_results=True, max_retries=3, min_backoff=50)
def flaky():
    tries.append(1)
    if len(tries) % 2:
        raise ValueError("once more")
    return "again"


worker = dramatiq.Worker(at_home, worker_threads=2, worker_timeout=100)
worker.start()
for url in URLS:
    here = RedisBroker(url=url, namespace="{dramatiq}")
    results = RedisBackend(url=HOME)
    get = lambda message: results.get_result(message, block=True, timeout=30_000)  # noqa: E731
    equal(get(here.enqueue(add.message(1, 2))), 3)
    equal(get(here.enqueue(add.message(2, 2), delay=300)), 4)
    equal(get(here.enqueue(flaky.message())), "again")
at_home.join("default")
worker.stop()
