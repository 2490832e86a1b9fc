"""rfx against other programs: the same optimisation problems, at equal quality.

    python benchmarks/bench_peers.py run --out ROWS.csv [--only svm-ijcnn1 lasso] [--pairs 3]
    python benchmarks/bench_peers.py show ROWS.csv

`run` appends a row as soon as a fit ends. It skips fits that the file already has; those rows must
be of the same commit and machine. Each program runs in its own process with one thread, and all
take turns. A process first reads its data, converts them to the program's format, and fits a part
of them once so that everything is compiled. Seconds are those of a fit alone. The same code
computes the objective and duality gap of every solution in float64. A fit that takes longer than
--limit is stopped. One that takes longer than a quarter of it is not repeated.

`stream` problems give doubly-sgd of rfx the processor seconds that Vowpal Wabbit took. `table`
problems compare errors with default options (bench_tables.py).

RFX_MIRROR names the folder of the data sets. A program that is not installed gets a row that states
this: `pip install scikit-learn-intelex snapml skglm celer vowpalwabbit xrfm catboost`.
"""

import argparse
import csv
import functools
import hashlib
import importlib
import json
import logging
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import bench_kernel_svm
import bench_tables
import numpy as np
from pairs import add_pairs, ratios, scaled, spread, timed

from rfx import env
from rfx.data import load
from rfx.features import sample
from rfx.losses import EpsilonInsensitiveLoss, Hinge, Logistic, Squared, SquaredHinge
from rfx.operators.kernel import KernelMatrix
from rfx.operators.matrix import DenseMatrix
from rfx.solvers.base import Budget
from rfx.solvers.l1.newton import l1_certificate, lambda_max, solve_l1
from rfx.solvers.l2 import l2_certificate, solve_l2
from rfx.solvers.ridge import solve_ridge
from rfx.solvers.svm import solve_kernel_svm

COLUMNS = (
    *("problem", "program", "version", "dtype", "setting", "turn", "status", "seconds", "cpu"),
    *("objective", "gap", "nonzeros", "error", "commit", "machine", "load", "date"),
)
# Columns that identify a fit.
KEY = ("problem", "program", "dtype", "setting", "turn")
NUMBERS = ("seconds", "cpu", "objective", "gap", "nonzeros", "error")
DONE, LATE, ABSENT = "finished", "not finished", "not installed"
# Smaller relative gaps are rounding errors and count as equal.
ROUNDING = 1e-9
WARM_ROWS, WARM_KERNEL_ROWS = 1000, 5000
CACHE_MB, EPSILON = 1000, 0.1


# --------------------------------------------------------------------------------- problems


def features(X, width, gamma=1.0):
    """float32 Fourier features (n, width) of the Gaussian kernel, for inputs in [-1, 1]."""
    drawn = sample("gaussian", X.shape[1], width, 0, gamma=gamma)
    return np.ascontiguousarray(drawn.transform(X.astype(np.float32)), np.float32)


def some_rows(name, rows):
    """Scaled inputs and targets of `rows` random training rows: labels -1 and 1, or standardised
    numbers.
    """
    data = load(name)
    chosen = np.random.default_rng(0).permutation(len(data.y_train))[:rows]
    X, y = scaled(data.X_train[chosen]), data.y_train[chosen].astype(np.float64)
    if data.task == "regression":
        return X, (y - y.mean()) / y.std()
    return X, np.where(y == y.max(), 1.0, -1.0)


def of_features(name, rows, width):
    X, y = some_rows(name, rows)
    return features(X, width), y


