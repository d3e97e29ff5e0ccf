#!/usr/bin/env python3
"""Measures Ensue beside Debian's redis-server, and what causality costs; prints Markdown and draws a chart.

    report.py [--rounds 3] [--seconds 2.5] [--only throughput,cores,visibility,protocols] [--svg docs/figures/throughput.svg]

It needs redis-server, redis-benchmark (package redis-tools) and redis-py, and the binary in ENSUE_BIN or
target/release/ensue. Both servers sync every second and see the same load in the same run: rounds go back and forth
between them, so that a busy machine is unfair to both alike, and the median of the rounds counts. Data lies in a
temporary folder. Only what was started here is stopped.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import redis  # noqa: E402
from cluster import Cluster, binary, wait_until  # noqa: E402
from ports import Ports  # noqa: E402

CLIENTS = 50
VALUE_BYTES = 64
PIPELINES = (1, 16, 64)
# redis-benchmark's key space: one key, as it does by default, or this many.
KEYS = (None, 100_000)
TRIAL_S = 0.4
VISIBILITY_DELAY_MS = 40
VISIBILITY_WRITES = 100
COMMAND_LINES = []


def told(words):
    """Remembers a command line for the report, and returns it."""
    line = shlex.join(map(str, words))
    line = re.sub(r"--port \d+", "--port PORT", re.sub(r"--dir \S+", "--dir DIR", line.replace(binary(), "ensue")))
    if line not in COMMAND_LINES:
        COMMAND_LINES.append(line)
    return list(map(str, words))


@contextlib.contextmanager
def redis_server(directory):
    """Debian's server, with a log that is synced every second, as Ensue's is."""
    ports = Ports()
    port = ports.first
    folder = pathlib.Path(tempfile.mkdtemp(prefix="redis-", dir=directory))
    words = ["redis-server", "--port", port, "--dir", folder, "--appendonly", "yes"]
    words += ["--appendfsync", "everysec", "--save", "", "--daemonize", "no"]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(told(words), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for_ping(port, process, folder / "log.txt")
        yield port
    finally:
        process.terminate()
        process.wait(20)
        ports.close()


@contextlib.contextmanager
def ensue_dev(directory, **shape):
    """A dev cluster; `flags` are passed on."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ensue-", dir=directory))
    cluster = Cluster(folder, **shape)
    told([binary(), *cluster.words])
    with contextlib.redirect_stdout(None):
        cluster.start()
    try:
        yield cluster
    finally:
        with contextlib.redirect_stdout(None):
            cluster.stop()


@contextlib.contextmanager
def ensue_server(directory, partitions, cores):
    """One datacenter, started as it would be in production."""
    ports = Ports()
    port = ports.first
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ensue-", dir=directory))
    words = [binary(), "server", "--port", port, "--dir", folder, "--appendfsync", "everysec"]
    words += ["--partitions", partitions, "--cores", cores]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(told(words), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for_ping(port, process, folder / "log.txt")
        yield port
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        ports.close()


def wait_for_ping(port, process, log):
    def answers():
        if process.poll() is not None:
            raise SystemExit(f"a server ended with {process.returncode}:\n{log.read_text(errors='replace')}")
        with contextlib.suppress(redis.RedisError), redis.Redis(port=port, socket_timeout=2) as client:
            return client.ping()

    wait_until(answers, 30, f"port {port} answers")


def benchmark(port, test, pipeline, keys, requests):
    """Requests a second as redis-benchmark reports them."""
    words = ["redis-benchmark", "-p", port, "-c", CLIENTS, "-d", VALUE_BYTES, "-t", test, "-P", pipeline]
    words += ["-n", requests, "--csv", *(["-r", keys] if keys else [])]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=180)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    for row in rows:
        if row[0].strip('"').upper() == test.upper():
            return float(row[1].strip('"'))
    raise SystemExit(f"redis-benchmark said nothing of {test}:\n{done.stdout}{done.stderr}")


def requests_for(port, test, pipeline, keys, seconds):
    """How many requests take about that long, found by a short trial."""
    trial = 4_000 * pipeline
    rate = benchmark(port, test, pipeline, keys, trial)
    if trial / rate < TRIAL_S:
        rate = benchmark(port, test, pipeline, keys, int(rate * TRIAL_S))
    return max(trial, int(rate * seconds))


def compare(ports, rounds, seconds, pipelines, note):
    """Medians for every load: rows of (test, pipeline, keys, {name: rate})."""
    rows = []
    for keys in KEYS:
        for pipeline in pipelines:
            # SET first: GET shall find what it asks for.
            for test in ("set", "get"):
                if keys:
                    fill(ports, keys)
                counts = {name: requests_for(port, test, pipeline, keys, seconds) for name, port in ports.items()}
                rates = {name: [] for name in ports}
                for number in range(rounds):
                    # The other one first in every second round.
                    order = list(ports) if number % 2 == 0 else list(reversed(ports))
                    for name in order:
                        rates[name].append(benchmark(ports[name], test, pipeline, keys, counts[name]))
                medians = {name: statistics.median(measured) for name, measured in rates.items()}
                note(f"{test} -P {pipeline} -r {keys or 1}: {rates}")
                rows.append((test, pipeline, keys, medians))
    return rows


