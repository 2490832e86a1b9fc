"""The rows that a command evaluates or predicts: a data set's test rows, or all rows of a file; and
predictions as a table.
"""

import csv
import io

import numpy as np
import scipy.sparse

from rfx.data import libsvm, load, registry, splits, tables
from rfx.data.loading import check_split
from rfx.data.tabular import schema


def is_named(source: str) -> bool:
    """Whether the source is a data set of the registry, rather than a file."""
    return registry.has(source.partition(":")[0])


def _test_rows(name: str, **options):
    """(X, y): the test rows of a named data set; all rows if it has no test part."""
    split = load(name, **options)
    if split.X_test is None:
        return split.X_train, split.y_train
    return split.X_test, split.y_test


def rows_for(method, source: str, reading, split=None, strict=False, targets="needed"):
    """(X, y) for a trained method: the test rows of a named data set (all rows if it has no test
    part), or all rows of a file; with `split`, its test rows by the model's seed.

    reading (Reading): how to read the file. targets: required, or else ignored, and y is then None.
    Unseen columns are omitted with one warning, or raise a DataError if `strict`.
    """
    n_inputs, seed = method.outcome.n_inputs, method.info.get("seed", 0)
    if registry.has(source) and (own := registry.get(source).own) and split is None:
        source, reading = own.paths[-1], own.reading
    if is_named(source):
        X, y = _test_rows(source, split=split, seed=seed, task=method.task)
        if scipy.sparse.issparse(X):
            X = libsvm.narrowed(X, n_inputs, source, strict)
        return X, y
    share = check_split(source, split, [])
    X, y = tables.other_rows(
        source, method.schema, n_inputs, reading, method.letters, strict, targets
    )
    if split is None:
        return X, y
    _, test = splits.cut_share(X.shape[0], share or splits.FRACTION, seed)
    return X[test], None if y is None else y[test]


def labelled_rows(source: str, n_inputs: int | None, reading, known=None, letters=None):
    """(X, y, labels): the test rows of a named data set, or all rows of a file, with their targets.

    y is an array of numbers, or Words for numbers with a special spelling. labels: the words that
    the codes in y represent, or None.

    n_inputs, known, letters: properties learnt from other rows, or None to learn them from these; a
    table is then read as `reading` (Reading) states. Raises DataError if a file has more columns.
    """
    if is_named(source):
        return *_test_rows(source, means=False), None
    X, y, learnt = tables.written_rows(source, reading, n_inputs, known, letters, strict=True)
    return X, y, None if learnt is None else learnt.labels


def rounded(values: np.ndarray, digits: int | None) -> np.ndarray:
    """Round numbers to this many significant digits; None leaves them unchanged."""
    if digits is None:
        return values
    flat = [float(f"{value:.{digits}g}") for value in np.ravel(values)]
    return np.reshape(flat, np.shape(values))


def predictions(method, labels, shown, prefix, ids, names=None) -> str:
    """CSV text: the identifying column, predictions, and probabilities or decision values. Several
    targets have numbered columns, from 1 on.

    shown: (n,) or (n, k) numbers or None. ids: name and cells of a column, or None. names: of the
    columns of `shown`, if they are not the labels.
    """
    columns = {}
    if ids is not None:
        name, cells = ids
        columns["id_prediction" if name == "prediction" else name] = cells
    if labels.ndim == 1:
        columns["prediction"] = _cells(schema.shown(method, labels))
    else:
        for number, column in enumerate(labels.T.tolist(), 1):
            columns[f"prediction_{number}"] = _cells(column)
    if shown is not None:
        values = shown if shown.ndim == 2 else shown[:, None]
        names = _shown_names(method, labels, values.shape[1]) if names is None else names
        for name, column in zip(names, values.T.tolist()):
            title = "_".join(filter(None, (prefix, name)))
            title = f"probability_{title}" if title in columns else title
            columns[title] = _cells(column)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *zip(*columns.values())])
    return text.getvalue()


def _shown_names(method, labels, count: int) -> list[str]:
    """The names of so many columns beside the predicted labels: the numbers of targets, or the
    classes; empty for a single column.
    """
    if labels.ndim == 2:
        return [str(number) for number in range(1, labels.shape[1] + 1)]
    if method.classes is not None and len(method.classes) == count:
        return _cells(schema.shown(method, method.classes))
    return [""] * count


def _cells(values: list) -> list[str]:
    """Numbers in the shortest digits that round-trip; words unchanged."""
    if not values or isinstance(values[0], str):
        return values
    return [text.removesuffix(".0") for text in map(repr, map(float, values))]
