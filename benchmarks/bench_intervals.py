"""Intervals, prediction sets and printed scores of rfx on fresh rows, beside conformal boosting.

    python benchmarks/bench_intervals.py run --out ROWS.csv [--sets pol,wine] [--rows 500,4000]
        [--splits 3] [--by rfx,hgb-cv,hgb-quantile] [--python PYTHON]
    python benchmarks/bench_intervals.py show ROWS.csv

`run` appends a row for each set, split, number of training rows and contestant that the file does
not have yet. All intervals and sets are to contain a fraction .9 of new targets or labels. They are
evaluated on at most 5,000 rows that were not used in training.

- `rfx`: `rfx train --data FILE`, then `rfx predict --interval 0.9` or `--sets 0.9`. The printed
  score is the leave-one-out score of the training.
- `hgb-cv`: HistGradientBoosting with its defaults, cross-conformal with 5 folds (CV+ for targets,
  least ambiguous sets for labels) by MAPIE.
- `hgb-quantile`: conformalised quantile boosting by MAPIE, a fifth of the rows for the conformal
  step. Regression only.

The error is the RMSE divided by the standard deviation of the evaluated targets, or the share of
wrong labels; `printed` is the leave-one-out score in the same unit. The width is that of the mean
interval divided by the standard deviation of the evaluated targets, or the mean number of labels of
a set.

`show` prints a Markdown table for each number of training rows: the mean coverage, the ratio of
the widths to those of rfx, and the ratio of the error on fresh rows to the printed one.

RFX_MIRROR names the folder of the data sets. --python names an interpreter that has MAPIE.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import bench_tables as tables
import numpy as np
from row_files import append_missing, processor_seconds

REGRESSION = tuple(tables.REGRESSION)
CLASSES = (*tables.CLASSES, "letter.scale", "SUSY.30k")
SETS = (*REGRESSION, *CLASSES)
LEVEL = 0.9
COLUMNS = "set split rows by printed error coverage width processor_seconds".split()


def rfx(name, X, y, X_out):
    """(printed score, predictions, limits (n, 2) or sets (n, k)) of the commands."""
    regression = name in REGRESSION
    with tempfile.TemporaryDirectory() as folder:
        train, out, model = (str(Path(folder, part)) for part in ("train.csv", "out.csv", "m"))
        header = ",".join(f"x{k}" for k in range(X.shape[1]))
        rows = np.column_stack([X, y])
        np.savetxt(train, rows, "%.17g", ",", header=f"{header},y", comments="")
        np.savetxt(out, X_out, "%.17g", ",", header=header, comments="")
        kind = "multiclass" if len(set(y)) > 2 else "binary"
        options = ["--target", "y", "--task", "regression" if regression else kind]
        options += ["--threads", "1", "--model", model, "--json", "--no-baseline"]
        result = json.loads(_command("train", "--data", train, *options))
        predicted = _numbers(_command("predict", model, out))[:, 0]
        show = ["--interval" if regression else "--sets", str(LEVEL)]
        return (
            result["params"]["leave_one_out"],
            predicted,
            _numbers(_command("predict", model, out, *show))[:, 1 if regression else 0 :],
        )


def _command(*words):
    command = [sys.executable, "-m", "rfx", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def _numbers(text):
    return np.array([line.split() for line in text.splitlines()], float)


def hgb_cv(name, X, y, X_out):
    """As `rfx`, by MAPIE's cross-conformal boosting; no score is printed."""
    from mapie.classification import CrossConformalClassifier
    from mapie.regression import CrossConformalRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if name in REGRESSION:
        made = CrossConformalRegressor(
            HistGradientBoostingRegressor(random_state=0), confidence_level=LEVEL, random_state=0
        )
        predicted, limits = made.fit_conformalize(X, y).predict_interval(X_out)
        return None, predicted, limits[:, :, 0]
    made = CrossConformalClassifier(
        HistGradientBoostingClassifier(random_state=0), confidence_level=LEVEL, random_state=0
    )
    predicted, sets = made.fit_conformalize(X, y).predict_set(X_out)
    return None, predicted, sets[:, :, 0]


def hgb_quantile(name, X, y, X_out):
    """As `rfx`, by MAPIE's conformalised quantile boosting."""
    from mapie.regression import ConformalizedQuantileRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor

    held_out, kept = np.split(np.random.default_rng(0).permutation(len(y)), [len(y) // 5])
    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=quantile, random_state=0).fit(
            X[kept], y[kept]
        )
        for quantile in ((1 - LEVEL) / 2, (1 + LEVEL) / 2, 0.5)
    ]
    made = ConformalizedQuantileRegressor(models, confidence_level=LEVEL, prefit=True)
    predicted, limits = made.conformalize(X[held_out], y[held_out]).predict_interval(X_out)
    return None, predicted, limits[:, :, 0]


