"""The error of rfx on raw tables, with words and missing cells, against gradient boosting.

    python benchmarks/bench_raw.py run FOLDER --out ROWS.csv [--splits 3] [--by rfx,catboost]
    python benchmarks/bench_raw.py show ROWS.csv
    python benchmarks/bench_raw.py generate FOLDER

FOLDER has CSV files whose column `target` holds the targets. `run` appends a row for each file,
split and contestant that ROWS.csv does not have yet. A split trains on three quarters of the rows
and predicts the others. rfx is `rfx train --data FILE --target target`, with the task, then `rfx
predict`, without other options. Each contestant runs with one thread in a process of its own, whose
processor seconds are counted, and makes its choices on training rows alone. The error is the share
of wrong labels, or the RMSE divided by the standard deviation of the targets of the evaluated rows.

`generate` writes tables with a column of many levels, whose effects are known, to a folder for
`run`. `show` prints a Markdown table of mean errors, and for each other contestant the ratios of
rfx's errors to its errors.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from row_files import append_missing, processor_seconds

COLUMNS = ("set", "split", "rows", "evaluated", "by", "error", "processor_seconds")
# Numbers with fewer distinct values than this are classes, of which rarer ones are left out.
CLASSES, FEWEST_ROWS = 10, 8
# Boosting of more classes has fewer trees and, tuned, one setting.
MANY_CLASSES = 8
GRID = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31], "min_samples_leaf": [5, 20]}
GRID_OF_MANY = {"learning_rate": [0.1], "max_leaf_nodes": [7]}
FEWEST_CELLS = 20


def split(path, number):
    """(training rows, other rows, whether the targets are classes) of one split of a file."""
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    words = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.astype(dict.fromkeys(words, object))
    classes = "target" in words or frame.target.nunique() < CLASSES
    if classes:
        counts = frame.target.value_counts()
        frame = frame[frame.target.isin(counts[counts >= FEWEST_ROWS].index)]
    order = np.random.default_rng(number).permutation(len(frame))
    train, out = np.split(order, [len(frame) * 3 // 4])
    return frame.iloc[train], frame.iloc[out], classes


def measured(predicted, y, classes):
    if classes:
        return float(np.mean(np.asarray(predicted).astype(str) != np.asarray(y).astype(str)))
    return float(np.sqrt(np.mean((np.asarray(predicted, float) - y) ** 2)) / np.std(y))


# ------------------------------------------------------------------- columns of many levels

GENERATED_ROWS = 4000
# The levels of a column, and the standard deviation of their effects, 0 for none.
LEVELS = {
    "levels-100": (100, 1.0),
    "levels-1000": (1000, 1.0),
    "levels-3000": (3000, 1.0),
    "levels-1000-no-effect": (1000, 0.0),
    "levels-1000-classes": (1000, 1.5),
    "levels-1000-slopes": (1000, 1.0),
}


def generated(name):
    """A table of numbers and a column of levels, of which few are frequent and most are rare."""
    count, spread = LEVELS[name]
    rng = np.random.default_rng(len(name) + count)
    X = rng.normal(size=(GENERATED_ROWS, 4))
    # the frequency of a level falls with its rank, as that of words does
    frequency = 1 / np.arange(1, count + 1) ** 0.7
    level = rng.choice(count, GENERATED_ROWS, p=frequency / frequency.sum())
    effect = spread * rng.normal(size=count)[level]
    smooth = np.sin(2 * X[:, 0]) + X[:, 1]
    if name == "levels-1000-slopes":
        effect = effect * X[:, 2]
    target = smooth + effect + 0.5 * rng.normal(size=GENERATED_ROWS)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]).round(4)
    frame["level"] = [f"L{number:04d}" for number in level]
    if name == "levels-1000-classes":
        frame["target"] = np.where(target > 0, "yes", "no")
    else:
        frame["target"] = target.round(4)
    return frame


def generate(args):
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in LEVELS:
        generated(name).to_csv(folder / f"{name}.csv", index=False)


# ------------------------------------------------------------------------------ contestants


def words_of(rows):
    return [name for name in rows if rows[name].dtype == object]


def rfx(train, out, classes):
    """`rfx train`, then `rfx predict`."""
    task = "regression"
    if classes:
        task = "binary" if train.target.nunique() == 2 else "multiclass"
    with tempfile.TemporaryDirectory() as folder:
        rows, new, model = (str(Path(folder, name)) for name in ("rows.csv", "new.csv", "m.npz"))
        train.to_csv(rows, index=False)
        out.drop(columns="target").to_csv(new, index=False)
        learn = ["train", "--data", rows, "--target", "target", "--task", task, "--model", model]
        for words in ([*learn, "--threads", "1"], ["predict", model, new]):
            done = subprocess.run(
                [sys.executable, "-m", "rfx", *words], capture_output=True, text=True
            )
            if done.returncode not in (0, 3):
                raise SystemExit(done.stderr)
    return [line.strip('"') for line in done.stdout.splitlines()][-len(out) :]


def catboost(train, out, classes):
    """CatBoost with 300 trees."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    X, X_out = train.drop(columns="target"), out.drop(columns="target")
    words = words_of(X)
    X, X_out = (
        part.assign(**{name: part[name].fillna("missing") for name in words}) for part in (X, X_out)
    )
    many = classes and train.target.nunique() > MANY_CLASSES
    model = (CatBoostClassifier if classes else CatBoostRegressor)(
        iterations=100 if many else 300,
        cat_features=words,
        random_seed=0,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    )
    return np.ravel(model.fit(X, train.target).predict(X_out))


