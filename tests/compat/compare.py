#!/usr/bin/env python3
"""Runs the same commands on a real Redis and on Ensue and compares the raw replies.

    compare.py REDIS_PORT ENSUE_PORT [--seed N] [--commands N] [--skip rename,multi]

Both servers are EMPTIED first. Prints the first differences and `N passed, N failed`; exits with 1 on a difference.
The work is bounded: one connection each, N random commands, some fixed scripts, a time limit on every answer. It
needs Python 3.11 and nothing else: a client library would hide the difference between a status, a bulk string and an
integer. What may differ by design (docs/commands.md) is normalised here, in `normal`, or not generated.
"""

import argparse
import random
import socket
import sys
import time

TIMEOUT_S = 10
SHOWN_MAX = 20
REDIS_VERSION = "7.0"

UNORDERED = {"SMEMBERS", "HKEYS", "HVALS", "KEYS"}
PAIRS = {"HGETALL"}
# Answers that are times: how far they may lie apart.
TIMES = {"TTL": 1, "EXPIRETIME": 1, "PTTL": 500, "PEXPIRETIME": 500}
# Redis looks at the key before it reads these arguments, Ensue the other way round.
ARGUMENTS_AFTER_KEY = {"GETEX", "HSCAN", "SSCAN", "INCRBYFLOAT"}
FLOATS_ADDED = {"INCRBYFLOAT": 1, "HINCRBYFLOAT": 1}


