"""The lasso on dense Fourier features: rfx.solvers.l1.newton beside scikit-learn, celer and skglm, where these are installed.

All in one process on the same float64 features in Fortran order, which the peers need and rfx doesn't mind (`--float32`
adds a row for rfx on float32 features in C order). Each peer gets the largest of a list of tolerances at which its gap
is at most that of rfx, so that the seconds are those of equal gaps.

    python benchmarks/bench_lasso.py
    python benchmarks/bench_lasso.py --fraction 0.1 --peers celer skglm
"""

import argparse
import importlib.util
import time
import warnings

import numpy as np

from rfx import env
from rfx.losses import Squared
from rfx.operators.dense import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.dual import l1_certificate
from rfx.solvers.l1.newton import lambda_max, solve_l1

PEERS = {"sklearn": "sklearn", "celer": "celer", "skglm": "skglm"}


def problem(n_rows, n_features, n_inputs):
    """Fourier features of uniform points, and a target that is a smooth function of them plus noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, n_inputs))
    directions = rng.normal(size=(n_inputs, n_features)) * np.sqrt(2.0)
    Z = np.sqrt(2) * np.cos(X @ directions + rng.uniform(0, 2 * np.pi, n_features))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X).sum(axis=1) + 0.3 * rng.standard_normal(n_rows)
    return np.asfortranarray(Z), y - y.mean()


def peer(name, Z, y, lam, tol):
    """Coefficients by a peer at one tolerance."""
    alpha = lam / len(y)
    if name == "sklearn":
        from sklearn.linear_model import Lasso

        return Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=100_000).fit(Z, y).coef_
    if name == "celer":
        from celer import Lasso

        return Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=200, max_epochs=200_000).fit(Z, y).coef_
    from skglm import Lasso

    return Lasso(alpha=alpha, fit_intercept=False, tol=tol, max_iter=200, max_epochs=200_000).fit(Z, y).coef_


def timed(function):
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - start, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--n-features", type=int, default=2000)
    parser.add_argument("--n-inputs", type=int, default=8)
    parser.add_argument("--fraction", type=float, default=0.01, help="lam as a fraction of lambda_max")
    parser.add_argument("--tol", type=float, default=1e-5, help="relative gap")
    parser.add_argument("--peers", nargs="*", default=["celer", "skglm", "sklearn"], choices=list(PEERS))
    parser.add_argument("--float32", action="store_true", help="rfx on float32 features in C order too")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    env.set_threads(options.threads)
    warnings.filterwarnings("ignore", module="sklearn|celer|skglm")
    Z, y = problem(options.rows, options.n_features, options.n_inputs)
    matrix = DenseMatrix(Z)
    lam = options.fraction * lambda_max(matrix, y, Squared)
    size = f"{Z.shape[0]} x {Z.shape[1]}"
    print(f"{env.cpu_name()}, {options.threads} threads, {size}, lam = lambda_max * {options.fraction:g}\n")
    print("| solver | seconds | CPU seconds | times ours | objective | relative gap | non-zeros |")
    print("|---|---|---|---|---|---|---|")

    def row(name, matrix, coef, seconds, cpu):
        objective, gap, _ = l1_certificate(matrix, y, coef, lam, Squared)
        print(
            f"| {name} | {seconds:.2f} | {cpu:.2f} | {seconds / ours:.1f} | {objective:.4f} | {gap / objective:.1e} "
            f"| {np.count_nonzero(coef)} |",
            flush=True,
        )
        return gap / objective

    # Compiled functions come from numba's cache on every run but the first.
    solve_l1(DenseMatrix(Z[:500]), y[:500], lam, Squared)
    solution, ours, cpu = timed(lambda: solve_l1(matrix, y, lam, Squared, Budget(tol=options.tol)))
    goal = max(row("rfx", matrix, solution.coef, ours, cpu), options.tol)
    if options.float32:
        narrow = np.ascontiguousarray(Z, np.float32)
        solve_l1(DenseMatrix(narrow[:500]), y[:500], lam, Squared)
        solution, seconds, cpu = timed(lambda: solve_l1(DenseMatrix(narrow), y, lam, Squared, Budget(tol=options.tol)))
        row("rfx, float32 features", DenseMatrix(narrow), solution.coef, seconds, cpu)
    for name in options.peers:
        if importlib.util.find_spec(PEERS[name]) is None:
            print(f"| {name} | not installed | | | | | |")
            continue
        peer(name, Z[:500].copy(order="F"), y[:500], lam, 1e-2)
        for tol in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
            coef, seconds, cpu = timed(lambda: peer(name, Z, y, lam, tol))
            objective, gap, _ = l1_certificate(matrix, y, coef, lam, Squared)
            if gap / objective <= goal:
                break
        row(f"{name}, tol = {tol:g}", matrix, coef, seconds, cpu)


if __name__ == "__main__":
    main()
