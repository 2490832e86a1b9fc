"""Learning a kernel with random features: scores against plain numpy in float64, and the maximiser
against the paper's bisection.

Both run in one process, in turns. The memory is what the scores need in addition to what the
process already has. --growth measures the seconds of the scores for several numbers of covtype's
rows and of features, and writes STEM.csv as it goes and STEM.png.

    python benchmarks/bench_learned.py [--pairs 5] [--growth STEM]
"""

import argparse
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from chi2_bisection import chi2_by_bisection
from pairs import add_pairs, machine, ratios, spread, timed, turns

from rfx import data, env
from rfx.data.transforms import Scaler
from rfx.features import alignment, sample
from rfx.features.alignment import maximise


def plain_scores(W, b, X, y):
    """The straightforward way: all features at once, in float64."""
    return (np.cos(W @ X.T + b[:, None]) @ y) ** 2


def peak_mb(run) -> float:
    """The peak of the function's resident memory minus the memory before the call, in MiB."""
    before, highest, done = resident_mb(), [0.0], threading.Event()

    def watch():
        while not done.wait(0.005):
            highest[0] = max(highest[0], resident_mb())

    thread = threading.Thread(target=watch)
    thread.start()
    run()
    done.set()
    thread.join()
    return highest[0] - before


def resident_mb() -> float:
    with open("/proc/self/statm") as handle:
        return int(handle.read().split()[1]) * 4096 / 2**20


def compared(runs: dict, pairs: int) -> dict[str, list[dict]]:
    """Wall and processor seconds of each function, in turns; a first turn, which compiles, is not
    counted.
    """
    for run in runs.values():
        run()
    return turns(runs, lambda name: timed(runs[name]), pairs)


def scores(pairs):
    """Scores of the authors' first example; numpy needs 3 GiB."""
    split = data.load("sphere")
    X, y = split.X_train, split.y_train
    pool = sample("gaussian", 10, 20_000, 0, gamma=0.5)
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((20_000, 10)), rng.uniform(0, 2 * np.pi, 20_000)
    alignment.scores(pool, X[:500], y[:500, None])
    more = {"rfx": peak_mb(lambda: alignment.scores(pool, X, y[:, None]))}
    largest = env.peak_rss_mb()
    runs = {
        "rfx": lambda: alignment.scores(pool, X, y[:, None]),
        "numpy float64": lambda: plain_scores(W, b, X, y),
    }
    more["numpy float64"] = peak_mb(runs["numpy float64"])
    found = compared(runs, pairs)
    work = "scores, n = 10,000, N_w = 20,000, d = 10"
    for name, rows in found.items():
        memory = f"{more[name]:.0f} MiB more than before" + (
            f", {largest:.0f} in all" if name == "rfx" else ""
        )
        print_row(work, name, rows, found["rfx"], memory)


def maximiser(pairs):
    """Chi-square, rho = 0.005 N_w; the scores are squares of normal numbers."""
    for count in (20_000, 1_000_000):
        values, rho = np.random.default_rng(0).standard_normal(count) ** 2 * 1e4, 0.005 * count
        runs = {
            "rfx": lambda v=values, r=rho: maximise(v, r),
            "bisection": lambda v=values, r=rho: chi2_by_bisection(v, r),
        }
        found = compared(runs, pairs)
        gap = np.abs(found["rfx"][0]["result"] - found["bisection"][0]["result"]).max()
        for name, rows in found.items():
            print_row(
                f"maximiser, N_w = {count:,}",
                name,
                rows,
                found["rfx"],
                "" if name == "rfx" else f"apart by {gap:.0e}",
            )


def print_row(work, name, rows, first, note):
    seconds, cpu = (spread([row[kind] for row in rows], ".3g") for kind in ("seconds", "cpu"))
    times = "" if rows is first else ratios(rows, first, "cpu")
    print(f"| {work} | {name} | {seconds} | {cpu} | {times} | {note} |", flush=True)


def growth(stem):
    """Processor seconds by rows of covtype with 20,000 features, and by features with 50,000 rows:
    a table, a CSV file of the points, a figure.
    """
    rows = [14_525, 29_050, 58_101, 116_202, 232_405, 464_810]
    sizes = [1250, 2500, 5000, 10_000, 20_000]
    split = data.load("covtype", split="yen2014")
    X, y = Scaler.fit(split.X_train, "minmax01").transform(split.X_train, np.float32), split.y_train
    X, y = (X.toarray() if hasattr(X, "toarray") else X), np.where(y == y.max(), 1.0, -1.0)
    pool = sample("arccosine-2", X.shape[1], 20_000, 0)
    alignment.scores(pool, X[:500], y[:500, None])
    print(
        "| score pass, covtype, arc-cosine of order 2, d = 54 | N_w | seconds | processor seconds"
        " |\n|---|---|---|---|",
        flush=True,
    )
    found = {}
    with open(f"{stem}.csv", "w", encoding="utf-8") as points:
        points.write("rows,features,seconds,cpu\n")
        for n, count in [*((50_000, count) for count in sizes), *((n, 20_000) for n in rows)]:
            part = pool.select(slice(count))
            row = timed(lambda n=n, part=part: alignment.scores(part, X[:n], y[:n, None]))
            found[n, count] = row["cpu"]
            points.write(f"{n},{count},{row['seconds']:.3f},{row['cpu']:.3f}\n")
            points.flush()
            print(
                f"| n = {n:,} | {count:,} | {row['seconds']:.2f} | {row['cpu']:.2f} |", flush=True
            )
    draw(
        {n: found[n, 20_000] for n in rows}, {count: found[50_000, count] for count in sizes}, stem
    )


def draw(over_rows, over_features, stem):
    from rfx.reporting import style

    figure, grid = style.grid(1, 2)
    for axes, points, label in zip(
        grid[0], (over_rows, over_features), ("rows n, N_w = 20,000", "features N_w, n = 50,000")
    ):
        places = np.array(list(points))
        slope, level = np.polyfit(np.log(places), np.log(list(points.values())), 1)
        axes.loglog(
            places, points.values(), label=f"score pass, slope {slope:.2f}", **style.look("lkrf")
        )
        axes.loglog(
            places, points[places[0]] * places / places[0], ":", color="0.6", label="in proportion"
        )
        axes.set_xlabel(label)
        axes.set_ylabel("processor seconds")
        axes.legend()
        print(f"slope over {label}: {slope:.3f}")
    style.finish(
        figure,
        "Scores of a pool of features on covtype: growth in rows and features",
        [f"{machine()}; d = 54."],
    )
    figure.savefig(f"{stem}.png", dpi=150)
    print(f"{stem}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_pairs(parser)
    parser.add_argument("--growth", metavar="STEM")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    env.set_threads(given.threads)
    print(f"{machine()}\n")
    if given.growth:
        growth(given.growth)
        return
    print(
        "| work | by | seconds | processor seconds | times rfx in processor seconds |"
        " |\n|---|---|---|---|---|---|"
    )
    # first, because memory that others have freed would hide its own
    scores(given.pairs)
    maximiser(given.pairs)


if __name__ == "__main__":
    main()
