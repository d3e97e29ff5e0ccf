"""The page for people on the metrics port: it is whole, asks nobody else, and what it draws is what happens."""

import contextlib
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest
import redis
from browser import Page
from cluster import ROOT, wait_until
from ports import METRICS
from test_metrics import get as metrics_get
from test_metrics import is_up

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
    assert {"/gauges.js", "/keys.js", "/gauges.css", "/gauges.svg", "/metrics", "/v1/state"} == set(named)
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


def found(port, path, user=None):
    status, kind, text = metrics_get(port, path, user=user)
    assert (status, kind) == (200, "application/json"), text
    return json.loads(text)


def test_keys_are_listed_with_what_is_in_them(clean):
    port = clean.port + METRICS
    with clean.client(1) as client:
        client.set("browse:string", "v" * 300, px=100_000_000)
        client.hset("browse:hash", mapping={"f": "1"})
        client.rpush("browse:list", *range(20))
        client.sadd("browse:set", "m")
        client.zadd("browse:zset", {"z": 1.5})
        client.xadd("browse:stream", {"f": "v"})
        client.set(b"browse:\xff", b"\x00\xff")
        client.hset("browse:large", mapping={str(number): "x" * 200 for number in range(1_000)})
        client.set("other", "v")

    def everything(more=""):
        rows, cursor = {}, "0"
        while True:
            part = found(port, f"/v1/keys?keyspace=0&match=browse:*&cursor={cursor}{more}")
            rows.update({row["key"]: row for row in part["keys"]})
            cursor = part["cursor"]
            if cursor == "0":
                return rows

    rows = everything()
    assert set(rows) == {
        f"browse:{name}" for name in ("string", "hash", "list", "set", "zset", "stream", "large", "\xff")
    }
    string = rows["browse:string"]
    assert (string["type"], string["length"], string["value"]) == ("string", 300, "v" * 128)
    assert 99_000_000 < string["ttl_ms"] <= 100_000_000 and string["bytes"] > 300
    assert rows["browse:hash"]["value"][1] == ["f", "1"] and rows["browse:hash"]["ttl_ms"] == -1
    assert (rows["browse:list"]["length"], rows["browse:list"]["value"]) == (20, [str(n) for n in range(8)])
    assert rows["browse:zset"]["value"] == ["z", "1.5"] and rows["browse:set"]["value"][1] == ["m"]
    assert rows["browse:stream"]["value"][0][1] == ["f", "v"]
    assert rows["browse:\xff"]["value"] == "\x00\xff"
    assert rows["browse:large"]["length"] == 1_000 and rows["browse:large"]["value"] is None
    assert set(everything("&type=hash")) == {"browse:hash", "browse:large"}
    assert found(port, "/v1/keys?keyspace=1")["keys"] == []
    assert get(port, "/v1/keys?keyspace=99")[0] == 400
    assert get(port, "/v1/keys?cursor=x")[0] == 400
    # Looking changes nothing, and there is nothing that does.
    with clean.client(1) as client:
        assert client.dbsize() == 9


def test_conflicts_and_branches_are_listed(dev):
    cluster = dev(delay="5ms", datacenters=2, flags=["--protocol", "cops-cd", "--keyspace", "1=tardis"])
    port = cluster.port + METRICS
    for keyspace in (0, 1):
        with cluster.client(1, db=keyspace) as client:
            client.set("k", "base")
        cluster.converge(keyspace=keyspace)
    cluster.link(1, 2, "cut")
    for datacenter in (1, 2):
        for keyspace in (0, 1):
            with cluster.client(datacenter, db=keyspace) as client:
                client.set("k", f"of dc{datacenter}")
    cluster.link(1, 2, "heal")
    shown = wait_until(lambda: (now := found(port, "/v1/conflicts"))["standing"] and now, 20, "the conflict is seen")
    [standing] = shown["standing"]
    assert standing["key"] == "k"
    assert {value["write"]["value"] for value in standing["values"]} == {"of dc1", "of dc2"}
    assert shown["seen"][-1]["key"] == "k" and shown["leaves"] is None

    def differing():
        shown = found(port, "/v1/conflicts?keyspace=1")
        return shown if len(shown["leaves"]) == 2 else None

    shown = wait_until(differing, 20, "there are two branches")
    [differs] = shown["in_branches"]
    assert differs["key"] == "k" and {"of dc1", "of dc2"} <= set(map(str, differs["values"]))


def test_who_may_not_read_sees_nothing(servers):
    port = servers.port("dc1") + METRICS
    servers.lines["dc1"] = ["dc1"]
    users = ["user app on >app ~app:* -@all +@read", "user getter on >getter ~* -@all +get"]
    users.append("user off off >off ~* +@all")
    servers.start("dc1", f"metrics-port {port}", "metrics-unauthenticated yes", "requirepass secret", *users)
    wait_until(lambda: is_up(port), 20, "it listens")
    with redis.Redis("127.0.0.1", servers.port("dc1"), password="secret") as client:
        wait_until(lambda: writes(client), 20, "it serves")
        client.set("app:mine", "1")
        client.set("secret:theirs", "2")
        for user, status in ((None, 401), ("app:wrong", 401), ("off:off", 401), ("getter:getter", 403)):
            for path in ("/v1/keys", "/v1/conflicts"):
                assert metrics_get(port, path, user=user)[0] == status, (user, path)
        # What is open are figures, not data.
        assert metrics_get(port, "/metrics")[0] == 200
        assert [row["key"] for row in found(port, "/v1/keys", "app:app")["keys"]] == ["app:mine"]
        assert metrics_get(port, "/v1/conflicts", user="app:app")[0] == 403
        assert len(found(port, "/v1/keys", "default:secret")["keys"]) == 2
        # What was refused is in the log of refusals, as of any client.
        log = client.acl_log()
        assert any((entry["username"], entry["object"]) == ("getter", "scan") for entry in log), log


