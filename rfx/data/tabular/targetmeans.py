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

from dataclasses import replace

import numpy as np

from rfx.data import splits
from rfx.data.reading import typed
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.tabular.schema import Schema, TargetMeans
from rfx.data.tabular.table import Table

PARTS = 5  # parts of the training rows, for cross-fitting
_ROLE = 61  # the stream of random numbers that defines the parts


def learn(codes, n_categories: int, Y, titles, prior=None) -> TargetMeans:
    """The TargetMeans of category numbers (n,), -1 for missing, and targets Y (n, k).

    prior: (k,) the means to shrink towards; None: those of Y.
    """
    prior = Y.mean(axis=0) if prior is None else prior
    means = smoothed(codes, n_categories, Y, prior).tolist()
    return TargetMeans(means, prior.tolist(), list(titles))


def smoothed(codes: np.ndarray, n_categories: int, Y: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(n_categories, k) smoothed means of the targets Y (n, k) for each category.

    A category with m rows, mean a and variance s^2 has w a + (1 - w) b, where b is the prior (k,),
    t^2 the variance of all rows and w = t^2 m / (t^2 m + s^2). Without rows it has b.

    codes: (n,) the category numbers, -1 for missing.
    """
    present = codes >= 0
    present_codes = codes[present]
    counts = np.bincount(present_codes, minlength=n_categories)
    smooth = np.empty((n_categories, Y.shape[1]))
    for output, (y, mean) in enumerate(zip(Y.T, prior)):
        y_known = y[present]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.bincount(present_codes, y_known, n_categories) / counts
            within = (
                np.bincount(present_codes, (y_known - means[present_codes]) ** 2, n_categories)
                / counts
            )
            weight = y.var() * counts / (y.var() * counts + within)
            means = weight * means + (1 - weight) * mean
        smooth[:, output] = np.where(np.isnan(means), mean, means)
    return smooth


def parts(y: np.ndarray, seed: int) -> np.ndarray:
    """(n,) the part of each row, of PARTS equal ones.

    Rows with similar targets y (n,) are distributed among the parts, so that the means of all parts
    are nearly equal; the seed assigns the rows.
    """
    n = len(y)
    one, other = splits.generator(seed, _ROLE).bit_generator.random_raw(2 * n).reshape(2, n)
    order = np.lexsort((one, y))
    order = order[np.lexsort((other, np.arange(n) // PARTS))]
    part = np.empty(n, np.int64)
    part[order] = np.arange(n) % PARTS
    return part


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
    encoded = np.broadcast_to(Y.mean(axis=0), Y.shape).copy()
    for number in range(PARTS):
        out = part == number
        kept = part < number if earlier else ~out
        if out.any() and kept.any():
            means = learn(codes[kept], n_categories, Y[kept], (), prior)
            encoded[out] = means.of(codes[out])
    return encoded


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


# ---------------------------------------------------------------------- columns of a table


MOST_COLUMNS = 40
"""A column of more categories than this becomes means of the targets, not a column of 0 and 1 for
each category."""


def wanted(schema: Schema) -> list[int]:
    """The positions, among the inputs of a schema, of the columns encoded by target means."""
    return [
        place for place, column in enumerate(schema.columns) if len(column.words) > MOST_COLUMNS
    ]


def codes(schema: Schema, table: Table) -> dict[int, np.ndarray]:
    """The category numbers (n,), by the position among the inputs, of the `wanted` columns of a
    table; -1 for a missing cell.
    """
    columns = {place: schema.columns[place] for place in wanted(schema)}
    return {
        place: schema.codes(table, column.position, column, gaps=not schema.refuses_gaps)
        for place, column in columns.items()
    }


def fitted(
    schema: Schema,
    table: Table,
    Y: np.ndarray,
    seed: int,
    titles=(),
    constraint: SplitConstraint | None = None,
):
    """(the schema with the means of its training rows, X (n, width) of these rows, messages).

    The schema has the means of all rows; X has, for each row, means of the rows in other parts. A
    message names a column with missing cells, or with categories of one part alone, which become
    the mean of the targets.

    Parameters
    ----------
    schema : Schema
        The schema learnt from the rows of the table.
    table : Table
    Y : array, (n, k)
        The targets, as returned by `outputs`.
    seed : int
        Determines the parts of the rows.
    titles : sequence of str
        The names of the columns of Y, if there are several.
    constraint : SplitConstraint, optional
        The means of a row then come from other groups, or from earlier rows.
    """
    inputs, training, messages = list(schema.columns), {}, []
    gaps = not schema.refuses_gaps
    given = constraint is not None and constraint.given
    if constraint is None or not given:
        part = parts(Y @ np.arange(1.0, Y.shape[1] + 1), seed)
        if constraint is not None:
            # equal rows are in one part
            _, first, same = np.unique(constraint.values, return_index=True, return_inverse=True)
            part = part[first][same]
        prior, earlier = None, False
    else:
        part = constraint.numbered(min(PARTS, constraint.count), seed)
        # the mean of the other groups falls as the row's own targets rise
        prior, earlier = Y.mean(axis=0), constraint.by == "time"
    for place in wanted(schema):
        words = inputs[place].words
        column = replace(inputs[place], categories=words, fill=None, means=None)
        codes, count = schema.codes(table, column.position, column, gaps=gaps), column.width
        title, gone = table.title(column.position), np.count_nonzero(codes < 0)
        if constraint is not None and given:
            # no training row can use the mean of such a category, so no prediction does
            lone = in_one_part(codes, count, part)
            codes = np.where(np.append(lone, False)[codes], -1, codes)
            one = "group" if constraint.by == "groups" else "span of time"
            if lone.any():
                messages.append(
                    f"{table.name}: {lone.sum():,} of {count:,} categories of {title} occur in only"
                    f" one {one} and become the mean of the targets;"
                    f" {typed('ignore', [column.name])} leaves the column out"
                )
        if gone:
            cells, become = ("1 cell", "becomes") if gone == 1 else (f"{gone:,} cells", "become")
            messages.append(
                f"{table.name}: {cells} of {title} without a value {become} the mean of the targets"
            )
        means = learn(codes, count, Y, titles, prior)
        inputs[place] = replace(column, means=means)
        training[place] = cross_fitted(codes, count, Y, part, earlier, prior)
    schema = replace(schema, inputs=inputs)
    return schema, schema.inputs_of(table, training), messages
