"""
Random features approximate a kernel
====================================

The error of the approximated kernel matrix falls like 1/sqrt(D) with random Fourier features, and
faster with landmarks where the kernel is smooth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from rfx.estimators import FourierFeatures, NystromFeatures

X = np.random.default_rng(0).normal(size=(300, 4))
exact = rbf_kernel(X, gamma=0.25)
sizes = [16, 32, 64, 128, 256]
fixed = {"kernel": "gaussian", "gamma": 0.25, "scaling": "none"}
for kind in (FourierFeatures, NystromFeatures):
    errors = []
    for size in sizes:
        made = [kind(n_features=size, seed=seed, **fixed).fit_transform(X) for seed in range(5)]
        errors.append(np.mean([np.linalg.norm(Z @ Z.T - exact) for Z in made]))
    plt.loglog(sizes, errors / np.linalg.norm(exact), "o-", label=kind.__name__)
plt.xticks(sizes, sizes)
plt.minorticks_off()
plt.xlabel("features D")
plt.ylabel("relative error of the kernel matrix")
plt.legend()
plt.show()
