"""Parallel randomised coordinate descent over single columns (Wu et al. 2016, Algorithm 2), for its Figure 6: bins or Fourier features.

Every thread takes columns of a random order and steps w_j <- S(w_j - g_j / M_j, lam / M_j), M_j = beta ||z_j||^2 with beta the
loss's curvature bound (eq. 26 with erratum Wu 5 of docs/papers.md). Threads read and write the predictions without locks, as the paper has
it; an addition that is lost stays so until the end of the pass, when the predictions are computed anew. Steps of several
threads at a time may together be too long where columns are alike: a pass that did not decrease the objective is taken back
and made by one thread. With one thread the result depends on the seed alone, with several it does not repeat to the last digits.
"""

import time

import numpy as np
from numba import njit

from rfx import parallel
from rfx.errors import UsageError
from rfx.operators.binned import BinnedFeatures
from rfx.operators.blocks import default_memory_mb, size_mb
from rfx.operators.cg import check_problem, late
from rfx.operators.columns import DenseDesign, as_design
from rfx.solvers.base import Budget, Certificate, Solution
from rfx.solvers.l1.dual import best_dual

_KINDS = {"squared": 0, "squared_hinge": 1, "logistic": 2}
# Passes from one certificate to the next: it costs about as much as a pass.
_CERTIFIED = 10
# Relative increase of the objective that is rounding.
_ROUNDING = 1e-12


def solve_prcd(Z, y, lam, loss, *, coef0=None, tol=1e-4, max_iter=1000, seed=0, deadline=None) -> Solution:
    """The minimiser of lam ||w||_1 + sum L(z.w, y) for one output.

    Z: BinnedFeatures, row blocks (`rfx.operators.blocks`) or what `as_columns` made of them, (N, D). y: (N,) targets, or labels in
    {-1, +1}. loss: Squared, SquaredHinge or Logistic. coef0: (D,) starting point. tol: relative duality gap. max_iter: passes over
    all columns (n_iter counts them). seed: of the order of the columns.

    The trace has an entry a pass: `iteration`, `objective`, `nnz`, `seconds` (of the passes, without certificates), `alone`
    (passes made anew by one thread) and, at every tenth pass and the last, `gap`. Raises UsageError for another loss, a lam that is
    not positive, targets that are not one for each row.
    """
    if loss.name not in _KINDS:
        raise UsageError(f"--solver prcd has no {loss.name} loss; choose squared, squared_hinge or logistic")
    columns = as_columns(Z)
    check_problem(columns, y, lam)
    y = np.asarray(y, dtype=np.float64)
    w = np.zeros(columns.shape[1]) if coef0 is None else np.array(coef0, dtype=np.float64)
    design, bounds = columns.design, loss.curvature * columns.squares()
    random = np.random.Generator(np.random.Philox(seed))

    def evaluate(w):
        f = design.predict(w)
        return f, lam * float(np.abs(w).sum()) + float(loss.value(f, y).sum())

    f, objective = evaluate(w)
    n_iter, alone, seconds, bound, trace = 0, 0, 0.0, -np.inf, []
    while True:
        trace.append({"iteration": n_iter, "objective": objective, "nnz": int(np.count_nonzero(w)), "seconds": seconds, "alone": alone})
        stopped = n_iter >= max_iter or late(deadline)
        if stopped or n_iter % _CERTIFIED == 0:
            u = loss.derivative(f, y)
            bound = max(bound, best_dual(loss, u, y, lam, design.gradient(u))[0])
            gap = trace[-1]["gap"] = max(0.0, objective - bound)
            if stopped or gap <= tol * objective:
                status = Budget(max_iter=max_iter, deadline=deadline).status(gap <= tol * objective, n_iter)
                return Solution(w, objective, Certificate("gap", gap), n_iter, status, trace)
        start = time.perf_counter()
        order = random.permutation(len(w))
        for threads in (None, 1):
            after, f_after = w.copy(), f.copy()
            columns.make(order, after, f_after, y, bounds, lam, _KINDS[loss.name], threads)
            f_after, value = evaluate(after)
            if value <= objective * (1 + _ROUNDING):
                break
            alone += threads is None
        w, f, objective = after, f_after, value
        seconds += time.perf_counter() - start
        n_iter += 1


def as_columns(Z, max_memory_mb=None):
    """BinnedFeatures or row blocks by columns, for several calls of `solve_prcd`.

    Features of row blocks are kept up to max_memory_mb (default: a quarter of what is free, at most 2 GiB); beyond, each pass
    computes them anew, block of columns by block of columns, and only the order within a block is random.
    """
    if isinstance(Z, (_BinColumns, _BlockColumns)):
        return Z
    return _BinColumns(Z) if isinstance(Z, BinnedFeatures) else _BlockColumns(Z, max_memory_mb)


