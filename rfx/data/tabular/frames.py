"""Data frames as rows: what their columns may be."""

import numpy as np


def check_columns(X) -> None:
    """Refuse, with a ValueError that names it, a column of a data frame that is not numbers:
    categories, words, dates.

    X: anything; frames of pandas and those of Dask are looked at.
    """
    if not hasattr(X, "dtypes") or not hasattr(X, "iloc"):
        return
    import pandas

    for place, (name, kind) in enumerate(zip(X.columns, X.dtypes)):
        types = pandas.api.types
        if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind):
            continue
        words = (
            isinstance(kind, (pandas.CategoricalDtype, pandas.StringDtype))
            or str(kind) == "string[pyarrow]"
        )
        if kind == np.dtype(object):
            found = (
                ()
                if hasattr(X, "__dask_graph__")
                else (value for value in X.iloc[:, place] if isinstance(value, (str, bytes)))
            )
            words = next(iter(found), None) is not None
            if not words:
                continue  # of objects that may be numbers
        if words:
            raise ValueError(
                f"column {name!r:.80} of X has categories or words ({kind!s:.40}), but numbers are"
                " needed; encode it with OneHotEncoder in a ColumnTransformer"
            )
        raise ValueError(
            f"column {name!r:.80} of X is of the type {kind!s:.40}, but numbers are needed; turn it"
            " into numbers, or drop it"
        )
