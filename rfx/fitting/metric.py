"""The learning of a metric by recursive feature machines.

A kernel machine is fitted, the average outer product of its gradients becomes the metric of the
next one, and so on (Radhakrishnan, Beaglehole, Pandit and Belkin 2024). Inputs along which the
function changes much get a large weight. The iterate with the least error on held-out rows is kept,
unless the untouched inputs are as good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from rfx import kernels
from rfx.data.transforms.metric import FORMS, Metric
from rfx.fitting.validation import drawn, error
from rfx.kernels.gradients import outer_product
from rfx.operators import cholesky

# Rows that a metric is learnt from, at most, and the share of them that is held out.
ROWS, HELD_OUT = 2000, 0.2
# Below so many rows none is learnt.
FEWEST = 50
# Iterations, and ridge parameters of each, for a kernel that is 1 on the diagonal.
STEPS, LAMS = 5, (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
# The bandwidth of each is that of the median distance times this.
WIDTH = 0.5
# More inputs than this have a diagonal metric only.
MOST_INPUTS = 300
# A metric is kept where it takes this share off the held-out mean squared error.
GAIN = 0.01
# The kernel that learns for kernels whose gradient is not known.
KERNEL = "laplacian-l2"


@dataclass(frozen=True)
class Iterate:
    """A kernel machine of the recursion.

    Parameters
    ----------
    metric : Metric or None
        That it was fitted with; None for the inputs as they are.
    lam : float
        Its best ridge parameter.
    error, wrong : float
        Its mean squared error on the held-out rows, of classes that of targets +-1, and the share
        of wrong labels.
    """

    metric: Metric | None
    lam: float
    error: float
    wrong: float


@dataclass(frozen=True)
class Learnt:
    """A metric and the evidence for it.

    Parameters
    ----------
    metric : Metric or None
        None where none takes enough off the error.
    errors : dict
        Form to the held-out mean squared errors of its iterates, from that of no metric on.
    fitted, held_out : int
        Rows of each.
    """

    metric: Metric | None
    errors: dict[str, list[float]]
    fitted: int
    held_out: int

    def options(self) -> dict[str, Any]:
        """The metric as it is given by options."""
        form, steps = self._chosen()
        return {"metric": form, "metric_steps": steps or None}

    def _chosen(self) -> tuple[str, int]:
        if self.metric is None:
            return "none", 0
        return self.metric.form, int(np.argmin(self.errors[self.metric.form]))

    def step(self) -> dict[str, Any]:
        """What the choice leaves in a results row, in the form of `search.Found.step`."""
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
            "chosen": [*self._chosen()],
        }


def iterates(
    X: np.ndarray,
    Y: np.ndarray,
    X_out: np.ndarray,
    Y_out: np.ndarray,
    kernel: str,
    form: str,
    *,
    task: str = "regression",
    steps: int = STEPS,
    weights: np.ndarray | None = None,
    weights_out: np.ndarray | None = None,
    seed: int = 0,
) -> Iterator[Iterate]:
    """The kernel machines of the recursion, from that of no metric on.

    Parameters
    ----------
    X, Y : arrays, (n, d) and (n, k)
        Scaled rows and encoded targets to fit to.
    X_out, Y_out : arrays, (m, d) and (m, k)
        Held-out rows.
    kernel : str
    form : {"diagonal", "full"}
    steps : int
        Metrics to learn.
    weights, weights_out : arrays, (n,) and (m,), or None
        Of the rows.

    Yields
    ------
    Iterate
        Fewer than `steps` + 1 where a machine is constant.
    """
    metric: Metric | None = None
    own = np.ones(len(X)) if weights is None else weights
    lams: Sequence[float] = LAMS
    for number in range(steps + 1):
        Z, Z_out = (X, X_out) if metric is None else map(metric.transform, (X, X_out))
        params = bandwidth(kernel, Z, seed, WIDTH)
        K = kernels.block(kernel, Z, Z, params)
        K_out = kernels.block(kernel, Z_out, Z, params)
        best, coef = best_ridge(K, Y, K_out, Y_out, own, weights_out, task, lams)
        yield Iterate(metric, *best)
        # that of the next machine is not far from it
        lams = [lam for lam in LAMS if best[0] / 20 < lam < best[0] * 20]
        if number == steps:
            return
        found = outer_product(kernel, Z, coef, params, np.arange(len(Z)), form == "full", own)
        if metric is not None:
            # of gradients with respect to A'x those with respect to x
            A = metric.map
            found = found * A**2 if A.ndim == 1 else A @ found @ A.T
        metric = Metric.of(found)
        if metric is None:
            return


def bandwidth(kernel: str, X: Any, seed: int, factor: float) -> dict[str, float]:
    """The kernel's parameters: gamma is that of the median distance times a factor."""
    found: dict[str, float] = kernels.parameters(kernel, X, "median", seed)
    return found | {"gamma": found["gamma"] * factor}


