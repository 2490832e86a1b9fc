"""The sub-problem of sparse random features: rfx.solvers.l1.newton against LIBLINEAR `-s 5`, each
in its own process.

Squared hinge, Fourier features of the Gaussian kernel, inputs scaled to [-1, 1], no bias. Both
receive the same float32 features. Seconds are those of the fit, from features in memory to weights,
and include LIBLINEAR's conversion. The peak memory is that of the whole process that solves; for
LIBLINEAR, of its child, which has only LIBLINEAR's own copy. The two take turns.

    python benchmarks/bench_l1.py
    python benchmarks/bench_l1.py --data cod-rna --eps 0.01 0.0001
"""

import argparse
import json
import resource
import time

import numpy as np
from pairs import add_pairs, child, machine, ratios, scaled, spread, turns

from rfx import env
from rfx.data import load
from rfx.features import sample
from rfx.losses import SquaredHinge
from rfx.operators.mapped import MapMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.newton import l1_certificate, solve_l1
from rfx.solvers.published.libraries import solve_liblinear


def features(options):
    """The feature matrix in memory, and labels in {-1, +1}."""
    data = load(options.data, split=options.split)
    X = data.X_train
    y = np.where(data.y_train > 0, 1.0, -1.0)
    if options.rows:
        chosen = np.random.default_rng(0).permutation(len(y))[: options.rows]
        X, y = X[chosen], y[chosen]
    X = scaled(X)
    feature_map = sample("gaussian", X.shape[1], options.n_features, 0, gamma=options.gamma)
    return MapMatrix(feature_map, X.astype(np.float32)).hold(), y


def ours(options):
    blocks, y = features(options)
    # On every run but the first, compiled functions come from numba's cache.
    solve_l1(DenseMatrix(blocks.Z[:2000]), y[:2000], options.lam, SquaredHinge)
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve_l1(blocks, y, options.lam, SquaredHinge, Budget(tol=options.tol))
    row = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "peak": peak(resource.RUSAGE_SELF),
    }
    return row | certified(blocks, y, options, solution)


def liblinear(options, eps):
    blocks, y = features(options)
    start, cpu = time.perf_counter(), used()
    solution = solve_liblinear(blocks, y, options.lam, SquaredHinge, Budget(tol=eps), penalty="l1")
    row = {"seconds": time.perf_counter() - start, "cpu": used() - cpu}
    return row | certified(blocks, y, options, solution) | {"peak": peak(resource.RUSAGE_CHILDREN)}


def certified(blocks, y, options, solution):
    """Objective and gap, by code that both share."""
    objective, gap, _ = l1_certificate(blocks, y, solution.coef, options.lam, SquaredHinge)
    nnz = int(np.count_nonzero(solution.coef))
    return {"objective": objective, "gap": gap / objective, "nnz": nnz, "n_iter": solution.n_iter}


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak(who):
    return resource.getrusage(who).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["ijcnn1", "cod-rna"])
    parser.add_argument("--split")
    parser.add_argument("--rows", type=int, help="number of training rows to draw")
    parser.add_argument("--n-features", type=int, default=2000)
    parser.add_argument("--gamma", type=float, default=2.0)
    parser.add_argument("--lam", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap that rfx must reach")
    parser.add_argument(
        "--eps",
        nargs="*",
        default=["0.01"],
        help="LIBLINEAR's -e, one run each; 1e-4 takes many minutes",
    )
    parser.add_argument("--threads", type=int, default=2)
    add_pairs(parser)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    env.set_threads(options.threads)
    if options.one:
        options.data = options.data[0]
        row = ours(options) if options.one == "rfx" else liblinear(options, float(options.one))
        print(json.dumps(row))
        return
    print(f"{machine(options.threads)}; D = {options.n_features}, lam = {options.lam:g}\n")
    titles = (
        "data|solver|seconds|CPU seconds|times ours|in CPU seconds|objective|relative"
        " gap|non-zeros|peak MiB|times ours".split("|")
    )
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for data in options.data:
        found = turns(
            ["rfx", *options.eps],
            lambda one, data=data: json.loads(child("--data", data, "--one", one)),
            options.pairs,
        )
        first = found["rfx"]
        for one, rows in found.items():
            row, name = rows[0], "rfx" if one == "rfx" else f"LIBLINEAR -e {one}"
            seconds, cpu = (
                spread([row[kind] for row in rows], ".1f") for kind in ("seconds", "cpu")
            )
            print(
                f"| {data} | {name} | {seconds} | {cpu} | {ratios(rows, first, 'seconds')} |"
                f" {ratios(rows, first, 'cpu')} | {row['objective']:.2f} | {row['gap']:.1e} |"
                f" {row['nnz']} | {row['peak']:.0f} | {row['peak'] / first[0]['peak']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
