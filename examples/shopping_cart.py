#!/usr/bin/env python3
"""A shopping cart that two devices change at the same time in two datacenters that cannot see each other.

Run it against a dev cluster:

    cargo run --release -- dev                # in one terminal
    pip install redis
    python3 examples/shopping_cart.py         # in another; --port 7001 is the default

The script cuts the link between dc1 and dc2 itself if it finds the binary: ENSUE_BIN, or target/release/ensue. Without
it the story is the same, only faster.

The cart is a hash of quantities and a set of notes. Both merge field by field and member by member: nothing that one
device did is lost because the other one did something else.
"""

import argparse
import os
import pathlib
import subprocess
import time

import redis

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=7001, help="client port of dc1")
port = parser.parse_args().port
phone = redis.Redis(port=port, decode_responses=True)
laptop = redis.Redis(port=port + 1, decode_responses=True)
tablet = redis.Redis(port=port + 2, decode_responses=True)

CART, NOTES = "cart:17", "cart:17:notes"
built = pathlib.Path(__file__).resolve().parents[1] / "target/release/ensue"
ENSUE = os.environ.get("ENSUE_BIN", str(built))


def link(word):
    if pathlib.Path(ENSUE).exists():
        for one, other in (("dc1", "dc2"), ("dc1", "dc3")):
            subprocess.run([ENSUE, "link", one, other, word, "--port", str(port)], check=True, stdout=subprocess.DEVNULL)
        print(f"dc1 {'cannot reach' if word == 'cut' else 'reaches'} the others")


def wait_for(what, condition):
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited too long: {what}")
        time.sleep(0.02)


def digests():
    return {client.execute_command("CAUSAL", "DIGEST") for client in (phone, laptop, tablet)}


def main():
    phone.delete(CART, NOTES)
    # The quantities are counters: adding is not writing a total.
    phone.hincrby(CART, "apples", 2)
    phone.hincrby(CART, "bread", 1)
    wait_for("the cart is in dc2", lambda: laptop.hget(CART, "bread") == "1")
    print("the cart, everywhere:", phone.hgetall(CART))

    link("cut")
    try:
        phone.hincrby(CART, "apples", 1)
        phone.sadd(NOTES, "ring twice")
        # Two things at once, or none of them: the milk does not come without its note.
        laptop.pipeline(transaction=True).hincrby(CART, "milk", 2).sadd(NOTES, "fresh milk only").execute()
        laptop.hincrby(CART, "apples", 4)
        laptop.hdel(CART, "bread")
        print("on the phone, in dc1: ", phone.hgetall(CART), phone.smembers(NOTES))
        print("on the laptop, in dc2:", laptop.hgetall(CART), laptop.smembers(NOTES))
    finally:
        link("heal")

    wait_for("the datacenters agree", lambda: len(digests()) == 1)
    for client in (phone, laptop, tablet):
        assert client.hgetall(CART) == {"apples": "7", "milk": "2"}, client.hgetall(CART)
        assert client.smembers(NOTES) == {"ring twice", "fresh milk only"}
    print("merged, everywhere:   ", tablet.hgetall(CART), tablet.smembers(NOTES))


if __name__ == "__main__":
    main()
