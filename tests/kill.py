"""Kill run, train, and the training on a stream with checkpoints, with SIGKILL at random moments,
and check that nothing is lost or half-written, and that resuming gives the same bits.

`python tests/kill.py [COUNT]` prints the outcome of COUNT kills of each, and exits with 1 if
something was lost.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rfx import model
from rfx.data import libsvm
from rfx.records import results

PLAN = """title = "to be killed"
[[run]]
dataset = "{}"
method = "rf"
seed = {}
options.n_features = 10
options.lam = 1
options.task = "binary"
options.kernel = "gaussian"
options.metric = "none"
options.scaling = "none"
options.gamma = 1
"""


class Jobs:
    """The three commands in their own folder, and what must hold after each kill."""

    def __init__(self, folder: Path):
        self.folder, self.data = folder, folder / "data.txt"
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 3))
        libsvm.write(self.data, X, np.sign(X[:, 0]))
        self.known = {}

    def start(self, *words) -> subprocess.Popen:
        command = [sys.executable, "-m", "rfx", *map(str, words)]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=self.folder, **silent)

    def train(self):
        options = "--method rf --task binary --n-features 20 --lam 1 --kernel gaussian"
        more = "--metric none --gamma 1 --scaling none --no-baseline --model m.npz --data"
        return self.start("train", *options.split(), *more.split(), self.data)

    def check_train(self):
        path = self.folder / "m.npz"
        if path.exists():
            arrays = model.read(path)[1]
            assert all(
                np.array_equal(arrays[name], self.known.setdefault(name, arrays[name]))
                for name in arrays
            ), "another model"

    def stream(self):
        options = "--method doubly-sgd --stream --task binary --batch 10 --block 64 --epochs 6"
        fixed = "--kernel gaussian --metric none --scaling none --gamma 1 --nu 1e-3 --no-baseline"
        more = "--buffer 100 --averaging linear --checkpoint s.point --every 3 --resume"
        words = (*f"{options} {fixed} {more} --model s.npz --data".split(), self.data)
        process = self.start("train", *words)
        # the first kill comes after a checkpoint, the others also before training goes on
        while not (self.folder / "s.point").exists() and process.poll() is None:
            time.sleep(0.002)
        return process

    def check_stream(self):
        if (self.folder / "s.npz").exists():
            arrays = model.read(self.folder / "s.npz")[1]
            known = self.known.setdefault("stream", arrays)
            assert all(np.array_equal(arrays[name], known[name]) for name in known), "other bits"
            for path in self.folder.glob("s.*"):  # the next round starts from the beginning
                path.unlink()

    def run(self):
        (self.folder / "p.toml").write_text(PLAN.format(self.data, [0, 1]))
        return self.start("run", "p.toml", "--results", "r.csv")

    def check_run(self):
        path = self.folder / "r.csv"
        rows = (
            {row["key"]: row["score"] for row in results.read(path) if row["status"] == "ok"}
            if path.exists()
            else {}
        )
        before = self.known.get("rows", {})
        assert before.items() <= rows.items(), "a row was lost"
        self.known["rows"] = rows
        if len(rows) == 2:  # all done: the next round starts from the beginning
            path.unlink()
            self.known["rows"] = {}

    def left_over(self):
        return [path for path in self.folder.rglob("*.part")]


def kill(jobs, name, count, generator) -> int:
    """How many of `count` runs of a job were killed before they ended; AssertionError if something
    was lost.
    """
    process, start, killed = getattr(jobs, name)(), time.monotonic(), 0
    process.wait()
    seconds = time.monotonic() - start
    getattr(jobs, f"check_{name}")()
    for _ in range(count):
        process = getattr(jobs, name)()
        time.sleep(seconds * generator.random())
        process.kill()
        killed += process.wait() < 0
        getattr(jobs, f"check_{name}")()
    process = getattr(jobs, name)()  # an undisturbed run removes what the killed ones left
    assert process.wait() == 0, f"{name} ends with {process.returncode} after the kills"
    getattr(jobs, f"check_{name}")()
    assert not jobs.left_over(), jobs.left_over()
    return killed


def main(count: int) -> int:
    lost = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(Path(folder))
        for name in ("train", "stream", "run"):
            try:
                killed = kill(jobs, name, count, random.Random(name))
                print(
                    f"{name}: {killed} of {count} killed before their end, nothing lost", flush=True
                )
            except AssertionError as error:
                print(f"{name}: {error}", flush=True)
                lost += 1
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
