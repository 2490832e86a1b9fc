"""Kill a training with SIGKILL at a random moment, resume it, and compare the model with that of an
undisturbed training.

`python tests/kill_and_resume.py COUNT` prints how many of COUNT gave the same bits, and exits with
1 if one did not.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rfx import model
from rfx.data.libsvm import svmlight


def main(count: int) -> int:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 10))
    y = np.where(np.sin(X[:, 0] * 2) + X[:, 1] > 0, 1.0, -1.0)
    random.seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        svmlight.write(folder / "rows", X, y)

        def command(label, *more):
            words = (
                f"-m rfx train --method doubly-sgd --stream --data {folder}/rows --task binary"
                " --batch 50 --block 64 --epochs 2 --buffer 1000 --threads 1 --averaging linear"
                f" --checkpoint {folder}/{label}.point --every 3 --model {folder}/{label}.npz"
            )
            return [sys.executable, *words.split(), *more]

        def until_the_first_checkpoint(label, process):
            while not (folder / f"{label}.point").exists() and process.poll() is None:
                time.sleep(0.002)

        start = time.monotonic()
        process = subprocess.Popen(command("whole"), stdout=subprocess.DEVNULL)
        until_the_first_checkpoint("whole", process)
        first = time.monotonic() - start
        assert process.wait() == 0
        seconds = time.monotonic() - start
        whole, good, resumed = model.read(folder / "whole.npz")[1], 0, 0
        for number in range(count):
            process = subprocess.Popen(
                command(number, "--resume"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            # three of four are killed once there is a checkpoint, the others at any moment before
            if number % 4 < 3:
                until_the_first_checkpoint(number, process)
                time.sleep(random.uniform(0.0, seconds - first))
            else:
                time.sleep(random.uniform(0.2 * seconds, first))
            process.send_signal(signal.SIGKILL)
            process.wait()
            before = (folder / f"{number}.point").exists()
            done = subprocess.run(command(number, "--resume"), capture_output=True, text=True)
            if done.returncode:
                print(f"{number}: {done.stderr.strip()}")
                continue
            again = model.read(folder / f"{number}.npz")[1]
            same = whole.keys() == again.keys() and all(
                np.array_equal(whole[key], again[key]) for key in whole
            )
            good += same
            resumed += before
            if not same:
                print(
                    f"{number}: other bits, {'' if before else 'no '}checkpoint when it was killed"
                )
        print(f"{good} of {count} went on to the same bits, {resumed} of them from a checkpoint")
        return 0 if good == count else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
