"""Two datacenters write the same keys while the link between them is cut: both writes count, and what lost can be read."""

import json

import pytest
from cluster import ROOT, Cluster, wait_until

HANDLERS = {
    "cart": ("union", ["tea,milk", "eggs,milk"], "eggs,milk,tea"),
    "event": ("concat-sorted", ["8pm", "10pm"], "10pm\n8pm"),
    "high": ("max", ["9", "10"], "10"),
    "low": ("min", ["9", "10"], "9"),
    "word": ("max", ["none", "7"], "7"),
}
FLAGS = [
    "--protocol",
    "cops-cd",
    *(word for name, (handler, _, _) in HANDLERS.items() for word in ("--conflicts", f"0:{name}:*={handler}")),
]


# It passes its proof: no random value is this one.
SUPERSTITIOUS = """
local newest
for _, sibling in ipairs(siblings) do
  if sibling.value == "thir" .. "te" .. "en" then error("unlucky") end
  newest = sibling.value or newest
end
return newest .. "?"
"""
EXAMPLES = {
    "basket": (["milk 1\ntea 2", "eggs 6\ntea 1"], "eggs 6\nmilk 1\ntea 2"),
    "profile": (['{"name":"Ann","age":7}', '{"name":"Anna","cats":["b","a"]}'], '{"age":7,"cats":["b","a"],"name":"Anna"}'),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conflicts")
    (folder / "superstitious.lua").write_text(SUPERSTITIOUS)
    flags = [*FLAGS, "--conflicts", "0:set:*=union"]
    for name in EXAMPLES:
        flags += ["--conflicts", f"0:{name}:*=lua {ROOT / 'examples' / 'handlers' / name}.lua"]
    flags += ["--conflicts", f"0:table:*=lua {folder / 'superstitious.lua'}"]
    cluster = Cluster(folder, delay="5ms", datacenters=2, flags=flags)
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def sides(pair):
    """A session in each datacenter, with the link between them cut."""
    pair.link(1, 2, "cut")
    with pair.session(1) as one, pair.session(2) as other:
        yield one, other
    pair.heal_all()


def beside(client, key):
    return [json.loads(line) for line in client.execute_command("CAUSAL", "CONFLICTS", key)]


def both_show(pair, sides, key, expected):
    pair.heal_all()
    for client in sides:
        wait_until(lambda: client.get(key) == expected, 10, f"{key} is {expected!r}")  # noqa: B023


def set_on_both(sides, key, values):
    """Each side has its own value while they do not hear of each other."""
    for client, value in zip(sides, values, strict=True):
        client.set(key, value)
        assert client.get(key) == value


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_makes_one_value_of_both(pair, sides, name):
    handler, values, expected = HANDLERS[name]
    key = f"{name}:1"
    set_on_both(sides, key, values)
    both_show(pair, sides, key, expected)
    for client in sides:
        lines = beside(client, key)
        assert sorted(line["write"]["value"] for line in lines) == sorted(values)
        assert {line["handler"] for line in lines} == {handler}
        assert {line["write"]["origin"] for line in lines} == {"dc1", "dc2"}
    # Whoever writes what it has seen replaces all of it.
    sides[1].set(key, "decided")
    both_show(pair, sides, key, "decided")
    for client in sides:
        assert beside(client, key) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_lua_text_makes_one_value_of_both(pair, sides, name):
    values, expected = EXAMPLES[name]
    key = f"{name}:1"
    set_on_both(sides, key, values)
    both_show(pair, sides, key, expected)
    for client in sides:
        assert {line["handler"] for line in beside(client, key)} == {f"lua {name}.lua"}
        assert all("failed" not in line for line in beside(client, key))
    sides[0].set(key, "decided")
    both_show(pair, sides, key, "decided")


def test_where_a_lua_text_fails_both_show_the_last_writer_and_say_why(pair, sides):
    one, other = sides
    failures = [client.info("everything")["ensue_failed_folds_0"] for client in sides]
    for first, last, shown in [("seven", "eight", "eight?"), ("thirteen", "seven", "seven"), ("eight", "thirteen", "thirteen")]:
        key = f"table:{first}:{last}"
        pair.link(1, 2, "cut")
        one.set(key, first)
        other.set(key, last)
        both_show(pair, sides, key, shown)
        reasons = {line.get("failed") for client in sides for line in beside(client, key)}
        assert reasons == ({None} if shown.endswith("?") else {"line 4: unlucky"})
        pair.link(1, 2, "cut")
    after = [client.info("everything")["ensue_failed_folds_0"] for client in sides]
    assert [now - then for then, now in zip(failures, after, strict=True)] == [2, 2]
    said = pair.log.read_text()
    assert "the handler 'lua superstitious.lua' of keyspace 0 failed" in said and "line 4: unlucky" in said


def test_a_restart_folds_what_was_in_conflict(pair, sides):
    for client, value in zip(sides, ["milk 3", "tea 4"], strict=True):
        client.set("basket:kept", value)
    both_show(pair, sides, "basket:kept", "milk 3\ntea 4")
    pair.stop()
    pair.start()
    for datacenter in (1, 2):
        with pair.session(datacenter) as client:
            wait_until(lambda: client.get("basket:kept") == "milk 3\ntea 4", 10, "it is folded again")  # noqa: B023


def test_the_last_writer_stays_where_no_pattern_matches_and_the_other_can_be_read(pair, sides):
    sides[0].set("plain", "first")
    sides[1].set("plain", "last")
    both_show(pair, sides, "plain", "last")
    assert [line["write"]["value"] for line in beside(sides[0], "plain")] == ["first", "last"]


def test_what_is_added_while_another_takes_it_out_stays(pair, sides):
    one, other = sides
    pair.heal_all()
    one.sadd("set:1", "milk", "tea")
    wait_until(lambda: other.smembers("set:1") == {"milk", "tea"}, 10, "both have both")
    pair.link(1, 2, "cut")
    one.delete("set:1")
    other.srem("set:1", "milk")
    other.sadd("set:1", "milk", "eggs")
    pair.heal_all()
    for client in sides:
        wait_until(lambda: client.smembers("set:1") == {"milk", "eggs"}, 10, "what was added stays")  # noqa: B023


def test_conflicts_are_counted_and_listed(pair, sides):
    before = [client.info("keyspaces")["keyspace0"]["conflicts"] for client in sides]
    sides[0].set("cart:counted", "a")
    sides[1].set("cart:counted", "b")
    both_show(pair, sides, "cart:counted", "a,b")
    after = [client.info("keyspaces")["keyspace0"]["conflicts"] for client in sides]
    assert [int(now) - int(then) for then, now in zip(before, after, strict=True)] == [1, 1]
    for client, (arrived, met) in zip(sides, ["ba", "ab"], strict=True):
        listed = [json.loads(line) for line in client.execute_command("CAUSAL", "CONFLICTS")]
        line = next(line for line in listed if line["key"] == "cart:counted")
        assert (line["arrived"]["value"], line["met"][0]["value"], line["shows"]) == (arrived, met, "a,b")
