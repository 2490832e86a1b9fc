"""Choose options of batch-learning methods by short trainings on a sample.

The sample contains at most ROWS of the rows surveyed before the first step, drawn at random,
scaled, and mapped by the metric if one is learnt. A fifth of them is held out. Every candidate
learns from the others, with the method's default number of epochs. First nu is chosen, with the
bandwidth of lowest leave-one-out error of kernel ridge regression; then the bandwidth, among that
and larger multiples of gamma. The candidate with the lowest held-out error is used. Because error
rates are uncertain on so few rows, the first candidate within half a standard error of the lowest
is used: the largest nu, the smallest gamma. nu refers to the mean loss, so it is the same for the
sample and for all rows. A stream that can be read twice is surveyed in full, otherwise only its
first rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rfx.data.stream import ArraySource, Stream
from rfx.data.survey import SAMPLE, Inputs
from rfx.data.transforms.scaling import Scaler
from rfx.fitting import bandwidth, selection
from rfx.fitting.cache import Cache
from rfx.fitting.learned import Learned
from rfx.fitting.method import Method
from rfx.fitting.problem import Problem
from rfx.fitting.stream_options import THETAS
from rfx.fitting.stream_weights import BatchWeights
from rfx.fitting.validation import LAMS

if TYPE_CHECKING:
    from rfx.fitting.streaming import Learner, StreamMethod

# Rows of the sample; other words for the bandwidth than loo are resolved on SAMPLE of them.
ROWS = 6144


def choose(method: StreamMethod, problem: Problem, n_rows: int | None) -> selection.Choice:
    """Replace every word among the options of the method by the number that it selects.

    Parameters
    ----------
    method : StreamMethod
    problem : Problem
        Prepared rows of the sample in random order, and their encoded targets.
    n_rows : int or None
        Of the whole set; None if unknown.
    """
    if method.get("gamma") == "tuned" and bandwidth.has_gamma(method.kernel):
        known, first = n_rows or problem.n_rows, problem.rows(np.arange(problem.n_rows)[:SAMPLE])
        lams = list(LAMS) if isinstance(method.nu, str) else [method.nu * known]
        known_rows = (first.X, first.Y, lams, method.seed, first.weights, first.apart)
        gamma, steps = bandwidth.tuned(method.kernel, *known_rows, **method.kernel_options)
        choice = choose(method.updated(gamma=gamma), problem, n_rows)
        found = {"gamma": gamma} | choice.chosen
        return selection.Choice(choice.method, found, steps + choice.steps, choice.seconds)
    trial = method.updated(epochs=_trial_passes(method, n_rows))
    if method.get("step") == "root" and method.theta is None:
        trial = trial.updated(theta="validation")
    choice = selection.choose(trial, problem, Cache())
    return selection.Choice(
        method.with_choice(choice.chosen), choice.chosen, choice.steps, choice.seconds
    )


def _trial_passes(method: StreamMethod, n_rows: int | None) -> int:
    """Epochs over the sample: the method's default, whatever the training uses.

    So a training resumed with more epochs has the same options as one that requested as many from
    the beginning.
    """
    return method.updated(epochs=None).passes(n_rows)


def trained(method: StreamMethod, problem: Problem) -> Learner:
    """A learner of prepared rows in memory, with a random order in each epoch."""
    weights = BatchWeights(problem.weights)
    n_inputs, seed = problem.n_inputs, method.seed
    order = np.random.default_rng(seed).permutation(problem.n_rows)
    sample = problem.X[order[: max(1, method.n_landmarks())]]
    known = Learned(
        problem.task,
        None,
        None,
        problem.loss,
        Inputs(Scaler("none", np.zeros(n_inputs), np.ones(n_inputs))),
        method.kernel_params(problem.X),
        problem.n_rows,
        n_inputs,
        problem.n_outputs,
        n_inputs,
        sample if isinstance(sample, np.ndarray) else sample.toarray(),
        [],
    )
    learner = method.learner(known, weights, True)
    numbers = np.arange(problem.n_rows, dtype=np.float64)
    stream = Stream(ArraySource(problem.X, numbers, seed), method.batch, 0, seed, method.epochs)
    for X, y, index in stream:
        learner.step(X, problem.Y[index], index, weights.of(y, index))
    return learner


def thetas(problem: Problem, method: Method) -> list[float]:
    """The candidate lengths of the first step, in the unit of the targets if the loss requires
    it."""
    tried = THETAS[:1] if method.precondition else THETAS
    return [value * problem.unit for value in tried]
