"""L1 problems over features without end: Algorithm 1 of Yen et al. (2014), and boosting."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rfx import parallel
from rfx.compiled import njit
from rfx.counters import uniforms
from rfx.features import MAPS, FeatureMap, sample
from rfx.losses import SmoothLoss
from rfx.operators.coded import LARGEST, CodedColumns, GramOfCodes
from rfx.operators.mapped import hold_part
from rfx.operators.matrix import DenseMatrix, Matrix
from rfx.operators.scaled import ScaledRows
from rfx.operators.sparse import SignColumns
from rfx.parallel import Late, until
from rfx.solvers.base import (
    Budget,
    Callback,
    Filled,
    Recorder,
    Solution,
    checked,
)
from rfx.solvers.l1.newton import (
    GramCache,
    best_dual,
    columns_held,
    filled,
    l1_certificate,
    solve_l1,
)
from rfx.types import KernelParams

# ----------------------------------------------------------------------
# Algorithm 1 of Yen et al. (2014): L1-regularised random features as coordinate descent in a
# Hilbert space.

# (Z, y, lam, loss, budget, warm) -> Solution, over the given columns
Solve: TypeAlias = "Callable[[Matrix, np.ndarray, float, SmoothLoss, Budget, np.ndarray], Solution]"
# Relative duality gap of all rounds except the last.
EARLY_TOL = 1e-2
# Fraction of the memory for a round's features; Gram matrices use up to half of it.
_HELD = 0.5
# MiB of a round's features from which codes take less time and memory.
_WORTH_MB = 1024
# Rows for each column of the first round from which Gram matrices of codes are computed. On 464,810
# rows of covtype with 1,000 columns, the solution takes .80 of the time with half of the rows.
_GRAM_ROWS = 200
# The fraction of lambda by which codes may change a gradient. Its effect on the dual value is
# quadratic, and the last round corrects the rest.
_GRADIENT = 0.2


def solve_rounds(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    warm: np.ndarray | None = None,
    callback: Callback | None = None,
    *,
    rounds: int = 10,
    solve: Solve | None = None,
) -> Solution:
    """Minimise lam ||w||_1 + sum L(w.phi(x), y) (eq. 9) over D features, in parts.

    Each of `rounds` rounds adds the next D/rounds features to the working set, minimises over it
    from the previous weights, and permanently drops the features with weight zero.

    Z: (N, D) features, of which those of a round are stored in memory: as codes if they need more
    than a GiB, or as many of their rows as fit. y: (N,). budget: that of `solve_l1` for each round;
    only the last one needs its tol, the others have at least EARLY_TOL. warm: (D,) weights; the
    first working set includes features with nonzero weight. solve(Z, y, lam, loss, budget, warm) ->
    Solution minimises over the given columns, `solve_l1` by default.

    Returns coef (D,). Objective and gap are those of all D features, including dropped ones: the
    gap bounds the effect of dropping on the solution of equation 9, and usually far exceeds the
    tolerance. The status is that of the last round, whose own gap is in the trace. Each entry of
    the trace is a round: `iteration`, `features` (seen), `working_set` (its size), `nnz`,
    `objective`, `gap`. After the deadline no round is started, and if there is no time to compute
    the gap, it equals the objective.
    """
    n_features = Z.shape[1]
    record = Recorder(callback)
    gram = GramCache()
    last = filled(budget)
    # a solver with its own tolerances is not told how to correct codes
    may_code = solve is None and _codes_suffice(Z, y, lam, loss)
    features = RoundFeatures(Z, last.memory_mb, gram, may_code)
    solve = partial(solve_l1, gram=gram) if solve is None else solve
    early = replace(last, tol=max(last.tol, EARLY_TOL))
    rounds = min(rounds, n_features)  # at least one feature per round
    bounds = [n_features * t // rounds for t in range(rounds + 1)]
    coef = np.zeros(n_features) if warm is None else np.array(warm, dtype=np.float64)
    iterations, solution = 0, None
    for turn, (first, stop) in enumerate(zip(bounds, bounds[1:]), start=1):
        if turn > 1 and last.late():
            break
        active = np.flatnonzero(coef)
        try:
            with until(last.deadline):
                features.take(active, np.setdiff1d(np.arange(first, stop), active))
        except Late:
            pass  # the solver also ends at once, at the given weights
        columns, goal = features.columns, early
        if stop == n_features:
            # half of the tolerance is reserved for the error of codes
            goal = replace(last, tol=last.tol / 2) if features.coded else last
        solution = solve(features.matrix, y, lam, loss, goal, coef[columns])
        coef[columns] = solution.coef
        iterations += solution.n_iter
        sizes = {"working_set": len(columns), "nnz": np.count_nonzero(solution.coef)}
        reached = {"objective": solution.objective, "gap": solution.gap}
        record(coef.copy, iteration=turn, features=stop, **sizes, **reached)
    assert solution is not None  # there is a round
    found = replace(solution, coef=coef, n_iter=iterations, trace=record.trace)
    if len(columns) == n_features and not features.coded:
        return found
    try:
        with until(last.deadline):
            if features.coded:
                found = _corrected(Z, y, lam, loss, found, features, last)
            decision = None if features.coded else features.matrix.matvec(coef[columns])
            return _certified(Z, y, lam, loss, found, columns, decision)
    except Late:
        # no loss is negative, so that zero bounds the minimum over all features
        return replace(found, gap=solution.objective, status="timeout")


def _codes_suffice(Z: Matrix, y: np.ndarray, lam: float, loss: SmoothLoss) -> bool:
    """Whether codes of the features change no gradient by more than a fraction of lambda.

    The derivatives u of the losses have sum u^2 <= 4 times the losses at zero, so an error e in
    every entry of a column changes its gradient by at most 2 e sqrt(that sum).
    """
    if Z.bound is None or not Z.rows_here or Z.exact:
        return False
    at_zero = float(loss.value(np.zeros_like(y), y).sum())
    return Z.bound / LARGEST * 2 * math.sqrt(at_zero) <= _GRADIENT * lam


def _certified(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    found: Solution,
    columns: np.ndarray,
    decision: np.ndarray | None = None,
) -> Solution:
    """The solution with objective and gap over all features; the last entry of its trace has those
    over the columns of the last round.
    """
    decision = Z.matvec(found.coef) if decision is None else decision
    objective, gap, gradient = l1_certificate(Z, y, found.coef, lam, loss, decision)
    derivative = loss.derivative(decision, y)
    own = objective - best_dual(loss, derivative, y, lam, gradient[columns])[0]
    found.trace[-1].update(objective=objective, gap=max(0.0, own))
    return replace(found, objective=objective, gap=gap)


def _corrected(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    found: Solution,
    features: RoundFeatures,
    budget: Filled,
) -> Solution:
    """The solution on codes of the last round, corrected by steps on the features themselves if
    codes are too coarse for the tolerance.
    """
    if found.status not in ("converged", "stalled"):
        return found
    columns = features.columns
    coef = found.coef.copy()
    exact = GramOfCodes(features.matrix, Z.columns(columns))
    solution = solve_l1(exact, y, lam, loss, budget, coef[columns], gram=features.gram)
    coef[columns] = solution.coef
    found.trace[-1]["nnz"] = np.count_nonzero(coef)
    iterations = found.n_iter + solution.n_iter
    return replace(found, coef=coef, n_iter=iterations, status=solution.status)


class RoundFeatures:
    """The features of successive rounds of Algorithm 1.

    Parameters
    ----------
    Z : Matrix, (N, D)
        All features.
    memory_mb : float
    gram : GramCache
        The Gram matrix of the columns, which follows them from round to round.
    may_code : bool
        Whether codes are accurate enough. It becomes false once they do not fit into memory.

    Attributes
    ----------
    columns : array, (k,)
        The columns of the round.
    matrix : Matrix, (N, k)
        Their features.
    """

    def __init__(self, Z: Matrix, memory_mb: float, gram: GramCache, may_code: bool) -> None:
        self.Z = Z
        self.memory_mb = memory_mb
        self.gram = gram
        self.may_code = may_code
        self.columns = np.empty(0, np.int64)
        self.matrix = Z

    @property
    def coded(self) -> bool:
        """Whether the features are codes."""
        return isinstance(self.matrix, CodedColumns)

    def take(self, active: np.ndarray, new: np.ndarray) -> None:
        """Keep the columns `active`, drop the others, and add those of `new`."""
        kept = np.flatnonzero(np.isin(self.columns, active))
        further = np.union1d(new, np.setdiff1d(active, self.columns))
        if isinstance(self.matrix, CodedColumns):
            if len(kept) + len(further) <= self.matrix.capacity:
                self.gram.restrict(kept)
                self._code(self.matrix, kept, further)
                return
            self.may_code = False
        self.gram.keep(kept)
        self.columns = np.concatenate([self.columns[kept], further])
        self.matrix = self.Z.columns(self.columns)
        capacity = min(self.Z.shape[1], int(_HELD * self.memory_mb * 2**20 // self.Z.shape[0]))
        worth = self.matrix.size_mb > min(_HELD * self.memory_mb, _WORTH_MB)
        bound = self.Z.bound if self.may_code and len(self.columns) <= capacity else None
        if worth and bound is not None:
            gram_rows = _GRAM_ROWS * len(self.columns)
            codes = CodedColumns(self.Z.shape[0], capacity, bound, self.Z.dtype, gram_rows)
            self._code(codes, np.empty(0, np.int64), self.columns)
        else:
            self.matrix = self._stored(self.matrix, len(kept))

    def _code(self, codes: CodedColumns, kept: np.ndarray, new: np.ndarray) -> None:
        """Store new columns as codes, beside those kept."""
        places = codes.replace(kept, self.Z.columns(new))
        columns = np.zeros(codes.shape[1], np.int64)
        columns[: len(self.columns)] = self.columns[: codes.shape[1]]
        columns[places] = new
        self.columns = columns
        self.matrix = codes

    def _stored(self, part: Matrix, n_used: int) -> Matrix:
        """The columns of a round in memory if they fit; else as many of their rows as fit, unless
        the solver holds twice the `n_used` columns with nonzero weight itself.
        """
        stored = part.hold(_HELD * self.memory_mb)
        few = 2 * n_used <= columns_held(part, self.memory_mb)
        return stored if few or not stored.computed else hold_part(part, _HELD * self.memory_mb)


def in_parts(solve: Callable[..., Solution]) -> Solve:
    """Wrap a solver without its own working set to use a part of the columns at a time: solve(Z, y,
    lam, loss, budget, warm).

    solve(part, y, lam, loss, budget) receives the columns in use and those whose gradient exceeds
    lam; then those that exceed it at the solution as well, until no excluded column violates more
    than the included ones; and all columns if it gives up on a part. Objective and gap are over all
    columns.
    """

    def over_all(
        Z: Matrix, y: np.ndarray, lam: float, loss: SmoothLoss, budget: Budget, warm: np.ndarray
    ) -> Solution:
        coef = np.array(warm, dtype=np.float64)
        n_iter = 0
        status = "converged"
        objective, gap, gradient = l1_certificate(Z, y, coef, lam, loss)
        chosen = (coef != 0) | (np.abs(gradient) > lam)
        more = chosen.any()
        while more:
            solution = solve(Z.columns(np.flatnonzero(chosen)), y, lam, loss, budget)
            coef[chosen] = solution.coef
            n_iter = n_iter + solution.n_iter
            status = solution.status
            objective, gap, gradient = l1_certificate(Z, y, coef, lam, loss)
            violation = np.abs(gradient)
            more = not chosen.all() and (
                status != "converged"
                or np.any(violation[~chosen] > max(lam, violation[chosen].max()))
            )
            chosen |= violation > (lam if status == "converged" else -1.0)
        return Solution(coef, objective, gap, n_iter, status)

    return over_all


# ----------------------------------------------------------------------
# Fully corrective boosting: greedy coordinate descent on the L1 problem over all features of a kind
# (Yen et al. 2014, section 3.3), and the searches by which it finds a feature per step.
#
# The greedy step (eq. 24) needs the stump or the perceptron h that minimises sum_n u_n h(x_n), u_n
# = L'(f_n, y_n). Stumps are searched exactly. The perceptron with the lowest weighted error is
# intractable; like the paper, we use a convex surrogate: the linear function that minimises sum_n
# |u_n| l(s_n (theta.x_n + b)) over the pseudo-labels s_n = -sign(u_n); its sign is the perceptron.
# The paper does not specify l.

# Relative gap of a corrective step, and its minimum if a new feature has a smaller effect.
TOL, LEAST_TOL = 1e-5, 1e-9
# Consecutive steps that rounding keeps from the tolerance, and that reduce the objective by less
# than that, after which it has stalled.
IDLE = 10
# Ridge relative to the mean weight, so that separable rows have a minimum; relative decrease below
# which a step is the last.
_RIDGE = 1e-6
_TOL = 1e-5
_STEPS = 30
# A stream from which no map draws its own numbers.
HALVES = 32
# Thresholds this many times farther than the farthest training row define constants.
FARTHEST = 4.0


def solve_boosting(
    learner: Learner,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Budget = Budget(),
    callback: Callback | None = None,
    *,
    n_features: int = 1000,
    factors: np.ndarray | None = None,
) -> Solution:
    """Minimise lam ||w||_1 + sum_n L(sum_h w_h phi_h(x_n), y_n) (eq. 9) over features +-1 that are
    found step by step.

    learner.find(u) -> (signs, largest): signs (N, k) of the features found by the greedy step (24)
    for u = L'(f, y) (N,); largest is the largest |sum_n u_n phi_h(x_n)| over all features, None if
    the search can't determine it. learner.keep(which) adds some of them. After each step the
    weights of all features found so far are optimised, starting from the previous weights. Ends
    when no new feature has |sum_n u_n phi_h(x_n)| > lam, with n_features of them, or, if `largest`
    is known, when the gap over all features meets the tolerance.

    factors: (N,) by which the rows of the features are multiplied, for weighted least squares; y
    has been multiplied by them.

    y: (N,). budget: tol is the relative gap of a step (1e-5), max_iter and memory_mb are those of
    `solve_l1` for a step. The Solution's coef is (D,), the features in the order in which they were
    added, n_iter the steps. Its gap is over all features if `largest` is known, else over those
    found. The trace has an entry per step, and one before the first: `iteration`, `features`,
    `nnz`, `objective`, `gap` (over those found), `greedy` (the largest |sum_n u_n phi_h(x_n)| of a
    feature of the step). The status is that of the last step. Raises UsageError like
    `checked`.
    """
    Z = SignColumns(len(y))
    record = Recorder(callback)
    gram = GramCache()
    seen = set[bytes]()
    factors = np.ones(len(y)) if factors is None else factors
    y = checked(y, loss)
    limits = filled(replace(budget, tol=TOL if budget.tol is None else budget.tol))
    coef = np.zeros(0)
    decision = np.zeros(len(y))
    status = "converged"
    bound = -np.inf
    objective = float(loss.value(decision, y).sum())
    gap = 0.0
    turn = 0
    record(coef.copy, iteration=0, features=0, nnz=0, objective=objective, gap=gap)
    idle = 0
    while status == "converged" or (status == "stalled" and idle < IDLE):
        u = loss.derivative(decision, y)
        signs, largest = learner.find(u * factors)
        if largest is not None:
            bound = max(bound, best_dual(loss, u, y, lam, np.array([largest]))[0])
        sums = np.abs((u * factors) @ signs)
        new = [k for k in np.flatnonzero(sums > lam) if _is_new(signs[:, k], seen)][
            : n_features - len(coef)
        ]
        if not new or objective - bound <= limits.tol * objective:
            break
        if limits.late():
            status = "timeout"
            break
        learner.keep(new)
        Z.append(signs[:, new])
        own = Z if np.all(factors == 1) else ScaledRows(Z, factors)
        solution = _correct(
            own, y, lam, loss, limits, np.append(coef, np.zeros(len(new))), gram, objective
        )
        # a tolerance below the rounding ends a step, not the search: the next feature may help
        idle = 0 if solution.objective < objective * (1 - limits.tol) else idle + 1
        coef = solution.coef
        objective = solution.objective
        status = solution.status
        assert solution.gap is not None  # `solve_l1` certifies its answer
        decision = own.matvec(coef)
        gap = solution.gap
        turn = turn + 1
        entry = {
            "iteration": turn,
            "features": len(coef),
            "nnz": int(np.count_nonzero(coef)),
            "objective": objective,
            "gap": gap,
        }
        record(coef.copy, **entry, greedy=float(sums.max()))
    if np.isfinite(bound):
        gap = max(0.0, objective - bound)
    return Solution(coef, objective, gap, turn, status, record.trace)


def _correct(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: SmoothLoss,
    budget: Filled,
    coef: np.ndarray,
    gram: GramCache,
    before: float,
) -> Solution:
    """The minimiser over the features found, more exact than the budget if that would hide the
    effect of the new ones.
    """
    while True:
        solution = solve_l1(Z, y, lam, loss, budget, coef, gram=gram)
        if solution.objective < before or solution.status != "converged" or budget.tol <= LEAST_TOL:
            return solution
        budget = replace(budget, tol=0.1 * budget.tol)
        coef = solution.coef


def _is_new(signs: np.ndarray, seen: set[bytes]) -> bool:
    """Whether a feature and its negative are new; they are recorded as seen."""
    name = hashlib.blake2b(np.packbits(signs == signs[0]).tobytes(), digest_size=16).digest()
    new = name not in seen
    seen.add(name)
    return new


# ---------------------------------------------------------------------- searches


class Learner(ABC):
    """The features found for one output, among the random features of a kernel; params: that
    kernel's.

    X: (n, d) scaled rows in the type of the features.
    """

    kernel = ""

    def __init__(self, X: np.ndarray, params: KernelParams) -> None:
        self.X = X
        self.params = params
        self._last: Any = None
        one = sample(self.kernel, X.shape[1], 1, 0, dtype=X.dtype, **params)
        self.found = one.select(slice(0))

    def _map(self, **arrays: np.ndarray) -> FeatureMap:
        return MAPS[self.kernel](self.kernel, self.X.shape[1], self.params, arrays)

    def _signs(self, features: FeatureMap) -> np.ndarray:
        """(n, k) int8 values of the features just found."""
        self._last = features
        return np.where(features.transform(self.X) > 0, 1, -1).astype(np.int8)

    @abstractmethod
    def find(self, u: np.ndarray) -> tuple[np.ndarray, float | None]:
        """(signs (n, k) int8 of the features of this step, the largest |sum_n u_n phi(x_n)| of all
        features, None if unknown).
        """

    def keep(self, which: Sequence[int | np.integer[Any]]) -> None:
        """Add these features, given by their numbers among the last found."""
        new = self._last.select(np.asarray(which))
        self.found = self._map(
            **{
                name: np.concatenate([values, new.arrays[name]], axis=-1)
                for name, values in self.found.arrays.items()
            }
        )


class Perceptrons(Learner):
    """sign(theta.x - a) with |theta| = 1, fitted to pseudo-labels with a weighted loss (see
    `fit_linear`).

    The first feature of a step is fitted to all rows; further ones, if `count` exceeds one, to
    random halves of the rows, by seed. exact: the threshold is the best for the fitted direction,
    else the fit's own.
    """

    kernel = "perceptron"

    def __init__(
        self,
        X: np.ndarray,
        params: KernelParams,
        loss: SmoothLoss,
        exact: bool,
        count: int,
        seed: int,
    ) -> None:
        super().__init__(X, params)
        self.loss = loss
        self.exact = exact
        self.count = count
        self.seed = seed
        self._halves = 0

    def find(self, u: np.ndarray) -> tuple[np.ndarray, None]:
        """(signs (n, k) int8, None): the features of this step."""
        found = [self._fitted(u, u)]
        for _ in range(self.count - 1):
            half = uniforms(self.seed, HALVES, self._halves, self._halves + 1, len(u))[0] < 0.5
            found.append(self._fitted(u * half, u))
            self._halves += 1
        directions = np.array([theta for theta, _ in found]).T
        thresholds = np.array([a for _, a in found])
        arrays = {"directions": directions, "thresholds": thresholds, "scales": np.ones(len(found))}
        return self._signs(
            self._map(
                **{name: np.ascontiguousarray(part, self.X.dtype) for name, part in arrays.items()}
            )
        ), None

    def _fitted(self, part: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
        """(direction of length 1, threshold) of the classifier of `part` of u; a constant if no row
        can be on the other side.
        """
        theta, b = fit_linear(self.X, part, self.loss)
        size = float(np.linalg.norm(theta))
        far = FARTHEST * self.params["radius"]
        if size and self.exact:
            theta = theta / size
            along = self.X @ theta.astype(self.X.dtype)
            return theta, StumpSearch(along[:, None]).best(u)[0][0]
        if abs(b) < far * size:
            return theta / size, -b / size
        return np.eye(len(theta))[0], -far


class Stumps(Learner):
    """sign(x_j - a): the best feature of each input, and of these the `count` best."""

    kernel = "stump"

    def __init__(self, X: np.ndarray, params: KernelParams, count: int) -> None:
        super().__init__(X, params)
        self.search = StumpSearch(X)
        self.count = count

    def find(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """(signs (n, k) int8, the largest |sum_n u_n phi(x_n)| over all stumps)."""
        thresholds, sums = self.search.best(u)
        best = np.argsort(-np.abs(sums), kind="stable")[: self.count]
        return self._signs(self._map(thresholds=thresholds[best], columns=best)), float(
            np.abs(sums).max()
        )


class StumpSearch:
    """All stumps sign(x_j - a) that distinguish the rows of X (n, d), and the constant one.

    X: float32 or float64, without nan. The order of every column is computed once.
    """

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.order = np.empty(X.shape[::-1], np.int32 if len(X) < 2**31 else np.int64)
        parallel.for_ranges(self._sort, X.shape[1])

    def _sort(self, start: int, stop: int) -> None:
        for j in range(start, stop):
            self.order[j] = np.argsort(self.X[:, j], kind="stable")

    def best(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(thresholds (d,), sums (d,)): for each input the stump with the largest |sum_n u_n
        sign(x_nj - a)|, and that sum.

        u: (n,) float64. A stump is +1 from x_nj = a on. The threshold is halfway between two
        values, or at the smallest value for the constant stump, and has X's type.
        """
        u = np.ascontiguousarray(u, np.float64)
        low, high, sums = np.empty((3, self.X.shape[1]))

        def part(start: int, stop: int) -> None:
            for j in range(start, stop):
                low[j], high[j], sums[j] = _best(
                    np.ascontiguousarray(self.X[:, j]), self.order[j], u
                )

        parallel.for_ranges(part, len(sums))
        middle = (low + (high - low) / 2).astype(self.X.dtype)
        return np.where((middle > low) & (middle < high), middle, high).astype(self.X.dtype), sums


