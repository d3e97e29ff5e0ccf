"""What all programs share: their servers, and how they wait.

A program is called with one or several URLs. With several, they are the datacenters of one cluster; the keys of the
program have their home in the first.
"""

import sys
import time

URLS = sys.argv[1:]
HOME = URLS[0] if URLS else None


def wait_until(condition, what, timeout=20):
    """Waits for a true answer and returns it."""
    end = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, f"after {timeout} s still not: {what}"
        time.sleep(0.05)


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"
