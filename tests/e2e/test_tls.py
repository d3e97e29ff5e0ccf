"""TLS: for clients on a port of its own, between datacenters, and certificates that are read again."""

import contextlib
import signal
import socket
import ssl

import pytest
import redis
from cluster import ensue, wait_until
from ports import PEERS, TLS
from redis.backoff import NoBackoff
from redis.retry import Retry


def make(directory, *words):
    """Certificates in this directory, by the command that the documents name."""
    done = ensue("certificates", "--out", directory, *words)
    assert done.returncode == 0, done.stderr
    return directory


def secure(port, authority, **options):
    """A client over TLS."""
    return redis.Redis(
        "127.0.0.1", port, ssl=True, ssl_ca_certs=str(authority), socket_timeout=10, decode_responses=True,
        retry=Retry(NoBackoff(), 0), **options,
    )


def tls_directives(directory, name, port, *more):
    files = [f"tls-cert-file {directory}/{name}-node0.pem", f"tls-key-file {directory}/{name}-node0.key"]
    return [*files, f"tls-ca-cert-file {directory}/ca.pem", f"tls-port {port}", *more]


def test_a_dev_cluster_serves_clients_and_replicates_over_tls(dev):
    cluster = dev(delay="5ms", flags=["--tls"])
    folder = cluster.directory / "data" / "certificates"
    with secure(cluster.client_port(1) + TLS, folder / "ca.pem") as client:
        client.set("tls:key", "v" * 100_000)
        with client.pipeline(transaction=False) as pipe:
            for number in range(2_000):
                pipe.set(f"tls:{number}", number)
            assert pipe.execute() == [True] * 2_000
        assert client.mget([f"tls:{number}" for number in range(2_000)]) == [str(n) for n in range(2_000)]
    cluster.converge()
    with cluster.client(2) as client:
        assert client.get("tls:key") == "v" * 100_000
        assert client.get("tls:1999") == "1999"
        told = client.info("everything")
        assert told["ensue_peer_authentication"] == "cluster-secret and certificates"
    words = ["--tls", "--cacert", folder / "ca.pem"]
    answer = ensue("cli", "-p", cluster.client_port(3) + TLS, *words, "GET", "tls:7")
    assert (answer.returncode, answer.stdout.strip()) == (0, "7")
    # A client may present a certificate, and one of this authority is welcome.
    answer = ensue(
        "cli", "-p", cluster.client_port(3) + TLS, *words,
        "--cert", folder / "client.pem", "--key", folder / "client.key", "PING",
    )
    assert answer.stdout.strip() == "PONG"
    wrong = ensue("cli", "-p", cluster.client_port(3) + TLS, *words, "--sni", "elsewhere", "PING")
    assert wrong.returncode != 0 and "not valid for name" in wrong.stderr


def test_a_peer_port_with_tls_does_not_answer_without(dev):
    cluster = dev(delay="5ms", flags=["--tls"])
    with socket.create_connection(("127.0.0.1", cluster.port + PEERS), timeout=10) as peer:
        peer.sendall(b"\0" * 64)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while part := peer.recv(4096):
                heard += part
    # An alert of TLS, and nothing else.
    assert heard[:1] in (b"", b"\x15") and len(heard) <= 7


