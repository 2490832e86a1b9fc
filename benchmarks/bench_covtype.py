"""The full covtype data set: rf and sparse-rf on D = 10,000 Laplacian features, rf against the
arithmetic that it needs, and growth with the number of rows.

    python benchmarks/bench_covtype.py cells         seconds, memory, certificate
    python benchmarks/bench_covtype.py arithmetic    seconds of rf and of its parts
    python benchmarks/bench_covtype.py growth        sparse-rf on 25,000 to 464,810 rows

464,810 training rows of split yen2014, 54 inputs in [-1, 1], gamma 1, squared hinge, tolerance
1e-4. Every training has its own process. Seconds are those of features and solver, without reading.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pairs import add_pairs, machine, spread, turns

from rfx.records import results

D, ROWS = 10_000, 464_810
WORDS = [
    "--data",
    "covtype",
    "--split",
    "yen2014",
    "--scaling",
    "minmax11",
    "--kernel",
    "laplacian",
    "--gamma",
    "1",
]
WORDS += ["--loss", "squared_hinge", "--task", "binary", "--seed", "0", "--json", "--quiet"]
METHODS = {
    "rf, lambda 1": ["--method", "rf", "--lam", "1"],
    "sparse-rf, lambda 1000": ["--method", "sparse-rf", "--lam", "1000"],
    "sparse-rf, lambda 100": ["--method", "sparse-rf", "--lam", "100"],
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        nargs="*",
        choices=["cells", "arithmetic", "growth"],
        default=["cells", "arithmetic", "growth"],
    )
    parser.add_argument(
        "--memory",
        type=float,
        nargs="+",
        default=[0, 2000],
        help="Memory bounds in MiB; 0: the default of rfx.",
    )
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[25_000, 50_000, 100_000, 200_000, ROWS],
        help="For growth.",
    )
    parser.add_argument("--n-features", type=int, default=4000, help="For growth.")
    add_pairs(parser)
    options = parser.parse_args()
    print(machine())
    for name in options.what:
        {"cells": cells, "arithmetic": arithmetic, "growth": growth}[name](options)


def train(*words) -> dict:
    """The row of one `rfx train`, with its processor seconds and the load at its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "rfx", "train", *words], capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr)
    row = json.loads(done.stdout)
    row["training"] = row["seconds_fit"] + row["seconds_features"]
    row["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    given = " ".join(words[words.index("--n-features") :])
    print(
        f"{given}: {row['training']:.0f} s, {row['params']['ended']}", file=sys.stderr, flush=True
    )
    return row | {"load": os.getloadavg()[0]}


# ---------------------------------------------------------------------- cells


def cells(options):
    runs = {
        (name, memory): METHODS[name] + bound(memory)
        for name in options.method
        for memory in options.memory
    }
    print(f"\ncovtype, D = {D:,}\n")
    print(
        "| | memory bound, MiB | training, s | processor s, whole command | MiB at the peak |"
        " accuracy | features | ended | gap | load |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---|---:|---:|")
    found = turns(
        runs, lambda name: train(*WORDS, "--n-features", str(D), *runs[name]), options.pairs
    )
    for (name, memory), rows in found.items():
        training, cpu = (spread([row[what] for row in rows], ".0f") for what in ("training", "cpu"))
        first, peak = rows[0], max(row["peak_rss_mb"] for row in rows)
        loads = spread([row["load"] for row in rows], ".1f")
        line = [
            name,
            f"{memory:,.0f}" if memory else "a third of what is free",
            training,
            cpu,
            f"{peak:,.0f}",
            f"{first['score']:.4f}",
        ]
        line += [
            f"{first['model_size']:,}",
            first["params"]["ended"],
            f"{certificate(first):.1e}",
            loads,
        ]
        print("|", " | ".join(line), "|", flush=True)


def bound(memory) -> list[str]:
    return ["--max-memory", f"{memory:g}"] if memory else []


def certificate(row) -> float:
    """The gap divided by the objective; for sparse-rf, that of its last round."""
    return row["params"].get("round_gap", row["gap"]) / row["objective"]


# ---------------------------------------------------------------------- arithmetic


def arithmetic(options):
    """Seconds of rf, and the least it could take: the features once, then all products with them
    and one preconditioner at the speed of matrix products.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.csv"
        row = train(*WORDS, "--n-features", str(D), *METHODS["rf, lambda 1"], "--trace", str(trace))
        (steps,) = results.read_steps(trace).values()
    rate, features = product_rate(), seconds_of_features()
    # a CG step, and a pass with value and gradient, each multiply with the matrix and its transpose
    products = 4.0 * D * sum(step["rows"] * (step["cg"] + 1.0) for step in steps) / rate
    sampled = float(max(step["sampled"] for step in steps))
    factor = (sampled * D**2 + D**3 / 3) / rate
    least = features + products + factor
    print(f"\nrf, lambda 1, D = {D:,}; matrix products at {rate / 1e9:.0f} GFLOP/s (float32)\n")
    print("| | s |\n|---|---:|")
    print(f"| features once | {features:.1f} |")
    print(
        f"| products: {sum(step['cg'] for step in steps):,} CG steps and {len(steps)} passes |"
        f" {products:.1f} |"
    )
    print(f"| a preconditioner of {sampled:,.0f} rows and its factor | {factor:.1f} |")
    print(f"| together | {least:.1f} |")
    print(f"| rf | {row['training']:.1f} = {row['training'] / least:.2f} times |", flush=True)


def product_rate() -> float:
    """Operations per second of a float32 matrix product of 4,000 x 4,000, the best of three."""
    A = np.random.default_rng(0).normal(size=(4000, 4000)).astype(np.float32)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        A @ A
        best = min(best, time.perf_counter() - start)
    return 2 * 4000**3 / best


def seconds_of_features() -> float:
    """Seconds to compute all features of all rows once, in blocks of rows."""
    from rfx.data import load
    from rfx.data.transforms import Scaler
    from rfx.features import sample

    split = load("covtype", split="yen2014")
    X = Scaler.fit(split.X_train, "minmax11").transform(split.X_train, dtype=np.float32)
    made = sample("laplacian", X.shape[1], D, 0, gamma=1.0)
    made.transform(X[:1000])
    start = time.perf_counter()
    for first in range(0, len(X), 8192):
        made.transform(X[first : first + 8192])
    return time.perf_counter() - start


# ---------------------------------------------------------------------- growth


def growth(options):
    from rfx.data import libsvm, load

    split, found = load("covtype", split="yen2014"), []
    print(
        f"\nsparse-rf, lambda 100, D = {options.n_features:,}\n\n| rows | training, s | ended |"
        " load |\n|---:|---:|---|---:|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            path = Path(folder) / f"{rows}.svm"
            libsvm.write(path, split.X_train[:rows], split.y_train[:rows])
            words = [word for word in WORDS if word not in ("--split", "yen2014")]
            words[words.index("covtype")] = str(path)
            row = train(
                *words, "--n-features", str(options.n_features), *METHODS["sparse-rf, lambda 100"]
            )
            found.append(row["training"])
            print(
                f"| {rows:,} | {row['training']:.1f} | {row['params']['ended']} |"
                f" {row['load']:.1f} |",
                flush=True,
            )
    if len(found) > 1:
        print(f"\nexponent {np.polyfit(np.log(options.rows), np.log(found), 1)[0]:.2f}")


if __name__ == "__main__":
    main()