BY = {"rfx": rfx, "hgb-cv": hgb_cv, "hgb-quantile": hgb_quantile}


def one(name, number, rows, by):
    X, y, X_out, y_out = tables.split(name, number, rows)
    before = processor_seconds()
    printed, predicted, ranges = BY[by](name, X, y, X_out)
    seconds = processor_seconds() - before
    if name in REGRESSION:
        spread = np.std(y_out)
        error = np.sqrt(np.mean((predicted - y_out) ** 2)) / spread
        printed = printed and printed / spread
        inside = (ranges[:, 0] <= y_out) & (y_out <= ranges[:, 1])
        width = np.mean(ranges[:, 1] - ranges[:, 0]) / spread
    else:
        error = np.mean(predicted != y_out)
        printed = printed and 1 - printed
        labels = np.unique(y)
        inside = (ranges.astype(bool) & (labels == y_out[:, None])).any(axis=1)
        width = np.mean(ranges.sum(axis=1))
    values = (name, number, rows, by, printed, error, np.mean(inside), width, round(seconds, 2))
    return dict(zip(COLUMNS, values))


def run(args):
    jobs = [
        {"set": name, "split": number, "rows": rows, "by": by}
        for number in range(args.splits)
        for rows in args.rows.split(",")
        for name in args.sets.split(",")
        for by in args.by.split(",")
        if name in REGRESSION or by != "hgb-quantile"
    ]
    append_missing(__file__, args.out, COLUMNS, jobs, args.python)


def show(args):
    import pandas as pd

    frame = pd.concat([pd.read_csv(path) for path in args.files])
    for rows, of_rows in frame.groupby("rows"):
        means = of_rows.groupby(["set", "by"]).mean(numeric_only=True)
        others = [by for by in BY if by != "rfx" and by in set(of_rows["by"])]
        names = [name for name in SETS if (name, "rfx") in means.index]
        print(f"\nAt most {rows:,} training rows:\n")
        print(
            "| set | error / printed | coverage | width or labels |",
            *(f"{by}: coverage | width ratio |" for by in others),
        )
        print("|---|" + "---:|" * (3 + 2 * len(others)))
        ratios, widths = [], {by: [] for by in others}
        for name in names:
            ours = means.loc[name, "rfx"]
            # fewer than ten wrong labels have no ratio
            few = name in CLASSES and ours["printed"] * int(rows) < 10
            ratio = np.nan if few else ours["error"] / ours["printed"]
            ratios.append(ratio)
            cells = [name, "-" if few else f"{ratio:.2f}"]
            cells += [f"{ours['coverage']:.3f}", f"{ours['width']:.3f}"]
            for by in others:
                if (name, by) not in means.index:
                    cells += ["-", "-"]
                    continue
                theirs = means.loc[name, by]
                widths[by].append(theirs["width"] / ours["width"])
                cells += [f"{theirs['coverage']:.3f}", f"{widths[by][-1]:.2f}"]
            print("|", " | ".join(cells), "|")
        coverage = means.xs("rfx", level="by")["coverage"]
        print(
            f"\n- rfx: coverage {coverage.min():.3f} to {coverage.max():.3f}, within .88 and .92 on"
            f" {((coverage >= 0.88) & (coverage <= 0.92)).sum()} of {len(coverage)} sets, below on"
            f" {(coverage < 0.88).sum()}; error over printed score: median"
            f" {np.nanmedian(ratios):.2f}"
        )
        for by in others:
            coverage = means.xs(by, level="by")["coverage"]
            print(
                f"- {by}: coverage {coverage.min():.3f} to {coverage.max():.3f}; width over rfx's:"
                f" median {np.median(widths[by]):.2f} of {len(widths[by])} sets"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run")
    command.add_argument("--out", required=True)
    command.add_argument("--sets", default=",".join(SETS))
    command.add_argument("--rows", default="500,4000")
    command.add_argument("--splits", type=int, default=3)
    command.add_argument("--by", default="rfx")
    command.add_argument("--python", default=sys.executable)
    command = commands.add_parser("show")
    command.add_argument("files", nargs="+")
    command = commands.add_parser("one")
    command.add_argument("values", nargs=4)
    args = parser.parse_args()
    if args.command == "run":
        run(args)
    elif args.command == "show":
        show(args)
    else:
        name, number, rows, by = args.values
        print(json.dumps(one(name, int(number), int(rows), by)))


if __name__ == "__main__":
    main()
