"""Learn a metric by recursive feature machines.

A kernel machine is fitted, the average outer product of its gradients becomes the metric of the
next one, and so on (Radhakrishnan, Beaglehole, Pandit and Belkin 2024). Inputs along which the
function changes much get a large weight. The iterate with the lowest error on held-out rows is
used, unless the original inputs are as good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from rfx import kernels
from rfx.data.tabular.apart import Apart
from rfx.data.transforms.metric import FORMS, Metric
from rfx.fitting.validation import drawn, error, fewer
from rfx.kernels.gradients import outer_product
from rfx.operators import cholesky

# Maximum rows for learning a metric, and the fraction of them that is held out.
ROWS, HELD_OUT = 2000, 0.2
# Minimum rows for learning a metric.
FEWEST = 50
# Iterations, and ridge parameters of a kernel with unit diagonal, largest first.
STEPS, LAMS = 5, (10.0, 1.0, 0.1, 0.01, 0.001)
# Smaller lambdas are not tried once the error is this many times the lowest.
WORSE = 1.2
# Systems whose lambda exceeds this times the number of rows are solved in float32.
SINGLE = 1e-6
# The bandwidth of each machine is that of the median distance times this factor.
WIDTH = 0.5
# Number of inputs above which only a diagonal metric is used.
MOST_INPUTS = 300
# A metric must reduce the held-out mean squared error by at least this fraction.
GAIN = 0.01
# Maximum numbers of the rows that are dense at a time.
VALUES = 1 << 25
# The kernel used for learning if a kernel's gradient is not implemented.
KERNEL = "laplacian-l2"


@dataclass(frozen=True)
class Sample:
    """Rows to fit and rows that are held out.

    Parameters
    ----------
    X, X_out : arrays, (n, d) and (m, d)
        Scaled rows.
    Y, Y_out : arrays, (n, k) and (m, k)
        Encoded targets.
    weights, weights_out : arrays, (n,) and (m,), or None
    task : str
    """

    X: np.ndarray
    Y: np.ndarray
    X_out: np.ndarray
    Y_out: np.ndarray
    weights: np.ndarray | None
    weights_out: np.ndarray | None
    task: str

    @classmethod
    def of(
        cls,
        X: Any,
        Y: Any,
        task: str,
        weights: np.ndarray | None,
        kept: np.ndarray,
        out: np.ndarray,
    ) -> Sample:
        """Some rows of X (n, d), array, CSR or on workers, by their numbers."""
        own, own_out = (None if weights is None else weights[part] for part in (kept, out))
        rows, rows_out = (dense(X[part]) for part in (kept, out))
        return cls(rows, np.asarray(Y[kept]), rows_out, np.asarray(Y[out]), own, own_out, task)

    def mapped(self, metric: Metric | None) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the held-out rows under a metric."""
        if metric is None:
            return self.X, self.X_out
        return metric.transform(self.X), metric.transform(self.X_out)


@dataclass(frozen=True)
class Machine:
    """Kernel ridge regression with one metric, bandwidth and lambda.

    Parameters
    ----------
    lam : float
    error : float
        Mean squared error on the held-out rows; of classes that of targets +-1.
    wrong : float
        Error rate; for regression, the error.
    coef : array, (n, k)
    metric : Metric or None
        None for the original inputs.
    """

    lam: float
    error: float
    wrong: float
    coef: np.ndarray
    metric: Metric | None


@dataclass(frozen=True)
class Learnt:
    """A metric with its evaluation.

    Parameters
    ----------
    metric : Metric or None
        None if none reduces the error enough.
    steps : int
        Its iterations.
    errors : dict
        Form -> held-out mean squared errors of its iterates, starting with that of no metric.
    fitted, held_out : int
        Rows of each.
    """

    metric: Metric | None
    steps: int
    errors: dict[str, list[float]]
    fitted: int
    held_out: int

    @property
    def form(self) -> str:
        return "none" if self.metric is None else self.metric.form

    def step(self) -> dict[str, Any]:
        """The entry of the choice in a results row, in the form of `search.Found.step`."""
        tried = [
            [form if number else "none", number, value]
            for form, values in self.errors.items()
            for number, value in enumerate(values)
        ]
        return {
            "by": "recursive feature machines",
            "options": ["metric", "metric_steps"],
            "fitted": self.fitted,
            "held_out": self.held_out,
            "error": "mean squared error",
            "tried": tried,
            "chosen": [self.form, self.steps],
        }


def bandwidth(kernel: str, X: Any, seed: int, factor: float) -> dict[str, Any]:
    """The kernel's parameters for rows X (n, d): gamma is that of the median distance times a
    factor.
    """
    found: dict[str, Any] = kernels.parameters(kernel, X, "median", seed)
    return found | {"gamma": found["gamma"] * factor}


