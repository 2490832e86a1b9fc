"""The error of rfx on tables, without options, against gradient boosting and other programs.

    python benchmarks/bench_tables.py run --out ROWS.csv [--sets pol,wine] [--rows 4000]
        [--splits 5] [--by hgb-tuned,rfx] [--python PYTHON]
    python benchmarks/bench_tables.py show ROWS.csv [--reference hgb-tuned]
    python benchmarks/bench_tables.py figure ROWS.csv --output FIGURE.svg

`run` appends a row for each set, split and contestant that the file does not have yet. A split
draws the training rows, and at most 5,000 other rows, or a fifth as many, to evaluate on. `--rows
400000 --sets large` takes all rows of the larger sets. Each contestant runs in its own process with
one thread per library. Its processor seconds are those of that process and its
children. It makes its choices on training rows alone. The error is the share of wrong labels, or
the RMSE divided by the standard deviation of the targets of the evaluated rows.

RFX_MIRROR names the folder of the data sets, where `rfx fetch` put them, or packed with xz.
Contestants other than rfx and scikit-learn need their packages; --python names an interpreter that
has them.

`show` prints a Markdown table. For each set it has the mean errors over the splits and their ratio
to the reference. For each contestant it has the geometric mean of the ratios, the number of sets
with a ratio below 1 and above 1.15, and the processor seconds. `figure` draws rfx's ratios.
"""

import argparse
import csv
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from row_files import append_missing, processor_seconds

REGRESSION = "pol elevators parkinsons concrete wine airfoil cpu.train cadata cpusmall".split()
CLASSES = "segment optdigits car vehicle vowel cod-rna ijcnn1 a9a".split()
SETS = (*REGRESSION, *CLASSES)
REGRESSION.append("census16h.train")
LARGE = (
    "cadata census16h.train pol elevators a9a SUSY.30k letter.scale cod-rna ijcnn1 covtype".split()
)
FILES = {"covtype": "covtype.libsvm.binary"}
EVALUATED = 5000
COLUMNS = ("set", "split", "rows", "by", "error", "processor_seconds", "seconds", "chosen")
# Smaller errors may be perfect scores. For a ratio they count as at least one wrong label.
SMALL = 0.01
GRID = [
    {"learning_rate": rate, "max_leaf_nodes": leaves, "min_samples_leaf": fewest}
    for rate in (0.03, 0.1)
    for leaves in (15, 63)
    for fewest in (5, 20)
]
TRIALS = 50
# With more training rows than that, a table shows their number.
SMALLER = 4000


def load(name):
    """(X (n, d), y (n,)) of a set in the mirror."""
    from sklearn.datasets import load_svmlight_file

    path = Path(os.environ["RFX_MIRROR"]) / FILES.get(name, name)
    with open(path, "rb") if path.exists() else lzma.open(f"{path}.xz") as file:
        X, y = load_svmlight_file(file)
    return X.toarray(), y


def split(name, number, rows):
    """(X, y, X_out, y_out) of one split: training rows (at most 80 % of all) and others."""
    X, y = load(name)
    order = np.random.default_rng(1000 + number).permutation(len(y))
    most = min(rows, int(0.8 * len(y)))
    train, out = order[:most], order[most : most + max(EVALUATED, most // 5)]
    return X[train], y[train], X[out], y[out]


def floored(error, name, rows):
    """An error, but at least that of one wrong label among the evaluated rows of a split."""
    if is_regression(name) or error >= SMALL:
        return error
    return max(error, 1 / len(split(name, 0, rows)[3]))


def is_regression(name):
    return name in REGRESSION


def measured(name, predicted, y):
    if is_regression(name):
        return float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y))
    return float(np.mean(predicted != y))


# ------------------------------------------------------------------------------ contestants


def hgb_tuned(name, X, y, X_out):
    """HistGradientBoosting with 300 trees: the best of GRID by 3-fold cross-validation."""
    from sklearn import ensemble
    from sklearn.model_selection import GridSearchCV

    kind = "Regressor" if is_regression(name) else "Classifier"
    own = getattr(ensemble, f"HistGradientBoosting{kind}")(
        max_iter=300, early_stopping=False, random_state=0
    )
    found = GridSearchCV(own, {key: sorted({one[key] for one in GRID}) for key in GRID[0]}, cv=3)
    found.fit(X, y)
    return found.predict(X_out), found.best_params_


def hgb(name, X, y, X_out):
    """HistGradientBoosting with its defaults."""
    from sklearn import ensemble

    kind = "Regressor" if is_regression(name) else "Classifier"
    found = getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=0).fit(X, y)
    return found.predict(X_out), {}


