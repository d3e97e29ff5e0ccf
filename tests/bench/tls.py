#!/usr/bin/env python3
"""Measures what TLS and being watched cost a server, in processor time a command; prints Markdown.

    tls.py [--commands 400000] [--rounds 5] [--pipeline 16] [--record FILE]

It needs redis-benchmark with TLS, and the binary in ENSUE_BIN or target/release/ensue; redis-server is measured
beside it where it has TLS. Each round gives every server the same load with TLS and without, in turns, so that a busy
machine is unfair to all alike; ratios are of the medians over the rounds. Processor time is the server's own, as the
kernel counts it: what the client spends on TLS is not in it. Then Ensue, with nothing else to do, is asked for its
figures nine times a second, and for nothing. One core, eight partitions, a sync a second. Data lies in a temporary
folder. Only what was started here is stopped.
"""

import argparse
import contextlib
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from cluster import binary  # noqa: E402
from fairness import free_port, processor_s, wait_until_it_serves  # noqa: E402

CLIENTS, KEYS, VALUE_BYTES = 50, 100_000, 32
# Answers that are younger than a tenth of a second are shown again.
SCRAPE_PAUSE_S = 0.11
SCRAPES = 300


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{words[0]}: {done.stdout}{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def started(words, ports):
    process = subprocess.Popen(
        [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for port in ports:
            wait_until_it_serves(port)
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def ensue_server(folder, port, metrics):
    lines = [
        "self dc1", f"node dc1 127.0.0.1:{port + 10_000} cores 1", "partitions 8", f"port {port}",
        f"tls-port {port + 1}", f"tls-cert-file {folder}/dc1-node0.pem", f"tls-key-file {folder}/dc1-node0.key",
        f"tls-ca-cert-file {folder}/ca.pem", "tls-auth-clients no", "bind 127.0.0.1", f"dir {folder}/ensue",
        "appendfsync everysec", f"metrics-port {metrics}", "",
    ]
    config = pathlib.Path(folder, "server.conf")
    config.write_text("\n".join(lines))
    with started([binary(), "server", "--config", config], [port]) as process:
        yield process


def redis_words(folder, port):
    own = pathlib.Path(folder, "redis")
    own.mkdir()
    return [
        "redis-server", "--port", port, "--tls-port", port + 1, "--tls-cert-file", f"{folder}/dc1-node0.pem",
        "--tls-key-file", f"{folder}/dc1-node0.key", "--tls-ca-cert-file", f"{folder}/ca.pem", "--tls-auth-clients",
        "no", "--bind", "127.0.0.1", "--dir", own, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
    ]


def has_tls():
    """Whether the redis-server here was built with TLS: it says so about a file that is not there."""
    if not shutil.which("redis-server"):
        return False
    words = ["redis-server", "--port", "0", "--tls-port", "1", "--tls-cert-file", "/dev/null/none"]
    words += ["--tls-key-file", "/dev/null/none", "--tls-ca-cert-file", "/dev/null/none"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    return "Failed to configure TLS" in done.stdout or "Failed to load certificate" in done.stdout


class Load:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder

    def us(self, process, port, command, tls):
        """Processor time of a command, in microseconds."""
        arguments = self.arguments
        words = ["redis-benchmark", "-p", port + tls, "-t", command, "-n", arguments.commands, "-c", CLIENTS]
        words += ["-P", arguments.pipeline, "-r", KEYS, "-d", VALUE_BYTES, "-q"]
        if tls:
            words += ["--tls", "--cacert", f"{self.folder}/ca.pem"]
        before = processor_s(process)
        run(*words)
        return (processor_s(process) - before) / arguments.commands * 1e6


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return len(answer.read())


def costs_of_tls(arguments, servers, load):
    """By server, command and whether TLS was used: one figure a round."""
    found = {}
    for number in range(arguments.rounds):
        for name, (process, port) in servers.items():
            for command in ("set", "get"):
                for tls in (number % 2 == 0, number % 2 == 1):
                    us = load.us(process, port, command, tls)
                    found.setdefault((name, command, tls), []).append(us)
    return found


def processor_share(process, ask):
    """Processor time a second while something is asked for each time that there is something new, or nothing is."""
    before, began = processor_s(process), time.monotonic()
    for _ in range(SCRAPES):
        ask()
        time.sleep(SCRAPE_PAUSE_S)
    took_s = time.monotonic() - began
    return (processor_s(process) - before) / took_s, took_s


def costs_of_answers_ms(process, metrics):
    """What an idle server takes more for each answer than for nothing, by path."""
    idle, _ = processor_share(process, lambda: None)
    found = {}
    for path in ("/metrics", "/v1/state"):
        share, took_s = processor_share(process, lambda path=path: get(f"http://127.0.0.1:{metrics}{path}"))
        found[path] = max(share - idle, 0) * took_s / SCRAPES * 1e3
    return found


def report(tls, answers):
    middle = {key: statistics.median(values) for key, values in tls.items()}
    lines = [
        "| server | command | without TLS, µs | with TLS, µs | ratio |", "|---|---|--:|--:|--:|",
    ]
    for name, command in sorted({key[:2] for key in middle}):
        plain, sealed = (middle[name, command, tls] for tls in (False, True))
        lines.append(f"| {name} | {command} | {plain:.2f} | {sealed:.2f} | {sealed / plain:.2f} |")
    lines += ["", "| path | ms of processor an answer | of a core, once a second |", "|---|---|---|"]
    lines += [f"| `{path}` | {ms:.2f} | {ms / 10:.2f} % |" for path, ms in answers.items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pipeline", type=int, default=16)
    parser.add_argument("--record", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        run(binary(), "certificates", "--out", folder, "dc1")
        load = Load(arguments, folder)
        port, other, metrics = free_port(), free_port(), free_port()
        servers = {"ensue": (stack.enter_context(ensue_server(folder, port, metrics)), port)}
        if has_tls():
            process = stack.enter_context(started(redis_words(folder, other), [other]))
            servers["redis-server"] = (process, other)
        tls = costs_of_tls(arguments, servers, load)
        answers = costs_of_answers_ms(servers["ensue"][0], metrics)
    text = report(tls, answers)
    print(text)
    if arguments.record:
        arguments.record.write_text(text)


if __name__ == "__main__":
    main()
