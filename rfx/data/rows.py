"""The interface to rows that are stored in parts outside this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse


class Rows(ABC):
    """Rows (n, d) in parts: `rfx.distributed.rows` has those of a cluster's workers.

    Attributes
    ----------
    shape : tuple
        (n, d)
    survey : rfx.data.survey.PartSurvey
        Statistics of the inputs.
    """

    shape: tuple[int, int]
    survey: Any

    @property
    @abstractmethod
    def share(self) -> tuple[int, float]:
        """(rows, MiB of memory for them) of the location with most of the rows."""

    @abstractmethod
    def unscaled(self, index: Any) -> np.ndarray | scipy.sparse.csr_matrix:
        """Some of the rows as read, by their ascending numbers, in this process."""

    @abstractmethod
    def scaled(self, scaler: Any, dtype: Any) -> Rows:
        """The rows scaled by a Scaler (rfx.data.transforms.scaling), stored at the same place."""

    @abstractmethod
    def __getitem__(self, index: Any) -> np.ndarray:
        """Some of the rows, by their numbers, in this process."""

    @abstractmethod
    def features(self, feature_map: Any, scale: float = 1.0, most_mb: float = np.inf) -> Any:
        """The matrix scale * feature_map(X); most_mb: MiB of it that may be cached in one place."""

    @abstractmethod
    def numbered(self, grids: Any) -> tuple[Any, Any]:
        """(Bins, matrix) of the rows in the bins of a `BinningMap`, identical to that of rows in
        one process.
        """

    @abstractmethod
    def total(self, function: Callable, shared: Any, *vectors: Any) -> Any:
        """The sum over the parts of function(shared, X, *vectors); vectors have one entry per
        row.
        """

    @abstractmethod
    def grouped(self, partition: Any, function: Callable, shared: Any, *vectors: Any) -> list:
        """The results of function(shared, number, numbers, X, *vectors) for each block of a
        `Partition`, computed where the rows X with these ascending numbers are sent.
        """


# Rows (n, d) that methods accept.
RowsLike: TypeAlias = "np.ndarray | scipy.sparse.csr_matrix | Rows"
