"""The same five data types for a store of keys, state-based as in Shapiro et al. (2011): each replica has a key of its own that only it writes,
holds there all that it knows, and joins into it what the other replicas' keys hold.

`merge(session, objects)` joins what has arrived here; every replica has to do it. A replica must have one writer: whatever changes an object
reads its state, and writes it back.
"""

import json


class Replicated:
    """The state of one replica, as JSON under a key of its own."""

    def __init__(self, session, key, replica, replicas):
        self.session, self.key, self.replica = session, key, replica
        self.others = [other for other in replicas if other != replica]

    def load(self, replica=None):
        text = self.session.get(f"{self.key}@{replica or self.replica}")
        return json.loads(text) if text else self.empty()

    def store(self, state):
        self.session.set(f"{self.key}@{self.replica}", json.dumps(state))

    def merge(self):
        state = self.load()
        for other in self.others:
            state = self.join(state, self.load(other))
        self.store(state)


def join_vectors(one, other):
    """The higher entry for each replica."""
    return {replica: max(one.get(replica, 0), other.get(replica, 0)) for replica in one | other}


def covers(one, other):
    """Whether a vector has all that the other has."""
    return all(one.get(replica, 0) >= count for replica, count in other.items())


class OpCounter(Replicated):
    """A number that is added to. Operations wait in a log until every replica has applied them, each exactly once, in the
    order of its replica."""

    def empty(self):
        return {"value": 0, "log": [], "logged": 0, "applied": {}}

    def add(self, by=1):
        state = self.load()
        state["value"] += by
        state["log"].append(by)
        state["logged"] += 1
        self.store(state)

    def value(self):
        return self.load()["value"]

    def merge(self):
        state = self.load()
        states = {other: self.load(other) for other in self.others}
        for other, theirs in states.items():
            applied = state["applied"].get(other, 0)
            first = theirs["logged"] - len(theirs["log"])
            state["value"] += sum(theirs["log"][applied - first :])
            state["applied"][other] = theirs["logged"]
        # What all others have applied need not be kept.
        needed_from = min(theirs["applied"].get(self.replica, 0) for theirs in states.values())
        kept = state["logged"] - needed_from
        state["log"] = state["log"][len(state["log"]) - kept :]
        self.store(state)


class PNCounter(Replicated):
    """A number that goes up and down: two vectors, of what each replica has added and what it has taken away."""

    def empty(self):
        return {"added": {}, "taken": {}}

    def increment(self, by=1):
        self.change("added", by)

    def decrement(self, by=1):
        self.change("taken", by)

    def change(self, vector, by):
        state = self.load()
        state[vector][self.replica] = state[vector].get(self.replica, 0) + by
        self.store(state)

    def value(self):
        state = self.load()
        return sum(state["added"].values()) - sum(state["taken"].values())

    def join(self, one, other):
        return {vector: join_vectors(one[vector], other[vector]) for vector in ("added", "taken")}


class LWWRegister(Replicated):
    """A value with a logical time; the replica's name decides between equal times."""

    def empty(self):
        return {"value": None, "time": 0, "replica": ""}

    def assign(self, value):
        time = self.load()["time"] + 1
        self.store({"value": value, "time": time, "replica": self.replica})

    def value(self):
        return self.load()["value"]

    def join(self, one, other):
        return max(one, other, key=lambda state: (state["time"], state["replica"]))


class MVRegister(Replicated):
    """Values with the vectors of their assignments; one that another has seen is gone."""

    def empty(self):
        return {"versions": []}

    def assign(self, value):
        vector = {}
        for version in self.load()["versions"]:
            vector = join_vectors(vector, version["vector"])
        vector[self.replica] = vector.get(self.replica, 0) + 1
        self.store({"versions": [{"value": value, "vector": vector}]})

    def values(self):
        return {version["value"] for version in self.load()["versions"]}

    def join(self, one, other):
        return {"versions": self.unseen(one, other) + self.unseen(other, one, or_equal=False)}

    def unseen(self, mine, theirs, or_equal=True):
        """My versions that none of theirs has replaced; of equal ones, one is kept."""
        kept = []
        for version in mine["versions"]:
            vector = version["vector"]
            newer = [other["vector"] for other in theirs["versions"] if covers(other["vector"], vector)]
            if all(or_equal and other == vector for other in newer):
                kept.append(version)
        return kept


class ORSet(Replicated):
    """Members by the tags of their additions, and a vector of the additions seen: a tag that was seen and is not there was removed."""

    def empty(self):
        return {"tags": {}, "seen": {}}

    def add(self, member):
        state = self.load()
        number = state["seen"].get(self.replica, 0) + 1
        state["seen"][self.replica] = number
        state["tags"][f"{self.replica}:{number}"] = member
        self.store(state)

    def remove(self, member):
        state = self.load()
        state["tags"] = {tag: added for tag, added in state["tags"].items() if added != member}
        self.store(state)

    def members(self):
        return set(self.load()["tags"].values())

    def join(self, one, other):
        tags = {}
        for mine, theirs in ((one, other), (other, one)):
            for tag, member in mine["tags"].items():
                if tag in theirs["tags"] or not self.has_seen(theirs, tag):
                    tags[tag] = member
        return {"tags": tags, "seen": join_vectors(one["seen"], other["seen"])}

    def has_seen(self, state, tag):
        replica, number = tag.rsplit(":", 1)
        return state["seen"].get(replica, 0) >= int(number)


def merge(_session, objects):
    for one in objects:
        one.merge()
