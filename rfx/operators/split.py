"""Some rows of a matrix in memory, the others computed at every use."""

import numpy as np

from rfx.operators.base import Matrix


class SplitRows(Matrix):
    """Rows from several matrices with the same columns."""

    def __init__(self, pieces):
        """pieces: (row numbers, matrix of these rows), every row in one of them; what is computed, and needs more memory, goes first."""
        self.pieces = sorted([(np.asarray(numbers), Z) for numbers, Z in pieces if len(numbers)], key=lambda piece: not piece[1].computed)
        matrices = [Z for _, Z in self.pieces]
        n_rows = sum(Z.shape[0] for Z in matrices)
        self.shape, self.dtype = (n_rows, matrices[0].shape[1]), matrices[0].dtype
        self.cost = sum(Z.cost * Z.shape[0] for Z in matrices) / n_rows
        self._piece, self._place = np.empty(n_rows, np.int8), np.empty(n_rows, np.intp)
        for k, (numbers, _) in enumerate(self.pieces):
            self._piece[numbers], self._place[numbers] = k, np.arange(len(numbers))

    @property
    def computed(self):
        return any(Z.computed for _, Z in self.pieces)

    def parts(self):
        for numbers, Z in self.pieces:
            for rows, part in Z.parts() if Z.computed else [(slice(None), Z)]:
                yield numbers[rows], part

    def matvec(self, W):
        out = np.empty((self.shape[0], *W.shape[1:]))
        for numbers, Z in self.pieces:
            out[numbers] = Z.matvec(W)
        return out

    def rmatvec(self, U):
        return sum(Z.rmatvec(U[numbers]) for numbers, Z in self.pieces)

    def normal(self, P, weights=None):
        return sum(Z.normal(P, None if weights is None else weights[numbers]) for numbers, Z in self.pieces)

    def gram(self, left, right=None, weights=None, dtype=None):
        return _added(Z.gram(left, right, None if weights is None else weights[numbers], dtype) for numbers, Z in self.pieces)

    def gram_update(self, old, change, new, weights, dtype=None):
        return _added(Z.gram_update(old, change[numbers], new, weights[numbers], dtype) for numbers, Z in self.pieces)

    def row_blocks(self):
        for numbers, Z in self.pieces:
            for rows, block in Z.row_blocks():
                yield numbers[rows], block

    def rows(self, index):
        piece, place = self._piece[index], self._place[index]
        chosen = [np.flatnonzero(piece == k) for k in range(len(self.pieces))]
        if not len(piece):
            return self.pieces[0][1].rows(place)
        return SplitRows([(own, Z.rows(place[own])) for own, (_, Z) in zip(chosen, self.pieces)])

    def columns(self, index):
        return SplitRows([(numbers, Z.columns(index)) for numbers, Z in self.pieces])


def _added(found):
    """The sum of arrays, or of tuples of them, in the place of the first: Gram matrices are large."""
    total = next(found)
    for more in found:
        for own, other in [(total, more)] if isinstance(total, np.ndarray) else zip(total, more):
            own += other
    return total


def hold_part(Z: Matrix, max_mb: float) -> Matrix:
    """Z with as many of its first rows in memory as take at most `max_mb`; Z itself where it is there already, or none fits."""
    count = min(Z.shape[0], int(max_mb * 2**20 / max(1, Z.shape[1] * Z.dtype.itemsize)))
    if not Z.computed or not count:
        return Z
    if count == Z.shape[0]:
        return Z.hold(max_mb)
    first = Z.rows(slice(0, count)).hold()
    return SplitRows([(np.arange(count), first), (np.arange(count, Z.shape[0]), Z.rows(slice(count, Z.shape[0])))])