def best_ridge(
    K: np.ndarray,
    Y: np.ndarray,
    K_out: np.ndarray,
    Y_out: np.ndarray,
    weights: np.ndarray,
    weights_out: np.ndarray | None,
    task: str,
    lams: Sequence[float] = LAMS,
) -> tuple[tuple[float, float, float], np.ndarray]:
    """((lambda, held-out mean squared error, share of wrong labels), coefficients (n, k)) of
    kernel ridge regression of the centred targets with the best of the lambdas, largest first.
    """
    found, offset = None, np.average(Y, axis=0, weights=weights)
    for lam in lams:
        system = np.array(K, order="F")
        # a row of weight 0 has no say
        with np.errstate(divide="ignore"):
            system.flat[:: len(K) + 1] += np.minimum(lam / weights, 1e100)
        try:
            coef = cholesky.solve(cholesky.positive(system), Y - offset).reshape(Y.shape)
        except scipy.linalg.LinAlgError:
            break
        decision = K_out @ coef + offset
        value = error("regression", decision, Y_out, weights_out)
        if found is None or value < found[0][1]:
            wrong = value if task == "regression" else error(task, decision, Y_out, weights_out)
            found = (lam, value, wrong), coef
        elif value > 1.2 * found[0][1]:
            break
    assert found is not None
    return found


def learn(
    X: Any,
    Y: Any,
    *,
    kernel: str,
    forms: Sequence[str] = FORMS,
    steps: int = STEPS,
    task: str = "regression",
    weights: np.ndarray | None = None,
    seed: int = 0,
    rows: int = ROWS,
) -> Learnt:
    """The metric of scaled rows X (n, d) and encoded targets Y (n, k).

    It is learnt from a sample of ROWS rows at most, drawn by the seed. Of the forms and iterates
    the one with the least error on the held-out part of the sample is taken, unless it takes less
    than GAIN off that of no metric.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
    Y : array, (n, k)
    kernel : str
        The method's; where its gradient is not known, KERNEL learns.
    forms : sequence of str
    weights : array, (n,), or None
    """
    n = X.shape[0]
    if n < FEWEST or not X.shape[1]:
        return Learnt(None, {}, 0, 0)
    sample = min(n, rows)
    out, kept = drawn(n, seed, max(1, int(HELD_OUT * sample)), sample - int(HELD_OUT * sample))
    parts = [_dense(X, kept), np.asarray(Y[kept]), _dense(X, out), np.asarray(Y[out])]
    own = None if weights is None else weights[kept]
    own_out = None if weights is None else weights[out]
    if not kernels.get_kernel(kernel).has_gradient:
        kernel = KERNEL
    errors: dict[str, list[float]] = {}
    best: tuple[float, Metric | None] = np.inf, None
    for form in allowed(forms, X, kernel):
        errors[form] = []
        for one in iterates(
            *parts,
            kernel,
            form,
            task=task,
            steps=steps,
            weights=own,
            weights_out=own_out,
            seed=seed,
        ):
            errors[form].append(one.error)
            limit = best[0] if best[1] is not None else (1 - GAIN) * errors[form][0]
            if one.metric is not None and one.error < limit:
                best = one.error, one.metric
    return Learnt(best[1], errors, len(kept), len(out))


def allowed(forms: Sequence[str], X: Any, kernel: str) -> list[str]:
    """The forms that rows X (n, d) and the kernel can have; one is left in any case."""
    wide = X.shape[1] > MOST_INPUTS or scipy.sparse.issparse(X)
    diagonal = wide or kernels.get_kernel(kernel).metric == "l1"
    found = [form for form in forms if form == "diagonal" or not diagonal]
    return found or ["diagonal"]


def _dense(X: Any, rows: np.ndarray) -> np.ndarray:
    part = X[rows]
    return np.asarray(part.toarray() if scipy.sparse.issparse(part) else part, np.float64)


def fixed(
    X: Any,
    Y: Any,
    *,
    kernel: str,
    form: str,
    steps: int,
    task: str = "regression",
    weights: np.ndarray | None = None,
    seed: int = 0,
    rows: int = ROWS,
) -> Metric | None:
    """The metric after so many iterations, whatever its error; arguments as of `learn`."""
    n = X.shape[0]
    sample = min(n, rows)
    out, kept = drawn(n, seed, max(1, int(HELD_OUT * sample)), sample - int(HELD_OUT * sample))
    own = None if weights is None else weights[kept]
    own_out = None if weights is None else weights[out]
    parts = [_dense(X, kept), np.asarray(Y[kept]), _dense(X, out), np.asarray(Y[out])]
    found = list(
        iterates(
            *parts,
            kernel,
            form,
            task=task,
            steps=steps,
            weights=own,
            weights_out=own_out,
            seed=seed,
        )
    )
    return found[-1].metric
