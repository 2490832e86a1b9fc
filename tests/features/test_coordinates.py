"""Coordinates and positional k-mers as features: against their definition, a naive count, and dense
against sparse. The best distribution within a divergence of the uniform one: optimality,
references, limits.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from chi2_bisection import chi2_by_bisection
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx import methods
from rfx.errors import DataError
from rfx.features import nystrom, sample
from rfx.features.alignment import DIVERGENCES, distance, maximise
from rfx.features.coordinates import offsets, random_order
from rfx.operators.factors import DiagonalFactor, sampled_factor
from rfx.operators.mapped import feature_matrix
from rfx.operators.matrix import DenseMatrix
from rfx.operators.sparse import SparseMatrix

ACGT = [ord(letter) for letter in "ACGT"]


@pytest.fixture(scope="module")
def sequences():
    """The codes of 30 sequences of nine letters."""
    return np.random.default_rng(0).choice(ACGT, (30, 9)).astype(float)


def naive(sequences, k):
    """(n, T), computed one by one: every word length, every position, every word."""
    texts = ["".join(chr(int(code)) for code in row) for row in sequences]
    columns = [
        [text[p : p + size] == "".join(word) for text in texts]
        for size in range(1, k + 1)
        for p in range(sequences.shape[1] - size + 1)
        for word in itertools.product("ACGT", repeat=size)
    ]
    return np.array(columns, dtype=float).T


def test_every_coordinate_once_before_any_twice():
    first = random_order(7, 0, 7, 3)
    assert sorted(first) == list(range(7)) and sorted(random_order(7, 7, 14, 3)) == list(range(7))
    np.testing.assert_array_equal(random_order(7, 3, 12, 3), random_order(7, 0, 21, 3)[3:12])
    assert not np.array_equal(first, random_order(7, 0, 7, 4))


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_features(sparse, rng):
    X = rng.standard_normal((20, 6)) * (rng.random((20, 6)) < 0.6)
    rows = sp.csr_matrix(X) if sparse else X
    whole = sample("linear", 6, 6, seed=2, dtype=np.float64)
    Z = whole.transform(rows)
    np.testing.assert_allclose(Z @ Z.T / 6, X @ X.T, atol=1e-12)
    drawn = sample("linear", 6, 15, seed=2, dtype=np.float64)
    np.testing.assert_allclose(
        drawn.transform(rows), np.sqrt(6) * X[:, drawn.arrays["columns"]], atol=1e-12
    )
    U = rng.standard_normal((20, 3))
    np.testing.assert_allclose(drawn.quick_adjoint(rows, U), drawn.transform(X).T @ U, atol=1e-10)


def test_wide_sparse_rows_are_never_dense(rng):
    X = sp.random(50, 47_236, density=1e-3, format="csr", random_state=1)
    pool = sample("linear", 47_236, 47_236, seed=0)
    U = rng.standard_normal((50, 1))
    expected = np.sqrt(47_236) * (X.T @ U)[pool.arrays["columns"]]
    np.testing.assert_allclose(pool.quick_adjoint(X, U), expected, rtol=1e-6)
    np.testing.assert_allclose(pool.select(slice(40)).transform(X), pool.transform(X)[:, :40])


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_kmers_equal_a_naive_count(k, rng, sequences):
    params = {"alphabet": ACGT, "k": k}
    expected = naive(sequences, k)
    total = offsets(9, 4, k)[-1]
    assert expected.shape[1] == total
    feature_map = sample("kmers", 9, total, seed=1, dtype=np.float64, **params)
    np.testing.assert_allclose(
        feature_map.transform(sequences),
        np.sqrt(total) * expected[:, feature_map.arrays["columns"]],
    )
    U = rng.standard_normal((30, 2))
    np.testing.assert_allclose(
        feature_map.quick_adjoint(sequences, U), feature_map.transform(sequences).T @ U, atol=1e-9
    )
    part = feature_map.select([3, 0, 3])
    np.testing.assert_allclose(
        part.transform(sequences), feature_map.transform(sequences)[:, [3, 0, 3]]
    )
    np.testing.assert_allclose(part.transform(sp.csr_matrix(sequences)), part.transform(sequences))


def test_words_longer_than_the_sequence(sequences):
    feature_map = sample("kmers", 2, 8 + 16, seed=1, dtype=np.float64, alphabet=ACGT, k=5)
    np.testing.assert_allclose(
        feature_map.transform(sequences[:, :2]),
        np.sqrt(24) * naive(sequences[:, :2], 2)[:, feature_map.arrays["columns"]],
    )


@pytest.mark.parametrize(
    "value, message",
    [
        (
            ord("N"),
            (
                "row 5 has the letter 'N' at place 3, but the letters are A, C, G, T; k-mers need"
                " --scaling none"
            ),
        ),
        (0.25, "row 5 has 0.25, which is not a letter's code, at place 3"),
        (-7, "row 5 has -7, which is not a letter's code, at place 3"),
        (1e9, "row 5 has 1e.09, which is not a letter's code, at place 3"),
    ],
)
def test_other_letters_are_refused_by_row_and_place(value, message, sequences):
    rows = sequences.copy()
    rows[4, 2] = value
    feature_map = sample("kmers", 9, 12, seed=1, alphabet=ACGT, k=2)
    with pytest.raises(DataError, match=message):
        feature_map.transform(rows)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared"])
def test_features_that_are_nearly_all_zero_are_preconditioned_by_their_diagonal(loss):
    """A dense factor of the rows would have hundreds of times their entries; the solution equals
    that of the same features as an array.
    """
    rng = np.random.default_rng(0)
    X = sp.random(400, 3000, 0.001, "csr", random_state=rng)
    y, weights = np.where(X @ rng.normal(size=3000) > 0, 1.0, -1.0), rng.uniform(0.5, 2.0, 400)
    Z = feature_matrix(sample("linear", 3000, 900, 0), X)
    dense = DenseMatrix(Z.to_array())
    assert isinstance(Z, SparseMatrix) and Z.n_entries < 2000 and dense.n_entries == 400 * 900
    found = sampled_factor(Z, weights, 0.7, 400, 100.0)
    assert isinstance(found, DiagonalFactor) and not isinstance(
        sampled_factor(dense, weights, 0.7, 400, 100.0), DiagonalFactor
    )
    np.testing.assert_allclose(dense.Z, sample("linear", 3000, 900, 0).transform(X), rtol=1e-6)
    expected = 0.7 + (weights[:, None] * Z.to_array().astype(np.float64) ** 2).sum(axis=0)
    np.testing.assert_allclose(found(np.ones((900, 2))), np.outer(1 / expected, [1, 1]), rtol=1e-6)
    ours, peer = (
        methods.create(
            "rf",
            kernel="linear",
            n_features=900,
            scaling="none",
            lam=0.1,
            tol=1e-9,
            loss=loss,
            task="binary",
        ).fit(rows, y)
        for rows in (X, X.toarray())
    )
    assert ours.info["gap"] <= 1e-9 * ours.info["objective"] and ours.info[
        "objective"
    ] == pytest.approx(peer.info["objective"], rel=1e-7)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)


@pytest.fixture(scope="module")
def problem():
    """Rows that are close together except for a few, which makes most thresholds in the range
    useless, and a pool of perceptrons.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * 0.05
    X[:15] = 2 * rng.standard_normal((15, 4))
    pool = sample("perceptron", 4, 800, 3, radius=6.0, dtype=np.float64).fit(X, "range")
    return SimpleNamespace(X=X, pool=pool)


