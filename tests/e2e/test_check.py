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


def on_branches():
    """A recording of real processes under faults, line by line."""
    text = gzip.decompress((ROOT / "docs/histories/branches.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def answers(lines):
    """Each command with the place of its answer: where it stands, and at which index."""
    for line in lines:
        if "commands" in line:
            for command, told in zip(line["commands"], line["answers"], strict=False):
                yield line, command, told


def read_what_nobody_wrote(lines):
    # What a transaction reads whose state was answered.
    begun = [line for line in lines if line.get("commands", [[""]])[0][:2] == ["BRANCH", "BEGIN"]]
    reads = [told for _, command, told in answers(begun) if command[0] == "GET" and str(told[1]).startswith("v")]
    reads[0][1] = "v-never"


def lose_a_commit(lines):
    """No datacenter has a write in the end that one of them acknowledged."""
    lasts = [each for each in answers(lines) if each[0]["asked"] >= lines[0]["final"]]
    gets = [(command, told) for _, command, told in lasts if command[:2] == ["BRANCH", "GET"]]
    lost = next(command[2] for command, told in gets if command[2].startswith("t") and any(told[1]))
    for command, told in gets:
        if command[2] == lost:
            told[1] = [None] * len(told[1])


def merge_without_an_ancestor(lines):
    logs = [entry for _, command, told in answers(lines) if command[:2] == ["BRANCH", "LOG"] for entry in told[1]]
    lost = next(entry[0] for entry in logs if len(entry[1]) > 1)
    for entry in logs:
        if entry[0] == lost:
            del entry[1][1:]


def leaves_that_differ(lines):
    last = [each for each in answers(lines) if each[0]["asked"] >= lines[0]["final"]]
    told = next(told for line, command, told in last if command == ["BRANCH", "LIST"] and line["datacenter"] == 2)
    told[1].append("1.0")


@pytest.mark.parametrize(
    "change", [read_what_nobody_wrote, lose_a_commit, merge_without_an_ancestor, leaves_that_differ]
)
def test_what_is_wrong_on_branches_is_found(change, tmp_path):
    lines = on_branches()
    path = tmp_path / "branches.jsonl"

    def judged():
        # The event comes first: by that the file is known.
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        return ensue("check", path)

    assert judged().returncode == HOLDS
    change(lines)
    done = judged()
    assert done.returncode == VIOLATED and "branches  violated" in done.stdout, done.stdout


def test_a_recording_of_branches_that_broke_off_is_undecided(tmp_path):
    path = tmp_path / "branches.jsonl"
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in on_branches()[:-1])
    path.write_text(text)
    done = ensue("check", path)
    assert done.returncode == UNDECIDED and "in the end was not recorded" in done.stdout
    assert ensue("check", "--json", path).returncode == UNREADABLE


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
    unknown = ensue("check", "--property", "serializable", STALE)
    assert unknown.returncode == UNREADABLE and "causal-convergent" in unknown.stderr


def test_linearizable_registers_are_judged_when_asked_for():
    def line(session, start, end, **operation):
        operations = [operation]
        return json.dumps({"session": session, "start": start, "end": end, "operations": operations}) + "\n"

    good = line("a", 10, 20, write="x", value=1) + line("b", 30, None, write="x", value=2)
    stale = good + line("c", 40, 50, read="x", value=2) + line("d", 60, 70, read="x", value=1)
    good += line("c", 40, 50, read="x", value=1) + line("d", 60, 70, read="x", value=2)
    done = ensue("check", "--property", "linearizable", "-", stdin=good)
    assert done.returncode == HOLDS and "linearizable registers  holds" in done.stdout
    done = ensue("check", "--property", "linearizable", "-", stdin=stale)
    assert done.returncode == VIOLATED and "linearizable registers  violated NoOrder" in done.stdout
    assert "it was 2 before it was 1, since line 3 ended before line 4 began" in done.stdout
    assert ensue("check", "-", stdin=stale).returncode == HOLDS
    assert ensue("check", "--property", "linearizable", STALE).returncode == UNDECIDED


def test_delay_once_linearizable_registers_are_judged_when_asked_for():
    def line(session, start, **operation):
        return json.dumps({"session": session, "start": start, "end": start + 5, "operations": [operation]}) + "\n"

    written = line("a", 10, write="x", value=1) + line("b", 20, read="x", value=1) + line("a", 30, write="x", value=2)
    delayed = written + line("c", 40, read="x", value=1)
    done = ensue("check", "--property", "delay-once", "-", stdin=delayed)
    assert done.returncode == HOLDS and "delay-once linearizable registers  holds" in done.stdout
    assert "note: 1 of 2 reads did not show the latest write" in done.stdout
    assert ensue("check", "--property", "linearizable", "-", stdin=delayed).returncode == VIOLATED
    back = delayed + line("c", 50, read="x", value=2) + line("d", 60, read="x", value=1)
    done = ensue("check", "--property", "delay-once", "-", stdin=back)
    assert done.returncode == VIOLATED and "delay-once linearizable registers  violated NoOrder" in done.stdout
    assert "since line 5 ended before line 6 began; reads never go back" in done.stdout


def test_queues_are_judged_when_asked_for():
    def line(session, start, is_final=False, **operation):
        times = {"session": session, "start": start, "end": start + 5}
        return json.dumps({**times, "final": is_final, "operations": [operation]}) + "\n"

    pushed = line("a", 10, push="q", value="m1") + line("a", 20, push="q", value="m2")
    popped = pushed + line("b", 30, pop="q", value="m1")
    both = ["--property", "popped-once", "--property", "popped-at-least-once"]
    kept = line("d", 90, is_final=True, hold="q", value="m2")
    assert ensue("check", *both, "-", stdin=popped + kept).returncode == HOLDS
    assert ensue("check", *both, "-", stdin=popped).returncode == UNDECIDED
    done = ensue("check", *both, "-", stdin=popped + line("c", 40, pop="q", value="m1") + kept)
    assert done.returncode == VIOLATED and "`m1` of the queue `q` was popped twice: line 3 and line 4" in done.stdout
    done = ensue("check", *both, "-", stdin=popped + line("d", 90, is_final=True, pop="q", value=None))
    assert done.returncode == VIOLATED and "`m2` of the queue `q` was pushed (line 2), and was neither" in done.stdout
    assert ensue("check", "-", stdin=popped + kept).returncode == UNDECIDED, "nothing else is judged of queues"


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
