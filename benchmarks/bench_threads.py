"""The gain of a second thread: every method with one thread and with two, in processes that take
turns.

If two threads wait for each other, wall seconds do not fall. If threads spin while they wait,
processor seconds rise. A method is first fitted to a few rows, so that none of its code is compiled
or loaded while it is timed.

With --commands: `rfx train` and `rfx tune` on small files, with no option but the method, on an
idle machine and next to two programs that keep two cores busy. The output has ratios of two threads
to one within each turn and, with --against, ratios to another checkout. If the machine has other
work, processor seconds are more reliable.

    python benchmarks/bench_threads.py
    python benchmarks/bench_threads.py --methods rf sparse-rf --rows 20000 --n-features 4000
    python benchmarks/bench_threads.py --commands --methods rf tune --against ../older --pairs 3
"""

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pairs import add_pairs, child, machine, ratios, spread, timed, turns

from rfx import env, methods
from rfx.data import load

SETS = {
    "covtype-20k": ("yen2014", "binary", "squared_hinge"),
    "cpusmall": ("wu2016", "regression", "squared"),
}
COMMON = {"task", "seed", "scaling", "target_scaling"}


def given(name, task, loss, options):
    """Those of the common options that a method has."""
    every = {
        "lam": 1.0,
        "gamma": 1.0,
        "nu": 1e-3,
        "loss": loss,
        "n_features": options.n_features,
        "n_grids": 64,
        "epochs": 2,
    }
    every |= {
        "task": task,
        "seed": 0,
        "scaling": "minmax11",
        "target_scaling": "minmax01" if task == "regression" else "none",
    }
    known = COMMON | set(methods.get(name).declared())
    return {option: value for option, value in every.items() if option in known}


def seconds(options) -> dict:
    """{set: {method: {"clock", "cpu"}}}, seconds of fits with options.one threads; the name of the
    exception if a fit fails.
    """
    env.set_threads(options.one)
    found: dict = {}
    for data, (split, task, loss) in SETS.items():
        rows = load(data, split=split)
        X, y, own = (
            rows.X_train[: options.rows],
            rows.y_train[: options.rows],
            found.setdefault(data, {}),
        )
        for name in options.methods or methods.names():
            words = given(name, task, loss, options)
            try:
                methods.create(name, **words).fit(X[:500], y[:500])
                done = timed(lambda words=words, name=name: methods.create(name, **words).fit(X, y))
                own[name] = {"clock": done["seconds"], "cpu": done["cpu"]}
            except Exception as error:
                own[name] = type(error).__name__
    return found


# ---------------------------------------------------------------------- small files, whole commands

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    "kernel",
    "rf",
    "sparse-rf",
    "rb",
    "sparse-rb",
    "nystrom",
    "lkrf",
    "block",
    "doubly-sgd",
)
# A competitor ends after this many seconds, whatever happens to this script.
_BOUND = 3600
_LOOP = (
    "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end:"
    " pass"
)


