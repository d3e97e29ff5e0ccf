"""Jobs of Celery, RQ and BullMQ at keys with a home, while links are cut and the home is killed.

    python3 tests/frameworks/queues.py [--jobs 300] [--only celery,rq,bullmq] [--redis] [--away]

Producers in three datacenters send a third of the jobs each, and send again what was refused. Three workers do them;
each notes the number of a job in a file. Meanwhile the links of one datacenter after the other are cut and healed, and
the process of the home is killed (-9) and started again. Each job has to be done at least once; how many were done more
often is told. Workers are connected to the home; with `--away` two of them to the other datacenters, where their pops
wait at the home (docs/home.md).

With `--redis` a single Redis (`appendonly yes`, `everysec`) is killed instead, for comparison: what a queue itself may
lose when its server dies. Exit code 1 if a job was not done.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from run import HERE, HOMES, PYTHON, TARGET, chosen, progress, ready

sys.path.insert(0, str(HERE.parents[0] / "e2e"))

import redis  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from ports import Ports  # noqa: E402

QUEUES = {
    "celery": [str(PYTHON), "celery_jobs.py"],
    "rq": [str(PYTHON), "rq_jobs.py"],
    "bullmq": ["node", "bullmq_jobs.js"],
}
PAUSE_S = 4
# How long nothing has to have happened until what is missing counts as lost: longer than every queue's own patience.
QUIET_S = 100
ENVIRONMENT = {**os.environ, "NODE_PATH": str(TARGET / "js/node_modules"), "PYTHONPATH": str(HERE / "jobs")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--only", default=",".join(QUEUES))
    parser.add_argument("--redis", action="store_true", help="a Redis instead, which is killed as the home is")
    parser.add_argument("--away", action="store_true", help="a worker in each datacenter, not three at the home")
    options = parser.parse_args()
    ready(chosen("rq_queue,bullmq_queue"))
    lost = 0
    for name in options.only.split(","):
        lost += run_queue(name, options.jobs, options.redis, options.away)
    sys.exit(1 if lost else 0)


def run_queue(name, jobs, is_redis, are_away):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if is_redis:
            cluster = Redis(folder)
        else:
            cluster = Cluster(folder, delay="5ms", partitions=1, flags=["--processes", *HOMES])
        started = []
        try:
            with contextlib.redirect_stdout(None):
                cluster.start()
            begin = time.monotonic()
            producers, workers, files = employ(name, jobs, cluster, folder, are_away)
            started += producers
            crew = Crew(workers)
            started.append(crew)
            faults = disturb(cluster, producers, crew, lambda: count(files), jobs)
            done = count(files)
            seconds = time.monotonic() - begin
            refused = said(folder, "produce")
            left = "" if len(done) == jobs else what_is_left(cluster)
        finally:
            for one in started:
                end(one)
            with contextlib.redirect_stdout(None):
                cluster.close()
    missing = [number for number in range(jobs) if number not in done]
    twice = sum(times - 1 for times in done.values())
    progress("")
    print(
        f"{name}: {jobs} jobs, {len(done)} done, {len(missing)} lost, {twice} done once more, {seconds:.0f} s; "
        f"{faults['cuts']} cuts, {faults['kills']} kills of the home; {faults['restarts']} workers "
        f"started again; producers sent {refused} times again",
        flush=True,
    )
    if missing:
        print(f"    lost: {missing[:20]}; the server still has {left}")
    return len(missing)


def employ(name, jobs, cluster, folder, are_away):
    producers, workers, files = [], [], []
    # What is needed to start a worker, which may end when it loses its connection.
    for datacenter in cluster.each():
        files.append(folder / f"done-{datacenter}")
        url = f"redis://127.0.0.1:{cluster.client_port(datacenter)}/0"
        server = url if are_away else f"redis://127.0.0.1:{cluster.client_port(1)}/0"
        log, file = folder / f"work-{datacenter}", files[-1]
        workers.append(lambda log=log, server=server, file=file: begin(name, log, "work", server, file))
        first, end = (jobs * part // 3 for part in (datacenter - 1, datacenter))
        producers.append(begin(name, folder / f"produce-{datacenter}", "produce", url, first, end))
    return producers, workers, files


class Redis:
    """A Redis that stands for all datacenters."""

    def __init__(self, folder):
        self.folder, self.ports, self.process = folder, Ports(), None

    def start(self):
        words = ["--port", self.ports.first, "--bind", "127.0.0.1", "--dir", self.folder, "--save", ""]
        words += ["--appendonly", "yes", "--appendfsync", "everysec"]
        with (self.folder / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(["redis-server", *map(str, words)], stdout=log, stderr=log)
        self.wait_for_ping(1)

    def each(self):
        return range(1, 4)

    def client_port(self, _):
        return self.ports.first

    def link(self, *_):
        """There are none."""

    def process_of(self, _):
        return self.process.pid

    def wait_for_ping(self, _, timeout=60):
        if self.process.poll() is not None:
            self.start()

        def answers():
            with contextlib.suppress(redis.RedisError), redis.Redis(port=self.ports.first) as client:
                return client.ping()

        wait_until(answers, timeout, "Redis serves")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.ports.close()


class Crew:
    """Workers, each of which is started again when it has ended, as by any supervisor."""

    def __init__(self, starts):
        self.starts = starts
        self.processes = [start() for start in starts]
        self.restarts = 0

    def care(self):
        for index, process in enumerate(self.processes):
            if process.poll() is not None:
                self.processes[index] = self.starts[index]()
                self.restarts += 1

    def end(self):
        for process in self.processes:
            end(process)


def end(process):
    if isinstance(process, Crew):
        process.end()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def begin(name, log, *words):
    with log.open("ab") as out:
        return subprocess.Popen(
            [*QUEUES[name], *map(str, words)], cwd=HERE / "jobs", env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )


def disturb(cluster, producers, crew, done, jobs):
    """Cuts, heals and kills until all has been sent, and then waits until all is done or nothing happens any more."""
    faults = collections.Counter()
    round_number = 0
    while round_number < 3 or any(process.poll() is None for process in producers):
        far = 2 + round_number % 2
        cluster.link(1, far, "cut")
        faults["cuts"] += 1
        time.sleep(PAUSE_S / 2)
        cluster.link(1, far, "heal")
        time.sleep(PAUSE_S)
        if round_number % 3 == 1:
            os.kill(cluster.process_of(1), signal.SIGKILL)
            time.sleep(0.2)
            faults["kills"] += 1
            with contextlib.redirect_stdout(None):
                cluster.wait_for_ping(1, timeout=60)
        round_number += 1
        crew.care()
        progress(f"{len(done())} of {jobs} done, {dict(faults)}")
    seen, since = None, time.monotonic()
    while len(done()) < jobs and time.monotonic() - since < QUIET_S:
        crew.care()
        now = sum(done().values())
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(1)
        progress(f"{len(done())} of {jobs} done, {dict(faults)}")
    faults["restarts"] = crew.restarts
    return faults


def count(files):
    """How often each job was done."""
    done = collections.Counter()
    for file in files:
        if file.exists():
            done.update(int(line) for line in file.read_text().splitlines())
    return done


def what_is_left(cluster):
    """The keys at the home with their sizes, to see whether a job that was not done is still there."""
    sizes = {b"list": "LLEN", b"hash": "HLEN", b"zset": "ZCARD", b"set": "SCARD", b"stream": "XLEN"}
    with redis.Redis(port=cluster.client_port(1)) as client:
        keys = sorted(client.keys("*"))[:50]
        kinds = {key: client.type(key) for key in keys}
        return {key: client.execute_command(sizes[kinds[key]], key) for key in keys if kinds[key] in sizes}


def said(folder, role):
    return sum(log.read_text(errors="replace").count("again: ") for log in folder.glob(f"{role}-*"))


if __name__ == "__main__":
    main()
