"""Who may speak for a datacenter, and with what configuration: refused in words by both sides, and plain to see."""

import contextlib
import hashlib
import random
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib

import pytest
from cluster import PEERS, binary, ensue, wait_until
from servers import NAMES

PATIENCE_S = 20
# Of the two texts of a handler.
DIGESTS = [hashlib.sha1(f"return siblings[{at}].value".encode()).hexdigest() for at in (1, 2)]


def info(servers, name):
    """The lines of `INFO` as they are: a client library takes a comma in a reason for a list."""
    with socket.create_connection(("127.0.0.1", servers.port(name)), timeout=10) as connection:
        connection.sendall(b"INFO everything\r\n")
        reader = connection.makefile("rb")
        length = int(reader.readline()[1:])
        text = reader.read(length).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def wait_for_link(servers, name, other, state):
    def there():
        return info(servers, name).get(f"ensue_link_{other}") == state

    wait_until(there, PATIENCE_S, f"{name} says that its link to {other} is {state}")


def reason(servers, name, other):
    return info(servers, name).get(f"ensue_link_{other}_reason", "")


def wait_for_reason(servers, name, other, words):
    wait_until(lambda: words in reason(servers, name, other), PATIENCE_S, f"{name} says of {other}: {words}")


def log_of(servers, name):
    return (servers.directory / f"{name}.log").read_text(errors="replace")


def wait_for_start(servers, name):
    def answers():
        with contextlib.suppress(Exception):
            return servers.ask(name, "PING")
        return False

    wait_until(answers, PATIENCE_S, f"{name} answers")


def start(servers, name, *directives):
    # Nobody to ask: some of these datacenters never link.
    servers.start(name, "first-start alone", *directives)
    wait_for_start(servers, name)


def start_refused(servers, name, *directives):
    """What a server says that does not start."""
    before = len(log_of(servers, name)) if (servers.directory / f"{name}.log").exists() else 0
    servers.start(name, "first-start alone", *directives)
    assert servers.running.pop(name).wait(PATIENCE_S) != 0
    return log_of(servers, name)[before:]


def make_secrets(folder, names=NAMES):
    done = ensue("secret", "--out", folder, *names)
    assert done.returncode == 0, done.stderr
    return {name: f"cluster-secret {folder / (name + '.secret')}" for name in names}


def ready(servers, name):
    return ensue("status", "--ready", "--port", servers.port(name))


def test_unequal_protocols_do_not_link_and_both_say_why(servers):
    start(servers, "dc1", "keyspace 1 protocol cure")
    for name in ("dc2", "dc3"):
        start(servers, name)
    wait_for_link(servers, "dc2", "dc3", "up")
    for name, other, words in [
        ("dc1", "dc2", "keyspace 1 protocol: cure here, eiger there"),
        ("dc2", "dc1", "keyspace 1 protocol: eiger here, cure there"),
        ("dc3", "dc1", "keyspace 1 protocol: eiger here, cure there"),
    ]:
        wait_for_link(servers, name, other, "refused")
        assert words in reason(servers, name, other)
        assert words in log_of(servers, name)
        said = ensue("status", "--port", servers.port(name)).stdout
        assert ("UNREPLICATED" if name == "dc1" else f"serving, no link to {other}") in said
        assert f"the link to {other} is refused" in said and words in said
        # It serves all the same: that it does so for itself is what its readiness says.
        assert servers.ask(name, "SET", f"by:{name}", "1")
        verdict = ready(servers, name)
        assert verdict.returncode == 2 and words in verdict.stdout
    assert info(servers, "dc1")["ensue_ready"] == "0"

    servers.end("dc1")
    start(servers, "dc1", f"dir {servers.directory / 'anew'}")
    for name, other in [("dc1", "dc2"), ("dc2", "dc1")]:
        wait_for_link(servers, name, other, "up")
    for name in NAMES:
        wait_until(lambda name=name: ready(servers, name).returncode == 0, PATIENCE_S, f"{name} is ready")
    assert info(servers, "dc1")["ensue_ready"] == "1"
    assert ensue("status", "--port", servers.port("dc1")).stdout.count("UNREPLICATED") == 0


