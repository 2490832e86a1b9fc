"""
Choosing the bandwidth
======================

Training and validation error over gamma for the Gaussian kernel, on handwritten digits: mean and
standard deviation over five folds. A small gamma is a wide kernel. The line is the median rule.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import validation_curve

from rfx.estimators import RFClassifier

X, y = load_digits(return_X_y=True)
common = {"kernel": "gaussian", "n_features": 300, "lam": 0.1, "scaling": "none", "metric": "none"}
gammas = np.logspace(-5, -2.5, 8)
parts = validation_curve(
    RFClassifier(loss="squared", **common), X, y, param_name="gamma", param_range=gammas, cv=5
)
for label, scores, colour in zip(("training", "validation"), parts, ("C0", "C1")):
    errors = 100 * (1 - scores)
    mean, deviation = errors.mean(axis=1), errors.std(axis=1)
    print(label, mean.round(2))
    plt.semilogx(gammas, mean, "o-", color=colour, label=label)
    plt.fill_between(gammas, mean - deviation, mean + deviation, color=colour, alpha=0.2)

median = RFClassifier(gamma="median", **common).fit(X, y).info_["kernel_params"]["gamma"]
plt.axvline(median, color="black", ls="--", label='gamma="median"')
plt.xlabel("gamma")
plt.ylabel("error, %")
plt.legend()
plt.show()
