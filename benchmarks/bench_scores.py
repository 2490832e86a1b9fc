"""The score that `rfx train --data FILE` prints, beside that of fresh rows, on generated tables.

    python benchmarks/bench_scores.py [--tables plain,city] [--seeds 3]

Each table has a target that is known up to noise, and as many fresh rows as are needed. A row of
the result has the mean of the printed scores over the seeds, that of the fresh rows, and their mean
difference in standard errors. The errors of a score are those of its rows; the mean over seeds has
the error of independent tables.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

FRESH = 4000


def numbers(rng, n, d):
    return pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{k}" for k in range(d)])


def signal(X):
    return np.sin(2 * X["x0"]) + X["x1"] * (X["x2"] > 0)


def plain(rng, n, noise=0.5, d=4):
    X = numbers(rng, n, d)
    return X, signal(X) + noise * rng.normal(size=n)


def labels(rng, n, d=4):
    X = numbers(rng, n, d)
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-2 * signal(X))), "yes", "no")


def several(rng, n):
    X = numbers(rng, n, 4)
    values = signal(X) + 0.5 * rng.normal(size=n)
    return X, np.array(["low", "middle", "high"])[np.digitize(values, [-0.5, 0.5])]


def city(rng, n, count):
    """A column of categories with effects of their own, and labels."""
    X = numbers(rng, n, 3)
    effects = np.random.default_rng(count).normal(0, 0.8, count)
    codes = rng.integers(0, count, n)
    X["city"] = [f"city {code}" for code in codes]
    log_odds = X["x0"] + effects[codes]
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "yes", "no")


def prices(rng, n, count):
    """A column of categories, and numbers."""
    X = numbers(rng, n, 3)
    codes = rng.integers(0, count, n)
    X["city"] = [f"city {code}" for code in codes]
    effects = np.random.default_rng(count).normal(0, 1, count)
    return X, X["x0"] + effects[codes] + rng.normal(size=n)


def twice(rng, n, make):
    """Every row stands twice in the training table."""
    X, y = make(rng, n)
    X, y = X.iloc[: n - FRESH], y[: n - FRESH]
    fresh, y_fresh = make(rng, FRESH)
    order = rng.permutation(2 * len(X)) % len(X)
    return pd.concat([X.iloc[order], fresh]), np.concatenate([np.asarray(y)[order], y_fresh])


def survey(rng, n):
    """Few distinct rows, that fresh rows repeat."""
    X = pd.DataFrame(rng.integers(0, 3, (n, 3)), columns=["x0", "x1", "x2"])
    return X, X["x0"] - X["x1"] * X["x2"] + rng.normal(size=n)


def alternating(rng, n):
    """The noise of every second row is larger."""
    X = numbers(rng, n, 4)
    return X, signal(X) + np.where(np.arange(n) % 2, 1.5, 0.3) * rng.normal(size=n)


# rows of training, and the function that makes them
TABLES = {
    "numbers": (600, plain),
    "more numbers": (3000, plain),
    "labels": (1500, labels),
    "three labels": (3000, several),
    "city of 40, labels": (3000, lambda rng, n: city(rng, n, 40)),
    "city of 200, labels": (3000, lambda rng, n: city(rng, n, 200)),
    "city of 60": (600, lambda rng, n: prices(rng, n, 60)),
    "city of 500": (3000, lambda rng, n: prices(rng, n, 500)),
    "rows twice": (400, lambda rng, n: twice(rng, n, plain)),
    "labels twice": (1500, lambda rng, n: twice(rng, n, labels)),
    "survey": (800, survey),
    "alternating": (3000, alternating),
    "20 rows": (20, plain),
    "40 rows, 30 inputs": (40, lambda rng, n: plain(rng, n, 0.3, 30)),
    "100 inputs": (1000, lambda rng, n: plain(rng, n, 0.5, 100)),
    "wide": (150, lambda rng, n: plain(rng, n, 0.3, 300)),
}


def compared(name, seed):
    """(printed, of fresh rows, standard error of the difference) of one table."""
    n, make = TABLES[name]
    # tables share no rows: those of one seed may be easier than others
    X, y = make(np.random.default_rng([seed, *name.encode()]), n + FRESH)
    frame = X.assign(y=np.asarray(y))
    with tempfile.TemporaryDirectory() as folder:
        train, fresh, model = (str(Path(folder, name)) for name in ("train.csv", "fresh.csv", "m"))
        frame.iloc[:-FRESH].to_csv(train, index=False)
        X.iloc[-FRESH:].to_csv(fresh, index=False)
        options = ["--target", "y", "--model", model, "--json", "--no-baseline"]
        result = json.loads(command("train", "--data", train, *options))
        predicted = command("predict", model, fresh).split("\n")[-FRESH - 1 : -1]
    truth = np.asarray(y)[-FRESH:]
    if truth.dtype == float:
        errors = np.square(np.array(predicted, float) - truth)
        score, unit = np.sqrt(errors.mean()), 2 * np.sqrt(errors.mean())
    else:
        errors = np.array(predicted) == truth
        score, unit = errors.mean(), 1.0
    rows = result["params"].get("leave_one_out_rows") or n
    error = errors.std() / unit * np.sqrt(1 / FRESH + 1 / rows)
    return result["score"], score, error


def command(*arguments):
    line = [sys.executable, "-m", "rfx", *arguments]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", help="some of the tables, separated by /")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print("| table | rows | printed | fresh rows | difference, standard errors |")
    print("|---|---:|---:|---:|---:|", flush=True)
    for name in given.tables.split("/") if given.tables else TABLES:
        found = [compared(name, seed) for seed in range(given.seeds)]
        printed, fresh, error = np.array(found, float).T
        error = np.sqrt(np.sum(error**2)) / len(found)
        difference = (printed.mean() - fresh.mean()) / error
        row = (
            name,
            f"{TABLES[name][0]:,}",
            f"{printed.mean():.3f}",
            f"{fresh.mean():.3f}",
            f"{difference:+.1f}",
        )
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
