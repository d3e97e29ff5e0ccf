#!/usr/bin/env python3
"""Downloads that survive their server: TRODS between a real client, real servers and a real kernel.

Run it as root on Linux, with curl, iproute2, iptables, and lighttpd or nginx installed:

    cargo build --release
    sudo python3 examples/trods/demo.py                       # a server machine dies in the middle of a download
    sudo python3 examples/trods/demo.py --runs 20 --fault any # machine, cut, application, in turn, at random moments

It makes network namespaces: a client, a balancer with its monitor, two or more servers with their gateways, and an
Ensue store. A stock curl downloads a big file; at a random part of it, the server that sends it is harmed. A run is
good if curl got every byte of the file through the one connection that it opened. All namespaces and processes are
gone in the end. The process ends with 0 if all runs were good.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVICE = "192.0.2.1"
PORT = 80
NEEDED = ("ip", "iptables", "curl", "tc", "sysctl")
# The longest time until a server has a request, which is sent at once.
SETUP_S = 20
START_S = 20
DOWNLOAD_S = 60
FAULTS = ("machine", "cut", "application")
# A machine that is cut off comes back after so long, with all it knew.
CUT_S = 2.0
# Asks the store, from its namespace; the answers are lines. Keys of a partition that reads its log answer with an
# error.
ASK = """
import socket, sys
store = socket.create_connection(("10.77.2.9", 6379), 1)
store.settimeout(5)
store.sendall("".join(f"{command}\\r\\n" for command in sys.argv[1:]).encode())
text = b""
while text.count(b"\\n") < len(sys.argv) - 1:
    text += store.recv(65536) or sys.exit(1)