def writes(client):
    with contextlib.suppress(redis.RedisError):
        return client.set("app:mine", "0")


@pytest.fixture
def drawn(tmp_path):
    """Opens pages in a browser: `drawn(url)`."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not installed")
    with contextlib.ExitStack() as pages:
        yield lambda url: pages.enter_context(Page(browser, tmp_path, url))


def test_a_browser_draws_the_page_and_runs_nothing_that_is_stored(clean, drawn):
    key, value = "<script>document.title='taken'</script>", "<img src=x onerror=document.title='taken'>"
    with clean.client(1) as client:
        client.set(key, value)
        client.hset("hash", value, value)
    page = drawn(f"http://127.0.0.1:{clean.port + METRICS}/")
    wait_until(lambda: page.says("document.title") == "dc1 (ready)", 30, "it is drawn")
    wait_until(lambda: "link up" in page.says("document.body.innerText"), 20, "the others are drawn")
    assert page.says("document.querySelectorAll('svg path.series').length") > 0
    page.says("document.getElementById('keys-look').click()")
    rows = "[...document.querySelectorAll('#keys tr')].map((row) => row.innerText.split('\\t'))"
    found = wait_until(lambda: page.says(rows), 20, "the keys are listed")
    values = {row[0]: row[-1] for row in found}
    assert values[key] == value and values["hash"] == f"{value}: {value}"
    assert page.says("document.querySelectorAll('main img, main script').length") == 0
    assert page.says("document.title") == "dc1 (ready)" and page.complaints == []


def test_no_word_of_a_heading_is_broken_on_a_telephone(clean, drawn):
    with clean.client(1) as client:
        client.set("a long name of a key " * 3, "a long value " * 9)
    page = drawn(f"http://127.0.0.1:{clean.port + METRICS}/")
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    for table, word in (("peers", "dc3"), ("keys", "long name")):
        page.says("document.getElementById('keys-look').click()")
        words = f"document.getElementById('{table}').innerText"
        wait_until(lambda: word in page.says(words), 30, f"the table of {table} is drawn")
    lines_and_words = """[...document.querySelectorAll("th")].map((heading) => {
      const text = new Range();
      text.selectNodeContents(heading);
      return [heading.innerText, text.getClientRects().length, heading.innerText.split(" ").length];
    })"""
    for heading, lines, words in page.says(lines_and_words):
        assert lines <= words, heading
    assert page.says("document.documentElement.scrollWidth") == 390


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


KEYS_CHECKS = """
import { conflictRow, deadline, preview, readable } from %s;
import { deepStrictEqual as equal } from "node:assert";

equal([readable("caf\\u00c3\\u00a9"), readable("\\u00ff<b>\\u0000"), readable("a\\nb")],
  ["caf\\u00e9", "\\\\xff<b>\\\\x00", "a\\\\x0ab"]);
equal([deadline(-1), deadline(1500), deadline(undefined)], ["none", "1.5 s", "\\u2013"]);
const row = (type, length, value) => preview({ type, length, value });
equal(row("string", 3, "abc"), "abc");
equal(row("string", 300, "abc"), "abc \\u2026");
equal(row("hash", 1, ["0", ["f", "v"]]), "f: v");
equal(row("zset", 9, ["a", "1", "b", "2"]), "a: 1, b: 2 \\u2026");
equal(row("list", 2, ["a", "b"]), "a, b");
equal(row("stream", 1, [["1-0", ["f", "v"]]]), "1-0 {f: v}");
equal(row("set", 9, null), "too large to be shown");
equal(row("list", 2, { error: "NOPERM no" }), "NOPERM no");
const line = { keyspace: 3, key: "k", field: "f", handler: "newest", arrived: { origin: "dc2", value: "2" },
  met: [{ origin: "dc1", delete: true }], shows: "2" };
equal(conflictRow(line), ["3", "k", "f", "dc2: 2", "dc1: deleted", "2"]);
"""


@pytest.mark.parametrize("checks", [CHECKS, KEYS_CHECKS], ids=["gauges", "keys"])
def test_what_the_scripts_compute(tmp_path, checks):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    for script in (SCRIPT, SCRIPT.with_name("keys.js")):
        text = script.read_text().replace('"/gauges.js"', '"./gauges.mjs"')
        (tmp_path / script.with_suffix(".mjs").name).write_text(text)
    module = tmp_path / ("gauges.mjs" if checks is CHECKS else "keys.mjs")
    code = checks % json.dumps(module.as_uri())
    words = [node, "--input-type=module", "-e", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
