"""Transactions and merges over redis-py: all that the examples need to work with branches."""

import contextlib

import redis


@contextlib.contextmanager
def transaction(session):
    """What is read and written inside is one transaction of this session; an exception leaves nothing of it."""
    session.execute_command("BRANCH", "BEGIN")
    try:
        yield
    except BaseException:
        session.execute_command("BRANCH", "ABORT")
        raise
    session.execute_command("BRANCH", "COMMIT")


class Merge:
    """A merge transaction: what its branches hold, and what they held where they forked."""

    def __init__(self, session, states):
        self.session = session
        self.states = states
        self.forks = session.execute_command("BRANCH", "FORKPOINTS")

    def conflicts(self):
        """Keys that two branches have both written."""
        return self.session.execute_command("BRANCH", "CONFLICTS")

    def values(self, key):
        """The value of a key in each branch."""
        return self.session.execute_command("BRANCH", "GET", key, *self.states)

    def common(self, key):
        """The value of a key at each fork point."""
        return self.session.execute_command("BRANCH", "GET", key, *[state for state, _ in self.forks])

    def weighted(self, key):
        """(value, weight) of a key in each branch, and where they forked: the sum counts everything that happened once."""
        points = [(state, 1) for state in self.states] + [(state, int(weight)) for state, weight in self.forks]
        values = self.session.execute_command("BRANCH", "GET", key, *[state for state, _ in points])
        return [(value, weight) for value, (_, weight) in zip(values, points, strict=True)]

    def counter(self, key):
        """The sum of what all branches have added."""
        return sum(int(value or 0) * weight for value, weight in self.weighted(key))

    def union(self, key):
        """The members of a set, or the fields of a hash with their values, that a branch has added or that all have kept."""
        count = {}
        for held, weight in self.weighted(key):
            for member in held.items() if isinstance(held, dict) else held or []:
                count[member] = count.get(member, 0) + weight
        return {member for member, times in count.items() if times > 0}


def merge(session, resolve):
    """Makes one branch of all; `resolve(merge)` writes what follows from them. Returns the new state, or None if there was
    one branch only."""
    try:
        states = session.execute_command("BRANCH", "MERGE")
    except redis.ResponseError as error:
        if str(error).startswith("ABORT"):
            return None
        raise
    try:
        resolve(Merge(session, states))
    except BaseException:
        session.execute_command("BRANCH", "ABORT")
        raise
    return session.execute_command("BRANCH", "COMMIT")


def replace_set(session, key, members):
    session.delete(key)
    if members:
        session.sadd(key, *sorted(members))


def replace_hash(session, key, fields):
    session.delete(key)
    if fields:
        session.hset(key, mapping=fields)
