"""Solver callbacks: the error on held-out rows at each step, and progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rfx.fitting.problem import Problem

# Held-out rows -> a function that maps weights, (D,) or (D, k), to decision values (m,) or (m, k).
Decide = Callable[[Any], Callable[[Any], Any]]

# Called by a solver with its report of a step, and a function that returns its current weights.
StepCallback = Callable[[dict[str, Any], Callable[[], Any]], None]


def evaluating(problem: Problem, decide: Decide, offset: Any = 0.0) -> StepCallback | None:
    """The callback of a solver that reports weights; None without a listener.

    If the problem has a curve, the entry of each step gets ``error``, outside of the solver's
    clock. Outputs solved one by one have zero decision values before their turn.

    Parameters
    ----------
    problem : Problem
    decide : callable
        See `Decide`.
    offset : float or array (k,)
        Added to the decision values.
    """
    progress, n_outputs = telling(problem), problem.n_outputs
    if problem.curve is None:
        return progress
    curve = problem.curve
    decision = decide(curve.X)
    values = np.zeros((curve.X.shape[0], n_outputs))
    offset = np.broadcast_to(offset, n_outputs)

    def tell(entry: dict[str, Any], coef: Callable[[], Any]) -> None:
        found = np.asarray(decision(coef()))
        if found.ndim == 1:
            output = entry.get("output", 0)
            values[:, output] = found + offset[output]
        else:
            values[...] = found + offset
        entry["error"] = curve.error(values[:, 0] if n_outputs == 1 else values)
        if progress is not None:
            progress(entry, coef)

    return tell


def telling(problem: Problem, machines: int | None = None) -> StepCallback | None:
    """The callback that forwards steps to the problem's listener, with ``outputs``, their number,
    or that of the machines fitted instead.
    """
    progress = problem.progress
    if progress is None:
        return None
    return lambda entry, _: progress(entry | {"outputs": machines or problem.n_outputs})