def hgb_early(name, X, y, X_out):
    """HistGradientBoosting with up to 1,000 trees of 63 leaves, stopped early on held-out rows."""
    from sklearn import ensemble

    kind = "Regressor" if is_regression(name) else "Classifier"
    model = getattr(ensemble, f"HistGradientBoosting{kind}")(
        max_iter=1000, max_leaf_nodes=63, early_stopping=True, random_state=0
    )
    return model.fit(X, y).predict(X_out), {}


def _lightgbm(name, **options):
    import lightgbm

    kind = lightgbm.LGBMRegressor if is_regression(name) else lightgbm.LGBMClassifier
    return kind(n_jobs=1, verbosity=-1, random_state=0, **options)


def _xgboost(name, **options):
    import xgboost

    kind = xgboost.XGBRegressor if is_regression(name) else xgboost.XGBClassifier
    return kind(n_jobs=1, random_state=0, **options)


def _catboost(name, **options):
    import catboost

    kind = catboost.CatBoostRegressor if is_regression(name) else catboost.CatBoostClassifier
    return kind(thread_count=1, verbose=False, random_seed=0, allow_writing_files=False, **options)


def _lightgbm_options(trial):
    return {
        "n_estimators": trial.suggest_int("n_estimators", 50, 1000, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 4, 128, log=True),
        "min_child_samples": trial.suggest_int("min_child_samples", 2, 50, log=True),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "subsample_freq": 1,
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.4, 1.0),
        "reg_lambda": trial.suggest_float("reg_lambda", 1e-3, 10.0, log=True),
    }


def _xgboost_options(trial):
    return {
        "n_estimators": trial.suggest_int("n_estimators", 50, 1000, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "max_depth": trial.suggest_int("max_depth", 2, 10),
        "min_child_weight": trial.suggest_float("min_child_weight", 0.1, 20, log=True),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.4, 1.0),
        "reg_lambda": trial.suggest_float("reg_lambda", 1e-3, 10.0, log=True),
    }


