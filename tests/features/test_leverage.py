"""Features drawn by leverage: the scores, the probabilities, and that the mean product is
unchanged.
"""

import numpy as np
import pytest

from rfx import env
from rfx.features import leverage, sample


@pytest.fixture(scope="module")
def problem():
    """Rows that are close together except for a few, which makes most thresholds in the range
    useless, and a pool of perceptrons.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * 0.05
    X[:15] = 2 * rng.standard_normal((15, 4))
    return X, sample("perceptron", 4, 800, 3, radius=6.0, dtype=np.float64).fit(X, "range")


def test_scores_are_those_of_the_definition(problem):
    X, pool = problem
    Z = pool.transform(X) / np.sqrt(800)
    inverse = np.linalg.inv(Z @ Z.T + 0.7 * np.eye(300))
    found = leverage.scores(pool, X, 0.7)
    np.testing.assert_allclose(found, np.einsum("ij,ik,kj->j", Z, inverse, Z), rtol=1e-9)
    # the sum over all of them is the effective dimension
    assert found.sum() == pytest.approx(np.trace(Z @ Z.T @ inverse))
    single = sample("perceptron", 4, 800, 3, radius=6.0).fit(X, "range")
    np.testing.assert_allclose(leverage.scores(single, X, 0.7), found, rtol=1e-3)


@pytest.mark.parametrize("count", [1, 7, 40, 50])
def test_chances(count):
    scores = np.concatenate([np.zeros(10), np.geomspace(1e-6, 1.0, 40)])
    chance = leverage.inclusion(scores, count)
    assert chance.sum() == pytest.approx(count) and chance.max() <= 1.0 and chance.min() > 0
    assert np.all(np.diff(chance[10:]) >= 0)
    np.testing.assert_allclose(leverage.inclusion(np.zeros(8), 2), 0.25)


def test_mean_product_stays(problem):
    """The mean over seeds of weighted products equals that of the pool, within Monte-Carlo
    error.
    """
    X, pool = problem
    target = pool.transform(X[:12])
    target = target @ target.T / 800
    draws = []
    for seed in range(150):
        Z = leverage.draw(pool, X, 100, 1.0, seed).transform(X[:12])
        assert Z.shape == (12, 100)
        draws.append(Z @ Z.T / 100)
    deviation = np.std(draws, axis=0) / np.sqrt(150)
    assert np.all(np.abs(np.mean(draws, axis=0) - target) <= 5 * deviation + 1e-9)


def test_the_kernel_machine_of_the_pool_is_closer_than_by_plain_sampling(problem):
    """Smoothed targets: K (K + lam)^-1 by 100 features drawn by leverage, against the first 100 of
    the pool.
    """
    X, pool = problem

    def smoother(feature_map):
        Z = feature_map.transform(X) / np.sqrt(feature_map.n_features)
        K = Z @ Z.T
        return K @ np.linalg.inv(K + 0.1 * np.eye(300))

    whole = smoother(pool)
    errors = [
        [
            np.linalg.norm(smoother(part) - whole)
            for part in (
                leverage.draw(pool, X, 100, 0.1, seed),
                pool.select(np.arange(100) + 100 * seed),
            )
        ]
        for seed in range(8)
    ]
    assert np.mean(errors, axis=0)[0] < 0.1 * np.mean(errors, axis=0)[1]


def test_seeds_and_threads(problem):
    X, pool = problem
    maps = []
    for seed, threads in ((1, 1), (1, 2), (2, 2)):
        env.set_threads(threads)
        maps.append(leverage.draw(pool, X, 50, 1.0, seed))
    for name, values in maps[0].arrays.items():
        np.testing.assert_array_equal(values, maps[1].arrays[name])
    assert not np.array_equal(maps[0].arrays["directions"], maps[2].arrays["directions"])