def made_up(rows, width):
    """Features of uniform points, and a smooth function of them plus noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 8))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X).sum(axis=1)
    y += 0.3 * rng.standard_normal(rows)
    return features(X, width), y - y.mean()


@dataclass(frozen=True)
class Problem:
    """One optimisation problem, defined by `statement`.

    make: () -> (X, y), with random features (n, D), or inputs (n, d) for an exact kernel. penalty:
    l1, l2 or kernel. lam: its weight, as a fraction of lambda_max for the lasso. entries: (program,
    dtype, settings), where the settings are tolerances from loose to tight.
    """

    statement: str
    make: Callable
    penalty: str
    loss: object
    lam: float
    entries: tuple
    gamma: float = 1.0

    def weight(self, X, y):
        return self.lam * (
            lambda_max(DenseMatrix(X), y, Squared)
            if self.loss is Squared and self.penalty == "l1"
            else 1.0
        )


F, D = "float32", "float64"
NONE = ("",)
MACHINE = (
    ("rfx", "mixed", ("1e-2", "1e-3", "1e-4", "1e-5", "1e-6")),
    ("oneDAL", F, ("1e-1", "1e-3")),
    ("oneDAL", D, ("1e-3",)),
)
LOGISTIC = "sum of logistic losses, {} random features, no intercept, lambda = {:g}"
PROBLEMS = {
    "svm-ijcnn1": Problem(
        "Support vector machine: hinge loss, Gaussian kernel, gamma = 1, C = 1, an unpenalised"
        " intercept; ijcnn1, 49,990 rows in [-1, 1]",
        lambda: bench_kernel_svm.training_rows("ijcnn1"),
        *("kernel", Hinge, 1.0),
        (*MACHINE, ("LIBSVM", D, ("1e-3",))),
    ),
    "svm-cod-rna": Problem(
        "The same on cod-rna, 59,535 rows",
        lambda: bench_kernel_svm.training_rows("cod-rna"),
        *("kernel", Hinge, 1.0),
        MACHINE,
    ),
    "svr-cpusmall": Problem(
        "Support vector regression: tube of 0.1, Gaussian kernel, gamma = 1, C = 1, an unpenalised"
        " intercept; cpusmall, 6,554 rows in [-1, 1], standardised target",
        lambda: some_rows("cpusmall", 6554),
        *("kernel", EpsilonInsensitiveLoss(EPSILON), 1.0),
        (*MACHINE, ("LIBSVM", D, ("1e-1", "1e-3"))),
    ),
    "svr-cadata": Problem(
        "The same on cadata, 16,512 rows",
        lambda: some_rows("cadata", 16_512),
        *("kernel", EpsilonInsensitiveLoss(EPSILON), 1.0),
        (*MACHINE, ("LIBSVM", D, ("1e-1", "1e-3"))),
    ),
    "l1-logistic": Problem(
        "L1 penalty, " + LOGISTIC.format("1,000", 10) + "; ijcnn1, 10,000 rows",
        lambda: of_features("ijcnn1", *size(10_000, 1000)),
        *("l1", Logistic, 10.0),
        (
            ("rfx", F, ("1e-1", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6")),
            ("LIBLINEAR", D, ("1e-1", "1e-2", "1e-3")),
            ("skglm", D, ("1e-3", "1e-5")),
            ("celer", D, ("1e-2", "1e-4")),
            ("snapml", F, ("1e-3", "1e-5")),
            ("scikit-learn saga", D, ("1e-2", "1e-3")),
        ),
    ),
    "l1-hinge": Problem(
        "L1 penalty, sum of squared hinge losses, 1,000 random features, no intercept, lambda = 10;"
        " ijcnn1, 10,000 rows",
        lambda: of_features("ijcnn1", *size(10_000, 1000)),
        *("l1", SquaredHinge, 10.0),
        (
            ("rfx", F, ("1e-1", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6")),
            ("LIBLINEAR", D, ("1e-1", "1e-2", "1e-3")),
        ),
    ),
    "l2-logistic": Problem(
        "L2 penalty, " + LOGISTIC.format("1,000", 1) + "; cod-rna, 20,000 rows",
        lambda: of_features("cod-rna", *size(20_000, 1000)),
        *("l2", Logistic, 1.0),
        (
            ("rfx", F, ("1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-9")),
            ("LIBLINEAR", D, ("1e-2", "1e-4")),
            ("snapml", F, ("1e-3", "1e-5")),
            ("oneDAL", F, ("1e-4", "1e-6")),
            ("oneDAL", D, ("1e-6",)),
            ("scikit-learn newton-cholesky", D, ("1e-4", "1e-8")),
        ),
    ),
    "l2-hinge": Problem(
        "L2 penalty, sum of squared hinge losses, 1,000 random features, no intercept, lambda = 1;"
        " cod-rna, 20,000 rows",
        lambda: of_features("cod-rna", *size(20_000, 1000)),
        *("l2", SquaredHinge, 1.0),
        (
            ("rfx", F, ("1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-9")),
            ("LIBLINEAR", D, ("1e-2", "1e-4")),
        ),
    ),
    "lasso": Problem(
        "Lasso: half the squared errors, no intercept, lambda = lambda_max / 100; 1,000 random"
        " features of 10,000 uniform points in 8 dimensions",
        lambda: made_up(*size(10_000, 1000)),
        *("l1", Squared, 0.01),
        (
            ("rfx", F, ("1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-9")),
            ("rfx", D, ("1e-4", "1e-9")),
            ("celer", D, ("1e-4", "1e-6")),
            ("skglm", D, ("1e-4", "1e-6")),
            ("scikit-learn", D, ("1e-4", "1e-6")),
            ("snapml", F, ("1e-3", "1e-5")),
        ),
    ),
    "ridge": Problem(
        "Ridge regression: half the squared errors, no intercept, lambda = 1; 2,000 random features"
        " of cadata, 16,512 rows",
        lambda: of_features("cadata", *size(16_512, 2000)),
        *("l2", Squared, 1.0),
        (
            ("rfx", F, ("1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-9")),
            ("scikit-learn", F, NONE),
            ("scikit-learn", D, NONE),
            ("oneDAL", F, NONE),
            ("oneDAL", D, NONE),
            ("snapml", F, ("1e-3", "1e-4")),
        ),
    ),
}
SIZE = [None, None]


def size(rows, width):
    """Rows and features of a problem, unless --rows and --width are given."""
    return SIZE[0] or rows, SIZE[1] or width


@functools.cache
def data_of(name):
    X, y = PROBLEMS[name].make()
    return X, y, PROBLEMS[name].weight(X, y)


# --------------------------------------------------------------------------------- programs
# Each takes (problem, lam, X, y, dtype) and returns a function from a tolerance to the solution:
# coef, or (coef, intercept) for a kernel machine.


def by_rfx(problem, lam, X, y, dtype):
    if problem.penalty == "kernel":
        return by_rfx_kernel(problem, lam, X, y, dtype)
    Z = DenseMatrix(X.astype(dtype))
    if problem.penalty == "l2" and problem.loss is Squared:
        return lambda tol: solve_ridge(Z, y, lam, budget=Budget(tol=tol)).coef
    solve = solve_l1 if problem.penalty == "l1" else solve_l2
    return lambda tol: solve(Z, y, lam, problem.loss, Budget(tol=tol)).coef


def by_rfx_kernel(problem, lam, X, y, dtype):
    def fit(tol):
        K = KernelMatrix("gaussian", X, {"gamma": problem.gamma})
        budget = Budget(tol=tol, memory_mb=CACHE_MB)
        found = solve_kernel_svm(K, y, lam, problem.loss, budget, bias=True)
        return found.coef, found.intercept

    return fit


def by_liblinear(solved, lam, X, y, dtype):
    """Its own copy of the features is made before the clock starts."""
    import scipy.sparse
    from liblinear.liblinearutil import parameter, problem, train

    kinds = {("l1", SquaredHinge): 5, ("l1", Logistic): 6, ("l2", SquaredHinge): 2}
    kind = kinds.get((solved.penalty, solved.loss), 0)
    rows = problem(y, scipy.sparse.csr_matrix(X.astype(dtype)))
    return lambda tol: np.array(
        train(rows, parameter(f"-s {kind} -c {1 / lam!r} -e {tol} -q")).get_decfun()[0]
    )


def by_skglm(problem, lam, X, y, dtype):
    import skglm

    kind = skglm.Lasso if problem.loss is Squared else skglm.SparseLogisticRegression
    Z, own = np.asfortranarray(X, dtype), {"alpha": lam / len(y), "fit_intercept": False}
    own |= {"max_iter": 200, "max_epochs": 200_000}
    return lambda tol: kind(tol=tol, **own).fit(Z, y).coef_


def by_celer(problem, lam, X, y, dtype):
    import celer

    Z, own = np.asfortranarray(X, dtype), {"fit_intercept": False}
    own |= {"max_iter": 200, "max_epochs": 200_000}
    if problem.loss is Squared:
        return lambda tol: celer.Lasso(alpha=lam / len(y), tol=tol, **own).fit(Z, y).coef_
    return lambda tol: celer.LogisticRegression(C=1 / lam, tol=tol, **own).fit(Z, y).coef_


def by_snapml(problem, lam, X, y, dtype):
    import snapml

    kind = snapml.LinearRegression if problem.loss is Squared else snapml.LogisticRegression
    own = {"regularizer": lam, "penalty": problem.penalty, "dual": False, "fit_intercept": False}
    Z = X.astype(dtype)
    return lambda tol: kind(tol=tol, max_iter=100_000, **own).fit(Z, y).coef_


def by_scikit_learn(problem, lam, X, y, dtype, solver=None, linear=None, svm=None):
    """linear, svm: modules to use in place of those of scikit-learn."""
    from sklearn import linear_model

    linear = linear or linear_model
    if problem.penalty == "kernel":
        return by_svm(problem, lam, X.astype(dtype), y.astype(dtype), svm)
    if problem.loss is Logistic:
        own = {"C": 1 / lam, "l1_ratio": float(problem.penalty == "l1"), "fit_intercept": False}
        own |= {"solver": solver or "lbfgs", "max_iter": 100_000}
        Z, y = X.astype(dtype), y.astype(dtype)
        return lambda tol: linear.LogisticRegression(tol=tol, **own).fit(Z, y).coef_
    if problem.penalty == "l2":
        Z, y = X.astype(dtype), y.astype(dtype)
        return lambda tol: linear.Ridge(alpha=lam, fit_intercept=False).fit(Z, y).coef_
    Z, own = np.asfortranarray(X, dtype), {"alpha": lam / len(y), "fit_intercept": False}
    return lambda tol: linear.Lasso(tol=tol, max_iter=100_000, **own).fit(Z, y).coef_


def by_svm(problem, lam, X, y, svm):
    from sklearn import svm as libsvm

    svm = svm or libsvm
    own = {"C": 1 / lam, "gamma": problem.gamma, "cache_size": CACHE_MB}

    def fit(tol):
        kind = svm.SVC if problem.loss is Hinge else functools.partial(svm.SVR, epsilon=EPSILON)
        model, coef = kind(tol=tol, **own).fit(X, y), np.zeros(len(y))
        coef[model.support_] = np.ravel(model.dual_coef_)
        return coef, float(np.ravel(model.intercept_)[0])

    return fit


def by_one_dal(problem, lam, X, y, dtype):
    """From scikit-learn-intelex, which passes some settings on to scikit-learn; that is an error
    here.
    """
    import sklearnex.linear_model
    import sklearnex.svm

    fit = by_scikit_learn(
        problem, lam, X, y, dtype, linear=sklearnex.linear_model, svm=sklearnex.svm
    )
    told = logging.getLogger("sklearnex")
    told.setLevel(logging.INFO)

    def refuse(record):
        if "fit: fallback" in record.getMessage():
            raise RuntimeError("it passes this problem on to scikit-learn")
        return False

    told.addFilter(refuse)
    return fit


@dataclass(frozen=True)
class Program:
    """package: the package on the index, for the version."""

    package: str
    prepare: Callable


PROGRAMS = {
    "rfx": Program("rfx-kernels", by_rfx),
    "LIBLINEAR": Program("liblinear-official", by_liblinear),
    "LIBSVM": Program("scikit-learn", by_scikit_learn),
    "oneDAL": Program("scikit-learn-intelex", by_one_dal),
    "skglm": Program("skglm", by_skglm),
    "celer": Program("celer", by_celer),
    "snapml": Program("snapml", by_snapml),
    "scikit-learn": Program("scikit-learn", by_scikit_learn),
    "scikit-learn saga": Program("scikit-learn", functools.partial(by_scikit_learn, solver="saga")),
    "scikit-learn newton-cholesky": Program(
        "scikit-learn", functools.partial(by_scikit_learn, solver="newton-cholesky")
    ),
    "Vowpal Wabbit": Program("vowpalwabbit", None),
    "CatBoost": Program("catboost", None),
    "HistGradientBoosting": Program("scikit-learn", None),
    "xRFM": Program("xrfm", None),
}


def version(program):
    """The version of its package, None if it is not installed."""
    try:
        return metadata.version(PROGRAMS[program].package)
    except metadata.PackageNotFoundError:
        return None


# ------------------------------------------------------------------------------ certificates


def certified(problem, lam, X, y, coef, intercept=None):
    """Objective, relative duality gap and non-zero coefficients of a solution, by rfx's code."""
    coef = np.ravel(np.asarray(coef, np.float64))
    if problem.penalty == "kernel":
        objective, gap, _ = bench_kernel_svm.certificate(
            X, y, coef, intercept, problem.gamma, lam, problem.loss
        )
    else:
        of = l1_certificate if problem.penalty == "l1" else l2_certificate
        objective, gap = of(DenseMatrix(X.astype(np.float64)), y, coef, lam, problem.loss)[:2]
    count = int(np.count_nonzero(coef))
    return {"objective": objective, "gap": gap / objective, "nonzeros": count}