def test_clients_present_a_certificate_where_they_must(servers, tmp_path):
    ours = make(tmp_path / "ours", "dc1", "--client", "app")
    theirs = make(tmp_path / "theirs", "dc1", "--client", "app")
    port = servers.ports.first + TLS
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", *tls_directives(ours, "dc1", port), "port 0")

    def client(folder):
        own = dict(ssl_certfile=str(folder / "app.pem"), ssl_keyfile=str(folder / "app.key")) if folder else {}
        return secure(port, ours / "ca.pem", **own)

    def serves():
        with contextlib.suppress(redis.RedisError, OSError), client(ours) as one:
            return one.ping()

    wait_until(serves, 20, "it serves over TLS")
    for folder in (None, theirs):
        with client(folder) as refused, pytest.raises((redis.ConnectionError, ssl.SSLError)):
            refused.ping()
    # Who does not believe the server's authority leaves by itself.
    with secure(port, theirs / "ca.pem") as client_of_others, pytest.raises(redis.ConnectionError, match="verify"):
        client_of_others.ping()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", servers.port("dc1")), timeout=5)
    # Nonsense in place of a handshake hurts nobody.
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        plain.sendall(b"*1\r\n$4\r\nPING\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"PONG" not in plain.recv(4096)
    assert serves()


def test_whoever_never_finishes_the_handshake_is_disconnected(servers, tmp_path):
    ours = make(tmp_path / "ours", "dc1")
    port = servers.ports.first + TLS
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", *tls_directives(ours, "dc1", port, "tls-auth-clients no"))

    def connects():
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port), timeout=5)

    silent = []
    wait_until(lambda: (one := connects()) and silent.append(one) is None, 20, "it listens")
    silent += [connects() for _ in range(100)]
    wait_until(lambda: servers.ask("dc1", "PING"), 20, "it serves")
    before = len(servers.ask("dc1", "CLIENT", "LIST").splitlines())
    assert before > 100
    for one in silent:
        one.settimeout(30)
        heard = b""
        while part := one.recv(100):
            heard += part
        # At most the farewell of TLS.
        assert heard[:1] in (b"", b"\x15")
        one.close()
    wait_until(lambda: len(servers.ask("dc1", "CLIENT", "LIST").splitlines()) == 1, 10, "they are forgotten")


def test_certificates_are_read_again_at_a_hangup_and_wrong_ones_are_not_used(servers, tmp_path):
    folder = make(tmp_path / "ours", "dc1")
    port = servers.ports.first + TLS
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", *tls_directives(folder, "dc1", port, "tls-auth-clients no"))
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def serial():
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as tls:
                    return tls.getpeercert()["serialNumber"]

    first = wait_until(serial, 20, "it presents a certificate")
    with secure(port, folder / "ca.pem", single_connection_client=True) as client:
        client.set("k", "v")
        make(folder, "dc1")
        servers.running["dc1"].send_signal(signal.SIGHUP)
        second = wait_until(lambda: (now := serial()) != first and now, 20, "it presents the new one")
        (folder / "dc1-node0.pem").write_text("no certificate")
        servers.running["dc1"].send_signal(signal.SIGHUP)
        log = tmp_path / "dc1.log"
        wait_until(lambda: "the certificates stay as they were" in log.read_text(), 20, "it says so")
        assert serial() == second
        # The connection of before was not touched.
        assert client.get("k") == "v"


@pytest.mark.parametrize(
    ("liar", "has_files_of", "words"),
    [
        # It is dialled, and whoever dials asks for its name.
        ("dc3", "dc1", 'not valid for name "dc3.ensue"'),
        # It dials, and whoever is dialled compares what it says with its certificate.
        ("dc1", "dc3", "does not name dc1.ensue but dc3.ensue"),
    ],
)
def test_a_peer_with_a_certificate_of_another_datacenter_is_refused(servers, tmp_path, liar, has_files_of, words):
    folder = make(tmp_path / "ours", "dc1", "dc2", "dc3")
    one, other = (name for name in ("dc1", "dc2", "dc3") if name != liar)
    for name in (one, other):
        servers.start(name, *tls_directives(folder, name, 0, "tls-cluster yes"))
    servers.start(liar, *tls_directives(folder, has_files_of, 0, "tls-cluster yes"))

    def says(name):
        return lambda: words in (tmp_path / f"{name}.log").read_text()

    wait_until(says(one), 30, f"{one} says why {liar} is refused")
    wait_until(says(other), 30, f"{other} says why {liar} is refused")
    # The link between the other two, where each presents what it should, is up all the same.

    def link(peer):
        return servers.ask(one, "INFO", "everything").get(f"ensue_link_{peer}")

    wait_until(lambda: link(other) == "up", 30, f"{one} and {other} are linked")
    # Who only says that it is dc1 does not change what is told of dc1.
    assert link(liar) == ("refused" if liar == "dc3" else "down")


