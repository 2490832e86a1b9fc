"""Rows of estimators: arrays, sparse matrices and data frames. Missing cells, dates and categories
are read by the same code as in tables of files.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.utils._indexing import _get_column_indices
from sklearn.utils.validation import (
    _check_y,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from rfx import device, lazy
from rfx.data.reading import Reading
from rfx.data.tabular import readers, targetmeans
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.schema import Input, Schema, filled_in_memory
from rfx.data.tabular.table import FILL, Table
from rfx.errors import warn_once
from rfx.estimators.files import coded
from rfx.estimators.parameters import FROM_DTYPE, Columns, in_python, in_words

ADVICE = "name it in categorical_features, or encode it"


@dataclass(frozen=True)
class TableRows:
    """Rows whose encoding is learnt with the targets.

    Parameters
    ----------
    table : Table
    reading : Reading
    """

    table: Table
    reading: Reading

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as scikit-learn expects."""
        return self.table.n_rows, len(self.table.names)

    def learn(self, y: np.ndarray, task: str, seed: int, classes: np.ndarray | None = None):
        """Learn the Schema and X of the rows with encoded targets y: (n,), or numbers (n, k).

        A column with many categories is encoded by target means; each row uses the means of other
        rows. classes: the labels, some of which y may lack.
        """
        codes = None if classes is None else coded(classes, classes)
        Y = targetmeans.outputs(y, task, codes)
        names = self.table.names
        taught = replace(
            self.table,
            names=[*names, max(names, key=len) + "_"],  # a name that no column has
            columns=[*self.table.columns, Y[:, 0]],
            own_target=len(names),
        )
        learner = _Learner(self.reading, task="regression").update(taught)
        titles = range(Y.shape[1]) if classes is None else classes.tolist()
        titles = list(map(str, titles)) if Y.shape[1] > 1 else []
        schema, X, messages = targetmeans.fitted(learner.finish(), taught, Y, seed, titles)
        for message in messages:
            learner.tell(message)
        learner.say(schema, summary=False)
        return replace(schema, target=None, size=len(names)), X


class _Learner(Learner):
    """A Learner for columns with known types, with messages for Python."""

    def tell(self, message: str) -> None:
        warn_once(in_words(message))

    def with_gaps(self, name: str, count: int) -> str:
        # the same text for each fold of a cross-validation, so that Python shows it once
        return name

    def kept_by(self, *positions: int) -> str:
        return "categorical_features"

    def advice(self, troubles) -> list[str]:
        them = "it" if len(troubles) == 1 else "them"
        return [f"correct {them}", f"name {them} in categorical_features", f"drop {them}"]

    def _warn_of_ids(self) -> None:
        """Numbers keep the meaning of their type."""

    def _leave_out_unnamed(self) -> None:
        """No column of a data frame is ignored because of its name."""


def checked(estimator, X, y="no_validation", reset=True, numbers=False, several=False):
    """Check X, or X and y, like scikit-learn: float64, finite, an array or CSR. Sets or compares
    the number and names of the inputs.

    numbers, several: whether targets are numbers, and whether a row may have several.

    Targets y of shape (n, 1) become (n,), with scikit-learn's DataConversionWarning. For an
    estimator with the parameter `missing`, rows with missing cells, dates or categories become
    `TableRows`; later rows are encoded at once by its `schema_`.
    """
    if hasattr(X, "to_frame"):
        raise ValueError("X is a Series; pass one row of a frame as frame.iloc[[0]], or a frame")
    X = device.numpy_of(X)
    y = device.numpy_of(y)
    rows = None
    reads = hasattr(estimator, "missing")
    schema = getattr(estimator, "schema_", None)
    if reset:
        estimator._drawn_seed = None
        rows = _table_rows(estimator, X) if reads else None
    elif schema is not None:
        rows = _encoded(estimator, X, schema)
    if rows is None:
        readers.check_columns(X, *([ADVICE] if reads else []))
        rows = _numbers(estimator, X, reset)
    if isinstance(y, str):
        return rows
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    y = _check_y(y, several, numbers, estimator)
    check_consistent_length(rows, y)
    return rows, column_or_1d(y, warn=True) if several and y.ndim == 2 > y.shape[1] else y


def _numbers(estimator, X, reset: bool):
    """Rows of numbers X, an array or CSR, with missing cells of later rows filled where allowed."""
    kinds = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
    rows = _summed(validate_data(estimator, X, reset=reset, **kinds))
    fills = None if reset else getattr(estimator, "fills_", None)
    if fills is not None and not sp.issparse(rows):
        return _filled(estimator, rows, fills)
    _refuse_gaps(estimator, rows, FILL if hasattr(estimator, "missing") else "fill it in")
    return rows


def column_means(estimator, X) -> np.ndarray | None:
    """The replacements (n_features,) of missing cells in later rows, the means of rows X without
    missing cells; None if they are refused, or X is not an array.
    """
    if not isinstance(X, np.ndarray) or getattr(estimator, "missing", "refuse") == "refuse":
        return None
    return X.mean(axis=0)


