"""Random binning against standard tools: features by numpy.unique, products by scipy's CSR
matrices, and LIBLINEAR `-s 5` on the same CSR matrix.

Features and operators: seconds, and the peak memory of a process that does only this, minus the
memory that the process had before. sparse-rb: rfx runs to a relative duality gap. LIBLINEAR runs
with the first `--eps` at which its weights have that gap by the same certificate, or with the last
one; each earlier `--eps` runs once. Ridge regression on labels +-1 uses the features of the L1
problem. rfx runs to the same gap. Its peers are the two iterative solvers that Wu et al. (2016,
section 3.2) name, scipy's conjugate gradients and GMRES on (Z'Z + lam) w = Z'y, with a relative
residual at which their weights also have that gap.

    python benchmarks/bench_binning.py
    python benchmarks/bench_binning.py --data ijcnn1 --gamma 1.58 --scaling none \
        --n-grids 256 --lam 10 --eps 0.01 0.001
"""

import argparse
import json
import time

import numpy as np
import scipy.sparse as sp
from pairs import add_pairs, child, machine, ratios, spread, turns
from scipy.sparse import linalg

from rfx import env
from rfx.data import load
from rfx.data.transforms import Scaler
from rfx.features.binning import sample_grids
from rfx.losses import SquaredHinge
from rfx.operators.binned import BinnedMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1 import bins
from rfx.solvers.l1.bins import solve_rb_l1
from rfx.solvers.l1.newton import l1_certificate
from rfx.solvers.l2 import solve_dual_ridge


def data(options):
    split = load(options.data, split=options.split)
    X = Scaler.fit(split.X_train, options.scaling).transform(split.X_train)
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    return X[: options.rows], np.where(split.y_train[: options.rows] > 0, 1.0, -1.0)


def ours(options, X):
    grids = sample_grids("laplacian", X.shape[1], options.n_grids, 0, gamma=options.gamma)
    ids, bins = grids.number(X)
    return BinnedMatrix(ids, bins.starts)


def by_unique(options, X):
    """The same matrix as scipy CSR: numpy computes the cells, numpy.unique numbers them per
    grid.
    """
    grids = sample_grids("laplacian", X.shape[1], options.n_grids, 0, gamma=options.gamma)
    columns, width = np.empty((len(X), options.n_grids), np.int32), 0
    multipliers = np.random.default_rng(0).integers(1, 2**62, X.shape[1]) | 1
    for r in range(options.n_grids):
        cells = np.floor((X - grids.offsets[r]) / grids.widths[r]).astype(np.int64)
        found, numbers = np.unique((cells * multipliers).sum(axis=1), return_inverse=True)
        columns[:, r] = numbers + width
        width += len(found)
    values = np.full(columns.size, 1 / np.sqrt(options.n_grids))
    return sp.csr_matrix(
        (values, columns.ravel(), np.arange(len(X) + 1, dtype=np.int64) * options.n_grids),
        shape=(len(X), width),
    )


def features(options, make):
    X, _ = data(options)
    make(options, X[:500])  # compiles, or loads compiled functions from the cache
    before, start = env.peak_rss_mb(), time.perf_counter()
    Z = make(options, X)
    seconds, peak = time.perf_counter() - start, env.peak_rss_mb() - before
    u = np.random.default_rng(0).standard_normal(len(X))
    if isinstance(Z, BinnedMatrix):
        held, product = Z.ids.nbytes + Z.starts.nbytes, lambda: Z.outer(u)
    else:
        held, product = Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes, lambda: Z @ (Z.T @ u)
    product()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        product()
        times.append(time.perf_counter() - start)
    return {
        "seconds": seconds,
        "peak": peak,
        "held": held / 2**20,
        "product": min(times),
        "D": Z.shape[1],
    }


def l1(options, eps):
    from liblinear.liblinearutil import train

    X, y = data(options)
    options.n_grids = options.l1_grids
    Z = ours(options, X)
    if eps is None:
        few = BinnedMatrix(Z.ids[:4], Z.starts[:5])
        # compiles both, or loads compiled functions from the cache
        for bins._MANY in (4, 4000):
            solve_rb_l1(few, y, options.lam, SquaredHinge, Budget(max_iter=30))
        start, cpu = time.perf_counter(), time.process_time()
        w = solve_rb_l1(Z, y, options.lam, SquaredHinge, Budget(tol=options.tol)).coef
    else:
        columns = (Z.ids.T + Z.starts[:-1]).ravel()
        matrix = sp.csr_matrix(
            (np.full(Z.ids.size, Z.scale), columns, np.arange(0, Z.ids.size + 1, Z.n_grids)),
            shape=Z.shape,
        )
        start, cpu = time.perf_counter(), time.process_time()
        model = train(y, matrix, f"-s 5 -c {1 / options.lam} -e {eps} -q")
        w = np.ctypeslib.as_array(model.w, (Z.shape[1],)) * (1 if model.label[0] > 0 else -1)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    objective, gap, _ = l1_certificate(Z, y, w, options.lam, SquaredHinge)
    return {
        "seconds": seconds,
        "cpu": cpu,
        "objective": objective,
        "gap": gap / objective,
        "nnz": int(np.count_nonzero(w)),
    }


