"""Every solver before and after a change: `rfx train` of an older commit and of this one in turns,
on the data and sizes of the other scripts.

The output has the seconds of training (features and fit) and of predicting the test rows, the ratio
of after to before within the turns, and both objectives, or scores if there is no objective. It
then compares the readers, and `train` without options, by the seconds of whole commands. Both sides
first run each command once, so that compiled code is cached.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pairs import add_pairs, machine, ratios, spread, turns

ROOT = Path(__file__).resolve().parents[1]
CASES = {
    "bench_l2: rf, squared hinge": (
        "--method rf --data cod-rna --n-features 10000 --lam 1 --gamma 0.5 --scaling minmax11"
    ),
    "bench_l2: rf, logistic": (
        "--method rf --data ijcnn1 --n-features 2000 --lam 1 --loss logistic --gamma 0.5 --scaling"
        " minmax11"
    ),
    "rf, 26 classes": (
        "--method rf --data letter --n-features 1000 --lam 1 --gamma 0.5 --scaling minmax11"
    ),
    "rf, perceptrons": (
        "--method rf --kernel perceptron --data ijcnn1 --n-features 2000 --lam 1 --scaling minmax11"
    ),
    "bench_ridge: cpu": (
        "--method rf --data cpu --n-features 10000 --lam 0.1 --gamma 0.5 --loss squared"
    ),
    "bench_ridge: cadata": (
        "--method rf --data cadata --n-features 10000 --lam 0.1 --gamma 0.5 --loss squared"
    ),
    "bench_ridge_grid": (
        "--method rf --data cpu --n-features 8000 --lam-path 100:0.1:13 --gamma 0.5 --loss squared"
    ),
    "bench_kernel_svm: cod-rna": (
        "--method kernel --data cod-rna --loss hinge --lam 1 --gamma 0.5 --scaling minmax11"
    ),
    "bench_kernel_svm: ijcnn1": (
        "--method kernel --data ijcnn1 --loss hinge --lam 1 --gamma 2 --scaling none"
    ),
    "kernel ridge": "--method kernel --data cpu --lam 0.1 --gamma 0.5 --loss squared",
    "bench_l1: ijcnn1": (
        "--method sparse-rf --rounds 1 --data ijcnn1 --n-features 2000 --lam 10 --gamma 0.5"
        " --scaling minmax11"
    ),
    "bench_l1: cod-rna": (
        "--method sparse-rf --rounds 1 --data cod-rna --n-features 2000 --lam 10 --gamma 0.5"
        " --scaling minmax11"
    ),
    "bench_peers: sparse-rf, squared": (
        "--method sparse-rf --data cpu --n-features 4000 --lam 10 --gamma 0.5 --loss squared"
    ),
    "sparse-rf, ten rounds": (
        "--method sparse-rf --data cod-rna --n-features 10000 --lam 100 --gamma 0.5 --scaling"
        " minmax11"
    ),
    "bench_binning: rb": (
        "--method rb --data cod-rna --n-grids 1024 --lam 1 --gamma 1.58 --scaling minmax01"
    ),
    "bench_binning: sparse-rb": (
        "--method sparse-rb --data ijcnn1 --n-grids 256 --lam 1 --gamma 1.58 --scaling none"
    ),
    "block": "--method block --data cadata --lam 0.1 --gamma 0.5",
    "nystrom": (
        "--method nystrom --data cod-rna --n-features 1000 --lam 1 --gamma 0.5 --scaling minmax11"
    ),
    "bench_learned: lkrf": (
        "--method lkrf --data ijcnn1 --n-features 500 --pool 20000 --lam 1 --gamma 0.5 --scaling"
        " minmax11"
    ),
    "boosting": "--method boosting --data cod-rna --n-features 200",
    "bench_doubly: doubly-sgd": (
        "--method doubly-sgd --data cod-rna --gamma 0.5 --scaling minmax11 --epochs 1"
    ),
    "bench_doubly: r-sdca": (
        "--method r-sdca --data cod-rna --gamma 0.5 --scaling minmax11 --n-features 256 --epochs 5"
    ),
}

# Whole commands, on rows that are generated for them.
COMMANDS = {
    "bench_reader: LIBSVM text": "featurize rows.svm --map fourier -n 1 --gamma 1 -o out.svm",
    "bench_reader: CSV": "convert rows.csv out.svm --target 1 --no-header",
    "train on a file, all left to rfx": "train --method rf --data few.svm",
}


def python(checkout, *words, folder=None):
    """The output of python with the package rfx of a checkout, whatever the current folder contains
    (-P).
    """
    command = [sys.executable, "-P", *words]
    return subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        cwd=folder,
        capture_output=True,
        text=True,
    )


def run(checkout, words):
    """The row that `rfx train` of a checkout prints, with its seconds; None if the command is
    refused.
    """
    done = python(
        checkout, "-m", "rfx", "train", *words.split(), "--seed", "0", "--json", "--quiet"
    )
    if done.returncode not in (0, 3):
        print(done.stderr.strip().splitlines()[-1][:200])
        return None
    rows = json.loads(done.stdout)
    # of a path, each with the seconds of the whole path
    rows = rows if isinstance(rows, list) else [rows]
    seconds = max(row["seconds_features"] + row["seconds_fit"] for row in rows)
    return {"seconds": seconds, "predict": rows[-1].get("seconds_predict") or 0.0, "row": rows[-1]}


def whole(checkout, words, folder):
    """Seconds of a command in `folder`; None if it is refused."""
    start = time.perf_counter()
    done = python(checkout, "-m", "rfx", *words.split(), folder=folder)
    return {"seconds": time.perf_counter() - start} if done.returncode == 0 else None


def written(folder):
    """Files of 200,000 and 270 rows of numbers."""
    import numpy as np

    rows = np.round(np.random.default_rng(0).normal(size=(200_000, 20)), 4)
    labels = np.where(rows[:, 0] > 0, 1, -1)
    lines = [
        " ".join([str(y), *(f"{j}:{x:g}" for j, x in enumerate(row, start=1))])
        for y, row in zip(labels, rows)
    ]
    Path(folder, "rows.svm").write_text("\n".join(lines) + "\n")
    Path(folder, "few.svm").write_text("\n".join(lines[:270]) + "\n")
    Path(folder, "rows.csv").write_text(
        "\n".join(",".join([str(y), *(f"{x:g}" for x in row)]) for y, row in zip(labels, rows))
        + "\n"
    )


def end(row):
    return (
        f"{row['objective']:.7g}"
        if row.get("objective") is not None
        else f"score {row['score']:.4g}"
    )


def checked_out(commit, folder):
    """The package rfx at that commit, written to `folder`."""
    packed = subprocess.run(
        ["git", "archive", commit, "rfx"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
    return folder


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", required=True, metavar="COMMIT", help="the older commit")
    parser.add_argument(
        "--only", nargs="*", default=[""], help="cases whose names contain one of these words"
    )
    add_pairs(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = {"before": checked_out(options.before, folder), "after": ROOT}
        for checkout in sides.values():
            found = Path(python(checkout, "-c", "import rfx; print(rfx.__file__)").stdout.strip())
            if not found.is_relative_to(Path(checkout).resolve()):
                sys.exit(f"not the package of {checkout} but {found}")
        compare(sides, options)


def compare(sides, options):
    print(machine())
    print()
    print("| case | before, s | after, s | ratio | ratio of predicting | objectives |")
    print("|---|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        written(folder)
        runs = {
            name: lambda side, words=words: run(sides[side], words) for name, words in CASES.items()
        }
        runs |= {
            name: lambda side, words=words: whole(sides[side], words, folder)
            for name, words in COMMANDS.items()
        }
        for name, one in runs.items():
            if any(word in name for word in options.only):
                print(f"| {name} | {' | '.join(line(sides, one, options.pairs))} |", flush=True)


def line(sides, one, pairs):
    """The cells of a case; one: side -> its measurements."""
    if None in [one(side) for side in sides]:
        return ["not run", "", "", "", ""]
    found = turns(sides, one, pairs)
    before, after = found["before"], found["after"]
    cells = [spread([row["seconds"] for row in rows]) for rows in (before, after)]
    cells += [
        ratios(after, before, what, ".2f") if all(row.get(what) for row in before) else ""
        for what in ("seconds", "predict")
    ]
    return cells + [
        ", ".join(end(rows[-1]["row"]) for rows in (before, after)) if "row" in before[-1] else ""
    ]


if __name__ == "__main__":
    main()
