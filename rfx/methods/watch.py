"""The error on held-out rows at every step that a solver reports, kept in its trace."""

import numpy as np


def watcher(method, decide, n_outputs: int):
    """The callback for the solver of `method`, None where it watches no rows: each step's entry gets `error`, outside of its clock.

    decide: held-out rows, scaled -> a function of weights, (m,) or (m, k), that gives their decision values, (n,) or (n, k). n_outputs: k.
    Outputs that are solved one after the other have decision values of zero until it is their turn.
    """
    if method.held_out is None:
        return None
    X, y = method.held_out
    decision = decide(method.scaler.transform(X, dtype=method._input_dtype()))
    values = np.zeros((X.shape[0], n_outputs))

    def tell(entry, coef):
        found = np.asarray(decision(coef()))
        if found.ndim == 1:
            values[:, entry.get("output", 0)] = found
        else:
            values[...] = found
        found = method.judge(values[:, 0] if n_outputs == 1 else values, y)
        entry["error"] = found["score"] if method.task == "regression" else 1.0 - found["score"]

    return tell
