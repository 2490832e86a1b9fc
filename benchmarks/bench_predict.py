"""Prediction of 10,000 rows by 10,000 random features: rfx's blocks beside scikit-learn's RBFSampler and a dot product.

Both in the same process run, alternating, on cod-rna's inputs; prints a markdown table of the medians.
Run: python benchmarks/bench_predict.py [--rows 10000] [--n-features 10000] [--repeat 5]
"""

import argparse
import statistics
import time

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from rfx import data
from rfx.data.scaling import Scaler
from rfx.features import sample
from rfx.methods.linear import linear_decision


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--n-features", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    split = data.load("cod-rna", split="yen2014")
    X = Scaler.fit(split.X_train, "minmax11").transform(split.X_test[: given.rows])
    coef = np.random.default_rng(0).normal(size=(given.n_features, 1))
    maps = {
        name: sample(name, X.shape[1], given.n_features, 0, **params)
        for name, params in (("gaussian", {"gamma": 1.0}), ("perceptron", {"radius": 2.8}))
    }
    peers = {
        f"scikit-learn RBFSampler, {dtype.__name__}": (
            RBFSampler(gamma=1.0, n_components=given.n_features, random_state=0).fit(X.astype(dtype)),
            X.astype(dtype),
            coef.astype(dtype),
        )
        for dtype in (np.float64, np.float32)
    }
    runs = {f"rfx {name}": (lambda m=m: linear_decision(m, coef, X)) for name, m in maps.items()}
    runs |= {name: (lambda p=p: p[0].transform(p[1]) @ p[2]) for name, p in peers.items()}
    seconds = {name: [] for name in runs}
    for turn in range(given.repeat + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn:  # the first turn compiles
                seconds[name].append(time.perf_counter() - start)
    ours = statistics.median(seconds["rfx gaussian"])
    print(f"| {X.shape[0]} rows x {given.n_features} features | median s | x rfx gaussian |\n|---|---|---|")
    for name, values in seconds.items():
        print(f"| {name} | {statistics.median(values):.3f} | {statistics.median(values) / ours:.1f} |")


if __name__ == "__main__":
    main()
