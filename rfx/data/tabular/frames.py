"""Data frames as rows: what their columns may be."""

import numpy as np

from rfx.data.tabular.table import Words
from rfx.data.tabular.written import shortest

_ADVICE = "encode it with OneHotEncoder in a ColumnTransformer"


def is_frame(X) -> bool:
    """Whether rows are a data frame of pandas, or one of Dask."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc")


def kind_of_words(column) -> str | None:
    """`categories` or `words` of a column of a data frame of pandas by its type, None for others.

    A column of objects has words where one of its cells is a text.
    """
    import pandas

    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        return "categories"
    if isinstance(kind, pandas.StringDtype) or str(kind) == "string[pyarrow]":
        return "words"
    if kind == np.dtype(object) and not hasattr(column, "__dask_graph__"):
        return "words" if any(isinstance(value, (str, bytes)) for value in column) else None
    return None


def check_columns(X, advice: str = _ADVICE) -> None:
    """Refuse, with a ValueError that names it, a column of a data frame that is not numbers:
    categories, words, dates.

    X: anything; frames of pandas and those of Dask are looked at. advice: what to do with words.
    """
    if not is_frame(X):
        return
    import pandas

    for place, (name, kind) in enumerate(zip(X.columns, X.dtypes)):
        types = pandas.api.types
        if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind):
            continue
        if kind_of_words(X[name] if hasattr(X, "__dask_graph__") else X.iloc[:, place]) is not None:
            raise ValueError(
                f"column {name!r:.80} of X has categories or words ({kind!s:.40}), but numbers are"
                f" needed; {advice}"
            )
        if kind == np.dtype(object):
            continue  # of objects that may be numbers
        raise ValueError(
            f"column {name!r:.80} of X is of the type {kind!s:.40}, but numbers are needed; turn it"
            " into numbers, or drop it"
        )


def words_of(column) -> Words:
    """A column of a data frame of pandas, or of an array, as words: numbers in their shortest
    digits, so that 3, 3.0 and "3" are one.
    """
    import pandas

    codes, found = pandas.factorize(column)
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(_text(value), len(numbers)) for value in found]
    return Words(np.array([*places, -1], np.int32)[codes], list(numbers))


def _text(value) -> str:
    """A category as a word."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return shortest(float(value))
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
