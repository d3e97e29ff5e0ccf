"""Programs for software that people run on Redis, each against Redis and against Ensue.

    python3 tests/frameworks/run.py [--only NAME,...] [--kind KIND,...] [--record] [--json FILE]

The packages are installed below target/frameworks, with the versions that requirements.txt and package-lock.json pin.
Each program is a process with a time limit, against an empty server of each kind: Redis, Ensue with one partition, with
four, and with all keys at home in the first of three datacenters, where the program uses all three. A program that
Redis does not pass says nothing about Ensue. The exit code is 1 if one that Redis passes fails.

This needs a `redis-server`, Python and Node, and a binary as the end-to-end tests do (ENSUE_BIN).
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = ROOT / "target/frameworks"
PYTHON = TARGET / "venv/bin/python"
sys.path.insert(0, str(ROOT / "tests/e2e"))

if importlib.util.find_spec("redis") is None:
    # Goes on within the environment that the programs get.
    subprocess.run([sys.executable, "-m", "venv", str(TARGET / "venv")], check=True)
    pins = (HERE / "requirements.txt").read_text().split()
    client = next(pin for pin in pins if pin.startswith("redis=="))
    subprocess.run([str(PYTHON), "-m", "pip", "install", "-q", client], check=True)
    os.execv(PYTHON, [str(PYTHON), *sys.argv])

import redis  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from ports import Ports  # noqa: E402

RECORD = ROOT / "docs/figures/frameworks.md"
KINDS = {"redis": "Redis", "one": "One partition", "four": "Four partitions", "home": "At home"}
LIMIT_S = 150
HOMES = ["--set", "keyspace=0 home * dc1", "--set", "keyspace=0 home-reads yes"]


def main():
    options = arguments()
    programs = chosen(options.only)
    install(programs)
    kinds = options.kind.split(",") if options.kind else list(KINDS)
    results = []
    for index, program in enumerate(programs):
        row = {"name": program.stem, "language": program.parent.name, **header(program)}
        row["version"] = version(row)
        for kind in kinds:
            if kind == "home" and not row["at_home"]:
                continue
            progress(f"{index + 1} of {len(programs)}: {row['name']}, {KINDS[kind]}")
            row[kind] = attempt(program, kind)
        results.append(row)
        progress("")
        print(line(row, kinds), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    if options.record:
        record(results)
    sys.exit(1 if any(missed(row) for row in results) else 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--kind", help=f"of {', '.join(KINDS)}, separated by commas")
    parser.add_argument("--record", action="store_true", help=f"writes the table of {RECORD.relative_to(ROOT)}")
    parser.add_argument("--json", help="writes all results with the last lines of each failure to this file")
    return parser.parse_args()


def chosen(only):
    programs = [file for file in sorted(HERE.glob("py/*.py")) if file.stem != "scenario"]
    programs += [file for file in sorted(HERE.glob("js/*.js")) if file.stem != "scenario"]
    if only:
        programs = [file for file in programs if file.stem in only.split(",")]
    return programs


def header(program):
    """The lines `word: text` at the head of a program."""
    text = program.read_text()[:1500]
    found = dict(re.findall(r"^(?: \* |// )?(package|home|tags): (.+)$", text, re.M))
    return {"package": found["package"], "at_home": found.get("home") == "yes", "tags": found.get("tags")}


def install(programs):
    """What is not there yet, or there for other pins."""
    if any(program.suffix == ".py" for program in programs):
        pins = (HERE / "requirements.txt").read_text()
        done = TARGET / "requirements.txt"
        if not (done.exists() and done.read_text() == pins):
            run("a virtual environment", sys.executable, "-m", "venv", TARGET / "venv")
            # The packages that others need to be built come first.
            build = [pin for pin in pins.split() if pin.startswith(("redis==", "setuptools==", "wheel=="))]
            run("packages", PYTHON, "-m", "pip", "install", "-q", *build)
            words = ["--no-deps", "--no-build-isolation", "-r", HERE / "requirements.txt"]
            run("packages", PYTHON, "-m", "pip", "install", "-q", *words)
            done.write_text(pins)
    if any(program.suffix == ".js" for program in programs):
        folder = TARGET / "js"
        folder.mkdir(parents=True, exist_ok=True)
        lock = (HERE / "package-lock.json").read_text()
        done = folder / "done.json"
        if not (done.exists() and done.read_text() == lock):
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, folder / name)
            run("packages", "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", cwd=folder)
            done.write_text(lock)


def run(what, *words, cwd=None):
    progress(f"installing {what}")
    subprocess.run(list(map(str, words)), check=True, cwd=cwd)


def version(row):
    package = row["package"]
    if row["language"] == "js":
        pins = json.loads((HERE / "package-lock.json").read_text())["packages"]
        return pins[f"node_modules/{package}"]["version"]
    pins = dict(pin.split("==") for pin in (HERE / "requirements.txt").read_text().split())
    return pins[package]


def attempt(program, kind):
    """Runs a program against an empty server of this kind; None, or the last lines of what it said."""
    with tempfile.TemporaryDirectory() as folder, server(kind, pathlib.Path(folder)) as urls:
        # A process sees nothing but its own scratch folder and the folder of the programs.
        with (pathlib.Path(folder) / "said").open("w+b") as said:
            process = subprocess.Popen(
                [*command(program), *urls], stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd=folder,
                env=environment(), start_new_session=True,
            )
            try:
                code = process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                code = f"not done after {LIMIT_S} s"
            # Workers that a program left behind are of its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
            said.seek(0)
            text = said.read().decode(errors="replace")
    return None if code == 0 else f"{text[-3000:]}\nexit: {code}"


def command(program):
    return [str(PYTHON), str(program)] if program.suffix == ".py" else ["node", str(program)]


def environment():
    paths = {"PYTHONPATH": str(HERE / "py"), "NODE_PATH": str(TARGET / "js/node_modules")}
    return {**os.environ, **paths, "PYTHONDONTWRITEBYTECODE": "1", "NO_DEPRECATION": "*"}


@contextlib.contextmanager
def server(kind, folder):
    if kind == "redis":
        with real_redis(folder) as url:
            yield [url]
        return
    flags = HOMES if kind == "home" else []
    partitions = 4 if kind == "four" else 1
    cluster = Cluster(folder, delay="5ms", partitions=partitions, flags=flags)
    try:
        with contextlib.redirect_stdout(None):
            cluster.start()
        urls = [f"redis://127.0.0.1:{cluster.client_port(datacenter)}/0" for datacenter in cluster.each()]
        yield urls if kind == "home" else urls[:1]
    finally:
        with contextlib.redirect_stdout(None):
            cluster.close()


@contextlib.contextmanager
def real_redis(folder):
    with Ports() as ports:
        words = ["--port", str(ports.first), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        try:

            def serves():
                with contextlib.suppress(redis.RedisError), redis.Redis(port=ports.first) as client:
                    return client.ping()

            wait_until(serves, 20, "redis-server serves")
            yield f"redis://127.0.0.1:{ports.first}/0"
        finally:
            process.terminate()
            process.wait(20)


def missed(row):
    """The kinds that fail though Redis passes."""
    if row.get("redis") is not None:
        return []
    return [kind for kind in KINDS if kind != "redis" and row.get(kind) is not None]


def reason(text):
    """The line that says the most: the last error of what a program said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\b[A-Z]\w*(Error|Exception)\b|[A-Z]{5,} |Error:", line)]
    return (telling or lines)[-1][:160]


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