def path(
    sample: Sample,
    kernel: str,
    metric: Metric | None,
    params: dict[str, Any],
    lams: Sequence[float],
) -> Iterator[Machine]:
    """Kernel ridge regression of the centred targets for successive lambdas.

    It ends before a lambda whose system is singular in float64.

    Parameters
    ----------
    params : dict
        The kernel's, for the mapped rows.
    lams : sequence of float
        In the unit of the mean weight.
    """
    Z, Z_out = sample.mapped(metric)
    K, K_out = (kernels.block(kernel, rows, Z, params) for rows in (Z, Z_out))
    Y, Y_out, task, out = sample.Y, sample.Y_out, sample.task, sample.weights_out
    offset = np.average(Y, axis=0, weights=sample.weights)
    # a row of weight 0 has no influence
    with np.errstate(divide="ignore"):
        own = sample.weights
        unit = 1.0 if own is None else np.minimum(np.mean(own) / own, 1e30)
    for lam in lams:
        dtype = np.float32 if lam > SINGLE * len(K) else np.float64
        system: Any = np.array(K, dtype, order="F")
        system.flat[:: len(K) + 1] += lam * unit
        try:
            coef = cholesky.solve(cholesky.positive(system), Y - offset)
            coef = coef.reshape(Y.shape).astype(np.float64)
        except scipy.linalg.LinAlgError:
            return
        decision = K_out @ coef + offset
        value = error("regression", decision, Y_out, out)
        wrong = value if task == "regression" else error(task, decision, Y_out, out)
        yield Machine(lam, value, wrong, coef, metric)


def machine(
    sample: Sample,
    kernel: str,
    metric: Metric | None,
    params: dict[str, Any],
    lams: Sequence[float] = LAMS,
) -> Machine:
    """The machine of the best lambda, in decreasing order; arguments as in `path`."""
    best = Machine(lams[0], np.inf, np.inf, np.zeros(sample.Y.shape), metric)
    for found in path(sample, kernel, metric, params, lams):
        if found.error < best.error:
            best = found
        elif found.error > WORSE * best.error:
            break
    return best


def machines(
    sample: Sample, kernel: str, form: str, steps: int = STEPS, seed: int = 0
) -> Iterator[Machine]:
    """The machines of the recursion: without a metric, and with each of `steps` metrics.

    Parameters
    ----------
    form : {"diagonal", "full"}

    Yields
    ------
    Machine
        Fewer if one is constant.
    """
    metric: Metric | None = None
    lams: Sequence[float] = LAMS
    for number in range(steps + 1):
        Z, _ = sample.mapped(metric)
        params = bandwidth(kernel, Z, seed, WIDTH)
        found = machine(sample, kernel, metric, params, lams)
        yield found
        # that of the next machine is close to it
        lams = [lam for lam in LAMS if found.lam / 20 < lam < found.lam * 20]
        if number == steps:
            return
        rows, full = np.arange(len(Z)), form == "full"
        M = outer_product(kernel, Z, found.coef, params, rows, full, sample.weights)
        if metric is not None:
            # from gradients with respect to A'x to those with respect to x
            A = metric.map
            M = M * A**2 if A.ndim == 1 else A @ M @ A.T
        metric = Metric.of(M)
        if metric is None:
            return


def learn(
    X: Any,
    Y: Any,
    *,
    kernel: str,
    forms: Sequence[str] = FORMS,
    steps: int | None = None,
    task: str = "regression",
    weights: np.ndarray | None = None,
    seed: int = 0,
    apart: Apart | None = None,
) -> Learnt:
    """Learn the metric of scaled rows and encoded targets, from a sample of at most ROWS rows.

    The form and iterate with the lowest error on the held-out part of the sample is used, unless it
    reduces the error without a metric by less than GAIN.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
    Y : array, (n, k)
    kernel : str
        The method's; if its gradient is not implemented, KERNEL is used.
    forms : sequence of str
    steps : int, optional
        Exactly this many iterations of one form, whatever their error.
    weights : array, (n,), or None
    seed : int
        Of the sample.
    apart : Apart, optional
        Groups or times.
    """
    n = X.shape[0]
    if n < FEWEST or not X.shape[1] or (apart is not None and apart.one):
        return Learnt(None, 0, {}, 0, 0)
    rows = min(n, ROWS, most_rows(X.shape[1]))
    cut = int(HELD_OUT * rows)
    if apart is None:
        out, kept = drawn(n, seed, cut, rows - cut)
    else:
        kept, out = fewer(apart.held_out(HELD_OUT, seed), rows - cut, cut, seed)
    sample = Sample.of(X, Y, task, weights, kept, out)
    kernel = learner(kernel)
    errors: dict[str, list[float]] = {}
    best: tuple[float, Metric | None, int] = np.inf, None, 0
    for form in allowed(forms, X, kernel):
        errors[form] = []
        last = None
        for number, one in enumerate(machines(sample, kernel, form, steps or STEPS, seed)):
            errors[form].append(one.error)
            limit = best[0] if best[1] is not None else (1 - GAIN) * errors[form][0]
            if one.metric is not None and one.error < limit:
                best = one.error, one.metric, number
            last = one.error, one.metric, number
        if steps is not None and last is not None:
            best = last
    return Learnt(best[1], best[2], errors, len(kept), len(out))


def learner(kernel: str | None) -> str:
    """The kernel used for learning, for a method's kernel or a method without one."""
    known = kernel is not None and kernels.get_kernel(kernel).has_gradient
    return kernel if kernel is not None and known else KERNEL


def allowed(forms: Sequence[str], X: Any, kernel: str) -> list[str]:
    """The forms possible for rows X (n, d) and the kernel; diagonal if none of several is
    possible.
    """
    wide = X.shape[1] > MOST_INPUTS or scipy.sparse.issparse(X)
    diagonal = wide or kernels.get_kernel(kernel).metric == "l1"
    found = [form for form in forms if form == "diagonal" or not diagonal]
    return found or ["diagonal"] * bool(forms)


def most_rows(n_inputs: int) -> int:
    """Number of rows with so many inputs that may be dense at a time."""
    return max(FEWEST, VALUES // max(1, n_inputs))


def dense(X: Any) -> np.ndarray:
    """Rows as a float64 array."""
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, np.float64)
