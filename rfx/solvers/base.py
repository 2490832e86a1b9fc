"""What every solver returns."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Solution:
    """The outcome of one optimisation.

    coef: (n_columns,) or (n_columns, n_outputs) weights.
    objective: value of the (un-normalised) objective at coef; summed over outputs.
    gap: certificate: objective minus a dual lower bound (>= 0), or the largest KKT violation where a solver has no
        dual bound (its docstring says which); the largest over outputs.
    n_iter: iterations, in the solver's own unit; summed over outputs.
    converged: False when an iteration or time limit ended it before the certificate met the tolerance.
    trace: one dict per outer iteration, for tables and figures.
    """

    coef: np.ndarray
    objective: float
    gap: float
    n_iter: int
    converged: bool
    trace: list = field(default_factory=list)


def stack(solutions: list[Solution]) -> Solution:
    """One Solution for several outputs solved one by one (one-vs-all): coef has a column for each."""
    return Solution(
        coef=np.stack([s.coef for s in solutions], axis=-1),
        objective=float(sum(s.objective for s in solutions)),
        gap=float(max(s.gap for s in solutions)),
        n_iter=int(sum(s.n_iter for s in solutions)),
        converged=all(s.converged for s in solutions),
        trace=[dict(entry, output=k) for k, s in enumerate(solutions) for entry in s.trace],
    )