def hgb_tuned(train, out, classes):
    """HistGradientBoosting with categories: the best of a grid by 3-fold cross-validation. Columns
    with fewer than FEWEST_CELLS values are left out: it needs one in each fold.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OrdinalEncoder

    kept = [name for name in train if name != "target" and train[name].count() >= FEWEST_CELLS]
    X, X_out = train[kept], out[kept]
    words = words_of(X)
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
    )
    first = make_column_transformer(
        (codes, words), remainder="passthrough", verbose_feature_names_out=False
    )
    few = [X[name].nunique() < 255 for name in words]
    many = classes and train.target.nunique() > MANY_CLASSES
    boosting = (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(
        max_iter=60 if many else 300,
        categorical_features=few + [False] * (X.shape[1] - len(words)),
        random_state=0,
    )
    grid = GRID_OF_MANY if many else GRID
    grid = {f"boosting__{name}": values for name, values in grid.items()}
    search = GridSearchCV(Pipeline([("codes", first), ("boosting", boosting)]), grid, cv=3)
    y = train.target.astype(str) if classes else train.target
    return search.fit(X, y).predict(X_out)


BY = {"rfx": rfx, "catboost": catboost, "hgb-tuned": hgb_tuned}


# ----------------------------------------------------------------------------------- commands


def one(folder, name, number, by):
    train, out, classes = split(Path(folder, f"{name}.csv"), number)
    before = processor_seconds()
    predicted = BY[by](train, out, classes)
    return {
        "set": name,
        "split": number,
        "rows": len(train),
        "evaluated": len(out),
        "by": by,
        "error": measured(predicted, out.target.to_numpy(), classes),
        "processor_seconds": round(processor_seconds() - before, 2),
    }


def run(args):
    jobs = [
        {"set": path.stem, "split": number, "by": by}
        for number in range(args.splits)
        for path in sorted(Path(args.folder).glob("*.csv"))
        for by in args.by.split(",")
    ]
    append_missing(__file__, args.out, COLUMNS, jobs, words=[args.folder])


def show(args):
    rows = pd.read_csv(args.rows)
    # splits that every contestant has
    errors = rows.pivot_table("error", ["set", "split"], "by").dropna().groupby("set").mean()
    # fewer than half a wrong label among the evaluated rows of all splits can't be told from none
    least = 0.5 / rows[rows.by == "rfx"].groupby("set").evaluated.sum()
    others = [by for by in BY if by in errors and by != "rfx"]
    ratios = pd.DataFrame(
        {by: errors["rfx"].clip(lower=least) / errors[by].clip(lower=least) for by in others}
    )
    counts = rows.groupby("set")["rows"].first()
    heads = ["set", "rows", "rfx", *(f"{by} | rfx over {by}" for by in others)]
    print("|", " | ".join(heads), "|")
    print("|---|---:|---:|" + "---:|---:|" * len(others))
    for name in errors.index:
        cells = [name, f"{counts[name]:,}", f"{errors.loc[name, 'rfx']:.4f}"]
        for by in others:
            cells += [f"{errors.loc[name, by]:.4f}", f"{ratios.loc[name, by]:.2f}"]
        print("|", " | ".join(cells), "|")
    print()
    seconds = rows.groupby("by").processor_seconds.mean()
    for by in others:
        ratio = ratios.loc[errors.index, by]
        worst = ", ".join(f"{name} {value:.2f}" for name, value in ratio.nlargest(3).items())
        print(
            f"- rfx over {by}: geometric mean {np.exp(np.log(ratio).mean()):.3f},"
            f" median {ratio.median():.3f} over {len(ratio)} sets;"
            f" lower on {(ratio < 1).sum()}, higher on {(ratio > 1).sum()}; largest {worst};"
            f" {seconds['rfx']:.1f} processor seconds ({by}: {seconds[by]:.1f})"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("run")
    own.add_argument("folder")
    own.add_argument("--out", required=True)
    own.add_argument("--splits", type=int, default=3)
    own.add_argument("--by", default=",".join(BY))
    own = commands.add_parser("show")
    own.add_argument("rows")
    own = commands.add_parser("generate")
    own.add_argument("folder")
    own = commands.add_parser("one")
    own.add_argument("values", nargs=4)
    args = parser.parse_args()
    if args.command == "run":
        run(args)
    elif args.command == "show":
        show(args)
    elif args.command == "generate":
        generate(args)
    else:
        folder, name, number, by = args.values
        print(json.dumps(one(folder, name, int(number), by)))


if __name__ == "__main__":
    main()
