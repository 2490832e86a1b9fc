"""A plan of small rows by two processes here (`--jobs 2`) and by two of Dask's workers, in turns: seconds of processor and wall.

python benchmarks/bench_distributed_plan.py [--rows 40] [--pairs 3]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from by_hand import Cluster

PLAN = """title = "small rows"
[[run]]
dataset = "sphere:n=400,d=5"
method = "rf"
seed = {}
threads = 1
options.n_features = 50
options.lam = 1
"""


def seconds_of(pids) -> float:
    """User and system time of processes and of their children that have ended."""
    ticks = 0
    for pid in pids:
        ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(folder, words, pids=()) -> tuple[float, float]:
    """(processor seconds, wall seconds) of `rfx run` with these words, and of the processes `pids` meanwhile."""
    results = folder / "results.csv"
    results.unlink(missing_ok=True)
    before, own, start = seconds_of(pids), resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "rfx", "run", "plan.toml", "--results", results, "--quiet", *words]
    done = subprocess.run(command, cwd=folder)
    assert done.returncode == 0, (done.returncode, results.read_text())
    wall, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
    return spent + seconds_of(pids) - before, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        folder = Path(name)
        (folder / "plan.toml").write_text(PLAN.format(list(range(given.rows))))
        pids = [cluster.scheduler.pid, cluster.add().pid, cluster.add().pid]
        for number in range(given.pairs):
            ways = {
                "--jobs 2": lambda: measured(folder, ["--jobs", "2"]),
                "two workers": lambda: measured(folder, ["--scheduler", cluster.address], pids),
                "local:2": lambda: measured(folder, ["--scheduler", "local:2"]),
            }
            names = list(ways) if number % 2 == 0 else list(ways)[::-1]
            found = {way: ways[way]() for way in names}
            cpu, wall = found["--jobs 2"]
            for way in ways:
                spent, took = found[way]
                print(
                    f"{way:12} {spent:7.1f} s of processor ({spent / cpu:.3f}), {took:7.1f} s of wall ({took / wall:.3f}), "
                    f"load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
