"""Data frames as rows: supported column types, and frames in the form of a model's training
file.
"""

from typing import Any

import numpy as np

from rfx import lazy
from rfx.data.tabular.csvtext import ABSENT
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Table, Words
from rfx.data.tabular.written import shortest
from rfx.errors import DataError

_ADVICE = "encode it with OneHotEncoder in a ColumnTransformer"


def is_frame(X) -> bool:
    """Whether rows are a data frame of pandas or Dask."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc")


def kind_of_words(column) -> str | None:
    """`categories` or `words` for a pandas column by its type, None for others.

    A column of objects has words if one of its cells is a string.
    """
    kind = column.dtype
    if isinstance(kind, lazy.pandas.CategoricalDtype):
        return "categories"
    if isinstance(kind, lazy.pandas.StringDtype) or str(kind) == "string[pyarrow]":
        return "words"
    if kind == np.dtype(object) and not hasattr(column, "__dask_graph__"):
        return "words" if any(isinstance(value, (str, bytes)) for value in column) else None
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
        if kind_of_words(X[name] if hasattr(X, "__dask_graph__") else X.iloc[:, place]) is not None:
            raise ValueError(
                f"column {name!r:.80} of X has categories or words ({kind!s:.40}), but must be"
                f" numeric; {advice}"
            )
        if kind == np.dtype(object):
            continue  # object columns may contain numbers
        raise ValueError(
            f"column {name!r:.80} of X has type {kind!s:.40}, but must be numeric; convert it to"
            " numbers, or drop it"
        )


def words_of(column) -> Words:
    """A column of a pandas data frame, or of an array, as words: numbers in their shortest digits,
    so that 3, 3.0 and "3" are equal.
    """
    codes, values = lazy.pandas.factorize(column)
    return Words.of(codes, map(_text, values))


def _text(value) -> str:
    """A category as a word."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return shortest(float(value))
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


# ---------------------------------------------------------------------- as a file has it


def is_like_file(frame: Any, schema: Schema) -> bool:
    """Whether a pandas data frame has the columns of the file from which a schema was learnt,
    rather than the encoded inputs.
    """
    titles, names = schema.titles(), [str(name) for name in frame.columns]
    if titles == [column.name for column in schema.columns]:
        return True
    if schema.named:
        return names != titles
    return len(names) != len(titles) or len(names) in (schema.size - 1, schema.size)


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
    inputs: dict[Any, Input]
    if schema.named:
        inputs = {column.name: column for column in schema.columns}
        own = [inputs.get(name) for name in names]
        twice = [name for name in inputs if names.count(name) > 1]
        if twice:
            raise DataError(f"X has two columns called {twice[0]!r:.80}; rename one of them")
    else:
        inputs = {column.position: column for column in schema.columns}
        behind = schema.size if schema.target is None else schema.target[1]
        lacking = len(names) == schema.size - 1
        own = [inputs.get(place + (lacking and place >= behind)) for place in range(len(names))]
    unused = np.full(len(frame), np.nan)
    columns = [
        unused if column is None else _cells(frame.iloc[:, place], column)
        for place, column in enumerate(own)
    ]
    table = Table("X", names, schema.named, columns, for_gaps="fill it in")
    return schema.encode(table, targets="ignored")[0]


def _cells(cells: Any, column: Input) -> np.ndarray | Words:
    """A data frame column for a column of a schema: numbers (n,), nan if missing, or words."""
    types, kind = lazy.pandas.api.types, cells.dtype
    dates = column.form is not None and column.form.kind == "dates"
    if (types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)) and not (
        column.categories is not None or dates
    ):
        return np.asarray(cells.to_numpy(np.float64, na_value=np.nan))
    words, absent = words_of(cells), set(ABSENT) - set(column.categories or ())
    texts = map(str.strip, words.values)
    return Words.of(words.codes, (None if text in absent else text for text in texts))
