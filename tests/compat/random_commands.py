"""Runs random commands on a real Redis and on Ensue, in RESP2 and RESP3, and compares the replies.

What is drawn, and which replies may differ, is said by who uses this: `lists.py`, `sorted_sets.py`,
`streams.py`.
"""

import argparse
import random

from compare import Connection, encoded

SHOWN_MAX = 20


class Draw:
    """A source of random commands; `command` is given by who draws."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, share):
        return self.random.random() < share

    def one(self, choices):
        return self.random.choice(choices)

    def some(self, choices, most):
        return [self.one(choices) for _ in range(self.random.randint(1, most))]

    def option(self, share, *words):
        return [str(word) for word in words] if self.chance(share) else []


def compare(redis, ensue, draw, commands, is_same):
    """How many of the replies differ. `is_same` is asked about the words of a command and both replies."""
    different = 0
    for place in range(commands):
        words = draw.command()
        one, other = (server.call(encoded(words)) for server in (redis, ensue))
        if not is_same(words, one, other):
            different += 1
            if different <= SHOWN_MAX:
                print(f"DIFFERENT ({place}): {words}\n  redis: {one!r:.500}\n  ensue: {other!r:.500}")
    return different


def main(description, draw, is_same):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("redis", type=int)
    parser.add_argument("ensue", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=5_000)
    options = parser.parse_args()
    different = 0
    for version in (b"2", b"3"):
        servers = [Connection("127.0.0.1", port) for port in (options.redis, options.ensue)]
        for server in servers:
            server.call([b"HELLO", version])
            server.call([b"FLUSHALL"])
        different += compare(*servers, draw(options.seed), options.commands, is_same)
    print(f"{2 * options.commands - different} passed, {different} failed")
    return 1 if different else 0
