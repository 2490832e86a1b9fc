"""Coverage of rfx's intervals by quarters of the prediction, beside intervals of equal width.

    python benchmarks/bench_quarters.py run --out ROWS.csv [--sets pol,wine] [--splits 3]
    python benchmarks/bench_quarters.py show ROWS.csv

`run` trains `AutoRegressor` with its defaults on at most 2,000 rows of each set and split, and
appends what `predict(X, return_interval=0.9)` covers of other rows, at most 5,000: in each quarter
of the rows, from the smallest predictions to the largest. The equal intervals have the width of the
same left-out errors, all in one. The last six sets are generated here.

RFX_MIRROR names the folder of the data sets. `show` prints a Markdown table of the means over the
splits.
"""

import argparse
import csv
from pathlib import Path

import bench_tables as tables
import numpy as np

LEVEL, ROWS, EVALUATED = 0.9, 2000, 5000
QUARTERS = ("first", "second", "third", "fourth")
COLUMNS = ("set", "split", *QUARTERS, *(f"equal_{name}" for name in QUARTERS), "width")


def generated(name, seed):
    """(X (n, 4), y (n,)) with noise of that kind."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(ROWS + EVALUATED, 4)), rng.normal(size=ROWS + EVALUATED)
    mean = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    if name == "equal noise":
        return X, mean + 0.5 * noise
    if name == "noise of the mean":
        return X, mean + 0.5 * np.abs(mean + 2) * noise
    if name == "noise of an input":
        return X, mean + 0.3 * np.exp(0.8 * X[:, 3]) * noise
    if name == "prices":
        return X, np.exp(mean + 0.4 * noise)
    if name == "waiting times":
        return X, rng.gamma(2.0, np.exp(mean) / 2)
    return X, rng.poisson(np.exp(0.8 * mean + 1)).astype(float)


GENERATED = (
    *("equal noise", "noise of the mean", "noise of an input"),
    *("prices", "waiting times", "counts"),
)
SETS = (*tables.REGRESSION, "cpu_act", *GENERATED)


def split(name, number):
    """(X, y, X_out, y_out) of one split of a set."""
    if name not in GENERATED:
        return tables.split(name, number, ROWS)
    X, y = generated(name, number)
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


def one(name, number):
    """The row of one set and split."""
    from rfx.estimators import AutoRegressor
    from rfx.fitting.held_out import ErrorQuantiles

    X, y, X_out, y_out = split(name, number)
    model = AutoRegressor().fit(X, y)
    predicted, lower, upper = model.predict(X_out, return_interval=LEVEL)
    left_out = model.method_.left_out
    errors = np.abs(model.method_.labels(left_out.decision) - left_out.y)
    equal = ErrorQuantiles.of(errors, "").at(LEVEL)
    quarters = np.array_split(np.argsort(predicted, kind="stable"), 4)
    inside = (lower <= y_out) & (y_out <= upper)
    equal_inside = np.abs(predicted - y_out) <= equal
    coverage = [covered[rows].mean() for covered in (inside, equal_inside) for rows in quarters]
    width = np.mean(upper - lower) / (2 * equal)
    return dict(zip(COLUMNS, (name, number, *coverage, width), strict=True))


def run(args):
    path, done = Path(args.out), set()
    if path.exists():
        with path.open(newline="") as file:
            done = {(row["set"], row["split"]) for row in csv.DictReader(file)}
    else:
        path.write_text(",".join(COLUMNS) + "\n")
    for number in range(args.splits):
        for name in args.sets.split(","):
            if (name, str(number)) not in done:
                row = one(name, number)
                with path.open("a", newline="") as file:
                    csv.DictWriter(file, COLUMNS).writerow(row)


def show(args):
    import pandas as pd

    means = pd.read_csv(args.file).groupby("set").mean(numeric_only=True)
    names = [name for name in SETS if name in means.index]
    print("| set | coverage of each quarter | with equal widths | width / equal width |")
    print("|---|---:|---:|---:|")
    for name in names:
        row = means.loc[name]
        own, equal = (
            ", ".join(f"{row[f'{before}{quarter}']:.3f}" for quarter in QUARTERS)
            for before in ("", "equal_")
        )
        print(f"| {name} | {own} | {equal} | {row['width']:.2f} |")
    own, equal = (means[[f"{before}{name}" for name in QUARTERS]] for before in ("", "equal_"))
    print()
    for what, each in (("rfx", own), ("equal widths", equal)):
        within = ((each >= 0.86) & (each <= 0.94)).all(axis=1).sum()
        print(
            f"- {what}: all quarters within .86 and .94 on {within} of {len(means)} sets; the least"
            f" covered has {each.min(axis=None):.3f}"
        )
    middle = np.exp(np.log(means["width"]).mean())
    print(f"- width / equal width: geometric mean {middle:.2f}, largest {means['width'].max():.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run")
    command.add_argument("--out", required=True)
    command.add_argument("--sets", default=",".join(SETS))
    command.add_argument("--splits", type=int, default=3)
    command = commands.add_parser("show")
    command.add_argument("file")
    args = parser.parse_args()
    run(args) if args.command == "run" else show(args)


if __name__ == "__main__":
    main()
