"""`ensue check` as people and scripts meet it: its status, its words, its forms, its picture."""

import gzip
import json
import os
import pty
import subprocess
import xml.etree.ElementTree

import pytest
from cluster import ROOT, binary, ensue

HISTORIES = ROOT / "crates/ensue-check/tests/histories"
HOLDS, VIOLATED, UNREADABLE, UNDECIDED = range(4)
STALE = HISTORIES / "violated-stale-initial.plume"


def corpus():
    lines = (HISTORIES / "manifest.txt").read_text().splitlines()
    named = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {name: set() if verdict == "-" else set(verdict.split(", ")) for name, _, verdict in named}


@pytest.mark.parametrize("name, expected", corpus().items())
def test_the_corpus(name, expected, tmp_path):
    picture = tmp_path / "violation.svg"
    done = ensue("check", "--json", "--svg", picture, HISTORIES / name)
    report = json.loads(done.stdout)
    verdicts = {verdict["property"]: verdict["verdict"] for verdict in report["verdicts"]}
    marks = {"violated": "", "undecided": "?"}
    assert {marks[verdict] + name for name, verdict in verdicts.items() if verdict in marks} == expected
    violated = any(not name.startswith("?") for name in expected)
    # What is broken off or left out may make the whole undecided without a line of its own.
    assert done.returncode == (VIOLATED if violated else UNDECIDED if expected else HOLDS)
    assert picture.exists() == violated
    if violated:
        assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


@pytest.mark.parametrize("history", sorted((ROOT / "docs/histories").glob("*.gz")), ids=lambda path: path.name)
def test_the_published_histories(history):
    done = subprocess.run([binary(), "check", "-"], input=gzip.decompress(history.read_bytes()), capture_output=True)
    assert done.returncode == (VIOLATED if "broken" in history.name else HOLDS), done.stdout.decode()


def test_a_violation_is_told_in_plain_text():
    done = ensue("check", STALE)
    assert done.returncode == VIOLATED
    assert "causal consistency (CC)                    violated WriteCOInitRead" in done.stdout
    assert "2 (line 5) read `1` as (absent), although 1=1 (line 1) was in its past" in done.stdout
    assert "\x1b" not in done.stdout and done.stderr == ""
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_colour_on_a_terminal_only():
    def on_terminal(**more):
        reader, writer = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        command = [binary(), "check", str(STALE)]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment | more)
        os.close(writer)
        assert done.returncode == VIOLATED
        with os.fdopen(reader, "rb") as output:
            return output.read1(1 << 20)

    assert b"\x1b[31mviolated\x1b[0m" in on_terminal()
    assert b"\x1b" not in on_terminal(NO_COLOR="1")


def test_one_property():
    done = ensue("check", "--property", "monotonic-reads", STALE)
    assert done.returncode == HOLDS
    titles = [line.split("  ")[1] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert titles == ["read integrity", "monotonic reads"]
    assert ensue("check", "--property", "causal", STALE).returncode == VIOLATED
    unknown = ensue("check", "--property", "linearizable", STALE)
    assert unknown.returncode == UNREADABLE and "causal-convergent" in unknown.stderr


@pytest.mark.parametrize(
    "text, words",
    [
        ("junk\n", "line 1"),
        ('{"session":"a","operations":[{"read":"x","value":1}]}\n{"operations":[]}\n', "line 2"),
        ("r(1,2,3)\n", "line 1"),
        (b"\xff\xfe\n".decode("latin-1"), "line 1"),
    ],
)
def test_what_is_no_history(tmp_path, text, words):
    path = tmp_path / "history"
    path.write_text(text, encoding="latin-1")
    done = ensue("check", path)
    assert done.returncode == UNREADABLE and done.stdout == ""
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_is_not_there(tmp_path):
    assert ensue("check", tmp_path / "none").returncode == UNREADABLE
    assert ensue("check", tmp_path).returncode == UNREADABLE
    assert ensue("check").returncode == UNREADABLE
    done = ensue("check", "--svg", tmp_path / "no" / "folder.svg", STALE)
    assert done.returncode == UNREADABLE and "cannot write" in done.stderr


def test_nothing_to_judge_is_not_passed():
    done = ensue("check", "-", stdin="")
    assert done.returncode == UNDECIDED and "holds" not in done.stdout


def test_standard_input_and_other_forms():
    plume = STALE.read_text()
    assert ensue("check", "-", stdin=plume).returncode == VIOLATED
    lines = ensue("check", "--to", "jsonl", STALE)
    assert lines.returncode == HOLDS and lines.stdout.startswith("{")
    back = ensue("check", "--from", "jsonl", "--to", "plume", "-", stdin=lines.stdout)
    assert back.returncode == HOLDS
    assert ensue("check", "--from", "plume", "-", stdin=back.stdout).returncode == VIOLATED
    assert ensue("check", "--from", "plume", "-", stdin=lines.stdout).returncode == UNREADABLE
    # What that form cannot say is refused, and not left out.
    refused = ensue("check", "--to", "plume", HISTORIES / "correct-token-moved.jsonl")
    assert refused.returncode == UNREADABLE and refused.stderr


def test_a_reader_that_goes_away():
    """`ensue check … | head -1` is no error of the checker, and no violation."""
    with subprocess.Popen(
        [binary(), "check", "--generate", "50000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        assert "panicked" not in process.stderr.read()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([binary(), "check", str(STALE)], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (VIOLATED, b"")


def test_a_generated_history_holds_until_a_read_goes_back(tmp_path):
    lines = ensue("check", "--generate", "20000").stdout.splitlines()
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(lines))
    assert ensue("check", path).returncode == HOLDS
    planted = stale(lines)
    path.write_text("\n".join(planted))
    done = ensue("check", path)
    assert done.returncode == VIOLATED
    assert "causal consistency (CC)                    violated WriteCORead" in done.stdout


def stale(lines):
    """One read near the end returns the first value of its key."""
    first = {}
    for place, line in enumerate(lines):
        transaction = json.loads(line)
        for operation in transaction.get("operations", []):
            if "write" in operation:
                first.setdefault(operation["write"], operation["value"])
            elif place > len(lines) * 0.9 and operation["value"] not in (None, first[operation["read"]]):
                operation["value"] = first[operation["read"]]
                return [*lines[:place], json.dumps(transaction), *lines[place + 1 :]]
    raise AssertionError("nobody read anything late")


def test_progress_of_a_long_history_on_a_terminal_only(tmp_path):
    line = '{"session":"a","operations":[{"write":"x","value":"%d' + "-" * 900_000 + '"}]}\n'
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        file.writelines(line % number for number in range(40))
        file.write('{"session":"a","operations":[{"read":"y","value":null}]}\n')
    reader, writer = pty.openpty()
    done = subprocess.run([binary(), "check", str(path)], stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as shown:
        text = shown.read1(1 << 20)
    assert done.returncode == HOLDS and text.startswith(b"\rreading ") and text.endswith(b"\r\x1b[K")
    assert ensue("check", path).stderr == ""
