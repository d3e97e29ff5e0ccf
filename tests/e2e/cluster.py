"""A dev cluster of the binary under test: started on free ports in a folder of its own, and stopped again.

Nothing here knows what a test looks for. A process is only ever signalled by its number, and only if this module
started it, or it is a child of one that it started.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import redis
from ports import ADMIN, PEERS, RECORDERS, SECOND_NODES, Ports
from redis.backoff import NoBackoff
from redis.retry import Retry

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_S = 20
STOP_S = 15
COMMAND_S = 30
# Starts on other ports, if somebody else took one of ours just then.
PORT_TRIES = 3

def binary():
    """ENSUE_BIN, or what `cargo build --release` leaves."""
    named = os.environ.get("ENSUE_BIN")
    built = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/ensue"
    return str(pathlib.Path(named).absolute() if named else built)


def ensue(*words, timeout=COMMAND_S, stdin=None):
    """Runs the binary to its end."""
    command = [binary(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, input=stdin)


def slot_of(key):
    """The hash slot of Redis Cluster, hash tags honoured."""
    tagged = re.search(r"\{([^}]+)\}", key)
    if tagged and "{" not in key[: tagged.start()]:
        key = tagged.group(1)
    checksum = 0
    for byte in key.encode():
        checksum ^= byte << 8
        for _ in range(8):
            checksum = (checksum << 1 ^ (0x1021 if checksum & 0x8000 else 0)) & 0xFFFF
    return checksum % 16_384


def partition_of(key, partitions):
    return slot_of(key) * partitions // 16_384


def key_in(partition, partitions, prefix):
    """A key with this prefix that lives in this partition."""
    names = (f"{prefix}:{number}" for number in range(10_000))
    return next(name for name in names if partition_of(name, partitions) == partition)


def keys_over_all(partitions, prefix, count):
    """Keys dealt to all partitions in turn."""
    return [key_in(index % partitions, partitions, f"{prefix}{index}") for index in range(count)]


def wait_until(condition, timeout, what, pause=0.02):
    """Waits for a true answer and returns it."""
    end = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"after {timeout} s still not: {what}")
        time.sleep(pause)


class Cluster:
    """`ensue dev`, its ports, and the clients made for it."""

    def __init__(self, directory, *, delay="40ms", datacenters=3, partitions=2, nodes=1, flags=()):
        assert nodes <= 2, "a third node of a datacenter would stand on the ports of another cluster"
        self.directory = pathlib.Path(directory)
        self.ports = Ports()
        self.datacenters = datacenters
        self.partitions = partitions
        self.nodes = nodes
        self.flags = ["--dir", self.directory / "data", "--delay", delay, "--datacenters", datacenters]
        self.flags += ["--partitions", partitions, "--nodes", nodes, *flags]
        self.log = self.directory / "log.txt"
        self.process = None
        self.clients = []

    @property
    def port(self):
        """The client port of the first datacenter."""
        return self.ports.first

    @property
    def words(self):
        return ["dev", "--port", self.port, *self.flags]

    def start(self):
        """Starts it; the first time on other ports if somebody took one of ours between the look and the start."""
        is_new = not (self.directory / "data").exists()
        for tries_left in reversed(range(PORT_TRIES if is_new else 1)):
            with self.log.open("ab") as log:
                begin = log.tell()
                command = [binary(), *map(str, self.words)]
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
                )
            try:
                for datacenter in self.each():
                    self.wait_for_ping(datacenter)
                return self
            except AssertionError:
                if not tries_left or not self.lost_a_port(begin):
                    raise
                self.stop()
                self.ports.close()
                self.ports = Ports()

    def lost_a_port(self, begin):
        """Whether the log says so after this place."""
        return b"Address already in use" in self.log.read_bytes()[begin:]

    def close(self):
        """Stops it, and its ports are for others."""
        self.stop()
        self.ports.close()

    def wait_for_ping(self, datacenter, timeout=START_S):
        def answers():
            code = self.process.poll()
            if code is not None:
                raise AssertionError(f"`ensue dev` ended with {code}:\n{self.tail()}")
            with contextlib.suppress(redis.RedisError, OSError), self.client(datacenter, timeout=2) as client:
                # Every partition answers: before that, LOADING or UNAVAILABLE.
                return client.ping() and client.dbsize() >= 0

        wait_until(answers, timeout, f"dc{datacenter} serves")

    def stop(self):
        """By SIGINT, as Ctrl-C does. Returns the exit code; whatever is left after a while is killed."""
        for client in self.clients:
            with contextlib.suppress(Exception):
                client.close()
        self.clients = []
        if self.process is None:
            return None
        children = self.children()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(STOP_S)
        if code is None:
            self.process.kill()
            self.process.wait()
        for child in children:
            # Their parent is gone, and they had the time to follow it.
            wait_or_kill(child)
        self.process = None
        print(f"--- the last lines of {' '.join(map(str, self.words))}\n{self.tail()}")
        return code

    def tail(self, lines=40):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def each(self):
        """The numbers of the datacenters: 1, 2, …"""
        return range(1, self.datacenters + 1)

    def client_port(self, datacenter):
        return self.port + datacenter - 1

    def client(self, datacenter, timeout=10, **options):
        """A redis-py client that never sends a command twice by itself."""
        options.setdefault("decode_responses", True)
        client = redis.Redis(
            host="127.0.0.1",
            port=self.client_port(datacenter),
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
            **options,
        )
        self.clients.append(client)
        return client

    def session(self, datacenter, **options):
        """A client of one connection, so that all its commands are one session."""
        return self.client(datacenter, single_connection_client=True, **options)

    def socket(self, datacenter, timeout=5):
        return socket.create_connection(("127.0.0.1", self.client_port(datacenter)), timeout=timeout)

    def cli(self, datacenter, *words, **options):
        return ensue("cli", "-p", self.client_port(datacenter), *words, **options)

    def link(self, one, other, *words):
        """`ensue link dcA dcB cut|heal|delay MS`."""
        done = ensue("link", f"dc{one}", f"dc{other}", *words, "--port", self.port)
        assert done.returncode == 0, f"link {one} {other} {words}: {done.stdout}{done.stderr}"

    def cut_off(self, datacenter):
        for other in self.each():
            if other != datacenter:
                self.link(datacenter, other, "cut")

    def heal_all(self):
        for one in self.each():
            for other in range(one + 1, self.datacenters + 1):
                self.link(one, other, "heal")

    def digests(self, keyspace=0):
        answers = []
        for datacenter in self.each():
            with self.client(datacenter) as client:
                answers.append(client.execute_command("CAUSAL", "DIGEST", keyspace))
        return answers

    def converge(self, timeout=5, keyspace=0):
        """Waits until all datacenters hold the same, and returns the seconds that it took."""
        begin = time.monotonic()
        seen = []

        def agree():
            seen[:] = self.digests(keyspace)
            return len(set(seen)) == 1

        try:
            wait_until(agree, timeout, "the digests of all datacenters are equal")
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen}") from None
        return time.monotonic() - begin

    def children(self):
        """The numbers of the processes that the dev process started."""
        pid = self.process.pid
        found = []
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        return found

    def process_of(self, datacenter):
        """The process that serves a datacenter: whoever of ours listens on its port."""
        owners = listeners([self.process.pid, *self.children()])
        return owners.get(self.client_port(datacenter))

    def peer_ports(self):
        """Every port on which the cluster listens and which is neither for clients nor for administration."""
        others = {self.client_port(datacenter) + SECOND_NODES * node for datacenter in self.each() for node in range(9)}
        others.add(self.port + ADMIN)
        return sorted(set(listeners([self.process.pid, *self.children()])) - others)

    def recorder_port(self, datacenter):
        """Where a recorder in front of a datacenter listens."""
        return self.client_port(datacenter) + RECORDERS

    @property
    def admin_port(self):
        return self.port + ADMIN

    def memory(self):
        """Resident bytes of the cluster's processes together."""
        return sum(resident(pid) for pid in [self.process.pid, *self.children()])


