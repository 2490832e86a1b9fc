"""Categorical columns of estimator inputs: their detection and encoding, by the same code as for
tables in files.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from rfx.data.reading import Reading
from rfx.data.tabular import crossfit, targetmeans
from rfx.data.tabular.frames import check_columns, is_frame, kind_of_words, words_of
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.schema import Schema
from rfx.data.tabular.table import Table
from rfx.errors import RfxWarning

FROM_DTYPE = "from_dtype"
ADVICE = "name it in categorical_features, or encode it"
# Valid values of categorical_features.
Columns = Sequence[Any] | np.ndarray | str | None


@dataclass(frozen=True)
class Rows:
    """Rows with categorical columns, whose encoding is learnt with the targets.

    Parameters
    ----------
    table : Table
    """

    table: Table

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as scikit-learn expects."""
        return self.table.n_rows, len(self.table.names)

    def learn(self, y: np.ndarray, task: str, seed: int, n_classes: int | None = None):
        """Learn the Schema and X of the rows with targets y: class codes (n,), or numbers (n,) or
        (n, k).

        A column with many categories is encoded by target means; each row uses the means of other
        rows. n_classes: the number of classes, if y may lack some.
        """
        Y = targetmeans.outputs(y, task, None if n_classes is None else np.arange(n_classes))
        names = self.table.names
        target = next(f"y{'_' * k}" for k in range(len(names) + 1) if f"y{'_' * k}" not in names)
        taught = replace(
            self.table,
            names=[*names, target],
            columns=[*self.table.columns, Y[:, 0]],
            own_target=len(names),
        )
        learner = _Learner(Reading(), regression=True).update(taught)
        schema = learner.finish()
        titles = list(map(str, range(Y.shape[1]))) if Y.shape[1] > 1 else []
        schema, X = crossfit.fitted(schema, taught, Y, seed, titles)
        for message in crossfit.notes(schema, taught):
            learner.tell(message)
        return replace(schema, target=None, size=len(names)), X


class _Learner(Learner):
    """A Learner for columns with known types, with error messages for Python."""

    def tell(self, message: str) -> None:
        warnings.warn(message, RfxWarning, stacklevel=2)

    def kept_by(self, position: int) -> str:
        return "categorical_features"

    def advice(self, troubles) -> list[str]:
        them = "it" if len(troubles) == 1 else "them"
        return [f"correct {them}", f"name {them} in categorical_features", f"drop {them}"]

    def _warn_of_ids(self) -> None:
        """Numbers keep the meaning of their type."""

    def _leave_out_unnamed(self) -> None:
        """No column of a data frame is ignored because of its name."""


def chosen(X, asked: Columns) -> dict[int, bool]:
    """The positions of the categorical columns of X, and whether they are explicit: given by
    `asked`, or of category type.

    Parameters
    ----------
    X : anything
        Rows.
    asked : array-like of str, int or bool, "from_dtype" or None
        Names, positions, or a mask; from_dtype: the string and category columns of a data frame;
        None: none.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    if asked is None:
        return {}
    if isinstance(asked, str):
        if asked != FROM_DTYPE:
            raise ValueError(
                f"categorical_features is {asked!r:.80}; it must be from_dtype, None, or a list of"
                " names, positions or booleans"
            )
        return _by_type(X)
    wanted = np.asarray(asked, dtype=object)
    if wanted.ndim != 1:
        raise ValueError("categorical_features must have one dimension")
    if not len(wanted):
        return {}
    if sp.issparse(X) or hasattr(X, "__dask_graph__"):
        raise ValueError(
            "categorical_features needs rows of a data frame or a dense array in memory; pass such"
            " rows, or set it to None"
        )
    width = X.shape[1] if hasattr(X, "shape") else np.asarray(X, dtype=object).shape[1]
    if all(isinstance(one, (bool, np.bool_)) for one in wanted):
        if len(wanted) != width:
            raise ValueError(
                f"categorical_features is a mask of {len(wanted)} columns, but X has {width}"
            )
        return dict.fromkeys(np.flatnonzero(wanted).tolist(), True)
    names = list(X.columns) if is_frame(X) else []
    return dict.fromkeys(sorted(_position(one, names, width) for one in wanted), True)


def _position(wanted, names: list, width: int) -> int:
    """The position of a column, by name or number."""
    if isinstance(wanted, (int, np.integer)) and not isinstance(wanted, (bool, np.bool_)):
        if 0 <= wanted < width:
            return int(wanted)
    elif wanted in names:
        return names.index(wanted)
    known = (
        f"names are {', '.join(map(str, names)):.200}"
        if names
        else f"positions are 0 to {width - 1}"
    )
    raise ValueError(
        f"categorical_features has {wanted!r:.80}, but X has no such column; its {known}"
    )


def _by_type(X) -> dict[int, bool]:
    """`chosen` by the column types of a data frame; empty for other inputs."""
    if not is_frame(X) or hasattr(X, "__dask_graph__"):
        return {}
    kinds = {place: kind_of_words(X.iloc[:, place]) for place in range(X.shape[1])}
    return {place: kind == "categories" for place, kind in kinds.items() if kind is not None}


def read(estimator, X, places: dict[int, bool], reset: bool, left_out=frozenset()) -> Table:
    """Read rows with categorical columns as a table, after scikit-learn has compared the number and
    names of the columns with those seen before, or stored them if `reset`.

    places: see `chosen`. left_out: names of columns to ignore.

    Raises
    ------
    ValueError
        For columns that are neither numeric nor among the places, and for numbers that are not
        finite.
    """
    X = X if hasattr(X, "shape") else np.array(X, dtype=object)
    if X.ndim != 2 or not X.shape[0]:
        check_array(X, dtype=None, estimator=estimator)  # refuses it
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    frame = is_frame(X)
    known = getattr(estimator, "feature_names_in_", None)
    names = [str(place + 1) for place in range(X.shape[1])] if known is None else known.tolist()
    if len(set(names)) < len(names):
        raise ValueError("X has two columns of the same name; rename one of them")
    skipped = {place for place, name in enumerate(names) if name in left_out}
    others = [place for place in range(X.shape[1]) if place not in places.keys() | skipped]
    rest = X.iloc[:, others] if frame else X[:, others]
    check_columns(rest, ADVICE)
    numbers = (
        check_array(rest, dtype=np.float64, estimator=estimator, input_name="X")
        if others
        else np.empty((X.shape[0], 0))
    )
    columns: list = [None] * X.shape[1]
    for place, column in zip(others, numbers.T):
        columns[place] = np.ascontiguousarray(column)
    for place in places.keys() | skipped:
        columns[place] = words_of(X.iloc[:, place] if frame else X[:, place])
    return Table(
        "X",
        names,
        known is not None,
        columns,
        typed=frozenset(names[place] for place in places),
        categorical=frozenset(names[place] for place, said in places.items() if said),
        for_gaps="fill it in",
    )


def encoded(estimator, X, schema: Schema):
    """X (n, width) of rows, encoded by a learnt schema."""
    if sp.issparse(X) or hasattr(X, "__dask_graph__"):
        raise ValueError(
            f"{type(estimator).__name__} was fitted to categorical columns; pass a data frame or a"
            " dense array in memory"
        )
    words = dict.fromkeys(schema.word_positions(), True)
    table = read(estimator, X, words, False, frozenset(schema.ignored))
    return schema.encode(table, targets="ignored")[0]
