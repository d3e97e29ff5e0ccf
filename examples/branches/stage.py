"""Where the examples play: sessions in the datacenters of a dev cluster, links that are cut, and lines on the terminal."""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

COLOURS = sys.stdout.isatty() and "NO_COLOR" not in os.environ
CODES = {"dc1": "36", "dc2": "33", "dc3": "35", "good": "32", "bad": "31", "title": "1", "quiet": "2"}
PATIENCE_S = 20


def paint(style, text):
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if COLOURS else str(text)


def title(text):
    print(f"\n{paint('title', text)}")


def tell(who, text):
    """One line: what happened, and in which datacenter if it matters."""
    print(f"  {paint(who, f'{who}:')} {text}" if who else f"  {text}")


def arguments(description, *more):
    """`--port`, the client port of dc1, and `--flat`, a keyspace that has no branches."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--port", type=int, default=7001, help="client port of dc1; dc2 has the next one")
    parser.add_argument("--keyspace", type=int, default=0, help="a keyspace with branches")
    parser.add_argument("--flat", type=int, default=1, help="a keyspace without, for comparison")
    for name, options in more:
        parser.add_argument(name, **options)
    return parser.parse_args()


def session(port, keyspace=0):
    """A client of one connection, for a session is a connection; never repeats a command by itself. Pipelines use the
    same connection."""
    pool = redis.ConnectionPool(
        host="127.0.0.1",
        port=port,
        db=keyspace,
        protocol=3,
        decode_responses=True,
        max_connections=1,
        socket_timeout=PATIENCE_S,
        retry=Retry(NoBackoff(), 0),
    )
    return redis.Redis(connection_pool=pool)


def has_branches(client):
    try:
        client.execute_command("BRANCH", "LIST")
    except redis.ResponseError as error:
        if str(error).startswith("NOBRANCHES"):
            return False
        raise
    return True


def require_branches(client, keyspace):
    if not has_branches(client):
        raise SystemExit(f"keyspace {keyspace} has no branches: start `ensue dev --protocol tardis --keyspace 1=eiger`")


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited too long: {what}")
        time.sleep(0.02)


def wait_for_same_states(sessions):
    """Until all datacenters have the same leaves."""

    def agree():
        return len({one.execute_command("BRANCH", "DIGEST", "LEAVES") for one in sessions}) == 1

    wait_for("all datacenters have the same states", agree)


class Links:
    """The links of the dev cluster, if the binary is found: ENSUE_BIN, or what `cargo build --release` leaves."""

    def __init__(self, port):
        built = pathlib.Path(__file__).resolve().parents[2] / "target/release/ensue"
        self.port = port
        self.binary = os.environ.get("ENSUE_BIN", str(built))
        if not pathlib.Path(self.binary).exists():
            raise SystemExit("the binary that cuts links is not there: build it, or say where it is with ENSUE_BIN")

    def change(self, one, other, word):
        command = [self.binary, "link", f"dc{one}", f"dc{other}", word, "--port", str(self.port)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def cut(self, datacenters=3):
        """No datacenter hears another inside."""
        pairs = [(one, other) for one in range(1, datacenters + 1) for other in range(one + 1, datacenters + 1)]
        for one, other in pairs:
            self.change(one, other, "cut")
        tell("", paint("quiet", "the links between the datacenters are cut"))
        try:
            yield
        finally:
            for one, other in pairs:
                self.change(one, other, "heal")
            tell("", paint("quiet", "the links are healed"))
