"""Built-in data: the papers' formulas for any size and seed, synthetic sets with the sizes of real
ones, scikit-learn's bundled sets.
"""

import numpy as np
import pytest

from rfx.data import load, registry, splits, synthetic
from rfx.errors import UsageError

PROBLEMS = ["sphere", "linear-selection", "motifs", "ripple", "covtype-sized", "yearpred-sized"]


def test_sphere():
    data = load("sphere:n=3000,n_test=500,d=5,seed=1")
    assert (
        data.X_train.shape == (3000, 5) and data.X_test.shape == (500, 5) and data.task == "binary"
    )
    np.testing.assert_array_equal(
        data.y_train, np.sign(np.linalg.norm(data.X_train, axis=1) - np.sqrt(5))
    )
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(np.cov(data.X_train.T), np.eye(5), atol=0.1)


def test_ripple():
    data = load("ripple:n=20000,n_test=100")
    X, y = data.X_train, data.y_train
    assert X.shape == (20000, 2) and data.task == "regression" and np.abs(X).max() <= 5
    radius = np.linalg.norm(X, axis=1)
    noise = y - np.cos(0.5 * np.pi * radius) * np.exp(-0.1 * np.pi * radius)
    assert abs(noise.mean()) < 0.005 and abs(noise.std() - 0.1) < 0.005
    np.testing.assert_allclose(X.var(axis=0), 100 / 12, rtol=0.05)


def test_linear_selection():
    data = load("linear-selection:n=4000,n_test=50,d=100")
    X, y = data.X_train, data.y_train
    assert X.shape == (4000, 100)
    scores = np.abs(X.T @ y)
    assert set(np.argsort(scores)[-10:]) == set(range(10))  # only the first tenth matters
    assert ((X[:, :10].sum(axis=1) > 0) == (y > 0)).mean() > 0.9


def test_motifs():
    data = load("motifs:n=3000,n_test=500,seed=3")
    assert data.X_train.shape == (3000, 81) and data.task == "binary"
    assert (
        set(np.unique(data.X_train)) == set(map(float, b"ACGT"))
        and abs(np.mean(data.y_train)) < 0.1
    )
    words = synthetic._planted_words(splits.generator(3, synthetic._NO_ROLE), 81)
    assert len(words) == 6
    for place, word in words:
        found = (data.X_train[:, place : place + len(word)] == list(word.encode())).all(axis=1)
        assert abs(found[data.y_train > 0].mean() - 0.5) < 0.1
        assert found[data.y_train < 0].mean() < 0.1
    assert len(synthetic._planted_words(splits.generator(0, synthetic._NO_ROLE), 3)) == 1 and load(
        "motifs:n=20,n_test=5,d=3"
    ).X_train.shape == (20, 3)


def test_default_sizes_are_the_registrys():
    for name in PROBLEMS:
        problem, info = synthetic._PROBLEMS[name], registry.get(name)
        assert (problem.n + problem.n_test, problem.d) == (info.n, info.d)
        for spec in info.splits.values():
            assert (problem.n, problem.n_test) == (spec.n_train, spec.n_test)


@pytest.mark.parametrize("name", PROBLEMS)
def test_seed_and_size(name):
    first, again = load(f"{name}:n=1500,n_test=40"), load(f"{name}:n=1500,n_test=40")
    longer, other = load(f"{name}:n=2500,n_test=50"), load(f"{name}:n=1500,n_test=40,seed=1")
    assert first.name == f"{name}:n=1500,n_test=40" and first.X_train.shape == (1500, first.info.d)
    for rows in ("X_train", "y_train", "X_test", "y_test"):
        np.testing.assert_array_equal(getattr(first, rows), getattr(again, rows))
        np.testing.assert_array_equal(
            getattr(first, rows), getattr(longer, rows)[: len(getattr(first, rows))]
        )
    assert not np.array_equal(first.X_train, other.X_train)
    assert not np.array_equal(first.X_train[:40], first.X_test)
    by_argument = load(name, seed=1, n_train=1500, n_test=40)
    np.testing.assert_array_equal(by_argument.X_train, other.X_train)
    np.testing.assert_array_equal(by_argument.y_test, other.y_test)


@pytest.mark.parametrize(
    "name, shape, task",
    [
        ("digits", (1797, 64), "multiclass"),
        ("breast_cancer", (569, 30), "binary"),
        ("diabetes-sklearn", (442, 10), "regression"),
    ],
)
def test_bundled_sets(name, shape, task):
    data, again = load(name), load(name, seed=9)
    assert data.task == task and data.X_train.dtype == data.y_train.dtype == np.float64
    assert len(data.y_train) + len(data.y_test) == shape[0] and data.X_train.shape[1] == shape[1]
    assert len(data.y_test) == round(0.2 * shape[0])
    np.testing.assert_array_equal(data.X_test, again.X_test)  # one split, for any seed
    assert load(name, n_train=50, n_test=20).X_train.shape == (50, shape[1])


@pytest.mark.parametrize(
    "spec, message",
    [
        ("sphere:k=3", "sphere has no setting 'k'; it has d, n, n_test, seed"),
        ("ripple:d=3", "ripple has no setting 'd'"),
        ("digits:n=30", "digits has no setting 'n'; it has seed"),
        ("sphere:n=0", "n must be a whole number from 1 to 1,000,000,000,000, not '0'"),
        ("sphere:n", "n must be a whole number from 1 to 1,000,000,000,000, not ''"),
        ("sphere:d=2.5", "d must be a whole number"),
        ("sphere:seed=-1", "seed must be a whole number from 0 to"),
        ("spher:n=3", "did you mean sphere"),
    ],
)
def test_refusals(spec, message):
    with pytest.raises(UsageError, match=message):
        load(spec)
