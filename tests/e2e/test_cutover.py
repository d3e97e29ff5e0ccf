"""A writer that never stops moves from a redis-server to Ensue by the steps of docs/migrating.md, and loses nothing."""

import argparse
import sys

import pytest
from cluster import ROOT
from test_import import SERVER

sys.path.append(str(ROOT / "tests/bench"))

import cutover  # noqa: E402

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: apt-get install redis-server")


def test_a_writer_moves_over_and_every_answered_write_is_there(tmp_path):
    found = cutover.measure(argparse.Namespace(keys=3_000, rate=1_000, seconds=2), tmp_path)
    assert found["keys compared, all equal"] == found["keys at the start"] == 3_000
    assert found["writes before the cut"] > 1_000 and found["writes after it"] > 0
