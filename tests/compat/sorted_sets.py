#!/usr/bin/env python3
"""Runs the same random commands on sorted sets on a real Redis and on Ensue, in RESP2 and RESP3, and compares replies.

    sorted_sets.py REDIS_PORT ENSUE_PORT [--seed N] [--commands N]

Both servers are EMPTIED first. It exits with 1 on a difference. It is made for Redis 7.0.15, which writes 17 digits of
a score in RESP2, so scores are compared as numbers; and it keeps to what 7.0 knows.
"""

import sys

import random_commands

KEYS = ["{k}a", "{k}b", "{k}c"]
MEMBERS = ["a", "b", "c", "d", "e", "aa", "ab", "B", "", "m1", "m2"]
SCORES = ["0", "1", "2", "3", "-1", "1.5", "0.1", "0.2", "-0.3", "inf", "-inf", "1e10", "1e300", "-1e300", "0x1p4"]
SCORES += ["1e-10", "3.14159", "x", "nan", "-0", "1e400", "9007199254740993", "1700000000000"]
COMBINED = {"ZUNION", "ZINTER", "ZDIFF", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE", "ZINTERCARD"}


def number(value):
    """A score as a number; minus zero is zero."""
    try:
        return float(value) + 0.0 if float(value) == float(value) else value
    except ValueError:
        return value


def normal(name, reply):
    mark, value = reply
    if name == "ZRANDMEMBER" and mark == "*":
        return mark, len(value)
    if isinstance(value, list):
        items = [normal("", item) for item in value]
        if name == "ZSCAN":
            elements = items[1][1]
            return mark, [items[0], sorted(zip(elements[::2], elements[1::2]), key=repr)]
        return mark, items
    return mark, number(value) if mark in "$," and value is not None else value


class Draw(random_commands.Draw):
    def score(self):
        uniform = [self.random.random(), self.random.uniform(-1e3, 1e3), self.random.random() * 1e-4]
        return self.one([*SCORES, *map(str, uniform), str(self.random.randint(-5, 5)), str(self.random.randint(-5, 5))])

    def key(self):
        return self.one([*KEYS * 8, "{k}set", "{k}text"])

    def scores(self):
        loose = ["-inf", "+inf", "", "(", "abc", " 1"]
        return [self.one(["", "("]) + self.score() if self.chance(0.8) else self.one(loose) for _ in range(2)]

    def names(self):
        return [self.one(["-", "+", "[a", "(b", "[ab", "(c", "[", "(", "x", "[m1"]) for _ in range(2)]

    def places(self):
        return [str(self.one([0, 1, 2, 3, 5, 100, -1, -2, -3, -100])) for _ in range(2)]

    def limit(self):
        return self.option(0.4, "LIMIT", self.one([0, 1, 2, -1]), self.one([0, 1, 2, 5, -1]))

    def combined(self, stores):
        count = self.one([0, 1, 2, 2, 3, 3, 4])
        keys = [self.key() for _ in range(count + self.chance(0.03))]
        weights = self.option(0.3, "WEIGHTS", *[self.score() for _ in range(max(count, 1))])
        options = [weights, self.option(0.3, "AGGREGATE", self.one(["sum", "MIN", "max", "avg"]))]
        options.append(self.option(0.05 if stores else 0.5, "WITHSCORES"))
        self.random.shuffle(options)
        return [str(count), *keys, *sum(options, [])]

    def range(self):
        options = [self.option(0.5, "WITHSCORES"), self.limit(), self.option(0.4, "rev")]
        by = self.one(["rank", "rank", "BYSCORE", "bylex"])
        key, ends = self.key(), self.places()
        if by != "rank":
            key, ends = (self.key(), self.scores()) if by == "BYSCORE" else ("{k}lex", self.names())
            options.append([by])
        self.random.shuffle(options)
        return ["ZRANGE", key, *ends, *sum(options, [])]

    def add(self):
        words = [word for word in ("nx", "xx", "gt", "lt", "CH", "INCR") if self.chance(0.12)]
        pairs = [(self.score(), self.one(MEMBERS)) for _ in range(self.one([1, 1, 2, 3]))]
        return ["ZADD", self.key(), *words, *sum(pairs, ())]

    def command(self):
        key, member = self.key(), self.one(MEMBERS)
        withscores = self.option(0.5, "WITHSCORES")
        forms = [
            *[self.add] * 8,
            *[lambda: ["ZINCRBY", key, self.score(), member]] * 4,
            *[self.range] * 3,
            lambda: [self.one(["ZREM", "ZMSCORE"]), key, member, self.one(MEMBERS)],
            lambda: [self.one(["ZSCORE", "ZRANK", "ZREVRANK"]), key, member],
            lambda: [self.one(["ZCARD", "TYPE", "TTL", "EXISTS", "DEL"]), key],
            lambda: [self.one(["ZCOUNT", "ZREMRANGEBYSCORE"]), key, *self.scores()],
            lambda: [self.one(["ZLEXCOUNT", "ZREMRANGEBYLEX"]), "{k}lex", *self.names()],
            lambda: ["ZADD", "{k}lex", *sum((("0", name) for name in self.random.sample(MEMBERS, 4)), ())],
            lambda: ["ZREMRANGEBYRANK", key, *self.places()],
            lambda: ["ZREVRANGE", key, *self.places(), *withscores],
            lambda: [self.one(["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]), key, *self.scores(), *withscores, *self.limit()],
            lambda: [self.one(["ZRANGEBYLEX", "ZREVRANGEBYLEX"]), "{k}lex", *self.names(), *self.limit()],
            lambda: ["ZRANGESTORE", key, self.key(), *self.places(), *self.option(0.3, "REV")],
            lambda: ["ZRANGESTORE", key, self.key(), *self.scores(), "BYSCORE", *self.limit()],
            lambda: [self.one(["ZPOPMIN", "ZPOPMAX"]), key, *self.option(0.5, self.one([0, 1, 2, -1, "x"]))],
            lambda: ["ZMPOP", "2", key, self.key(), self.one(["min", "MAX", "mid"]), *self.option(0.4, "COUNT", 2)],
            lambda: ["ZRANDMEMBER", key, self.one(["0", "x", "100"]), *withscores],
            lambda: ["ZSCAN", key, "0", *self.option(0.3, "MATCH", self.one(["a*", "*", "?b"])), "COUNT", "1000"],
            *[lambda: [self.one(["ZUNION", "ZINTER", "ZDIFF"]), *self.combined(False)]] * 2,
            *[lambda: [self.one(["ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"]), key, *self.combined(True)]] * 2,
            lambda: ["ZINTERCARD", "2", key, self.key(), *self.option(0.5, "LIMIT", self.one([0, 1, -1, "x"]))],
            lambda: ["SADD", "{k}set", member, self.one(MEMBERS)],
            lambda: ["SET", "{k}text", "x"],
            lambda: ["RENAME", key, self.key()],
        ]
        return self.one(forms)()


def is_same(words, one, other):
    one, other = normal(words[0], one), normal(words[0], other)
    # Redis looks at these keys before it reads the options.
    is_earlier = words[0] in COMBINED and one[0] == other[0] == "-" and one[1].startswith(b"WRONGTYPE")
    return repr(one) == repr(other) or is_earlier


if __name__ == "__main__":
    sys.exit(random_commands.main(__doc__, Draw, is_same))
