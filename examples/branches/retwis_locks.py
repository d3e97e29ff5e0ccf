"""Retwis on keys: an operation locks what it reads and writes, and waits for whoever has it.

A lock is a key that is set if it is not there, with a deadline, so that a client that dies does not hold it for ever. Locks are held in the
order of their names only, so two operations cannot wait for each other.
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
            locks = sorted(f"lock:{key}" for key in keys)
            while missing := locks[len(held) :]:
                pipeline = self.client.pipeline(transaction=False)
                for lock in missing:
                    pipeline.set(lock, owner, nx=True, px=LOCK_MS)
                answers = [bool(answer) for answer in pipeline.execute()]
                in_order = answers.index(False) if False in answers else len(answers)
                held.extend(missing[:in_order])
                # Those behind one that is not free: kept, they could be what its owner waits for.
                self.release(owner, [lock for lock, taken in zip(missing, answers, strict=True) if taken][in_order:])
                if in_order < len(missing):
                    time.sleep(random.uniform(0, 2 * PAUSE_S))

        try:
            yield reserve
        finally:
            self.release(owner, held)

    def release(self, owner, held):
        """Those whose deadline has passed may be another's by now."""
        if held:
            pipeline = self.client.pipeline(transaction=False)
            for lock, holder in zip(held, self.client.mget(held), strict=True):
                if holder == owner:
                    # One by one: a DEL of several keys would be a transaction, which is synced to the disk.
                    pipeline.delete(lock)
            pipeline.execute()
