"""Locks of files in the manner of Nextcloud: a number of shared holders, or `exclusive`, changed by comparison.

Written for this test; only what a lock's value is, and by which comparisons it changes, is Nextcloud's.

package: redis
home: yes
"""

import threading

import redis
from scenario import URLS, equal

# Each changes or deletes a value only if it is the expected one, or is not.
SCRIPTS = {
    "swap": "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
    "redis.call('set', KEYS[1], ARGV[2], 'ex', ARGV[3]) return 1",
    "delete": "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
    "delete_unless": "local value = redis.call('get', KEYS[1]) "
    "if value and value ~= ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
    "expire": "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
    "return redis.call('expire', KEYS[1], ARGV[2])",
}
TTL_S = 60


class Locks:
    def __init__(self, url):
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.scripts = {name: self.redis.register_script(text) for name, text in SCRIPTS.items()}

    def run(self, name, path, *args):
        return bool(self.scripts[name](keys=[path], args=args))

    def share(self, path):
        if self.redis.get(path) == "exclusive":
            return False
        try:
            self.redis.set(path, 0, nx=True, ex=TTL_S)
            self.redis.incr(path)
        except redis.ResponseError:
            return False  # Exclusive in the meantime: no number.
        return True

    def take(self, path):
        free = self.redis.set(path, "exclusive", nx=True, ex=TTL_S)
        return bool(free) or self.run("swap", path, 0, "exclusive", TTL_S)

    def to_exclusive(self, path):
        return self.run("swap", path, 1, "exclusive", TTL_S)

    def to_shared(self, path):
        return self.run("swap", path, "exclusive", 1, TTL_S)

    def release(self, path, exclusive):
        if exclusive:
            return self.run("delete", path, "exclusive")
        return self.redis.decr(path) >= 0


def rules(one, other):
    assert one.share("files/a") and other.share("files/a")
    assert not one.take("files/a") and not other.to_exclusive("files/a")
    assert other.release("files/a", exclusive=False)
    assert one.to_exclusive("files/a")
    assert not other.share("files/a") and not other.take("files/a")
    assert one.to_shared("files/a") and other.share("files/a")
    assert one.run("expire", "files/a", 2, 30) and not one.run("expire", "files/a", 1, 90)
    assert 0 < other.redis.ttl("files/a") <= 30
    assert not one.run("delete_unless", "files/a", 2) and one.run("delete_unless", "files/a", "exclusive")
    assert other.take("files/a") and other.release("files/a", exclusive=True)
    assert not other.release("files/a", exclusive=True)


inside = {"readers": 0, "writers": 0}
counting = threading.Lock()


def enter(kind, step):
    with counting:
        inside[kind] += step
        assert inside["writers"] == 0 or inside == {"readers": 0, "writers": 1}, inside


def work(locks, done):
    while len(done) < 60 and not failures:
        if locks.share("files/b"):
            enter("readers", 1)
            enter("readers", -1)
            locks.release("files/b", exclusive=False)
            done.append("read")
        if locks.take("files/b"):
            enter("writers", 1)
            enter("writers", -1)
            assert locks.release("files/b", exclusive=True)
            done.append("written")


all_locks = [Locks(url) for url in URLS] * 2
rules(all_locks[0], all_locks[-1])
done, failures = [], []
threading.excepthook = lambda failure: failures.append(failure.exc_value)
threads = [threading.Thread(target=work, args=(locks, done)) for locks in all_locks]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
equal(failures, [])
equal(set(done), {"read", "written"})
