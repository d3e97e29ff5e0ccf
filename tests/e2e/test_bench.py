"""`ensue bench` on a real cluster: every operation is counted, and what cannot be done is said."""

import json
import shutil

import pytest
from cluster import ensue

LOAD = ["--seconds", 1, "--warm-up", 0.2, "--keys", 500, "--clients", 6]


def urls(cluster):
    return [f"redis://127.0.0.1:{cluster.port + number}" for number in range(3)]


def test_load_on_three_datacenters(clean):
    done = ensue("bench", *urls(clean), "-w", "get=3,set=1,incr=1,hset=1,sadd=1,mget:4=1,mset:3=1", *LOAD, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    store = report["stores"][0]
    assert store["failed"] == 0 and store["all"]["missed"] == 0
    assert {row["server"] for row in store["operations"]} == set(urls(clean))
    assert all(row["ended"] > 0 for row in store["operations"])
    assert store["processor_us_per_operation"] > 0
    clean.converge()


def test_every_type_of_value(clean):
    mix = "set=2,del=1,expire=1,setbit=1,incrbyfloat=1,eval=1,lpush=1,lpop=1,lrange=1,zadd=1,zincrby=1,zrange=1"
    done = ensue("bench", urls(clean)[0], "-w", mix + ",xadd=1,xrange=1,pfadd=1", *LOAD, "-P", 4, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)["stores"][0]["operations"]
    assert len(rows) == 15 and all(row["ended"] > 0 for row in rows)
    # Nothing but what other operations took away is missed.
    gone = {"del", "expire", "lpop", "lrange"}
    assert all(row["missed"] == 0 for row in rows if row["operation"] not in gone)


def test_elements_are_handed_to_clients_that_wait(clean):
    for more in ([], ["--rate", 300], ["--resp", 3, "-P", 4]):
        done = ensue("bench", urls(clean)[0], "-w", "handover", *LOAD, *more, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        row = json.loads(done.stdout)["stores"][0]["all"]
        assert row["ended"] > 0 and row["latency_us"]["p99"] > 0


def test_records_and_columns_in_an_open_loop(clean):
    for workload in ("ycsb-e", "ycsb-f", "facebook-transactions"):
        done = ensue("bench", urls(clean)[0], "-w", workload, "--rate", 300, "--resp", 3, *LOAD, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["stores"][0]["all"]["missed"] == 0


def test_two_datacenters_in_turns(clean):
    first, second, _ = urls(clean)
    done = ensue("bench", first, "--against", second, "-w", "get=1,set=1", *LOAD, "--slice", 0.1, "--preload", "none")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 pairs of turns" in done.stdout and "processor time an operation" in done.stdout


def test_processor_time_of_two_servers(clean, tmp_path):
    # Two datacenters are two servers, whose processes differ.
    first, second, _ = urls(clean)
    page = tmp_path / "cpu.md"
    words = ["-w", "get", "-w", "lpush=1,lpop=1", "-P", "1,4", "--pairs", 2, "--keys", 50, "--clients", 4]
    words += ["--rounds", 2, "--slice-ms", 100]
    done = ensue("bench", "cpu", first, "--against", second, *words, "--record", page)
    assert done.returncode == 0, done.stdout + done.stderr
    assert page.read_text() == done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("|") and "--:" not in line]
    assert [row.split("|")[1].strip() for row in rows] == ["operation", "`get`", "`lpush=1,lpop=1`", "pairs", "2"]
    assert "- |" not in done.stdout
    done = ensue("bench", "cpu", first)
    assert done.returncode == 2 and "--against" in done.stderr
    done = ensue("bench", "cpu", "--redis", tmp_path / "none")
    assert done.returncode == 2 and "none" in done.stderr and done.stdout == ""


@pytest.mark.skipif(not shutil.which("redis-server"), reason="it starts a redis-server")
def test_processor_time_of_servers_that_are_started(tmp_path):
    words = ["-w", "set", "-P", 4, "--pairs", 1, "--keys", 50, "--clients", 4, "--rounds", 1, "--slice-ms", 100]
    done = ensue("bench", "cpu", "--partitions", 2, *words, "--record", tmp_path / "cpu.md")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "cpu.md").read_text()
    assert "of one core and 2 partitions, and redis-server" in page.replace("\n", " ")
    assert "FAILED" not in page


def test_what_cannot_be_done(clean):
    done = ensue("bench", "redis://127.0.0.1:1", *LOAD)
    assert done.returncode == 2 and "cannot connect" in done.stderr
    done = ensue("bench", urls(clean)[0], "-w", "set=1,lpushx=1")
    assert done.returncode == 2 and "`lpushx` is no operation" in done.stderr


def test_branches_is_a_benchmark_of_its_own():
    done = ensue("bench", "branches", "--seconds", 1, "--clients", 2, "--keys", 100, "--round-trip-us", 2000)
    assert done.returncode == 0 and "read-heavy, uniform" in done.stdout, done.stdout + done.stderr


def test_a_figure_of_a_paper_in_a_hurry(tmp_path):
    done = ensue("bench", "paper", "cops", "T2", "--quick", "--record", tmp_path, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (figure,) = json.loads(done.stdout)["figures"]
    assert (figure["paper"], figure["name"]) == ("cops", "T2")
    values = [value["median"] for panel in figure["panels"] for line in panel["lines"] for value in line["values"]]
    assert len(values) == 4 * 2 * 2 and all(value > 0 for value in values)
    statements = {statement["words"]: statement for statement in figure["verdicts"]}
    assert statements["throughput of put_after to that of get_by_version in COPS (30 to 52 Kops/s)"]["paper"] == "0.577"
    assert all(statement["ours"] > 0 for statement in figure["verdicts"])
    # A second figure joins the first one in the record.
    done = ensue("bench", "paper", "tardis", "F10d", "--quick", "--record", tmp_path)
    assert done.returncode == 0 and "TARDiS performs 10 % worse than BDB" in done.stdout, done.stdout + done.stderr
    page = (tmp_path / "papers.md").read_text()
    assert "### cops T2" in page and "### tardis F10d" in page
    assert (tmp_path / "papers" / "cops-t2.svg").read_text().startswith("<svg")
    done = ensue("bench", "paper", "cops", "F99")
    assert done.returncode == 2 and "no figure F99 of cops" in done.stderr
