"""What is packed works: the configuration, the unit, the package's metadata, the image's health check, the chart.

Nothing is built here. What needs a tool that is not on the machine is skipped.
"""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import textwrap
import tomllib
import urllib.error
import urllib.request

import pytest
import redis
from cluster import ROOT, binary, ensue, wait_until
from ports import METRICS, PEERS, TLS, Ports

PACKAGING = ROOT / "packaging"
CHART = PACKAGING / "helm/ensue"
# A clean stop: two seconds for clients, twenty for the log.
STOP_S = 22


@pytest.fixture
def ports():
    with Ports() as ports:
        yield ports


@contextlib.contextmanager
def server(config, ports, directory, *flags, environment=None):
    """One server on loopback, in a directory of its own, until its metrics port answers; the answer of a path."""
    metrics = ports.first + METRICS
    binds = [word for name in ("bind", "peer-bind", "metrics-bind") for word in (f"--{name}", "127.0.0.1")]
    own = ["--dir", directory / "data", *binds]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [binary(), "server", "--config", config, *own, "--metrics-port", str(metrics), *flags],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environment or {})},
        )

    def page(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics}{path}", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            assert process.poll() is None, (directory / "log").read_text()
            return None

    try:
        wait_until(lambda: page("/healthz") == 200, 20, "it is alive")
        yield page
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_S) == 0
    finally:
        process.kill()
        process.wait()


def on_loopback(text, ports):
    """The same nodes at places of this machine; nothing here dials another one."""
    place = iter(range(ports.first + PEERS, ports.first + PEERS + 40, 4))
    return re.sub(r"^node (\S+) +\S+", lambda found: f"node {found[1]} 127.0.0.1:{next(place)}", text, flags=re.M)


def test_the_configuration_serves_as_it_is(ports, tmp_path):
    with server(PACKAGING / "ensue.conf", ports, tmp_path, "--port", str(ports.first)) as page:
        wait_until(lambda: page("/readyz") == 200, 20, "it is ready")


def test_what_the_configuration_has_as_comments_is_valid(ports, tmp_path):
    directives = re.compile(r"^# ?((?:[a-z]+-)*[a-z]+ +\S+( +\S+)*)$", re.M)
    known = subprocess.run(
        [binary(), "server", "--dir", "/dev/null/none"], capture_output=True, text=True, timeout=20,
    ).stderr
    known = {line.split()[2] for line in known.splitlines() if " notice    " in line} | {"node", "self"}
    text = (PACKAGING / "ensue.conf").read_text()
    text = directives.sub(lambda found: found[1] if found[1].split()[0] in known else found[0], text)
    for line in ("self lisbon", "tls-cluster      yes", "replicas 1"):
        assert f"\n{line}\n" in text
    ensue("secret", "lisbon", "oslo", "quito", "--out", tmp_path)
    ensue("certificates", "--cluster", "shop", "lisbon", "oslo", "quito", "--out", tmp_path)
    config = tmp_path / "ensue.conf"
    config.write_text(on_loopback(text.replace("/etc/ensue/", f"{tmp_path}/"), ports))
    with server(config, ports, tmp_path, "--tls-port", str(ports.first + TLS)) as page:
        assert page("/readyz") == 503
        words = ["--tls", "--cacert", tmp_path / "ca.pem", "-a", "a long one", "PING"]
        assert ensue("cli", "-p", ports.first + TLS, *words).stdout.strip() == "PONG"


def test_the_unit_is_one(tmp_path):
    text = (PACKAGING / "systemd/ensue.service").read_text()
    assert int(re.search(r"^TimeoutStopSec=(\d+)s$", text, re.M)[1]) > STOP_S
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    (tmp_path / "ensue.service").write_text(text.replace("/usr/bin/ensue", binary()))
    words = ["systemd-analyze", "verify", "--man=no", tmp_path / "ensue.service"]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0 and "ensue.service" not in checked.stderr, checked.stderr


