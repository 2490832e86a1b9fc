"""Data frames as rows: supported column types, and frames in the form of a model's training
file.
"""

import datetime
from typing import Any

import numpy as np

from rfx import lazy
from rfx.data.tabular.csvtext import ABSENT
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Table, Words, words_of
from rfx.errors import DataError

_ADVICE = "encode it with OneHotEncoder in a ColumnTransformer"


def is_frame(X) -> bool:
    """Whether rows are a data frame of pandas or Dask."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc")


def kind_of_words(column) -> str | None:
    """`categories`, `words` or `dates` for a pandas column by its type, None for others.

    A column of objects has words if one of its cells is a string.
    """
    kind = column.dtype
    if isinstance(kind, lazy.pandas.CategoricalDtype):
        return "categories"
    if isinstance(kind, lazy.pandas.StringDtype) or str(kind) == "string[pyarrow]":
        return "words"
    if lazy.pandas.api.types.is_datetime64_any_dtype(kind):
        return "dates"
    if kind == np.dtype(object) and not hasattr(column, "__dask_graph__"):
        if any(isinstance(value, (str, bytes)) for value in column):
            return "words"
        return "dates" if any(isinstance(value, datetime.date) for value in column) else None
    return None


def check_columns(X, advice: str = _ADVICE) -> None:
    """Raise ValueError with the name of a data frame column that is not numeric: categories, words,
    dates.

    X: anything; pandas and Dask frames are checked. advice: what to do with words.
    """
    if not is_frame(X):
        return
    for place, (name, kind) in enumerate(zip(X.columns, X.dtypes)):
        types = lazy.pandas.api.types
        if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind):
            continue
        read_as = kind_of_words(X[name] if hasattr(X, "__dask_graph__") else X.iloc[:, place])
        if read_as in ("categories", "words"):
            raise ValueError(
                f"column {name!r:.80} of X has categories or words ({kind!s:.40}), but must be"
                f" numeric; {advice}"
            )
        if kind == np.dtype(object) and read_as is None:
            continue  # object columns may contain numbers
        raise ValueError(
            f"column {name!r:.80} of X has type {kind!s:.40}, but must be numeric; convert it to"
            " numbers, or drop it"
        )


# ---------------------------------------------------------------------- as a file has it


def encoded(frame: Any, schema: Schema) -> Any:
    """X (n, width) of a pandas data frame in the form of the schema's training file, read like rows
    of that file; array or, if it is wide and mostly zeros, CSR.

    Columns are found by name if the file had names; targets are ignored. Strings and missing cells
    are read as in a file; numbers and dates may have native types.

    Raises
    ------
    DataError
        For a column that is missing or has another type, and for a missing cell without a
        replacement.
    """
    names = [str(name) for name in frame.columns]
    if not len(frame):
        raise DataError("X has no rows")
    table = Table("X", names, schema.named, [], for_gaps='fill it in, or train with missing="mean"')
    positions, _ = schema.places_in(table, False)
    twice = [names[place] for place in positions if names.count(names[place]) > 1]
    if schema.named and twice:
        raise DataError(f"X has two columns called {twice[0]!r:.80}; rename one of them")
    table.columns = [np.full(len(frame), np.nan)] * len(names)
    for place, column in zip(positions, schema.columns):
        table.columns[place] = cells(frame.iloc[:, place], column)
    return schema.encode(table, targets="ignored")[0]


def cells(column: Any, learnt: Input) -> np.ndarray | Words:
    """A data frame column for an input of a schema: numbers (n,), nan if missing, or words."""
    types, kind = lazy.pandas.api.types, column.dtype
    if not learnt.is_text() or (learnt.form is not None and learnt.form.kind == "numbers"):
        if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind):
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    words, absent = words_of(column), set(ABSENT) - set(learnt.categories or ())
    texts = map(str.strip, words.values)
    return Words.of(words.codes, (None if text in absent else text for text in texts))
