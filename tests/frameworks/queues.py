"""Jobs of Celery, RQ and BullMQ at keys with a home, while links are cut and the home is killed.

    python3 tests/frameworks/queues.py [--jobs 300] [--only celery,rq,bullmq]

Producers in three datacenters send a third of the jobs each, and send again what was refused. Three workers do them;
each notes the number of a job in a file. Meanwhile the links of one datacenter after the other are cut and healed, and
the process of the home is killed (-9) and started again. Each job has to be done at least once; how many were done more
often is told. Workers are connected to the home, because pops that wait are refused elsewhere (docs/home.md).

Exit code 1 if a job was not done.
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

from run import HERE, HOMES, PYTHON, TARGET, chosen, install, progress

sys.path.insert(0, str(HERE.parents[0] / "e2e"))

from cluster import Cluster  # noqa: E402

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
    options = parser.parse_args()
    install(chosen("rq_queue,bullmq_queue"))
    lost = 0
    for name in options.only.split(","):
        lost += run_queue(name, options.jobs)
    sys.exit(1 if lost else 0)


def run_queue(name, jobs):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cluster = Cluster(folder, delay="5ms", partitions=1, flags=["--processes", *HOMES])
        started = []
        try:
            with contextlib.redirect_stdout(None):
                cluster.start()
            begin = time.monotonic()
            producers, workers, files = employ(name, jobs, cluster, folder)
            started += producers + workers
            faults = disturb(cluster, producers, lambda: count(files), jobs)
            done = count(files)
            seconds = time.monotonic() - begin
            refused = said(folder, "produce")
        finally:
            for process in started:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            with contextlib.redirect_stdout(None):
                cluster.close()
    missing = [number for number in range(jobs) if number not in done]
    twice = sum(times - 1 for times in done.values())
    progress("")
    print(
        f"{name}: {jobs} jobs, {len(done)} done, {len(missing)} lost, {twice} done once more, {seconds:.0f} s; "
        f"{faults['cuts']} cuts, {faults['kills']} kills of the home; producers sent {refused} times again",
        flush=True,
    )
    if missing:
        print(f"    lost: {missing[:20]}")
    return len(missing)


def employ(name, jobs, cluster, folder):
    home = f"redis://127.0.0.1:{cluster.client_port(1)}/0"
    producers, workers, files = [], [], []
    for datacenter in cluster.each():
        files.append(folder / f"done-{datacenter}")
        workers.append(begin(name, folder / f"work-{datacenter}", "work", home, files[-1]))
        url = f"redis://127.0.0.1:{cluster.client_port(datacenter)}/0"
        first, end = (jobs * part // 3 for part in (datacenter - 1, datacenter))
        producers.append(begin(name, folder / f"produce-{datacenter}", "produce", url, first, end))
    return producers, workers, files


def begin(name, log, *words):
    with log.open("ab") as out:
        return subprocess.Popen(
            [*QUEUES[name], *map(str, words)], cwd=HERE / "jobs", env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )


def disturb(cluster, producers, done, jobs):
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
            faults["kills"] += 1
            with contextlib.redirect_stdout(None):
                cluster.wait_for_ping(1, timeout=60)
        round_number += 1
        progress(f"{len(done())} of {jobs} done, {dict(faults)}")
    seen, since = None, time.monotonic()
    while len(done()) < jobs and time.monotonic() - since < QUIET_S:
        now = sum(done().values())
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(1)
        progress(f"{len(done())} of {jobs} done, {dict(faults)}")
    return faults


def count(files):
    """How often each job was done."""
    done = collections.Counter()
    for file in files:
        if file.exists():
            done.update(int(line) for line in file.read_text().splitlines())
    return done


def said(folder, role):
    return sum(log.read_text(errors="replace").count("again: ") for log in folder.glob(f"{role}-*"))


if __name__ == "__main__":
    main()