class Connection:
    """Speaks RESP and keeps the type of every reply: ('+', b'OK'), (':', 1), ('$', b'..' or None), ('*', [..])."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(parts))

    def receive(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("connection closed")
        mark, rest = chr(line[0]), line[1:-2]
        if mark in "+-,#(":
            return mark, rest
        if mark == ":":
            return mark, int(rest)
        if mark == "_":
            return "$", None
        if mark in "$=":
            length = int(rest)
            return "$", None if length < 0 else self.file.read(length + 2)[:-2]
        if mark in "*~%":
            count = int(rest) * (2 if mark == "%" else 1)
            return mark, None if count < 0 else [self.receive() for _ in range(count)]
        raise ConnectionError(f"strange reply {line!r}")

    def call(self, words):
        self.send(words)
        return self.receive()


def encoded(words):
    return [word if isinstance(word, bytes) else str(word).encode() for word in words]


def normal(name, reply):
    """A reply without what may differ: the order of sets and hashes."""
    mark, value = reply
    if not isinstance(value, list):
        return reply
    if name in UNORDERED:
        return mark, sorted(value, key=repr)
    if name in PAIRS:
        return mark, sorted(zip(value[::2], value[1::2]), key=repr)
    return reply


def same(name, redis, ensue):
    if redis[0] != ensue[0]:
        return False
    if name in TIMES and redis[0] == ":" and redis[1] >= 0 and ensue[1] >= 0:
        return abs(redis[1] - ensue[1]) <= TIMES[name]
    return normal(name, redis) == normal(name, ensue)


def refused_earlier(name, redis, ensue):
    """Both refuse, or Redis has nothing to answer, and Ensue has seen the bad argument first."""
    if redis[0] == "-":
        found_nothing = redis[1].startswith(b"WRONGTYPE") or name in FLOATS_ADDED
    else:
        found_nothing = redis[1] in (None, set()) or redis[1] == [("$", b"0"), ("*", [])]
    is_refusal = ensue[0] == "-" and not ensue[1].startswith(b"WRONGTYPE")
    return name in ARGUMENTS_AFTER_KEY and found_nothing and is_refusal


def nearly(redis, ensue):
    """Sums that Redis rounded in its last digits, or that only its long double holds."""
    try:
        if redis[0] == "$" and abs(float(redis[1])) > 1e300:
            return True
        one, other = float(redis[1]), float(ensue[1])
    except (TypeError, ValueError):
        return False
    return redis[0] == ensue[0] == "$" and abs(one - other) <= 1e-15 * max(abs(one), abs(other))


class Comparison:
    def __init__(self, redis, ensue):
        self.redis, self.ensue = redis, ensue
        self.passed = self.failed = 0
        self.recent = []

    def judge(self, is_same, shown, redis, ensue):
        if is_same:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= SHOWN_MAX:
            print(f"DIFFERENT: {shown}\n  redis: {redis!r:.300}\n  ensue: {ensue!r:.300}")
            print("  before: " + "; ".join(self.recent[-4:]))

    def command(self, *words):
        words = encoded(words)
        name = words[0].decode(errors="replace").upper()
        shown = " ".join(repr(word)[2:-1][:60] or "''" for word in words)
        self.redis.send(words)
        self.ensue.send(words)
        redis, ensue = self.redis.receive(), self.ensue.receive()
        is_same = same(name, redis, ensue) or refused_earlier(name, redis, ensue)
        if not is_same and name in FLOATS_ADDED and nearly(redis, ensue):
            is_same = True
            for server in (self.redis, self.ensue):
                server.call([b"DEL", words[1]])
        self.judge(is_same, shown, redis, ensue)
        self.recent.append(shown)
        del self.recent[:-8]
        return redis

    def walk(self, *words):
        """Whole walks with SCAN and its kind return the same elements, in whatever pages."""
        words = encoded(words)
        at = 1 if words[0].upper() == b"SCAN" else 2
        redis, ensue = (self.elements(server, words, at) for server in (self.redis, self.ensue))
        name = words[0].decode().upper()
        is_same = redis == ensue or refused_earlier(name, redis, ensue)
        self.judge(is_same, b" ".join(words).decode(errors="replace"), redis, ensue)

    @staticmethod
    def elements(server, words, at):
        cursor, found = b"0", set()
        for _ in range(10_000):
            mark, value = server.call(words[:at] + [cursor] + words[at:])
            if mark == "-":
                return mark, value
            items = [item[1] for item in value[1][1]]
            step = 2 if words[0].upper() == b"HSCAN" else 1
            found.update(tuple(items[i : i + step]) for i in range(0, len(items), step))
            cursor = value[0][1]
            if cursor == b"0":
                return "*", found
        return "*", "a walk without end"


KEYS = ["s1", "s2", "n1", "n2", "h1", "h2", "m1", "m2", "any", "{t}a", "{t}b", "none"]
FIELDS = ["f", "g", "h", "a b", "", "1", "long" * 20]
TEXTS = ["v", "", "hello world", "\x00\r\nbin", "x" * 200, "abc", " 5", "5 ", "+5", "1_000", "nan", "-"]
INTEGERS = [0, 1, -1, 2, 7, 10, 41, -300, 12345678901]
EXTREMES = [2**63 - 1, -(2**63), 2**63, 2**62, -(2**63) - 1, "1.5", "x", "", " 1", "01", "-0", "1e3"]
# Exact in binary: Redis rounds others in its last digits, Ensue does not.
FLOATS = ["0.5", "-0.25", "3", "1e2", "-2.5e1", "5.0e3", "0", "1024.125", ".5", "3."]
NO_FLOATS = ["x", "", "1 ", " 1", "nan", "inf", "-inf", "1e", "--1", "1,5"]
PATTERNS = ["*", "s*", "?1", "[hm]*", "[^s]*", "{t}*", "nothing", "\\{t}?", "[a-h]1", "n[12", "*1*"]


def wild(r, chance):
    """Whether to try what a server must refuse; never inside of a transaction, where Redis refuses it later."""
    return not r.calm and r.random() < chance


def value(r):
    return r.choice([r.choice(TEXTS), r.choice(INTEGERS), r.choice(EXTREMES), r.choice(FLOATS)])


def some(r, pool, most=4):
    return [r.choice(pool) for _ in range(r.randint(1, most))]


def integer(r):
    return r.choice(EXTREMES) if wild(r, 0.15) else r.choice(INTEGERS)


def number(r):
    return r.choice(NO_FLOATS) if wild(r, 0.1) else r.choice(FLOATS)


def lifetime(r, unit_ms):
    """Far from now, or at once: never a deadline that may pass between two servers."""
    if wild(r, 0.15):
        return r.choice(["0", "-1", "x", "1.5", 2**63 - 1, -(2**63), 2**62, ""])
    return r.randint(200, 2000) * 1000 // unit_ms


def moment(r, unit_ms):
    if wild(r, 0.3):
        return r.choice(["0", "-1", "1", "x", 2**63 - 1, 1000])
    return (int(time.time()) + r.randint(200, 2000)) * 1000 // unit_ms


def expiry(r):
    return r.choice([
        lambda: ["EX", lifetime(r, 1000)],
        lambda: ["PX", lifetime(r, 1)],
        lambda: ["EXAT", moment(r, 1000)],
        lambda: ["PXAT", moment(r, 1)],
    ])()


def set_options(r):
    if r.calm:
        return r.choice([[], ["NX"], ["xx"], ["GET"], ["KEEPTTL"], ["xx", "KEEPTTL"], expiry(r)])
    options = []
    for option in (["NX"], ["xx"], ["GET"], ["KEEPTTL"], None, ["BAD"]):
        if wild(r, 0.02 if option == ["BAD"] else 0.2):
            options.append(option or expiry(r))
    r.shuffle(options)
    return [word for option in options for word in option]


def getex_options(r):
    options = r.choice([[], ["PERSIST"], expiry(r), expiry(r)])
    return options + (r.choice([["PERSIST"], ["BAD"], expiry(r)]) if wild(r, 0.05) else [])


def expire_options(r):
    if r.calm:
        return r.choice([[], ["NX"], ["xx"], ["GT"], ["LT"], ["XX", "LT"]])
    return some(r, ["NX", "XX", "gt", "LT", "BAD"], 2) if r.random() < 0.4 else []


def scan_options(r, typed=False):
    options = []
    if r.random() < 0.5:
        options += ["MATCH", r.choice(PATTERNS)]
    if r.random() < 0.5:
        options += ["COUNT", r.choice([1, 3, 100, 100000])]
    if typed and r.random() < 0.3:
        options += ["TYPE", r.choice(["string", "hash", "SET", "zset", "nothing"])]
    if wild(r, 0.03):
        options += r.choice([["BAD"], ["COUNT", "0"], ["COUNT", "x"], ["MATCH"]])
    return options


def generators(r):
    """What to send, by the way in which it is run."""
    k = lambda: r.choice(KEYS)
    f = lambda: r.choice(FIELDS)
    pairs = lambda pool, most=3: [word for name in some(r, pool, most) for word in (name, value(r))]
    plain = [
        lambda: ["SET", k(), value(r)],
        lambda: ["SET", r.choice(KEYS[:4]), r.choice(INTEGERS)],
        lambda: ["SET", k(), value(r), *set_options(r)],
        lambda: ["SETNX", k(), value(r)],
        lambda: ["SETEX", k(), lifetime(r, 1000), value(r)],
        lambda: ["PSETEX", k(), lifetime(r, 1), value(r)],
        lambda: ["GET", k()],
        lambda: ["GETSET", k(), value(r)],
        lambda: ["GETDEL", k()],
        lambda: ["GETEX", k(), *getex_options(r)],
        lambda: ["MGET", *some(r, KEYS)],
        lambda: ["MSET", *pairs(KEYS[:4])],
        lambda: ["APPEND", k(), value(r)],
        lambda: ["STRLEN", k()],
        lambda: ["GETRANGE", k(), integer(r), integer(r)],
        lambda: ["GETRANGE", k(), r.randint(-15, 15), r.randint(-15, 15)],
        lambda: ["SETRANGE", k(), r.choice([-1, "x"]) if wild(r, 0.2) else r.choice([0, 1, 5, 30]), value(r)],
        lambda: ["INCR", k()],
        lambda: ["DECR", k()],
        lambda: ["INCRBY", k(), integer(r)],
        lambda: ["DECRBY", k(), integer(r)],
        lambda: ["INCRBYFLOAT", k(), number(r)],
        lambda: ["DEL", *some(r, KEYS, 3)],
        lambda: ["UNLINK", k()],
        lambda: ["EXISTS", *some(r, KEYS)],
        lambda: ["TOUCH", *some(r, KEYS)],
        lambda: ["TYPE", k()],
        lambda: ["EXPIRE", k(), lifetime(r, 1000), *expire_options(r)],
        lambda: ["PEXPIRE", k(), lifetime(r, 1), *expire_options(r)],
        lambda: ["EXPIREAT", k(), moment(r, 1000), *expire_options(r)],
        lambda: ["PEXPIREAT", k(), moment(r, 1), *expire_options(r)],
        lambda: [r.choice(["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]), k()],
        lambda: ["PERSIST", k()],
        lambda: ["HSET", k(), *pairs(FIELDS)],
        lambda: ["HMSET", r.choice(KEYS[4:6]), *pairs(FIELDS)],
        lambda: ["HSETNX", k(), f(), value(r)],
        lambda: ["HGET", k(), f()],
        lambda: ["HMGET", k(), *some(r, FIELDS)],
        lambda: [r.choice(["HGETALL", "HKEYS", "HVALS", "HLEN"]), k()],
        lambda: ["HDEL", k(), *some(r, FIELDS)],
        lambda: ["HEXISTS", k(), f()],
        lambda: ["HSTRLEN", k(), f()],
        lambda: ["HINCRBY", r.choice(KEYS[4:6]), f(), integer(r)],
        lambda: ["HINCRBYFLOAT", r.choice(KEYS[4:6]), f(), number(r)],
        lambda: ["SADD", k(), *some(r, FIELDS)],
        lambda: ["SADD", r.choice(KEYS[6:8]), *some(r, FIELDS)],
        lambda: ["SREM", k(), *some(r, FIELDS)],
        lambda: [r.choice(["SMEMBERS", "SCARD"]), k()],
        lambda: ["SISMEMBER", k(), f()],
        lambda: ["SMISMEMBER", k(), *some(r, FIELDS)],
        lambda: ["KEYS", r.choice(PATTERNS)],
    ]
    walks = [
        lambda: ["SCAN", *scan_options(r, typed=True)],
        lambda: ["HSCAN", k(), *scan_options(r)],
        lambda: ["SSCAN", k(), *scan_options(r)],
    ]
    rename = lambda: ["RENAME", k(), k()]
    return plain, walks, rename


ARITIES = """APPEND DBSIZE DECR DECRBY DEL EXISTS EXPIRE EXPIREAT EXPIRETIME GET GETDEL GETEX GETRANGE GETSET HDEL HEXISTS
HGET HGETALL HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HSCAN HSET HSETNX HSTRLEN HVALS INCR INCRBY INCRBYFLOAT KEYS
MGET MSET PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PSETEX PTTL RANDOMKEY SADD SCAN SCARD SET SETEX SETNX SETRANGE
SISMEMBER SMEMBERS SMISMEMBER SREM SSCAN STRLEN TOUCH TTL TYPE UNLINK""".split()


def wrong_arguments(comparison):
    """Too few arguments, too many, and odd numbers of them."""
    for name in ARITIES:
        for count in range(0, 6):
            # Redis is never asked for what a bare name or three words would really do to the data below.
            comparison.command(name.lower(), *["1"] * count)
        comparison.command("FLUSHALL")
    comparison.command("NOSUCHCOMMAND", "a", "b")
    comparison.command("nosuch" * 30, "a" * 200)


def fixed_scripts(comparison):
    run = comparison.command
    run("FLUSHALL")
    run("RANDOMKEY")
    run("SET", "k", "10.50")
    run("RANDOMKEY")
    run("INCRBYFLOAT", "k", "0.1")
    run("GET", "k")
    run("SET", "k", "5.0e3")
    run("INCRBYFLOAT", "k", "2.0e2")
    run("INCRBYFLOAT", "fresh", "0.1")
    run("INCRBYFLOAT", "fresh", "0.2")
    run("HINCRBYFLOAT", "hash", "f", "0.1")
    run("HINCRBYFLOAT", "hash", "f", "0.7")
    run("SET", "n", 2**63 - 2)
    for _ in range(3):
        run("INCR", "n")
    run("SETRANGE", "pad", 100, "x")
    run("GET", "pad")
    run("SETRANGE", "pad", 2**40, "x")
    # Deadlines that pass.
    for words in (["SET", "t1", "v", "PX", 40], ["PSETEX", "t2", 40, "v"], ["SET", "t3", 5], ["PEXPIRE", "t3", 40],
                  ["HSET", "t4", "f", "v"], ["PEXPIRE", "t4", 40], ["SADD", "t5", "m"], ["PEXPIRE", "t5", 40],
                  ["SET", "t6", "v"], ["GETEX", "t6", "PX", 40], ["SET", "t7", "v", "PX", 40], ["PERSIST", "t7"]):
        run(*words)
    time.sleep(0.25)
    for key in ("t1", "t2", "t3", "t4", "t5", "t6", "t7"):
        for name in ("EXISTS", "TTL", "TYPE", "PERSIST"):
            run(name, key)
    for words in (["GET", "t1"], ["SET", "t1", "w", "XX"], ["SET", "t1", "w", "KEEPTTL"], ["TTL", "t1"], ["INCR", "t3"],
                  ["TTL", "t3"], ["HSET", "t4", "g", "w"], ["HGETALL", "t4"], ["TTL", "t4"], ["SADD", "t5", "n"],
                  ["SMEMBERS", "t5"], ["APPEND", "t6", "x"], ["SETNX", "t2", "x"], ["DEL", "t1", "t2", "t3"], ["DBSIZE"]):
        run(*words)


def large_walks(comparison):
    """Rows beyond what one page returns, and a keyspace of some thousand keys."""
    for base in range(0, 3000, 100):
        comparison.command("SADD", "large:set", *range(base, base + 100))
        comparison.command("HSET", "large:hash", *[word for n in range(base, base + 100) for word in (n, n * n)])
        comparison.command("MSET", *[word for n in range(base, base + 100) for word in (f"many:{n}", n)])
    for words in (["SSCAN", "large:set"], ["SSCAN", "large:set", "MATCH", "1*", "COUNT", 77], ["HSCAN", "large:hash"],
                  ["HSCAN", "large:hash", "COUNT", 1000], ["SCAN"], ["SCAN", "COUNT", 500, "MATCH", "many:*7"],
                  ["SCAN", "TYPE", "hash"]):
        comparison.walk(*words)
    comparison.command("SCARD", "large:set")
    comparison.command("HLEN", "large:hash")
    comparison.command("DEL", "large:set", "large:hash")
    comparison.command("DBSIZE")


def transactions(comparison, r, plain, count):
    r.calm = True
    for _ in range(count):
        comparison.command("MULTI")
        for _ in range(r.randint(1, 5)):
            words = r.choice(plain)()
            if any(words[0] in names for names in (TIMES, UNORDERED, PAIRS, FLOATS_ADDED)):
                continue
            comparison.command(*words)
        comparison.command("EXEC")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("redis_port", type=int)
    parser.add_argument("ensue_port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=5000)
    parser.add_argument("--skip", default="", help="of: rename, multi, walks, arity")
    options = parser.parse_args()
    skipped = set(filter(None, options.skip.split(",")))

    redis = Connection(options.host, options.redis_port)
    ensue = Connection(options.host, options.ensue_port)
    version = redis.call(encoded(["INFO", "server"]))[1] or b""
    if f"redis_version:{REDIS_VERSION}".encode() not in version:
        print(f"note: the reference is not Redis {REDIS_VERSION}, error texts may differ")
    comparison = Comparison(redis, ensue)
    comparison.command("FLUSHALL")
    if "arity" not in skipped:
        wrong_arguments(comparison)
    fixed_scripts(comparison)
    if "walks" not in skipped:
        large_walks(comparison)
    comparison.command("FLUSHALL")

    r = random.Random(options.seed)
    r.calm = False
    plain, walks, rename = generators(r)
    for _ in range(min(options.commands, 1_000_000)):
        chance = r.random()
        if chance < 0.03 and "walks" not in skipped:
            comparison.walk(*r.choice(walks)())
        elif chance < 0.04 and "rename" not in skipped:
            comparison.command(*rename())
        elif chance < 0.042:
            comparison.command("FLUSHALL")
        else:
            comparison.command(*r.choice(plain)())
    if "multi" not in skipped:
        transactions(comparison, r, plain, min(options.commands, 5000) // 20)

    print(f"seed {options.seed}: {comparison.passed} passed, {comparison.failed} failed")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
