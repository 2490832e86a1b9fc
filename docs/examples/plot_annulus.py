"""
A learned kernel: its frequencies lie on a ring
===============================================

The label states whether a point is farther from the centre than sqrt 2. From random frequencies of
a Gaussian kernel, lkrf selects those whose features align with the labels: a ring, like the border
between the labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from rfx.estimators import LKRFClassifier
from rfx.features import sample

X = np.random.default_rng(0).normal(size=(2000, 2))
y = np.where(np.linalg.norm(X, axis=1) > np.sqrt(2), 1, -1)

pool = 4000
model = LKRFClassifier(
    kernel="gaussian", gamma=0.5, pool=pool, loss="logistic", lam=1, scaling="none", metric="none"
).fit(X, y)
drawn = sample("gaussian", 2, pool, 0, gamma=0.5)
frequencies = {  # stored in cycles
    "drawn": 2 * np.pi * drawn.arrays["frequencies"],
    "selected": 2 * np.pi * model.method_.model.map.arrays["frequencies"],
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for label, colour in ((1, "C1"), (-1, "C0")):
    left.plot(*X[y == label].T, ".", color=colour, markersize=3, label=f"y = {label:+d}")
left.set(xlabel="$x_1$", ylabel="$x_2$", title="training rows")
for (name, w), colour in zip(frequencies.items(), ("0.8", "black")):
    label = f"{w.shape[1]:,} {name}"
    right.plot(*w, ".", color=colour, markersize=3, label=label)
right.set(xlabel="$w_1$", ylabel="$w_2$", title="frequencies")
for ax in (left, right):
    ax.set_aspect("equal")
    ax.legend(loc="upper right")
plt.show()