def test_what_the_debian_package_takes_is_there():
    folder = ROOT / "crates/ensue"
    package = tomllib.loads((folder / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    sources = [source for source, *_ in package["assets"]]
    made = [source for source in sources if source.startswith("target/release/")]
    missing = [source for source in sources if source not in made and not list(folder.glob(source))]
    assert not missing and (folder / package["license-file"][0]).exists() and (folder / package["changelog"]).exists()
    # The rest is built, or made by what was built.
    script = (PACKAGING / "deb.sh").read_text()
    assert 'made="$target/release/ensue-made"' in script and '"$binary" man --out "$made/man"' in script
    assert '> "$made/completions/$shell"' in script and "for shell in bash zsh fish;" in script
    shells = [f"target/release/ensue-made/completions/{shell}" for shell in ("bash", "zsh", "fish")]
    assert made == ["target/release/ensue", "target/release/ensue-made/man/*.1", *shells]
    targets = [f"/{target}" for _, target, _ in package["assets"]]
    assert set(package["conf-files"]) <= set(targets)
    for script in (folder / package["maintainer-scripts"]).iterdir():
        subprocess.run(["sh", "-n", script], check=True, timeout=20)


def test_a_release_is_the_same_whoever_packs_it_and_has_the_sums_of_its_files(tmp_path):
    # Packed as it is: what differs would be the packing's doing.
    binary_there = tmp_path / "ensue"
    binary_there.write_text(f'#!/bin/sh\nexec {binary()} "$@"\n')
    binary_there.chmod(0o755)
    sums = []
    for umask, name in ((0o022, "one"), (0o077, "two")):
        words = [PACKAGING / "release.sh", "--binary", binary_there, "--archives-only", "--out", tmp_path / name]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "TZ": "UTC" if name == "one" else "Japan"}
        subprocess.run(words, check=True, capture_output=True, timeout=120, umask=umask, env=environment)
        words = ["sha256sum", "-c", "SHA256SUMS"]
        checked = subprocess.run(words, cwd=tmp_path / name, capture_output=True, timeout=60)
        assert checked.returncode == 0, checked.stdout
        sums.append((tmp_path / name / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]
    packed = next((tmp_path / "one").glob("*.tar.gz"))
    assert packed.name.startswith("ensue-0.1.0-")
    assert [line.split()[1] for line in sums[0].splitlines()] == [packed.name, "ensue-chart-0.1.0.tgz"]
    with tarfile.open(packed) as archive:
        members = {member.name.split("/", 1)[-1]: member for member in archive.getmembers()}
    for name in ("man/ensue-server.1", "completions/zsh", "docs/installing.md", "examples/prometheus/alerts.yml",
                 "examples/grafana/ensue.json", "ensue.conf", "ensue.service", "LICENSE"):
        assert members[name].mode == 0o644, name
    assert members["ensue"].mode == 0o755
    assert {(member.mtime, member.uid, member.gid) for member in members.values()} == {(1_700_000_000, 0, 0)}


@pytest.mark.parametrize(("triple", "builder"), [("unknown-linux-musl", "zigbuild"), ("unknown-linux-gnu", "build")])
def test_zig_builds_a_release_that_needs_no_c_library(triple, builder, tmp_path):
    triple = f"{os.uname().machine}-{triple}"
    built, programs = tmp_path / "target" / triple / "release/ensue", tmp_path / "programs"
    built.parent.mkdir(parents=True)
    programs.mkdir()
    for name, script in {
        "cargo": f"echo \"$@\" >> {tmp_path}/asked; printf '#!/bin/sh\\nexec {binary()} \"$@\"\\n' > {built}",
        "cargo-zigbuild": "exit 1",
        "strip": 'shift; cp "$3" "$2"; chmod +x "$2"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    words = [PACKAGING / "release.sh", "--target", triple, "--archives-only", "--out", tmp_path / "out"]
    path = f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(tmp_path / "target")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text() == f"{builder} --release --locked --package ensue --target {triple}\n"
    assert next((tmp_path / "out").glob("ensue-0*.tar.gz")).name == f"ensue-0.1.0-{triple}.tar.gz"


def test_the_manual_has_a_page_for_every_command(tmp_path):
    done = ensue("man", "--out", tmp_path / "man")
    assert done.returncode == 0, done.stderr
    listed = re.search(r"^Commands:\n(.*?)\n\n", ensue("--help").stdout, re.M | re.S)[1]
    commands = set(re.findall(r"^  (\S+)", listed, re.M)) - {"help"}
    assert {"server", "dev", "status", "top"} <= commands
    pages = {path.name for path in (tmp_path / "man").iterdir()}
    assert {"ensue.1", *(f"ensue-{command}.1" for command in commands)} <= pages
    assert "ensue-dev-child.1" not in pages
    if shutil.which("man"):
        shown = subprocess.run(
            ["man", "--warnings", "-l", tmp_path / "man/ensue-dev.1"], capture_output=True, text=True, timeout=60,
            env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"},
        )
        assert shown.returncode == 0 and "--datacenters" in shown.stdout and not shown.stderr, shown.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_completions(tmp_path, shell):
    done = ensue("completions", shell)
    assert done.returncode == 0 and not done.stderr
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(done.stdout)
    checked = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_fish_completes_a_command_and_a_value(tmp_path):
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    script = tmp_path / "ensue.fish"
    script.write_text(ensue("completions", "fish").stdout)

    def completed(line):
        call = f'source {script}; complete --do-complete "{line}"'
        environment = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(["fish", "-c", call], capture_output=True, text=True, timeout=60, env=environment)
        return [offer.split("\t")[0] for offer in done.stdout.splitlines()]

    assert completed("ensue sta") == ["status"]
    assert completed("ensue dev --appendfsync e") == ["everysec"]
    assert "--datacenters" in completed("ensue dev --d")


# A terminal of its own in which somebody types lines, each in place of the one before; what it shows is read until what
# each is to become is there.
ZSH = r"""
zmodload zsh/zpty || exit 3
zpty shell zsh -f -i
zpty -w shell "PS1='> '; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; print read''y"
zpty -r -m shell shown '*ready*'
for line completed in "${@:2}"; do
    zpty -w -n shell $'\C-u'"$line"$'\t'
    zpty -r -m shell shown "*$completed*" && print -r -- $completed
done
zpty -d shell
"""


def test_zsh_completes_a_command_and_a_value(tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    (tmp_path / "_ensue").write_text(ensue("completions", "zsh").stdout)
    completed = {"sta": "status", "dev --appendfsync e": "everysec", "dev --datac": "--datacenters"}
    lines = [word for typed, becomes in completed.items() for word in (f"ensue {typed}", becomes)]
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    words = ["zsh", "-f", "-c", ZSH, "zsh", tmp_path, *lines]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout.split() == list(completed.values()), done.stderr


def test_bash_completes_a_command_and_a_value(tmp_path):
    script = tmp_path / "ensue"
    script.write_text(ensue("completions", "bash").stdout)

    def completed(*words):
        line = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}'
        call = f'source {script}; {line}; _ensue ensue "{words[-1]}" "{words[-2]}"; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, timeout=60)
        return done.stdout.split()

    assert completed("ensue", "sta") == ["status"]
    assert completed("ensue", "dev", "--appendfsync", "e") == ["everysec"]
    assert "--datacenters" in completed("ensue", "dev", "--d")


def test_the_health_check_of_the_image(ports, tmp_path):
    command = json.loads(re.search(r'CMD (\["/bin/bash".*\])$', (ROOT / "Containerfile").read_text(), re.M)[1])

    def is_healthy():
        environment = {**os.environ, "ENSUE_METRICS_PORT": str(ports.first + METRICS)}
        return subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, timeout=20).returncode == 0

    assert not is_healthy()
    with server(PACKAGING / "ensue.conf", ports, tmp_path, "--port", str(ports.first)):
        assert is_healthy()


def test_the_book_has_every_document():
    docs = ROOT / "docs"
    listed = re.findall(r"\]\(([^)]+)\)", (docs / "SUMMARY.md").read_text())
    there = [str(path.relative_to(docs)) for path in docs.rglob("*.md") if path.name != "SUMMARY.md"]
    assert sorted(listed) == sorted(there)


def test_links_to_headings_lead_to_one():
    """That files are there, `cargo xtask tidy` says."""

    def prose(path):
        return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)

    def anchors(path):
        headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
        texts = [re.sub(r"\]\([^)]*\)", "", heading).lower() for heading in headings]
        return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}

    lost = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for file, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", prose(page)):
            target = (page.parent / file).resolve() if file else page
            if target.suffix == ".md" and anchor not in anchors(target):
                lost.append(f"{page.relative_to(ROOT)}: {file}#{anchor}")
    assert not lost


