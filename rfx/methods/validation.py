"""Held-out rows of the training data, for options that are chosen by validation."""

import numpy as np

from rfx.errors import UsageError


def held_out(count: int, share: float, seed: int, option: str) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers (kept, held out), both sorted; `share` of the rows, drawn by `seed`, are held out.

    Raises UsageError naming `option` (its flag and value) where that would leave either without a row.
    """
    cut = int(share * count)
    if not 0 < cut < count:
        raise UsageError(
            f"{option}, which needs at least {int(np.ceil(1 / share))} rows, but there {'is 1' if count == 1 else f'are {count}'}"
        )
    order = np.random.default_rng(seed).permutation(count)
    return np.sort(order[cut:]), np.sort(order[:cut])


def error(task: str, decision, Y) -> float:
    """Mean squared error for regression, share of wrong labels for classification; decision, Y: (n, k), Y as +-1 for classes."""
    if task == "regression":
        return float(np.mean((decision - Y) ** 2))
    if Y.shape[1] == 1:
        return float(np.mean((decision > 0) != (Y > 0)))
    return float(np.mean(np.argmax(decision, axis=1) != np.argmax(Y, axis=1)))
