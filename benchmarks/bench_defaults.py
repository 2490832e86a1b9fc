"""Defaults: rf, kernel, rb and sparse-rf without any option, against scikit-learn's grid search and
gradient boosting.

All models are fitted to the same rows of each set and evaluated once, on rows that no choice was
made on. Large sets are cut to --rows training rows because of the grid search. It covers 5 x 5
values of an SVC's C and gamma (for regression, of KernelRidge's alpha and gamma, with standardised
targets) by 3-fold cross-validation on standardised inputs. The output is a Markdown table of the
accuracy or R2, averaged over --splits random splits, and the processor seconds of one fit. An
asterisk marks results more than two points below the grid search.

    python benchmarks/bench_defaults.py [--data australian cadata] [--rows 2000] [--splits 5]
"""

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from pairs import machine
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rfx import data, methods

SETS = (
    "australian",
    "diabetes",
    "heart_scale",
    "breast_cancer",
    "a9a",
    "cod-rna",
    "ijcnn1",
    "letter",
    "SUSY-30k",
    "covtype",
    "cadata",
    "cpu_act",
    "cpusmall",
)
OURS = ("rf", "kernel", "rb", "sparse-rf")
TEST_ROWS = 4000
C, GAMMA = [0.1, 1, 10, 100, 1000], [0.1, 0.3, 1, 3, 10]
PEERS = ("constant", "grid search", "HistGradientBoosting")
POINTS = 0.02


def peer(name: str, classes: bool, n_inputs: int):
    """The peer with that name, for classes or for regression."""
    if name == "constant":
        return DummyClassifier() if classes else DummyRegressor()
    if name == "HistGradientBoosting":
        return (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(
            random_state=0
        )
    # multiples of scikit-learn's own `scale`, which is 1 / (number of inputs) for standardised
    # inputs
    widths = [factor / n_inputs for factor in GAMMA]
    if classes:
        return GridSearchCV(
            make_pipeline(StandardScaler(), SVC()), {"svc__C": C, "svc__gamma": widths}, cv=3
        )
    ridge = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")), transformer=StandardScaler()
    )
    grid = {
        "regressor__kernelridge__alpha": [1 / value for value in C],
        "regressor__kernelridge__gamma": widths,
    }
    return GridSearchCV(ridge, grid, cv=3)


def scored(model, split, classes: bool) -> tuple[float, float]:
    """(accuracy or R2 on the test rows, processor seconds of the fit)."""
    start = time.process_time()
    model = model.fit(split.X_train, split.y_train)
    seconds = time.process_time() - start
    return (accuracy_score if classes else r2_score)(
        split.y_test, model.predict(split.X_test)
    ), seconds


def rows_of(name: str, most: int, seed: int):
    """The set's split with this seed, dense, with at most this many training rows."""
    split = data.load(name, split="80/20", seed=seed)
    n_train, n_test = min(most, len(split.y_train)), min(TEST_ROWS, len(split.y_test))
    split = data.load(name, split="80/20", seed=seed, n_train=n_train, n_test=n_test)
    if sp.issparse(split.X_train):
        dense = {"X_train": split.X_train.toarray(), "X_test": split.X_test.toarray()}
        split = replace(split, **dense)
    return split


def models(split, gamma=None):
    """(name, model) of all contestants; gamma: for those of rfx, None for the default."""
    classes = split.task != "regression"
    for name in PEERS:
        yield name, peer(name, classes, split.X_train.shape[1])
    for name in OURS:
        yield name, methods.create(name, task=split.task, gamma=gamma)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=SETS)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--gamma", default=None, help="for rfx, such as validation; default: that of rfx"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{machine()}\n")
    print(
        f"| data, rows | {' | '.join((*PEERS, *OURS))} |\n|---|{'---:|' * (len(PEERS) + len(OURS))}"
    )
    for name in given.data:
        found: dict[str, list] = {}
        for seed in range(given.splits):
            split = rows_of(name, given.rows, seed)
            for label, model in models(split, given.gamma):
                found.setdefault(label, []).append(scored(model, split, split.task != "regression"))
        means = {label: np.mean(values, axis=0) for label, values in found.items()}
        least = means["grid search"][0] - POINTS
        cells = [
            f"{score:.3f}{'*' if label in OURS and score < least else ''}, {seconds:.1f} s"
            for label, (score, seconds) in means.items()
        ]
        print(f"| {name}, {split.X_train.shape[0]:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
