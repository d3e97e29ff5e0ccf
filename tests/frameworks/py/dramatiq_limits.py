"""Dramatiq's rate limiters: one at once, and so many in a window.

package: dramatiq
home: yes
tags: names of limiters have a hash tag, because a window watches several keys
"""

from dramatiq.rate_limits import ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend
from scenario import URLS, equal

for url in URLS:
    backend = RedisBackend(url=url)
    limiter = ConcurrentRateLimiter(backend, "{limit}one", limit=1)
    with limiter.acquire():
        with limiter.acquire(raise_on_failure=False) as second:
            assert not second
    with limiter.acquire(raise_on_failure=False) as again:
        assert again
window = [WindowRateLimiter(RedisBackend(url=url), "{limit}window", limit=3, window=60) for url in URLS]
granted = []
for number in range(5):
    with window[number % len(window)].acquire(raise_on_failure=False) as is_granted:
        granted.append(is_granted)
equal(granted, [True] * 3 + [False] * 2)
