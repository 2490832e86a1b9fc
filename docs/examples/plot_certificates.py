"""
Certificates: the duality gap while a solver runs
=================================================

The duality gap bounds the distance of the objective from its minimum. A second, more accurate fit
shows the true distance, which is below the gap at every step.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from rfx.estimators import KernelClassifier, RFClassifier

X, y = load_breast_cancer(return_X_y=True)
common = {"kernel": "gaussian", "gamma": "median", "scaling": "standard", "metric": "none"}
common |= {"loss": "logistic", "lam": 0.01}
models = {
    "kernel": KernelClassifier(**common),
    "rf": RFClassifier(n_features=500, dtype="float64", **common),
}

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    lowest = model.set_params(tol=1e-10).fit(X, y).info_["objective"]
    steps = model.set_params(tol=1e-4).fit(X, y).method_.trace
    at = [step["iteration"] for step in steps]
    gaps = [step["gap"] / lowest for step in steps]
    true = [step["objective"] / lowest - 1 for step in steps]
    ax.semilogy(at, gaps, "o-", label="duality gap")
    ax.semilogy(at, true, "s-", label="true distance")
    ax.set(title=name, xlabel="iteration")
axes[0].set_ylabel("relative to the minimum")
axes[1].legend()
plt.show()
