"""The lasso on dense Fourier features: rfx.solvers.l1.newton beside scikit-learn, celer and skglm,
where these are installed.

All in one process on the same float64 features in Fortran order, which the peers need and rfx
doesn't mind (`--float32` adds a row for rfx on float32 features in C order). Each peer gets the
largest of a list of tolerances at which its gap is at most that of rfx, so that the seconds are
those of equal gaps; with that one they take turns.

    python benchmarks/bench_lasso.py
    python benchmarks/bench_lasso.py --fraction 0.1 --peers celer skglm
"""

import argparse
import importlib.util
import warnings

import numpy as np
from pairs import add_pairs, machine, ratios, spread, timed, turns

from rfx import env
from rfx.losses import Squared
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.dual import l1_certificate
from rfx.solvers.l1.newton import lambda_max, solve_l1

PEERS = {"sklearn": "sklearn", "celer": "celer", "skglm": "skglm"}
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def problem(n_rows, n_features, n_inputs):
    """Fourier features of uniform points, and a target that is a smooth function of them
    plus noise.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    directions = rng.normal(size=(n_inputs, n_features)) * np.sqrt(2.0)
    Z = np.sqrt(2) * np.cos(X @ directions + rng.uniform(0, 2 * np.pi, n_features))
    y = (
        np.sin(3 * X[:, 0])
        + X[:, 1] * X[:, 2]
        + np.abs(X).sum(axis=1)
        + 0.3 * rng.standard_normal(n_rows)
    )
    return np.asfortranarray(Z), y - y.mean()


def peer(name, Z, y, lam, tol):
    """Coefficients by a peer at one tolerance."""
    alpha = lam / len(y)
    if name == "sklearn":
        from sklearn.linear_model import Lasso

        return Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=100_000).fit(Z, y).coef_
    if name == "celer":
        from celer import Lasso

        return (
            Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=200, max_epochs=200_000)
            .fit(Z, y)
            .coef_
        )
    from skglm import Lasso

    return (
        Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=200, max_epochs=200_000)
        .fit(Z, y)
        .coef_
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--n-features", type=int, default=2000)
    parser.add_argument("--n-inputs", type=int, default=8)
    parser.add_argument(
        "--fraction", type=float, default=0.01, help="lam as a fraction of lambda_max"
    )
    parser.add_argument("--tol", type=float, default=1e-5, help="relative gap")
    parser.add_argument(
        "--peers", nargs="*", default=["celer", "skglm", "sklearn"], choices=list(PEERS)
    )
    parser.add_argument(
        "--float32", action="store_true", help="rfx on float32 features in C order too"
    )
    parser.add_argument("--threads", type=int, default=2)
    add_pairs(parser)
    options = parser.parse_args()
    env.set_threads(options.threads)
    warnings.filterwarnings("ignore", module="sklearn|celer|skglm")
    Z, y = problem(options.rows, options.n_features, options.n_inputs)
    matrix = DenseMatrix(Z)
    lam = options.fraction * lambda_max(matrix, y, Squared)

    def gap(coef):
        objective, found, _ = l1_certificate(matrix, y, coef, lam, Squared)
        return objective, found / objective

    # Compiled functions come from numba's cache on every run but the first.
    solve_l1(DenseMatrix(Z[:500]), y[:500], lam, Squared)
    runs = {"rfx": lambda: solve_l1(matrix, y, lam, Squared, Budget(tol=options.tol)).coef}
    if options.float32:
        narrow = DenseMatrix(np.ascontiguousarray(Z, np.float32))
        solve_l1(DenseMatrix(narrow.Z[:500]), y[:500], lam, Squared)
        runs["rfx, float32 features"] = lambda: (
            solve_l1(narrow, y, lam, Squared, Budget(tol=options.tol)).coef
        )
    goal = max(gap(runs["rfx"]())[1], options.tol)
    for name in options.peers:
        if importlib.util.find_spec(PEERS[name]) is None:
            print(f"{name} is not installed")
            continue
        peer(name, Z[:500].copy(order="F"), y[:500], lam, 1e-2)
        tol = next(
            (tol for tol in TOLERANCES if gap(peer(name, Z, y, lam, tol))[1] <= goal),
            TOLERANCES[-1],
        )
        runs[f"{name}, tol = {tol:g}"] = lambda name=name, tol=tol: peer(name, Z, y, lam, tol)
    print(
        f"{machine(options.threads)}; {Z.shape[0]} x {Z.shape[1]}, lam = lambda_max *"
        f" {options.fraction:g}\n"
    )
    print(
        "| solver | seconds | CPU seconds | times ours | in CPU seconds | objective | relative gap"
        " | non-zeros |"
    )
    print("|---|---|---|---|---|---|---|---|")
    found = turns(runs, lambda name: timed(runs[name]), options.pairs)
    for name, rows in found.items():
        coef, first = rows[0]["result"], found["rfx"]
        objective, relative = gap(coef)
        seconds, cpu = (spread([row[kind] for row in rows]) for kind in ("seconds", "cpu"))
        times = f"{ratios(rows, first, 'seconds')} | {ratios(rows, first, 'cpu')}"
        print(
            f"| {name} | {seconds} | {cpu} | {times} | {objective:.4f} | {relative:.1e} |"
            f" {np.count_nonzero(coef)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
