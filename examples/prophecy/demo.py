#!/usr/bin/env python3
"""A page that stays right though one of its four servers lies and another one is out of date.

    cargo build --release
    python3 examples/prophecy/demo.py            # a web page, from Python's own web server
    python3 examples/prophecy/demo.py redis      # a key, from `ensue server`

Four replicas agree on the order of requests, each before a stock server of its own. The server of r3 changes the bytes
of every response, and the one of r4 answers what it answered first, for ever. A sketcher stands before the replicas;
a stock client reads through it, while the page changes. All of it is on this machine's loopback, and gone in the end.

A group of four is promised to bear one liar. Here it bears two, because these two do not say the same: two equal lies
would be believed. The process ends with 0 if the reader saw nothing wrong.
"""

import argparse
import os
import pathlib
import socket
import sys

from stage import ROOT, Stage

READS = 200


def read_key(port, *words):
    parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
    with socket.create_connection(("127.0.0.1", port), 30) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"*%d\r\n" % len(words) + parts)
        line = stream.readline()
        return stream.read(int(line[1:]) + 2)[:-2].decode() if line.startswith(b"$") else line.decode().strip()


def read(stage):
    return stage.page("index.html") if stage.protocol == "http" else read_key(stage.port, "GET", "page")


def write(stage, text):
    """A page is changed behind the replicas; a key through the sketcher."""
    if stage.protocol == "http":
        stage.write_page("index.html", text)
    else:
        read_key(stage.port, "SET", "page", text)


def look(stage, expected, before):
    """Reads, and says what was seen. Until the first read in the order the former text may be seen."""
    texts = [read(stage) for _ in range(READS)]
    changed = texts.index(expected) if expected in texts else READS
    is_right = set(texts[changed:]) == {expected} and set(texts[:changed]) <= {before}
    print(f"  {READS} reads: " + ", ".join(f"{texts.count(text)} times {text!r}" for text in sorted(set(texts))))
    return is_right


def report(stage):
    figures = stage.figures()
    reads, fast = figures["reads_total"], figures["reads_fast_total"]
    print(f"  {fast} of {reads} reads were answered by one replica; {figures['transitions_total']} changes were seen,")
    print(f"  and {figures['stale_caught_total']} old answers were caught.")
    asked, accepted = stage.counts("asked"), stage.counts("accepted")
    stale, lied = stage.counts("stale"), stage.counts("lied")
    for number in stage.numbers:
        words = f"asked {asked[number]:3}, accepted {accepted[number]:3}, old {stale[number]:3}, lies {lied[number]:3}"
        print(f"  r{number}: {words}")
    return [number for number in stage.numbers if lied[number]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("protocol", nargs="?", choices=("http", "redis"), default="http")
    built = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/ensue"
    parser.add_argument("--ensue", default=os.environ.get("ENSUE_BIN", built), type=pathlib.Path)
    args = parser.parse_args()
    with Stage(args.ensue, args.protocol, faults={3: "wrong", 4: "old"}) as stage:
        write(stage, "one")
        print("The page is 'one'; r3 changes its bytes.")
        is_right = look(stage, "one", "one")
        report(stage)
        write(stage, "two")
        print("The page is 'two'; r4 does not know.")
        is_right = look(stage, "two", "one") and is_right
        liars = report(stage)
    print(f"Named: {', '.join(f'r{number}' for number in liars)}. The reader saw {'no lie' if is_right else 'A LIE'}.")
    return 0 if is_right and liars == [3, 4] else 1


if __name__ == "__main__":
    sys.exit(main())
