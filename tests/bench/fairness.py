#!/usr/bin/env python3
"""Measures what one client waits beside many that pipeline, and what serving it costs; prints Markdown.

    fairness.py NAME=BINARY… [--clients 20] [--pipeline 1000] [--keys 0] [--commands 2000000] [--rounds 4]

Each round gives every binary the same load, SET and then GET, one after the other, so that a busy machine is unfair to
all alike; the median of the rounds counts. Beside redis-benchmark one connection sends a PING every two milliseconds.
Processor time is the server's own, as the kernel counts it. Data lies in a temporary folder, on one core and eight
partitions that sync every second. Only what was started here is stopped.
"""

import argparse
import contextlib
import os
import pathlib
import random
import socket
import statistics
import subprocess
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


def processor_s(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_port():
    """A port that is free with the one ten thousand above it."""
    while True:
        port = random.randrange(21_000, 29_000)
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 10_000))
            return port


@contextlib.contextmanager
def server(binary):
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        lines = [
            "self dc1", f"node dc1 127.0.0.1:{port + 10_000} cores 1", "partitions 8", f"port {port}",
            "bind 127.0.0.1", f"dir {directory}/data", "appendfsync everysec", "",
        ]
        config = pathlib.Path(directory, "server.conf")
        config.write_text("\n".join(lines))
        process = subprocess.Popen(
            [binary, "server", "--config", config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until_it_serves(port)
            yield process.pid, port
        finally:
            process.kill()
            process.wait()


def wait_until_it_serves(port):
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(b"SET x 1\r\n")
            if connection.recv(100) == b"+OK\r\n":
                return
        time.sleep(0.05)
    raise SystemExit("the server does not serve")


def trial(process, port, what, options):
    """Commands a second, microseconds of processor time a command, and the PINGs' milliseconds in their order."""
    command = ["redis-benchmark", "-p", port, "-c", options.clients, "-P", options.pipeline, "-n", options.commands]
    command += ["-t", what, "--csv", *(["-r", options.keys] if options.keys else [])]
    used = processor_s(process)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        load = subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        time.sleep(0.15)
        waited = []
        while load.poll() is None:
            begin = time.perf_counter()
            connection.sendall(b"PING\r\n")
            connection.recv(64)
            waited.append(1_000 * (time.perf_counter() - begin))
            time.sleep(0.002)
    used = processor_s(process) - used
    rate = float(load.stdout.read().splitlines()[-1].split('","')[1])
    # The last ones may have come after the load.
    return rate, 1e6 * used / options.commands, sorted(waited[:-3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", nargs="+", metavar="NAME=BINARY")
    for name, value in (("clients", 20), ("pipeline", 1_000), ("keys", 0), ("commands", 2_000_000), ("rounds", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    binaries = [binary.split("=", 1) for binary in options.binaries]
    trials = {}
    for _ in range(options.rounds):
        for name, binary in binaries:
            with server(binary) as (process, port):
                for what in ("set", "get"):
                    trials.setdefault((what, name), []).append(trial(process, port, what, options))
    print("| load | server | commands/s | µs of processor a command | PING p50 ms | p99 ms |")
    print("|---|---|--:|--:|--:|--:|")
    for what in ("set", "get"):
        for name, _ in binaries:
            rates, costs, waits = zip(*trials[what, name])
            quantile = [statistics.median(wait[int(part * len(wait))] for wait in waits) for part in (0.5, 0.99)]
            rate, cost = statistics.median(rates), statistics.median(costs)
            print(f"| {what.upper()} | {name} | {rate:,.0f} | {cost:.3f} | {quantile[0]:.2f} | {quantile[1]:.2f} |")


if __name__ == "__main__":
    main()