def _filled(estimator, X: np.ndarray, fills: np.ndarray) -> np.ndarray:
    """Rows X (n, d) with missing cells replaced by `fills` (d,), which a warning says."""
    gaps = np.isnan(X)
    if not gaps.any():
        return X
    numbered = [f"column {place + 1}" for place in range(X.shape[1])]
    names = getattr(estimator, "feature_names_in_", numbered)
    filled = [name for name, has_gaps in zip(names, gaps.any(axis=0)) if has_gaps]
    warn_once(filled_in_memory(filled))
    return np.where(gaps, fills, X)


def _summed(X):
    """Rows in the form that methods require: an array, or a csr_matrix with 32-bit indices and no
    two entries of the same place.
    """
    if not sp.issparse(X):
        return X
    # a copy, because entries are summed in place; scipy takes the smallest type of indices
    matrix = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    matrix.sum_duplicates()
    return matrix


def _refuse_gaps(estimator, X, advice: str) -> None:
    """Raise ValueError for numbers X with a missing cell."""
    gaps = np.isnan(X.data if sp.issparse(X) else X)
    if gaps.any():
        place = "a row"
        names = getattr(estimator, "feature_names_in_", None)
        if not sp.issparse(X):
            row, column = np.argwhere(gaps)[0]
            place = f"row {row + 1}, column {column + 1 if names is None else repr(names[column])}"
        raise ValueError(f"X contains NaN: {place} has no value; {advice}")


def _frame(X):
    """Rows in memory as a pandas data frame, with the types of their cells; None for others."""
    if sp.issparse(X) or hasattr(X, "__dask_graph__"):
        return None
    if readers.is_frame(X):
        return X
    X = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    return lazy.pandas.DataFrame(X).infer_objects() if X.ndim == 2 else None


def _table_rows(estimator, X) -> TableRows | None:
    """The rows to learn from if they have words, dates, named categories or cells to fill; None for
    others.
    """
    frame = _frame(X)
    missing = estimator.missing
    places = chosen(frame, estimator.categorical_features)
    fills = missing not in (None, "refuse") or (missing is None and lazy.pandas.isna(frame))
    if frame is None or not (places or np.any(fills)):
        return None
    if not len(frame):
        check_array(X, dtype=None, estimator=estimator)  # refuses it
    validate_data(estimator, X if hasattr(X, "shape") else frame, skip_check_array=True)
    named = hasattr(estimator, "feature_names_in_")
    names = _column_names(frame, named)
    readers.check_columns(frame.iloc[:, [p for p in range(len(names)) if p not in places]], ADVICE)
    columns = [
        readers.cells(frame.iloc[:, place], Input(name, place, [] if place in places else None))
        for place, name in enumerate(names)
    ]
    table = Table(
        "X",
        names,
        named,
        columns,
        typed=frozenset(names[place] for place in places),
        categorical=frozenset(names[place] for place, explicit in places.items() if explicit),
        in_memory=True,
    )
    # certainly, because of their type
    dates = [names[p] for p in places if readers.kind_of_words(frame.iloc[:, p]) == "dates"]
    return TableRows(table, Reading(missing=missing, dates=tuple(dates)))


def _column_names(frame, named: bool) -> list[str]:
    """The names of the columns of a frame, or their numbers from 1 on."""
    if not named:
        return [str(place + 1) for place in range(frame.shape[1])]
    names = list(map(str, frame.columns))
    if len(set(names)) < len(names):
        raise ValueError("X has two columns of the same name; rename one of them")
    return names


def chosen(frame, asked: Columns) -> dict[int, bool]:
    """The positions of the columns of a frame that are read as words, and whether they are
    certainly categories: named by `asked`, or of category type.

    Parameters
    ----------
    frame : pandas.DataFrame or None
        None for rows that are sparse or not in memory.
    asked : array-like of str, int or bool, "from_dtype" or None
        Names, positions, or a mask; from_dtype: the columns with words; None: none. Dates are read
        in any case.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    automatic = isinstance(asked, str) and asked == FROM_DTYPE
    named = [] if asked is None or automatic else _get_column_indices(frame, asked)
    places = [] if frame is None else range(frame.shape[1])
    kinds = {place: readers.kind_of_words(frame.iloc[:, place]) for place in places}
    words = {p: k == "categories" for p, k in kinds.items() if k == "dates" or (k and automatic)}
    return words | dict.fromkeys(named, True)


def _encoded(estimator, X, schema: Schema):
    """X (n, width) of later rows, by the schema of the training rows.

    Frames are compared with those seen in `fit` as scikit-learn does it; with a schema of a file,
    the columns of a frame are found by name, in any order and among others.
    """
    frame = _frame(X)
    names = getattr(estimator, "feature_names_in_", None)
    if schema.target is None or frame is not X:
        rows = X if hasattr(X, "shape") else frame.to_numpy()
        validate_data(estimator, rows, reset=False, skip_check_array=True)
        frame = frame if names is None else frame.set_axis(names, axis=1)
    with in_python():
        return _summed(readers.encoded(frame, schema))