def test_scores_are_those_of_the_definition(problem):
    X, pool = problem.X, problem.pool
    Z = pool.transform(X) / np.sqrt(800)
    inverse = np.linalg.inv(Z @ Z.T + 0.7 * np.eye(300))
    found = nystrom.scores(pool, X, 0.7)
    np.testing.assert_allclose(found, np.einsum("ij,ik,kj->j", Z, inverse, Z), rtol=1e-9)
    # the sum over all of them is the effective dimension
    assert found.sum() == pytest.approx(np.trace(Z @ Z.T @ inverse))
    single = sample("perceptron", 4, 800, 3, radius=6.0).fit(X, "range")
    np.testing.assert_allclose(nystrom.scores(single, X, 0.7), found, rtol=1e-3)


@pytest.mark.parametrize("count", [1, 7, 40, 50])
def test_chances(count):
    scores = np.concatenate([np.zeros(10), np.geomspace(1e-6, 1.0, 40)])
    chance = nystrom.inclusion(scores, count)
    assert chance.sum() == pytest.approx(count) and chance.max() <= 1.0 and chance.min() > 0
    assert np.all(np.diff(chance[10:]) >= 0)
    np.testing.assert_allclose(nystrom.inclusion(np.zeros(8), 2), 0.25)


def test_mean_product_stays(problem):
    """The mean over seeds of weighted products equals that of the pool, within Monte-Carlo
    error.
    """
    X, pool = problem.X, problem.pool
    target = pool.transform(X[:12])
    target = target @ target.T / 800
    draws = []
    for seed in range(60):
        Z = nystrom.draw(pool, X, 100, 1.0, seed).transform(X[:12])
        assert Z.shape == (12, 100)
        draws.append(Z @ Z.T / 100)
    deviation = np.std(draws, axis=0) / np.sqrt(60)
    assert np.all(np.abs(np.mean(draws, axis=0) - target) <= 5 * deviation + 1e-9)


def test_seeds_and_threads(problem, by_threads):
    X, pool = problem.X, problem.pool
    one, two = by_threads(lambda: nystrom.draw(pool, X, 50, 1.0, 1).arrays)
    other = nystrom.draw(pool, X, 50, 1.0, 2).arrays
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])
    assert not np.array_equal(one["directions"], other["directions"])