# ----------------------------------------------------------------------------------- workers


def work(name, program, dtype):
    """The loop of a worker: prepare, then fit for every input line, which has a tolerance and the
    file for the solution.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # programs may print; this must not mix with the answers
    warnings.simplefilter("ignore")
    env.set_threads(1)
    problem, (X, y, lam) = PROBLEMS[name], data_of(name)
    prepare = PROGRAMS[program].prepare
    few = WARM_KERNEL_ROWS if problem.penalty == "kernel" else WARM_ROWS
    loosest = next(s for who, kind, s in problem.entries if (who, kind) == (program, dtype))[0]
    kind = np.float64 if dtype == "mixed" else np.dtype(dtype).type
    prepare(problem, lam, X[:few], y[:few], kind)(float(loosest or 0))
    fit = prepare(problem, lam, X, y, kind)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        tol, out = json.loads(line)
        row = timed(lambda tol=tol: fit(float(tol or 0)))
        result = row.pop("result")
        coef, intercept = result if isinstance(result, tuple) else (result, None)
        np.savez(out, coef=coef, **({} if intercept is None else {"intercept": intercept}))
        print(json.dumps(row), file=answers, flush=True)


class Worker:
    """A process that prepared one program for one problem."""

    def __init__(self, words, start=600):
        self.errors = tempfile.TemporaryFile("w+")
        command = [sys.executable, __file__, *sized(), "work", json.dumps(words)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=one_thread(),
        )
        self.answer(start)

    def answer(self, limit):
        """The next line of its output; None if there is none in time, and the process is ended."""
        if not select.select([self.process.stdout], [], [], limit)[0]:
            self.end()
            return None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            last = self.errors.read().strip().splitlines()[-1:] or ["no message"]
            raise RuntimeError(last[0])
        return line

    def fit(self, setting, out, limit):
        self.process.stdin.write(json.dumps([setting, str(out)]) + "\n")
        self.process.stdin.flush()
        line = self.answer(limit)
        return line and json.loads(line)

    def end(self):
        self.process.kill()
        self.process.wait()


def one_thread():
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "DAAL")
    return os.environ | {f"{name}_NUM_THREADS": "1" for name in names}


def sized():
    """The options that pass the sizes of this process to a worker."""
    given = zip(("--rows", "--width"), SIZE)
    return [word for name, value in given if value for word in (name, str(value))]


# -------------------------------------------------------------------------- streams and tables

STREAM, STREAM_ROWS, STREAM_TEST = "covtype", 100_000, 20_000
STREAMS = (
    ("", 10),
    ("-q aa", 30),
    ("--cubic aaa", 10),
    ("--nn 50", 10),
    ("--ksvm --kernel rbf --bandwidth 1", 1),
)
TABLES = ("wine", "airfoil", "vehicle")
TABLE_ROWS = 4000
TABLE_BY = {
    "rfx": "rfx",
    "CatBoost": "catboost",
    "HistGradientBoosting": "hgb",
    "xRFM": "xrfm-default",
}


def stream_rows():
    """(X, X_out, y, y_out) of covtype, inputs in [0, 1]."""
    split = load(STREAM, split="dai2014")
    rng, positive = np.random.default_rng(0), split.y_train.max()

    def drawn(X, y, count):
        rows = rng.permutation(len(y))[:count]
        return X[rows].toarray(), np.where(y[rows] == positive, 1.0, -1.0)

    X, y = drawn(split.X_train, split.y_train, SIZE[0] or STREAM_ROWS)
    X_out, y_out = drawn(split.X_test, split.y_test, STREAM_TEST)
    low, high = X.min(axis=0), X.max(axis=0)
    wide = np.where(high > low, high - low, 1)
    return *(((part - low) / wide).astype(np.float32) for part in (X, X_out)), y, y_out


def stream_wabbit(setting, passes):
    """Seconds and error of a training from its binary cache, which exists already."""
    from vowpalwabbit import Workspace

    X, X_out, y, y_out = stream_rows()
    with tempfile.TemporaryDirectory() as folder:

        def put(name, X, y):
            with open(f"{folder}/{name}", "w") as file:
                for row, label in zip(X, y):
                    cells = " ".join(f"{k}:{row[k]:.6g}" for k in np.flatnonzero(row))
                    file.write(f"{label:g} |a {cells}\n")

        put("train", X, y)
        put("out", X_out, y_out)
        Workspace(f"-d {folder}/train --cache_file {folder}/cache -k --quiet").finish()
        words = f"-d {folder}/train --cache_file {folder}/cache --loss_function hinge"
        words += f" --holdout_off --quiet -f {folder}/model --passes {passes} {setting}"
        row = timed(lambda: Workspace(words).finish())
        told = f"-i {folder}/model -t -d {folder}/out -p {folder}/told --quiet"
        Workspace(told).finish()
        values = np.array([float(line.split()[0]) for line in open(f"{folder}/told")])
    return {key: row[key] for key in ("seconds", "cpu")} | {
        "error": float(np.mean(np.where(values > 0, 1.0, -1.0) != y_out))
    }


def stream_rfx(seconds):
    """Error of doubly-sgd after this many processor seconds, with the settings of bench_doubly."""
    import bench_doubly

    X, X_out, y, y_out = stream_rows()
    own = [bench_doubly.INPUTS_OF[STREAM] | bench_doubly.CHOSEN[STREAM]]
    race = functools.partial(bench_doubly.race, X=X, y=y, X_out=X_out, y_out=y_out)
    race([bench_doubly.Doubly(own[0], X, y)], seconds=0.1)
    row = timed(lambda: race([bench_doubly.Doubly(own[0], X, y)], seconds=seconds))
    return {"seconds": seconds, "cpu": seconds, "error": row["result"][0][1] / 100}


def table_row(name, program, number):
    """The row of bench_tables for a contestant with its defaults."""
    if program in ("CatBoost", "xRFM"):
        importlib.import_module(PROGRAMS[program].package)
    row = bench_tables.one(name, number, TABLE_ROWS, TABLE_BY[program])
    return {"seconds": row["seconds"], "cpu": row["processor_seconds"], "error": row["error"]}


def once(kind, *words):
    """The output of a process for one fit."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    env.set_threads(1)
    if kind == "table":
        row = table_row(words[0], words[1], int(words[2]))
    elif kind == "wabbit":
        row = stream_wabbit(words[0], int(words[1]))
    else:
        row = stream_rfx(float(words[0]))
    print(json.dumps(row), file=answers, flush=True)


