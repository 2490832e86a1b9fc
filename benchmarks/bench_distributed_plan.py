"""A plan of small runs by two local processes (`--jobs 2`) and by two Dask workers, in turns:
processor and wall seconds.

    python benchmarks/bench_distributed_plan.py [--rows 40] [--pairs 5]
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
from pairs import add_pairs, machine, ratios, spread, turns

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
        ticks += sum(
            map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15])
        )
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(folder, words, pids=()) -> dict:
    """cpu and seconds: processor and wall seconds of `rfx run` with these arguments, and of the
    processes `pids` during that time.
    """
    results = folder / "results.csv"
    results.unlink(missing_ok=True)
    before, own, start = (
        seconds_of(pids),
        resource.getrusage(resource.RUSAGE_CHILDREN),
        time.perf_counter(),
    )
    command = [
        sys.executable,
        "-m",
        "rfx",
        "run",
        "plan.toml",
        "--results",
        results,
        "--quiet",
        *words,
    ]
    done = subprocess.run(command, cwd=folder)
    assert done.returncode == 0, (done.returncode, results.read_text())
    wall, now = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
    return {"cpu": spent + seconds_of(pids) - before, "seconds": wall}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40)
    add_pairs(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        folder = Path(name)
        (folder / "plan.toml").write_text(PLAN.format(list(range(given.rows))))
        pids = [cluster.scheduler.pid, cluster.add().pid, cluster.add().pid]
        ways = {
            "--jobs 2": lambda: measured(folder, ["--jobs", "2"]),
            "two workers": lambda: measured(folder, ["--scheduler", cluster.address], pids),
            "local:2": lambda: measured(folder, ["--scheduler", "local:2"]),
        }
        print(f"{machine()}, {given.rows} rows\n", flush=True)
        found = turns(ways, lambda way: ways[way](), given.pairs)
    print("| by | processor s | times --jobs 2 | wall s | times --jobs 2 |\n|---|---|---|---|---|")
    for way, rows in found.items():
        cells = [
            cell
            for what in ("cpu", "seconds")
            for cell in (
                spread([row[what] for row in rows], ".1f"),
                ratios(rows, found["--jobs 2"], what, ".3f"),
            )
        ]
        print(f"| {way} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
