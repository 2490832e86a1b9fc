"""Cross-fitted inputs of training rows: a column with many categories becomes target means,
computed for each row from other rows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rfx.data.reading import typed
from rfx.data.tabular import targetmeans
from rfx.data.tabular.apart import Apart
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Table

MOST_COLUMNS = 40
"""A column of more categories than this becomes means of the targets, not a column of 0 and 1 for
each category."""


def wanted(schema: Schema) -> list[int]:
    """The positions, among the inputs of a schema, of the columns encoded by target means."""
    return [
        place
        for place, column in enumerate(schema.columns)
        if column.categories is not None and len(column.categories) > MOST_COLUMNS
    ]


def fitted(
    schema: Schema,
    table: Table,
    Y: np.ndarray,
    seed: int,
    titles=(),
    apart: Apart | None = None,
):
    """(the schema with the means of its training rows, X (n, width) of these rows).

    The schema has the means of all rows; X has, for each row, means of the rows in other parts.

    Parameters
    ----------
    schema : Schema
        The schema learnt from the rows of the table.
    table : Table
    Y : array, (n, k)
        The targets, as returned by `targetmeans.outputs`.
    seed : int
        Determines the parts of the rows.
    titles : sequence of str
        The names of the columns of Y, if there are several.
    apart : Apart, optional
        The means of a row then come from other groups, or from earlier rows.
    """
    inputs, training = list(schema.columns), {}
    if apart is None:
        part = targetmeans.parts(Y @ np.arange(1.0, Y.shape[1] + 1), seed)
        prior, earlier = None, False
    else:
        part = _parts(apart, seed)
        # the mean of the other groups falls as the row's own targets rise
        prior, earlier = Y.mean(axis=0), apart.by == "time"
    for place in wanted(schema):
        column = replace(inputs[place], fill=None, means=None)
        codes, count = schema.codes(table, column.position, column, gaps=True), column.width
        if apart is not None:
            # no training row can use the mean of such a category, so no prediction does
            lone = np.append(targetmeans.in_one_part(codes, count, part), False)
            codes = np.where(lone[codes], -1, codes)
        means = targetmeans.TargetMeans.learn(codes, count, Y, titles, prior)
        inputs[place] = replace(column, means=means)
        training[place] = targetmeans.cross_fitted(codes, count, Y, part, earlier, prior)
    schema = replace(schema, inputs=inputs)
    return schema, schema.inputs_of(table, training)


def _parts(apart: Apart, seed: int) -> np.ndarray:
    """(n,) the part of each row: whole groups, or a span of time."""
    return apart.numbered(min(targetmeans.PARTS, apart.count), seed)


def notes(schema: Schema, table: Table, apart: Apart | None = None, seed: int = 0) -> Iterator[str]:
    """A message for each column with missing cells, or with categories of one part alone, which
    become the mean of the targets.
    """
    for place in wanted(schema):
        column = replace(schema.columns[place], fill=None)
        codes = schema.codes(table, column.position, column, gaps=True)
        if apart is not None:
            yield from _note_of_parts(table, column, codes, apart, seed)
        gone = int((codes < 0).sum())
        if gone:
            cells, become = ("1 cell", "becomes") if gone == 1 else (f"{gone:,} cells", "become")
            yield (
                f"{table.name}: {cells} of {table.title(column.position)} without a value {become}"
                " the mean of the targets"
            )


def _note_of_parts(
    table: Table, column: Input, codes: np.ndarray, apart: Apart, seed: int
) -> Iterator[str]:
    """`notes` about the categories of a column whose rows are all in one part."""
    lone = targetmeans.in_one_part(codes, len(column.categories or ()), _parts(apart, seed))
    one = "group" if apart.by == "groups" else "span of time"
    if lone.any():
        yield (
            f"{table.name}: {lone.sum():,} of {len(lone):,} categories of"
            f" {table.title(column.position)} occur in only one {one} and become the mean of the"
            f" targets; {typed('ignore', [column.name])} leaves the column out"
        )