def fill(ports, keys):
    """Gives GET something to find: redis-benchmark's keys, once."""
    for port in ports.values():
        with redis.Redis(port=port, socket_timeout=30) as client:
            if client.exists(f"key:{keys - 1:012}"):
                continue
            for begin in range(0, keys, 1_000):
                pipeline = client.pipeline(transaction=False)
                for number in range(begin, begin + 1_000):
                    pipeline.set(f"key:{number:012}", "x" * VALUE_BYTES)
                pipeline.execute()


def table(rows, ensue_name):
    lines = [f"| load | pipeline | keys | redis-server | {ensue_name} | ratio |", "|---|--:|--:|--:|--:|--:|"]
    for test, pipeline, keys, medians in rows:
        of_redis, of_ensue = medians["redis"], medians["ensue"]
        lines.append(
            f"| {test.upper()} | {pipeline} | {keys or 1:,} | {of_redis:,.0f} | {of_ensue:,.0f} "
            f"| {of_ensue / of_redis:.2f} |"
        )
    return "\n".join(lines)


def throughput(directory, options, note):
    """One partition on one core, against one Redis."""
    with redis_server(directory) as of_redis, ensue_server(directory, 1, 1) as of_ensue:
        ports = {"redis": of_redis, "ensue": of_ensue}
        return compare(ports, options.rounds, options.seconds, PIPELINES, note)


def two_cores(directory, options, note):
    """Four partitions on two cores, against one Redis."""
    with redis_server(directory) as of_redis, ensue_server(directory, 4, 2) as of_ensue:
        ports = {"redis": of_redis, "ensue": of_ensue}
        return compare(ports, options.rounds, options.seconds, PIPELINES[-1:], note)


def visibility(directory, note):
    """Milliseconds from a write in dc1 to the first read in dc2 that shows it, less the delay of the link.

    The clock starts when the write is acknowledged; a reader polls dc2 all the time.
    """
    over = []
    with ensue_dev(directory, delay=f"{VISIBILITY_DELAY_MS}ms") as cluster:
        with cluster.session(1) as writer, cluster.session(2) as reader:
            for number in range(VISIBILITY_WRITES + 5):
                begin = time.perf_counter()
                writer.set("visible", number)
                while reader.get("visible") != str(number):
                    if time.perf_counter() - begin > 10:
                        raise SystemExit("a write did not become visible within 10 s")
                if number >= 5:
                    over.append((time.perf_counter() - begin) * 1_000 - VISIBILITY_DELAY_MS)
                time.sleep(0.005)
    note(f"visibility beyond the delay, ms: {[round(value, 2) for value in sorted(over)]}")
    over.sort()
    return statistics.median(over), over[int(len(over) * 0.99) - 1]


def protocols(directory, options, note):
    """SET and GET in dc1 of three datacenters: eiger as a share of eventual."""
    rates = {}
    with contextlib.ExitStack() as stack:
        ports = {}
        for name in ("eventual", "eiger"):
            cluster = stack.enter_context(ensue_dev(directory, delay="1ms", flags=["--protocol", name]))
            ports[name] = cluster.client_port(1)
        for test in ("set", "get"):
            counts = {
                name: requests_for(port, test, 16, KEYS[-1], options.seconds) for name, port in ports.items()
            }
            for number in range(options.rounds):
                for name in ports if number % 2 == 0 else reversed(ports):
                    rate = benchmark(ports[name], test, 16, KEYS[-1], counts[name])
                    rates.setdefault((test, name), []).append(rate)
                    # What was written travels on; the next one must not pay for it.
                    settle(ports[name])
    note(f"protocols: {rates}")
    return {key: statistics.median(measured) for key, measured in rates.items()}


def settle(port):
    """Waits until the other datacenters hold what dc1 holds."""

    def agree():
        digests = []
        for datacenter in range(3):
            with redis.Redis(port=port + datacenter, socket_timeout=30) as client:
                digests.append(client.execute_command("CAUSAL", "DIGEST"))
        return len(set(digests)) == 1

    wait_until(agree, 60, "the datacenters agree", pause=0.1)


