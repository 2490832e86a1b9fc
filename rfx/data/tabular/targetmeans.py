"""Encode a category as the mean target of its rows, which needs one column for any number of
categories.

The means are shrunk towards the overall mean by an empirical Bayes rule [1]_, as in scikit-learn's
`TargetEncoder(smooth="auto")`. Training rows use the means of other rows, so that no row's own
target is among its inputs.

References
----------
.. [1] Micci-Barreca, "A Preprocessing Scheme for High-Cardinality Categorical Attributes in
   Classification and Prediction Problems", SIGKDD Explorations 3(1), 2001.
"""

from dataclasses import dataclass

import numpy as np

from rfx.data import splits

PARTS = 5  # parts of the training rows, for cross-fitting
_ROLE = 61  # the stream of random numbers that defines the parts


@dataclass(frozen=True)
class TargetMeans:
    """The encoding of each category of a column.

    Parameters
    ----------
    values : list of list of float, (n_categories, n_outputs)
        The smoothed means of the targets; for classes, the fractions of each class.
    default : list of float, (n_outputs,)
        The overall means, for an unknown or missing category.
    titles : list of str
        The names of the outputs, the classes if there are more than two; else empty.
    """

    values: list[list[float]]
    default: list[float]
    titles: list[str]

    @classmethod
    def learn(cls, codes, n_categories: int, Y, titles, prior=None) -> "TargetMeans":
        """Learn from category numbers (n,), -1 for missing, and targets Y (n, k).

        prior: (k,) the means to shrink towards; None: those of Y.
        """
        prior = Y.mean(axis=0) if prior is None else prior
        return cls(smoothed(codes, n_categories, Y, prior).tolist(), prior.tolist(), list(titles))

    def of(self, codes: np.ndarray) -> np.ndarray:
        """(n, k) for category numbers (n,), -1 for unknown or missing."""
        return np.array([*self.values, self.default], np.float64)[codes]


def smoothed(
    codes: np.ndarray, n_categories: int, Y: np.ndarray, prior: np.ndarray | None = None
) -> np.ndarray:
    """(n_categories, k) smoothed means of the targets Y (n, k) for each category.

    A category with m rows, mean a and variance s^2 has w a + (1 - w) b, where b is the prior (k,),
    by default the mean of all rows, t^2 their variance and w = t^2 m / (t^2 m + s^2). Without rows
    it has b.

    codes: (n,) the category numbers, -1 for missing.
    """
    known = codes >= 0
    own = codes[known]
    counts = np.bincount(own, minlength=n_categories)
    found = np.empty((n_categories, Y.shape[1]))
    prior = Y.mean(axis=0) if prior is None else prior
    for output, (y, mean) in enumerate(zip(Y.T, prior)):
        y_known = y[known]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.bincount(own, y_known, n_categories) / counts
            within = np.bincount(own, (y_known - means[own]) ** 2, n_categories) / counts
            weight = y.var() * counts / (y.var() * counts + within)
            means = weight * means + (1 - weight) * mean
        found[:, output] = np.where(np.isnan(means), mean, means)
    return found


def parts(y: np.ndarray, seed: int) -> np.ndarray:
    """(n,) the part of each row, of PARTS equal ones.

    Rows with similar targets y (n,) are distributed among the parts, so that the means of all parts
    are nearly equal; the seed assigns the rows.
    """
    n = len(y)
    one, other = splits.generator(seed, _ROLE).bit_generator.random_raw(2 * n).reshape(2, n)
    order = np.lexsort((one, y))
    order = order[np.lexsort((other, np.arange(n) // PARTS))]
    found = np.empty(n, np.int64)
    found[order] = np.arange(n) % PARTS
    return found


def cross_fitted(
    codes: np.ndarray,
    n_categories: int,
    Y: np.ndarray,
    part: np.ndarray,
    earlier: bool = False,
    prior: np.ndarray | None = None,
):
    """(n, k) encoding of training rows, each by the means of the rows in other parts.

    part: (n,) the parts of the rows; earlier: use only parts before the row's own. prior: (k,) what
    every part shrinks towards; None: the means of its other rows, which are the same for parts with
    similar targets. The rest as in `smoothed`.
    """
    found = np.broadcast_to(Y.mean(axis=0), Y.shape).copy()
    for number in range(PARTS):
        out = part == number
        kept = part < number if earlier else ~out
        if out.any() and kept.any():
            means = TargetMeans.learn(codes[kept], n_categories, Y[kept], (), prior)
            found[out] = means.of(codes[out])
    return found


def in_one_part(codes: np.ndarray, n_categories: int, part: np.ndarray) -> np.ndarray:
    """(n_categories,) whether all rows of a category are in one part; codes, part: (n,)."""
    counts = np.zeros((n_categories + 1, PARTS), np.int64)
    np.add.at(counts, (codes, part), 1)  # -1 is the last row
    return np.count_nonzero(counts[:-1], axis=1) == 1


def outputs(y: np.ndarray, task: str, classes: np.ndarray | None = None) -> np.ndarray:
    """The targets (n, k) to average: numbers unchanged, class indicators for classes.

    Two classes have one column, for the larger one. y: (n,), or (n, k) for regression. classes: all
    classes, ascending, if y may lack some.
    """
    if task == "regression":
        return np.asarray(y, np.float64).reshape(len(y), -1)
    classes = np.unique(y) if classes is None else classes
    if len(classes) <= 2:
        return (y == classes[-1]).astype(np.float64)[:, None]
    return (np.asarray(y)[:, None] == classes).astype(np.float64)
