"""The rows that a command scores or predicts: a data set's test part, or all rows of a file."""

import scipy.sparse

from rfx.data import load, splits, tables
from rfx.data.libsvm import svmlight
from rfx.data.loading import check_split
from rfx.data.registry import registry


def rows_for(method, source: str, reading, split=None, strict=False, targets="needed"):
    """(X, y) for a trained method: the test part of a named data set (all of it where it has none),
    or all rows of a file, with `split` its test rows by the model's seed.

    reading (Reading): what is said of a file. targets: needed, or ignored, and y is then None.
    Columns that the model never saw are left out with one warning, or refused with a DataError
    where `strict`.
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


def labelled_rows(source: str, n_inputs: int | None, reading, schema=None, letters=None):
    """(X, y, labels): the test part of a named data set (all of it where it has none), or all rows
    of a file, with their targets.

    y is numbers, or Words of numbers with a spelling of their own. labels: the words that y stands
    for, None where there are none.

    n_inputs, schema, letters: of the rows that taught what is needed, None where these do
    themselves; a table is then read as `reading` (Reading) has it. Raises DataError when a file has
    more columns than these.
    """
    if registry.has(source.partition(":")[0]):
        loaded = load(source, means=False)
        return *(
            (loaded.X_train, loaded.y_train)
            if loaded.X_test is None
            else (loaded.X_test, loaded.y_test)
        ), None
    X, y, schema = tables.written_rows(source, reading, n_inputs, schema, letters, strict=True)
    return X, y, None if schema is None else schema.labels