def chart(rows, title):
    """A bar chart as SVG: a pair of bars for each load, and their ratio."""
    width, row_height, left, right, top = 760, 46, 150, 110, 64
    most = max(max(medians.values()) for *_, medians in rows)
    height = top + row_height * len(rows) + 44
    colours = {"redis": "#9aa3ad", "ensue": "#1f7a6d"}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="#1b1f24">{escape(title)}</text>',
    ]
    for index, (name, label) in enumerate((("redis", "redis-server"), ("ensue", "ensue"))):
        x = 16 + index * 130
        parts.append(f'<rect x="{x}" y="38" width="12" height="12" rx="2" fill="{colours[name]}"/>')
        parts.append(f'<text x="{x + 18}" y="49" fill="#444b54">{label}</text>')
    for index, (test, pipeline, keys, medians) in enumerate(rows):
        y = top + index * row_height
        label = f"{test.upper()}, pipeline {pipeline}"
        parts.append(f'<text x="{left - 10}" y="{y + 17}" text-anchor="end" fill="#1b1f24">{label}</text>')
        parts.append(
            f'<text x="{left - 10}" y="{y + 32}" text-anchor="end" font-size="11" fill="#7a828c">'
            f'{"one key" if not keys else f"{keys:,} keys"}</text>'
        )
        for place, name in enumerate(("redis", "ensue")):
            length = max(1.0, medians[name] / most * (width - left - right))
            bar_y = y + 4 + place * 16
            parts.append(
                f'<rect x="{left}" y="{bar_y}" width="{length:.1f}" height="14" rx="2" fill="{colours[name]}"/>'
            )
            parts.append(
                f'<text x="{left + length + 6:.1f}" y="{bar_y + 11}" font-size="11" fill="#444b54">'
                f"{medians[name] / 1_000:,.0f} k/s"
                + (f" ({medians['ensue'] / medians['redis']:.2f}×)" if name == "ensue" else "")
                + "</text>"
            )
    parts.append(
        f'<text x="16" y="{height - 16}" font-size="11" fill="#7a828c">requests a second, {CLIENTS} clients, '
        f"{VALUE_BYTES}-byte values, log synced every second; median of the rounds; longer is better</text>"
    )
    parts.append("</svg>\n")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.5, help="length of one run")
    parser.add_argument("--only", default="throughput,cores,visibility,protocols", help="parts, with commas")
    parser.add_argument("--svg", type=pathlib.Path, help="draw the throughput chart into this file")
    parser.add_argument("--verbose", action="store_true", help="print every measurement to standard error")
    options = parser.parse_args()
    for program in ("redis-server", "redis-benchmark"):
        if not shutil.which(program):
            raise SystemExit(f"{program} is not installed (Debian: apt install redis)")
    parts = set(options.only.split(","))

    def note(line):
        if options.verbose:
            print(line, file=sys.stderr, flush=True)

    print("# Figures\n")
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    print(f"Machine: {os.cpu_count()} cores. redis-server {version.removeprefix('v=')}. "
          f"{CLIENTS} clients, {VALUE_BYTES}-byte values, requests a second, median of {options.rounds} rounds.\n")
    with tempfile.TemporaryDirectory(prefix="ensue-report-") as name:
        directory = pathlib.Path(name)
        if "throughput" in parts:
            rows = throughput(directory, options, note)
            print("## One datacenter of one partition, on one core\n")
            print(table(rows, "ensue") + "\n", flush=True)
            if options.svg:
                options.svg.parent.mkdir(parents=True, exist_ok=True)
                options.svg.write_text(chart(rows, "Ensue beside redis-server: one partition, one core each"))
        if "cores" in parts:
            print("## One datacenter of four partitions, on two cores\n")
            print(table(two_cores(directory, options, note), "ensue, 2 cores") + "\n", flush=True)
        if "visibility" in parts:
            median, worst = visibility(directory, note)
            print("## Visibility\n")
            print(f"A write in dc1 is readable in dc2 after the link's delay of {VISIBILITY_DELAY_MS} ms plus "
                  f"{median:.2f} ms (median of {VISIBILITY_WRITES}; 99th percentile {worst:.2f} ms).\n", flush=True)
        if "protocols" in parts:
            rates = protocols(directory, options, note)
            print("## What causality costs\n")
            print("Three datacenters in one process, load on dc1, pipeline 16.\n")
            print("| load | eventual | eiger | ratio |\n|---|--:|--:|--:|")
            for test in ("set", "get"):
                eventual, eiger = rates[test, "eventual"], rates[test, "eiger"]
                print(f"| {test.upper()} | {eventual:,.0f} | {eiger:,.0f} | {eiger / eventual:.2f} |")
            print(flush=True)
    print("## Command lines\n\n```text")
    print("\n".join(COMMAND_LINES))
    print(f"redis-benchmark -p PORT -c {CLIENTS} -d {VALUE_BYTES} -t get|set -P {'|'.join(map(str, PIPELINES))} "
          f"-n REQUESTS [-r {KEYS[-1]}]\n```")


if __name__ == "__main__":
    main()
