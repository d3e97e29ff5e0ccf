"""The dashboard for Grafana asks for what nodes show: each name and each label, and each expression has an answer."""

import collections
import contextlib
import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest
from cluster import ROOT, wait_until
from ports import METRICS
from replicated import Group

DASHBOARD = json.loads((ROOT / "examples/grafana/ensue.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]]
# What Prometheus adds to each series.
OF_TARGETS = {"instance", "job"}


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Nodes with all that the dashboard shows: replicas, branches, conflicts, a subscriber."""
    nodes = (("dc1", 0), ("dc1", 1), ("dc1", 2), ("dc2", 0))
    keyspaces = ("keyspace 1 protocol tardis", "keyspace 2 protocol cops-cd", "keyspace 2 conflicts list:* union")
    one = Group(tmp_path_factory.mktemp("nodes"), nodes, "3 dc2:1", *keyspaces)
    try:
        for number in range(len(nodes)):
            one.start(number)
        for number in (0, 3):
            one.wait_until_all_serve(number)
            for keyspace in (0, 1, 2):
                with one.client(number) as client:
                    client.select(keyspace)
                    client.set("dashboard", number)
                    client.get("dashboard")
                    with contextlib.suppress(Exception):
                        client.lpush("dashboard", 1)
        # Without subscribers none are shown.
        with one.client(0) as client, client.pubsub() as subscriber:
            subscriber.subscribe("dashboard")
            yield one
    finally:
        one.close()


def page(group, number):
    with urllib.request.urlopen(f"http://127.0.0.1:{group.metrics_port(number)}/metrics", timeout=10) as answer:
        return answer.read().decode()


def labels_of(group):
    """The labels of each series that a node shows, by its name."""
    found = collections.defaultdict(set)
    for number in range(len(group.nodes)):
        for name, labels in re.findall(r"^(ensue_\w+)(?:\{(.*)\})? ", page(group, number), re.M):
            found[name] |= set(re.findall(r'(\w+)="', labels)) | OF_TARGETS
    return found


def selectors(expression):
    return re.findall(r"(ensue_\w+)(?:\{([^}]*)\})?", expression)


def test_every_panel_has_its_place_and_says_where_its_data_is():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)\b", json.dumps(DASHBOARD))) == variables
    documented = (ROOT / "docs/metrics.md").read_text()
    for title, expression, _ in TARGETS:
        assert selectors(expression), title
        for name, given in selectors(expression):
            assert 'instance=~"$instance"' in given, (title, name)
            name = name.removesuffix("_bucket")
            assert f"`{name}`" in documented or f"`{name}{{" in documented, (title, name)


def test_nodes_show_every_name_and_every_label(group):
    shown = labels_of(group)
    for title, expression, legend in TARGETS:
        labels = OF_TARGETS.copy()
        for name, given in selectors(expression):
            assert name in shown, (title, name)
            assert set(re.findall(r"(\w+)=", given)) <= shown[name], (title, name)
            labels |= shown[name]
        grouped = re.findall(r"\bby \(([^)]*)\)", expression)
        for names in grouped:
            assert set(names.split(", ")) <= labels, (title, names)
        # What a sum leaves is what a legend can name.
        left = {name for names in grouped for name in names.split(", ")} if "sum" in expression else labels
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= left, (title, legend)


def test_a_prometheus_answers_every_expression(group, tmp_path):
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("prometheus is not installed")
    own = group.base + METRICS + 20
    targets = ", ".join(f'"127.0.0.1:{group.metrics_port(number)}"' for number in range(len(group.nodes)))
    job = f"{{ job_name: ensue, static_configs: [{{ targets: [{targets}] }}] }}"
    (tmp_path / "prometheus.yml").write_text(f"global: {{ scrape_interval: 1s }}\nscrape_configs: [{job}]\n")
    with (tmp_path / "prometheus.log").open("ab") as log:
        process = subprocess.Popen(
            [prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
             f"--web.listen-address=127.0.0.1:{own}"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )

    def answer(expression):
        expression = expression.replace("$instance", ".*").replace("$__rate_interval", "30s")
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/query?{query}", timeout=10) as reply:
            return json.loads(reply.read())["data"]["result"]

    def is_answered(title, expression, legend):
        with contextlib.suppress(OSError):
            found = answer(expression)
            labels = set(re.findall(r"\{\{(\w+)\}\}", legend))
            return found and all(labels <= set(series["metric"]) for series in found)

    try:
        for target in TARGETS:
            wait_until(lambda target=target: is_answered(*target), 60, f"it answers {target}", pause=0.5)
    finally:
        process.kill()
        process.wait()