def line(row, kinds):
    coloured = sys.stdout.isatty()
    cells = []
    for kind in kinds:
        word, colour = ("-", 2) if kind not in row else ("passes", 32) if row[kind] is None else ("FAILS", 31)
        cells.append(f"\x1b[{colour}m{word:<8}\x1b[0m" if coloured else f"{word:<8}")
    lines = [f"{row['name']:<24} {row['version']:<14} " + " ".join(cells)]
    lines += [f"    {KINDS[kind]}: {reason(row[kind])}" for kind in kinds if row.get(kind)]
    return "\n".join(lines)


def record(results):
    """Replaces the table of the document, and leaves what people wrote around it."""
    begin, end = "<!-- programs -->\n", "<!-- end of programs -->\n"
    rows = ["| Program | Package | " + " | ".join(KINDS.values()) + " |\n", "|---|---|" + "---|" * len(KINDS) + "\n"]
    for row in results:
        cells = [("" if kind not in row else "passes" if row[kind] is None else "**fails**") for kind in KINDS]
        rows.append(f"| `{row['name']}` | {row['package']} {row['version']} | " + " | ".join(cells) + " |\n")
    counts = []
    for kind in KINDS:
        seen = [row for row in results if kind in row]
        counts.append(f"{sum(row[kind] is None for row in seen)} of {len(seen)}")
    rows.append("| all | | " + " | ".join(counts) + " |\n")
    text = RECORD.read_text()
    before, rest = text.split(begin)
    RECORD.write_text(before + begin + "\n" + "".join(rows) + "\n" + end + rest.split(end)[1])


if __name__ == "__main__":
    begin = time.monotonic()
    try:
        main()
    finally:
        print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
