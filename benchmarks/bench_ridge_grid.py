"""Ridge regression for a grid of lambdas: rfx.solvers.ridge with one factor, rfx with one lambda at
a time, and an eigendecomposition, in turns.

The peer computes the features once, then the smaller of their Gram matrices by BLAS in float64, and
its `eigh` by scipy, which serves all lambdas. Each of the three computes its own features. Inputs
and target are scaled to [0, 1].

    python benchmarks/bench_ridge_grid.py --data cpu --split yen2014 --n-features 8000 \
        --lams 100:0.1:13
"""

import argparse

import numpy as np
from pairs import add_pairs, machine, ratios, spread, timed, turns
from scipy.linalg import eigh

from rfx import env
from rfx.data import load
from rfx.data.transforms import Scaler
from rfx.features import sample
from rfx.operators.mapped import MapMatrix, feature_matrix
from rfx.options import Path
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge, solve_ridge_grid


def by_eigenvectors(blocks, y, lams):
    """Objectives of the solutions for all lambdas."""
    Z = blocks.hold().Z.astype(np.float64)
    wide = Z.shape[0] < Z.shape[1]
    values, vectors = eigh(Z @ Z.T if wide else Z.T @ Z, overwrite_a=True, check_finite=False)
    turned = vectors.T @ (y if wide else Z.T @ y)
    objectives = []
    for lam in lams:
        solution = vectors @ (turned / (values + lam))
        w = Z.T @ solution if wide else solution
        objectives.append(0.5 * lam * w @ w + 0.5 * np.sum((Z @ w - y) ** 2))
    return objectives


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="cpu")
    parser.add_argument("--split", default="yen2014")
    parser.add_argument("--n-features", type=int, default=8000)
    parser.add_argument("--gamma", type=float, default=0.5)
    parser.add_argument("--lams", default="100:0.1:13")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--threads", type=int, default=2)
    add_pairs(parser)
    options = parser.parse_args()
    env.set_threads(options.threads)
    data = load(options.data, split=options.split)
    X = Scaler.fit(data.X_train, "minmax01").transform(data.X_train, np.float32)
    y = (data.y_train - data.y_train.min()) / np.ptp(data.y_train)
    lams = Path.values(options.lams)

    def blocks(n_features, X):
        feature_map = sample("gaussian", X.shape[1], n_features, 0, gamma=options.gamma)
        return feature_matrix(feature_map, X, n_features**-0.5)

    def grid():
        return [
            solution.objective
            for solution in solve_ridge_grid(
                blocks(options.n_features, X), y, lams, budget=Budget(tol=options.tol)
            )
        ]

    def single():
        made = blocks(options.n_features, X)
        return [solve_ridge(made, y, lam, budget=Budget(tol=options.tol)).objective for lam in lams]

    def eigenvectors():
        feature_map = sample("gaussian", X.shape[1], options.n_features, 0, gamma=options.gamma)
        return by_eigenvectors(MapMatrix(feature_map, X, options.n_features**-0.5), y, lams)

    solve_ridge_grid(blocks(20, X[:64]), y[:64], [1.0, 0.1])  # compiled functions
    ways = {"rfx, one factor": grid, "rfx, one by one": single, "eigh": eigenvectors}
    size = (
        f"{options.data}, N = {len(y)}, D = {options.n_features}, {len(lams)} lambdas from"
        f" {lams[0]:g} to {lams[-1]:g}"
    )
    print(f"{machine(options.threads)}; {size}\n")
    print(
        "| way | seconds | CPU s | times the first | in CPU s | largest relative excess of the"
        " objective |"
    )
    print("|---|---|---|---|---|---|")
    found = turns(ways, lambda name: timed(ways[name]), options.pairs)
    objectives = {name: np.array(rows[0]["result"]) for name, rows in found.items()}
    least, first = np.min(list(objectives.values()), axis=0), next(iter(found.values()))
    for name, rows in found.items():
        seconds, cpu = (spread([row[kind] for row in rows]) for kind in ("seconds", "cpu"))
        times = f"{ratios(rows, first, 'seconds')} | {ratios(rows, first, 'cpu')}"
        print(
            f"| {name} | {seconds} | {cpu} | {times} | {np.max(objectives[name] / least - 1):.1e} |"
        )


if __name__ == "__main__":
    main()