def test_a_client_s_certificate_opens_no_peer_port(dev):
    cluster = dev(delay="5ms", flags=["--tls"])
    folder = cluster.directory / "data" / "certificates"
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    with socket.create_connection(("127.0.0.1", cluster.port + PEERS), timeout=10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as peer:
            heard = b""
            with contextlib.suppress(ConnectionResetError):
                while part := peer.recv(4096):
                    heard += part
    assert heard == b"", "it is told nothing"
    wait_until(lambda: "names no datacenter of this cluster but client" in cluster.tail(), 10, "the log says so")


def test_a_revoked_client_is_refused_from_the_next_hangup_on(servers, tmp_path):
    folder = make(tmp_path / "ours", "dc1", "--client", "app", "--client", "thief")
    port = servers.ports.first + TLS
    servers.lines["dc1"] = ["dc1"]
    servers.start("dc1", *tls_directives(folder, "dc1", port, f"tls-crl-file {folder}/ca.crl"))

    def answers(name):
        own = dict(ssl_certfile=str(folder / f"{name}.pem"), ssl_keyfile=str(folder / f"{name}.key"))
        with contextlib.suppress(redis.RedisError, OSError), secure(port, folder / "ca.pem", **own) as client:
            return client.ping()
        return False

    wait_until(lambda: answers("app"), 20, "it serves")
    assert answers("thief")
    # A list that is not one is not used, and neither are the certificates beside it.
    list_of_none = (folder / "ca.crl").read_text()
    (folder / "ca.crl").write_text("nothing")
    servers.running["dc1"].send_signal(signal.SIGHUP)
    log = tmp_path / "dc1.log"
    wait_until(lambda: "holds no list of revoked certificates" in log.read_text(), 20, "it says so")
    (folder / "ca.crl").write_text(list_of_none)
    done = ensue("certificates", "--out", folder, "--revoke", folder / "thief.pem")
    assert done.returncode == 0, done.stderr
    assert answers("thief"), "the list is read at the hangup"
    servers.running["dc1"].send_signal(signal.SIGHUP)
    wait_until(lambda: not answers("thief"), 20, "thief is refused")
    assert answers("app")
    # What was issued later is not revoked, though it has the same name.
    make(folder, "dc1", "--client", "thief")
    assert answers("thief")
    text = ensue("certificates", "--out", folder, "--revoke", folder / "ca.key")
    assert text.returncode != 0


def test_a_revoked_node_has_no_link_whoever_dials(servers, tmp_path):
    folder = make(tmp_path / "ours", "dc1", "dc2", "dc3")
    revoked = ensue("certificates", "--out", folder, "--revoke", folder / "dc3-node0.pem")
    assert revoked.returncode == 0, revoked.stderr
    # Only the others have the list: dc3 believes them, and itself.
    for name in ("dc1", "dc2"):
        servers.start(name, *tls_directives(folder, name, 0, "tls-cluster yes", f"tls-crl-file {folder}/ca.crl"))
    servers.start("dc3", *tls_directives(folder, "dc3", 0, "tls-cluster yes"))

    def link(name, peer):
        with contextlib.suppress(redis.RedisError):
            return servers.ask(name, "INFO", "everything").get(f"ensue_link_{peer}")

    wait_until(lambda: link("dc1", "dc2") == "up" and link("dc2", "dc1") == "up", 30, "dc1 and dc2 are linked")
    for name in ("dc1", "dc2"):
        wait_until(lambda: "revoked" in (tmp_path / f"{name}.log").read_text().lower(), 30, f"{name} says why")
        assert link(name, "dc3") in ("refused", "down")
    assert link("dc3", "dc1") != "up" and link("dc3", "dc2") != "up"
