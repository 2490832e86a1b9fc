"""The inputs of a model that has a treatment of words and missing cells of its own."""

from typing import Any

import numpy as np
import scipy.sparse

from rfx.data.tabular.schema import Input, Schema, category_numbers
from rfx.data.tabular.table import Table

# HistGradientBoosting takes no more categories of a column.
MOST_CATEGORIES = 255


def native_inputs(
    schema: Schema, X: Any, table: Table | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Undo what `Schema.encode` did for models that need numbers.

    Parameters
    ----------
    schema : Schema
        With inputs.
    X : array or sparse matrix, (n, schema.width)
        The encoded rows.
    table : Table, optional
        The same rows as they were read. Without it, cells that were replaced are not known, and
        columns of target means stay as they are.

    Returns
    -------
    inputs : array, (n, k)
        A column for each number, four for a date, and one of category numbers for words; of more
        than MOST_CATEGORIES words, the target means. A missing cell is nan, and so is a category
        that was absent in training.
    categorical : array of bool, (k,)
        Whether a column has category numbers.
    """
    is_sparse = scipy.sparse.issparse(X)
    X = X.tocsc() if is_sparse else X
    places = [0] * len(schema.columns)
    if table is not None:
        places, _ = schema.places_in(table, needed=False)
    blocks, categorical, start = [], [], 0
    for column, place in zip(schema.columns, places, strict=True):
        encoded = X[:, start : start + column.width]
        start += column.width
        encoded = encoded.toarray() if is_sparse else encoded
        block, is_category = _native_column(column, encoded, table, place)
        blocks.append(block)
        categorical += [is_category] * block.shape[1]
    return np.hstack(blocks), np.array(categorical)


def _native_column(
    column: Input, encoded: np.ndarray, table: Table | None, place: int
) -> tuple[np.ndarray, bool]:
    """(numbers (n, k), whether they are category numbers) of a column; place: its own in the
    table.
    """
    if column.kind == "category":
        codes = np.where(encoded.any(axis=1), encoded.argmax(axis=1), np.nan)
        return codes[:, None], True
    if table is None:
        return encoded, False
    if column.kind == "encoded" and len(column.words) <= MOST_CATEGORIES:
        codes = category_numbers(table, place, column)
        return np.where(codes < 0, np.nan, codes)[:, None], True
    return np.where(table.gaps(place)[:, None], np.nan, encoded), False
