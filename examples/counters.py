#!/usr/bin/env python3
"""Three datacenters count the same things at the same time, and no increment is lost or counted twice.

Run it against a dev cluster:

    cargo run --release -- dev          # in one terminal
    pip install redis
    python3 examples/counters.py        # in another; --port 7001 is the default

Try it again while a datacenter is cut off (`ensue link dc1 dc2 cut`, `ensue link dc1 dc3 cut`): nothing here waits for
a link, and after `heal` the sum is right.
"""

import argparse
import threading
import time

import redis

INCREMENTS = 1_000

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=7001, help="client port of dc1")
port = parser.parse_args().port
datacenters = [redis.Redis(port=port + number, decode_responses=True) for number in range(3)]


def visit(client):
    for _ in range(INCREMENTS // 100):
        pipeline = client.pipeline(transaction=False)
        for _ in range(100):
            pipeline.incr("page:views")
            pipeline.hincrby("page:by-language", "en", 1)
        pipeline.execute()


def main():
    before = int(datacenters[0].get("page:views") or 0)
    threads = [threading.Thread(target=visit, args=[client]) for client in datacenters]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(threads)} datacenters counted to {INCREMENTS:,} each in {time.monotonic() - begin:.2f} s")

    expected = str(before + 3 * INCREMENTS)
    end = time.monotonic() + 10
    while True:
        seen = [client.get("page:views") for client in datacenters]
        print("page:views in dc1, dc2, dc3:", *seen)
        if set(seen) == {expected}:
            break
        if time.monotonic() > end:
            raise SystemExit("the datacenters do not agree yet; is a link cut?")
        time.sleep(0.1)
    print("every increment counts exactly once")


if __name__ == "__main__":
    main()
