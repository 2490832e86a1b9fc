"""Alternatives that practitioners use: sparse-rf against gradient boosting and scikit-learn's
random features.

All run in one process, in turns, on the same split, the peers with their defaults. The output is a
Markdown table.

    python benchmarks/bench_user.py [--data cod-rna ijcnn1] [--pairs 5]
"""

import argparse
import pickle
import tempfile
import time
from pathlib import Path

import numpy as np
from pairs import add_pairs, machine, spread, turns
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

from rfx import data, methods


def candidates():
    """(name, estimator, function from the fitted estimator to the size of its file in bytes)."""

    def saved(method):
        with tempfile.TemporaryDirectory() as folder:
            return method.save(Path(folder) / "model.npz")

    def pickled(estimator):
        return len(pickle.dumps(estimator))

    ours = methods.create(
        "sparse-rf",
        kernel="gaussian",
        gamma=1.0,
        scaling="minmax11",
        n_features=2000,
        lam=10.0,
        tol=1e-3,
    )
    yield "rfx sparse-rf, D = 2,000, lambda = 10", ours, saved
    yield "HistGradientBoostingClassifier", HistGradientBoostingClassifier(random_state=0), pickled
    linear = make_pipeline(
        MinMaxScaler((-1, 1)),
        RBFSampler(gamma=1.0, n_components=1000, random_state=0),
        LinearSVC(random_state=0),
    )
    yield "RBFSampler(1000) + LinearSVC", linear, pickled


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["cod-rna", "ijcnn1"])
    add_pairs(parser)
    given = parser.parse_args()
    methods.create("sparse-rf", n_features=50, lam=1.0).fit(
        np.random.default_rng(0).normal(size=(300, 3)), np.tile([0.0, 1.0], 150)
    )
    print(f"{machine()}\n")
    print(
        "| data (split yen2014) | model | accuracy | train s | predict s | KiB"
        " |\n|---|---|---|---|---|---|"
    )
    for name in given.data:
        split = data.load(name, split="yen2014")
        X_train, X_test = split.X_train.toarray(), split.X_test.toarray()
        models = {label: (model, size) for label, model, size in candidates()}

        def run(label, models=models, X_train=X_train, X_test=X_test, split=split):
            model, size = models[label]
            start = time.perf_counter()
            model = model.fit(X_train, split.y_train)
            trained = time.perf_counter()
            accuracy = np.mean(model.predict(X_test) == split.y_test)
            return trained - start, time.perf_counter() - trained, accuracy, size(model) / 1024

        for label, rows in turns(models, run, given.pairs).items():
            train, predict, (accuracy, *_), (kib, *_) = zip(*rows)
            print(
                f"| {name} | {label} | {accuracy:.4f} | {spread(train, '.1f')} | {spread(predict)}"
                f" | {kib:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
