"""`ensue fsck` on the data of a cluster that was stopped: whole, torn, damaged, in use."""

from cluster import ensue


def segments(folder):
    return sorted(folder.glob("*/p*/log-*"))


def test_fsck(dev):
    cluster = dev(delay="1ms")
    client = cluster.client(1)
    for number in range(50):
        client.set(f"key{number}", "value")
    # A datacenter whose links are not up yet has an empty log, in which no byte can be flipped.
    cluster.converge()
    data = cluster.directory / "data"
    used = ensue("fsck", data)
    assert used.returncode == 2 and "in use" in used.stderr
    assert cluster.stop() == 0

    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    sound = ensue("fsck", data)
    assert sound.returncode == 0, sound.stdout
    partitions = cluster.datacenters * cluster.partitions
    assert sound.stdout.count(": sound; ") == partitions
    assert f"{partitions} partitions checked, 0 damaged" in sound.stdout
    assert before == {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}

    torn, flipped = segments(data)[0], segments(data)[-1]
    with torn.open("ab") as log:
        log.write(b"\7" * 100)
    told = ensue("fsck", data)
    assert told.returncode == 0 and f"torn tail: {torn.name} at byte {len(before[torn])}" in told.stdout

    damaged = bytearray(before[flipped])
    damaged[60] ^= 1
    flipped.write_bytes(damaged)
    told = ensue("fsck", data)
    assert told.returncode == 1
    assert f"{flipped.name} is damaged at byte " in told.stdout
    assert "1 damaged" in told.stdout

    nothing = ensue("fsck", cluster.directory / "elsewhere")
    assert nothing.returncode == 2 and nothing.stderr