# --------------------------------------------------------------------------------------- run


class Rows:
    """The rows of a file to which one row at a time is appended."""

    def __init__(self, path):
        self.path, self.rows = Path(path), []
        self.who = {
            "commit": env.git_revision() or "unknown",
            "machine": f"{env.cpu_name()}, {os.cpu_count()} cores",
        }
        if self.path.exists():
            self.rows = read(self.path)
            for row in self.rows:
                if any(row[key] != value for key, value in self.who.items()):
                    raise SystemExit(
                        f"{path} has rows of commit {row['commit']} on {row['machine']}; this is"
                        f" {self.who['commit']} on {self.who['machine']}; name another file"
                    )
        else:
            with self.path.open("w", newline="") as file:
                csv.writer(file).writerow(COLUMNS)

    def of(self, **given):
        return [row for row in self.rows if all(row[key] == given[key] for key in given)]

    def add(self, status=DONE, **cells):
        row = dict.fromkeys(COLUMNS, "") | cells | self.who
        row |= {
            "status": status,
            "version": version(row["program"]) or "",
            "load": f"{os.getloadavg()[0]:.1f}",
            "date": time.strftime("%Y-%m-%d"),
        }
        row = {key: str(value) for key, value in row.items()}
        for key in NUMBERS:
            row[key] = f"{float(row[key]):.10g}" if row[key] else ""
        self.rows.append(row)
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow([row[key] for key in COLUMNS])
        print(" ".join(row[key] for key in (*KEY, "status", "cpu", "gap", "error")), flush=True)

    def known(self, limit, **key):
        """Whether to skip a fit: it has a row, or an earlier turn did not finish or took long."""
        if self.of(**key):
            return True
        earlier = self.of(**{name: key[name] for name in KEY[:-1]})
        return any(row["status"] != DONE or float(row["seconds"]) > limit / 4 for row in earlier)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run_problem(name, rows, args):
    """All turns of one optimisation problem."""
    problem, workers, seen = PROBLEMS[name], {}, {}
    for turn in range(args.pairs):
        for program, dtype, settings in problem.entries:
            if args.programs and program not in args.programs:
                continue
            for setting in settings:
                key = {"problem": name, "program": program, "dtype": dtype, "setting": setting}
                key["turn"] = str(turn)
                if rows.known(args.limit, **key):
                    continue
                if version(program) is None:
                    rows.add(ABSENT, **key)
                    continue
                looser = settings[: settings.index(setting)]
                gone = [
                    row["status"]
                    for row in rows.of(problem=name, program=program, dtype=dtype)
                    if row["setting"] in looser and row["status"] != DONE
                ]
                if gone:
                    rows.add(gone[0], **key)
                    continue
                try:
                    if (program, dtype) not in workers:
                        workers[program, dtype] = Worker((name, program, dtype))
                    rows.add(
                        **key,
                        **fitted(problem, name, workers[program, dtype], setting, args.limit, seen),
                    )
                except TimeoutError:
                    del workers[program, dtype]
                    rows.add(LATE, **key)
                except RuntimeError as error:
                    workers.pop((program, dtype), None)
                    rows.add(f"failed: {error}"[:200], **key)
    for worker in workers.values():
        worker.end()


