"""
Variants of Fourier features
============================

The error of the approximated Gaussian kernel for five ways to draw the features, averaged over
five seeds. The inputs are eight normal variables.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from rfx.estimators import FourierFeatures

X = np.random.default_rng(0).normal(size=(200, 8))
gamma = 0.0625
exact = rbf_kernel(X, gamma=gamma)
sizes = [16, 32, 64, 128, 256, 512]
markers = {"offset": "o", "pairs": "s", "orthogonal": "^", "quasi": "D", "hadamard": "v"}

for variant, marker in markers.items():
    errors = []
    for size in sizes:
        found = []
        for seed in range(5):
            features = FourierFeatures(
                gamma=gamma, features=variant, n_features=size, scaling="none", seed=seed
            )
            Z = features.fit_transform(X)
            found.append(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))
        errors.append(np.mean(found))
    print(variant, *(f"{error:.4f}" for error in errors))
    plt.loglog(sizes, errors, marker + "-", label=variant)

plt.xticks(sizes, sizes)
plt.yticks([0.05, 0.1, 0.2, 0.5], [0.05, 0.1, 0.2, 0.5])
plt.minorticks_off()
plt.xlabel("features D")
plt.ylabel("relative error of the kernel matrix")
plt.legend(title="features=")
plt.show()