def render(values):
    """What Helm makes of the chart, or why it refuses: by the program, or by its library for Python."""
    if shutil.which("helm"):
        words = ["helm", "template", "ensue", CHART, "-n", "stores", "-f", values]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        return done.stdout if done.returncode == 0 else f"refused: {done.stderr}"
    if importlib.util.find_spec("helm_python"):
        import helm_python

        with helm_python.Chart.load(CHART) as chart:
            given = helm_python.values_from_yaml(values.read_text())
            try:
                chart.validate_schema(given)
                return "\n---\n".join(chart.render(values=given, name="ensue", namespace="stores").values())
            except helm_python.HelmError as error:
                return f"refused: {error}"
    pytest.skip("neither helm nor the package helm-python-sdk is installed")


def configuration(rendered):
    return textwrap.dedent(re.search(r"^  ensue\.conf: \|\n((?:    .*\n)+)", rendered, re.M)[1])


def environment_of(rendered):
    """What the pod with the ordinal 0 has in `self`."""
    return {"ENSUE_SELF": re.search(r'ENSUE_SELF, value: "(.*?)"', rendered)[1].replace("$(POD_INDEX)", "0")}


@pytest.mark.parametrize("values", sorted(CHART.glob("ci/*.yaml")), ids=lambda path: path.stem)
def test_what_the_chart_configures_is_accepted(values, ports, tmp_path):
    rendered = render(values)
    text, environment = configuration(rendered), environment_of(rendered)
    config = tmp_path / "ensue.conf"
    config.write_text(text)
    words = [binary(), "server", "--config", config, "--dir", "/dev/null/none"]
    parsed = subprocess.run(words, capture_output=True, text=True, timeout=20, env={**os.environ, **environment})
    assert "its configuration:" in parsed.stderr, parsed.stderr
    for line in re.findall(r"^node .*$", text, re.M):
        assert f"  {line}\n" in parsed.stderr

    cluster, name = re.search(r"^cluster-name (.*)$", text, re.M)[1], environment["ENSUE_SELF"].split()[0]
    names = list(dict.fromkeys(re.findall(r"^node (\S+)", text, re.M)))
    ensue("secret", *names, "--out", tmp_path)
    ensue("certificates", "--cluster", cluster, *names, "--out", tmp_path)
    for theirs, ours in {
        "secret/cluster.secret": f"{name}.secret", "tls/tls.crt": f"{name}-node0.pem",
        "tls/tls.key": f"{name}-node0.key", "tls/ca.crt": "ca.pem",
    }.items():
        text = text.replace(f"/etc/ensue/{theirs}", str(tmp_path / ours))
    config.write_text(on_loopback(text, ports))
    has_tls = "\ntls-port 6380\n" in text
    flags = ["--tls-port", str(ports.first)] if has_tls else ["--port", str(ports.first)]
    with server(config, ports, tmp_path, *flags, environment={**environment, "ENSUE_REQUIREPASS": 'a b"c'}) as page:
        assert page("/readyz") in (200, 503)
        secure = dict(ssl=True, ssl_ca_certs=str(tmp_path / "ca.pem")) if has_tls else {}
        with redis.Redis("127.0.0.1", ports.first, password='a b"c', **secure) as client:
            assert client.ping()


