"""
Probabilities before and after calibration
==========================================

With a small penalty the probabilities of the logistic loss are too extreme on these noisy data:
the observed frequencies lie closer to one half. After Platt calibration on held-out folds they are
closer to the diagonal, and the Brier score is lower.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss

from rfx.estimators import RFClassifier

X, y = make_classification(
    6000, n_informative=4, n_redundant=0, flip_y=0.1, class_sep=0.7, random_state=0
)
X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
common = {"kernel": "gaussian", "gamma": 0.02, "scaling": "none", "metric": "none"}
logistic = RFClassifier(n_features=500, loss="logistic", lam=1e-3, **common)
calibrated = CalibratedClassifierCV(logistic, method="sigmoid", cv=5, ensemble=False)

figure, (above, below) = plt.subplots(
    2, figsize=(6, 7), sharex=True, height_ratios=(3, 1), layout="constrained"
)
above.plot([0, 1], [0, 1], "--", color="black", label="perfect")
for name, model in {"before": logistic, "after": calibrated}.items():
    found = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
    observed, predicted = calibration_curve(y_test, found, n_bins=10)
    score = brier_score_loss(y_test, found)
    above.plot(predicted, observed, "o-", label=f"{name}: Brier score {score:.3f}")
    below.hist(found, np.linspace(0, 1, 11), histtype="step", lw=2)
above.set(ylabel="observed frequency")
above.legend()
below.set(xlabel="predicted probability", ylabel="test rows")
plt.show()
