"""The variants of Fourier features against independent ones: error of the kernel matrix, test error
of rf, and seconds, for several numbers D of features.

Values are means over the seeds. Test errors and kernel errors are also given as ratios to the
variant offset, seed by seed. Kernel errors are root mean squares over pairs of 500 test rows. gamma
and lambda are those that rf chooses on 5,000 training rows for offset with the largest D. Inputs
are standardised. `time` measures computing the features of digits (784 inputs), training rf on
them, and predicting. `figure` plots a file of `measure`.

    python benchmarks/bench_features.py measure --output features.csv
    python benchmarks/bench_features.py show features.csv
    python benchmarks/bench_features.py figure features.csv docs/images/features.svg
    python benchmarks/bench_features.py time
"""

import argparse
import csv
import math
import sys
import time
from pathlib import Path

import numpy as np
from pairs import add_pairs, machine, ratios, spread, turns
from scipy import stats

from rfx import env, kernels, methods
from rfx.data import load
from rfx.data.transforms import Scaler
from rfx.features import MAPS, sample

VARIANTS = ("offset", "pairs", "orthogonal", "quasi", "hadamard")
SIZES = (64, 256, 1024)
# data set, split, kernel
CASES = (
    ("cpusmall", "wu2016", "gaussian"),
    ("cod-rna", "wu2016", "gaussian"),
    ("a9a", "dai2014", "gaussian"),
    ("ijcnn1", "wu2016", "laplacian-l2"),
    ("covtype-20k", "wu2016", "matern-3/2"),
    ("cadata", "wu2016", "laplacian"),
)
FIELDS = ("dataset", "kernel", "gamma", "lam", "variant", "D", "seed", "kernel_error", "error", "s")


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def prepared(name, split):
    data = load(name, split=split)
    drawn = np.random.default_rng(0).permutation(data.X_train.shape[0])[:5000]
    data.X_train, data.y_train = data.X_train[drawn], data.y_train[drawn]
    scaler = Scaler.fit(data.X_train, "standard")
    X, X_test = (dense(scaler.transform(X)) for X in (data.X_train, data.X_test))
    return data.task, X, data.y_train, X_test[:5000], data.y_test[:5000]


def fitted(task, kernel, variant, D, seed, gamma, lam, X, y):
    given = {"kernel": kernel, "features": variant, "n_features": D, "seed": seed, "gamma": gamma}
    given |= {"lam": lam, "task": task, "scaling": "none", "metric": "none"}
    return methods.create("rf", **given).fit(X, y)


def error(task, pipeline, X, y):
    found = pipeline.predict(X)
    return float(
        np.sqrt(np.mean((found - y) ** 2)) if task == "regression" else np.mean(found != y)
    )


def kernel_error(kernel, variant, D, seed, gamma, X):
    K = kernels.block(
        kernel, *(kernels.prepare(kernel, X, {"gamma": gamma}, np.float64),) * 2, {"gamma": gamma}
    )
    Z = sample(kernel, X.shape[1], D, seed, variant=variant, dtype=np.float64, gamma=gamma)
    Z = Z.transform(X) / math.sqrt(D)
    return float(np.sqrt(np.mean((Z @ Z.T - K) ** 2)))


def measure(options):
    writer = csv.DictWriter(options.output, FIELDS, lineterminator="\n")
    writer.writeheader()
    for name, split, kernel in CASES:
        task, X, y, X_test, y_test = prepared(name, split)
        chosen = fitted(task, kernel, "offset", SIZES[-1], 0, "loo", "validation", X, y).info
        gamma, lam = chosen["kernel_params"]["gamma"], chosen["lam"]
        for variant in VARIANTS:
            if variant not in MAPS[kernel].variants_of(kernel):
                continue
            for D in SIZES:
                for seed in range(options.seeds):
                    start = time.process_time()
                    model = fitted(task, kernel, variant, D, seed, gamma, lam, X, y)
                    own = (name, kernel, f"{gamma:.6g}", f"{lam:.6g}", variant, D, seed)
                    seconds = time.process_time() - start
                    found = (
                        kernel_error(kernel, variant, D, seed, gamma, X_test[:500]),
                        error(task, model, X_test, y_test),
                        seconds,
                    )
                    numbers = tuple(f"{value:.6g}" for value in found)
                    writer.writerow(dict(zip(FIELDS, own + numbers)))
                    options.output.flush()


def read(path):
    """(data set, kernel) -> quantity -> variant -> D -> values by seed."""
    found = {}
    for row in csv.DictReader(Path(path).open()):
        case = found.setdefault((row["dataset"], row["kernel"]), {})
        for quantity in ("kernel_error", "error", "s"):
            sizes = case.setdefault(quantity, {}).setdefault(row["variant"], {})
            sizes.setdefault(int(row["D"]), []).append(float(row[quantity]))
    return found


def against(values, reference):
    """The geometric mean of the ratios per seed, and its 95 % interval."""
    logs = np.log(np.array(values) / np.array(reference))
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    low, mean, high = np.exp([logs.mean() - half, logs.mean(), logs.mean() + half])
    return f"{mean:.2f} ({low:.2f} to {high:.2f})"