print(text.decode())
"""

# Of the stages of one process.
NUMBERS = itertools.count(1)


def missing():
    """Why there can be no run here, or None."""
    if sys.platform != "linux":
        return "TRODS needs Linux"
    if os.geteuid() != 0:
        return "namespaces and queues need the rights of root"
    absent = [name for name in NEEDED if not shutil.which(name)]
    if absent:
        return f"not installed: {', '.join(absent)}"
    if not installed_servers():
        return "not installed: lighttpd or nginx"
    name = f"ensue-{os.getpid()}-0-probe"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode:
        return f"no namespaces: {done.stderr.strip()}"
    rule = ["iptables", "-t", "mangle", "-A", "INPUT", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", "1"]
    done = subprocess.run(["ip", "netns", "exec", name, *rule], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", name], check=True)
    return f"no queues of packets: {done.stderr.strip()}" if done.returncode else None


def installed_servers():
    return [name for name in ("lighttpd", "nginx") if shutil.which(name)]


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class Net:
    """Namespaces of this process, each with one link to a switch of the balancer or, the client, to the balancer."""

    def __init__(self):
        self.prefix = f"ensue-{os.getpid()}-{next(NUMBERS)}-"
        self.names = []
        remove_orphans()

    def add(self, name):
        run("ip", "netns", "add", self.prefix + name)
        self.names.append(name)
        self.inside(name, "ip", "link", "set", "lo", "up")

    def inside(self, name, *words):
        return run("ip", "netns", "exec", self.prefix + name, *words)

    def spawn(self, name, *words, log, group=False):
        """A process in a namespace, by a number of its own: `ip netns exec` becomes the program."""
        command = ["ip", "netns", "exec", self.prefix + name, *map(str, words)]
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=group)

    def link(self, name, address, far, far_device, gateway):
        """The device eth0 of a namespace, whose other end is `far_device` in the namespace `far`."""
        near, other = self.prefix + name, self.prefix + far
        run("ip", "link", "add", far_device, "netns", other, "type", "veth", "peer", "name", "eth0", "netns", near)
        self.inside(name, "ip", "address", "add", address, "dev", "eth0")
        self.inside(name, "ip", "link", "set", "eth0", "up")
        self.inside(far, "ip", "link", "set", far_device, "up")
        if gateway:
            self.inside(name, "ip", "route", "add", "default", "via", gateway)

    def sent(self, name):
        """Bytes that the namespace sent."""
        return int(self.inside(name, "cat", "/sys/class/net/eth0/statistics/tx_bytes"))

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", self.prefix + name], capture_output=True)
        self.names = []


def remove_orphans():
    """Namespaces of a run that was killed before it could remove them."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0] if line.split() else ""
        parts = name.split("-")
        is_ours = len(parts) == 4 and parts[0] == "ensue" and parts[1].isdigit()
        if is_ours and not pathlib.Path(f"/proc/{parts[1]}").exists():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Stage:
    """The whole deployment: `with Stage(...) as stage: stage.download(...)`."""

    def __init__(self, options):
        self.options = options
        self.net = Net()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="ensue-trods-"))
        self.processes = {}
        self.servers = [f"server{number}" for number in range(1, options.servers + 1)]
        self.log = (self.work / "log").open("wb", buffering=0)

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def build(self):
        net = self.net
        for name in ("client", "balance", "store", *self.servers):
            net.add(name)
        net.inside("balance", "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        net.inside("balance", "ip", "link", "add", "switch", "type", "bridge")
        net.inside("balance", "ip", "address", "add", "10.77.2.1/24", "dev", "switch")
        net.inside("balance", "ip", "link", "set", "switch", "up")
        net.link("client", "10.77.1.2/24", "balance", "client", None)
        net.inside("balance", "ip", "address", "add", "10.77.1.1/24", "dev", "client")
        net.inside("client", "ip", "route", "add", "default", "via", "10.77.1.1")
        self.shape()
        net.link("store", "10.77.2.9/24", "balance", "store", None)
        for name in self.servers:
            net.link(name, f"{self.address(name)}/24", "balance", name, "10.77.2.1")
            net.inside(name, "ip", "address", "add", f"{SERVICE}/32", "dev", "lo")
        for name in ("store", *self.servers):
            net.inside("balance", "ip", "link", "set", name, "master", "switch")
        # What the client's kernel sent and received, counted by the kernel.
        for chain, flags in (("OUTPUT", "SYN,ACK SYN"), ("INPUT", "RST RST")):
            match = ["-p", "tcp", "--tcp-flags", *flags.split()]
            net.inside("client", "iptables", "-t", "mangle", "-A", chain, *match)
        self.files()
        self.start_store()
        for name in self.servers:
            self.start_application(name)
            self.start_gateway(name)
        self.start_balance()
        self.wait_for_answer()

    def shape(self):
        """The link to the client, as slow and as far away as asked for."""
        options = self.options
        if options.rate_mbit:
            # Packets of a link that is full wait up to 50 ms.
            words = f"qdisc add dev client root tbf rate {options.rate_mbit}mbit burst 256kb latency 50ms"
            self.net.inside("balance", "tc", *words.split())

    def address(self, name):
        return f"10.77.2.{10 + int(name.removeprefix('server'))}"

    def files(self):
        """The same files on every server; what the client is to get is in the table of hashes."""
        (self.work / "files").mkdir()
        os.chmod(self.work, 0o755)
        chance = random.Random(self.options.seed)
        self.hashes = {}
        for name, size in (("film", int(self.options.size_mb * (1 << 20))), ("small", 1024)):
            content = chance.randbytes(size)
            (self.work / "files" / name).write_bytes(content)
            self.hashes[name] = hashlib.sha256(content).hexdigest()
        self.size = (self.work / "files" / "film").stat().st_size
        (self.work / "key").write_text("5a" * 32 + "\n")
        (self.work / "objects").write_text("".join(f"/{name} {SERVICE}\n" for name in self.hashes))

    def start_store(self):
        directory = self.work / "store"
        directory.mkdir()
        words = ["server", "--port", "6379", "--bind", "10.77.2.9", "--protected-mode", "no", "--dir", directory]
        self.processes["store"] = self.net.spawn("store", self.options.ensue, *words, log=self.log)
        self.wait("the store", lambda: "-" not in self.ask(*(f"HLEN {number}" for number in range(200))))

    def ask(self, *commands):
        """The answers of the store, as text."""
        return self.net.inside("store", sys.executable, "-c", ASK, *commands)

    def records(self):
        """How many connections have records in the store."""
        return int(self.ask("DBSIZE").strip().removeprefix(":"))

    def start_application(self, name):
        folder = self.work / name
        folder.mkdir(exist_ok=True)
        if self.options.application == "lighttpd":
            text = f"""
                server.document-root = "{self.work}/files"
                server.bind = "{SERVICE}"
                server.port = {PORT}
                server.errorlog = "{folder}/errors"
                server.pid-file = "{folder}/pid"
            """
            words = ["lighttpd", "-D", "-f", folder / "conf"]
        else:
            text = f"""
                daemon off; master_process off; user root; pid {folder}/pid; error_log {folder}/errors;
                events {{ }}
                http {{
                    access_log off; sendfile on; client_body_temp_path {folder};
                    proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
                    scgi_temp_path {folder};
                    server {{ listen {SERVICE}:{PORT}; root {self.work}/files; }}
                }}
            """
            words = ["nginx", "-p", folder, "-e", folder / "errors", "-c", folder / "conf"]
        (folder / "conf").write_text(text)
        self.processes[f"{name} application"] = self.net.spawn(name, *words, log=self.log)

    def start_gateway(self, name):
        if self.options.mode == "none":
            return
        words = ["gateway", "trods", "--service", f"{SERVICE}:{PORT}", "--heartbeat", f"{self.address(name)}:7700"]
        if self.options.mode == "pass":
            words += ["--pass"]
        else:
            words += ["--mode", self.options.mode, "--store", "10.77.2.9:6379"]
            words += ["--key-file", self.work / "key", "--objects", self.work / "objects"]
        log = (self.work / f"{name}.gateway").open("ab", buffering=0)
        self.processes[f"{name} gateway"] = self.net.spawn(name, self.options.gateway, *words, log=log)

    def start_balance(self):
        if self.options.mode == "none":
            self.net.inside("balance", "ip", "route", "add", SERVICE, "via", self.address(self.servers[0]))
            return
        words = ["gateway", "balance", "--service", f"{SERVICE}:{PORT}"]
        words += [word for name in self.servers for word in ("--server", f"{self.address(name)}:7700")]
        words += ["--suspect-after-ms", self.options.suspect_after_ms]
        words += ["--no-reminders"] if self.options.no_reminders else []
        log = (self.work / "balance.log").open("ab", buffering=0)
        self.processes["balance"] = self.net.spawn("balance", self.options.gateway, *words, log=log)

    def wait(self, what, ready):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):
                if ready():
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{what} did not come in {START_S} s; see {self.tail()}")

    def wait_for_answer(self):
        """Every server serves."""
        if self.options.mode != "none":
            self.wait("the servers", self.all_serve)
        fetch = ["curl", "-s", "-f", "-o", "/dev/null", "--max-time", "2", f"http://{SERVICE}/small"]
        self.wait("an answer", lambda: self.net.inside("client", *fetch) == "")

    def all_serve(self):
        return all(self.is_serving(name) for name in self.servers)

    def is_serving(self, name):
        """What the balancer last said of a server."""
        lines = (self.work / "balance.log").read_text().splitlines()
        said = [line for line in lines if f"({self.address(name)})" in line]
        return bool(said) and said[-1].endswith("serves")

    def counted(self, chain):
        """Packets that the only rule of a chain of the client counted."""
        line = self.net.inside("client", "iptables", "-t", "mangle", "-nvxL", chain).splitlines()[2]
        return int(line.split()[0])

    def cost(self):
        """Seconds of processor time of all gateways, packets that they were given, and packets that were too many."""
        seconds = 0.0
        for role, process in self.processes.items():
            if role.endswith(" gateway"):
                fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds, *map(sum, zip(*(self.queued(name) for name in self.servers), strict=True))

    def queued(self, name):
        """Packets that a server's kernel gave its gateway, and those that found no room in its queues."""
        lines = self.net.inside(name, "cat", "/proc/net/netfilter/nfnetlink_queue").splitlines()
        rows = [[int(number) for number in line.split()] for line in lines]
        return sum(row[7] for row in rows), sum(row[5] + row[6] for row in rows)

    def tail(self):
        files = sorted(self.work.glob("*.gateway")) + [self.work / "balance.log", self.work / "log"]
        texts = [path.read_text(errors="replace")[-1500:] for path in files if path.exists()]
        return "\n".join(texts)

    # Harm

    def kill(self, role):
        process = self.processes.pop(role)
        process.kill()
        process.wait()

    def harm(self, name, fault):
        if fault == "application":
            self.kill(f"{name} application")
            return
        self.net.inside(name, "ip", "link", "set", "eth0", "down")
        if fault == "machine":
            self.kill(f"{name} gateway")
            self.kill(f"{name} application")

    def heal(self, name, fault):
        if fault == "application":
            self.start_application(name)
        else:
            self.net.inside(name, "ip", "link", "set", "eth0", "up")
            # A link that was down has lost its routes.
            self.net.inside(name, "ip", "route", "replace", "default", "via", "10.77.2.1")
        if fault == "machine":
            self.start_application(name)
            self.start_gateway(name)
        if self.options.mode != "none":
            self.wait(f"{name} again", lambda: self.is_serving(name))

    # Downloads

    def signal_applications(self, number):
        for role, process in self.processes.items():
            if role.endswith(" application"):
                process.send_signal(number)

    def asked(self):
        """The server that has a request which its application has not read."""
        for name in self.servers:
            lines = self.net.inside(name, "ss", "-Htn", "state", "established", f"sport = {PORT}").splitlines()
            if any(int(line.split()[0]) > 0 for line in lines):
                return name
        return None

    def harmed_in_setup(self, fault):
        """Harms a server when it has the request, before it answers: its application sleeps until then."""
        asked, late = None, time.monotonic() + SETUP_S
        while not asked:
            if time.monotonic() > late:
                raise TimeoutError(f"no server has had the request within {SETUP_S} s")
            asked = self.asked()
        self.harm(asked, fault)
        self.signal_applications(signal.SIGCONT)
        return asked

    def sender(self, sent, harmed):
        """The server that sent most since then, of those that were not harmed."""
        healthy = [name for name in self.servers if name not in harmed]
        return max(healthy, key=lambda name: self.net.sent(name) - sent[name])

    def download(self, fault=None, part=0.5, again=None):
        """A download by curl; the server that sends it is harmed when this part of it has arrived.

        Part 0 is before any of it: the server has the request, and has not answered. If `again` is given, the server
        that went on is harmed too, when that part has arrived, and both stay so.
        """
        target = self.work / "downloaded"
        target.unlink(missing_ok=True)
        before = (self.counted("OUTPUT"), self.counted("INPUT"))
        sent = {name: self.net.sent(name) for name in self.servers}
        cost = self.cost()
        parts = [] if not fault else [part] if again is None else [part, again]
        harmed = {}
        if parts and not part:
            self.signal_applications(signal.SIGSTOP)
        began = time.monotonic()
        curl = subprocess.Popen(self.curl(target), stdout=subprocess.PIPE, text=True)
        if parts and not part:
            harmed[self.harmed_in_setup(fault)] = time.monotonic()
        size, moved, pause = 0, began, 0.0
        while curl.poll() is None:
            now = time.monotonic()
            have = target.stat().st_size if target.exists() else 0
            if have > size:
                pause = max(pause, now - moved)
                size, moved = have, now
            if len(harmed) < len(parts) and size >= parts[len(harmed)] * self.size:
                name = self.sender(sent, harmed)
                self.harm(name, fault)
                harmed[name] = time.monotonic()
                sent = {name: self.net.sent(name) for name in self.servers if name not in harmed}
            for name, at in harmed.items():
                if fault == "cut" and again is None and at and now - at > CUT_S:
                    harmed[name] = None
                    self.heal(name, fault)
            time.sleep(0.002)
        # One that hung until curl gave up stood still at its end.
        pause = max(pause, time.monotonic() - moved)
        if not harmed:
            cost = [after - first for first, after in zip(cost, self.cost(), strict=True)]
        for name, at in harmed.items():
            if at:
                self.heal(name, fault)
        digest = hashlib.sha256(target.read_bytes()).hexdigest() if target.exists() else ""
        said = curl.stdout.read().split()
        result = {
            "fault": fault if harmed else None,
            "part": round(part, 3),
            "servers": list(harmed),
            "exit": int(said[4]),
            "status": int(said[0]),
            "bytes": int(said[2]),
            "same": digest == self.hashes["film"],
            "connections": int(said[1]),
            "syns": self.counted("OUTPUT") - before[0],
            "resets": self.counted("INPUT") - before[1],
            "seconds": round(float(said[3]), 3),
            "pause_ms": round(pause * 1000),
        }
        if not harmed:
            result["packets"], result["overflown"] = cost[1:]
            result["processor_us"] = round(cost[0] * 1e6 / max(cost[1], 1), 2)
        result["good"] = result["exit"] == 0 and result["same"] and result["connections"] == 1
        return result

    def curl(self, target):
        form = "%{http_code} %{num_connects} %{size_download} %{time_total} %{exitcode}"
        words = ["curl", "-s", "-o", target, "--max-time", DOWNLOAD_S, "-w", form, f"http://{SERVICE}/film"]
        if self.options.mode == "ts":
            # Timestamps hold one exchange, the only one of its connection.
            words += ["-H", "Connection: close"]
        return ["ip", "netns", "exec", self.net.prefix + "client", *map(str, words)]

    def close(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = {}
        self.net.close()
        if self.options.keep:
            print(f"logs are in {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ensue", default=os.environ.get("ENSUE_BIN", ROOT / "target/release/ensue"))
    parser.add_argument("--gateway", help="another binary for gateways and balancer")
    parser.add_argument("--mode", default="kv", choices=["kv", "ts", "hybrid", "pass", "none"])
    parser.add_argument("--application", choices=["lighttpd", "nginx"], help="the HTTP server")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--size-mb", type=float, default=50)
    parser.add_argument("--rate-mbit", type=int, default=200, help="of the client's link; 0 is as fast as it goes")
    parser.add_argument("--fault", default="machine", choices=[*FAULTS, "any", "no"])
    parser.add_argument("--part", type=float, help="of the file when the server is harmed; 0 is before the answer")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="draws the parts at which servers are harmed")
    parser.add_argument("--suspect-after-ms", type=int, default=100)
    parser.add_argument("--no-reminders", action="store_true", help="the balancer remembers nothing, as in the paper")
    parser.add_argument("--json", action="store_true", help="one line of JSON a run")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    options = parser.parse_args(words)
    options.gateway = options.gateway or options.ensue
    options.application = options.application or (installed_servers() or [None])[0]
    return options


