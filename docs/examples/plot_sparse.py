"""
Sparse random features: accuracy against model size
===================================================

The L1 penalty keeps a part of the features. A larger penalty gives a smaller model.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from rfx.estimators import RFClassifier, SparseRFClassifier

X, y = load_digits(return_X_y=True)
split = train_test_split(X, y, random_state=0)
X_train, X_test, y_train, y_test = split
common = {"kernel": "gaussian", "gamma": "median", "scaling": "minmax01", "metric": "none"}

sizes, scores = [], []
for lam in (30, 10, 3, 1):
    model = SparseRFClassifier(n_features=1000, lam=lam, **common).fit(X_train, y_train)
    sizes.append(model.info_["model_size"])
    scores.append(model.score(X_test, y_test))
plt.plot(sizes, scores, "o-", label="sparse-rf")
dense = RFClassifier(n_features=1000, lam=1, **common).fit(X_train, y_train)
plt.plot(dense.info_["model_size"], dense.score(X_test, y_test), "s", label="rf")
plt.xlabel("features in the model")
plt.ylabel("accuracy on test rows")
plt.legend(loc="lower right")
plt.show()
