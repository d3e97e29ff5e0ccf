#!/usr/bin/env python3
"""Runs the same random commands on lists on a real Redis and on Ensue, in RESP2 and RESP3, and compares replies.

    lists.py REDIS_PORT ENSUE_PORT [--seed N] [--commands N]

Both servers are EMPTIED first. It exits with 1 on a difference. It is made for Redis 7.0.15.
"""

import sys

import random_commands

KEYS = ["{k}a", "{k}b", "{k}c"]
VALUES = ["a", "b", "c", "d", "e", "", "aa", "1", "x" * 100]
PLACES = ["0", "1", "2", "3", "-1", "-2", "-3", "7", "-7", "100", "-100", "x", "9223372036854775807"]


class Draw(random_commands.Draw):
    def key(self):
        return self.one([*KEYS * 8, "{k}set", "{k}text"])

    def end(self):
        return self.one(["LEFT", "right", "Left", "RIGHT", "UP"])

    def search(self):
        options = [self.option(0.4, "RANK", self.one(PLACES)), self.option(0.4, "COUNT", self.one(["0", "1", "2", "-1"]))]
        options.append(self.option(0.3, "MAXLEN", self.one(["0", "1", "3", "100", "-1"])))
        self.random.shuffle(options)
        return [*sum(options, []), *self.option(0.03, "RANK")]

    def command(self):
        key, value = self.key(), self.one(VALUES)
        forms = [
            *[lambda: [self.one(["LPUSH", "RPUSH"]), key, *self.some(VALUES, 4)]] * 6,
            lambda: [self.one(["LPUSHX", "RPUSHX"]), key, *self.some(VALUES, 2)],
            *[lambda: [self.one(["LPOP", "RPOP"]), key, *self.option(0.4, self.one(["0", "1", "2", "9", "-1", "x"]))]] * 2,
            lambda: [self.one(["LLEN", "TYPE", "TTL", "EXISTS"]), key],
            lambda: ["DEL", key],
            lambda: ["LINDEX", key, self.one(PLACES)],
            *[lambda: ["LRANGE", key, self.one(PLACES), self.one(PLACES)]] * 3,
            *[lambda: ["LRANGE", key, "0", "-1"]] * 2,
            lambda: ["LSET", key, self.one(PLACES), value],
            *[lambda: ["LINSERT", key, self.one(["BEFORE", "after", "AT"]), value, self.one(VALUES)]] * 3,
            lambda: ["LREM", key, self.one(["0", "1", "2", "-1", "-2", "x"]), value],
            lambda: ["LTRIM", key, self.one(PLACES), self.one(PLACES)],
            *[lambda: ["LPOS", key, value, *self.search()]] * 2,
            lambda: ["LMOVE", key, self.key(), self.end(), self.end()],
            lambda: ["RPOPLPUSH", key, self.key()],
            lambda: ["LMPOP", self.one(["1", "2", "2", "0", "x"]), key, self.key(), self.end(), *self.option(0.4, "COUNT", "2")],
            lambda: ["SADD", "{k}set", value],
            lambda: ["SET", "{k}text", "x"],
            lambda: ["RENAME", key, self.key()],
            lambda: ["EXPIRE", key, "1000"],
        ]
        return self.one(forms)()


def is_earlier(words, one, other):
    """Redis looks at the key before it reads some of the options, and we after."""
    if one[0] == other[0] == "-":
        return b"WRONGTYPE" in one[1] or b"no such key" in one[1]
    return other[0] == "-"


def is_same(words, one, other):
    return repr(one) == repr(other) or is_earlier(words, one, other)


if __name__ == "__main__":
    sys.exit(random_commands.main(__doc__, Draw, is_same))
