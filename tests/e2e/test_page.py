"""The page for people on the metrics port: it is whole, asks nobody else, and what it draws is what happens."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest
import redis
from cluster import ROOT, wait_until
from ports import METRICS

SCRIPT = ROOT / "crates/ensue-server/src/metrics/assets/gauges.js"


def get(port, path):
    """The status, the headers and the text."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def state(cluster, datacenter):
    status, headers, text = get(cluster.client_port(datacenter) + METRICS, "/v1/state")
    assert (status, headers["Content-Type"]) == (200, "application/json"), text
    return json.loads(text)


def peer_of(shown, name):
    return next(peer for peer in shown["peers"] if peer["name"] == name)


def figures_of_keyspace(shown, number):
    return next(one["figures"] for one in shown["keyspaces"] if one["keyspace"] == number)


def test_the_page_and_all_that_it_names_are_served_by_the_node(clean):
    port = clean.port + METRICS
    status, headers, text = get(port, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    named = re.findall(r'(?:href|src)="([^"]*)"', text)
    assert {"/gauges.js", "/gauges.css", "/gauges.svg", "/metrics", "/v1/state"} == set(named)
    for path in named:
        assert get(port, path)[0] == 200, path
    assert f"http://127.0.0.1:{port}/" in clean.log.read_text().split("in a browser: ")[1]


def test_the_state_is_what_happened(clean):
    before = state(clean, 1)

    def grown(shown, group, what):
        return shown["commands"].get(group, {}).get(what, 0) - before["commands"].get(group, {}).get(what, 0)

    with clean.client(1) as client:
        for number in range(20):
            client.set(f"page:{number}", "v")
        with pytest.raises(redis.ResponseError):
            client.hget("page:0", "f")
    clean.converge()

    def is_counted():
        shown = state(clean, 1)
        return shown if grown(shown, "string", "executed") >= 20 else None

    shown = wait_until(is_counted, 10, "the commands are counted")
    assert (shown["datacenter"], shown["node"], shown["ready"], shown["reasons"]) == ("dc1", 0, True, [])
    assert [peer["name"] for peer in shown["peers"]] == ["dc2", "dc3"]
    assert figures_of_keyspace(shown, 0)["keys"] == 20
    assert grown(shown, "hash", "failed") == 1
    assert shown["error_replies_total"]["WRONGTYPE"] - before["error_replies_total"].get("WRONGTYPE", 0) == 1
    assert shown["memory_bytes"]["resident"] > 1_000_000
    there = state(clean, 2)
    delays = peer_of(there, "dc1")["visibility_delay_seconds"]
    assert delays["count"] >= 20 and delays["sum"] >= 20 * 0.004
    assert sum(count for _, count in delays["buckets"]) == delays["count"]
    assert delays["buckets"][-1][0] is None
    # One observation is older than the next.
    assert state(clean, 1)["observed_seconds"] >= shown["observed_seconds"] > 0


def test_a_cut_link_is_seen_on_both_sides_and_its_lag(dev):
    cluster = dev(delay="5ms", datacenters=2)
    for datacenter, other in ((1, "dc2"), (2, "dc1")):
        wait_until(lambda: peer_of(state(cluster, datacenter), other)["link"] == "up", 20, "the link is up")
    cluster.link(1, 2, "cut")
    with cluster.client(1) as client:
        client.set("page:lag", "v")
    for datacenter, other in ((1, "dc2"), (2, "dc1")):
        wait_until(lambda: peer_of(state(cluster, datacenter), other)["link"] == "down", 20, "the cut is seen")
        shown = state(cluster, datacenter)
        assert shown["serving"] and not shown["ready"]
        assert any(f"the link to {other} is down" in reason for reason in shown["reasons"])
        assert (peer_of(shown, other)["links_up"], peer_of(shown, other)["links"]) == (0, 1)

    def lag():
        figures = peer_of(state(cluster, 1), "dc2")["figures"]
        return figures["replication_unreceived_entries"], figures["replication_unreceived_seconds"]

    wait_until(lambda: lag()[0] == 1 and lag()[1] > 0.5, 20, "the write that dc2 lacks is counted")
    cluster.link(1, 2, "heal")
    wait_until(lambda: peer_of(state(cluster, 1), "dc2")["link"] == "up" and lag() == (0, 0), 20, "it is even")
    assert state(cluster, 1)["ready"]


CHECKS = """
import { delaysBetween, duration, bytes, count, pieces, places, rate, roundUp, sample } from %s;
import { deepStrictEqual as equal, ok } from "node:assert";

const peer = (sum, few, many) => ({
  name: "dc2", link: "up",
  figures: { replication_unreceived_seconds: 0.25 },
  visibility_delay_seconds: { sum, count: few + many, buckets: [[0.001, few], [0.002, many], [null, 0]] },
});
const state = (start, at, executed, conflicts, there) => ({
  start_time_seconds: start, observed_seconds: at, peers: [there], memory_bytes: { allocated: 1, resident: 2, rows: 3 },
  commands: { string: { executed } }, figures: { waiting_entries: 4, waiting_rows: 1 },
  keyspaces: [{ keyspace: 0, figures: { keys: 9, conflicts_total: conflicts } }],
});
const before = state(5, 10, 100, 3, peer(1, 10, 10));
const now = state(5, 12, 300, 5, peer(1.5, 10, 15));
const seen = sample(before, now);
equal(seen.operations.string, 100);
equal(seen.operations.all, 100);
equal(seen.conflicts.conflicts, 1);
equal([seen.visibility.dc2, seen.unreceived.dc2, seen.behind.dc2], [0.1, 0.25, null]);
equal([seen.waiting.entries, seen.waiting.reads, seen.waiting.keys], [4, 0, 1]);
equal(seen.keys, { "keyspace 0": 9 });
// A start between, the same observation twice, and counters that were reset say nothing of a rate.
equal(sample(state(4, 10, 100, 3, peer(1, 10, 10)), now).operations.all, null);
equal(sample(now, now).operations.all, null);
equal(sample(undefined, now).operations.all, null);
equal(rate(now, { ...before, observed_seconds: 13 }, (one) => one.commands.string.executed), null);
equal(delaysBetween(before.peers[0].visibility_delay_seconds, now.peers[0].visibility_delay_seconds).most, 0.002);
equal([0, 0.7, 1, 3, 37, 1000].map((value) => roundUp(value)), [1, 1, 1, 5, 50, 1000]);
equal([3, 1100, 3 << 20].map((value) => roundUp(value, 1024)), [5, 2048, 5 << 20]);
equal([0.04, 3, -0.04, 7200, null].map(duration), ["40 ms", "3.0 s", "−40 ms", "2 h", "–"]);
equal([bytes(1536), bytes(10), count(1234567)], ["1.5 KiB", "10 B", "1.2 M"]);
// A gap where there is no number, and nothing outside the plane.
const line = pieces([[0, 5], [1, null], [2, 500], [3, 1]], 3, 300, 10);
equal(line.match(/M/g).length, 2);
ok(line.match(/-?[0-9.]+/g).every((number) => number >= 0 && number <= 1000), line);
const three = places(["dc3", "dc1", "dc2"], 440, 290);
ok(three.dc1.x < three.dc2.x && three.dc3.y > three.dc1.y && Object.keys(places(["a"], 440, 290)).length === 1);
"""


def test_what_the_script_computes(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    module = tmp_path / "gauges.mjs"
    module.write_text(SCRIPT.read_text())
    code = CHECKS % json.dumps(module.as_uri())
    words = [node, "--input-type=module", "-e", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
