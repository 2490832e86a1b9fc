"""Predicting 10,000 rows with 10,000 random features: rfx, in blocks, against scikit-learn's
RBFSampler and a dot product.

Both run in one process, in turns, on cod-rna's inputs.

    python benchmarks/bench_predict.py [--rows 10000] [--n-features 10000] [--pairs 5]
"""

import argparse

import numpy as np
from pairs import add_pairs, machine, ratios, spread, timed, turns
from sklearn.kernel_approximation import RBFSampler

from rfx import data
from rfx.data.transforms import Scaler
from rfx.features import sample
from rfx.fitting.linear import linear_decision


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--n-features", type=int, default=10_000)
    add_pairs(parser)
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
            RBFSampler(gamma=1.0, n_components=given.n_features, random_state=0).fit(
                X.astype(dtype)
            ),
            X.astype(dtype),
            coef.astype(dtype),
        )
        for dtype in (np.float64, np.float32)
    }
    runs = {f"rfx {name}": lambda m=m: linear_decision(m, coef, X) for name, m in maps.items()}
    runs |= {name: lambda p=p: p[0].transform(p[1]) @ p[2] for name, p in peers.items()}
    for run in runs.values():
        run()  # compiles
    found = turns(runs, lambda name: timed(runs[name]), given.pairs)
    first = found["rfx gaussian"]
    print(f"{machine()}\n")
    titles = "seconds | CPU seconds | times rfx gaussian | in CPU seconds"
    print(f"| {X.shape[0]} rows x {given.n_features} features | {titles} |\n|---|---|---|---|---|")
    for name, rows in found.items():
        seconds, cpu = (spread([row[kind] for row in rows], ".3f") for kind in ("seconds", "cpu"))
        print(
            f"| {name} | {seconds} | {cpu} | {ratios(rows, first, 'seconds')} |"
            f" {ratios(rows, first, 'cpu')} |"
        )


if __name__ == "__main__":
    main()
