"""Free ports for one cluster, and nobody else's as long as the tests that ask for them are ours.

A row is 200 neighbouring ports and the two places above it where the cluster's cores and its administration listen. Its
first port is bound for as long as the row is in use and never listened on: that is how test runs on one machine keep out
of each other's way. Rows of ports that anybody else uses are passed over.
"""

import random
import socket

# Far from the ports that the README uses, and below those that the system hands out by itself.
ROWS = range(11_000, 19_000, 200)
PORTS_A_ROW = 40
# Where a cluster's other ports begin, counted from its clients' ports: TLS, metrics, second nodes, recorders, peers,
# administration.
TLS, METRICS, SECOND_NODES, RECORDERS, PEERS, ADMIN = 40, 70, 100, 150, 10_000, 10_999


class Ports:
    """One row. `first` is for the clients of the first datacenter, and the next ones for those of the others."""

    def __init__(self):
        rows = list(ROWS)
        random.shuffle(rows)
        for row in rows:
            claim = socket.socket()
            try:
                # Without SO_REUSEADDR: whoever holds the row makes this fail.
                claim.bind(("127.0.0.1", row))
            except OSError:
                claim.close()
                continue
            if is_free_row(row + 1):
                self.first, self.claim = row + 1, claim
                return
            claim.close()
        raise RuntimeError("no row of free ports")

    def close(self):
        self.claim.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def is_free_row(first):
    above = (0, TLS, METRICS, SECOND_NODES, RECORDERS, PEERS)
    ports = [port + offset for offset in above for port in range(first, first + PORTS_A_ROW)]
    return all(is_free(port) for port in [*ports, first + ADMIN])


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
