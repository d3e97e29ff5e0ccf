"""Sessions on branches for the tests: a keyspace of its own for each, and the commands as functions."""

import contextlib

import redis

FLAGS = ["--protocol", "tardis", "--keyspace", "1=eiger"]
FLAT = 1
ROOT = "0.0"


def branch(client, *words):
    return client.execute_command("BRANCH", *words)


def words(constraint):
    """A constraint as the words of a command."""
    return constraint.split() if constraint else []


def begin(client, constraint=None):
    return branch(client, "BEGIN", *words(constraint))


def commit(client, constraint=None):
    return branch(client, "COMMIT", *words(constraint))


@contextlib.contextmanager
def transaction(client, end=None):
    """Commits at the end; a failing test leaves its transaction open, and its connection is closed."""
    begin(client)
    yield
    commit(client, end)


def write(client, **values):
    """One transaction that writes, and the id of its state."""
    begin(client)
    client.mset(values)
    return commit(client)


def leaves(client):
    return branch(client, "LIST")


def log(client, *more):
    """Parents, keys and flags of each state."""
    states = branch(client, "LOG", "COUNT", 0, *more)
    return {state: (parents, keys, set(flags)) for state, parents, keys, flags in states}


def parents(client, state):
    return log(client)[state][0]


def site_of(state):
    """The number of the datacenter that committed it, counted from 1."""
    return int(state.split(".")[1]) + 1


def rank(state):
    """By which ids are ordered: counter, incarnation, site."""
    counter, site, incarnation = (*map(int, state.split(".")), 0)[:3]
    return counter, incarnation, site


def refusal(client, *command):
    """The words of an error."""
    try:
        answer = client.execute_command(*command)
    except redis.ResponseError as error:
        return str(error)
    raise AssertionError(f"{command} is answered {answer!r}")
