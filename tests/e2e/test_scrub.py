"""Damage on the disk of a node that serves is found in the background, and told with its place."""

import shutil

from cluster import Cluster, ensue, key_in, wait_until
from replicated import PARTITIONS, Group

SEGMENT_BYTES = 64 << 20


def test_a_flipped_byte_is_found_while_the_node_serves(tmp_path):
    flags = ["--set", "metrics-port=0", "--set", "scrub-bytes-per-second=1gb"]
    cluster = Cluster(tmp_path, datacenters=1, partitions=2, flags=flags)
    cluster.start()
    try:
        client = cluster.client(1)
        key = key_in(1, 2, "large")
        # The first segment is closed by what comes behind it.
        for number in range(SEGMENT_BYTES // (4 << 20) + 2):
            client.set(f"{{{key}}}:{number % 4}", "x" * (4 << 20))
        folder = tmp_path / "data" / "dc1" / "p0001"
        closed, *others = wait_until(lambda: len(logs(folder)) > 1 and logs(folder), 10, "a segment is closed")
        wait_until(lambda: client.info("ensue")["ensue_scrub_rounds"] > 0, 60, "all was read once")
        assert client.info("ensue")["ensue_damaged_files"] == 0
        place = closed.stat().st_size // 2
        with closed.open("r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1]))
        wait_until(lambda: client.info("ensue")["ensue_damaged_files"] == 1, 60, "the damage is found")
        assert client.info("ensue")["ensue_damaged_files_of_p1"] == 1
        assert f"DAMAGE on the disk: dc1/p0001/{closed.name} at byte " in cluster.log.read_text()
        status = ensue("status", "--port", cluster.port)
        assert "DAMAGE on the disk of partition 1, in 1 files" in status.stdout, status.stdout
        # It serves all the same.
        assert client.set(key, "1") and client.get(key) == "1"
    finally:
        cluster.close()


def logs(folder):
    return sorted(folder.glob("log-*"))


def test_a_replica_whose_folder_was_deleted_is_filled_again(tmp_path):
    one = Group(tmp_path, (("dc1", 0), ("dc1", 1), ("dc1", 2)), "3")
    try:
        for number in range(3):
            one.start(number)
        one.wait_until_all_serve(0)
        key = key_in(1, PARTITIONS, "before")
        one.ask(0, "SET", key, "1")
        wait_until(lambda: votes(one, 0) == 3 * PARTITIONS, 30, "all replicas have votes")
        one.end(1)
        shutil.rmtree(one.data(1) / "dc1" / "p0001")
        one.start(1)
        one.wait_until_all_serve(1)
        wait_until(lambda: logs(one.data(1) / "dc1" / "p0001"), 60, "the replica has its files again")
        wait_until(lambda: votes(one, 0) == 3 * PARTITIONS, 60, "and its vote")
        assert one.ask(1, "GET", key) == "1"
    finally:
        one.close()


def votes(group, number):
    texts = [group.ask(number, "CAUSAL", "REPLICAS", partition) for partition in range(PARTITIONS)]
    return sum(text.count("vote=yes,heard=yes") for text in texts)