def test_other_texts_of_a_handler_do_not_link_and_both_say_why(servers):
    lines = {}
    for name, text in [("dc1", "return siblings[1].value"), ("dc2", "return siblings[2].value")]:
        folder = servers.directory / f"handlers of {name}"
        folder.mkdir()
        (folder / "first.lua").write_text(text)
        lines[name] = ["keyspace 1 protocol cops-cd", f'keyspace 1 conflicts doc:* lua "{folder}/first.lua"']
    for name in lines:
        start(servers, name, *lines[name])
    here, there = ('"doc:*" lua first.lua ' + digest for digest in DIGESTS)
    for name, other, words in [
        ("dc1", "dc2", f"keyspace 1 conflicts: {here} here, {there} there"),
        ("dc2", "dc1", f"keyspace 1 conflicts: {there} here, {here} there"),
    ]:
        wait_for_link(servers, name, other, "refused")
        assert words in reason(servers, name, other) and words in log_of(servers, name)
    # With the text of the other one, in whichever folder, it links.
    servers.end("dc2")
    (servers.directory / "handlers of dc2" / "first.lua").write_text("return siblings[1].value")
    start(servers, "dc2", *lines["dc2"])
    for name, other in [("dc1", "dc2"), ("dc2", "dc1")]:
        wait_for_link(servers, name, other, "up")
    servers.end("dc2")
    (servers.directory / "handlers of dc2" / "first.lua").write_text("return siblings[1].value .. ''")
    said = start_refused(servers, "dc2", *lines["dc2"])
    assert 'it makes nothing of {nil, ""}: line 1: attempt to concatenate nil' in said


def test_swapped_node_lines_are_told(servers):
    servers.lines["dc2"] = ("dc2", "dc1", "dc3")
    for name in ("dc1", "dc2"):
        start(servers, name)
    wait_for_reason(servers, "dc1", "dc2", "datacenters: dc1 dc2 dc3 here, dc2 dc1 dc3 there")
    wait_for_reason(servers, "dc2", "dc1", "datacenters: dc2 dc1 dc3 here, dc1 dc2 dc3 there")
    assert info(servers, "dc1")["ensue_link_dc2"] == "refused"


def test_who_is_gone_is_down_and_not_refused(servers):
    for name in NAMES:
        start(servers, name)
    wait_for_link(servers, "dc2", "dc1", "up")
    servers.end("dc1", signal.SIGKILL)
    wait_for_link(servers, "dc2", "dc1", "down")
    assert ready(servers, "dc2").returncode == 2
    assert int(time.time()) - int(info(servers, "dc2")["ensue_link_dc1_since"]) < PATIENCE_S
    assert ready(servers, "dc1").returncode == 1


def test_datacenters_prove_who_they_are(servers, tmp_path):
    secrets = make_secrets(tmp_path / "keys")
    for name in NAMES:
        start(servers, name, secrets[name])
    for name in NAMES:
        wait_until(lambda name=name: ready(servers, name).returncode == 0, PATIENCE_S, f"{name} is ready")
    servers.ask("dc1", "SET", "a", "1")
    wait_until(lambda: servers.ask("dc3", "GET", "a") == "1", PATIENCE_S, "the write is everywhere")

    # The file of another datacenter is no use: not as it is, and not under another name.
    servers.end("dc3")
    assert "is the cluster-secret of dc2, and this node is of dc3" in start_refused(servers, "dc3", secrets["dc2"])
    stolen = tmp_path / "stolen.secret"
    stolen.write_text((tmp_path / "keys/dc2.secret").read_text().replace("ensue-secret 1 dc2", "ensue-secret 1 dc3"))
    start(servers, "dc3", f"cluster-secret {stolen}")
    wait_for_reason(servers, "dc1", "dc3", "they say they are of dc3, and do not prove it")
    wait_for_reason(servers, "dc3", "dc1", "they say they are of dc1, and do not prove it")
    assert servers.ask("dc3", "SET", "b", "forged")
    time.sleep(1)
    assert servers.ask("dc1", "GET", "b") is None
    servers.end("dc3")

    start(servers, "dc3")
    wait_for_reason(servers, "dc1", "dc3", "we have a `cluster-secret`, and they have none")
    wait_for_reason(servers, "dc3", "dc1", "they have a `cluster-secret`, and we have none")
    servers.end("dc3")
    start(servers, "dc3", secrets["dc3"])
    wait_for_link(servers, "dc1", "dc3", "up")
    wait_until(lambda: servers.ask("dc1", "GET", "b") == "forged", PATIENCE_S, "what is dc3's own is taken")


def hello(datacenter, flags):
    """The first bytes of a core 0 that knows the names of things and no key."""
    start = b"\x89ENSUE\r\n" + struct.pack("<HHHHI", 1, 1, flags, 0, 7) + random.randbytes(32)
    body = start + b"ensue".ljust(64, b"\0") + datacenter.encode().ljust(64, b"\0")
    return body + struct.pack("<I", zlib.crc32(body))


def closes(connection, seconds):
    """What the other side says until it hangs up, which it must do in this time."""
    connection.settimeout(seconds)
    said = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            said += part
    return said


