"""The rows that a command scores or predicts: a data set's test part, or all rows of a file."""

from rfx.data import load, registry, svmlight


def labelled_rows(source: str, split: str | None, zero_based: bool, n_inputs: int | None, seed: int = 0, letters=None):
    """(X, y): the test part of a named data set (all of it where it has none), or all rows of a file.

    letters: those that sequences may have, None for all. Raises DataError when a file has more features than the model's n_inputs.
    """
    if registry.has(source.partition(":")[0]):
        loaded = load(source, split=split, seed=seed)
        return (loaded.X_train, loaded.y_train) if loaded.X_test is None else (loaded.X_test, loaded.y_test)
    return svmlight.read(source, n_features=n_inputs, zero_based=zero_based, letters=letters)