class _BinColumns:
    """The bins: for each its rows, (R N,) int32 row numbers sorted by column, and (D + 1,) where each column's begin."""

    def __init__(self, Z: BinnedFeatures):
        self.Z, self.design, self.shape = Z, as_design(Z), Z.shape
        self.rows = np.empty(Z.ids.shape, np.int32)
        self.ends = np.empty(Z.shape[1] + 1, np.int64)
        self.ends[-1] = Z.ids.size

        def part(start, stop):
            _sort(Z.ids[start:stop], Z.starts[start : stop + 1], start * Z.shape[0], self.rows[start:stop], self.ends)

        parallel.for_ranges(part, Z.n_grids)
        self.rows = self.rows.ravel()

    def squares(self):
        """(D,) squared norms of the columns."""
        return self.Z.squares()

    def make(self, order, w, f, y, bounds, lam, kind, parts):
        """One step for each column of `order` by as many threads as there are, or `parts`; w and f are changed."""
        parallel.for_ranges(
            lambda a, b: _bins_pass(order[a:b], self.rows, self.ends, w, f, y, bounds, lam, self.Z.scale, kind), len(order), 64, parts
        )


class _BlockColumns:
    """The columns of row blocks, each in one piece: all in memory, or a block of them at a time."""

    def __init__(self, blocks, max_memory_mb):
        self.blocks, self.design, self.held, self.shape = blocks, as_design(blocks), None, blocks.shape
        limit = default_memory_mb() if max_memory_mb is None else max_memory_mb
        if size_mb(blocks) <= limit:
            self.held = np.empty(blocks.shape[::-1], blocks.dtype)
            for columns, Z in blocks.columns():
                self.held[columns] = Z.T
            self.design = DenseDesign(self.held.T)
        self.width = max(1, int(limit * 2**20 / 2 // (blocks.dtype.itemsize * max(1, blocks.shape[0]))))

    def _pieces(self):
        """(slice of columns, (columns, N) features)."""
        if self.held is not None:
            yield slice(0, len(self.held)), self.held
            return
        for columns, Z in self.blocks.columns(self.width):
            yield columns, np.ascontiguousarray(Z.T)

    def squares(self):
        """(D,) squared norms of the columns, summed in float64."""
        return np.concatenate([np.einsum("ji,ji->j", Z, Z, dtype=np.float64) for _, Z in self._pieces()])

    def make(self, order, w, f, y, bounds, lam, kind, parts):
        """As _BinColumns.make; columns that are not in memory are taken block by block, in the order's order within a block."""
        for columns, Z in self._pieces():
            own = order if self.held is not None else order[(order >= columns.start) & (order < columns.stop)]
            parallel.for_ranges(
                lambda a, b, own=own, Z=Z, first=columns.start: _dense_pass(own[a:b], Z, first, w, f, y, bounds, lam, kind),
                len(own), 1, parts,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def _sort(ids, starts, before, rows, ends):
    """Counting sort of each grid's rows by bin; ends[j] <- where column j begins among all grids' rows."""
    for r in range(len(ids)):
        size = starts[r + 1] - starts[r]
        place = np.zeros(size + 1, np.int64)
        for i in range(ids.shape[1]):
            place[ids[r, i] + 1] += 1
        for b in range(size):
            place[b + 1] += place[b]
            ends[starts[r] + b] = before + r * ids.shape[1] + place[b]
        for i in range(ids.shape[1]):
            b = ids[r, i]
            rows[r, place[b]] = i
            place[b] += 1


@njit(cache=True, nogil=True)
def _step(w, g, bound, lam):
    """How far a weight moves whose loss has slope g and curvature of at most `bound`."""
    if bound <= 0.0:
        return -w
    free = w - g / bound
    return np.sign(free) * max(0.0, abs(free) - lam / bound) - w


@njit(cache=True, nogil=True)
def _bins_pass(order, rows, ends, w, f, y, bounds, lam, scale, kind):
    """One coordinate step for each bin of `order`; kind: 0 squared, 1 squared hinge, 2 logistic."""
    for j in order:
        g = 0.0
        for t in range(ends[j], ends[j + 1]):
            i = rows[t]
            if kind == 0:
                g += f[i] - y[i]
            elif kind == 1:
                g -= 2.0 * y[i] * max(0.0, 1.0 - y[i] * f[i])
            else:
                g -= y[i] / (1.0 + np.exp(y[i] * f[i]))
        step = _step(w[j], scale * g, bounds[j], lam)
        if step != 0.0:
            w[j] += step
            for t in range(ends[j], ends[j + 1]):
                f[rows[t]] += scale * step


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _dense_pass(order, columns, first, w, f, y, bounds, lam, kind):
    """The same for dense columns (columns, N), of which the first is column `first` of all."""
    for j in order:
        z = columns[j - first]
        g = 0.0
        if kind == 0:
            for i in range(len(z)):
                g += z[i] * (f[i] - y[i])
        elif kind == 1:
            for i in range(len(z)):
                g -= 2.0 * z[i] * y[i] * max(0.0, 1.0 - y[i] * f[i])
        else:
            for i in range(len(z)):
                g -= z[i] * y[i] / (1.0 + np.exp(y[i] * f[i]))
        step = _step(w[j], g, bounds[j], lam)
        if step != 0.0:
            w[j] += step
            for i in range(len(z)):
                f[i] += step * z[i]
