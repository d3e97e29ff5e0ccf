"""Django's own cache for Redis, and django-redis: the cache, sessions, a lock and patterns.

package: django
"""

from scenario import HOME, equal

import django
from django.conf import settings

settings.configure(
    CACHES={
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": HOME},
        "other": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": HOME,
            "KEY_PREFIX": "other",
            "OPTIONS": {"CLIENT_CLASS": "django_redis.client.DefaultClient"},
        },
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import caches  # noqa: E402

for name in ("default", "other"):
    cache = caches[name]
    cache.set("a", {"deep": [1]}, 60)
    equal(cache.get("a"), {"deep": [1]})
    assert cache.add("b", 1) and not cache.add("b", 2)
    equal([cache.incr("b"), cache.decr("b", 2)], [2, 0])
    cache.set_many({"c": 3, "d": 4})
    equal(cache.get_many(["c", "d", "none"]), {"c": 3, "d": 4})
    equal(cache.get_or_set("e", lambda: 5), 5)
    assert cache.touch("e", 100)
    cache.delete_many(["c", "d"])
    equal(cache.get("c"), None)

other = caches["other"]
equal(sorted(other.keys("*")), ["a", "b", "e"])
with other.lock("one", timeout=10):
    assert not other.lock("one", timeout=10).acquire(blocking=False)
assert 90 < other.ttl("e") <= 100
equal(other.delete_pattern("*"), 3)

session = SessionStore()
session["cart"] = ["milk"]
session.save()
equal(SessionStore(session.session_key)["cart"], ["milk"])
session.flush()
equal(SessionStore(session.session_key).get("cart"), None)
caches["default"].clear()
equal(caches["default"].get("a"), None)
