"""A small reader of exported JSON, written from docs/export.md alone with numpy and scipy's normal
distribution.
"""

import math

import numpy as np
from scipy.special import ndtri

_FUNCTIONS = {
    "cos_turns": lambda t: np.cos(2 * np.pi * (t - np.rint(t))),
    "cube": lambda t: t**3,
    "exp": np.exp,
    "exp_minus": lambda t: np.exp(-t),
    "log_positive": lambda t: np.log(np.where(t > 0, t, 1.0)),
    "matern3": lambda t: (1 + t) * np.exp(-t),
    "matern5": lambda t: (1 + t + t**2 / 3) * np.exp(-t),
    "multiscale": lambda t: np.mean([np.exp(-s * t) for s in (1 / 16, 1 / 4, 1, 4, 16)], axis=0),
    "normal_quantile": ndtri,
    "positive": lambda t: np.where(t > 0, 1.0, 0.0),
    "ramp": lambda t: np.maximum(0, t),
    "sigmoid": lambda t: 1 / (1 + np.exp(-t)),
    "soft_clip": lambda t: t / np.hypot(1, t / 3),
    "sqrt": np.sqrt,
    "square": lambda t: t**2,
}
_TERMS = {
    "squared": lambda x, s: (x - s) ** 2,
    "l1": lambda x, s: np.abs(x - s),
    "hat": lambda x, s: np.maximum(0, 1 - np.abs(x - s)),
    "rational": lambda x, s: 1 / (1 + np.abs(x - s)),
    "erlang": lambda x, s: (1 + np.abs(x - s) / 2) * np.exp(-np.abs(x - s)),
    "sech": lambda x, s: 1 / np.cosh(x - s),
    "chi2": lambda x, s: np.where(x + s > 0, 2 * x * s / np.where(x + s > 0, x + s, 1), 0.0),
    "differing": lambda x, s: 1.0 * (x != s),
}


def decisions(model, rows):
    """The result of the steps for rows: lists of cells, numbers and None or words."""
    X = np.concatenate(
        [_encoded(column, [row[j] for row in rows]) for j, column in enumerate(model["columns"])],
        axis=1,
    )
    return carried_out(model["steps"], X)


def labels(model, values):
    if model["label_from"] == "probabilities":
        places = carried_out(model["probabilities"], values).argmax(axis=1)
    elif len(model["labels"]) <= 2:
        places = (values[:, 0] > 0).astype(int) * (len(model["labels"]) - 1)
    else:
        places = values.argmax(axis=1)
    return [model["labels"][place] for place in places]


def _encoded(column, cells):
    if column["categories"] is None:
        fill = np.nan if column["fill"] is None else column["fill"]
        return np.array([[fill if cell is None else cell] for cell in cells], float)
    count = len(column["categories"])
    places = {word: place % count for place, word in enumerate(column["spellings"])}
    fill = count if column["fill"] is None else column["fill"]
    found = [fill if cell is None else places.get(cell, count) for cell in cells]
    if column["values"] is not None:
        return np.array(column["values"])[found]
    return np.eye(count + 1)[found][:, :count]


def carried_out(steps, X):
    for step in steps:
        given = {
            name: np.array(value) if isinstance(value, list) and name != "parts" else value
            for name, value in step.items()
            if name != "step"
        }
        X = _STEPS[step["step"]](X, **given)
    return X


def _yeo_johnson(X, powers):
    power = np.where(X < 0, 2 - powers, powers)
    size = np.log(1 + np.abs(X))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(power == 0, size, (np.exp(power * size) - 1) / power)
    return np.where(X < 0, -found, found)


def _interpolate(X, sizes, knots, left, at, right):
    out = np.empty(X.shape)
    for j, size in enumerate(sizes):
        own, before, here, behind = (part[j, :size] for part in (knots, left, at, right))
        for i, x in enumerate(X[:, j]):
            k = int(np.sum(own <= x)) - 1
            if k < 0 or x == own[k] or k == size - 1:
                out[i, j] = here[max(k, 0)]
            else:
                share = (x - own[k]) / (own[k + 1] - own[k])
                out[i, j] = behind[k] + share * (before[k + 1] - behind[k])
    return out


def _unit(X):
    length = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return X / np.where(length > 0, length, 1)


def _compare(X, rows, how):
    over = np.sum if how in ("squared", "l1", "chi2", "differing") else np.prod
    return np.stack([over(_TERMS[how](X, row), axis=1) for row in rows], axis=1)


def _arc_cosine(X, rows, order):
    product = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(rows, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.clip(X @ rows.T / product, -1, 1)
    theta = np.arccos(cosine)
    inner = [
        np.pi - theta,
        np.sin(theta) + (np.pi - theta) * cosine,
        3 * np.sin(theta) * cosine + (np.pi - theta) * (1 + 2 * cosine**2),
    ][order]
    return np.where(product > 0, product**order * inner / np.pi, 0.0)


def _bins(X, offsets, inverses, multipliers, base, keys, starts, weights):
    found = np.zeros((len(X), weights.shape[1]))
    numbers, keys = [int(own) for own in multipliers], [int(key) for key in keys]
    for g, (start, stop) in enumerate(zip(starts, starts[1:])):
        places = {keys[place]: place for place in range(start, stop)}
        cells = np.floor((X - offsets[g]) * inverses[g])
        for i, row in enumerate(cells):
            if not (np.abs(row) < 2**51).all():
                continue
            key = sum((int(base) + int(c)) * m for c, m in zip(row, numbers)) % 2**64
            if key in places:
                found[i] += weights[places[key]]
    return found


def _complex_product(X, parts):
    found = 1
    for steps in parts:
        both = carried_out(steps, X)
        half = both.shape[1] // 2
        found = found * (both[:, :half] + 1j * both[:, half:])
    return np.hstack([found.real, found.imag])


def _branch(X, directions, thresholds, children, parts):
    rows = []
    for x in X:
        place = 0 if len(thresholds) else -1
        while place >= 0:
            place = children[place][int(np.dot(x, directions[place]) > thresholds[place])]
        rows.append(carried_out(parts[-1 - place], x[None])[0])
    return np.array(rows)


def _softmax(X):
    raised = np.exp(X - X.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _shares(X):
    total = X.sum(axis=1, keepdims=True)
    return np.where(total > 0, X / np.where(total > 0, total, 1), 1 / X.shape[1])


_STEPS = {
    "select": lambda X, columns: X[:, columns],
    "scale": lambda X, centre, factor: (X - centre) * factor,
    "linear": lambda X, matrix, offset: X @ matrix.reshape(X.shape[1], -1) + offset,
    "round": lambda X: X.astype(np.float32).astype(float),
    "clip": lambda X, low, high: np.minimum(np.maximum(X, low), high),
    "function": lambda X, name: _FUNCTIONS[name](X),
    "sign": lambda X, thresholds: np.where(X >= thresholds, 1.0, -1.0),
    "yeo_johnson": _yeo_johnson,
    "interpolate": _interpolate,
    "unit": _unit,
    "compare": _compare,
    "arc_cosine": _arc_cosine,
    "bins": _bins,
    "product": lambda X, parts: math.prod(carried_out(steps, X) for steps in parts),
    "sum": lambda X, parts: sum(carried_out(steps, X) for steps in parts),
    "complex_product": _complex_product,
    "branch": _branch,
    "softmax": _softmax,
    "shares": _shares,
}