def listeners(pids):
    """The listening TCP ports of these processes, each with the process."""
    inodes = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    inodes[fields[9]] = int(fields[1].rsplit(":", 1)[1], 16)
    owners = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(descriptor)
                    if target.startswith("socket:[") and target[8:-1] in inodes:
                        owners[inodes[target[8:-1]]] = pid
    return owners


def resident(pid):
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found.group(1)) * 1024 if found else 0
    return 0


def wait_or_kill(pid, patience=5):
    end = time.monotonic() + patience
    while is_alive(pid):
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.05)


def freeze(pid):
    """Stops a process until it is told to go on or killed. A busy system does not stop its threads at once."""

    def is_stopped():
        stats = [task / "stat" for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        return all(stat.read_text().rsplit(") ", 1)[1].startswith("T") for stat in stats)

    os.kill(pid, signal.SIGSTOP)
    wait_until(is_stopped, STOP_S, f"process {pid} is stopped")


def is_alive(pid):
    """Whether a process of ours is still there; its number may belong to somebody else by now."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(binary())
    return False


class Crew:
    """Threads that work until told to stop; the first error of any of them fails the test."""

    def __init__(self):
        self.stopped = threading.Event()
        self.errors = []
        self.threads = []

    def add(self, work, *args):
        """Starts `work(*args)` in a thread."""

        def run():
            try:
                work(*args)
            except BaseException as error:  # noqa: BLE001, every failure must reach the test
                self.errors.append(error)
                self.stopped.set()

        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()

    def loop(self, work, *args):
        """Starts a thread that repeats `work(*args)`."""

        def repeat():
            while not self.stopped.is_set():
                work(*args)

        self.add(repeat)

    def sleep(self, seconds):
        """Sleeps, or returns at once when all is over. True if it is not."""
        return not self.stopped.wait(seconds)

    def finish(self, timeout=30):
        """Lets threads that end by themselves end."""
        self._join(timeout)

    def stop(self, timeout=30):
        self.stopped.set()
        self._join(timeout)

    def _join(self, timeout):
        end = time.monotonic() + timeout
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        hanging = [thread for thread in self.threads if thread.is_alive()]
        self.stopped.set()
        if self.errors:
            raise self.errors[0]
        assert not hanging, f"{len(hanging)} threads did not end within {timeout} s"
