"""What is told of a solver's steps: the error on held-out rows, kept in its trace, and progress to whoever asked for it."""

import numpy as np


def watcher(method, decide, n_outputs: int, offset=0.0):
    """The callback for the solver of `method`, None where it watches no rows and nobody asked for its progress.

    Where it watches rows each step's entry gets `error`, outside of the solver's clock. decide: held-out rows, scaled -> a function of
    weights, (m,) or (m, k), that gives their decision values, (n,) or (n, k). n_outputs: k. offset: a number or (k,), what is added
    to them. Outputs that are solved one after the other have decision values of zero until it is their turn.
    """
    progress = teller(method, n_outputs)
    if method.held_out is None:
        return progress
    X, y = method.held_out
    decision = decide(method.scaler.transform(X, dtype=method._input_dtype()))
    values, offset = np.zeros((X.shape[0], n_outputs)), np.broadcast_to(offset, n_outputs)

    def tell(entry, coef):
        found = np.asarray(decision(coef()))
        if found.ndim == 1:
            output = entry.get("output", 0)
            values[:, output] = found + offset[output]
        else:
            values[...] = found + offset
        found = method.judge(values[:, 0] if n_outputs == 1 else values, y)
        entry["error"] = found["score"] if method.task == "regression" else 1.0 - found["score"]
        if progress is not None:
            progress(entry, coef)

    return tell


def teller(method, n_outputs: int):
    """The callback that tells the steps to `method.progress`, as a dict with `outputs`, how many there are; None where nobody asked."""
    if method.progress is None:
        return None
    return lambda entry, _: method.progress(entry | {"outputs": n_outputs})
