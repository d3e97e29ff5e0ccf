"""Five replicated data types on branches: each is what it would be in one place, and says how it is merged.

`merge(session, objects)` makes one branch of all, for any number of objects in one transaction. Any number of clients may
use an object in any datacenter.
"""

import uuid

import branches


class OnBranches:
    """A key of a session."""

    def __init__(self, session, key):
        self.session, self.key = session, key


class OpCounter(OnBranches):
    """A number that is added to."""

    def add(self, by=1):
        self.session.incrby(self.key, by)

    def value(self):
        return int(self.session.get(self.key) or 0)

    def resolve(self, merging):
        self.session.set(self.key, merging.counter(self.key))


class PNCounter(OpCounter):
    """A number that goes up and down."""

    def increment(self, by=1):
        self.add(by)

    def decrement(self, by=1):
        self.add(-by)


class LWWRegister(OnBranches):
    """A value; of two that were assigned at the same time one stays, the same everywhere."""

    def assign(self, value):
        self.session.set(self.key, value)

    def value(self):
        return self.session.get(self.key)

    def resolve(self, merging):
        # A merge reads the newest value that any of its branches has.
        self.assign(self.value())


class Tagged(OnBranches):
    """A hash of values by tags: a tag tells an addition or assignment from another of the same value."""

    def put(self, value):
        self.session.hset(self.key, uuid.uuid4().hex, value)

    def shown(self):
        return set(self.session.hvals(self.key))

    def resolve(self, merging):
        branches.replace_hash(self.session, self.key, dict(merging.union(self.key)))


class MVRegister(Tagged):
    """A value; those that were assigned at the same time stand beside each other until the next is assigned."""

    def assign(self, value):
        with branches.transaction(self.session):
            self.session.delete(self.key)
            self.put(value)

    def values(self):
        return self.shown()


class ORSet(Tagged):
    """A set; what is added while another takes it out stays."""

    def add(self, member):
        self.put(member)

    def remove(self, member):
        with branches.transaction(self.session):
            for tag, added in self.session.hgetall(self.key).items():
                if added == member:
                    self.session.hdel(self.key, tag)

    def members(self):
        return self.shown()


def merge(session, objects):
    def resolve(merging):
        conflicts = merging.conflicts()
        for one in objects:
            if one.key in conflicts:
                one.resolve(merging)

    branches.merge(session, resolve)
