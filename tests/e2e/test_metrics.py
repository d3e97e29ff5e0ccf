"""The metrics port: what it shows of a cluster that works and of one that does not, and who is answered."""

import base64
import contextlib
import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from cluster import ROOT, ensue, wait_until
from ports import METRICS

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def get(port, path, host="127.0.0.1", accept="*/*", user=None, name=None, tls=None):
    """The status, the type and the text."""
    headers = {"Accept": accept, **({"Host": name} if name else {})}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    request = urllib.request.Request(f"{'https' if tls else 'http'}://{host}:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def page(cluster, datacenter, node=0):
    """The figures of a page, by name and labels."""
    port = cluster.port + 100 * node + datacenter - 1 + METRICS
    status, _, text = get(port, "/metrics")
    assert status == 200, text
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_commands_keys_and_replication_are_counted(clean):
    before = page(clean, 1)
    with clean.client(1) as client:
        for number in range(50):
            client.set(f"metrics:{number}", "v")
        client.hset("metrics:hash", "f", "v")
        with pytest.raises(Exception, match="WRONGTYPE"):
            client.hget("metrics:0", "f")
    clean.converge()
    after = {}

    def grown(name):
        return after.get(name, 0) - before.get(name, 0)

    def are_counted():
        after.update(page(clean, 1))
        return grown('ensue_commands_total{group="string"}') >= 50

    # A page is shown again for a tenth of a second.
    wait_until(are_counted, 10, "the commands are counted")
    assert grown('ensue_commands_failed_total{group="hash"}') == 1
    assert grown('ensue_error_replies_total{error="WRONGTYPE"}') == 1
    assert grown('ensue_command_duration_seconds_count{group="string"}') >= 50
    assert grown('ensue_command_duration_seconds_sum{group="string"}') > 0
    assert after['ensue_keys{keyspace="0"}'] == 51
    assert after["ensue_log_bytes"] > 0 and after['ensue_memory_bytes{kind="resident"}'] > 1_000_000
    assert after['ensue_link_up{peer="dc2"}'] == after["ensue_ready"] == after["ensue_serving"] == 1
    # In the other datacenter each of these became visible, not before it was sent.
    there = page(clean, 2)
    assert there['ensue_visibility_delay_seconds_count{peer="dc1"}'] >= 51
    assert there['ensue_visibility_delay_seconds_sum{peer="dc1"}'] >= 51 * 0.004
    assert there['ensue_keys{keyspace="0"}'] == 51
    assert there['ensue_visibility_delay_seconds_bucket{le="+Inf",peer="dc1"}'] \
        == there['ensue_visibility_delay_seconds_count{peer="dc1"}']
    # The delay of the link is 5 ms, and one machine has one clock.
    assert -0.1 < there['ensue_peer_time_ahead_seconds{peer="dc1"}'] < 0.02


def test_the_lag_behind_a_cut_link_grows_and_goes_again(dev):
    cluster = dev(delay="5ms")
    cluster.link(1, 2, "cut")
    with cluster.client(1) as client:
        client.set("lag", "v")
        wait_until(lambda: page(cluster, 1)['ensue_link_up{peer="dc2"}'] == 0, 20, "the cut is seen")
        time.sleep(1)
        first = page(cluster, 1)['ensue_replication_unreceived_seconds{peer="dc2"}']
        time.sleep(1)
        client.set("lag", "w")
        later = page(cluster, 1)
    assert first > 0.9
    assert 0.9 < later['ensue_replication_unreceived_seconds{peer="dc2"}'] - first < 5
    assert later['ensue_replication_unreceived_entries{peer="dc2"}'] == 2
    assert later['ensue_replication_unreceived_seconds{peer="dc3"}'] < 0.5
    assert later["ensue_serving"] == 1 and later["ensue_ready"] == 0
    status, _, text = get(cluster.port + METRICS, "/readyz")
    assert status == 503 and "the link to dc2 is down" in text
    assert get(cluster.port + METRICS + 2, "/readyz")[::2] == (200, "ready\n")
    cluster.link(1, 2, "heal")
    wait_until(lambda: page(cluster, 1)['ensue_replication_unreceived_seconds{peer="dc2"}'] == 0, 20, "it is even")
    wait_until(lambda: get(cluster.port + METRICS, "/readyz")[0] == 200, 20, "dc1 is ready again")
    # Its delay is what the cut lasted.
    wait_until(lambda: page(cluster, 2)['ensue_visibility_delay_seconds_sum{peer="dc1"}'] > 1, 20, "it took long")


def test_every_node_shows_its_own_part(dev):
    cluster = dev(delay="5ms", nodes=2, partitions=4)
    with cluster.client(1) as client:
        for number in range(100):
            client.set(f"part:{number}", "v")
    pages = [page(cluster, 1, node) for node in (0, 1)]
    keys = [one['ensue_keys{keyspace="0"}'] for one in pages]
    assert sum(keys) == 100 and all(0 < count < 100 for count in keys)
    assert [one["ensue_ready"] for one in pages] == [1, 1]
    assert 'ensue_node_info{version="0.1.0",datacenter="dc1",node="1"}' in pages[1]
    assert all(one['ensue_replicating_partitions{peer="dc2"}'] == 2 for one in pages)


def test_both_formats_have_the_same_figures_and_promtool_accepts_them(clean):
    with clean.client(1) as client:
        client.set("format", "v")
    port = clean.port + METRICS
    status, kind, modern = get(port, "/metrics", accept=OPENMETRICS)
    assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert modern.endswith("\n# EOF\n")
    _, kind, classic = get(port, "/metrics")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"

    def names(text):
        return {line.split(" ")[0] for line in text.splitlines() if not line.startswith("#")}

    assert names(modern) == names(classic)
    # What is on the page is in the documentation.
    documented = (ROOT / "docs/metrics.md").read_text()
    for name in re.findall("^# TYPE ([a-z_]+) ", classic, re.MULTILINE):
        assert f"`{name}`" in documented or f"`{name}{{" in documented, name
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([promtool, "check", "metrics"], input=classic, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    config = pathlib.Path(ROOT) / "examples/prometheus/prometheus.yml"
    done = subprocess.run([promtool, "check", "config", config], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    # The other example names files that are elsewhere.
    config = pathlib.Path(ROOT) / "examples/prometheus/prometheus-tls.yml"
    done = subprocess.run(
        [promtool, "check", "config", "--syntax-only", config], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_other_datacenters_are_no_slaves_of_this_one(clean):
    # Sentinel would promote what it finds there, and clients would read from it.
    with clean.client(1) as client:
        found = client.info("replication")
    assert (found["role"], found["connected_slaves"]) == ("master", 0)
    assert not [name for name in found if re.fullmatch(r"slave\d+", name)]


def test_a_stock_exporter_shows_a_node_as_it_shows_a_redis(clean):
    exporter = shutil.which("redis_exporter") or shutil.which("prometheus-redis-exporter")
    if exporter is None:
        pytest.skip("redis_exporter is not installed")
    with clean.client(1) as client:
        client.set("exported", "v")
        client.get("exported")
    own = clean.port + METRICS + 20
    words = [exporter, "-redis.addr", f"redis://127.0.0.1:{clean.port}", "-web.listen-address", f"127.0.0.1:{own}"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def shown():
        with contextlib.suppress(OSError):
            text = get(own, "/metrics")[2]
            # A node that has just started is up for no second yet, and has used none of its processor.
            is_young = any(f"\n{name} 0\n" in text for name in ("redis_uptime_in_seconds", "redis_cpu_user_seconds_total"))
            return "redis_up 1" in text and not is_young and text

    try:
        text = wait_until(shown, 30, "it shows the node")
    finally:
        process.kill()
        process.wait()
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert figures['redis_exporter_last_scrape_error{err=""}'] == "0"
    assert figures['redis_db_keys{db="db0"}'] == "1" and figures["redis_connected_slaves"] == "0"
    for name in ("redis_memory_used_bytes", "redis_commands_processed_total", "redis_uptime_in_seconds",
                 'redis_commands_total{cmd="set"}', "redis_keyspace_hits_total", "redis_cpu_user_seconds_total"):
        assert float(figures[name]) > 0, name


def test_every_alert_fires_and_is_silent():
    folder = ROOT / "examples/prometheus"
    rules = set(re.findall(r"^ +- alert: (\w+)$", (folder / "alerts.yml").read_text(), re.M))
    tests = (folder / "alerts-test.yml").read_text()
    for rule in rules:
        # Before and after what it is for.
        assert len(re.findall(rf"alertname: {rule}, eval_time: \w+, exp_alerts: \[\] ", tests)) == 2, rule
        assert len(re.findall(rf"alertname: {rule}\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels", tests)) == 1, rule
    assert len(rules) == tests.count("  - name: ")
    # What is alerted on is documented.
    documented = (ROOT / "docs/metrics.md").read_text()
    for name in re.findall(r"\b(ensue_\w+)", "".join(re.findall(r"expr: .*", (folder / "alerts.yml").read_text()))):
        assert f"`{name}`" in documented or f"`{name}{{" in documented, name
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    words = [promtool, "test", "rules", folder / "alerts-test.yml"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_health_and_nonsense(clean):
    port = clean.port + METRICS
    assert get(port, "/healthz")[::2] == (200, "alive\n")
    assert get(port, "/nowhere")[0] == 404
    for bytes, status in [(b"PING\r\n\r\n", b"400"), (b"PUT /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"405")]:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(bytes)
            answer = b""
            while part := connection.recv(4096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 " + status), answer


def own_address():
    """An address of this machine that is not its loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


def test_other_machines_see_figures_if_they_log_in_or_the_operator_says_so(servers):
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has no other address")
    directives = {
        "dc1": [], "dc2": ["metrics-unauthenticated yes"],
        "dc3": ["requirepass secret", "user spy on >secret ~* +get", "user watcher on >secret -@all +info"],
    }
    for name, lines in directives.items():
        port = servers.port(name) + METRICS
        servers.start(name, f"metrics-port {port}", "metrics-bind 0.0.0.0", *lines)
        wait_until(lambda: is_up(port), 20, f"{name} listens")
    ports = {name: servers.port(name) + METRICS for name in directives}
    wait_until(lambda: get(ports["dc1"], "/v1/keys")[0] == 200, 30, "dc1 serves")
    # As long as nobody needs a password, another machine is answered nothing that names anything.
    for path in ("/", "/metrics", "/v1/state", "/v1/bdbs", "/v1/keys"):
        assert get(ports["dc1"], path, address)[0] == 403, path
        assert get(ports["dc1"], path, address, user="default:any")[0] == 403, path
        assert get(ports["dc1"], path)[0] == 200, path
    assert get(ports["dc1"], "/healthz", address)[0] == 200
    assert get(ports["dc2"], "/metrics", address)[0] == 200
    assert get(ports["dc2"], "/v1/keys", address)[0] == 403, "what is open are the figures"
    # Where there are passwords, this machine needs one, too.
    for host in (address, "127.0.0.1"):
        for user, status in (
            (None, 401), ("default:wrong", 401), ("nobody:secret", 401), ("spy:secret", 403), ("watcher:secret", 200),
            ("default:secret", 200),
        ):
            for path in ("/metrics", "/v1/state", "/v1/bdbs/1/availability"):
                found = get(ports["dc3"], path, host, user=user)[0]
                # The others are not linked to dc3, so it may not be available yet.
                assert found == status or (status, found) == (200, 503), (host, user, path)
        assert get(ports["dc3"], "/v1/keys", host, user="watcher:secret")[0] == 403
        assert get(ports["dc3"], "/v1/keys", host, user="default:secret")[0] == 200
    servers.end("dc1")
    not_ready = (503, "not ready\n")
    wait_until(lambda: get(ports["dc3"], "/readyz", address)[::2] == not_ready, 20, "why is told to who may see it")
    assert "the link to dc1 is down" in get(ports["dc3"], "/readyz", address, user="watcher:secret")[2]
    log = (servers.directory / "dc1.log").read_text()
    assert "passwords are sent there in the clear" in log


def test_a_page_of_a_foreign_site_reads_nothing_by_a_name_of_its_own(clean):
    port = clean.port + METRICS
    for path in ("/", "/metrics", "/v1/state", "/v1/keys", "/v1/bdbs"):
        assert get(port, path, name="evil.example")[0] == 421, path
        assert get(port, path, name=f"localhost:{port}")[0] == 200, path
    assert get(port, "/healthz", name="evil.example")[0] == 200


def test_figures_over_tls(servers, tmp_path):
    folder = tmp_path / "ours"
    assert ensue("certificates", "--out", folder, "dc1").returncode == 0
    port = servers.port("dc1") + METRICS
    servers.lines["dc1"] = ["dc1"]
    servers.start(
        "dc1", f"tls-cert-file {folder}/dc1-node0.pem", f"tls-key-file {folder}/dc1-node0.key", "metrics-tls yes",
        f"metrics-port {port}", "requirepass secret",
    )
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def figures(user="default:secret"):
        return get(port, "/metrics", user=user, tls=context)

    def serves():
        with contextlib.suppress(OSError):
            return figures()[0] == 200

    wait_until(serves, 20, "it serves over TLS")
    assert "ensue_node_info" in figures()[2]
    assert figures(None)[0] == 401
    # Who speaks no TLS is told nothing.
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while part := plain.recv(4096):
                heard += part
    assert heard[:1] in (b"", b"\x15")
    # Certificates are read again for this port, too.
    first = serial(port, context)
    assert ensue("certificates", "--out", folder, "dc1").returncode == 0
    servers.running["dc1"].send_signal(signal.SIGHUP)
    wait_until(lambda: serial(port, context) != first, 20, "it presents the new certificate")
    # Whoever drips its handshake loses its place.
    slow = []

    def is_full():
        slow.extend(socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(16))
        return not serves()

    wait_until(is_full, 20, "no place is left")
    wait_until(serves, 20, "there is room again")
    for one in slow:
        one.close()


def serial(port, context):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as tls:
            return tls.getpeercert()["serialNumber"]


def test_a_prometheus_scrapes_over_tls_as_a_user(servers, tmp_path):
    """By the lines that the documents show."""
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path / "ours"
    assert ensue("certificates", "--out", folder, "dc1").returncode == 0
    port, own = servers.port("dc1") + METRICS, servers.ports.first + METRICS + 20
    servers.lines["dc1"] = ["dc1"]
    servers.start(
        "dc1", f"tls-cert-file {folder}/dc1-node0.pem", f"tls-key-file {folder}/dc1-node0.key", "metrics-tls yes",
        f"metrics-port {port}", "requirepass secret", "user watcher on >watch -@all +info",
    )
    example = (ROOT / "examples/prometheus/prometheus-tls.yml").read_text()
    for ours, its in (
        ("/etc/prometheus/ensue-ca.pem", f"{folder}/ca.pem"),
        ("/etc/prometheus/ensue-password", f"{tmp_path}/password"),
        ("scrape_interval: 5s", "scrape_interval: 1s"),
    ):
        assert ours in example
        example = example.replace(ours, its)
    example = re.sub(r"targets: \[.*\]", f'targets: ["127.0.0.1:{port}"]', example)
    (tmp_path / "prometheus.yml").write_text(example)
    (tmp_path / "alerts.yml").write_text((ROOT / "examples/prometheus/alerts.yml").read_text())
    (tmp_path / "password").write_text("watch")
    with (tmp_path / "prometheus.log").open("ab") as log:
        process = subprocess.Popen(
            [prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
             f"--web.listen-address=127.0.0.1:{own}"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
    try:

        def scraped():
            with contextlib.suppress(OSError):
                found = json.loads(get(own, "/api/v1/query?query=ensue_node_info")[2])["data"]["result"]
                return found and found[0]["metric"]["datacenter"]

        assert wait_until(scraped, 60, "it has the figures", pause=0.5) == "dc1"
    finally:
        process.kill()
        process.wait()


def is_up(port):
    try:
        return get(port, "/healthz")[0] == 200
    except OSError:
        return False


def test_nothing_listens_unless_it_is_configured(servers):
    servers.start("dc1")

    def serves():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", servers.port("dc1"))) == 0

    wait_until(serves, 20, "dc1 accepts clients")
    assert not is_up(servers.port("dc1") + METRICS)