def show(options):
    found = read(options.file)
    for quantity, words in (("kernel_error", "kernel error"), ("error", "test error")):
        print(f"\n{words}, times that of offset (95 % interval over the seeds):\n")
        print("| data, kernel | D | offset | " + " | ".join(VARIANTS[1:]) + " |")
        print("|---|---|---|" + "---|" * len(VARIANTS[1:]))
        for (name, kernel), case in found.items():
            of = case[quantity]
            for D, reference in of["offset"].items():
                cells = [
                    against(of[variant][D], reference) if variant in of else "-"
                    for variant in VARIANTS[1:]
                ]
                print(
                    f"| {name}, {kernel} | {D:,} | {np.mean(reference):.4g} | {' | '.join(cells)} |"
                )


def figure(options):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.hashsalt": "rfx", "svg.fonttype": "none", "font.size": 7}
    found = read(options.file)
    shape, axes = pyplot.subplots(2, len(found), figsize=(11, 4), sharex=True)
    colours = dict(zip(VARIANTS, ("black", "#56B4E9", "#D55E00", "#009E73", "#332288")))
    for column, ((name, kernel), case) in enumerate(found.items()):
        for line, quantity in enumerate(("kernel_error", "error")):
            own = axes[line][column]
            # divided by the RMSE of offset with the fewest features, so that all axes have the same
            # scale
            unit = np.mean(case[quantity]["offset"][SIZES[0]])
            for variant, sizes in case[quantity].items():
                means = [np.mean(values) / unit for values in sizes.values()]
                look = {"color": colours[variant], "marker": "o", "markersize": 3}
                own.plot(list(sizes), means, label=variant, **look)
            own.set_xscale("log", base=2)
            own.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
            if line:
                own.set_ylim(0, 1.3)
                own.set_xlabel("features D")
            else:
                own.set_yscale("log")
                own.set_ylim(0.001, 1.5)
                own.set_title(f"{name}, {kernel}", fontsize=8)
            if column:
                own.tick_params(labelleft=False)
            else:
                own.set_ylabel(("kernel error", "test error")[line] + ", relative")
    handles, labels = axes[0][0].get_legend_handles_labels()
    shape.legend(handles, labels, loc="lower center", ncols=len(VARIANTS))
    shape.tight_layout(rect=(0, 0.06, 1, 1))
    shape.savefig(options.to, metadata={"Date": None})


def timed(options):
    """Seconds of computing features from 784 inputs, training rf on them, and predicting."""
    print(f"{machine(options.threads)}; mnist, {options.rows:,} rows, D = {options.size:,}\n")
    data = load("mnist", split="wu2016", n_train=options.rows)
    X, X_test = (dense(part).astype(np.float32) / 255 for part in (data.X_train, data.X_test))
    width = ((0, 0), (0, 784 - X.shape[1]))
    X, X_test = np.pad(X, width), np.pad(X_test, width)
    given = {"kernel": "gaussian", "gamma": 0.02, "n_features": options.size, "lam": 1.0}
    given |= {"loss": "squared", "scaling": "none", "metric": "none", "task": "multiclass"}

    def once(variant):
        row = {}
        for what in ("features", "training", "prediction"):
            start = time.perf_counter()
            if what == "features":
                made = sample("gaussian", 784, options.size, 0, variant=variant, gamma=0.02)
                made.transform(X[:5000])
            elif what == "training":
                model = methods.create("rf", features=variant, **given).fit(X, data.y_train)
            else:
                right = np.mean(model.predict(X_test) == data.y_test)
            row[what] = time.perf_counter() - start
        return row | {"error": 1 - right}

    for variant in ("offset", "hadamard"):
        sample("gaussian", 784, 512, 0, variant=variant, gamma=0.02).transform(X[:64])
    found = turns(("offset", "hadamard"), once, options.pairs)
    print("| what | offset, s | hadamard, s | offset / hadamard |")
    print("|---|---|---|---|")
    for what in ("features", "training", "prediction"):
        cells = [spread([row[what] for row in found[name]]) for name in found]
        print(
            f"| {what} | {' | '.join(cells)} | {ratios(found['offset'], found['hadamard'], what)} |"
        )
    errors = [spread([row["error"] for row in found[name]], ".4f") for name in found]
    print(f"| test error | {' | '.join(errors)} | |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_pairs(parser)
    parser.add_argument("--threads", type=int, default=2)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--output", type=argparse.FileType("w"), default=sys.stdout)
    one.set_defaults(run=measure)
    one = commands.add_parser("show")
    one.add_argument("file")
    one.set_defaults(run=show)
    one = commands.add_parser("figure")
    one.add_argument("file")
    one.add_argument("to")
    one.set_defaults(run=figure)
    one = commands.add_parser("time")
    one.add_argument("--rows", type=int, default=20000)
    one.add_argument("--size", type=int, default=10000)
    one.set_defaults(run=timed)
    options = parser.parse_args()
    env.set_threads(options.threads)
    options.run(options)


if __name__ == "__main__":
    main()
