"""
Binning or Fourier features for the Laplacian kernel
====================================================

Test error over the number of random binning grids, or of random Fourier features, for the same
kernel. Here small numbers of Fourier features err less than binning if the kernel is wide, and more
if it is narrow.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from rfx.estimators import KernelRegressor, RBRegressor, RFRegressor

X, y = make_friedman1(1000, n_features=5, noise=0.1, random_state=0)
train, test = slice(0, 600), slice(600, None)
common = {"kernel": "laplacian", "lam": 0.1, "scaling": "none", "metric": "none"}
kinds = {
    "Fourier features": (RFRegressor, "n_features", "o-"),
    "binning grids": (RBRegressor, "n_grids", "s-"),
}
sizes = [16, 32, 64, 128, 256, 512]


def error(kind, **options):
    model = kind(target_scaling="mean", **common, **options).fit(X[train], y[train])
    return np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))


figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, gamma, width in zip(axes, (0.25, 2.0), ("wide", "narrow")):
    for label, (kind, name, look) in kinds.items():
        errors = [
            np.mean([error(kind, gamma=gamma, seed=seed, **{name: size}) for seed in range(3)])
            for size in sizes
        ]
        print(f"gamma {gamma}, {label}:", np.round(errors, 2))
        ax.semilogx(sizes, errors, look, label=label)
    ax.axhline(error(KernelRegressor, gamma=gamma), color="black", ls="--", label="exact kernel")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set(title=f"{width} kernel, gamma {gamma}", xlabel="features or grids")
axes[0].set_ylabel("test RMSE, mean of 3 seeds")
axes[0].set_ylim(bottom=0)
axes[1].legend()
plt.show()