@njit(cache=True, nogil=True)
def _best(x: np.ndarray, order: np.ndarray, u: np.ndarray) -> tuple[float, float, float]:
    """(value below the threshold, value above it, sum) of the best stump on one input; both are the
    smallest for the constant one.
    """
    total = 0.0
    for i in range(len(u)):
        total += u[i]
    below = 0.0
    best = total
    at = -1
    for k in range(len(order) - 1):
        below += u[order[k]]
        if x[order[k]] < x[order[k + 1]] and abs(total - 2.0 * below) > abs(best):
            best = total - 2.0 * below
            at = k
    if at < 0:
        return x[order[0]], x[order[0]], best
    return x[order[at]], x[order[at + 1]], best


def fit_linear(X: np.ndarray, u: np.ndarray, loss: SmoothLoss) -> tuple[np.ndarray, float]:
    """(theta (d,), b) that minimise the mean of |u_n| l(theta.x_n + b, -sign(u_n)) plus a small
    ridge term, by Newton's method.

    X: (n, d) array. u: (n,) float64, not all zero; rows with 0 are ignored. loss: Logistic, Squared
    or SquaredHinge of rfx.losses. theta and b are zero if nothing is better.
    """
    rows = np.flatnonzero(u)
    weights = np.abs(u[rows])
    labels = -np.sign(u[rows])
    weights = weights / weights.sum()
    size = X.shape[1] + 1
    Z = DenseMatrix(X).rows(rows)
    w = np.zeros(size)
    f = np.zeros(len(rows))

    def value(w: np.ndarray, f: np.ndarray) -> float:
        return float(weights @ loss.value(f, labels)) + 0.5 * _RIDGE * float(w @ w)

    # the products are small: BLAS's own threads would take longer to synchronise than to compute
    with parallel.one_blas_thread():
        now = value(w, f)
        for _ in range(_STEPS):
            slopes = weights * loss.derivative(f, labels)
            curvatures = weights * loss.second_derivative(f, labels)
            slope = np.append(Z.rmatvec(slopes), slopes.sum())
            edge = Z.rmatvec(curvatures)
            square = Z.square(np.arange(size - 1), curvatures, np.float64)
            hessian = np.block([[square, edge[:, None]], [edge, curvatures.sum()]])
            hessian[np.diag_indices(size)] += _RIDGE
            step = -np.linalg.solve(hessian, slope + _RIDGE * w)
            decrease = -float(step @ (slope + _RIDGE * w))
            if not decrease > _TOL * now:
                break
            along = Z.matvec(step[:-1]) + step[-1]
            t = 1.0
            while (
                then := value(w + t * step, f + t * along)
            ) > now - 1e-4 * t * decrease and t > 1e-6:
                t *= 0.5
            if t <= 1e-6:
                break
            w = w + t * step
            f = f + t * along
            now = then
    return w[:-1], w[-1]
