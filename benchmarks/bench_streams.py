"""Defaults: the methods that learn batch by batch, and boosting, without any option, against rf
without any option.

    python benchmarks/bench_streams.py run --out ROWS.csv [--sets a9a,cadata] [--by rf,norma]
    python benchmarks/bench_streams.py show ROWS.csv

`run` appends a row for each set and method that the file does not have yet. Each method runs in its
own process with one thread. All use the same training rows and the same test rows, on which no
choice is made. Those are the test rows of the set, or else a random fifth of its rows (seed 0); at
most 20,000. covtype is cut to its first 125,000 rows, of which 100,000 are training rows.
RFX_MIRROR names the folder of the data sets.

`show` prints the error (the share of wrong labels or the RMSE), the passes over the rows, and the
processor seconds of a fit, with the choice of its options. An asterisk marks errors more than two
points, or 5 % of RMSE, above that of rf.
"""

import argparse
import csv
import itertools
import json
import lzma
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from row_files import append_missing

SPLITS = {
    "a9a": None,
    "ijcnn1": None,
    "cod-rna": None,
    "covtype": "80/20",
    "cadata": "80/20",
    "cpusmall": "80/20",
}
REGRESSION = ("cadata", "cpusmall")
METHODS = (
    "rf",
    "doubly-sgd",
    "norma",
    "k-sdca",
    "r-sdca",
    "n-sdca",
    "r-pegasos",
    "n-pegasos",
    "mlp",
    "boosting",
)
FIRST, EVALUATED = 125_000, 20_000
COLUMNS = ("set", "rows", "by", "error", "passes", "processor_seconds", "chosen")
# A method misses the target if its error exceeds rf's by more: points of wrong labels, share of
# RMSE.
POINTS, SHARE = 0.02, 0.05


def load(name):
    """The training rows and the test rows."""
    from rfx import data

    options = {"split": SPLITS[name], "seed": 0}
    if name != "covtype":
        return data.load(name, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "covtype")
        with lzma.open(Path(os.environ["RFX_MIRROR"], "covtype.libsvm.binary.xz")) as file:
            path.write_bytes(b"".join(itertools.islice(file, FIRST)))
        return data.load(str(path), **options)


def one(name, by):
    """The row of a method with its defaults."""
    from rfx import env, methods

    env.set_threads(1)
    warnings.simplefilter("ignore")
    split = load(name)
    start = time.process_time()
    model = methods.create(by, task=split.task).fit(split.X_train, split.y_train)
    seconds = time.process_time() - start
    count = len(split.y_test)
    rows = np.arange(min(EVALUATED, count)) * count // min(EVALUATED, count)
    score = model.score(split.X_test[rows], split.y_test[rows]).score
    info = model.info
    chosen = {"gamma": info["kernel_params"].get("gamma"), "lam": info["lam"]}
    return {
        "set": name,
        "rows": len(split.y_train),
        "by": by,
        "error": score if split.task == "regression" else 1 - score,
        "passes": round(info.get("samples", 0) / len(split.y_train), 3),
        "processor_seconds": round(seconds, 1),
        "chosen": json.dumps(chosen, default=str),
    }


def run(args):
    pairs = itertools.product(args.sets.split(","), args.by.split(","))
    jobs = [{"set": name, "by": by} for name, by in pairs]
    append_missing(__file__, args.out, COLUMNS, jobs)


def behind(name, error, best):
    """Whether an error misses the target set by rf."""
    return error > (1 + SHARE) * best if name in REGRESSION else error > best + POINTS


def show(args):
    with open(args.file, newline="") as file:
        rows = {(row["set"], row["by"]): row for row in csv.DictReader(file)}
    print("| data, rows | method | error | passes | processor s |\n|---|---|---:|---:|---:|")
    for name, by in itertools.product(SPLITS, METHODS):
        if (name, by) not in rows or (name, "rf") not in rows:
            continue
        row, best = rows[name, by], float(rows[name, "rf"]["error"])
        error, passes = float(row["error"]), float(row["passes"])
        mark = "*" if behind(name, error, best) else ""
        shown = f"{error:.5g}" if name in REGRESSION else f"{error:.4f}"
        cells = (
            f"{name}, {int(row['rows']):,}",
            by,
            shown + mark,
            f"{passes:.3g}" if passes else "",
            row["processor_seconds"],
        )
        print(f"| {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("run")
    own.add_argument("--out", required=True)
    own.add_argument("--sets", default=",".join(SPLITS))
    own.add_argument("--by", default=",".join(METHODS))
    own = commands.add_parser("show")
    own.add_argument("file")
    own = commands.add_parser("one")
    own.add_argument("values", nargs=2)
    args = parser.parse_args()
    if args.command == "run":
        run(args)
    elif args.command == "show":
        show(args)
    else:
        print(json.dumps(one(*args.values)))


if __name__ == "__main__":
    main()
