"""Kill a worker with SIGKILL at a random moment of `rfx run --scheduler`, and see that every row is there, once.

python tests/kill_workers.py [ROUNDS] prints what came of each round, and exits with 1 where a row was lost or made twice.
"""

import csv
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from by_hand import Cluster

PLAN = """title = "to be killed"
[[run]]
dataset = "sphere:n=200,d=3"
method = "rf"
seed = {}
options.n_features = 10
options.lam = 1
"""


class Rounds:
    """A cluster of two workers, one of which dies in each round, and a plan of so many rows."""

    def __init__(self, folder: Path, cluster: Cluster, rows: int):
        self.folder, self.cluster, self.rows = folder, cluster, rows
        self.results = folder / "results.csv"
        (folder / "plan.toml").write_text(PLAN.format(list(range(rows))))

    def start(self) -> subprocess.Popen:
        self.results.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "rfx",
            "run",
            "plan.toml",
            "--results",
            self.results,
            "--quiet",
            "--scheduler",
            self.cluster.address,
        ]
        return subprocess.Popen(command, cwd=self.folder)

    def seconds(self) -> float:
        """Of an undisturbed run from its first row to its last; the rows before warm the workers up."""
        process, first = self.start(), None
        while process.poll() is None:
            if first is None and self.written():
                first = time.monotonic()
            time.sleep(0.02)
        self.check(process)
        return time.monotonic() - first

    def written(self) -> list[dict]:
        if not self.results.exists():
            return []
        with open(self.results, newline="") as file:
            return list(csv.DictReader(file))

    def check(self, process):
        assert process.returncode == 0, f"rfx run ended with {process.returncode}"
        rows = self.written()
        seeds = sorted(int(row["seed"]) for row in rows)
        assert seeds == list(range(self.rows)), f"the rows are of the seeds {seeds}"
        assert {row["status"] for row in rows} == {"ok"}

    def kill(self, generator: random.Random, seconds: float) -> int:
        """One round; how many rows there were when the worker died."""
        process = self.start()
        if generator.random() < 0.7:  # else any time from the runner's first moment on
            while not self.written() and process.poll() is None:
                time.sleep(0.01)
        time.sleep(seconds * generator.random())
        victim = self.cluster.workers.pop(generator.randrange(2))
        there, running = len(self.written()), process.poll() is None
        victim.kill()
        victim.wait()
        self.cluster.add()
        process.wait()
        self.check(process)
        return there if running else -1


def main(rounds: int) -> int:
    generator, lost = random.Random(1), 0
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        cluster.add()
        cluster.add()
        work = Rounds(Path(name), cluster, 4)
        seconds = work.seconds()
        for number in range(1, rounds + 1):
            try:
                there = work.kill(generator, seconds)
                when = f"killed when {there} of {work.rows} rows were there" if there >= 0 else "killed after the end"
                print(f"{number}: {when}; all rows, each once", flush=True)
            except AssertionError as error:
                lost += 1
                print(f"{number}: {error}", flush=True)
    print(f"{rounds - lost} of {rounds} rounds gave all rows, each once")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
