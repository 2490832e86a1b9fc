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
        taught = replace(
            self.table,
            names=[*names, max(names, key=len) + "_"],  # a name that no column has
            columns=[*self.table.columns, Y[:, 0]],
            own_target=len(names),
        )
        learner = _Learner(Reading(missing="refuse"), task="regression").update(taught)
        titles = list(map(str, range(Y.shape[1]))) if Y.shape[1] > 1 else []
        schema, X = crossfit.fitted(learner.finish(), taught, Y, seed, titles)
        for message in crossfit.notes(schema, taught):
            learner.tell(message)
        return replace(schema, target=None, size=len(names)), X


class _Learner(Learner):
    """A Learner for columns with known types, with error messages for Python."""

    def tell(self, message: str) -> None:
        warnings.warn(message, RfxWarning, stacklevel=2)

    def kept_by(self, *positions: int) -> str:
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
    in_memory = not sp.issparse(X) and not hasattr(X, "__dask_graph__")
    if isinstance(asked, str) and asked == FROM_DTYPE:
        if not (is_frame(X) and in_memory):
            return {}
        kinds = {place: kind_of_words(X.iloc[:, place]) for place in range(X.shape[1])}
        return {place: kind == "categories" for place, kind in kinds.items() if kind is not None}
    wanted = np.asarray([] if asked is None else asked, dtype=object)
    if wanted.ndim != 1:
        raise ValueError(
            f"categorical_features is {asked!r:.80}; it must be from_dtype, None, or a list of"
            " names, positions or booleans"
        )
    if not len(wanted):
        return {}
    if not in_memory:
        raise ValueError(
            "categorical_features needs rows of a data frame or a dense array in memory; pass such"
            " rows, or set it to None"
        )
    width = X.shape[1] if hasattr(X, "shape") else np.asarray(X, dtype=object).shape[1]
    names = list(X.columns) if is_frame(X) else []
    if all(isinstance(one, (bool, np.bool_)) for one in wanted):
        if len(wanted) != width:
            raise ValueError(
                f"categorical_features is a mask of {len(wanted)} columns, but X has {width}"
            )
        wanted = np.flatnonzero(wanted)
    return dict.fromkeys(sorted(_position(one, names, width) for one in wanted), True)


def _position(wanted, names: list, width: int) -> int:
    """The position of a column, by number or name."""
    if isinstance(wanted, (int, np.integer)) and 0 <= wanted < width:
        return int(wanted)
    if wanted in names:
        return names.index(wanted)
    columns = f"names are {', '.join(map(str, names)):.200}" if names else "positions are 0 to"
    raise ValueError(
        f"categorical_features has {wanted!r:.80}, but X has no such column; its {columns}"
        + ("" if names else f" {width - 1}")
    )


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
    named = getattr(estimator, "feature_names_in_", None)
    names = [str(place + 1) for place in range(X.shape[1])] if named is None else named.tolist()
    if len(set(names)) < len(names):
        raise ValueError("X has two columns of the same name; rename one of them")
    words = {place for place, name in enumerate(names) if place in places or name in left_out}
    others = [place for place in range(X.shape[1]) if place not in words]
    columns_at = X.iloc.__getitem__ if is_frame(X) else X.__getitem__
    columns: list = [None] * X.shape[1]
    if others:
        rest = columns_at((slice(None), others))
        check_columns(rest, ADVICE)
        rest = check_array(rest, dtype=np.float64, estimator=estimator, input_name="X")
        for place, column in zip(others, rest.T):
            columns[place] = np.ascontiguousarray(column)
    for place in words:
        columns[place] = words_of(columns_at((slice(None), place)))
    return Table(
        "X",
        names,
        named is not None,
        columns,
        typed=frozenset(names[place] for place in places),
        categorical=frozenset(names[place] for place, explicit in places.items() if explicit),
        for_gaps="fill it in",
    )


def encoded(estimator, X, schema: Schema):
    """X (n, width) of rows, encoded by a learnt schema."""
    if sp.issparse(X) or hasattr(X, "__dask_graph__"):
        raise ValueError(
            f"{type(estimator).__name__} was fitted to categorical columns; pass a data frame or a"
            " dense array in memory"
        )
    words = {column.position: True for column in schema.columns if column.is_text()}
    table = read(estimator, X, words, False, frozenset(schema.ignored))
    return schema.encode(table, targets="ignored")[0]
