"""
Learning while batches arrive
=============================

The error of two methods on held-out rows while batches arrive. Every row is read once.
"""

import matplotlib.pyplot as plt
import numpy as np

from rfx.estimators import DoublySGDRegressor, RPegasosRegressor

NOISE = 0.2


def batch(rng, rows):
    X = rng.uniform(size=(rows, 3))
    y = np.sin(6 * X[:, 0]) * np.cos(6 * X[:, 1]) + X[:, 2]
    return X, y + NOISE * rng.normal(size=rows)


X_test, y_test = batch(np.random.default_rng(1), 1000)
common = {"gamma": 8.0, "nu": 1e-4, "batch": 64, "scaling": "none"}
models = {
    "doubly-sgd": DoublySGDRegressor(block=64, **common),
    "r-pegasos": RPegasosRegressor(n_features=500, **common),
}
for name, model in models.items():
    rng = np.random.default_rng(0)
    seen, errors = [], []
    for count in range(1, 101):
        model.partial_fit(*batch(rng, 128))
        if count % 4 == 0 or count < 8:
            seen.append(128 * count)
            errors.append(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    print(name, np.round(errors[::5], 3))
    plt.semilogx(seen, errors, ".-", label=name)
plt.axhline(NOISE, color="black", ls="--", label="noise of the target")
plt.xlabel("rows read")
plt.ylabel("RMSE on held-out rows")
plt.legend()
plt.show()
