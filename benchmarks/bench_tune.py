"""rfx tune against a grid search of 100 points over scikit-learn's RBFSampler and Ridge: processor
seconds, and the quality of the result.

Both use the same folds and the same number of features. They alternate in one process with one
thread each, so that processor seconds are comparable on a busy machine. The score is that of the
model of all training rows, on test rows that neither has seen.

    python benchmarks/bench_tune.py [--data cpusmall] [--pairs 5]
"""

import argparse

import numpy as np
from pairs import add_pairs, machine, ratios, spread, timed, turns
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from rfx import data, env, methods
from rfx.records.run import Run
from rfx.runs.tune import Tuning

FEATURES, PARTS = 500, 5


def ours(split, seed):
    """(RMSE by cross-validation, RMSE on the test rows) of the result of rfx tune."""
    given = {"task": "regression", "scaling": "minmax01", "n_features": FEATURES}
    run = Run(dataset=split.name, method="rf", cv=PARTS, seed=seed)
    tuning = Tuning(split, ["rf"], given, run, seconds=3600)
    best = tuning.run().best
    model = methods.create("rf", seed=seed, **tuning.options(best.point) | {"lam": best.lam}).fit(
        split.X_train, split.y_train
    )
    return best.score, root_mean_squared_error(split.y_test, model.predict(split.X_test))


def grid(split, seed):
    """The same for a grid of 10 bandwidths and 10 ridge parameters."""
    model = make_pipeline(
        MinMaxScaler(), RBFSampler(n_components=FEATURES, random_state=seed), Ridge()
    )
    points = {"rbfsampler__gamma": np.logspace(-2, 2, 10), "ridge__alpha": np.logspace(-4, 2, 10)}
    parts = KFold(PARTS, shuffle=True, random_state=seed)
    search = GridSearchCV(model, points, cv=parts, scoring="neg_root_mean_squared_error").fit(
        split.X_train.toarray(), split.y_train
    )
    return -search.best_score_, root_mean_squared_error(
        split.y_test, search.predict(split.X_test.toarray())
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cpusmall")
    add_pairs(parser)
    given = parser.parse_args()
    env.set_threads(1)
    split, ways = data.load(given.data), {"rfx tune": ours, "GridSearchCV, 100 points": grid}
    # compiles
    methods.create("rf", n_features=20).fit(
        np.random.default_rng(0).normal(size=(300, 3)), np.linspace(0, 1, 300)
    )
    # a new seed in every turn, the same for both
    seeds = {name: iter(range(given.pairs)) for name in ways}
    found = turns(
        ways, lambda name: timed(lambda: ways[name](split, next(seeds[name]))), given.pairs
    )
    print(f"{machine()}\n")
    print(
        "| search | RMSE by cross-validation | RMSE on test rows | processor s | times rfx"
        " |\n|---|---|---|---|---|"
    )
    for name, rows in found.items():
        judged, scored = (spread(values, ".3f") for values in zip(*(row["result"] for row in rows)))
        print(
            f"| {name} | {judged} | {scored} | {spread([row['cpu'] for row in rows], '.1f')} |"
            f" {ratios(rows, found['rfx tune'], 'cpu')} |"
        )


if __name__ == "__main__":
    main()
