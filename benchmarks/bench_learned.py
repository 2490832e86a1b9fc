"""Learning a kernel with random features: scores beside plain numpy in float64, the maximiser beside the paper's bisection.

Each pair in the same process run, alternating; medians as markdown tables, and the memory that the scores need beyond what is
there before. --growth: seconds of the scores over rows and over features of generated rows of covtype's shape, as a figure.
Run: python benchmarks/bench_learned.py [--repeat 3] [--growth STEM]
"""

import argparse
import statistics
import threading
import time

import numpy as np

from rfx import data, env
from rfx.features import alignment, sample
from rfx.features.divergence import chi2_by_bisection, maximise


def plain_scores(W, b, X, y):
    """As one writes it down: all features at once, in float64."""
    return (np.cos(W @ X.T + b[:, None]) @ y) ** 2


def timed(runs: dict, repeat: int) -> dict:
    """Medians of the seconds of each of the functions, run in turn; the first turn, which compiles, is not counted."""
    seconds = {name: [] for name in runs}
    for turn in range(repeat + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_mb(run) -> float:
    """How many MiB of resident memory more than before the function has at its largest."""
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


def scores(repeat):
    split = data.load("sphere")
    X, y = split.X_train, split.y_train
    pool = sample("gaussian", 10, 20_000, 0, gamma=0.5)
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((20_000, 10)), rng.uniform(0, 2 * np.pi, 20_000)
    alignment.scores(pool, X[:500], y[:500, None])
    ours_mb = peak_mb(lambda: alignment.scores(pool, X, y[:, None]))
    largest = env.peak_rss_mb()
    found = timed({"rfx": lambda: alignment.scores(pool, X, y[:, None]), "numpy": lambda: plain_scores(W, b, X, y)}, repeat)
    plain_mb = peak_mb(lambda: plain_scores(W, b, X, y))
    print("| scores, n = 10,000, N_w = 20,000, d = 10 | seconds | times rfx | MiB more than before |\n|---|---|---|---|")
    for name, more in (("rfx", ours_mb), ("numpy", plain_mb)):
        print(f"| {name} | {found[name]:.2f} | {found[name] / found['rfx']:.1f} | {more:.0f} |")
    print(f"The process had {largest:.0f} MiB at its largest with rfx, the interpreter and its libraries included.")


def maximiser(repeat):
    print("\n| maximiser, chi-square, rho = 0.005 N_w | seconds | bisection, s | times rfx | most apart |\n|---|---|---|---|---|")
    for count in (20_000, 1_000_000):
        values = np.random.default_rng(0).standard_normal(count) ** 2 * 1e4
        rho = 0.005 * count
        found = timed(
            {"rfx": lambda v=values, r=rho: maximise(v, r), "bisection": lambda v=values, r=rho: chi2_by_bisection(v, r)},
            repeat if count < 10**6 else 1,
        )
        gap = np.abs(maximise(values, rho) - chi2_by_bisection(values, rho)).max()
        ratio = found["bisection"] / found["rfx"]
        print(f"| {count:,} | {found['rfx']:.4f} | {found['bisection']:.2f} | {ratio:.0f} | {gap:.0e} |")


def growth(stem):
    """Seconds over rows at 20,000 features, and over features at 50,000 rows; a table and a figure."""
    from rfx.experiments import style

    rows = [14_525, 58_101, 116_202, 232_405, 464_810]
    sizes = [1250, 2500, 5000, 10_000, 20_000]
    split = data.load("covtype-sized")
    X, y = split.X_train, np.where(split.y_train == 2, 1.0, -1.0)
    pool = sample("arccosine-2", X.shape[1], 20_000, 0)
    alignment.scores(pool, X[:500], y[:500, None])
    found = {}
    for n, count in [*((n, 20_000) for n in rows), *((50_000, count) for count in sizes)]:
        start = time.perf_counter()
        alignment.scores(pool.select(slice(count)), X[:n], y[:n, None])
        found[n, count] = time.perf_counter() - start
    print("\n| score pass, arc-cosine of order 2, d = 54 | N_w | seconds |\n|---|---|---|")
    for (n, count), seconds in found.items():
        print(f"| n = {n:,} | {count:,} | {seconds:.2f} |")
    figure, grid = style.grid(1, 2)
    for axes, places, pick, label in (
        (grid[0][0], rows, lambda n: (n, 20_000), "rows n, N_w = 20,000"),
        (grid[0][1], sizes, lambda count: (50_000, count), "features N_w, n = 50,000"),
    ):
        axes.loglog(places, [found[pick(place)] for place in places], label="score pass", **style.look("lkrf"))
        first = found[pick(places[0])]
        axes.loglog(places, [first * place / places[0] for place in places], ":", color="0.6", label="in proportion")
        axes.set_xlabel(label)
        axes.set_ylabel("seconds")
    style.finish(figure, "Scores of a pool of features: growth in rows and features", [f"{env.threads()} threads, d = 54."])
    figure.savefig(f"{stem}.png", dpi=150)
    print(f"{stem}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--growth", metavar="STEM")
    given = parser.parse_args()
    if given.growth:
        growth(given.growth)
        return
    scores(given.repeat)
    maximiser(given.repeat)


if __name__ == "__main__":
    main()