def ridge(options, solver):
    """Ridge regression by rfx, or by scipy's cg or gmres with rfx's products, and the certificate
    of the weights.
    """
    X, y = data(options)
    options.n_grids = options.l1_grids
    Z, lam = ours(options, X), options.lam
    if solver == "rfx":
        few = BinnedMatrix(Z.ids[:, :500], Z.starts)
        solve_dual_ridge(few, y[:500, None], lam, Budget(max_iter=3))
        start, cpu = time.perf_counter(), time.process_time()
        found = solve_dual_ridge(Z, y[:, None], lam, Budget(tol=options.tol))
        w, steps = found.coef[:, 0], found.n_iter
    else:
        products = [0]

        def image(w):
            products[0] += 1
            return Z.rmatvec(Z.matvec(w)) + lam * w

        image(np.zeros(Z.shape[1]))
        A = linalg.LinearOperator((Z.shape[1], Z.shape[1]), image, dtype=np.float64)
        given = {} if solver == "cg" else {"restart": 50}
        start, cpu = time.perf_counter(), time.process_time()
        right, w, tol = Z.rmatvec(y), None, 1e-2
        while w is None or ridge_certificate(Z, y, w, lam)[1] > options.tol:
            # each continues from the last solution, so finding the tolerance costs little
            w, _ = getattr(linalg, solver)(A, right, x0=w, rtol=tol, maxiter=1000, **given)
            tol /= 2
        steps = products[0] - 1
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    objective, gap = ridge_certificate(Z, y, w, lam)
    return {"seconds": seconds, "cpu": cpu, "objective": objective, "gap": gap, "nnz": steps}


def ridge_certificate(Z, y, w, lam):
    """The objective lam/2 |w|^2 + 1/2 |Z w - y|^2, and its duality gap divided by it."""
    residual = Z.matvec(w) - y
    objective = 0.5 * lam * w @ w + 0.5 * residual @ residual
    slope = lam * w + Z.rmatvec(residual)
    return objective, slope @ slope / (2 * lam) / objective


def in_child(name):
    return json.loads(child("--one", name))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="cod-rna")
    parser.add_argument("--split", default="wu2016")
    parser.add_argument("--scaling", default="minmax01")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--gamma", type=float, default=3.16)
    parser.add_argument("--n-grids", type=int, default=1024)
    parser.add_argument("--l1-grids", type=int, default=256)
    parser.add_argument("--lam", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument(
        "--eps", nargs="*", default=["0.01", "0.001", "0.0001", "0.00001", "0.000001"]
    )
    parser.add_argument("--threads", type=int, default=2)
    add_pairs(parser)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    env.set_threads(options.threads)
    if options.one:
        kind, _, eps = options.one.partition(" ")
        made = (
            l1(options, eps or None)
            if kind == "l1"
            else ridge(options, eps)
            if kind == "ridge"
            else features(options, ours if kind == "ours" else by_unique)
        )
        print(json.dumps(made))
        return
    print(
        f"{machine(options.threads)}; {options.data}, gamma = {options.gamma:g}; L1: R ="
        f" {options.l1_grids}, lam = {options.lam:g}\n"
    )
    print(
        "| what | by | seconds | CPU seconds | times rfx | peak MiB | kept MiB | D, nnz or steps |"
        " objective | relative gap |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    kinds = {"ours": "rfx", "unique": "numpy.unique, scipy CSR"}
    found = turns(kinds, in_child, options.pairs)
    for key, what in (("seconds", f"bins, R = {options.n_grids}"), ("product", "Z Z'a")):
        for name, title in kinds.items():
            rows, form = found[name], ".3g"
            memory = (
                f"{rows[0]['peak']:.0f} | {rows[0]['held']:.0f} | {rows[0]['D']}"
                if key == "seconds"
                else " | | "
            )
            times = ratios(rows, found["ours"], key)
            print(
                f"| {what} | {title} | {spread([row[key] for row in rows], form)} | | {times} |"
                f" {memory} | | |",
                flush=True,
            )
    peers = []
    for eps in options.eps:
        peers.append(f"l1 {eps}")
        if in_child(peers[-1])["gap"] <= options.tol:
            break
    found = turns(["l1", *peers[-1:]], in_child, options.pairs)
    for name, rows in found.items():
        row, title = rows[0], "rfx" if name == "l1" else f"LIBLINEAR -e {name[3:]}"
        seconds, cpu = (spread([row[kind] for row in rows]) for kind in ("seconds", "cpu"))
        times = f"{ratios(rows, found['l1'], 'seconds')}; CPU {ratios(rows, found['l1'], 'cpu')}"
        numbers = f"{row['nnz']} | {row['objective']:.3f} | {row['gap']:.1e}"
        print(
            f"| L1, squared hinge | {title} | {seconds} | {cpu} | {times} | | | {numbers} |",
            flush=True,
        )
    solvers = {"rfx": "rfx, steps", "cg": "scipy cg, products", "gmres": "scipy gmres, products"}
    found = turns([f"ridge {name}" for name in solvers], in_child, options.pairs)
    for name, title in solvers.items():
        rows = found[f"ridge {name}"]
        seconds, cpu = (spread([row[kind] for row in rows]) for kind in ("seconds", "cpu"))
        times, cpu_times = (ratios(rows, found["ridge rfx"], kind) for kind in ("seconds", "cpu"))
        numbers = f"{rows[0]['nnz']} | {rows[0]['objective']:.3f} | {rows[0]['gap']:.1e}"
        print(
            f"| ridge | {title} | {seconds} | {cpu} | {times}; CPU {cpu_times} | | | {numbers} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
