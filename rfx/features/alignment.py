"""Learn a kernel: a distribution over a pool of random features (Sinha and Duchi 2016)."""

import math

import numpy as np

from rfx import lazy
from rfx.data.rows import total
from rfx.data.transforms import as_floats
from rfx.features.random import uniform_numbers
from rfx.operators.mapped import MapMatrix

# ----------------------------------------------------------------------
# The alignment of each feature of a pool with the targets: the scores for learning a kernel.
#
# s_m = (sum_i y_i phi_m(x_i))^2 is the alignment with the targets, sum_ij K(x_i, x_j) y_i y_j, of
# the kernel with only feature m; that of a mixture q of features is q.s (Sinha and Duchi 2016,
# equations 5 and 8).

_FEATURES = 8192
_VALUES = 2**21


def scores(pool, X, Y, centred: bool = False) -> np.ndarray:
    """(M,) float64 scores of the M features of the map `pool`, over the rows X (n, d), array or
    CSR; summed over outputs.

    Y: (n, k) targets, labels -1 and 1 for classes, one column for each class against the rest.
    centred: minus their means, required for targets far from zero. Features are computed a few
    megabytes at a time.
    """
    Y = as_floats(Y)
    U = Y - Y.mean(axis=0) if centred else Y
    return np.square(total(X, _sums, pool, U)).sum(axis=1)


