"""The best distribution within a divergence of the uniform one: optimality, references, limits."""

import math

import numpy as np
import pytest
from chi2_bisection import chi2_by_bisection
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx.errors import DataError
from rfx.features.alignment import DIVERGENCES, distance, maximise

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
@pytest.mark.parametrize("factor, shift", [(1e-150, 0.0), (1e150, 0.0), (1.0, 1e6), (4e307, 0.0)])
def test_scale_and_offset_of_the_scores_do_not_count(divergence, factor, shift):
    scores = np.arange(12.0) % 5
    q = maximise(scores, RHO[divergence] / 2, divergence)
    np.testing.assert_allclose(
        maximise((scores - 2) * factor + shift, RHO[divergence] / 2, divergence),
        q,
        rtol=0,
        atol=1e-9,
    )


def test_refusals():
    for scores in ([], [1.0, math.nan], [math.inf, 1.0]):
        with pytest.raises(DataError, match="one or more finite numbers"):
            maximise(scores, 1.0)
