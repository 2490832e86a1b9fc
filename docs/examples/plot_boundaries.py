"""
Decision boundaries of four methods
===================================

Two moons, separated by the exact kernel machine and by three methods with random features. The line
is the boundary; colours show the decision value, scaled to its largest absolute value.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from rfx.estimators import KernelClassifier, RBClassifier, RFClassifier, SparseRFClassifier

X, y = make_moons(300, noise=0.25, random_state=0)
X_test, y_test = make_moons(2000, noise=0.25, random_state=1)
common = {"gamma": 2.0, "scaling": "none", "metric": "none"}
models = {
    "kernel": KernelClassifier(kernel="gaussian", lam=1, **common),
    "rf": RFClassifier(kernel="gaussian", n_features=300, lam=1, **common),
    "rb": RBClassifier(n_grids=300, lam=1, **common),
    "sparse-rf": SparseRFClassifier(kernel="gaussian", n_features=300, lam=3, **common),
}

across, up = np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.5, 2, 120))
colours = np.where(y == 1, "red", "dodgerblue")
places = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items()):
    model.fit(X, y)
    values = model.decision_function(places).reshape(across.shape)
    most = np.abs(values).max()
    ax.contourf(across, up, values, np.linspace(-most, most, 21), cmap="RdBu_r", alpha=0.6)
    ax.contour(across, up, values, [0], colors="black")
    ax.scatter(*X.T, c=colours, edgecolors="black", linewidths=0.4, s=14)
    ax.set_title(f"{name}: test accuracy {model.score(X_test, y_test):.1%}")
plt.show()
