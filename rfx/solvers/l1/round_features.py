"""The features of a round of Algorithm 1 in memory: as they are, as codes, or as many of their rows
as fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rfx.operators.cached import SplitRows, hold_part
from rfx.operators.coded import WORTH_MB, CodedMatrix, Kind, code_type, coded, recoded
from rfx.operators.products import working_bytes
from rfx.solvers.l1.newton import columns_held, largest_working_set

if TYPE_CHECKING:
    from rfx.losses import SmoothLoss
    from rfx.operators.matrix import Matrix

# Fraction of the memory for a round's features; Gram matrices use up to half of it.
_HELD = 0.6
# Bytes per entry of a Gram matrix of stored and computed features: itself and the first one; bytes
# per row of vectors over the rows; MiB for compiled functions and the caches of BLAS and the
# allocator, for a small memory a fraction of it.
_GRAM_BYTES, _ROW_BYTES, _KEPT_MB, _KEPT = 16, 128, 128, 0.125
# The fraction of lambda by which codes may change a gradient: sufficient for early rounds, and the
# last one corrects the rest.
_GRADIENT = 0.2
# The minimum fraction of rows for which codes are worthwhile.
_LEAST = 0.5


class RoundFeatures:
    """Columns of Z from successive rounds: `part`, and `kind`, the type of its codes, None without.

    Codes have small errors, so a solution found with them must be certified with Z.
    """

    def __init__(
        self, Z: Matrix, y: np.ndarray, lam: float, loss: SmoothLoss, memory_mb: float
    ) -> None:
        self.Z, self.y, self.lam, self.loss, self.memory_mb = Z, y, lam, loss, memory_mb
        self._part: Matrix | None = None
        self.kind: Kind | None = None

    @property
    def part(self) -> Matrix:
        """The result of `take` or `exact`."""
        assert self._part is not None
        return self._part

    @part.setter
    def part(self, part: Matrix) -> None:
        self._part = part

    def take(self, columns: np.ndarray, n_used: int, kept: np.ndarray | None = None) -> bool:
        """Set these columns, of which `n_used` have nonzero weight; return whether existing
        features have changed slightly.

        kept: the numbers, among the previous columns, of the first of these.
        """
        whole = self.Z.columns(columns)
        before, self.kind, count = self.kind, *self._form(whole, n_used)
        again = None
        if (
            self.kind is not None
            and self.kind is before
            and count == whole.shape[0]
            and isinstance(self._part, CodedMatrix)
            and kept is not None
        ):
            again = recoded(self._part, kept, self.Z.columns(columns[len(kept) :]))
        self._part = again  # those of the last round are released before this round's are computed
        if again is None:
            self._part = self._made(whole, n_used, count, len(columns) - n_used)
        by_codes = self.kind is not None or before is not None
        return again is None and by_codes and n_used > 0

    def exact(self, columns: np.ndarray, n_used: int) -> None:
        """Set these columns, without codes."""
        self._part = self.kind = None
        self._part = self._made(self.Z.columns(columns), n_used)

    def _form(self, whole: Matrix, n_used: int) -> tuple[Kind | None, int]:
        """(type of codes, number of rows stored so); (None, 0) if features are few, or codes are
        too coarse or too many.

        A derivative of the losses has sum u^2 <= 4 times their sum at zero, so an error of e in
        every entry of a column changes its gradient by 2 e sqrt(that sum). A small fraction of
        lambda is allowed; its effect on the dual value is quadratic.
        """
        n_rows, n_columns = whole.shape
        if not whole.computed or whole.size_mb <= min(_HELD * self.memory_mb, WORTH_MB):
            return None, 0
        squares = 4 * float(self.loss.value(np.zeros_like(self.y), self.y).sum())
        kind = code_type(whole, n_columns * (_GRADIENT * self.lam) ** 2 / (12 * squares))
        if kind is None:
            return None, 0
        count = self._left(n_columns) // (n_columns * np.dtype(kind).itemsize)
        if count >= n_rows:
            return kind, n_rows
        return (None, 0) if self._few(whole, n_used) or count < _LEAST * n_rows else (kind, count)

    def _few(self, whole: Matrix, n_used: int) -> bool:
        """Whether twice the columns in use fit into the solver's memory."""
        return 2 * n_used <= columns_held(whole, self.memory_mb)

    def _left(self, n_columns: int) -> int:
        """Bytes left by a Gram matrix of these columns, or of as many as the solver uses
        together.
        """
        n_rows, together = self.Z.shape[0], min(n_columns, largest_working_set(self.memory_mb))
        taken = (
            _GRAM_BYTES * together**2
            + working_bytes(n_rows, together, self.Z.dtype.itemsize)
            + _ROW_BYTES * n_rows
        )
        return max(0, int((self.memory_mb - min(_KEPT_MB, _KEPT * self.memory_mb)) * 2**20) - taken)

    def _made(self, whole: Matrix, n_used: int, count: int = 0, new: int = 0) -> Matrix:
        """whole with `count` of its rows as codes, and with space for columns added to the `new`
        ones.

        Without codes: in memory if it fits, else unchanged if twice the columns in use fit into the
        solver's memory, or with some rows in memory.
        """
        n_rows, n_columns = whole.shape
        kind = self.kind
        if kind is not None and count >= n_rows:
            # the working set grows by a fraction of the new columns in each round
            room = n_columns + 2 * new
            fits = self._left(room) // (n_rows * np.dtype(kind).itemsize)
            return coded(whole, kind, min(room, fits))
        if kind is not None and count:
            first = coded(whole.rows(slice(0, count)), kind)
            return SplitRows(
                [
                    (np.arange(count), first),
                    (np.arange(count, n_rows), whole.rows(slice(count, n_rows))),
                ]
            )
        limit = min(_HELD * self.memory_mb, self._left(n_columns) / 2**20)
        found = whole.hold(limit)
        return found if not found.computed or self._few(whole, n_used) else hold_part(whole, limit)
