"""Kill a worker with SIGKILL at a random moment of `rfx train` and `rfx run --scheduler`, and check
that nothing is lost.

`python tests/kill_workers.py [train|plan] [ROUNDS]` prints the outcome of each round. It exits with
1 if a training gave another model or none, a row was lost or computed twice, or a process or folder
of the workers was left behind.

train: `rfx train --scheduler local:2 --parts 4` with each method in turn; plan: `rfx run
--scheduler local:2`. Without an argument, both run.
"""

import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from rfx import model
from rfx.data import libsvm

PLAN = """title = "to be killed"
[[run]]
dataset = "sphere:n=200,d=3"
method = "rf"
seed = {}
options.n_features = 10
options.lam = 1
options.kernel = "gaussian"
options.metric = "none"
"""
METHODS = {
    "rf squared_hinge": ("--method", "rf", "--loss", "squared_hinge", "--n-features", 60),
    "rf logistic": ("--method", "rf", "--loss", "logistic", "--n-features", 60),
    "rf squared": ("--method", "rf", "--loss", "squared", "--n-features", 60, "--gamma", "median"),
    "sparse-rf": ("--method", "sparse-rf", "--n-features", 60, "--rounds", 2),
    "rb": ("--method", "rb", "--loss", "squared", "--n-grids", 6),
    "lkrf": ("--method", "lkrf", "--loss", "squared_hinge", "--pool", 100),
}
# When a worker dies: during its start, in the first seconds of its work, in the middle, in the last
# steps.
MOMENTS = ("start", "first", "middle", "last")


class Commands:
    """A command with two workers of its own, one of which dies in each round."""

    scheduler = "local:2"

    def __init__(self, folder: Path):
        self.folder, self.scratch = folder, folder / "tmp"
        self.scratch.mkdir()
        self.seconds = {}  # of undisturbed commands: until the workers are ready, and after that

    def start(self, *words) -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            "rfx",
            *map(str, words),
            "--quiet",
            "--scheduler",
            self.scheduler,
        ]
        surroundings = os.environ | {"TMPDIR": str(self.scratch)}
        with open(self.folder / "said", "wb") as said:
            return subprocess.Popen(
                command, cwd=self.folder, env=surroundings, stdout=subprocess.DEVNULL, stderr=said
            )

    def there(self) -> bool:
        """Whether both workers have created their folders."""
        return len(list(self.scratch.glob("dask-scratch-space*/worker-*/"))) >= 2

    def workers(self, process) -> list[int]:
        """The pids of worker processes."""
        return [
            one.pid
            for one in psutil.process_iter(["ppid", "cmdline"])
            if one.info["ppid"] == process.pid
            and "spawn_main" in " ".join(one.info["cmdline"] or [])
        ]

    def alive(self) -> list[str]:
        """Processes that were started with this command's temporary folder."""
        scratch = str(self.scratch)
        return [
            " ".join(process.info["cmdline"] or [])[:100]
            for process in psutil.process_iter(["environ", "cmdline"])
            if (process.info["environ"] or {}).get("TMPDIR") == scratch
        ]

    def undisturbed(self, name) -> None:
        """Record the result of an undisturbed command, and its duration."""
        start, there = time.monotonic(), None
        process = self.begin(name)
        while process.poll() is None:
            if there is None and self.there():
                there = time.monotonic()
            time.sleep(0.01)
        self.end(name, process)
        self.seconds[name] = there - start, time.monotonic() - there

    def kill(self, name, moment, generator) -> bool:
        """One round; whether a worker died before the end of the command."""
        if name not in self.seconds:
            self.undisturbed(name)
        until, after = self.seconds[name]
        process = self.begin(name)
        while (
            not (self.workers(process) if moment == "start" else self.there())
            and process.poll() is None
        ):
            time.sleep(0.01)
        low, high = {
            "start": (0, until),
            "first": (0, 2),
            "middle": (0.1 * after, 0.8 * after),
            "last": (0.8 * after, after),
        }[moment]
        time.sleep(generator.uniform(low, high))
        victims = self.workers(process) if process.poll() is None else []
        if victims:
            with suppress(ProcessLookupError):
                os.kill(generator.choice(victims), signal.SIGKILL)
        self.end(name, process)
        return bool(victims)

    def end(self, name, process):
        try:
            process.wait(600)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("it did not end within 600 seconds") from None
        said = (self.folder / "said").read_text(errors="replace").strip()
        assert process.returncode == 0 and "Traceback" not in said, (
            f"it ended with {process.returncode}: {said[-1000:]}"
        )
        self.check_nothing_left()
        self.check(name)

    def check_nothing_left(self):
        end = time.monotonic() + 10  # time for processes that have just ended
        while (left := self.alive()) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left, f"processes stay behind: {left}"
        for folder in self.scratch.iterdir():  # what a killed worker leaves is Dask's to remove
            shutil.rmtree(folder)


