"""Data without downloads: the papers' synthetic problems, shape-alikes of large sets, and
scikit-learn's bundled sets.

A name may include settings: `sphere:n=1000,n_test=500,d=5,seed=1`. Training and test rows come from
separate streams, in chunks with one stream each, so that a longer set begins with the shorter one
and nothing depends on memory.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rfx import lazy
from rfx.data import splits
from rfx.errors import UsageError

_CHUNK_ROWS = 1024
_NO_ROLE = 9  # the stream of data shared by training and test rows: weights, mixtures


def _product(A, B):
    """A @ B without BLAS, whose sums depend on its version and threads: data must be the same on
    every machine.
    """
    return np.einsum("ik,kj->ij", A, B, optimize=False)


def _sphere(rng, shared, n, d):
    """Sinha & Duchi 2016, "learning a kernel": the label states on which side of a sphere x
    lies.
    """
    X = rng.standard_normal((n, d))
    radius = np.linalg.norm(X, axis=1)
    return X, np.where(radius >= math.sqrt(d), 1.0, -1.0)


def _ripple(rng, shared, n, d):
    """Dai et al. 2014, the synthetic problem of the appendix: a wave around the origin of
    the plane.
    """
    X = rng.uniform(-5, 5, (n, d))
    radius = np.linalg.norm(X, axis=1)
    wave = np.cos(0.5 * np.pi * radius) * np.exp(-0.1 * np.pi * radius)
    return X, wave + 0.1 * rng.standard_normal(n)


def _linear_selection(rng, shared, n, d):
    """Sinha & Duchi 2016, example 2: the first tenth of the inputs determine the label, the others
    hardly matter.
    """
    v = 0.05 * shared.standard_normal(d)
    v[: max(1, d // 10)] = 1
    X = rng.standard_normal((n, d))
    side = _product(X, v[:, None])[:, 0]
    return X, np.where(side >= 0, 1.0, -1.0)


def _motifs(rng, shared, n, d):
    """Sequences of d letters of ACGT, as codes, similar to Sinha & Duchi 2016's aptamers: each of
    the planted words occurs at its position in half of the sequences of class +1; one label in
    twenty is wrong."""
    letters = np.frombuffer(b"ACGT", np.uint8)
    X = letters[rng.integers(0, 4, (n, d))].astype(np.float64)
    bound = rng.random(n) < 0.5
    words = _planted_words(shared, d)
    drawn = rng.random((n, len(words))) < 0.5
    planted = bound[:, None] & drawn
    for (place, word), rows in zip(words, planted.T):
        end = place + len(word)
        X[rows, place:end] = np.frombuffer(word.encode(), np.uint8)
    wrong = rng.random(n) < 0.05
    return X, np.where(bound ^ wrong, 1.0, -1.0)


def _planted_words(shared, d):
    n_places = max(1, d // 6)
    count = min(6, n_places)
    chosen = shared.permutation(n_places)[:count]
    places = np.sort(chosen) * 6
    lengths = np.minimum(shared.integers(3, 6, count), d)
    words = []
    for place, size in zip(places, lengths):
        letters = ["ACGT"[code] for code in shared.integers(0, 4, size)]
        words.append((int(place), "".join(letters)))
    return words


def _covtype_sized(rng, shared, n, d):
    """Ten numbers and two one-hot groups (4 and 40 inputs), with classes from overlapping clusters:
    learnable, but not real.
    """
    centres = shared.standard_normal((64, 10)) * 2
    areas = shared.integers(0, 4, 64)
    soils = shared.integers(0, 40, 64)
    classes = shared.permutation(64) % 2
    cluster, numbers = rng.integers(0, 64, n), np.arange(n)
    X = np.zeros((n, d), np.float32)
    X[:, :10] = centres[cluster] + rng.standard_normal((n, 10))
    X[numbers, 10 + areas[cluster]] = 1
    usual = rng.random(n) < 0.7
    soil = np.where(usual, soils[cluster], rng.integers(0, 40, n))
    X[numbers, 14 + soil] = 1
    wrong = rng.random(n) < 0.04
    return X, np.where(classes[cluster] ^ wrong, 2.0, 1.0)


def _yearpred_sized(rng, shared, n, d):
    """Ninety correlated inputs from a dozen hidden causes; a skewed integer target from 1922 to
    2011.
    """
    mixing = shared.standard_normal((12, d)) / math.sqrt(12)
    weights = shared.standard_normal((12, 2))
    hidden = rng.standard_normal((n, 12))
    noise = 0.3 * rng.standard_normal((n, d))
    X = _product(hidden, mixing) + noise
    first, second = _product(hidden, weights).T
    bend = np.sin(first) + 0.3 * second
    age = np.exp(0.5 * (bend + 0.4 * rng.standard_normal(n)))
    years = np.round(2004 - 9 * age)
    return X.astype(np.float32), np.clip(years, 1922, 2011)


@dataclass(frozen=True)
class _Problem:
    make: Callable[..., tuple[np.ndarray, np.ndarray]]
    n: int
    n_test: int
    d: int
    fixed_d: bool = False  # the problem is defined only in this many dimensions
    dtype: type = np.float64


_PROBLEMS = {
    "sphere": _Problem(_sphere, 10_000, 1_000, 10),
    "linear-selection": _Problem(_linear_selection, 10_000, 1_000, 1_000),
    "motifs": _Problem(_motifs, 2_900, 1_000, 81),
    "ripple": _Problem(_ripple, 10_000, 1_000, 2, True),
    "covtype-sized": _Problem(_covtype_sized, 464_810, 116_202, 54, True, np.float32),
    "yearpred-sized": _Problem(_yearpred_sized, 463_715, 51_630, 90, True, np.float32),
}
_BUNDLED = {
    "digits": "load_digits",
    "breast_cancer": "load_breast_cancer",
    "diabetes-sklearn": "load_diabetes",
}


def names() -> list[str]:
    return [*_PROBLEMS, *_BUNDLED]


def _settings(name: str, text: str) -> dict[str, int]:
    least = _least_settings(name)
    values = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, _, value = part.partition("=")
        if key not in least:
            known = ", ".join(sorted(least))
            raise UsageError(f"{name} has no setting {key!r}; it has {known}")
        if not value.isdecimal() or int(value) < least[key]:
            raise UsageError(
                f"{name}: {key} must be a whole number of {least[key]} or more, not {value!r:.60}"
            )
        values[key] = int(value)
    return values


def _least_settings(name: str) -> dict[str, int]:
    """The settings of a built-in set, and the smallest value of each."""
    problem = _PROBLEMS.get(name)
    if problem is None:
        return {"seed": 0}
    sizes = {"seed": 0, "n": 1, "n_test": 1}
    return sizes if problem.fixed_d else sizes | {"d": 1}


def generate(name, settings="", seed=0, n_train=None, n_test=None):
    """Generate (X_train, y_train, X_test, y_test) of a built-in set.

    `settings` is the part of the name after the colon; it overrides `seed`, `n_train` and `n_test`.
    X is dense, (n, d) float64, float32 for the shape-alikes; y is float64 (n,). The bundled sets
    have a fixed, seeded 80/20 split, from which `n_train` and `n_test` rows are drawn. UsageError
    for a setting that is unknown or out of range.
    """
    values = _settings(name, settings)
    seed = values.get("seed", seed)
    if name in _BUNDLED:
        return _bundled(name, seed, n_train, n_test)
    problem = _PROBLEMS[name]
    d = values.get("d", problem.d)
    n_train = values.get("n", n_train or problem.n)
    n_test = values.get("n_test", n_test or problem.n_test)
    return *_rows(problem, n_train, d, seed, 0), *_rows(problem, n_test, d, seed, 1)


def _rows(problem: _Problem, n: int, d: int, seed: int, role: int) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) and y (n,) of the training rows, role 0, or the test rows, role 1."""
    X: np.ndarray = np.empty((n, d), problem.dtype)
    y = np.empty(n)
    for number, start in enumerate(range(0, n, _CHUNK_ROWS)):
        stop = min(n, start + _CHUNK_ROWS)
        rng = splits.generator(seed, role, number)
        shared = splits.generator(seed, _NO_ROLE)
        # Always a whole chunk, so that its rows do not depend on the size of the set.
        chunk, targets = problem.make(rng, shared, _CHUNK_ROWS, d)
        X[start:stop] = chunk[: stop - start]
        y[start:stop] = targets[: stop - start]
    return X, y


def _bundled(name, seed, n_train, n_test):
    load_set = getattr(lazy.sklearn_datasets, _BUNDLED[name])
    X, y = load_set(return_X_y=True)
    train, test = splits.cut(len(y), None, None, 0)
    train = train[splits.draw(len(train), n_train, seed, 0)]
    test = test[splits.draw(len(test), n_test, seed, 1)]
    X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
    return X[train], y[train], X[test], y[test]
