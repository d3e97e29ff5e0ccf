#!/usr/bin/env python3
"""Runs the same random commands on whole values on a real Redis and on Ensue, in RESP2 and RESP3, and compares replies.

    values.py REDIS_PORT ENSUE_PORT [--seed N] [--commands N]

Both servers are EMPTIED first. It exits with 1 on a difference. It is made for Redis 7.0.15, and for one partition. What
is dumped is restored on the other server: the bytes of dumps differ, since small values have layouts of their own.
"""

import sys

import random_commands

KEYS = ["{k}a", "{k}b", "{k}c"]
ELEMENTS = ["1", "2", "10", "-3", "0.5", "x", "yy", "z"]
NUMBERS = ["1", "2", "10", "-3", "0.5"]


class Draw(random_commands.Draw):
    def key(self):
        return self.one([*KEYS * 8, "{k}none"])

    def elements(self):
        return self.some(NUMBERS if self.chance(0.7) else ELEMENTS, 4)

    def sort(self):
        options = [
            self.option(0.3, "BY", self.one(["{k}w*", "{k}h*->f", "nosort", "*"])),
            self.option(0.3, "LIMIT", self.one(["0", "1", "-2"]), self.one(["1", "3", "-1", "0"])),
            self.option(0.3, "GET", self.one(["#", "{k}w*", "{k}h*->f", "nothing"])),
            self.option(0.2, "GET", "{k}h*->f"),
            self.option(0.3, self.one(["ASC", "DESC"])),
            self.option(0.4, "ALPHA"),
            self.option(0.2, "STORE", self.key()),
            self.option(0.02, "FOO"),
        ]
        self.random.shuffle(options)
        return ["SORT", self.key(), *sum(options, [])]

    def command(self):
        key, other = self.key(), self.key()
        forms = [
            lambda: ["DEL", key],
            lambda: ["SET", key, self.one(["hello world", "help", "12", "a" * 60, ""])],
            lambda: ["RPUSH", key, *self.elements()],
            lambda: ["SADD", key, *self.elements()],
            lambda: ["ZADD", key, *sum(([self.one(NUMBERS), one] for one in self.elements()), [])],
            lambda: ["HSET", key, *sum(([one, one] for one in self.elements()), [])],
            lambda: ["SET", "{k}w" + self.one(ELEMENTS), self.one(ELEMENTS)],
            lambda: ["HSET", "{k}h" + self.one(ELEMENTS), "f", self.one(ELEMENTS)],
            self.sort,
            self.sort,
            lambda: ["COPY", key, other, *self.option(0.5, "REPLACE")],
            lambda: ["PFADD", key, *self.elements()],
            lambda: ["PFCOUNT", *self.some(KEYS, 3)],
            lambda: ["PFMERGE", key, *self.some(KEYS, 2)],
            lambda: ["LCS", key, other, *self.option(0.3, "LEN"), *self.option(0.3, "IDX", "MINMATCHLEN", "2")],
            lambda: ["RENAMENX", key, other],
            lambda: ["HRANDFIELD", "{k}none", *self.option(0.5, self.one(["1", "-1", "x"]))],
            lambda: ["RESTORE", key, self.one(["0", "-1", "x"]), self.one(["", "short", "x" * 20])],
            lambda: ["TYPE", key],
            lambda: ["LRANGE", key, "0", "-1"],
        ]
        return self.one(forms)()


def is_same(words, one, other):
    """Sets are sorted in an order of Redis' own where nothing else says how; and so are those with the same weight."""
    if one == other:
        return True
    is_any_order = words[0] == "SORT" and ("nosort" in words or "BY" in words)
    return is_any_order and one[0] == other[0] == "*"


if __name__ == "__main__":
    sys.exit(random_commands.main(__doc__, Draw, is_same))
