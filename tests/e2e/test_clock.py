"""A datacenter whose machine's clock jumps two hours ahead, on real processes: it knows it, harms nobody, and is brought back."""

import shutil
import subprocess

import pytest
import redis
from cluster import ensue, wait_until

HOURS_AHEAD_S = 7_200
KEYSPACES = {0: "eiger", 1: "cure"}

# Stands before the C library's function, and adds what a file says.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *ts) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, ts);
    if (result == 0 && id == CLOCK_REALTIME) {
        FILE *file = fopen(getenv("CLOCK_OFFSET"), "r");
        long seconds = 0;
        if (file) {
            if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
            fclose(file);
        }
        ts->tv_sec += seconds;
    }
    return result;
}
"""


class WildClock:
    """The environment of a process whose clock is set by this test."""

    def __init__(self, directory):
        self.offset = directory / "offset"
        source, library = directory / "clock.c", directory / "clock.so"
        source.write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(self.offset)}
        self.set(0)

    def set(self, seconds):
        # Whoever reads it meanwhile finds the one or the other.
        fresh = self.offset.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.rename(self.offset)


def refusal(client):
    """The error that a write gets, if it does."""
    try:
        client.incr("probe")
    except redis.ResponseError as error:
        return str(error)
    return ""


@pytest.mark.skipif(shutil.which("cc") is None, reason="it needs a C compiler for the clock")
def test_a_clock_two_hours_ahead(servers, tmp_path):
    clock = WildClock(tmp_path)
    directives = [f"keyspace {number} protocol {name}" for number, name in KEYSPACES.items()]
    for name in ("dc1", "dc3"):
        servers.start(name, *directives)
    # It would refuse writes before this test has made one.
    servers.start("dc2", *directives, "stop-writes-on-clock-ahead no", environment=clock.environment)

    def client(name, keyspace=0):
        return redis.Redis(port=servers.port(name), db=keyspace, socket_timeout=10, decode_responses=True)

    def serves(name):
        try:
            return client(name).dbsize() >= 0
        except redis.RedisError:
            return False

    for name in ("dc1", "dc2", "dc3"):
        wait_until(lambda name=name: serves(name), 20, f"{name} serves")
    for keyspace in KEYSPACES:
        client("dc1", keyspace).set("shared", "before")
        wait_until(lambda k=keyspace: client("dc2", k).get("shared") == "before", 10, "it is in dc2")

    clock.set(HOURS_AHEAD_S)
    acknowledged = {}
    for keyspace in KEYSPACES:
        with client("dc2", keyspace) as ahead:
            ahead.set("shared", "ahead")
            acknowledged[keyspace] = ahead.incrby("sum", 41)
    status = lambda name: ensue("status", "--port", servers.port(name)).stdout
    wait_until(lambda: "CLOCKAHEAD: time refused by dc1" in status("dc2"), 10, "dc2 knows that it is ahead")
    assert "refuses the time of dc2" in status("dc1")
    assert "CLOCKAHEAD" in (tmp_path / "dc2.log").read_text()
    for keyspace in KEYSPACES:
        # The others go on, and dc2 answers reads.
        assert client("dc1", keyspace).set("other", 1)
        wait_until(lambda k=keyspace: client("dc3", k).get("other") == "1", 10, "the others go on")
        assert client("dc1", keyspace).get("shared") == "before"
        assert client("dc2", keyspace).get("shared") == "ahead"

    clock.set(0)
    servers.end("dc2")
    servers.start("dc2", *directives, environment=clock.environment)
    wait_until(lambda: serves("dc2"), 20, "dc2 serves")
    wait_until(lambda: refusal(client("dc2")).startswith("CLOCKAHEAD"), 10, "logical time never goes back")
    servers.end("dc2")
    data = servers.data("dc2")
    shown = ensue("recover", data, "--clock")
    assert shown.returncode == 0 and "nothing was changed" in shown.stdout, shown.stdout + shown.stderr
    done = ensue("recover", data, "--clock", "--yes")
    assert done.returncode == 0 and "its times are changed" in done.stdout, done.stdout + done.stderr
    again = ensue("recover", data, "--clock")
    assert "0 times lie too far ahead" in again.stdout, again.stdout
    checked = ensue("fsck", data)
    assert checked.returncode == 0, checked.stdout + checked.stderr

    servers.start("dc2", *directives, environment=clock.environment)
    wait_until(lambda: serves("dc2"), 20, "dc2 serves again")
    for keyspace in KEYSPACES:
        assert client("dc2", keyspace).get("shared") == "ahead"
        assert client("dc2", keyspace).get("sum") == str(acknowledged[keyspace])
        for name in ("dc1", "dc3"):
            told = lambda k=keyspace, n=name: client(n, k).get("sum") == str(acknowledged[k])
            wait_until(told, 75, f"{name} has what dc2 acknowledged", pause=0.2)
            assert client(name, keyspace).get("shared") == "ahead"
    wait_until(lambda: not refusal(client("dc2")), 10, "dc2 takes writes again")
    for keyspace in KEYSPACES:
        digests = lambda k=keyspace: {servers.ask(n, "CAUSAL", "DIGEST", k) for n in ("dc1", "dc2", "dc3")}
        wait_until(lambda: len(digests()) == 1, 10, "all hold the same")
