#!/usr/bin/env python3
"""Runs the same random commands on places on a real Redis and on Ensue, in RESP2 and RESP3, and compares replies.

    geo.py REDIS_PORT ENSUE_PORT [--seed N] [--commands N]

Both servers are EMPTIED first. It exits with 1 on a difference. It is made for Redis 7.0.15. Members that are found in
no order are compared in any; coordinates are bulk strings in RESP3, too, where Redis has doubles. Not drawn: the
longitude 180, whose cell has a bit too many in Redis, and areas over it, of which Redis does not look at all.
"""

import sys

import random_commands

KEYS = ["{k}a", "{k}b"]
MEMBERS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
UNITS = ["m", "km", "KM", "ft", "mi", "x"]


class Draw(random_commands.Draw):
    def key(self):
        return self.one([*KEYS * 8, "{k}set"])

    def place(self):
        if self.chance(0.03):
            return [self.one(["181", "x", "nan", "inf"]), self.one(["86", "0", "-85.06"])]
        if self.chance(0.1):
            return [self.one(["-90", "90", "0"]), self.one(["85", "-85", "0"])]
        return [f"{self.random.uniform(-180, 180):.6f}", f"{self.random.uniform(-85, 85):.6f}"]

    def length(self):
        return self.one(["0", "-1", "x", "1"]) if self.chance(0.05) else str(int(10 ** self.random.uniform(1, 6)))

    def unit(self):
        return self.one(UNITS) if self.chance(0.3) else "m"

    def options(self, stores=False):
        options = [self.option(0.4, word) for word in ("WITHDIST", "WITHHASH", "withcoord")]
        options.append(self.option(0.9, self.one(["ASC", "DESC"])))
        options.append(self.option(0.3, "COUNT", self.one(["1", "2", "5", "0", "x"]), *self.option(0.02, "ANY")))
        if stores:
            options.append(self.option(0.3, self.one(["STORE", "storedist"]), self.key()))
        self.random.shuffle(options)
        return sum(options, [])

    def around(self):
        origin = self.one([["FROMMEMBER", self.one(MEMBERS)], ["fromlonlat", *self.place()]])
        shape = ["BYRADIUS", self.length(), self.unit()]
        if self.chance(0.5):
            shape = ["BYBOX", self.length(), self.length(), self.unit()]
        return [*origin, *shape] if self.chance(0.5) else [*shape, *origin]

    def add(self):
        words = [word for word in ("nx", "XX", "ch") if self.chance(0.1)]
        places = [[*self.place(), self.one(MEMBERS)] for _ in range(self.one([1, 2, 3]))]
        return ["GEOADD", self.key(), *words, *sum(places, []), *self.option(0.02, "x")]

    def command(self):
        key, member = self.key(), self.one(MEMBERS)
        forms = [
            *[self.add] * 6,
            lambda: ["GEOPOS", key, member, self.one(MEMBERS)],
            lambda: ["GEOHASH", key, member, self.one(MEMBERS)],
            lambda: ["GEODIST", key, member, self.one(MEMBERS), *self.option(0.5, self.one(UNITS))],
            lambda: ["GEORADIUS", key, *self.place(), self.length(), self.unit(), *self.options(True)],
            lambda: ["GEORADIUS_RO", key, *self.place(), self.length(), self.unit(), *self.options()],
            lambda: ["GEORADIUSBYMEMBER", key, member, self.length(), self.unit(), *self.options(True)],
            lambda: ["GEORADIUSBYMEMBER_RO", key, member, self.length(), self.unit(), *self.options()],
            *[lambda: ["GEOSEARCH", key, *self.around(), *self.options()]] * 6,
            lambda: ["GEOSEARCHSTORE", self.key(), key, *self.around(), *self.option(0.3, "STOREDIST")],
            lambda: ["ZRANGE", key, "0", "-1", "WITHSCORES"],
            lambda: ["ZREM", key, member],
            lambda: ["SADD", "{k}set", "x"],
        ]
        return self.one(forms)()


def normal(words, reply):
    mark, value = reply
    if mark in "$," and words[0] == "ZRANGE" and value and value[:1] in b"0123456789":
        return "$", b"%.9g" % float(value)
    if mark == ",":
        return "$", value
    if isinstance(value, list):
        items = [normal(words, item) for item in value]
        unordered = not {"ASC", "DESC"} & set(words) and words[0].startswith(("GEOS", "GEOR"))
        return mark, sorted(items, key=repr) if unordered else items
    return mark, value


def is_same(words, one, other):
    one, other = normal(words, one), normal(words, other)
    # Redis looks at the key before it reads the options.
    is_earlier = other[0] == "-" and (one[0] == "-" or one == ("*", []) or one == (":", 0) or one[1] is None)
    return repr(one) == repr(other) or is_earlier


if __name__ == "__main__":
    sys.exit(random_commands.main(__doc__, Draw, is_same))
