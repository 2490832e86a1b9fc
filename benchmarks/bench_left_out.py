"""Errors of rows left out of sparse solutions, beside those of new rows.

    python benchmarks/bench_left_out.py [SET ...]

`sparse-rf` and `sparse-rb` with their defaults, without a metric, on at most 5,000 rows of each
set. The printed error is that of training rows that no choice saw, each left out of the weights
that are not zero; which weights are zero was decided with the row. New rows are other rows of the
set. RFX_MIRROR names the folder of the data sets.
"""

import sys
from dataclasses import replace

import bench_tables as tables
import numpy as np

from rfx import methods

ROWS, METHODS = 5000, ("sparse-rf", "sparse-rb")


def errors(method, name):
    """The printed error, its rows, and the errors of new rows and of the training rows."""
    X, y, X_out, y_out = tables.split(name, 0, ROWS)
    task = "regression" if tables.is_regression(name) else None
    trainer = methods.create(method, metric="none", task=task)
    model = replace(trainer, predicts_left_out=True).fit(X, y)
    printed, rows = model.outcome.leave_one_out, model.outcome.leave_one_out_rows
    scores = np.array([printed, model.score(X_out, y_out).score, model.score(X, y).score])
    return rows, *(scores / np.std(y) if task else 1 - scores)


def main():
    names = sys.argv[1:] or tables.LARGE
    print("| set | method | rows left out | printed | new rows | new / printed | training rows |")
    print("|---|---|---:|---:|---:|---:|---:|")
    ratios = {method: [] for method in METHODS}
    for name in names:
        for method in METHODS:
            rows, printed, new, inside = errors(method, name)
            ratios[method].append(new / printed)
            print(
                f"| {name} | {method} | {rows:,} | {printed:.4f} | {new:.4f} |"
                f" {new / printed:.2f} | {inside:.4f} |"
            )
    for method, own in ratios.items():
        mean = np.exp(np.mean(np.log(own)))
        print(f"\n{method}: geometric mean {mean:.2f}, from {min(own):.2f} to {max(own):.2f}")


if __name__ == "__main__":
    main()
