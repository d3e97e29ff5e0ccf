"""Programs for software that people run on Redis, each against Redis and against Ensue.

    python3 tests/frameworks/run.py [--only NAME,...] [--kind KIND,...] [--record] [--json FILE]

The packages are installed below target/frameworks, with the versions that the tree pins (languages.py). Each program
is a process with a time limit, against an empty server of each kind: Redis, Ensue with one partition, with four, and
with all keys at home in one of three datacenters, where the program uses all three: its workers are in the first that
it is given, which is the home, or, away, another one. A program that Redis does not pass says nothing about Ensue. The
exit code is 1 if one that Redis passes fails.
A program whose comment says `fails: KIND, REASON` is expected to fail there, and the exit code is 1 if it passes, too.

This needs a `redis-server`, and a binary as the end-to-end tests do (ENSUE_BIN). Programs in a language that is not on
this machine, or whose packages cannot be installed, are skipped by name.
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

from languages import HERE, LANGUAGES, PYTHON, ROOT, TARGET

sys.path.insert(0, str(ROOT / "tests/e2e"))

if shutil.which("redis-server") is None:
    print("skipped: all programs: no `redis-server` on this machine")
    sys.exit(0)
if importlib.util.find_spec("redis") is None:
    # Goes on within the environment that the programs get.
    pins = (HERE / "requirements.txt").read_text().split()
    client = next(pin for pin in pins if pin.startswith("redis=="))
    words = [[sys.executable, "-m", "venv", TARGET / "venv"], [PYTHON, "-m", "pip", "install", "-q", client]]
    if all(subprocess.run(list(map(str, line))).returncode == 0 for line in words):
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    print("skipped: all programs: no client of Redis for Python, and none can be installed")
    sys.exit(0)

import redis  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from ports import Ports  # noqa: E402

RECORD = ROOT / "docs/figures/frameworks.md"
KINDS = {"redis": "Redis", "one": "One partition", "four": "Four partitions", "home": "At home", "away": "Away"}
LIMIT_S = 150
HOMELY = ("home", "away")
HOMES = ["--set", "keyspace=0 home * dc1", "--set", "keyspace=0 home-reads yes"]


def main():
    options = arguments()
    programs = ready(chosen(options.only))
    kinds = options.kind.split(",") if options.kind else list(KINDS)
    results = []
    for index, program in enumerate(programs):
        row = {"name": program.stem, "language": program.parent.name, **header(program)}
        row["version"] = LANGUAGES[row["language"]].version(row["package"])
        for kind in kinds:
            if kind in HOMELY and not row["at_home"]:
                continue
            progress(f"{index + 1} of {len(programs)}: {row['name']}, {KINDS[kind]}")
            row[kind] = attempt(program, kind)
        results.append(row)
        progress("")
        print(line(row, kinds), flush=True)
        if row.get("redis"):
            print(f"skipped: {row['name']}: Redis does not pass it", flush=True)
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
    programs = [file for language in LANGUAGES.values() for file in language.programs()]
    return [file for file in programs if not only or file.stem in only.split(",")]


def ready(programs):
    """Those that can run; each other one is named with what it lacks."""
    can = []
    for folder, language in LANGUAGES.items():
        own = [file for file in programs if file.parent.name == folder]
        missing = own and language.missing()
        lacks = missing and f"no `{missing}` on this machine"
        if own and not missing:
            try:
                language.prepare(progress)
                can += own
            except subprocess.CalledProcessError as error:
                lacks = f"`{pathlib.Path(error.cmd[0]).name} {error.cmd[1]}` did not succeed"
        for file in own if lacks else []:
            print(f"skipped: {file.stem}: {lacks}", flush=True)
    return can


def header(program):
    """The lines `word: text` of the comment about a program."""
    text = program.read_text()[:4000]
    found = dict(re.findall(r"^(?: \* |// )?(package|home|tags|fails): (.+)$", text, re.M))
    fails = found.get("fails", "").split(",")[0]
    words = {"package": found["package"], "tags": found.get("tags")}
    return {**words, "at_home": found.get("home") == "yes", "fails": fails}


def attempt(program, kind):
    """Runs a program against an empty server of this kind; None, or the last lines of what it said."""
    with tempfile.TemporaryDirectory() as folder, server(kind, pathlib.Path(folder)) as urls:
        # A process sees nothing but its own scratch folder and the folder of the programs.
        with (pathlib.Path(folder) / "said").open("w+b") as said:
            process = subprocess.Popen(
                [*command(program), *urls], stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd=folder,
                env=environment(program), start_new_session=True,
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
    return list(map(str, LANGUAGES[program.parent.name].command(program)))


def environment(program):
    paths = LANGUAGES[program.parent.name].environment()
    return {**os.environ, **{name: str(value) for name, value in paths.items()}}


@contextlib.contextmanager
def server(kind, folder):
    if kind == "redis":
        with real_redis(folder) as url:
            yield [url]
        return
    flags = HOMES if kind in HOMELY else []
    partitions = 4 if kind == "four" else 1
    cluster = Cluster(folder, delay="5ms", partitions=partitions, flags=flags)
    try:
        with contextlib.redirect_stdout(None):
            cluster.start()
        urls = [f"redis://127.0.0.1:{cluster.client_port(datacenter)}/0" for datacenter in cluster.each()]
        yield {"home": urls, "away": urls[1:] + urls[:1]}.get(kind, urls[:1])
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
    """The kinds that fail though Redis passes, and those that pass though the program says that they do not."""
    if row.get("redis") is not None:
        return []
    kinds = [kind for kind in KINDS if kind in row and kind != "redis"]
    return [kind for kind in kinds if (row[kind] is not None) != (kind == row["fails"])]


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
        if kind == row["fails"] and word == "FAILS":
            word, colour = "fails", 33
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
