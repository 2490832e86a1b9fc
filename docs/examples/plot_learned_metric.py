"""
A learned metric finds the inputs that matter
=============================================

The target depends on two of fifty inputs. A recursive feature machine learns a metric that gives
them most of the weight, and the kernel machine with this metric errs less.
"""

import matplotlib.pyplot as plt
import numpy as np

from rfx.estimators import KernelRegressor, RFMRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(800, 50))
y = np.sin(X[:, 0]) * X[:, 1]
train, test = slice(0, 600), slice(600, 800)

plain = KernelRegressor(kernel="gaussian", metric="none").fit(X[train], y[train])
learned = RFMRegressor(kernel="gaussian").fit(X[train], y[train])
print(f"R2 without a metric {plain.score(X[test], y[test]):.3f}")
print(f"R2 with a metric    {learned.score(X[test], y[test]):.3f}")

plt.bar(range(50), learned.feature_importances_)
plt.xlabel("input")
plt.ylabel("share of the metric")
plt.show()
