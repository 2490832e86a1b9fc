"""Golden results: the outcomes of small runs of every method to the last
digit.

    python -m tests.golden write      # run everything and write tests/golden/runs.json
    python -m tests.golden compare    # run everything again and list every difference

A refactoring changes none of these numbers. Scores and model bits must be equal, objectives to a
relative 1e-12. A change that is meant to alter results rewrites the file and says so. Another
processor rounds differently: there, write the file at the commit before the change first.
"""

import hashlib
import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from rfx.cli import cli

HERE = Path(__file__).resolve().parent
RUNS = HERE / "runs.json"
BINARY, CLASSES, NUMBERS = "breast_cancer", "digits", "diabetes-sklearn"
FIXED = "--gamma 0.3 --lam 1"
# Inputs for which nothing is chosen.
BINNED = "--scaling minmax01 --metric none"
GAUSSIAN = f"--kernel gaussian {BINNED}"
# The outcome of a run: columns of a results file, or entries of its params.
OUTCOME = (
    "lam",
    "metric",
    "score",
    "train_score",
    "objective",
    "model_size",
    "n_iter",
    "converged",
)
EXACT = 1e-12


def configurations() -> list[str]:
    """The options of every run: each method with its defaults, and with options for each of its
    branches.
    """
    linear = ["rf", "nystrom", "lkrf", "kernel", "block"]
    named = ["rf", "nystrom", "lkrf", "kernel", "block", "sparse-rf", "rb", "sparse-rb"]
    found = [f"--method {name} --data {BINARY}" for name in named]
    found += [
        f"--method {name} {GAUSSIAN}{' --lam 1' if name == 'lkrf' else ''} --data {data}"
        for name in linear
        for data in (BINARY, NUMBERS)
    ]
    found += [f"--method {name} --data {CLASSES} {FIXED}" for name in linear]
    found += [
        f"--method {name} {BINNED} --data {data}"
        for name in ("rb", "sparse-rb")
        for data in (BINARY, NUMBERS)
    ]
    found += [
        f"--method sparse-rf --n-features 300 {GAUSSIAN} --data {data}"
        for data in (BINARY, NUMBERS)
    ]
    found += [f"--method sparse-rf --n-features 200 {FIXED} --data {CLASSES}"]
    found += [f"--method rb --n-grids 32 {FIXED} --data {CLASSES}"]
    found += [
        f"--method boosting --kernel {kernel} --n-features 20 --lam 1 --data {BINARY}"
        for kernel in ("perceptron", "stump")
    ]
    streaming = [
        "doubly-sgd",
        "norma",
        "k-sdca",
        "r-pegasos",
        "r-sdca",
        "n-pegasos",
        "n-sdca",
        "mlp",
    ]
    found += [
        f"--method {name} --data {data}"
        for name in streaming
        for data in (BINARY, CLASSES, NUMBERS)
    ]
    for loss in ("squared", "squared_hinge", "logistic"):
        found += [
            f"--method {name} {FIXED} --loss {loss} --data {BINARY}"
            for name in ("kernel", "rf", "sparse-rf")
        ]
    found.append(f"--method kernel {FIXED} --loss hinge --data {BINARY}")
    found += [
        f"--method {name} --kernel arccosine-1 --lam 1 --data {BINARY}" for name in ("kernel", "rf")
    ]
    for kernel in ("laplacian", "laplacian-l2", "matern-3/2", "polynomial-2"):
        found += [
            f"--method {name} --kernel {kernel} {FIXED} --data {BINARY}"
            for name in ("kernel", "rf")
        ]
    for kernel in ("perceptron", "stump"):
        found.append(
            f"--method sparse-rf --kernel {kernel} --n-features 200 --lam 1 --data {BINARY}"
        )
    for solver in ("cg", "liblinear"):
        found.append(
            f"--method rf --solver {solver} --loss squared {FIXED} --data {BINARY}"
            if solver == "cg"
            else f"--method rf --solver {solver} {FIXED} --data {BINARY}"
        )
    found += [
        f"--method sparse-rf --solver liblinear --n-features 100 {FIXED} --data {BINARY}",
        f"--method rb --grow 0.2 {BINNED} --data {NUMBERS}",
        (
            "--method sparse-rb --solver prcd --threads 1 --n-grids 32 --gamma 1 --lam 1 --data"
            f" {NUMBERS}"
        ),
        f"--method nystrom --landmarks kmeans {FIXED} --data {BINARY}",
        f"--method nystrom --landmarks rpcholesky {FIXED} --data {BINARY}",
        f"--method block --partition uniform --block-size 100 {FIXED} --data {BINARY}",
        f"--method lkrf --sparse true {FIXED} --data {BINARY}",
        f"--method lkrf --rho validation --n-features 50 {FIXED} --data {BINARY}",
        f"--method rf --gamma validation {GAUSSIAN} --data {NUMBERS}",
        f"--method rf --gamma tuned {GAUSSIAN} --data {NUMBERS}",
        f"--method rf --kernel gaussian --metric none --scaling standard --dtype float64 --data"
        f" {NUMBERS}",
        f"--method rf --class-weight balanced {FIXED} --data {BINARY}",
        f"--method kernel --class-weight balanced {FIXED} --data {CLASSES}",
        f"--method rf --loss logistic --calibrate platt --holdout 0.3 {FIXED} --data {BINARY}",
        f"--method rf --cv 3 {FIXED} --data {BINARY}",
        f"--method doubly-sgd --precondition true --epochs 2 --data {NUMBERS}",
        f"--method doubly-sgd --averaging linear --step theorem --nu 1e-3 --data {BINARY}",
        f"--method doubly-sgd --class-weight balanced --data {BINARY}",
    ]
    return found


def run(options: str) -> dict:
    """The outcome of `rfx train` with these options: numbers of its row, and digests of its
    model.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.npz"
        words = ["train", *options.split(), "--json", "--quiet", "--model", str(model)]
        done = CliRunner().invoke(cli, words)
        if not model.exists():
            raise SystemExit(f"rfx {' '.join(words)}: {done.output}{done.exception!r}")
        row = json.loads(done.stdout)
        data = options.split()[options.split().index("--data") + 1]
        shown = CliRunner().invoke(cli, ["predict", str(model), data, "--decision"])
        with np.load(model) as file:
            digests = sorted(
                digest(file[name].tobytes()) for name in file.files if name != "header"
            )
    found = {name: row.get(name, row["params"].get(name)) for name in OUTCOME}
    return found | {"arrays": digests, "decision": digest(shown.stdout.encode())}


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def differences(then: dict, now: dict):
    """A line for every entry that differs by more than rounding of an objective explains."""
    for name, value in then.items():
        other = now.get(name)
        if value == other:
            continue
        close = name == "objective" and None not in (value, other)
        if close and math.isclose(float(value), float(other), rel_tol=EXACT):
            continue
        yield f"{name} is {other}, was {value}"


def compare_runs() -> int:
    known, count = json.loads(RUNS.read_text()), 0
    for options, then in known.items():
        for line in differences(then, run(options)):
            count += 1
            print(f"{options}: {line}", flush=True)
    print(f"{len(known)} runs, {count} differences")
    return count


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        found = {options: run(options) for options in configurations()}
        RUNS.write_text(json.dumps(found, indent=1) + "\n")
    elif sys.argv[1:] == ["compare"]:
        sys.exit(bool(compare_runs()))