def test_who_only_knows_the_names_gets_nowhere(servers, tmp_path):
    secrets = make_secrets(tmp_path / "keys")
    start(servers, "dc2", secrets["dc2"])
    port = servers.port("dc2") + PEERS
    for flags, words in [(1, "do not prove it"), (0, "we have a `cluster-secret`, and they have none")]:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            # A guessed proof, and a message that would declare dc2 dead.
            connection.sendall(hello("dc1", flags) + random.randbytes(32) + struct.pack("<I", 37) + random.randbytes(53))
            said = closes(connection, 3)
        # Its own hello and proof, and nothing of its configuration.
        assert len(said) in (184, 184 + 32) and b"eiger" not in said
        wait_for_reason(servers, "dc2", "dc1", words)
    assert servers.ask("dc2", "SET", "a", "1")


def test_a_crowd_at_the_door_keeps_nobody_out(servers, tmp_path):
    secrets = make_secrets(tmp_path / "keys")
    start(servers, "dc2", secrets["dc2"])
    port = servers.port("dc2") + PEERS
    over, held = threading.Event(), []

    def stand():
        while not over.is_set():
            began = time.monotonic()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                closes(connection, 5)
                held.append(time.monotonic() - began)

    crowd = [threading.Thread(target=stand, daemon=True) for _ in range(90)]
    for one in crowd:
        one.start()
    try:
        time.sleep(0.5)
        start(servers, "dc1", secrets["dc1"])
        began = time.monotonic()
        wait_for_link(servers, "dc2", "dc1", "up")
        assert time.monotonic() - began < 5, "real peers wait behind the crowd"
        wait_until(lambda: servers.ask("dc1", "SET", "a", "1") and servers.ask("dc2", "GET", "a") == "1", 5, "it replicates")
        time.sleep(1)
    finally:
        over.set()
        for one in crowd:
            one.join(10)
    assert len(held) > 90 and max(held) < 2.5, f"{len(held)} were put out, one after {max(held):.1f} s"


def test_another_protocol_on_existing_data_does_not_start(servers):
    start(servers, "dc1")
    servers.ask("dc1", "SET", "a", "1")
    servers.end("dc1")
    said = start_refused(servers, "dc1", "keyspace 0 protocol cure")
    assert "keyspace 0 was written under the protocol eiger, and the configuration says cure" in said
    assert "put `keyspace 0 protocol eiger` back" in said
    # What only steers a node may change.
    start(servers, "dc1", "appendfsync always")
    assert servers.ask("dc1", "GET", "a") == "1"


def test_a_renamed_datacenter_does_not_start_empty(servers):
    start(servers, "dc1")
    servers.ask("dc1", "SET", "a", "1")
    servers.end("dc1")
    servers.lines["dc1"] = ("lisbon", "dc2", "dc3")
    said = start_refused(servers, "dc1", "self lisbon")
    assert "of this datacenter under the name 'dc1'" in said and "a datacenter keeps its name" in said
    assert not (servers.data("dc1") / "lisbon").exists()


def test_a_deleted_shape_is_damage_and_can_be_mended(servers):
    start(servers, "dc1")
    servers.ask("dc1", "SET", "a", "1")
    servers.end("dc1")
    shape = servers.data("dc1") / "dc1/shape"
    shape.unlink()
    said = start_refused(servers, "dc1")
    assert "shape is missing" in said and "ensue recover DIR --shape CONFIG" in said
    assert not shape.exists()
    checked = ensue("fsck", servers.data("dc1"))
    assert checked.returncode == 1 and "shape" in checked.stdout and "damaged" in checked.stdout

    config = servers.directory / "dc1.conf"
    shown = ensue("recover", servers.data("dc1"), "--shape", config)
    assert shown.returncode == 0 and "nothing was changed" in shown.stdout and not shape.exists()
    wrong = servers.directory / "wrong.conf"
    wrong.write_text(config.read_text().replace("partitions 2", "partitions 4"))
    assert ensue("recover", servers.data("dc1"), "--shape", wrong, "--yes").returncode != 0
    done = ensue("recover", servers.data("dc1"), "--shape", config, "--yes")
    assert done.returncode == 0, done.stderr
    assert ensue("fsck", servers.data("dc1")).returncode == 0
    start(servers, "dc1")
    assert servers.ask("dc1", "GET", "a") == "1"


def test_nobody_is_believed_loudly(servers):
    start(servers, "dc1", "peer-unauthenticated yes")
    assert "WHOEVER REACHES THE PEER PORT IS BELIEVED" in log_of(servers, "dc1")
    assert "peers prove nothing" in ensue("status", "--port", servers.port("dc1")).stdout
    assert info(servers, "dc1")["ensue_peer_authentication"].startswith("NONE")


@pytest.mark.parametrize("words", [["secret"], ["secret", "a b"], ["secret", "dc1", "dc1"]])
def test_bad_secrets_are_explained(words, tmp_path):
    done = subprocess.run([binary(), *words], capture_output=True, text=True, cwd=tmp_path, timeout=30)
    assert done.returncode not in (0, 101) and done.stderr.strip()