def told(result):
    harm = "no harm"
    if result["fault"]:
        harm = f"{result['fault']} of {', '.join(result['servers'])} at {result['part']:.1%}"
    verdict = "complete and right" if result["good"] else f"BROKEN (curl {result['exit']})"
    return (
        f"{harm}: {verdict}, {result['bytes']} bytes, {result['connections']} connection, {result['syns']} SYN, "
        f"{result['resets']} resets, {result['seconds']:.2f} s, longest pause {result['pause_ms']} ms"
    )


def main():
    options = parse()
    reason = missing()
    if reason:
        sys.exit(f"this needs more than it has here: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chance = random.Random(options.seed)
    good = 0
    with Stage(options) as stage:
        for number in range(options.runs):
            fault = {"any": FAULTS[number % len(FAULTS)], "no": None}.get(options.fault, options.fault)
            part = chance.uniform(0.0, 0.95) if options.part is None else options.part
            result = stage.download(fault, part)
            good += result["good"]
            print(json.dumps(result) if options.json else f"run {number + 1}: {told(result)}", flush=True)
            if not result["good"] and options.keep:
                print(stage.tail())
    told = sys.stderr if options.json else sys.stdout
    print(f"{good} of {options.runs} downloads were complete and right", file=told)
    return 0 if good == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
