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
        self.forks = self.fork_points(*states)
        self.pairs = {}

    def fork_points(self, *states):
        """Pairs of state and weight."""
        return [(state, int(weight)) for state, weight in self.session.execute_command("BRANCH", "FORKPOINTS", *states)]

    def conflicts(self):
        """Keys that two branches have both written."""
        return self.session.execute_command("BRANCH", "CONFLICTS")

    def values(self, key):
        """The value of a key in each branch."""
        return self.session.execute_command("BRANCH", "GET", key, *self.states)

    def common(self, key):
        """The value of a key at each fork point."""
        return self.session.execute_command("BRANCH", "GET", key, *[state for state, _ in self.forks])

    def counter(self, key):
        """The sum of what all branches have added: the weights see to it that nothing counts twice."""
        branches = sum(int(value or 0) for value in self.values(key))
        return branches + sum(int(value or 0) * weight for value, (_, weight) in zip(self.common(key), self.forks, strict=True))

    def union(self, key):
        """The members of a set, or the fields of a hash with their values, that a branch has added or that all have kept."""
        first, *others = zip(self.states, self.values(key), strict=True)
        merged, seen = members(first[1]), [first[0]]
        for state, held in others:
            # Who lacks what was there when they forked has taken it out.
            before = set().union(*map(members, self.before(key, seen, state)))
            merged = (merged & members(held)) | ((merged ^ members(held)) - before)
            seen.append(state)
        return merged

    def before(self, key, seen, state):
        """The values of a key where a branch forked from those that were looked at before."""
        points = set()
        for other in seen:
            if (other, state) not in self.pairs:
                self.pairs[other, state] = {point for point, _ in self.fork_points(other, state)}
            points |= self.pairs[other, state]
        return self.session.execute_command("BRANCH", "GET", key, *sorted(points))


def members(held):
    return set(held.items() if isinstance(held, dict) else held or [])


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