class Trainings(Commands):
    """Each method on the same rows; its model must have the same bits."""

    names = tuple(METHODS)

    def __init__(self, folder: Path, rows: int = 5000, more=()):
        super().__init__(folder)
        self.known, self.more = {}, more
        rng = np.random.default_rng(0)
        X = np.round(rng.normal(size=(rows, 8)), 3)
        libsvm.write(
            folder / "data.svm",
            X,
            np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)),
        )

    def begin(self, name):
        gamma = () if "--gamma" in METHODS[name] else ("--gamma", 0.2)
        words = (*METHODS[name], *gamma, *self.more, "--lam", 1, "--task", "binary", "--seed", 0)
        (self.folder / "m.npz").unlink(missing_ok=True)
        return self.start("train", *words, "--data", "data.svm", "--parts", 4, "--model", "m.npz")

    def check(self, name):
        arrays = model.read(self.folder / "m.npz")[1]
        known = self.known.setdefault(name, arrays)
        assert arrays.keys() == known.keys(), "another model"
        for place, array in arrays.items():
            assert array.tobytes() == known[place].tobytes(), (
                f"another model: {place} has other bits"
            )


class Plans(Commands):
    """A plan of this many rows; each must be present once, with the same score."""

    names = ("plan",)

    def __init__(self, folder: Path, rows: int = 4):
        super().__init__(folder)
        self.rows, self.known = rows, None
        (folder / "plan.toml").write_text(PLAN.format(list(range(rows))))

    def begin(self, name):
        (self.folder / "results.csv").unlink(missing_ok=True)
        return self.start("run", "plan.toml", "--results", "results.csv")

    def check(self, name):
        with open(self.folder / "results.csv", newline="") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: int(row["seed"]))
        seeds = [int(row["seed"]) for row in rows]
        assert seeds == list(range(self.rows)), f"the rows have the seeds {seeds}"
        assert {row["status"] for row in rows} == {"ok"}, [row["message"] for row in rows]
        found = [(row["score"], row["objective"]) for row in rows]
        self.known = self.known or found
        assert found == self.known, "other scores"


def by_turns(commands, kind, rounds, generator) -> int:
    """The number of failed rounds."""
    failed = number = early = 0
    while number < rounds:
        name, moment = commands.names[number % len(commands.names)], MOMENTS[number % len(MOMENTS)]
        start, said = time.monotonic(), None
        try:
            died = commands.kill(name, moment, generator)
        except AssertionError as error:
            died, said = True, str(error)
        if not died and early < 3 * rounds:
            early += 1  # the command ended before that moment: repeat the round
            continue
        number += 1
        failed += said is not None
        words = said or "nothing lost"
        print(
            f"{kind} {number}: {name}, killed ({moment}), {time.monotonic() - start:.0f} s:"
            f" {words}",
            flush=True,
        )
    print(f"{kind}: {rounds - failed} of {rounds} rounds lost nothing", flush=True)
    return failed


def main(kinds, rounds: int) -> int:
    failed = 0
    for kind in kinds:
        generator = random.Random(kind)
        with tempfile.TemporaryDirectory() as name:
            commands = {"train": Trainings, "plan": Plans}[kind](Path(name))
            failed += by_turns(commands, kind, rounds, generator)
    return 1 if failed else 0


if __name__ == "__main__":
    kinds = [word for word in sys.argv[1:] if not word.isdecimal()] or ["train", "plan"]
    sys.exit(main(kinds, next((int(word) for word in sys.argv[1:] if word.isdecimal()), 20)))
