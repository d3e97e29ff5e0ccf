"""A group of replicas with their servers, and a sketcher before them, all on this machine's loopback."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS = pathlib.Path(__file__).with_name("servers.py")
START_S = 30
# Below the ports that the system hands out by itself, also with what `ensue server` adds for its peers.
PORTS = range(20_000, 22_700)
PEERS = 10_000


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(given=set()):
    """A port that nobody has, and that this process has not given away before."""
    begin = os.getpid() % 27 * 100
    for port in [*PORTS[begin:], *PORTS[:begin]]:
        if port not in given and is_free(port) and is_free(port + PEERS):
            given.add(port)
            return port
    raise RuntimeError("no free port")


def wait_until(is_so, what, patience_s=START_S):
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited {patience_s} s for {what}")


def accepts(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Stage:
    """`faults` has what is wrong with the server of a replica, by the replica's number: `wrong` or `old`. `sketch` has
    options of the sketcher, and `others` those of further ones."""

    def __init__(self, ensue, protocol, replicas=4, faults=None, servers=None, sketch=(), others=()):
        self.ensue, self.protocol, self.replicas = str(ensue), protocol, replicas
        self.faults, self.servers = faults or {}, servers
        self.sketches = [list(sketch), *map(list, others)]
        self.kept = tempfile.TemporaryDirectory(prefix="ensue-prophecy-")
        self.directory = pathlib.Path(self.kept.name)
        self.processes = {}
        self.numbers = range(1, replicas + 1)
        self.group_ports = {number: free_port() for number in self.numbers}
        self.figure_ports = {number: free_port() for number in (0, *self.numbers)}
        self.ports = {}
        self.sketcher_ports = [free_port() for _ in self.sketches]
        self.port = self.sketcher_ports[0]

    def __enter__(self):
        try:
            words = [f"--replica=r{number}=127.0.0.1:{self.group_ports[number]}" for number in self.numbers]
            command = [self.ensue, "gateway", "prophecy", "keys", self.directory / "keys", "--protocol", self.protocol]
            command += ["--sketchers", str(len(self.sketches))]
            subprocess.run([*command, *words], check=True, capture_output=True)
            for number in self.numbers:
                self.start_server(number)
            for number in self.numbers:
                self.start_replica(number)
            for place in range(len(self.sketches)):
                self.start_sketcher(place)
            return self
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.kept.cleanup()

    def start(self, name, words, port):
        log = open(self.directory / f"{name}.log", "ab")
        with log:
            self.processes[name] = subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(lambda: self.processes[name].poll() is not None or accepts(port), f"{name} to start")
        if self.processes[name].poll() is not None:
            raise AssertionError(f"{name} ended: {self.tail(name)}")

    def end(self, name, how=signal.SIGKILL):
        self.processes[name].send_signal(how)
        self.processes[name].wait()

    def tail(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")[-2000:]

    def site(self, number):
        """Where the files of a web server are."""
        return self.directory / f"site-{number}"

    def start_server(self, number):
        """The server of a replica, in its first state, and the liar before it, if it has one."""
        port = free_port()
        if self.servers:
            words = [sys.executable, SERVERS, *self.servers, port]
        elif self.protocol == "http":
            self.site(number).mkdir(exist_ok=True)
            words = [sys.executable, SERVERS, "files", self.site(number), port]
        else:
            data = tempfile.mkdtemp(dir=self.directory)
            words = [self.ensue, "server", "--port", port, "--dir", data]
        self.start(f"server-{number}", words, port)
        if number in self.faults:
            behind, port = port, free_port()
            words = [sys.executable, SERVERS, self.faults[number], self.protocol, behind, port]
            self.start(f"liar-{number}", words, port)
        self.ports[number] = port

    def start_replica(self, number):
        keys = self.directory / "keys"
        words = [self.ensue, "gateway", "prophecy", "replica", "--group", keys / "group"]
        words += ["--secret", keys / f"replica-{number}.secret", "--data", self.directory / f"replica-{number}"]
        words += ["--application", f"127.0.0.1:{self.ports[number]}"]
        words += ["--figures", f"127.0.0.1:{self.figure_ports[number]}"]
        self.start(f"replica-{number}", words, self.group_ports[number])

    def start_sketcher(self, place=0):
        keys = self.directory / "keys"
        port, words = self.sketcher_ports[place], [self.ensue, "gateway", "prophecy", "sketch"]
        words += ["--group", keys / "group", "--secret", keys / f"sketcher-{place + 1}.secret"]
        words += ["--listen", f"127.0.0.1:{port}"]
        if place == 0:
            words += ["--figures", f"127.0.0.1:{self.figure_ports[0]}"]
        self.start(f"sketcher-{place + 1}", [*words, *self.sketches[place]], port)

    def restart_sketcher(self):
        self.end("sketcher-1")
        self.start_sketcher()

    def write_page(self, name, text, numbers=None):
        """Changes a page behind the replicas, which is a write that no sketcher sees."""
        for number in numbers or self.numbers:
            path = self.site(number) / name
            path.with_suffix(".new").write_text(text)
            # The servers would say different times of the change.
            os.utime(path.with_suffix(".new"), (1_700_000_000 + len(text), 1_700_000_000 + len(text)))
            path.with_suffix(".new").rename(path)

    def page(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=20) as answer:
            return answer.read().decode()

    def figures(self, number=0):
        """Those of the sketcher, or of a replica."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.figure_ports[number]}/", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name.removeprefix("ensue_prophecy_"): int(value) for name, value in map(str.split, lines)}

    def counts(self, what):
        """A figure of the sketcher for each replica."""
        figures = self.figures()
        return {number: figures[f'replica_{what}_total{{replica="r{number}"}}'] for number in self.numbers}