def _sums(pool, X, U):
    """(M, k) sums over the rows of u_i phi(x_i)."""
    quick = pool.quick_adjoint(X, U)
    if quick is not None:
        return quick
    sums = np.empty((pool.n_features, U.shape[1]))
    for start in range(0, pool.n_features, _FEATURES):
        part = pool
        if pool.n_features > _FEATURES:
            part = pool.select(slice(start, start + _FEATURES))
        matrix = MapMatrix(part, X, block=max(64, _VALUES // part.n_features))
        own = sums[start : start + part.n_features]
        # one output is summed as it is read; several use a product
        if U.shape[1] == 1:
            own[:, 0] = matrix.rmatvec(U[:, 0])
        else:
            own[:] = matrix.rmatvec(U)
    return sums


# ----------------------------------------------------------------------
# The distribution over a pool of features that maximises the mean score near the uniform
# distribution.
#
# max_q sum_m q_m s_m over probabilities q with D_f(q || 1/N) <= rho (Sinha and Duchi 2016, equation
# 5). D_f(q || u) = 1/N sum_m f(N q_m), with natural logarithms:
#
# chi2 f(t) = t^2 - 1 N ||q - u||^2 at most N - 1 kl f(t) = t log t sum_m q_m log(N q_m) at most log
# N tv f(t) = |t - 1| / 2 1/2 sum_m |q_m - 1/N| at most 1 - 1/N reverse-kl f(t) = -log t 1/N sum_m
# log(1 / (N q_m)) no bound: none gets zero
#
# Equal scores get equal weight. If rho allows it, all weight is on the best score, equally
# distributed over ties.

DIVERGENCES = ("chi2", "kl", "tv", "reverse-kl")
# The divergence of a smaller change of the weights is a rounding error.
_LEAST_RHO = 1e-10
# Smallest gap, in units of the scores' range, between the largest score and the multiplier of the
# reverse divergence.
_LEAST_GAP = 1e-290


def maximise(scores, rho: float, divergence: str = "chi2") -> np.ndarray:
    """The q (N,) float64 that maximises q.scores over probabilities with D_f(q || 1/N) <= rho.

    scores: (N,) numbers, N at least 1; q is nan if they are not finite. rho: a number from 0 (q is
    uniform) to infinity. divergence: one of DIVERGENCES.
    """
    scores = np.asarray(scores, dtype=np.float64)
    # distance below the best, in [0, 1]: invariant to the scores' offset and scale, and hardly
    # affected by rounding
    best = scores.max()
    count = scores.size
    spread = best - scores.min()
    if not np.isfinite(spread):
        return np.full(count, np.nan)
    if spread == 0 or rho <= _LEAST_RHO:
        return np.full(count, 1 / count)
    below = (best - scores) / spread
    top = below == 0
    ties = int(np.count_nonzero(top))
    if rho >= _largest_divergence(divergence, count, ties):
        return top / ties
    solve = {"chi2": _chi2, "kl": _kl, "tv": _tv, "reverse-kl": _reverse_kl}[divergence]
    q = solve(below, rho)
    return q / q.sum()


def _largest_divergence(divergence: str, count: int, ties: int) -> float:
    """That of the distribution with all weight on the `ties` best of `count` features."""
    if divergence == "chi2":
        return count / ties - 1
    if divergence == "kl":
        return math.log(count / ties)
    if divergence == "tv":
        return 1 - ties / count
    return math.inf


def distance(q, divergence: str = "chi2") -> float:
    """D_f(q || 1/N) of the probabilities q (N,)."""
    q = np.asarray(q, dtype=np.float64)
    excess = q.size * q - 1
    if divergence == "chi2":
        return float(np.mean(excess**2))
    if divergence == "tv":
        return float(np.mean(np.abs(excess)) / 2)
    # both with a zero-mean term, so that no part is negative
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(q.size * q)
        if divergence == "reverse-kl":
            return float(np.mean(excess - logs))
        terms = np.where(q > 0, (1 + excess) * logs, 0.0)
        return float(np.mean(terms - excess))


def _chi2(below, rho):
    """With one sort. On a support of the k best, q_m = (mean_k - below_m) / lam + 1/k, and q_m = 0
    on the others.

    At the multiplier lam where the support grows from k to k + 1, the (k+1)-th weight is zero, and
    the divergence decreases as lam grows: so k is found by bisection over the divergences at these
    points, and lam then from the constraint.
    """
    count = below.size
    order = np.sort(below)
    sums = np.cumsum(order)
    squares = np.cumsum(order**2)

    def far(k):
        """Whether the constraint is violated already when the k best share all weight and the next
        has none.
        """
        mean = sums[k - 1] / k
        lam = k * (order[k] - mean)
        if lam <= 0:
            return True
        spread = squares[k - 1] - k * mean**2
        return spread / lam**2 + 1 / k - 1 / count > rho / count

    low, high = 1, count  # bounds of the size of the support
    while low < high:
        middle = (low + high) // 2
        if far(middle):
            low = middle + 1
        else:
            high = middle
    support = order[:low]
    mean = support.mean()
    room = rho / count + 1 / count - 1 / low
    lam = math.sqrt(np.sum((support - mean) ** 2) / room)
    return np.maximum(0.0, (mean - below) / lam + 1 / low)


def _kl(below, rho):
    """q_m proportional to exp(-below_m / lam), with lam by a bracketing search."""
    # the divergence of such a q is at most 1 / (8 lam^2), because the range is 1
    high = -0.5 * math.log(8 * rho)
    return _by_root(lambda log_lam: np.exp(-below / math.exp(log_lam)), "kl", rho, high)


def _reverse_kl(below, rho):
    """q_m proportional to 1 / (gap + below_m), with gap > 0 by a bracketing search."""
    # the divergence is at most 1 / (2 gap)
    high = -math.log(2 * rho)
    least = math.log(_LEAST_GAP)
    return _by_root(lambda t: 1 / (math.exp(t) + below), "reverse-kl", rho, high, least)


def _by_root(relative, divergence, rho, high, least=-math.inf):
    """The q proportional to relative(t) with that divergence, for t as in `_root`."""

    def weights(t):
        q = relative(t)
        return q / q.sum()

    return weights(_root(lambda t: distance(weights(t), divergence), rho, high, least))


def _root(function, target, high, least=-math.inf):
    """t <= high with function(t) = target for a decreasing positive function with function(high) <=
    target; at least `least`.

    Rounding is towards the side where the constraint holds."""
    high = max(high, least)
    step, low = 1.0, high
    while function(low) < target:
        if low == least:
            return least
        high = low
        low = max(least, low - step)
        step = 2 * step
    if low == high:
        return high

    def log_ratio(t):
        return math.log(function(t) / target)

    return lazy.optimize.brentq(log_ratio, low, high, xtol=1e-14, rtol=1e-14)


def _tv(below, rho):
    """The worst scores transfer their weight, rho in total, to the best; if equal ones need not
    transfer all, each transfers the same.
    """
    count = below.size
    values, where, sizes = np.unique(below, return_inverse=True, return_counts=True)
    weights = sizes / count
    # the total available from worse groups
    from_here = np.cumsum(weights[::-1])[::-1]
    behind = np.append(from_here[1:], 0.0)
    moved = np.clip(rho - behind, 0.0, weights)
    left = weights - moved
    left[0] = weights[0] + rho
    return (left / sizes)[where]


# ----------------------------------------------------------------------
# The optimal distribution over a pool for given weights: one step of learning features and weights
# together.
#
# Over weights w of unscaled features, the penalty lam/2 sum_m w_m^2 / q_m is jointly convex in w
# and q: with w fixed, q minimises the sum of w_m^2 / q_m within the chi-square ball; with q fixed,
# w is the solution with features q_m^(1/2) phi_m.

_STEPS = 100


def best_distribution(w, rho: float) -> np.ndarray:
    """The q (N,) that minimises the sum of w_m^2 / q_m over probabilities with N ||q - 1/N||^2 <=
    rho.

    w: (N,) weights, not all zero. Without the ball q is proportional to |w|; if that is outside,
    every q_m > 0 solves lam q^3 + mu q^2 = w^2, with lam from the ball and mu from the sum.
    """
    sizes = np.abs(np.asarray(w, dtype=np.float64))
    sizes = sizes / sizes.sum()
    if rho <= 0:
        return np.full(sizes.size, 1 / sizes.size)
    if distance(sizes) <= rho:
        return sizes

    def found(log_lam):
        lam = math.exp(log_lam)

        def excess(mu):
            return _roots(sizes, lam, mu).sum() - 1

        # at -lam each term alone is one or more; at 1 each is at most its size
        mu = lazy.optimize.brentq(excess, -lam, 1.0, xtol=1e-15, rtol=1e-14)
        q = _roots(sizes, lam, mu)
        return q / q.sum()

    def outside(log_lam):
        return distance(found(log_lam)) - rho

    low = high = math.log(1 / sizes.size)
    while outside(high) > 0:
        high += 2
    while outside(low) <= 0:
        low -= 2
    return found(lazy.optimize.brentq(outside, low, high, xtol=1e-12))


def _roots(sizes, lam, mu):
    """The largest q >= 0 of each lam q^3 + mu q^2 = size^2, by Newton's method from the right,
    where the cubic is convex.
    """
    floor = max(0.0, -mu / lam)
    q = floor + np.cbrt(sizes**2 / lam)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            value = lam * q**3 + mu * q**2 - sizes**2
            slope = 3 * lam * q**2 + 2 * mu * q
            step = value / slope
            step[~np.isfinite(step)] = 0.0
            q = np.maximum(q - step, 0.0)
            if np.all(np.abs(step) <= 1e-15 * (1e-3 + q)):
                break
    return q


# ----------------------------------------------------------------------
# Select features by a distribution over a pool: which of them, with which weights.
#
# Each function returns (places, weights): increasing feature numbers and positive weights, for
# `FeatureMap.weighted`. The squared weights sum to 1, so that the sum of products is the kernel of
# the distribution.

# A stream from which no map draws its own numbers.
DRAW = 16


def drawn(q, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` features drawn with replacement from the probabilities q (M,).

    A feature drawn c times occurs once, with weight (c / count)^(1/2): the same kernel. Draw j
    depends only on (seed, j) and q.
    """
    ends = np.cumsum(q)
    points = uniform_numbers(seed, DRAW, 0, count) * ends[-1]
    where = np.searchsorted(ends, points, side="right")
    where = np.minimum(where, len(q) - 1)
    places, times = np.unique(where, return_counts=True)
    return places, np.sqrt(times / count)


def support_once(q) -> tuple[np.ndarray, np.ndarray]:
    """The features with q > 0, all with equal weight."""
    places = np.flatnonzero(q)
    return places, np.full(len(places), len(places) ** -0.5)


def weighted(q) -> tuple[np.ndarray, np.ndarray]:
    """The features with q > 0, each with weight q^(1/2)."""
    places = np.flatnonzero(q)
    return places, np.sqrt(q[places])