def _catboost_options(trial):
    return {
        "iterations": trial.suggest_int("iterations", 100, 1000, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "depth": trial.suggest_int("depth", 3, 8),
        "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 0.1, 10.0, log=True),
    }


BOOSTING = {
    "lightgbm": (_lightgbm, _lightgbm_options),
    "xgboost": (_xgboost, _xgboost_options),
    "catboost": (_catboost, _catboost_options),
}


def boosting(which, name, X, y, X_out):
    """A boosting library with its defaults."""
    labels, own = np.unique(y, return_inverse=True)
    found = BOOSTING[which][0](name)
    if is_regression(name):
        return found.fit(X, y).predict(X_out), {}
    return labels[np.ravel(found.fit(X, own).predict(X_out)).astype(int)], {}


def boosting_tuned(which, name, X, y, X_out):
    """A boosting library, the best of TRIALS trials of Optuna on 20 % held-out rows."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    make, options = BOOSTING[which]
    labels, own = np.unique(y, return_inverse=True)
    target = y if is_regression(name) else own
    order = np.random.default_rng(0).permutation(len(y))
    out, kept = np.split(order, [len(y) // 5])

    def error(trial):
        found = make(name, **options(trial)).fit(X[kept], target[kept])
        return measured(name, np.ravel(found.predict(X[out])), target[out])

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(error, n_trials=TRIALS)
    best = options(optuna.trial.FixedTrial(study.best_params))
    predicted = np.ravel(make(name, **best).fit(X, target).predict(X_out))
    return (predicted if is_regression(name) else labels[predicted.astype(int)]), best


def grid(name, X, y, X_out):
    """SVC or KernelRidge on standardised inputs, the best of a grid by 3-fold cross-validation."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    gammas = [factor / X.shape[1] for factor in (0.1, 0.3, 1.0, 3.0)]
    if is_regression(name):
        own = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
        options = {"kernelridge__gamma": gammas, "kernelridge__alpha": [1e-3, 1e-2, 1e-1, 1.0]}
        own = TransformedTargetRegressor(own, transformer=StandardScaler())
        options = {f"regressor__{key}": value for key, value in options.items()}
    else:
        own = make_pipeline(StandardScaler(), SVC())
        options = {"svc__gamma": gammas, "svc__C": [1.0, 10.0, 100.0]}
    found = GridSearchCV(own, options, cv=3).fit(X, y)
    return found.predict(X_out), found.best_params_


def _xrfm_settings():
    for diagonal in (False, True):
        for kernel, exponent in (("l2", 1.0), ("l1", 1.0), ("l1", 0.7)):
            model = {
                "kernel": kernel,
                "bandwidth": 10.0 if diagonal else 5.0,
                "exponent": exponent,
                "diag": diagonal or kernel == "l1",
                "bandwidth_mode": "constant",
            }
            fit = {"reg": 1e-3, "iters": 5, "verbose": False, "early_stop_rfm": True}
            yield {"model": model, "fit": fit}


def xrfm(name, X, y, X_out, settings=None):
    """xRFM on standardised inputs, the best of six settings on 20 % held-out rows; settings: other
    ones, or None for its defaults.
    """
    import torch
    from sklearn.preprocessing import StandardScaler
    from xrfm import xRFM

    torch.set_num_threads(1)
    scaler = StandardScaler().fit(X)
    X, X_out = (np.asarray(scaler.transform(part), np.float32) for part in (X, X_out))
    labels, own = np.unique(y, return_inverse=True)
    middle, width = (y.mean(), y.std()) if is_regression(name) else (0.0, 1.0)
    target = ((y - middle) / width if is_regression(name) else own)[:, None]
    target = np.asarray(target, np.float32 if is_regression(name) else np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    out, kept = np.split(order, [len(y) // 5])
    tensors = [torch.from_numpy(part) for part in (X[kept], target[kept], X[out], target[out])]
    best = None
    for params in settings or _xrfm_settings():
        metric = "mse" if is_regression(name) else "accuracy"
        model = xRFM(params, device="cpu", tuning_metric=metric, verbose=False)
        model.fit(*tensors)
        error = measured(name, np.ravel(model.predict(tensors[2])), np.ravel(target[out]))
        if best is None or error < best[0]:
            best = error, model, params and params["model"]
    found = np.ravel(best[1].predict(torch.from_numpy(X_out)))
    chosen = {"chosen": best[2]}
    return (found * width + middle if is_regression(name) else labels[found.astype(int)]), chosen


def rfx_command(name, X, y, X_out):
    """`rfx train --data FILE`, then `rfx predict`."""
    with tempfile.TemporaryDirectory() as folder:
        train, out = Path(folder, "train.npz"), Path(folder, "out.npz")
        np.savez(train, X=X, y=y)
        np.savez(out, X=X_out)
        rfx = [sys.executable, "-m", "rfx"]
        task = (
            [] if is_regression(name) else ["--task", "multiclass" if len(set(y)) > 2 else "binary"]
        )
        if is_regression(name):
            task = ["--task", "regression"]
        command = [*rfx, "train", "--data", train, *task, "--threads", "1"]
        done = subprocess.run(
            [*map(str, command), "--model", str(Path(folder, "m")), "--json", "--no-baseline"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        command = [*rfx, "predict", Path(folder, "m"), out]
        text = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        chosen = {"method": found["method"], **found["params"]["explicit"]}
        return np.array([float(value) for value in text.stdout.split()]), chosen


BY = {
    "hgb-tuned": hgb_tuned,
    "hgb": hgb,
    "hgb-early": hgb_early,
    "grid": grid,
    "xrfm": xrfm,
    "xrfm-default": lambda *a: xrfm(*a, settings=[None]),
    "rfx": rfx_command,
    **{which: lambda *a, w=which: boosting(w, *a) for which in BOOSTING},
    **{f"{which}-tuned": lambda *a, w=which: boosting_tuned(w, *a) for which in BOOSTING},
}


def one(name, number, rows, by):
    X, y, X_out, y_out = split(name, number, rows)
    before, start = processor_seconds(), time.perf_counter()
    predicted, chosen = BY[by](name, X, y, X_out)
    return {
        "set": name,
        "split": number,
        "rows": len(y),
        "by": by,
        "error": measured(name, predicted, y_out),
        "processor_seconds": round(processor_seconds() - before, 2),
        "seconds": round(time.perf_counter() - start, 2),
        "chosen": json.dumps(chosen, default=str),
    }


# ----------------------------------------------------------------------------------- commands


def run(args):
    jobs = [
        {"set": name, "split": number, "asked": args.rows, "by": by}
        for number in range(args.splits)
        for name in args.sets
        for by in args.by
    ]
    append_missing(__file__, args.out, (*COLUMNS, "asked"), jobs, args.python)


def table(files, reference):
    """(names, others, lines, seconds); lines has the mean error, its deviation, and the ratio to
    the reference by contestant and set.
    """
    found, seconds, labels, asked = {}, {}, {}, 0
    for path in files:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                asked = int(row["asked"])
                name = row["set"] if asked <= SMALLER else f"{row['set']}, {int(row['rows']):,}"
                labels[name] = row["set"]
                own = found.setdefault((row["by"], name), {})
                own[row["split"]] = float(row["error"])
                seconds.setdefault(row["by"], []).append(float(row["processor_seconds"]))
    others = sorted({by for by, _ in found} - {reference})
    order = (*SETS, *LARGE)
    names = sorted(labels, key=lambda name: order.index(labels[name]))
    names = [name for name in names if (reference, name) in found]
    lines = {}
    for name in names:
        for by in (reference, *others):
            own = found.get((by, name), {})
            both = [k for k in own if k in found[reference, name]]
            if both:
                errors = [own[k] for k in both]
                base = np.mean([found[reference, name][k] for k in both])
                spread = np.std(errors, ddof=1) if len(errors) > 1 else None
                ratio = floored(np.mean(errors), labels[name], asked) / floored(
                    base, labels[name], asked
                )
                lines[by, name] = np.mean(errors), spread, ratio
    return names, others, lines, {by: np.mean(own) for by, own in seconds.items()}


def show(args):
    names, others, lines, seconds = table(args.files, args.reference)
    print("| set |", " | ".join((args.reference, *(f"{by}, ratio" for by in others))), "|")
    print("|---|" + "---:|" * (1 + len(others)))
    for name in names:
        cells = []
        for by in (args.reference, *others):
            if (by, name) not in lines:
                cells.append("-")
                continue
            mean, spread, ratio = lines[by, name]
            cell = f"{mean:.4f}" + ("" if spread is None else f" ± {spread:.4f}")
            cells.append(cell if by == args.reference else f"{cell}, {ratio:.2f}")
        print(f"| {name} |", " | ".join(cells), "|")
    print()
    for by in others:
        own = np.array([lines[by, name][2] for name in names if (by, name) in lines])
        print(
            f"- {by}: geometric mean {np.exp(np.log(own).mean()):.3f}, median {np.median(own):.3f}"
            f" over {len(own)} sets; below 1 on {(own < 1).sum()}, above 1.15 on"
            f" {(own > 1.15).sum()}; {seconds[by]:.1f}"
            f" processor seconds ({args.reference}: {seconds[args.reference]:.1f})"
        )


def figure(args):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "rfx"
    import matplotlib.pyplot as plt

    names, _, lines, _ = table(args.files, args.reference)
    ratios = sorted((lines["rfx", name][2], name) for name in names if ("rfx", name) in lines)
    median = np.median([ratio for ratio, _ in ratios])
    mean = np.exp(np.mean([np.log(ratio) for ratio, _ in ratios]))
    fig, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.axvline(1, color="#566070", linewidth=1)
    for value in (mean, median):
        axes.axvline(value, color="#1f5f99", linewidth=1, linestyle="--")
    text = f"geometric mean {mean:.2f}, median {median:.2f} "
    axes.text(mean, len(ratios) - 0.3, text, color="#1f5f99", ha="right")
    for place, (ratio, _) in enumerate(ratios):
        axes.plot([ratio, 1], [place, place], color="#c6ccd4", linewidth=2, zorder=1)
    axes.scatter([ratio for ratio, _ in ratios], range(len(ratios)), color="#1f5f99", zorder=2)
    axes.set_yticks(range(len(ratios)), [name for _, name in ratios])
    axes.set_xscale("log")
    axes.set_xticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
    axes.minorticks_off()
    axes.set_xlim(0.03, 2)
    axes.set_xlabel("error of rfx train --data FILE over that of tuned HistGradientBoosting")
    axes.spines[["top", "right"]].set_visible(False)
    fig.savefig(args.output, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    own = commands.add_parser("run")
    own.add_argument("--out", required=True)
    own.add_argument("--sets", default=",".join(SETS), type=str)
    own.add_argument("--rows", type=int, default=4000)
    own.add_argument("--splits", type=int, default=5)
    own.add_argument("--by", default="hgb-tuned,rfx")
    own.add_argument("--python", default=sys.executable)
    own = commands.add_parser("show")
    own.add_argument("files", nargs="+")
    own.add_argument("--reference", default="hgb-tuned")
    own = commands.add_parser("figure")
    own.add_argument("files", nargs="+")
    own.add_argument("--reference", default="hgb-tuned")
    own.add_argument("--output", required=True)
    own = commands.add_parser("one")
    own.add_argument("values", nargs=4)
    args = parser.parse_args()
    if args.command == "run":
        args.by = args.by.split(",")
        args.sets = LARGE if args.sets == "large" else args.sets.split(",")
        run(args)
    elif args.command == "show":
        show(args)
    elif args.command == "figure":
        figure(args)
    else:
        name, number, rows, by = args.values
        print(json.dumps(one(name, int(number), int(rows), by)))


if __name__ == "__main__":
    main()
