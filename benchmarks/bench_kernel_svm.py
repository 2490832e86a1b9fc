"""The exact Gaussian SVM (hinge, C = 1, gamma = 2, with bias, inputs in [-1, 1]): rfx,
libsvm-official with OpenMP, scikit-learn's SVC.

`python benchmarks/bench_kernel_svm.py [NAME[:ROWS]...]` (default: cod-rna ijcnn1) trains each in
its own process, in turns, and prints a Markdown table. Seconds are those of training alone. Data
are read and converted, and rfx is compiled, before the clock starts. The objective and the gap of
all three are computed here by the same code, from their coefficients. `--growth` measures the exact
kernels of Table 2 of Yen et al. (2014) on 25,000, 50,000 and 100,000 random training rows of
covtype: squared hinge with bias, C = 1, with the gammas and the tolerance of the plan
yen2014-table2-full.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from pairs import add_pairs, machine, ratios, scaled, spread, turns

from rfx import env, kernels
from rfx.data import load
from rfx.losses import Hinge

GAMMA, LAM, CACHE_MB = 2.0, 1.0, 1000
SOLVERS = ("rfx", "libsvm-official", "scikit-learn SVC")
GROWTH_ROWS = (25_000, 50_000, 100_000)
GROWTH_KERNELS = {"gaussian": 1.0, "laplacian": 0.5, "perceptron": None}
GROWTH_TOL, GROWTH_MB = 0.01, 2500


def training_rows(name, **how):
    """Inputs (n, d) in [-1, 1] as a dense float64 array, labels in {-1, 1}; name: NAME:ROWS takes
    that many of its rows.
    """
    name, _, rows = name.partition(":")
    split = load(name, **how, **({"n_train": int(rows)} if rows else {}))
    return scaled(split.X_train.astype(np.float64)), np.where(
        split.y_train == split.y_train.max(), 1.0, -1.0
    )


def train_rfx(X, y):
    from rfx.operators.kernel import KernelMatrix
    from rfx.solvers.base import Budget
    from rfx.solvers.svm import solve_kernel_svm

    def solve(X, y):
        return solve_kernel_svm(
            KernelMatrix("gaussian", X, {"gamma": GAMMA}),
            y,
            LAM,
            Hinge,
            Budget(memory_mb=CACHE_MB),
            bias=True,
        )

    solve(X[:300], y[:300])
    before = env.peak_rss_mb()
    seconds, solution = timed(lambda: solve(X, y))
    return seconds, solution.coef, solution.intercept, before


def train_libsvm(X, y):
    import scipy.sparse
    from libsvm.svm import (
        libsvm,
        svm_parameter,
        svm_problem,
        toPyModel,
    )

    problem = svm_problem(y, scipy.sparse.csr_matrix(X))
    parameter = svm_parameter(f"-s 0 -t 2 -g {GAMMA} -c {1 / LAM} -m {CACHE_MB} -q")
    before = env.peak_rss_mb()
    seconds, model = timed(lambda: toPyModel(libsvm.svm_train(problem, parameter)))
    coef = np.zeros(len(y))
    sign = model.get_labels()[0]
    for index, value in zip(model.get_sv_indices(), model.get_sv_coef()):
        coef[index - 1] = sign * value[0]
    return seconds, coef, -sign * model.rho[0], before


def train_scikit_learn(X, y):
    from sklearn.svm import SVC

    model = SVC(C=1 / LAM, gamma=GAMMA, cache_size=CACHE_MB)
    before = env.peak_rss_mb()
    seconds, _ = timed(lambda: model.fit(X, y))
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    return seconds, coef, float(model.intercept_[0]), before


def timed(function):
    """(wall seconds, seconds of all processor cores) of a call, and its result."""
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    result = function()
    taken, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return (taken, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime), result


def child(solver, name, path):
    X, y = training_rows(name)
    trainer = dict(zip(SOLVERS, (train_rfx, train_libsvm, train_scikit_learn)))[solver]
    seconds, coef, intercept, before = trainer(X, y)
    np.savez(path, coef=coef, intercept=intercept)
    print(
        json.dumps(
            {
                "seconds": seconds[0],
                "processor": seconds[1],
                "memory": env.peak_rss_mb(),
                "before": before,
            }
        )
    )


def growth_child(kernel, n_rows):
    from rfx.operators.kernel import KernelMatrix
    from rfx.solvers.base import Budget
    from rfx.solvers.svm import solve_kernel_svm

    X, y = training_rows("covtype", split="yen2014", n_train=n_rows)
    params, budget = (
        kernels.parameters(kernel, X, GROWTH_KERNELS[kernel]),
        Budget(tol=GROWTH_TOL, memory_mb=GROWTH_MB),
    )
    solve_kernel_svm(KernelMatrix(kernel, X[:300], params), y[:300], LAM, bias=True)
    seconds, solution = timed(
        lambda: solve_kernel_svm(KernelMatrix(kernel, X, params), y, LAM, budget=budget, bias=True)
    )
    print(
        json.dumps(
            {
                "seconds": seconds[0],
                "processor": seconds[1],
                "memory": env.peak_rss_mb(),
                "objective": solution.objective,
                "gap": solution.gap,
                "blocks": solution.n_iter,
                "columns": solution.trace[-1]["columns"],
                "support": int(np.count_nonzero(solution.coef)),
                "converged": solution.converged,
            }
        )
    )


def run_child(*words):
    # waiting OpenMP threads spin, which slows LIBSVM down if another process runs; sleeping ones
    # cost nothing
    environment = os.environ | {
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": str(env.threads()),
        "OPENBLAS_NUM_THREADS": str(env.threads()),
    }
    done = subprocess.run(
        [sys.executable, __file__, "--child", *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def certificate(X, y, coef, intercept, gamma=GAMMA, lam=LAM, loss=Hinge):
    """The objective of a kernel machine at coef (n,), its duality gap, and the number of support
    vectors, in float64.

    loss: Hinge or EpsilonInsensitive of rfx.losses. intercept: None for a machine without one. The
    dual point is coef, clipped to the bounds. With an intercept, the coefficients of one sign are
    scaled down so that all sum to zero.
    """
    dual = -loss.clip_dual(-lam * coef, y) / lam
    if intercept is not None:
        above, below = np.maximum(dual, 0), np.maximum(-dual, 0)
        both = min(above.sum(), below.sum())
        dual = above * _share(both, above.sum()) - below * _share(both, below.sum())
    support = np.flatnonzero(coef)
    f, g = kernels.decision(
        "gaussian",
        {"gamma": gamma},
        X[support],
        np.column_stack([coef, dual])[support],
        X,
        dtype=np.float64,
    ).T
    objective = 0.5 * lam * coef @ f + loss.value(f + (intercept or 0.0), y).sum()
    bound = -0.5 * lam * dual @ g - loss.conjugate(-lam * dual, y).sum()
    return float(objective), float(objective - bound), len(support)


def _share(part, whole):
    return part / whole if whole > 0 else 0.0


def certified(solver, name, X, y):
    """What a child process reports of its training, with objective, gap and number of support
    vectors.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "coef.npz")
        result = run_child(solver, name, path)
        with np.load(path) as saved:
            objective, gap, support = certificate(X, y, saved["coef"], float(saved["intercept"]))
    return result | {"objective": objective, "gap": gap / objective, "support": support}


