"""Learn a metric of the inputs by recursive feature machines.

A kernel machine is fitted, the average outer product of its gradients becomes the metric of the
next one, and so on (Radhakrishnan, Beaglehole, Pandit and Belkin 2024). Inputs along which the
function changes much get a large weight. The iterate with the lowest error is used, unless the
original inputs are as good.

One factor gives a machine and its errors on rows that it has not seen (`rfx.operators.kernel`), so
that all rows of the sample learn and evaluate. Groups and times need held-out rows instead, and few
rows, or few for each input, folds (`folded`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse

from rfx import kernels
from rfx.counters import random_rows
from rfx.data.rows import keeps_sparse
from rfx.data.tabular.group_splits import Part
from rfx.data.transforms import Metric
from rfx.fitting.method import Method
from rfx.fitting.options import METRIC_LAM, METRIC_LAMS, METRIC_WIDTH, WIDTHS
from rfx.fitting.problem import Problem, error, measured
from rfx.fitting.selection import LEARNT
from rfx.fitting.weights import mean, part
from rfx.kernels.gradients import outer_product
from rfx.operators.kernel import coefficients, left_out
from rfx.types import DeviceArray, Inputs, KernelParams

# Maximum rows by which inputs are chosen, and from which a metric is learnt.
ROWS = 2000
# Maximum rows from which a method with leaves learns the metric of its choice again, and the
# fraction of all rows: others judge the leaves. With metrics of four samples of 2,000 of 20,000
# rows of covtype, the error was .101 to .124; of two samples of 4,000, .100 and .104. On pol it
# fell by 13 %.
TEACHING_ROWS, TEACHING_SHARE = 4000, 0.75
# Lambda is chosen on every third row, or more to have that many: the best one depends little on
# their number.
EVERY, CHOOSING = 3, 250
# Minimum rows for learning a metric, and for a choice.
FEWEST = 50
# Fraction of the sample that is held out for groups or times.
HELD_OUT = 0.25
# Number of inputs above which only a diagonal metric is used.
MOST_INPUTS = 300
# A metric must reduce the error by at least the fraction GAIN, or of n rows by GAIN_OF_ROW/sqrt(n)
# if that is more, and so must each further iteration: of few rows, the best of many metrics is
# often the luckiest. On 19 tables of 150 to 1,100 rows with words, the error of new rows fell by
# 2 %; on 14 tables of 300 and of 1,000 rows of numbers it was the same. The error of a full one for
# d inputs and n rows is also multiplied by 1 + OPTIMISM d / n: the rows left out had a part in it.
GAIN, GAIN_OF_ROW, OPTIMISM = 0.01, 1.0, 4.0
# Of at most so many rows, or rows for each input, metrics are compared in folds instead. On 2,000
# rows of 240 columns of categories, the error of rows left out was .032, and .048 on new rows; with
# a choice by folds, it was .041 there.
FOLDED, FOLDED_OF_INPUT, FOLDS = 500, 10, 3
# Maximum numbers of the rows that are dense at a time.
VALUES = 1 << 25
# Gradients whose outer products are averaged, and rows at least.
GRADIENTS, GRADIENT_ROWS = 2000, 300
# Multiples of the usual gamma tried in turn where that leaves more than LITTLE of the error of a
# constant: five periods of a sine need 16 times as much.
NARROWER, LITTLE = (4.0, 16.0, 64.0), 0.75
# Minimum rows without a part in a choice that are enough to judge a model.
OTHERS = 500
# The kernel used for learning if a kernel's gradient is not implemented.
KERNEL = "laplacian-l2"
# Weight of the squared error of classes relative to the error rate: small samples have many ties.
TIE = 0.1

# The form of a metric, and the number of iterations that learnt it; ("none", 0) is no metric.
Iterate: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class Machine:
    """Kernel ridge regression with one metric, bandwidth and lambda.

    Parameters
    ----------
    Z : array or CSR, (n, d)
        The rows, mapped by the metric.
    params : dict
        The kernel's.
    width : float
        The bandwidth as a multiple of the median.
    metric : Metric or None
        None for the original inputs.
    lam : float
        For rows of mean weight 1.
    score : float
        The `criterion` on rows that the machine has not seen; infinite if the system is singular.
    coef : array, (n, k)
    """

    Z: Inputs
    params: KernelParams
    width: float
    metric: Metric | None
    lam: float
    score: float
    coef: np.ndarray


@dataclass(frozen=True)
class Sample:
    """Rows on which machines are compared.

    Parameters
    ----------
    problem : Problem
        Scaled rows, dense unless they are text, with weights of mean 1.
    part : Part or None
        The rows to fit and to evaluate; None for leave-one-out.
    seed : int
    """

    problem: Problem
    part: Part | None
    seed: int

    @classmethod
    def of(cls, problem: Problem, most: int, seed: int) -> Sample:
        """At most so many rows, drawn by the seed; equal ones are one."""
        most = min(most, most_rows(problem.n_inputs))
        some = problem.rows(random_rows(problem.n_rows, most, seed=seed))
        own = np.ones(some.n_rows) if some.weights is None else some.weights
        some, _ = replace(some, X=compact(some.X), weights=own / own.mean()).merged()
        return cls(
            some,
            None if some.constraint is None else some.constraint.held_out(HELD_OUT, seed),
            seed,
        )

    def tuned(
        self, kernel: str, metric: Metric | None, width: float, lam: float | None = None
    ) -> Machine:
        """The machine of the best of METRIC_LAMS, searched from one of them on while the error
        falls.
        """
        Z, params, K = self._values(kernel, metric, width)
        lam = self._best_lam(K, METRIC_LAM if lam is None else lam)
        return Machine(Z, params, width, metric, lam, *self._error(K, lam))

    def _values(
        self, kernel: str, metric: Metric | None, width: float
    ) -> tuple[Inputs, KernelParams, DeviceArray]:
        """The rows mapped by a metric, the kernel's parameters for these, and its values."""
        Z = self.problem.X if metric is None else metric.transform(self.problem.X)
        params = bandwidth(kernel, Z, self.seed, width)
        return Z, params, kernels.values(kernel, Z, Z, params)

    def _best_lam(self, K: np.ndarray, first: float) -> float:
        """The best of METRIC_LAMS on some of the rows, searched from the first one on."""
        stride = min(EVERY, max(1, len(K) // CHOOSING))
        return best_lam(METRIC_LAMS, first, lambda lam: self._error(K, lam, stride)[0])[0]

    def metrics(self, kernel: str, form: str, steps: int) -> Iterator[Metric]:
        """The metrics of up to so many iterations, each learnt from all rows; fewer if a machine is
        constant.
        """
        Y, own = self.problem.Y, self.problem.weights
        assert own is not None
        targets = Y - np.average(Y, axis=0, weights=own)
        metric: Metric | None = None
        lam = METRIC_LAM
        for _ in range(steps):
            Z, params, K = self._values(kernel, metric, METRIC_WIDTH)
            lam = self._best_lam(K, lam)
            coef = coefficients(K, targets, lam, 1 / own)
            if coef is None:
                return
            full = form == "full"
            metric = next_metric(kernel, Z, coef, params, metric, full, own, self.seed)
            if metric is None:
                return
            yield metric

    def taught(self, kernel: str, form: str, steps: int) -> Metric | None:
        """The metric of so many iterations, each learnt from all rows; None if a machine is
        constant.
        """
        metrics = list(self.metrics(kernel, form, steps))
        return metrics[-1] if len(metrics) == steps else None

    def first(self, kernel: str, narrower: Sequence[float]) -> Machine:
        """The machine without a metric, with the usual bandwidth, or with multiples of it while
        that learns little, and they more.
        """
        first = self.tuned(kernel, None, METRIC_WIDTH)
        Y, weights, problem = self.problem.Y, self.problem.weights, self.problem
        constant = np.broadcast_to(mean(Y, weights), Y.shape)
        little = LITTLE * criterion(problem.task, constant, Y, weights, problem.measure)
        for factor in narrower:
            if first.score < little:
                break
            one = self.tuned(kernel, None, factor * METRIC_WIDTH)
            if one.score >= first.score:
                break
            first = one
        return first

    def _error(self, K: np.ndarray, lam: float, stride: int = 1) -> tuple[float, np.ndarray]:
        """The error on the rows that the machine has not seen, and its coefficients; stride: of the
        rows used.
        """
        Y, own = self.problem.Y, self.problem.weights
        assert own is not None
        kept, out = (
            rows[random_rows(len(rows), -(-len(rows) // stride), seed=self.seed)]
            for rows in self.part or (np.arange(len(Y)),) * 2
        )
        offset = np.average(Y[kept], axis=0, weights=own[kept])
        seen = K if len(kept) == len(K) else K[np.ix_(kept, kept)]
        coef = np.zeros(Y.shape)
        solved = left_out(seen, Y[kept] - offset, lam, 1 / own[kept], centred=self.part is None)
        if solved is None:
            return math.inf, coef
        coef[kept] = solved.coef
        decision = K[out] @ coef + offset if self.part else Y[out] - solved.residuals
        task, measure = self.problem.task, self.problem.measure
        return criterion(task, decision, Y[out], own[out], measure), coef

    def machines(self, kernel: str, form: str, steps: int, first: Machine) -> Iterator[Machine]:
        """The machines with the metric of each iteration, starting with that of the first machine,
        which has none; fewer than `steps` if one is constant.
        """
        last = first
        for _ in range(steps):
            metric = next_metric(
                kernel,
                last.Z,
                last.coef,
                last.params,
                last.metric,
                form == "full",
                self.problem.weights,
                self.seed,
            )
            if metric is None:
                return
            last = self.tuned(kernel, metric, METRIC_WIDTH, last.lam)
            yield last

    def refined(self, kernel: str, machine: Machine) -> Machine:
        """The machine of the same metric with the best bandwidth and lambda."""
        best, tried = machine, sorted((*WIDTHS.get(kernel, ()), machine.width))
        for width in WIDTHS.get(kernel, ()):
            best = min(best, self.tuned(kernel, machine.metric, width, machine.lam), key=_score)
        # beyond the widths tried as long as the error falls
        factor = {tried[0]: 0.5, tried[-1]: 2.0}.get(best.width) if len(tried) > 1 else None
        while factor is not None:
            one = self.tuned(kernel, machine.metric, factor * best.width, best.lam)
            if not one.score < (1 - GAIN) * best.score:
                break
            best = one
        return best

    def folds(self) -> list[Sample]:
        """The same rows, with each of FOLDS parts left out in turn."""
        every = np.arange(len(self.problem.Y))
        place = np.random.default_rng(self.seed).permutation(len(every)) % FOLDS
        parts = [np.flatnonzero(place == fold) for fold in range(FOLDS)]
        return [replace(self, part=(np.setdiff1d(every, out), out)) for out in parts]


# The machines of each sample, by form of the metric and number of iterations.
Iterates: TypeAlias = Iterator[tuple[Iterate, list[Machine]]]


def recursions(
    samples: Sequence[Sample],
    kernel: str,
    forms: Sequence[str],
    steps: int,
    every: bool = False,
    narrower: Sequence[float] = (),
) -> Iterates:
    """The machines of the samples, as long as their mean score improves, or all; narrower: see
    `Sample.first`.
    """
    first = [one.first(kernel, narrower) for one in samples]
    gain = least_gain(samples[0].problem.n_rows)
    yield ("none", 0), first
    for form in forms:
        least = _mean_score(first)
        ways = (one.machines(kernel, form, steps, start) for one, start in zip(samples, first))
        for count, machines in enumerate(zip(*ways), 1):
            yield (form, count), list(machines)
            score = _mean_score(machines)
            if not (every or score < (1 - gain) * least):
                break
            least = min(least, score)


def _score(machine: Machine) -> float:
    return machine.score


def _mean_score(machines: Sequence[Machine]) -> float:
    return float(np.mean([one.score for one in machines]))


def best_lam(
    lams: Sequence[float], first: float, error: Callable[[float], float]
) -> tuple[float, float]:
    """The lambda of the lowest error, and that error: searched from the first one on towards
    smaller ones, or else larger ones, as long as the error falls.

    Where nothing smaller than the first is better, and the best is little better than the largest,
    which leaves a constant, all smaller ones are tried.
    """
    start = best = lams.index(first)
    least = error(first)
    for way in (1, -1):
        place = start + way
        while 0 <= place < len(lams) and (value := error(lams[place])) < least:
            best, least, place = place, value, place + way
        if best != start:
            break
    if best <= start and least > LEARNT * error(lams[0]):
        for place in range(start + 2, len(lams)):
            if (value := error(lams[place])) < least:
                best, least = place, value
    return lams[best], least


def folded(problem: Problem) -> bool:
    """Whether metrics of a problem's rows are compared on rows that did not teach them: where these
    are few, or few for each input.

    On 300 rows of a linear function of 20 inputs with as much noise, a metric seemed to reduce the
    error by a third, and increased it by a tenth. On 1,677 rows of text with 20,000 inputs, it
    seemed to reduce an error of .38 to .11, and increased it to .59.
    """
    few = max(FOLDED, FOLDED_OF_INPUT * problem.n_inputs)
    return problem.n_rows <= few and not problem.constrained


def rated(form: str, machines: Sequence[Machine]) -> float:
    """The score of machines with a form of metric, as the choice compares them."""
    n, d = machines[0].Z.shape
    optimism = OPTIMISM * d / n if form == "full" and len(machines) == 1 else 0.0
    hurdle = 0.0 if form == "none" else least_gain(n)
    return _mean_score(machines) * (1 + hurdle) * (1 + optimism)


def least_gain(n_rows: int) -> float:
    """The fraction of the error by which a metric of so many rows, and each further iteration, must
    reduce it.
    """
    return max(GAIN, GAIN_OF_ROW / math.sqrt(n_rows))


def bandwidth(kernel: str, X: Inputs, seed: int, factor: float) -> KernelParams:
    """The kernel's parameters for rows X (n, d): gamma is that of the median distance times a
    factor.
    """
    params: KernelParams = kernels.parameters(kernel, X, "median", seed)
    return params | {"gamma": params["gamma"] * factor}


def criterion(
    task: str,
    decision: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    measure: str | None = None,
) -> float:
    """The error by which machines are compared: the mean squared error, for classes that of targets
    +-1 times TIE plus the error by a measure.
    """
    squared = error("regression", decision, Y, weights)
    if task == "regression":
        return squared
    return measured(measure, task, decision, Y, weights) + TIE * squared


def next_metric(
    kernel: str,
    Z: Inputs,
    coef: np.ndarray,
    params: KernelParams,
    metric: Metric | None,
    full: bool,
    weights: np.ndarray | None,
    seed: int,
) -> Metric | None:
    """The metric of the gradients of a machine of the rows Z, mapped by its own metric; seed: of
    the rows with gradients.
    """
    rows = random_rows(Z.shape[0], max(GRADIENTS // coef.shape[1], GRADIENT_ROWS), seed=seed)
    M = outer_product(kernel, Z, coef, params, rows, full, part(weights, rows))
    if metric is not None:
        M = metric.pulled_back(M)
    return Metric.of(M)


def learner(kernel: str | None) -> str:
    """The kernel used for learning, for a method's kernel or a method without one."""
    known = kernel is not None and kernels.get_kernel(kernel).has_gradient
    return kernel if kernel is not None and known else KERNEL


def allowed(forms: Sequence[str], X: Inputs, kernel: str) -> list[str]:
    """The forms possible for rows X (n, d) and the kernel; diagonal if none of several is
    possible.
    """
    wide = X.shape[1] > MOST_INPUTS or keeps_sparse(X)
    diagonal = wide or kernels.get_kernel(kernel).metric == "l1"
    possible = [form for form in forms if form == "diagonal" or not diagonal]
    return possible or ["diagonal"] * bool(forms)


def most_rows(n_inputs: int) -> int:
    """Number of rows with so many inputs that may be dense at a time."""
    return max(FEWEST, VALUES // n_inputs)


def sampled(n_rows: int, n_inputs: int, seed: int) -> np.ndarray:
    """The rows by which inputs are chosen, and from which a metric is learnt."""
    return random_rows(n_rows, min(ROWS, most_rows(n_inputs)), seed=seed)


def teaching(n_rows: int, n_inputs: int, seed: int) -> np.ndarray:
    """The rows from which a method with leaves learns a metric again: `sampled` ones and others."""
    count = max(ROWS, min(TEACHING_ROWS, int(TEACHING_SHARE * n_rows)))
    return random_rows(n_rows, min(count, most_rows(n_inputs)), seed=seed)


def teaching_sample(
    problem: Problem, scaled: Callable[[np.ndarray], Problem], seed: int
) -> Sample | None:
    """The rows from which a method with leaves learns a metric again; None if they are no more than
    the choice used. scaled: a function from numbers of rows to these rows, scaled.
    """
    rows = teaching(problem.n_rows, problem.n_inputs, seed)
    if problem.constrained or len(rows) <= ROWS:
        return None
    problem.doing("learning the metric from more rows")
    return Sample.of(scaled(rows), len(rows), seed)


def learns_again(method: Method) -> bool:
    """Whether a method, with its metric chosen, learns that from the rows of `teaching`."""
    return "leaf_rows" in method.options and method.get("metric") != "none"


def unsampled(n_rows: int, n_inputs: int, method: Method) -> np.ndarray:
    """(n,) whether a row had no part in the choice of the method's inputs."""
    rows = teaching if learns_again(method) else sampled
    free = np.ones(n_rows, bool)
    free[rows(n_rows, n_inputs, method.seed)] = False
    return free


def unused(problem: Problem, method: Method) -> np.ndarray | None:
    """(n,) whether a row, and each with its inputs, had no part in the choice of the method's
    inputs; None if such rows are fewer than OTHERS.
    """
    free = unsampled(problem.n_rows, problem.n_inputs, method)
    if problem.constraint is not None and not problem.constrained:
        free &= ~np.isin(problem.constraint.values, problem.constraint.values[~free])
    return free if free.sum() >= OTHERS else None


def dense(X: Inputs) -> np.ndarray:
    """Rows as a float64 array."""
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, np.float64)


def compact(X: Inputs) -> Inputs:
    """Rows as a float64 array, or as they are if they are text."""
    return X if keeps_sparse(X) else dense(X)
