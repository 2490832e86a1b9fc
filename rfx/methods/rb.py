"""Random binning features (Wu et al. 2016): `rb` with L2, `sparse-rb` with L1 regularisation.

lam/2 ||w||^2 + sum L(w.z(x), y) (equation 8), or lam ||w||_1 instead (section 4.2), where z is
1/sqrt(R) in one bin of each of R grids; no bias. The loss of rb is squared by default, for classes
too, as in the paper; lam is not multiplied by the number of rows. Only bins with nonzero weight are
in the model. Solver prcd is the paper's coordinate descent over single bins.

With --grow, the fraction of rows to hold out, the R of rb doubles up to --n-grids as long as that
reduces their error. The results row has the R (`n_grids`) with which the model was then fitted to
all rows, and `growth` has the error of every R tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any, ClassVar, Self

import numpy as np

from rfx import steps as told
from rfx.data.rows import room
from rfx.errors import UsageError
from rfx.features.binning import WIDTHS, BinMap, BinningMap, Bins, sample_grids
from rfx.fitting import options, weights
from rfx.fitting.held_out import Splitter
from rfx.fitting.linear import left_out_sparse
from rfx.fitting.method import ONLY_SQUARED, Fitted, TunedMethod, budget, each_output
from rfx.fitting.options import (
    AUTO,
    CHOSEN_LAM,
    CLASS_WEIGHT,
    KERNEL,
    LAM_L1,
    LIBLINEAR,
    MAX_MEMORY,
    MOST,
    ON_SAMPLE,
    PRCD,
    SOLVER,
    TOL,
    SearchSpace,
    l1_choice,
)
from rfx.fitting.problem import Cache, Clock, Problem, StepCallback, error, evaluating
from rfx.model import Array, read_fields
from rfx.operators.binned import BinnedMatrix
from rfx.options import Chosen, Option, option
from rfx.solvers.base import Budget, Callback, Solution, for_output, stack
from rfx.solvers.l1.bins import solve_prcd, solve_rb_l1
from rfx.solvers.l2 import DualSolution, solve_dual_l2, solve_dual_ridge
from rfx.solvers.published.libraries import solve_liblinear
from rfx.types import Arrays, Inputs, JsonObject

# --grow: the first number of grids; the minimum relative reduction of the held-out error for
# doubling again; the relative duality gap while R grows, sufficient to compare errors.
FIRST, GAIN, GROW_TOL = 16, 0.01, 1e-2
# Maximum grids for the validation of gamma and lambda.
TRIED = 128
# Grids if --n-grids is not given: MANY; for more rows, PAIRS pairs of a row and a grid, but at
# least FEW.
MANY = 1024
FEW = 256
PAIRS = 2**24
# MiB for the Gram matrix of the used bins: the maximum, and a minimum even if --max-memory leaves
# less.
MOST_MB, LEAST_MB = 2048.0, 64.0
N_GRIDS = Option(
    "n_grids",
    int,
    "Number R of random grids; each row falls into one bin of each grid.",
    low=1,
    high=MOST,
    default=256,
)


@dataclass(frozen=True)
class BinnedModel:
    """f(x) = the sum over grids of the weight of x's bin; a bin without training rows has weight 0.

    Parameters
    ----------
    grids : BinningMap
        The R grids that have a bin with nonzero weight.
    bins : Bins
        The bins with nonzero weight.
    coef : array, (bins, k)
    """

    grids: BinningMap
    bins: Bins
    coef: np.ndarray

    @classmethod
    def of(cls, grids: BinningMap, bins: Bins, Z: BinnedMatrix, coef: np.ndarray) -> BinnedModel:
        """The model of the bins of Z with a nonzero weight in any output, and their grids."""
        coef = np.asarray(coef) * Z.scale
        used = np.any(coef != 0, axis=1)
        bins = bins.select(used)
        chosen = np.flatnonzero(np.diff(bins.starts))
        coef = np.ascontiguousarray(coef[used])
        return cls(grids.select(chosen), bins.grids(chosen), coef)

    @property
    def map(self) -> BinMap:
        """The features of the bins with nonzero weight, each 1 for the rows in its bin."""
        return BinMap(self.grids, self.bins)

    def decision(self, X: Inputs) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        return self.grids.decision(X, self.bins, self.coef)

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        if not len(self.coef):
            return told.constant(self.grids.n_inputs, np.zeros(self.coef.shape[1]))
        return self.grids.steps(self.bins, self.coef)

    def arrays(self) -> Arrays:
        return {
            "widths": self.grids.widths,
            "offsets": self.grids.offsets,
            "keys": self.bins.keys,
            "starts": self.bins.starts,
            "coef": self.coef,
        }

    def header(self) -> JsonObject:
        return {"grids": {"kernel": self.grids.kernel, "gamma": self.grids.gamma}}

    def describe(self) -> dict[str, object]:
        gamma = self.grids.gamma
        return {
            "model_size": len(self.coef),
            "kernel_params": {"gamma": gamma, "sigma": 1 / gamma},
        }


class BinnedMethod(TunedMethod):
    """A method whose model is a `BinnedModel`.

    penalty: that of LIBLINEAR, l1 or l2. A subclass defines ``solved(Z, problem, start, limits,
    callback, clock)``, the Solution of rfx's own solvers over the features Z.
    """

    kernel: str = KERNEL(choices=tuple(WIDTHS), default="laplacian")
    tol: float | None = TOL()
    max_memory: float | None = MAX_MEMORY(help="Memory limit for features, in MiB.")
    class_weight: str | None = CLASS_WEIGHT()

    penalty: ClassVar[str] = "l2"
    evaluates_steps = True
    arrays: ClassVar[dict[str, Array]] = {
        "coef": Array("f", "bins outputs"),
        "widths": Array("f", "grids inputs"),
        "offsets": Array("f", "grids inputs"),
        "keys": Array("u", "bins"),
        "starts": Array("i", "grids+1", cuts="bins"),
    }

    def prepare(self, problem: Problem) -> None:
        self.memory_left(problem.X)

    def count(self, X: Inputs) -> int:
        """The number of grids for the rows X."""
        return self.n_grids

    def vectors(self, X: Inputs) -> int:
        # up to three numbers per width, and the offset
        return BinMap.width * self.count(X)

    def memory_left(self, X: Inputs) -> float:
        """MiB left for the bin numbers; UsageError, before any computation, if they do not fit."""
        n_rows, available = room(X)
        limit = self.max_memory or available
        # while R grows there is a copy of the training part, and one of the numbers
        copies = 3 if self.get("grow") else 1
        number = 2 if n_rows < 2**16 else 4
        # prcd also stores the rows of every bin
        of_entry = copies * number
        if self.solver == "prcd":
            of_entry += 4
        count = self.count(X)
        per_grid = of_entry * n_rows
        needed = per_grid * count / 2**20
        if needed > limit:
            most = int(limit * 2**20 / per_grid)
            raise UsageError(
                f"--n-grids is {count}; the bin numbers of {n_rows:,} rows take {needed:,.0f} MiB,"
                f" but --max-memory or the free memory is {limit:,.0f} MiB; at most {most:,} grids"
                " fit"
            )
        return limit - needed

    def grids(self, problem: Problem) -> BinningMap:
        """All grids."""
        gamma = self.kernel_params(problem.X)["gamma"]
        count = self.count(problem.X)
        return sample_grids(self.kernel, problem.n_inputs, count, self.seed, gamma=gamma)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """The model of the bins with nonzero weight, and measurements of all bins.

        Wu et al. 2016: kappa is D / R, and by eq. 10 at least the mean over grids of N over the
        rows in the fullest bin.
        """
        clock = Clock()
        grids = self.grids(problem)
        bins, Z, start, details = self.features(grids, problem, clock)
        used = grids.select(slice(0, Z.n_grids))
        callback = evaluating(problem, lambda X: used.transform(X, bins).__matmul__)
        limits = budget(problem, self)
        if self.solver == "liblinear":

            def solve(y: np.ndarray, tell: Callback | None) -> Solution:
                machine = Z, y, self.lam, problem.loss, limits, tell
                return solve_liblinear(*machine, penalty=self.penalty, seed=self.seed)

            solution = each_output(problem.Y, solve, callback)
        else:
            solution = self.solved(Z, problem, start, limits, callback, clock)
        fullest = np.maximum.reduceat(Z.squares(), Z.starts[:-1]) / Z.scale**2
        measured = {
            "n_grids": Z.n_grids,
            "n_features": Z.shape[1],
            "kappa": Z.shape[1] / Z.n_grids,
            "kappa_bound": float(np.mean(Z.shape[0] / fullest)),
        }
        model = BinnedModel.of(grids, bins, Z, solution.coef)
        out = None
        if self.penalty == "l1":
            out = left_out_sparse(Z, np.asarray(solution.coef), problem, self)
        return Fitted(model, solution, measured | details, clock.seconds, out)

    def features(
        self, grids: BinningMap, problem: Problem, clock: Clock
    ) -> tuple[Bins, Any, np.ndarray | None, dict[str, object]]:
        """(bins that contain rows, features, the solver's start or None, details of the row)."""
        return *clock.timed("features", numbered, problem.X, grids), None, {}

    def restore(self, header: JsonObject, arrays: Arrays) -> BinnedModel:
        saved = read_fields(_SavedBins, arrays)
        drawn = read_fields(_SavedGrids, header["grids"])
        grids = BinningMap(drawn.kernel, drawn.gamma, saved.widths, saved.offsets)
        return BinnedModel(grids, read_fields(Bins, arrays), saved.coef)


@dataclass(frozen=True)
class _SavedGrids:
    """The entries of a model file's header about its grids."""

    kernel: str
    gamma: float


@dataclass(frozen=True)
class _SavedBins:
    """The arrays of a model file, apart from those of its bins."""

    widths: np.ndarray
    offsets: np.ndarray
    coef: np.ndarray


@singledispatch
def numbered(X: Inputs, grids: BinningMap) -> tuple[Bins, Any]:
    """The bins that contain the rows of X, and the features."""
    ids, bins = grids.number(X)
    return bins, BinnedMatrix(ids, bins.starts)


class RB(BinnedMethod):
    """Random binning features with L2 regularisation."""

    name = "rb"
    summary = (
        "random binning features with L2 regularisation: approximates the Laplacian kernel machine"
    )
    default_losses = ONLY_SQUARED
    # the wider the kernel, the more grids are needed for the same accuracy
    space = SearchSpace({"gamma": options.GAMMA_FACTORS, "lam": options.LAMS}, slack=0.01)
    distributed = True
    n_grids: int | None = N_GRIDS(
        default=None,
        help=(
            f"{N_GRIDS.help} By default {MANY}; fewer above {PAIRS // MANY} rows, and {FEW}"
            f" from {PAIRS // FEW} rows."
        ),
    )
    lam: float | Chosen = CHOSEN_LAM()
    grow: float | None = option(
        None,
        "Fraction of the training rows to hold out. R doubles from 16 up to --n-grids as long as"
        " that reduces their error by at least 1 %; the model is then fitted to all rows.",
        above=0,
        most=0.5,
    )
    solver: str | None = SOLVER.adding(LIBLINEAR)(default=None)

    def count(self, X: Inputs) -> int:
        if self.n_grids:
            return self.n_grids
        return min(MANY, max(FEW, PAIRS // X.shape[0]))

    def features(self, grids, problem, clock):
        if self.grow is None:
            return super().features(grids, problem, clock)
        return _grown(grids, problem, self, clock)

    def solved(self, Z, problem, start, limits, callback, clock):
        return _dual(Z, problem, self.lam, start, limits, callback)

    def trial(self) -> Self:
        # more grids estimate the same kernel better, at the same cost per grid
        n_grids = min(self.n_grids or TRIED, TRIED)
        return super().trial().updated(grow=None, n_grids=n_grids)

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Inputs, cache: Cache
    ) -> Iterator[np.ndarray]:
        # all lambdas over the same grids, each started at the previous solution
        grids = self.grids(problem)
        limits = budget(problem, self)
        bins, Z = numbered(problem.X, grids)
        dual = None
        for lam in lams:
            solution = _dual(Z, problem, lam, dual, limits)
            dual = solution.dual
            model = BinnedModel.of(grids, bins, Z, solution.coef)
            yield model.decision(X_out)


def _dual(
    Z: Inputs,
    problem: Problem,
    lam: float,
    start: np.ndarray | None,
    limits: Budget,
    callback: StepCallback | None = None,
) -> DualSolution:
    """coef (D, k) and dual (n, k) of the problem's rows; start: a dual of fewer grids."""
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if loss.name == "squared":
        return solve_dual_ridge(Z, Y, lam, limits, start, callback)
    outputs: list[Any] = []
    for k in range(Y.shape[1]):
        first = None if start is None else start[:, k]
        tell = for_output(callback, k)
        solution = solve_dual_l2(Z, Y[:, k], lam, loss, limits, first, tell)
        outputs.append(solution)
    dual = None
    if Z.rows_here:
        dual = np.stack([one.dual for one in outputs], axis=1)
    return DualSolution(**vars(stack(outputs)), dual=dual)


def _grown(
    grids: BinningMap, problem: Problem, method: RB, clock: Clock
) -> tuple[Bins, BinnedMatrix, np.ndarray, dict[str, object]]:
    """(bins, features, initial dual, error by R) with the number of grids determined by held-out
    rows.

    Every Z Z' estimates the same kernel, so the dual of R grids is a starting point for 2R, and
    zero is one for the held-out rows.
    """
    share = method.grow or 0.0
    count = problem.n_rows
    splitter = Splitter(count, method.seed, problem.constraint)
    kept, out = splitter.part(share, f"--grow is {share:g}")
    Y_out = problem.Y[out]
    weights_out = weights.part(problem.weights, out)
    weights_kept = weights.part(problem.weights, kept)
    fitted = replace(problem, X=None, Y=problem.Y[kept], weights=weights_kept)
    lam = method.lam * len(kept) / count
    limits = budget(problem, method)
    limits = replace(limits, tol=max(GROW_TOL, limits.tol or 0.0))
    ids = np.empty((0, count), np.uint16)
    bins = Bins(np.empty(0, np.uint64), np.zeros(1, np.int64))
    dual = None
    best = np.inf
    growth: list[list[float]] = []
    size = min(FIRST, grids.n_grids)
    while True:
        more = grids.select(slice(len(ids), size))
        new, numbers = clock.timed("features", numbered, problem.X, more)
        ids = np.concatenate([ids, numbers.ids]) if len(ids) else numbers.ids
        starts = np.concatenate([bins.starts, bins.starts[-1] + new.starts[1:]])
        all_keys = np.concatenate([bins.keys, new.keys])
        bins = Bins(all_keys, starts)
        Z = BinnedMatrix(np.ascontiguousarray(ids[:, kept]), bins.starts)
        solution = _dual(Z, fitted, lam, dual, limits)
        dual = solution.dual
        decision = BinnedMatrix(ids[:, out], bins.starts).matvec(solution.coef)
        found = error(problem.task, decision, Y_out, weights_out)
        growth.append([size, found])
        enough = found > (1 - GAIN) * best
        if found < best:
            best = found
            chosen = size
            start = np.zeros_like(problem.Y)
            start[kept] = dual
        if enough or size == grids.n_grids:
            break
        size = min(2 * size, grids.n_grids)
    n_bins = bins.starts[chosen]
    bins = Bins(bins.keys[:n_bins], bins.starts[: chosen + 1])
    Z = BinnedMatrix(ids[:chosen], bins.starts)
    return bins, Z, start, {"growth": growth}


class SparseRB(BinnedMethod):
    """Random binning features with L1 regularisation."""

    name = "sparse-rb"
    summary = "random binning features with L1 regularisation: a small model"
    penalty, leaves_out = "l1", True
    space = SearchSpace(
        {"gamma": options.GAMMA_FACTORS, "lam": options.L1_LAMS_OF_BINS}, slack=0.01, l1=True
    )
    n_grids: int = N_GRIDS()
    lam: float | Chosen = LAM_L1(
        choices=l1_choice(options.L1_LAMS_OF_BINS) | ON_SAMPLE, default=AUTO
    )
    solver: str = SOLVER.adding(PRCD, LIBLINEAR)()

    def solved(self, Z, problem, start, limits, callback, clock):
        if self.solver == "prcd":
            columns = clock.timed("features", Z.by_columns)
            solve: Any = partial(solve_prcd, seed=self.seed)
            Y, loss = problem.Y, problem.loss
        else:
            left = self.memory_left(problem.X)
            limits = replace(limits, memory_mb=min(MOST_MB, max(LEAST_MB, left)))
            columns, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
            solve = solve_rb_l1
        return each_output(
            Y,
            lambda y, tell: solve(columns, y, self.lam, loss, limits, callback=tell),
            callback,
        )
