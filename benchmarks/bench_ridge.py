"""rf with squared loss: rfx.solvers.ridge against scikit-learn's RBFSampler + Ridge, each in its
own process.

Fourier features of the Gaussian kernel, inputs and target scaled to [0, 1], no intercept. The time
of both includes computing the features. The peak memory is that of the whole process, interpreter
and data included.

    python benchmarks/bench_ridge.py --data cpu --n-features 10000
    python benchmarks/bench_ridge.py --n-features 5000 --peers none \
        --data yearpred-sized:n=463715,n_test=1000
"""

import argparse
import json
import resource
import time

import numpy as np
from pairs import add_pairs, child, machine, ratios, spread, turns

from rfx import env
from rfx.data import load
from rfx.features import sample
from rfx.operators.mapped import MapMatrix
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge


def problem(options):
    """Scaled training and test rows: X, y, X_test, y_test."""
    data = load(options.data, split=options.split, n_train=options.rows)
    X, X_test = (
        np.asarray(X.todense() if hasattr(X, "todense") else X) for X in (data.X_train, data.X_test)
    )
    low, high = X.min(axis=0), X.max(axis=0)
    wide = np.where(high > low, high - low, 1)
    y_low, y_wide = data.y_train.min(), np.ptp(data.y_train)
    del data.X_train
    return (
        (X - low) / wide,
        (data.y_train - y_low) / y_wide,
        (X_test - low) / wide,
        (data.y_test - y_low) / y_wide,
    )


def ours(options):
    X, y, X_test, y_test = problem(options)
    X, X_test = X.astype(np.float32, copy=False), X_test.astype(np.float32, copy=False)

    def blocks(n_features, X):
        feature_map = sample("gaussian", X.shape[1], n_features, 0, gamma=options.gamma)
        return MapMatrix(feature_map, X, n_features**-0.5)

    # on every run but the first, compiled functions come from numba's cache
    solve_ridge(blocks(10, X[:64]), y[:64], 1.0)
    start, cpu = time.perf_counter(), time.process_time()
    train = blocks(options.n_features, X)
    solution = solve_ridge(
        train, y, options.lam, budget=Budget(tol=options.tol, memory_mb=options.max_memory)
    )
    row = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    test = MapMatrix(train.map, X_test, train.scale)
    rmse = np.sqrt(np.mean((test.matvec(solution.coef) - y_test) ** 2))
    gap = f"{solution.gap / solution.objective:.1e}"
    return row | {
        "rmse": rmse,
        "objective": solution.objective,
        "gap": gap,
        "note": f"{solution.n_iter} CG steps",
    }


def scikit_learn(options, dtype):
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import Ridge

    X, y, X_test, y_test = problem(options)
    X, X_test = X.astype(dtype), X_test.astype(dtype)
    start, cpu = time.perf_counter(), time.process_time()
    sampler = RBFSampler(gamma=options.gamma, n_components=options.n_features, random_state=0)
    Z = sampler.fit_transform(X)
    model = Ridge(alpha=options.lam, fit_intercept=False).fit(Z, y)
    row = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    rmse = np.sqrt(np.mean((model.predict(sampler.transform(X_test)) - y_test) ** 2))
    residual = model.predict(Z).astype(np.float64) - y
    objective = 0.5 * residual @ residual + 0.5 * options.lam * np.sum(
        model.coef_.astype(np.float64) ** 2
    )
    return row | {
        "rmse": rmse,
        "objective": objective,
        "gap": "",
        "note": f"{np.dtype(dtype).name} rows",
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="cpu")
    parser.add_argument("--split")
    parser.add_argument("--rows", type=int, help="number of training rows to draw")
    parser.add_argument("--n-features", type=int, default=10000)
    parser.add_argument("--gamma", type=float, default=0.5)
    parser.add_argument("--lam", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-memory", type=float)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--peers",
        nargs="*",
        default=["float64", "float32"],
        help="float64 and float32 rows, or none",
    )
    add_pairs(parser)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    env.set_threads(options.threads)
    if options.child:
        row = ours(options) if options.child == "rfx" else scikit_learn(options, options.child)
        row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(row))
        return
    print(
        f"{machine(options.threads)}; {options.data}, D = {options.n_features}, lambda ="
        f" {options.lam}, gamma = {options.gamma}\n"
    )
    print(
        "| solver | seconds | CPU s | times rfx | in CPU s | peak MB | times rfx | RMSE | objective"
        " | relative gap | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    solvers = ["rfx", *(peer for peer in options.peers if peer != "none")]
    found = turns(solvers, lambda solver: json.loads(child("--child", solver)), options.pairs)
    for solver, rows in found.items():
        row, first, name = rows[0], found["rfx"], "rfx" if solver == "rfx" else "scikit-learn"
        seconds, cpu = (spread([row[kind] for row in rows]) for kind in ("seconds", "cpu"))
        print(
            f"| {name} | {seconds} | {cpu} | {ratios(rows, first, 'seconds')} |"
            f" {ratios(rows, first, 'cpu')} | {row['peak_mb']:.0f} |"
            f" {row['peak_mb'] / first[0]['peak_mb']:.1f} | {row['rmse']:.4f} |"
            f" {row['objective']:.4f} | {row['gap']} | {row['note']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
