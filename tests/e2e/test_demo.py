"""The demo keeps its word under both protocols, and the examples run as their headers say."""

import os
import subprocess
import sys

import pytest
from cluster import ROOT, binary, ensue


def lines_of(done):
    return done.stdout.strip().splitlines()


def test_demo_on_a_running_cluster(clean):
    done = ensue("demo", "--fast", "--port", clean.port, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Found a dev cluster" in done.stdout
    assert lines_of(done)[-1].startswith("VERDICT: causality held"), done.stdout
    # Its links are as they were before.
    clean.client(1).set("after", "the demo")
    clean.converge()
    assert "\x1b" not in done.stdout, "colours without a terminal"


@pytest.mark.parametrize(
    ("protocol", "verdict"), [("eiger", "VERDICT: causality held"), ("eventual", "VERDICT: the anomaly was shown")]
)
def test_demo_starts_its_own_cluster(protocol, verdict):
    # Port 1 is nobody's.
    done = ensue("demo", "--fast", "--port", 1, "--protocol", protocol, timeout=80)
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines_of(done)[-1].startswith(verdict), done.stdout


@pytest.mark.parametrize("name", ["session.py", "counters.py", "shopping_cart.py"])
def test_examples(clean, name):
    command = [sys.executable, str(ROOT / "examples" / name), "--port", str(clean.port)]
    environment = {**os.environ, "ENSUE_BIN": binary()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