@pytest.mark.parametrize(
    ("replicas", "nodes", "away", "settled"), [(1, 2, 1, 0), (3, 3, 1, 15), (5, 7, 2, 15)],
)
def test_as_many_pods_may_be_away_as_replicas_can_do_without(replicas, nodes, away, settled, tmp_path):
    (tmp_path / "values.yaml").write_text(
        f"cluster: {{ replicas: {replicas}, datacenters: [{{ name: dc1, nodes: {nodes} }}] }}\n"
        "clusterSecret: { content: a }\nauth: { password: a }\n"
    )
    rendered = render(tmp_path / "values.yaml")
    assert f"\nreplicas {replicas}\n" in configuration(rendered)
    assert f"\n  maxUnavailable: {away}\n" in rendered and f"\n  minReadySeconds: {settled}\n" in rendered
    assert f"\n  replicas: {nodes}\n" in rendered
    # Two pods on one machine would be two replicas that are lost together.
    assert ("podAntiAffinity" in rendered) == (replicas > 1)
    # Liveness never depends on other pods, or a lost majority would restart those that are left.
    assert rendered.count("httpGet: { path: /healthz, port: metrics }") == 2
    assert rendered.count("httpGet: { path: /readyz, port: metrics }") == 1


def test_a_datacenter_may_have_other_replicas_than_the_cluster():
    rendered = render(CHART / "ci/porto-values.yaml")
    assert "\nreplicas 3 faro:1\n" in configuration(rendered)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ("datacenter: lisbon", "lisbon is none of cluster.datacenters"),
        ("auth: { password: '' }", "auth.password"),
        ("tls: { enabled: true }\nauth: { password: a }", "issuerRef"),
        ("cluster: { datacenters: [{ name: dc1 }, { name: dc2 }] }\nclusterSecret: { content: a }\n"
         "auth: { password: a }", "dc2 is another datacenter"),
        ("cluster: { datacenters: [{ name: dc1, nodes: 2 }] }\nauth: { password: a }", "clusterSecret"),
        ("cluster: { datacenters: [{ name: dc1, nodes: 2, hosts: [a] }] }\nclusterSecret: { content: a }\n"
         "auth: { password: a }", "2 nodes and 1 hosts"),
        ("datacentre: lisbon", "datacentre"),
        ("cluster: { replicas: 2 }\nauth: { password: a }", "replicas"),
        ("cluster: { replicas: 3, datacenters: [{ name: dc1, nodes: 2 }] }\nclusterSecret: { content: a }\n"
         "auth: { password: a }", "dc1 has 2 nodes, too few for 3 replicas"),
        ("cluster: { replicas: 3, datacenters: [{ name: dc1, nodes: 3 }] }\nclusterSecret: { content: a }\n"
         "auth: { password: a }\npodDisruptionBudget: { maxUnavailable: 2 }", "without 1 pod(s), and not without 2"),
        ("terminationGracePeriodSeconds: 10\nauth: { password: a }", "terminationGracePeriodSeconds"),
    ],
)
def test_the_chart_refuses_values_that_make_no_datacenter(values, why, tmp_path):
    (tmp_path / "values.yaml").write_text(values)
    refused = render(tmp_path / "values.yaml")
    assert refused.startswith("refused") and why in refused
