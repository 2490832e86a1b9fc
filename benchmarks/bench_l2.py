"""rf with squared hinge or logistic loss: rfx.solvers.l2 against LIBLINEAR's `-s 2` and `-s 0`,
each in its own process.

Fourier features of the Gaussian kernel, inputs scaled to [-1, 1]. LIBLINEAR's 16-byte nodes are
written directly to memory. A conversion from a sparse matrix would double its peak memory.

    python benchmarks/bench_l2.py --data cod-rna --n-features 10000
    python benchmarks/bench_l2.py --data covtype-sized:n=464810,n_test=1000 --gamma 0.1 --peers none
"""

import argparse
import ctypes
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from pairs import add_pairs, child, machine, ratios, spread, turns

from rfx import env
from rfx.data import load
from rfx.features import sample
from rfx.losses import get_loss
from rfx.operators.mapped import MapMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l2 import l2_certificate, solve_l2

LIBLINEAR_TYPES = {"squared_hinge": 2, "logistic": 0}


def problem(options):
    """Blocks of the scaled features, and labels, of training and of test rows."""
    data = load(options.data, n_train=options.rows)
    parts = []
    low = high = None
    for X in (data.X_train, data.X_test):
        X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float32)
        if low is None:
            low, high = X.min(axis=0), X.max(axis=0)
        X -= low
        X *= 2 / np.where(high > low, high - low, 1)
        X -= 1
        parts.append(X)
    feature_map = sample("gaussian", parts[0].shape[1], options.n_features, 0, gamma=options.gamma)
    y = np.where(data.y_train == data.y_train.max(), 1.0, -1.0)
    y_test = np.where(data.y_test == data.y_train.max(), 1.0, -1.0)
    scale = options.n_features**-0.5
    return (
        MapMatrix(feature_map, parts[0], scale),
        y,
        MapMatrix(feature_map, parts[1], scale),
        y_test,
    )


def ours(options):
    """coef, and how it was found; computing the features counts."""
    blocks, y, _, _ = problem(options)
    # on every run but the first, compiled functions come from numba's cache
    solve_l2(blocks.rows(np.arange(64)), y[:64], 1.0, get_loss(options.loss))
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve_l2(
        blocks,
        y,
        options.lam,
        get_loss(options.loss),
        Budget(tol=options.tol, memory_mb=options.max_memory),
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    steps = sum(entry["cg"] for entry in solution.trace)
    return solution.coef, {
        "seconds": seconds,
        "cpu": cpu,
        "note": f"{solution.n_iter} Newton steps, {steps} CG steps",
    }


def liblinear(options, eps):
    """The same by LIBLINEAR; writing its nodes counts, computing the features does not."""
    from liblinear import liblinear as peer

    blocks, y, _, _ = problem(options)
    n_rows, n_columns = blocks.shape
    node = np.dtype([("index", np.int32), ("value", np.float64)], align=True)
    features = cpu_features = 0.0
    start, cpu = time.perf_counter(), time.process_time()
    nodes = np.empty((n_rows, n_columns + 1), node)
    walk = blocks.row_blocks()
    while True:
        before = time.perf_counter(), time.process_time()
        part = next(walk, None)
        features += time.perf_counter() - before[0]
        cpu_features += time.process_time() - before[1]
        if part is None:
            break
        rows, Z = part
        nodes["value"][rows, :-1] = Z
        nodes["index"][rows, :-1] = np.arange(1, n_columns + 1, dtype=np.int32)
        nodes["index"][rows, -1] = -1
    given = peer.problem.__new__(peer.problem)
    targets = np.ascontiguousarray(y)
    pointers = nodes.ctypes.data + np.arange(n_rows, dtype=np.uint64) * np.uint64(
        (n_columns + 1) * node.itemsize
    )
    given.l, given.n, given.bias = n_rows, n_columns, -1
    given.y = targets.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    given.x = ctypes.cast(pointers.ctypes.data, ctypes.POINTER(ctypes.POINTER(peer.feature_node)))
    made = time.perf_counter()
    settings = peer.parameter(
        f"-s {LIBLINEAR_TYPES[options.loss]} -c {1 / options.lam} -e {eps} -q"
    )
    model = peer.liblinear.train(ctypes.byref(given), ctypes.byref(settings)).contents
    coef = np.ctypeslib.as_array(model.w, (n_columns,)) * (1.0 if model.label[0] == 1 else -1.0)
    seconds = time.perf_counter() - start - features
    cpu = time.process_time() - cpu - cpu_features
    return coef, {
        "seconds": seconds,
        "cpu": cpu,
        "note": f"{made - start - features:.1f} s of it to write the nodes",
    }


def measured(solver):
    """Run one solver in a child process; return its row and its coef."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "coef.npy"
        row = json.loads(child("--child", solver, "--out", out))
        return row | {"coef": np.load(out)}


def solved(options):
    solver, _, eps = options.child.partition(":")
    coef, row = ours(options) if solver == "rfx" else liblinear(options, float(eps))
    np.save(options.out, coef)
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(row))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="cod-rna")
    parser.add_argument("--rows", type=int, help="number of training rows to draw")
    parser.add_argument("--n-features", type=int, default=2000)
    parser.add_argument("--gamma", type=float, default=2.0)
    parser.add_argument("--lam", type=float, default=1.0)
    parser.add_argument("--loss", choices=LIBLINEAR_TYPES, default="squared_hinge")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--max-memory", type=float)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--peers", nargs="*", default=["liblinear:0.01"], help="liblinear:EPS ..., or none"
    )
    add_pairs(parser)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    env.set_threads(options.threads)
    if options.child:
        solved(options)
        return
    blocks, y, test, y_test = problem(options)
    size = (
        f"{options.data}, {blocks.shape[0]} rows, {options.loss}, D = {options.n_features}, lambda"
        f" = {options.lam}"
    )
    print(f"{machine(options.threads)}; {size}\n")
    print(
        "| solver | seconds | CPU s | times rfx | in CPU s | objective | relative gap | accuracy |"
        " peak MB | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    found = turns(
        ["rfx", *(peer for peer in options.peers if peer != "none")], measured, options.pairs
    )
    for solver, rows in found.items():
        row, first = rows[0], found["rfx"]
        objective, gap = l2_certificate(blocks, y, row["coef"], options.lam, get_loss(options.loss))
        accuracy = np.mean(np.where(test.matvec(row["coef"]) > 0, 1.0, -1.0) == y_test)
        seconds, cpu = (spread([row[kind] for row in rows]) for kind in ("seconds", "cpu"))
        print(
            f"| {solver} | {seconds} | {cpu} | {ratios(rows, first, 'seconds')} |"
            f" {ratios(rows, first, 'cpu')} | {objective:.3f} | {gap / objective:.1e} |"
            f" {accuracy:.4f} | {row['peak_mb']:.0f} | {row['note']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