def fitted(problem, name, worker, setting, limit, seen):
    """The numbers of one fit; seen: certificates of earlier solutions."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "solution.npz")
        row = worker.fit(setting, out, limit)
        if row is None:
            raise TimeoutError
        with np.load(out) as saved:
            solution = {key: saved[key] for key in saved.files}
    digest = hashlib.sha256(b"".join(part.tobytes() for part in solution.values())).digest()
    if digest not in seen:
        X, y, lam = data_of(name)
        intercept = float(solution["intercept"]) if "intercept" in solution else None
        seen[digest] = certified(problem, lam, X, y, solution["coef"], intercept)
    return row | seen[digest]


def run_once(rows, args, words, **key):
    """The row of a fit in its own process, unless the file has it already."""
    if rows.known(args.limit, **key):
        return
    if version(key["program"]) is None:
        rows.add(ABSENT, **key)
        return
    command = [sys.executable, __file__, *sized(), "once", json.dumps(words)]
    try:
        # data are read and written before the clock starts
        done = subprocess.run(
            command, capture_output=True, text=True, env=one_thread(), timeout=args.limit + 30
        )
    except subprocess.TimeoutExpired:
        rows.add(LATE, **key)
        return
    if done.returncode:
        rows.add(f"failed: {(done.stderr.strip().splitlines() or [''])[-1]}"[:200], **key)
        return
    rows.add(**key, **json.loads(done.stdout.splitlines()[-1]))


def run_stream(rows, args):
    for turn in range(args.pairs):
        for setting, passes in STREAMS:
            name = f"{setting or 'linear'}, {passes} {'pass' if passes == 1 else 'passes'}"
            key = {"problem": "stream", "dtype": F, "turn": str(turn), "setting": name}
            run_once(rows, args, ("wabbit", setting, passes), program="Vowpal Wabbit", **key)
            for row in rows.of(program="Vowpal Wabbit", status=DONE, **key):
                run_once(rows, args, ("doubly", row["cpu"]), program="rfx", **key)


def run_tables(rows, args):
    for turn in range(args.pairs):
        for name in TABLES:
            for program in TABLE_BY:
                key = {"problem": f"table {name}", "dtype": "", "turn": str(turn), "setting": ""}
                run_once(rows, args, ("table", name, program, turn), program=program, **key)


def run(args):
    env.set_threads(1)
    rows = Rows(args.out)
    for name in args.only or (*PROBLEMS, "stream", "tables"):
        if name == "stream":
            run_stream(rows, args)
        elif name == "tables":
            run_tables(rows, args)
        else:
            run_problem(name, rows, args)


# -------------------------------------------------------------------------------------- show


def groups(rows):
    """The rows of each (program, dtype, setting), in order."""
    found = {}
    for row in rows:
        found.setdefault((row["program"], row["dtype"], row["setting"]), []).append(row)
    return found


def numbers(rows, name):
    return [float(row[name]) for row in rows]


def beside(peer, ours):
    """The rows of rfx to compare with those of a peer. Among the groups whose gap is at most the
    peer's, it is the one with the fewest processor seconds. None if there is none.
    """
    most = max(min(numbers(peer, "gap")), ROUNDING)
    fits = [rows for rows in ours if max(numbers(rows, "gap")) <= most]
    return min(fits, key=lambda rows: statistics.median(numbers(rows, "cpu")), default=None)


def times(peer, own, name="cpu"):
    """The time of a peer divided by that of `name`, within the turns that both have."""
    turns = {row["turn"]: {name: float(row[name])} for row in own}
    both = [row for row in peer if row["turn"] in turns]
    if not both:
        return "-"
    return ratios(
        [{name: float(row[name])} for row in both],
        [turns[row["turn"]] for row in both],
        name,
        ".2f",
    )


def line(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def head(*cells):
    line(*cells)
    print("|" + "---|" * len(cells))


def show_problem(name, rows):
    found = groups(rows)
    done = {key: [row for row in own if row["status"] == DONE] for key, own in found.items()}
    ours = [own for key, own in done.items() if key[0] == "rfx" and own]
    print(f"\n{PROBLEMS[name].statement}:\n")
    counts = {"kernel": ("support vectors",), "l1": ("non-zeros",), "l2": ()}
    counts = counts[PROBLEMS[name].penalty]
    titles = ("program", "float type", "tolerance", "CPU seconds", "seconds", "times rfx")
    titles += ("objective", "relative gap", *counts)
    head(*titles)
    for key, all_rows in found.items():
        own, (program, dtype, setting) = done[key], key
        if not own:
            if all_rows[0]["status"] != ABSENT:
                line(*key, all_rows[0]["status"], *[""] * (len(titles) - 4))
            continue
        other = beside(own, ours)
        ratio = "" if program == "rfx" else times(own, other) if other else "no such gap of rfx"
        line(
            *(program, dtype, setting or "-"),
            *(spread(numbers(own, kind)) for kind in ("cpu", "seconds")),
            *(ratio, f"{float(own[0]['objective']):.6g}"),
            *(f"{max(numbers(own, 'gap')):.1e}", *(own[0]["nonzeros"] for _ in counts)),
        )


def show_stream(rows):
    print(f"\nVowpal Wabbit on {STREAM}, and doubly-sgd for the same CPU seconds; test error:\n")
    head("Vowpal Wabbit with", "CPU seconds", "its error", "error of rfx")
    for (program, _, setting), own in groups(rows).items():
        if program != "Vowpal Wabbit" or own[0]["status"] == ABSENT:
            continue
        done = [row for row in own if row["status"] == DONE]
        # Sphinx would take a -- in the document for an option of rfx
        told = setting.replace("--", "")
        if not done:
            line(told, own[0]["status"], "", "")
            continue
        ours = [row for row in rows if row["program"] == "rfx" and row["setting"] == setting]
        line(
            *(told, spread(numbers(done, "cpu"))),
            *(spread(numbers(part, "error"), ".4f") if part else "-" for part in (done, ours)),
        )


def show_tables(rows):
    print("\nDefaults on tables, at most 4,000 rows, one split a turn:\n")
    head("data", "program", "error", "times that of rfx", "CPU seconds", "times rfx")
    for name in TABLES:
        found = groups([row for row in rows if row["problem"] == f"table {name}"])
        ours = [row for row in found.get(("rfx", "", ""), []) if row["status"] == DONE]
        for (program, _, _), own in found.items():
            done = [row for row in own if row["status"] == DONE]
            if not done:
                if own[0]["status"] != ABSENT:
                    line(name, program, own[0]["status"], "", "", "")
                continue
            other = program != "rfx"
            line(
                *(name, program, spread(numbers(done, "error"), ".4f")),
                times(done, ours, "error") if other else "",
                spread(numbers(done, "cpu")),
                times(done, ours) if other else "",
            )


def show(args):
    rows = read(args.file)
    loads, first = numbers(rows, "load"), rows[0]
    packages = {PROGRAMS[row["program"]].package: row["version"] for row in rows if row["version"]}
    absent = sorted({row["program"] for row in rows if row["status"] == ABSENT})
    print(
        f"{first['machine']}, one thread a program, load {min(loads):.1f} to {max(loads):.1f};"
        f" commit {first['commit'][:7]}, {' to '.join(sorted({row['date'] for row in rows}))}."
        f" Versions: {', '.join(f'{name} {packages[name]}' for name in sorted(packages))}."
    )
    if absent:
        print(f"Not installed: {', '.join(absent)}.")
    for name in PROBLEMS:
        own = [row for row in rows if row["problem"] == name]
        if own:
            show_problem(name, own)
    stream = [row for row in rows if row["problem"] == "stream"]
    if stream:
        show_stream(stream)
    if any(row["problem"].startswith("table ") for row in rows):
        show_tables(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, help="number of rows, except for exact kernels")
    parser.add_argument("--width", type=int, help="number of random features")
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("run")
    own.add_argument("--out", required=True)
    own.add_argument("--only", nargs="+", choices=(*PROBLEMS, "stream", "tables"))
    own.add_argument("--programs", nargs="+", choices=PROGRAMS)
    own.add_argument("--limit", type=float, default=120, help="seconds of a fit")
    add_pairs(own, 3)
    own = commands.add_parser("show")
    own.add_argument("file")
    for name in ("work", "once"):
        commands.add_parser(name).add_argument("words", type=json.loads)
    args = parser.parse_args()
    SIZE[:] = args.rows, args.width
    if args.command == "work":
        work(*args.words)
    elif args.command == "once":
        once(*args.words)
    else:
        {"run": run, "show": show}[args.command](args)


if __name__ == "__main__":
    main()
