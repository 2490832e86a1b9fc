"""What a second thread gains: every method by one thread and by two, in processes that take turns.

Two threads that wait for each other show as seconds that do not fall, threads that spin while they wait as processor seconds that rise.
A method is first fitted to few rows, so that nothing of its code is compiled or read from disk while it is timed.

    python benchmarks/bench_threads.py
    python benchmarks/bench_threads.py --methods rf sparse-rf --rows 20000 --n-features 4000
"""

import argparse
import json

from pairs import add_pairs, child, machine, ratios, spread, timed, turns

from rfx import env, methods
from rfx.data import load

SETS = {"covtype-20k": ("yen2014", "binary", "squared_hinge"), "cpusmall": ("wu2016", "regression", "squared")}
COMMON = {"task", "seed", "scaling", "target_scaling"}


def given(name, task, loss, options):
    """The options of a method among those that all of them are given here."""
    every = {"lam": 1.0, "gamma": 1.0, "nu": 1e-3, "loss": loss, "n_features": options.n_features, "n_grids": 64, "epochs": 2}
    every |= {"task": task, "seed": 0, "scaling": "minmax11", "target_scaling": "minmax01" if task == "regression" else "none"}
    known = COMMON | set(methods.get(name).declared())
    return {option: value for option, value in every.items() if option in known}


def seconds(options) -> dict:
    """{set: {method: {"clock", "cpu"}}}, seconds of fits by options.one threads; an error's name where there is no model."""
    env.set_threads(options.one)
    found: dict = {}
    for data, (split, task, loss) in SETS.items():
        rows = load(data, split=split)
        X, y, own = rows.X_train[: options.rows], rows.y_train[: options.rows], found.setdefault(data, {})
        for name in options.methods or methods.names():
            words = given(name, task, loss, options)
            try:
                methods.create(name, **words).fit(X[:500], y[:500])
                done = timed(lambda words=words, name=name: methods.create(name, **words).fit(X, y))
                own[name] = {"clock": done["seconds"], "cpu": done["cpu"]}
            except Exception as error:
                own[name] = type(error).__name__
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--n-features", type=int, default=1000)
    add_pairs(parser)
    parser.add_argument("--one", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(seconds(options)))
        return
    print(machine())
    found = turns((1, 2), lambda threads: json.loads(child("--one", threads)), options.pairs)
    for data in SETS:
        print(f"\n{data}, at most {options.rows:,} rows, {options.n_features:,} features, {SETS[data][2]}\n")
        print("| method | one thread, s | two threads, s | times faster | times the processor seconds |\n|---|---:|---:|---:|---:|")
        for name in found[1][0][data]:
            one, two = ([run[data][name] for run in found[threads]] for threads in (1, 2))
            if any(isinstance(run, str) for run in one + two):
                print(f"| {name} | {one[0] if isinstance(one[0], str) else two[0]} | | | |")
                continue
            clock = [spread([run["clock"] for run in runs]) for runs in (one, two)]
            print(f"| {name} | {' | '.join(clock)} | {ratios(one, two, 'clock', '.2f')} | {ratios(two, one, 'cpu', '.2f')} |")


if __name__ == "__main__":
    main()
