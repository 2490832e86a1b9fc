"""Cross-fitted inputs of training rows: a column with many categories becomes target means,
computed for each row from other rows.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rfx.data.tabular import targetmeans
from rfx.data.tabular.apart import Apart
from rfx.data.tabular.schema import Schema
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
    inputs, own = list(schema.columns), {}
    if apart is None:
        part = targetmeans.parts(Y @ np.arange(1.0, Y.shape[1] + 1), seed)
    else:
        part = apart.numbered(min(targetmeans.PARTS, apart.count), seed)
    earlier = apart is not None and apart.by == "time"
    for place in wanted(schema):
        column = replace(inputs[place], fill=None, means=None)
        codes, count = schema.codes(table, column.position, column, gaps=True), column.width
        means = targetmeans.TargetMeans.learn(codes, count, Y, titles)
        inputs[place] = replace(column, means=means)
        own[place] = targetmeans.cross_fitted(codes, count, Y, part, earlier)
    schema = replace(schema, inputs=inputs)
    return schema, schema.inputs_of(table, own)


def gaps(schema: Schema, table: Table) -> Iterator[str]:
    """A message for each column whose missing cells become the mean of the targets."""
    for place in wanted(schema):
        column = schema.columns[place]
        gone = int((schema.codes(table, column.position, column, gaps=True) < 0).sum())
        if gone:
            cells, become = ("1 cell", "becomes") if gone == 1 else (f"{gone:,} cells", "become")
            yield (
                f"{table.name}: {cells} of {table.title(column.position)} without a value {become}"
                " the mean of the targets"
            )