def compare(names, pairs):
    print(f"{machine()}\n")
    print(
        "| data | rows | solver | objective | relative gap | support vectors | seconds | times rfx"
        " | processor seconds | times rfx | peak MB | of it before training |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        X, y = training_rows(name)
        found = turns(
            SOLVERS, lambda solver, name=name, X=X, y=y: certified(solver, name, X, y), pairs
        )
        for solver, rows in found.items():
            row, first = rows[0], found["rfx"]
            seconds, processor = (
                f"{spread([row[kind] for row in rows])} | {ratios(rows, first, kind)}"
                for kind in ("seconds", "processor")
            )
            print(
                f"| {name} | {len(y):,} | {solver} | {row['objective']:.3f} | {row['gap']:.1e} |"
                f" {row['support']:,} | {seconds} | {processor} | {row['memory']:.0f} |"
                f" {row['before']:.0f} |",
                flush=True,
            )


def growth(chosen):
    print(
        f"{machine()}; covtype, squared hinge with bias, lam = {LAM:g}, tolerance {GROWTH_TOL:g}\n"
    )
    print(
        "| kernel | rows | objective | relative gap | converged | support vectors | blocks |"
        " columns | seconds | processor seconds | peak MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for kernel in GROWTH_KERNELS:
        for n_rows in chosen or GROWTH_ROWS:
            r = run_child("growth", kernel, n_rows)
            print(
                f"| {kernel} | {n_rows:,} | {r['objective']:.3f} | {r['gap'] / r['objective']:.1e}"
                f" | {'yes' if r['converged'] else 'no'} | {r['support']:,} | {r['blocks']} |"
                f" {r['columns']:,} | {r['seconds']:.1f} | {r['processor']:.1f} |"
                f" {r['memory']:.0f} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["cod-rna", "ijcnn1"])
    add_pairs(parser)
    parser.add_argument(
        "--growth",
        action="store_true",
        help="memory and seconds at 25,000, 50,000 and 100,000 rows of covtype",
    )
    parser.add_argument("--rows", nargs="*", type=int, help="other numbers of rows for --growth")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child and arguments.child[0] == "growth":
        growth_child(arguments.child[1], int(arguments.child[2]))
    elif arguments.child:
        child(*arguments.child)
    elif arguments.growth:
        growth(arguments.rows)
    else:
        compare(arguments.names, arguments.pairs)


if __name__ == "__main__":
    main()
