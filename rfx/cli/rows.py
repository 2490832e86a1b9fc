"""The rows that a command evaluates or predicts: a data set's test rows, or all rows of a file; and
predictions as a table.
"""

import csv
import io

import numpy as np
import scipy.sparse

from rfx.data import load, splits, tables
from rfx.data.libsvm import svmlight
from rfx.data.loading import check_split
from rfx.data.registry import registry
from rfx.data.tabular import schema
from rfx.errors import UsageError


def rows_for(method, source: str, reading, split=None, strict=False, targets="needed"):
    """(X, y) for a trained method: the test rows of a named data set (all rows if it has no test
    part), or all rows of a file; with `split`, its test rows by the model's seed.

    reading (Reading): how to read the file. targets: required, or else ignored, and y is then None.
    Unseen columns are omitted with one warning, or raise a DataError if `strict`.
    """
    n_inputs = method.info["n_inputs"]
    if registry.has(source) and (own := registry.get(source).own) and split is None:
        source, reading = own.paths[-1], own.reading
    if not registry.has(source.partition(":")[0]):
        share = check_split(source, split, [])
        X, y = tables.other_rows(
            source, method.schema, n_inputs, reading, method.letters, strict, targets
        )
        if split is None:
            return X, y
        seed = method.info.get("seed", 0)
        _, test = splits.cut_share(X.shape[0], share or splits.FRACTION, seed)
        return X[test], None if y is None else y[test]
    loaded = load(source, split=split, seed=method.info.get("seed", 0), task=method.task)
    X, y = (
        (loaded.X_train, loaded.y_train)
        if loaded.X_test is None
        else (loaded.X_test, loaded.y_test)
    )
    return (svmlight.narrowed(X, n_inputs, source, strict) if scipy.sparse.issparse(X) else X), y


def identified_rows(method, source: str, identify: str, reading, strict=False):
    """(X, name, cells): all rows of a table for a trained method, and its identifying column."""
    if registry.has(source.partition(":")[0]):
        raise UsageError(f"--id is for tables, but {source} is a named data set")
    return tables.identified_rows(source, method.schema, identify, reading, strict)


def labelled_rows(source: str, n_inputs: int | None, reading, known=None, letters=None):
    """(X, y, labels): the test rows of a named data set (all rows if it has no test part), or all
    rows of a file, with their targets.

    y is an array of numbers, or Words for numbers with a special spelling. labels: the words that
    the codes in y represent, or None.

    n_inputs, known, letters: properties learnt from other rows, or None to learn them from these; a
    table is then read as `reading` (Reading) states. Raises DataError if a file has more columns.
    """
    if registry.has(source.partition(":")[0]):
        loaded = load(source, means=False)
        return *(
            (loaded.X_train, loaded.y_train)
            if loaded.X_test is None
            else (loaded.X_test, loaded.y_test)
        ), None
    X, y, found = tables.written_rows(source, reading, n_inputs, known, letters, strict=True)
    return X, y, None if found is None else found.labels


def rounded(values: np.ndarray, digits: int | None) -> np.ndarray:
    """Round numbers to this many significant digits; None leaves them unchanged."""
    if digits is None:
        return values
    flat = [float(f"{value:.{digits}g}") for value in np.ravel(values)]
    return np.reshape(flat, np.shape(values))


def predictions(method, labels, shown, prefix, ids) -> str:
    """CSV text: the identifying column, predictions, and probabilities or decision values.

    shown: (n,) or (n, k) numbers or None. ids: name and cells of a column, or None.
    """
    identifier = ids and (f"id_{ids[0]}" if ids[0] == "prediction" else ids[0])
    header, columns = ["prediction"], [_cells(schema.shown(method, labels))]
    if shown is not None:
        values = shown if shown.ndim == 2 else shown[:, None]
        many = method.classes is not None and values.shape[1] == len(method.classes)
        own = _cells(schema.shown(method, method.classes)) if many else [""] * values.shape[1]
        titles = ["_".join(filter(None, (prefix, name))) for name in own]
        header += [
            f"probability_{title}" if title in ("prediction", identifier) else title
            for title in titles
        ]
        columns += [_cells(column) for column in values.T.tolist()]
    if ids is not None:
        header, columns = [identifier, *header], [ids[1], *columns]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns))
    return text.getvalue()


def _cells(values: list) -> list[str]:
    """Numbers in the shortest digits that round-trip; words unchanged."""
    if not values or isinstance(values[0], str):
        return values
    return [text.removesuffix(".0") for text in map(repr, map(float, values))]
