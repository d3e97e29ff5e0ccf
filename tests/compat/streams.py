#!/usr/bin/env python3
"""Runs the same random commands on streams on a real Redis and on Ensue, in RESP2 and RESP3, and compares replies.

    streams.py REDIS_PORT ENSUE_PORT [--seed N] [--commands N]

Both servers are EMPTIED first. It exits with 1 on a difference. It is made for Redis 7.0.15. Ids are given and not
drawn, and times and idle consumers are not compared.
"""

import sys

import random_commands

KEYS = ["{k}a", "{k}b"]
GROUPS = ["g", "h"]
CONSUMERS = ["alice", "bob", ""]
UNTOLD = {b"radix-tree-keys", b"radix-tree-nodes", b"idle", b"inactive", b"seen-time", b"active-time"}
# Since 7.2, whoever reads for a group is one of its consumers, even if there is nothing to read.
UNTOLD_OF_CONSUMERS = {b"consumers"}
LATE_MS = 1_000_000_000_000


class Draw(random_commands.Draw):
    def key(self):
        return self.one([*KEYS * 12, "{k}none", "{k}text"])

    def id(self):
        plain = [f"{self.random.randint(1, 9)}-{self.random.randint(0, 9)}" for _ in range(8)]
        return self.one([*plain, str(self.random.randint(0, 10)), "0", "x", "0-0"])

    def bound(self):
        return self.one(["-", "+", "-", "+", self.id(), "(" + self.id(), "("])

    def trim(self):
        about = self.one([[], [], ["="], ["~"], ["~"]])
        how = self.one([["MAXLEN", *about, self.one(["0", "3", "8", "-1", "x"])], ["MINID", *about, self.id()]])
        return [*how, *self.option(0.15, "LIMIT", self.one(["0", "5", "-1"]))]

    def added(self):
        last = self.one([f"{self.random.randint(1, 9)}-*", self.id(), self.id(), self.id()])
        fields = self.one([["f", "v"], ["f", "v", "g", ""], ["f", "v"], ["f"]])
        return [*self.option(0.1, "NOMKSTREAM"), *(self.trim() if self.chance(0.1) else []), last, *fields]

    def group(self, key, group):
        forms = [
            ["CREATE", key, group, self.one(["$", "0", self.id()]), *self.option(0.5, "MKSTREAM"),
             *self.option(0.2, "ENTRIESREAD", self.one(["0", "2", "-1", "-2"]))],
            ["SETID", key, group, self.one(["$", "0", self.id()])],
            ["CREATECONSUMER", key, group, self.one(CONSUMERS)],
            ["DELCONSUMER", key, group, self.one(CONSUMERS)],
            ["DESTROY", key, group], ["NONE", key, group], ["CREATE", key],
        ]
        return ["XGROUP", *self.random.choices(forms, [8, 3, 3, 2, 1, 1, 1])[0]]

    def claimed(self):
        options = [self.option(0.3, "JUSTID"), self.option(0.3, "FORCE"), self.option(0.2, "RETRYCOUNT", "3"),
                   self.option(0.2, "IDLE", "100"), self.option(0.1, "LASTID", self.id())]
        return sum(options, [])

    def command(self):
        key, group, consumer, count = self.key(), self.one(GROUPS), self.one(CONSUMERS), self.one(["1", "2", "5", "0"])
        some = self.option(0.5, "COUNT", count)
        group_read = ["XREADGROUP", "GROUP", group, consumer, *some, *self.option(0.2, "NOACK"), "STREAMS"]
        forms = [
            *[lambda: ["XADD", key, *self.added()]] * 8,
            lambda: ["XADD", key, f"{self.random.randint(1, 9)}-{self.random.randint(10, 30)}", "f", "v"],
            lambda: [self.one(["XLEN", "TYPE", "EXISTS", "TTL"]), key],
            *[lambda: [self.one(["XRANGE", "XREVRANGE"]), key, self.bound(), self.bound(), *some]] * 3,
            lambda: ["XRANGE", key, "-", "+"],
            lambda: ["XREVRANGE", key, "+", "-"],
            *[lambda: ["XDEL", key, self.id(), self.id()]] * 2,
            lambda: ["XTRIM", key, *self.trim()],
            *[lambda: ["XREAD", *some, "STREAMS", key, self.key(), self.id(), self.one(["$", self.id()])]] * 2,
            *[lambda: self.group(key, group)] * 4,
            *[lambda: [*group_read, key, ">"]] * 5,
            lambda: [*group_read, key, self.id()],
            lambda: [*group_read, *KEYS, ">", self.one([">", "0"])],
            *[lambda: ["XACK", key, group, self.id(), self.id()]] * 2,
            lambda: ["XPENDING", key, group],
            lambda: ["XPENDING", key, group, self.bound(), self.bound(), count, *self.option(0.4, consumer)],
            *[lambda: ["XCLAIM", key, group, consumer, "0", self.id(), self.id(), *self.claimed()]] * 2,
            lambda: ["XAUTOCLAIM", key, group, consumer, "0", self.bound(), *some, *self.option(0.3, "JUSTID")],
            lambda: ["XINFO", "STREAM", key, *self.option(0.5, "FULL")],
            lambda: ["XINFO", "GROUPS", key],
            lambda: ["XSETID", key, self.id(), *self.option(0.3, "ENTRIESADDED", "50")],
            lambda: self.one([["DEL", key], ["SET", "{k}text", "x"], ["XLEN", key], ["XLEN", key]]),
        ]
        return self.one(forms)()


def timeless(reply, words):
    """A reply without what depends on the time, and without what Redis 7.0 does not tell."""
    mark, value = reply
    if not isinstance(value, list):
        return (mark, 0) if mark == ":" and value > LATE_MS else reply
    if words[0] == "XPENDING" and len(words) > 3 and len(value) == 4 and value[2][0] == ":":
        value = [*value[:2], value[3]]
    kept = []
    items = iter(value)
    for item in items:
        if item[0] == "$" and item[1] in UNTOLD | UNTOLD_OF_CONSUMERS:
            next(items, None)
        else:
            kept.append(timeless(item, words))
    return "*", kept


def is_earlier(one, other):
    """Redis looks at the key before it reads some of the options, and we after."""
    words = (b"WRONGTYPE", b"no such key", b"NOGROUP", b"requires the key")
    return other[0] == "-" and (one[0] != "-" or any(word in one[1] for word in words))


def is_same(words, one, other):
    if words[:2] == ["XGROUP", "CREATECONSUMER"] and one[0] == other[0] == ":":
        return True
    return repr(timeless(one, words)) == repr(timeless(other, words)) or is_earlier(one, other)


if __name__ == "__main__":
    sys.exit(random_commands.main(__doc__, Draw, is_same))
