"""
Intervals from rows left out
============================

Errors of rows left out one by one cost one more inverse. They give the score of a model, and an
interval that covers nine of ten new rows. With more rows, trees of kernel machines
(``LocalRegressor``, the default of ``rfx train``) have narrower intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

from rfx.estimators import KernelRegressor, LocalRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (8000, 1))
y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=len(X))
grid = np.linspace(-3, 3, 300)[:, None]
new = rng.uniform(-3, 3, (5000, 1))
truth = np.sin(2 * new[:, 0]) + 0.3 * rng.normal(size=len(new))

figure, panels = plt.subplots(2, figsize=(6, 7), sharex=True, layout="constrained")
models = {
    "kernel machine, 100 rows": (KernelRegressor(metric="none"), 100),
    "local, 8,000 rows": (LocalRegressor(metric="none"), len(X)),
}
for axes, (name, (model, n_rows)) in zip(panels, models.items()):
    model.fit(X[:n_rows], y[:n_rows])
    middle, lower, upper = model.predict(grid, return_interval=0.9)
    _, low, high = model.predict(new, return_interval=0.9)
    covered = np.mean((low <= truth) & (truth <= high))
    shown = slice(0, n_rows, max(1, n_rows // 400))
    axes.plot(X[shown], y[shown], ".", color="0.7")
    axes.plot(grid, middle)
    axes.fill_between(grid[:, 0], lower, upper, alpha=0.3)
    axes.set(title=f"{name}: {covered:.1%} of new rows are within", ylabel="y")
panels[1].set(xlabel="x")
plt.show()
