"""redis-py's lock: held by one client at a time, extended and released by its holder alone.

package: redis
home: yes
"""

import threading

import redis
from scenario import URLS, equal

clients = [redis.Redis.from_url(url) for url in URLS] * 2
first, second = clients[0].lock("lock:a", timeout=20), clients[-1].lock("lock:a", timeout=20)
assert first.acquire(blocking=False)
assert not second.acquire(blocking=False)
assert first.extend(10)
assert first.reacquire()
first.release()
assert second.acquire(blocking_timeout=5)
second.release()

inside, most, done = 0, 0, []


def work(client):
    global inside, most
    for _ in range(5):
        with client.lock("lock:b", timeout=30, sleep=0.01):
            inside += 1
            most = max(most, inside)
            done.append(1)
            inside -= 1


threads = [threading.Thread(target=work, args=(client,)) for client in clients]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
equal((most, len(done)), (1, 5 * len(clients)))