RHO = {"chi2": 3.0, "kl": 0.5, "tv": 0.4, "reverse-kl": 0.7}


def drawn(count, seed=0):
    return np.random.default_rng(seed).standard_normal(count) ** 2 * 100


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("share", [1e-4, 0.05, 1.0])
def test_optimal_by_kkt(divergence, share):
    """With f' the derivative, s_m - lam f'(N q_m) = nu where q_m > 0, and <= nu where q_m = 0; the
    constraint is active.
    """
    scores, rho = drawn(300), RHO[divergence] * share
    q = maximise(scores, rho, divergence)
    assert q.min() >= 0 and q.sum() == pytest.approx(1, abs=1e-12)
    assert distance(q, divergence) == pytest.approx(rho, rel=1e-8)
    if divergence == "tv":
        # a feature whose weight rose has the best score, and none keeps more weight than one with a
        # higher score
        assert set(np.flatnonzero(q > 1 / 300 + 1e-12)) == {scores.argmax()}
        order = np.argsort(scores)
        assert np.all(np.diff(q[order]) >= -1e-15)
        assert np.count_nonzero((q > 1e-15) & (q < 1 / 300 - 1e-12)) <= 1
        return
    slope = {
        "chi2": lambda t: 2 * t,
        "kl": lambda t: 1 + np.log(t),
        "reverse-kl": lambda t: -1 / t,
    }[divergence]
    on = q > 0
    t = slope(300 * q[on])
    # two different weights determine lam and nu; all others must agree
    a, b = t.argmax(), t.argmin()
    lam = (scores[on][a] - scores[on][b]) / (t[a] - t[b])
    nu = scores[on][a] - lam * t[a]
    assert lam > 0
    np.testing.assert_allclose(
        scores[on] - lam * t, nu, rtol=0, atol=1e-6 * np.ptp(scores) * max(1, lam / np.ptp(scores))
    )
    if not on.all():
        assert np.all(scores[~on] - lam * slope(0.0) <= nu + 1e-6 * np.ptp(scores))


@pytest.mark.parametrize(
    "count, rho", [(2, 0.3), (50, 1.0), (2000, 10.0), (2000, 1e-3), (20000, 100.0), (300, 290.0)]
)
def test_chi2_equals_the_papers_bisection(count, rho):
    for scores in (drawn(count), drawn(count) * 1e6, np.round(drawn(count))):
        np.testing.assert_allclose(
            maximise(scores, rho), chi2_by_bisection(scores, rho), rtol=0, atol=1e-10
        )


@settings(max_examples=150, deadline=None)
@given(
    scores=st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=1, max_size=40),
    rho=st.floats(0, 60) | st.sampled_from([0.0, math.inf]),
    divergence=st.sampled_from(DIVERGENCES),
    seed=st.integers(0, 99),
)
def test_any_scores(scores, rho, divergence, seed):
    """A probability vector in the ball, monotone in the score, permuted with the scores, never
    worse than uniform.
    """
    scores = np.array(scores, dtype=float)
    q = maximise(scores, rho, divergence)
    assert q.min() >= 0 and q.sum() == pytest.approx(1, abs=1e-9)
    assert distance(q, divergence) <= rho * (1 + 1e-6) + 1e-9
    assert (q @ scores) >= scores.mean() - 1e-9 * (1 + np.abs(scores).max())
    order = np.argsort(scores, kind="stable")
    assert np.all(np.diff(q[order]) >= -1e-12)
    same = np.diff(scores[order]) == 0
    assert np.all(np.abs(np.diff(q[order]))[same] <= 1e-12)
    shuffled = np.random.default_rng(seed).permutation(len(scores))
    np.testing.assert_allclose(
        maximise(scores[shuffled], rho, divergence), q[shuffled], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_ends(divergence):
    scores, best = np.array([3.0, 7.0, 1.0, 7.0, 2.0]), [0, 0.5, 0, 0.5, 0]
    np.testing.assert_array_equal(maximise(scores, 0.0, divergence), np.full(5, 0.2))
    np.testing.assert_array_equal(maximise([5.0], 1.0, divergence), [1.0])
    np.testing.assert_allclose(maximise(scores, math.inf, divergence), best, atol=1e-200)
    # the divergence of that q is the smallest rho that allows it
    least = 600.0 if divergence == "reverse-kl" else distance(np.array(best), divergence)
    assert maximise(scores, least * 0.99, divergence)[0] > 0


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("factor, shift", [(1e-150, 0.0), (1e150, 0.0), (1.0, 1e6)])
def test_scale_and_offset_of_the_scores_do_not_count(divergence, factor, shift):
    scores = np.arange(12.0) % 5
    q = maximise(scores, RHO[divergence] / 2, divergence)
    np.testing.assert_allclose(
        maximise((scores - 2) * factor + shift, RHO[divergence] / 2, divergence),
        q,
        rtol=0,
        atol=1e-9,
    )
