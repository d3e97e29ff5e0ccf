"""redlock-py: a lock is held once, and again after its release.

package: redlock-py
home: yes
"""

from redlock import Redlock
from scenario import URLS

first, other = (Redlock([url], retry_count=1) for url in (URLS[0], URLS[-1]))
held = first.lock("job", 20_000)
assert held
assert not other.lock("job", 20_000)
first.unlock(held)
held = other.lock("job", 20_000)
assert held
other.unlock(held)
