"""limits: each strategy grants its number over all clients.

package: limits
home: yes
tags: the sliding window's identifiers are hash tags, because its script uses two keys
"""

from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter
from scenario import URLS, equal

for kind in (FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter):
    item = parse("5/hour")
    limiters = [kind(storage_from_string(url)) for url in URLS]
    name = "{" + kind.__name__ + "}"
    equal([limiters[n % len(limiters)].hit(item, name) for n in range(8)], [True] * 5 + [False] * 3)
    equal(limiters[0].get_window_stats(item, name).remaining, 0)
    limiters[0].clear(item, name)
    assert limiters[0].hit(item, name)
