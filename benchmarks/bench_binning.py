"""Random binning beside what a user has: features by numpy.unique, scipy's CSR products, LIBLINEAR `-s 5` on the same CSR.

Features and operators: seconds and the peak of a process that makes only them, less what the process has before. sparse-rb:
rfx to a relative duality gap, LIBLINEAR at each `--eps`, until its weights have that gap by the same certificate.

    python benchmarks/bench_binning.py
    python benchmarks/bench_binning.py --data ijcnn1 --gamma 1.58 --scaling none --n-grids 256 --lam 10 --eps 0.01 0.001
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

from rfx import env
from rfx.data import load
from rfx.data.scaling import Scaler
from rfx.features.binning import sample_grids
from rfx.losses import SquaredHinge
from rfx.operators.binned import BinnedMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1 import bins
from rfx.solvers.l1.bins import solve_rb_l1
from rfx.solvers.l1.dual import l1_certificate


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
    """The same matrix as scipy CSR: cells in numpy, numbered by numpy.unique grid by grid."""
    grids = sample_grids("laplacian", X.shape[1], options.n_grids, 0, gamma=options.gamma)
    columns, width = np.empty((len(X), options.n_grids), np.int32), 0
    multipliers = np.random.default_rng(0).integers(1, 2**62, X.shape[1]) | 1
    for r in range(options.n_grids):
        cells = np.floor((X - grids.offsets[r]) / grids.widths[r]).astype(np.int64)
        found, numbers = np.unique((cells * multipliers).sum(axis=1), return_inverse=True)
        columns[:, r] = numbers + width
        width += len(found)
    values = np.full(columns.size, 1 / np.sqrt(options.n_grids))
    return sp.csr_matrix((values, columns.ravel(), np.arange(len(X) + 1, dtype=np.int64) * options.n_grids), shape=(len(X), width))


def features(options, make):
    X, _ = data(options)
    make(options, X[:500])  # compiles, or reads compiled functions from the cache
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
    return {"seconds": seconds, "peak": peak, "held": held / 2**20, "product": min(times), "D": Z.shape[1]}


def l1(options, eps):
    from liblinear.liblinearutil import train

    X, y = data(options)
    options.n_grids = options.l1_grids
    Z = ours(options, X)
    if eps is None:
        few = BinnedMatrix(Z.ids[:4], Z.starts[:5])
        for bins._MANY in (4, 4000):  # compiles both ways, or reads compiled functions from the cache
            solve_rb_l1(few, y, options.lam, SquaredHinge, Budget(max_iter=30))
        start, cpu = time.perf_counter(), time.process_time()
        w = solve_rb_l1(Z, y, options.lam, SquaredHinge, Budget(tol=options.tol)).coef
    else:
        columns = (Z.ids.T + Z.starts[:-1]).ravel()
        matrix = sp.csr_matrix((np.full(Z.ids.size, Z.scale), columns, np.arange(0, Z.ids.size + 1, Z.n_grids)), shape=Z.shape)
        start, cpu = time.perf_counter(), time.process_time()
        model = train(y, matrix, f"-s 5 -c {1 / options.lam} -e {eps} -q")
        w = np.ctypeslib.as_array(model.w, (Z.shape[1],)) * (1 if model.label[0] > 0 else -1)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    objective, gap, _ = l1_certificate(Z, y, w, options.lam, SquaredHinge)
    return {"seconds": seconds, "cpu": cpu, "objective": objective, "gap": gap / objective, "nnz": int(np.count_nonzero(w))}


def in_child(name):
    command = [sys.executable, __file__, *sys.argv[1:], "--one", name]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cod-rna")
    parser.add_argument("--split", default="wu2016")
    parser.add_argument("--scaling", default="minmax01")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--gamma", type=float, default=3.16)
    parser.add_argument("--n-grids", type=int, default=1024)
    parser.add_argument("--l1-grids", type=int, default=256)
    parser.add_argument("--lam", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--eps", nargs="*", default=["0.01", "0.001", "0.0001", "0.00001", "0.000001"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    env.set_threads(options.threads)
    if options.one:
        kind, _, eps = options.one.partition(" ")
        made = l1(options, eps or None) if kind == "l1" else features(options, ours if kind == "ours" else by_unique)
        print(json.dumps(made))
        return
    print(f"{env.cpu_name()}, {options.threads} threads, {options.data}, gamma = {options.gamma:g}\n")
    print("| features | seconds | peak MiB | kept MiB | seconds of Z Z'a | D |\n|---|---|---|---|---|---|")
    rows = {name: in_child(name) for name in ("ours", "unique")}
    for name, title in (("ours", "rfx"), ("unique", "numpy.unique, scipy CSR")):
        row = rows[name]
        print(f"| {title} | {row['seconds']:.2f} | {row['peak']:.0f} | {row['held']:.0f} | {row['product']:.3f} | {row['D']} |")
    ratios = [rows["unique"][key] / rows["ours"][key] for key in ("seconds", "peak", "held", "product")]
    print("| ratio | " + " | ".join(f"{ratio:.1f}" for ratio in ratios) + " | |\n", flush=True)
    print(f"R = {options.l1_grids}, lam = {options.lam:g}\n")
    print("| L1, squared hinge | seconds | CPU seconds | objective | relative gap | non-zeros |\n|---|---|---|---|---|---|")
    for name, title in [("l1", "rfx")] + [(f"l1 {eps}", f"LIBLINEAR -e {eps}") for eps in options.eps]:
        row = in_child(name)
        print(
            f"| {title} | {row['seconds']:.1f} | {row['cpu']:.1f} | {row['objective']:.3f} | {row['gap']:.1e} | {row['nnz']} |", flush=True
        )
        if name == "l1":
            ours_row = row
        elif row["gap"] <= options.tol:
            break
    reached = "to the same gap" if row["gap"] <= options.tol else f"and LIBLINEAR's gap is still {row['gap']:.1e}"
    print(f"\n{row['seconds'] / ours_row['seconds']:.1f} times as fast ({row['cpu'] / ours_row['cpu']:.1f} in CPU time), {reached}")


if __name__ == "__main__":
    main()
