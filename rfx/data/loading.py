"""Load training and test rows by name or file: the common entry point of commands and plans."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse

from rfx import numerals
from rfx.data import libsvm, registry, splits, synthetic, tables, textfiles
from rfx.data.reading import FileFormat, Reading, training_share
from rfx.data.rows import stacked
from rfx.data.tabular.schema import Schema
from rfx.data.training_table import TrainingTable
from rfx.errors import DataError, UsageError, quoted
from rfx.types import Inputs

SHARE = "80/20"  # the split of any data set or file: all its rows, split by the seed


def load(
    name_or_path,
    split=None,
    test=None,
    zero_based=False,
    offline=False,
    seed=0,
    n_train=None,
    n_test=None,
    reading=None,
    strict=False,
    task=None,
    means=True,
) -> TrainingTable:
    """Load a data set by name (downloaded if missing), a built-in one (`sphere:n=1000,d=5`), or a
    file (see `tables`).

    `split`: a paper that uses the set (`yen2014`), `80/20`, a fraction of all rows to train on
    (`0.7`), or None for the set's own test file if there is one, else 80/20; a file is split only
    if `80/20` or a fraction is requested. `test`: a name or file whose rows are the test rows
    instead. `n_train` and `n_test` draw that many of the split's rows; `seed` determines that draw,
    the split by a fraction, and the rows of a paper's split if the paper does not specify them.
    `reading` (Reading): how to read a table; `strict`: reject test rows with columns that the
    training rows lack. `task`: as requested, for numeric labels with a special spelling. `means`:
    whether columns with many categories become target means instead of one-hot columns. Raises
    UsageError for an unknown name or split, DataError if the data is unavailable or unreadable.
    """
    base, _, settings = str(name_or_path).partition(":")
    reading = replace(reading or Reading(), zero_based=zero_based or None)
    if not registry.has(base):
        loaded = _file(name_or_path, split, seed, means, reading, task)
    elif (info := registry.get(base)).own is not None:
        loaded, reading = _owned(info, split, seed, means, reading, task)
        test = info.own.test if split is test is None else test
    else:
        kind = "libsvm" if info.files else "set"
        tables.check_reading(kind, info.name, reading)
        if info.builtin:
            loaded = _builtin(info, split, settings, seed, n_train, n_test)
        elif settings:
            raise UsageError(f"{info.name} is a fixed data set without settings (got {settings!r})")
        else:
            loaded = _registered(info, split, offline, seed)
    if test is not None:
        X_test, y_test, source = _test_rows(test, loaded, offline, seed, strict, reading)
        loaded = replace(loaded, X_test=X_test, y_test=y_test, test_source=source)
    return _with_fewer_rows(loaded, n_train, n_test, seed)


def _with_fewer_rows(loaded, n_train, n_test, seed) -> TrainingTable:
    """The table with so many of its training and test rows, drawn by the seed; None: all."""
    if n_test is not None and loaded.X_test is None:
        raise UsageError(
            f"{loaded.name} has no test rows to draw {n_test} from; use --test or --split {SHARE}"
        )
    if n_train is not None:
        constraint = loaded.constraint
        if constraint is not None:
            kept = splits.draw(len(constraint), n_train, seed, 0)
            constraint = constraint.rows(kept)
        X, y = _drawn(loaded.X_train, loaded.y_train, n_train, (seed,), 0)
        loaded = replace(loaded, X_train=X, y_train=y, source=None, constraint=constraint)
    if n_test is not None:
        X_test, y_test = _drawn(loaded.X_test, loaded.y_test, n_test, (seed,), 1)
        loaded = replace(loaded, X_test=X_test, y_test=y_test, test_source=None)
    return loaded


# Files whose reading is deterministic; columns of other tables may be learnt by cross-fitting.
_PLAIN = (".libsvm", ".svm", ".svmlight", ".npy")


def is_drawn(name_or_path, split=None, test=None) -> bool:
    """Whether the seed determines which rows `load` returns, or how they are read; True if
    unknown.
    """
    base = str(name_or_path).partition(":")[0]
    if test is not None and is_drawn(test):
        return True
    if not registry.has(base):
        suffix = Path(textfiles.plain_name(base)).suffix
        return split is not None or suffix not in _PLAIN
    info = registry.get(base)
    if info.builtin or info.own is not None:
        return True
    if split in info.splits:
        return info.draws(split)
    has_test = any(entry.role == "test" for entry in info.files)
    return split is not None or not has_test


def _drawn(X: Inputs, y: np.ndarray, size: int | None, key: tuple[int, ...], role: int):
    """So many of the rows, drawn by the seeds `key`; None: all."""
    if size is None or size == len(y):
        return X, y
    # (s, role) for a single seed, and numbers that no other role uses for two
    rows = splits.draw(len(y), size, key[0], role, *key[1:])
    return X[rows], y[rows]


def check_split(name, split, names):
    """The fraction of rows to train on if the split is one, else None.

    Raises UsageError for a split that is neither a fraction nor a known name.
    """
    names = [*names, SHARE]
    if split in names:
        return None
    share = training_share(split)
    if split is not None and share is None:
        raise UsageError(
            f"{name} has no split {quoted(split)}; it has {', '.join(names)}, or a fraction of the"
            " rows to train on, such as 0.7"
        )
    return share


def _builtin(info, split, settings, seed, n_train, n_test):
    share = check_split(info.name, split, info.splits)
    if split in info.splits:
        spec = info.splits[split]
        n_train, n_test = n_train or spec.n_train, n_test or spec.n_test
    if share is not None:  # `load` draws from the parts of the split
        n_train = n_test = None
    X, y, X_test, y_test = synthetic.generate(info.name, settings, seed, n_train, n_test)
    if share is not None:
        whole, targets = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        train, test = splits.cut_share(len(targets), share, seed)
        X, y = whole[train], targets[train]
        X_test, y_test = whole[test], targets[test]
    name = f"{info.name}:{settings}" if settings else info.name
    return TrainingTable(name, split or "default", info.task, X, y, X_test, y_test, info)


def _owned(info, split, seed, means, reading, task):
    """The table of a set from a user registry, without its test rows, and how it is read."""
    if replace(reading, groups=None, time=None) != Reading():
        raise UsageError(
            f"{info.name} is a data set of {info.own.registry}, which defines how to read it; set"
            " this option there"
        )
    reading = replace(info.own.reading, groups=reading.groups, time=reading.time)
    task = task or info.task or None
    loaded = _file(info.own.train, split, seed, means, reading, task)
    named = replace(loaded, name=info.name, task=task or loaded.task, info=info)
    return named, reading


def _registered(info, split, offline, seed):
    share = check_split(info.name, split, info.splits)
    roles = {entry.role for entry in info.files}
    if split in info.splits:
        spec = info.splits[split]
        key = (spec.seed, seed) if seed else (spec.seed,)
    elif split is None and "test" in roles:
        spec, key = registry.SplitSpec(train=("train",), test=("test",)), (0,)
    else:
        whole = ("train", "test") if "test" in roles else ("train",)
        spec, key = registry.SplitSpec(pool=whole), (seed,)
    paths = registry.fetch(info.name, offline=offline, roles=spec.roles)
    parts = {}
    for role in spec.roles:
        rows = libsvm.read(paths[role], info.d)
        parts[role] = splits.relabelled(rows, info.labels)
    if spec.pool:
        whole_X, whole_y = _joined(parts, spec.pool)
        if share is None:
            train, test = splits.cut(len(whole_y), spec.n_train, spec.n_test, *key)
        else:
            train, test = splits.cut_share(len(whole_y), share, *key)
        X, y = whole_X[train], whole_y[train]
        X_test, y_test = whole_X[test], whole_y[test]
    else:
        X, y = _drawn(*_joined(parts, spec.train), spec.n_train, key, 0)
        X_test, y_test = _drawn(*_joined(parts, spec.test), spec.n_test, key, 1)
    schema = Schema(format=FileFormat("libsvm", False)) if scipy.sparse.issparse(X) else None
    return TrainingTable(
        info.name, split or "default", info.task, X, y, X_test, y_test, info, schema=schema
    )


def _joined(parts: dict[str, tuple], roles: tuple[str, ...]) -> tuple[Inputs, np.ndarray]:
    """The rows of the files of these roles."""
    if len(roles) == 1:
        return parts[roles[0]]
    inputs, targets = zip(*(parts[role] for role in roles))
    return stacked(inputs), np.concatenate(targets)


def _file(path, split, seed, means, reading, task=None) -> TrainingTable:
    """The table of a file; means: whether columns become target means."""
    if str(path) != "-" and not Path(path).exists():
        _check_known(path)
    share = check_split(str(path), split, []) or splits.FRACTION

    def cut(count, constraint):
        if constraint is None:
            return splits.cut_share(count, share, seed)
        if constraint.one:
            raise DataError(f"--split {split} {constraint.lacking()}")
        return constraint.held_out(1 - share, seed)

    learnt = tables.training_rows(
        path, reading, None if split is None else cut, task, seed if means else None
    )
    return TrainingTable(
        "stdin" if str(path) == "-" else textfiles.plain_name(path),
        "all" if split is None else split,
        learnt.schema.task() or learnt.task,
        learnt.X,
        learnt.y,
        learnt.X_test,
        learnt.y_test,
        schema=learnt.schema,
        source=learnt.source,
        test_source=learnt.test_source,
        seed=seed,
        constraint=learnt.constraint,
    )


def _check_known(name) -> None:
    """Raise DataError for a name that is neither a file's nor a data set's."""
    try:
        registry.get(str(name).partition(":")[0])
    except UsageError as error:
        raise DataError(f"{name} is not a file, and {error}") from None


def _test_rows(test, loaded, offline, seed, strict, reading):
    """(X, y, Table or None) of the rows of a file, or of the test rows of a named set (all its rows
    if it has no test file), compatible with the training rows.
    """
    X, n_features = loaded.X_train, loaded.X_train.shape[1]
    base = str(test).partition(":")[0]
    if not registry.has(base):
        if str(test) != "-" and not Path(test).exists():
            _check_known(test)
        return tables.other_table(
            test, loaded.schema, n_features, reading, libsvm.letters(X), strict
        )
    other = load(test, offline=offline, seed=seed)
    X = other.X_test
    if scipy.sparse.issparse(X):
        X = libsvm.narrowed(X, n_features, base, strict)
    return X, other.y_test, other.test_source


# ---------------------------------------------------------------------- sample weights


def read_weights(path, count: int) -> np.ndarray:
    """(count,) float64 weights.

    Raises DataError with the line number for an invalid weight, and if there are not `count` of
    them.
    """
    with textfiles.Text(path) as text:
        name = text.name
        lines = text.read().decode("utf-8", "replace").splitlines()
    weights = []
    for number, line in enumerate(lines, 1):
        weight = float(line) if numerals.is_number(line.strip()) else math.nan
        if not 0 <= weight < math.inf:
            raise DataError(
                f"{name}, line {number}: {line.strip()[:40]!r} is not a weight; weights are"
                " numbers of 0 or more, one per line"
            )
        weights.append(weight)
    if len(weights) != count:
        raise DataError(
            f"{name} has {len(weights):,} weights, but there are {count:,} training rows; there"
            " must be one per row"
        )
    return np.array(weights)
