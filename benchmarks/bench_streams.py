"""What no option gives: the methods that learn batch by batch, and boosting, by their defaults
beside rf by its.

Every method is fitted to the same rows of each set and scored on the same test rows, which no
choice is made on: those of the set where it has some, else a fifth, drawn by seed 0. Prints a
markdown table: accuracy or RMSE, passes over the rows, processor seconds of one fit with the choice
of its options; * more than two points, or 5 % of RMSE, behind rf.

    python benchmarks/bench_streams.py [--data a9a cadata] [--methods norma k-sdca] [--rows 4000]
"""

import argparse
import time
import warnings

from pairs import machine

from rfx import data, methods

SPLITS = {
    "a9a": None,
    "ijcnn1": None,
    "cod-rna": None,
    "covtype-20k": "80/20",
    "cadata": "80/20",
    "cpusmall": "80/20",
}
METHODS = (
    "doubly-sgd",
    "norma",
    "k-sdca",
    "r-sdca",
    "n-sdca",
    "r-pegasos",
    "n-pegasos",
    "boosting",
)
TEST_ROWS = 20_000
POINTS, SHARE = 0.02, 0.05


def fitted(name: str, split) -> tuple[float, float, float]:
    """(score, passes, processor seconds) of a method by its defaults."""
    start = time.process_time()
    model = methods.create(name, task=split.task).fit(split.X_train, split.y_train)
    seconds = time.process_time() - start
    passes = model.info.get("samples", 0) / len(split.y_train)
    return model.score(split.X_test, split.y_test)["score"], passes, seconds


def behind(score: float, best: float, task: str) -> bool:
    """Whether a score is too far behind that of rf."""
    return score > (1 + SHARE) * best if task == "regression" else score < best - POINTS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(SPLITS))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--rows", type=int, default=10**9, help="the most rows to fit to")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{machine()}\n")
    print("| data, rows | method | score | passes | seconds |\n|---|---|---:|---:|---:|")
    for name in given.data:
        split = data.load(name, split=SPLITS[name], seed=0)
        sizes = min(given.rows, len(split.y_train)), min(TEST_ROWS, len(split.y_test))
        split = data.load(name, split=SPLITS[name], seed=0, n_train=sizes[0], n_test=sizes[1])
        best = None
        for method in ("rf", *given.methods):
            score, passes, seconds = fitted(method, split)
            best = score if best is None else best
            mark = "*" if behind(score, best, split.task) else ""
            shown = f"{score:.4f}" if split.task != "regression" else f"{score:.5g}"
            rounds = f"{passes:.3g}" if passes else ""
            cells = (f"{name}, {sizes[0]:,}", method, shown + mark, rounds, f"{seconds:.1f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
