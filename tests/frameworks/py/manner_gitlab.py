"""Leases in the manner of GitLab: a key with the id of its holder, who alone renews and cancels it.

Written for this test; only what a lease is, is GitLab's.

package: redis
home: yes
"""

import threading
import time
import uuid

import redis
from scenario import URLS, equal, wait_until

CANCEL = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
RENEW = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return false end
redis.call('expire', KEYS[1], ARGV[2])
return true
"""


class Lease:
    def __init__(self, client, name, seconds):
        self.redis, self.key, self.seconds, self.id = client, f"lease:{name}", seconds, uuid.uuid4().hex

    def obtain(self):
        """The id, or nothing where another holds it."""
        return self.redis.set(self.key, self.id, nx=True, ex=self.seconds) and self.id

    def obtain_or_id(self):
        """Whose it is after this: ours, or that of the other."""
        return self.obtain() or self.redis.get(self.key)

    def renew(self):
        return bool(self.redis.eval(RENEW, 1, self.key, self.id, self.seconds))

    def cancel(self):
        return bool(self.redis.eval(CANCEL, 1, self.key, self.id))

    def ttl(self):
        left = self.redis.ttl(self.key)
        return left if left > 0 else None


clients = [redis.Redis.from_url(url, decode_responses=True) for url in URLS] * 2
first, other = Lease(clients[0], "a", 20), Lease(clients[-1], "a", 20)
equal(first.obtain(), first.id)
equal((other.obtain(), other.obtain_or_id()), (None, first.id))
assert first.renew() and not other.renew()
assert 0 < other.ttl() <= 20
assert not other.cancel() and first.cancel() and not first.cancel()
equal((first.ttl(), other.obtain_or_id()), (None, other.id))
assert other.cancel()
# One that is not renewed ends by itself.
short = Lease(clients[0], "a", 1)
assert short.obtain()
wait_until(other.obtain, "a lease ends")
assert not short.renew() and not short.cancel() and other.cancel()

# Read, pause, write: without the lease some additions would be lost.
count, failures = 0, []


def work(client):
    global count
    for _ in range(5):
        lease = Lease(client, "b", 30)
        wait_until(lease.obtain, "the lease is free", 60)
        seen = count
        time.sleep(0.005)
        count = seen + 1
        assert lease.cancel()


threading.excepthook = lambda failure: failures.append(failure.exc_value)
threads = [threading.Thread(target=work, args=(client,)) for client in clients]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
equal((failures, count), ([], 5 * len(clients)))