@contextlib.contextmanager
def competitors(count):
    """Programs that only count, inside the block."""
    running = [subprocess.Popen([sys.executable, "-c", _LOOP, str(_BOUND)]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def words_of(method, data):
    """The command that trains a method, or tunes."""
    if method == "tune":
        return ["tune", "--data", data, "--trials", "6", "--quiet", "--json"]
    own = ["--gamma", "0.5"] if method == "doubly-sgd" else []
    return ["train", "--method", method, "--data", data, "--seed", "0", "--quiet", "--json", *own]


def commanded(words, threads):
    """Seconds of the second of two calls of the command in this process. The first compiles and
    reads what both need.
    """
    from rfx.cli import main as rfx

    def call():
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                rfx([*words, "--threads", str(threads)])
            except SystemExit as end:
                # 3: the model has not converged
                if end.code not in (0, 3, None):
                    raise RuntimeError(f"rfx {' '.join(words)} ended with {end.code}") from None

    call()
    done = timed(call)
    return {"clock": done["seconds"], "cpu": done["cpu"]}


def told(checkout, words, threads):
    """The result of `commanded` in its own process, with the rfx of a checkout."""
    call = [
        sys.executable,
        "-P",
        __file__,
        "--commands",
        "--one",
        str(threads),
        "--words",
        json.dumps(words),
    ]
    paths = os.pathsep.join((str(checkout), str(Path(__file__).parent)))
    done = subprocess.run(
        call, env=os.environ | {"PYTHONPATH": paths}, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def written(folder):
    """A file of 1,030 rows with 8 inputs and a numeric target, the size of concrete."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.random((1030, 8))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X))
    rows = (
        f"{target:.4f} " + " ".join(f"{k + 1}:{value:.4f}" for k, value in enumerate(row))
        for row, target in zip(X, y)
    )
    (path := Path(folder) / "1030x8.svm").write_text("\n".join(rows) + "\n")
    return str(path)


def commands(options, folder):
    """Print the table of the commands."""
    checkouts = {"this": ROOT} | (
        {"other": Path(options.against).resolve()} if options.against else {}
    )
    files = options.files or [written(folder), "breast_cancer"]
    print(
        "| data | command | cores | rfx | one thread, processor s | two threads: times the"
        " processor seconds | times the clock |"
    )
    print("|---|---|---|---|---:|---:|---:|")
    for data in files:
        for method in options.methods or (*COMMANDS, "tune"):
            for count in (0, options.competitors):
                with competitors(count):
                    names = [(checkout, threads) for checkout in checkouts for threads in (1, 2)]
                    words = words_of(method, data)
                    found = turns(
                        names,
                        lambda name, words=words: told(checkouts[name[0]], words, name[1]),
                        options.pairs,
                    )
                for checkout in checkouts:
                    one, two = found[checkout, 1], found[checkout, 2]
                    own = (
                        f"{statistics.median(run['cpu'] for run in one):.2f} |"
                        f" {ratios(two, one, 'cpu', '.2f')}"
                    )
                    where = f"{count} busy" if count else "idle"
                    print(
                        f"| {Path(data).stem} | {method} | {where} | {checkout} | {own} |"
                        f" {ratios(two, one, 'clock', '.2f')} |",
                        flush=True,
                    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--n-features", type=int, default=1000)
    add_pairs(parser)
    parser.add_argument(
        "--commands",
        action="store_true",
        help="whole commands on small files, idle and beside busy programs",
    )
    parser.add_argument(
        "--files", nargs="+", default=None, help="for --commands: files or data sets of your own"
    )
    parser.add_argument(
        "--competitors",
        type=int,
        default=2,
        help="for --commands: how many programs keep cores busy",
    )
    parser.add_argument(
        "--against", default=None, help="for --commands: a folder with another checkout of rfx"
    )
    parser.add_argument("--one", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--words", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.words:
        print(json.dumps(commanded(json.loads(options.words), options.one)))
        return
    if options.commands:
        print(machine() + "\n")
        with tempfile.TemporaryDirectory() as folder:
            commands(options, folder)
        return
    if options.one:
        print(json.dumps(seconds(options)))
        return
    print(machine())
    found = turns((1, 2), lambda threads: json.loads(child("--one", threads)), options.pairs)
    for data in SETS:
        print(
            f"\n{data}, at most {options.rows:,} rows, {options.n_features:,} features,"
            f" {SETS[data][2]}\n"
        )
        print(
            "| method | one thread, s | two threads, s | times faster | times the processor seconds"
            " |\n|---|---:|---:|---:|---:|"
        )
        for name in found[1][0][data]:
            one, two = ([run[data][name] for run in found[threads]] for threads in (1, 2))
            if any(isinstance(run, str) for run in one + two):
                print(f"| {name} | {one[0] if isinstance(one[0], str) else two[0]} | | | |")
                continue
            clock = [spread([run["clock"] for run in runs]) for runs in (one, two)]
            print(
                f"| {name} | {' | '.join(clock)} | {ratios(one, two, 'clock', '.2f')} |"
                f" {ratios(two, one, 'cpu', '.2f')} |"
            )


if __name__ == "__main__":
    main()
