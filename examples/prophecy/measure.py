#!/usr/bin/env python3
"""What Prophecy saves: reads a second through it, beside reads that all replicas execute.

    cargo build --release
    python3 examples/prophecy/measure.py [--seconds 8]
    python3 examples/prophecy/measure.py --latency        # of one client, of null reads

Two sketchers stand before one group of four replicas, and `ensue bench` loads them in turns of half a second: one reads
fast, the other as PBFT optimizes reads (every replica executes them, 2f+1 answers agree) or in the order. So many fast
answers in a thousand are treated as if they did not agree, as the paper did it. Everything shares one machine: a ratio
is one of processor time, where the paper's replicas had a machine each. The output is a table.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from stage import ROOT, Stage

# What the paper says of Prophecy over proxied PBFT with optimized reads, in its sections 7.2 and 7.4.
PAPER = {("null", 0): "1.69", ("null", 150): "0.93", ("94 us", 0): "3.72", ("94 us", 150): "2.05"}
# Of one client's null reads, in microseconds: median and 99th percentile, in its table 2.
PAPER_LATENCY = {"fast": (256, 286), "fast, all fail": (617, 768), "optimized": (296, 544), "replicated": (433, 706)}
CLIENTS = 40


def bench(args, stage, clients=CLIENTS):
    one, other = (f"redis://127.0.0.1:{port}" for port in stage.sketcher_ports)
    pids = [str(stage.processes[f"sketcher-{number}"].pid) for number in (1, 2)]
    words = [stage.ensue, "bench", one, "--against", other, "--workload", "get=1", "--preload", "none"]
    words += ["--keys", "1", "--clients", str(clients), "--seconds", str(args.seconds), "--json", "-"]
    done = subprocess.run([*words, "--pid", pids[0], "--against-pid", pids[1]], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    result = json.loads(done.stdout)
    one, two = result["stores"]
    assert one["failed"] == two["failed"] == 0, "some reads failed"
    ratio = next(ratio for ratio in result["comparison"]["ratios"] if ratio["of"] == "throughput")
    return one["all"], two["all"], ratio


def measure_latency(args):
    print("| reads | median, us | 99th percentile | the paper |")
    print("|---|--:|--:|--:|")
    for failing, fast, reads in ((0, "fast", "optimized"), (1000, "fast, all fail", "replicated")):
        sketch, other = ["--failing-per-mille", str(failing)], ["--reads", reads]
        with Stage(args.ensue, "redis", sketch=sketch, others=[other]) as stage:
            one, two, _ = bench(args, stage, 1)
        for name, side in ((fast, one), (reads, two)):
            latency, paper = side["latency_us"], PAPER_LATENCY[name]
            print(f"| {name} | {latency['p50']:.0f} | {latency['p99']:.0f} | {paper[0]}, {paper[1]} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    built = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/ensue"
    parser.add_argument("--ensue", default=os.environ.get("ENSUE_BIN", built), type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--latency", action="store_true")
    args = parser.parse_args()
    if args.latency:
        return measure_latency(args)
    works = {"null": None, "94 us": ["busy", "94"], "1000 us": ["busy", "1000"]}
    print("| processing | fast answers that fail | against | Prophecy | the other | ratio of turns | the paper |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for work, servers in works.items():
        for failing, reads in ((0, "optimized"), (150, "optimized"), (1000, "optimized"), (0, "replicated")):
            sketch, other = ["--failing-per-mille", str(failing)], ["--reads", reads]
            with Stage(args.ensue, "redis", servers=servers, sketch=sketch, others=[other]) as stage:
                one, two, ratio = bench(args, stage)
            paper = PAPER.get((work, failing), "") if reads == "optimized" else ""
            words = f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})"
            both = f"{one['ops_per_second']:.0f} | {two['ops_per_second']:.0f}"
            print(f"| {work} | {failing / 10:g} % | {reads} | {both} | {words} | {paper} |", flush=True)


if __name__ == "__main__":
    main()
