"""Retwis on keys: an operation locks what it reads and writes, and waits for whoever has it.

A lock is a key that is set if it is not there, with a deadline, so that a client that dies does not hold it for ever. All locks of an
operation are taken, or none, which is why two operations cannot wait for each other.
"""

import contextlib
import random
import time
import uuid

from retwis_model import Retwis

LOCK_MS = 5_000
PAUSE_S = 0.001


class LockedRetwis(Retwis):
    @contextlib.contextmanager
    def operation(self):
        owner, held = uuid.uuid4().hex, []

        def reserve(keys):
            locks = [f"lock:{key}" for key in keys]
            while True:
                pipeline = self.client.pipeline(transaction=False)
                for lock in locks:
                    pipeline.set(lock, owner, nx=True, px=LOCK_MS)
                taken = [lock for lock, answer in zip(locks, pipeline.execute(), strict=True) if answer]
                held.extend(taken)
                if len(taken) == len(locks):
                    return
                self.release(owner, held)
                time.sleep(random.uniform(0, 2 * PAUSE_S))

        try:
            yield reserve
        finally:
            self.release(owner, held)

    def release(self, owner, held):
        """Those whose deadline has passed may be another's by now."""
        if held:
            ours = [lock for lock, holder in zip(held, self.client.mget(held), strict=True) if holder == owner]
            if ours:
                self.client.delete(*ours)
            held.clear()
