#!/usr/bin/env python3
"""A user who is served by two datacenters and never meets an older state than the one they have seen.

Run it against a dev cluster:

    cargo run --release -- dev          # in one terminal
    pip install redis
    python3 examples/session.py         # in another; --port 7001 is the default

A web application keeps the token where it keeps the login, in a cookie for instance: `CAUSAL TOKEN` at the end of a
request, `CAUSAL MERGE` at the beginning of the next one, whichever datacenter serves it.
"""

import argparse

import redis

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=7001, help="client port of dc1")
port = parser.parse_args().port


def session(number):
    """One connection is one session: not a pool, in which requests would be strangers to each other."""
    return redis.Redis(port=port + number - 1, decode_responses=True, single_connection_client=True)


def main():
    with session(1) as home:
        # Two keys, in any two partitions: one transaction, visible as a whole in every datacenter.
        home.mset({"user:17:name": "Ada", "user:17:city": "London"})
        home.set("user:17:city", "Paris")
        token = home.execute_command("CAUSAL", "TOKEN")
    print(f"dc1: moved to Paris; the cookie holds {len(token)} characters")

    with session(2) as abroad:
        print(f"dc2, asked at once and without the cookie: {abroad.get('user:17:city')!r}")
        try:
            # Waits until dc2 has everything that the user has seen. The links of `ensue dev` take 40 ms.
            abroad.execute_command("CAUSAL", "MERGE", token, "TIMEOUT", 2_000)
        except redis.ResponseError as error:
            # NOTYET: dc2 is cut off. Say so, try another datacenter, or go on with what is here; never lie.
            raise SystemExit(f"dc2 is not there yet: {error}") from None
        city = abroad.get("user:17:city")
        print(f"dc2, with the cookie: {city!r}")
        assert city == "Paris"

        abroad.incr("user:17:visits")
        print(f"datacenters that hold it durably: {abroad.execute_command('CAUSAL', 'WAIT', 3, 'TIMEOUT', 5_000)}")


if __name__ == "__main__":
    main()
