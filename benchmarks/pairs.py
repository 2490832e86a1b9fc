"""What the benchmarks share: runs in turns, so that whatever else the machine does hits all
of them, and what is said of their seconds.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np

from rfx import env

PAIRS = 5


def add_pairs(parser, default: int = PAIRS) -> None:
    """The option --pairs."""
    parser.add_argument(
        "--pairs", type=int, default=default, help="turns that all take, one after the other"
    )


def turns(names, run, pairs: int) -> dict[str, list]:
    """What run(name) returned in each of the turns, for each name; every turn takes the
    names in their order.
    """
    found: dict[str, list] = {name: [] for name in names}
    for _ in range(pairs):
        for name in names:
            found[name].append(run(name))
    return found


def timed(function) -> dict:
    """seconds and cpu (processor seconds of this process) of a call, and its result."""
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "result": result,
    }


def scaled(X):
    """The rows X (n, d) as a dense array of their type, every column scaled to [-1, 1]."""
    X = X.toarray() if hasattr(X, "toarray") else X
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * (X - low) / np.where(high > low, high - low, 1) - 1


def child(*words) -> str:
    """The last line that this script prints in a process of its own, with `words` after its
    arguments.
    """
    command = [sys.executable, sys.argv[0], *sys.argv[1:], *map(str, words)]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()[-1]


def spread(values, form: str = ".2f") -> str:
    """Median (lowest to highest); the one number where there is one."""
    middle = format(statistics.median(values), form)
    return (
        middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"
    )


def ratios(rows, first, name: str, form: str = ".1f") -> str:
    """How many times as much of `name` each of `rows` took as the one of `first` in the
    same turn: median, lowest, highest.
    """
    return spread([one[name] / other[name] for one, other in zip(rows, first, strict=True)], form)


def machine(threads: int | None = None) -> str:
    """The processor, the threads of rfx, how many other processes wait for it, and the
    kernels that numpy's OpenBLAS takes there.
    """
    who = f"{env.cpu_name()}, {threads or env.threads()} threads, {os.cpu_count()} cores"
    return f"{who}, load {os.getloadavg()[0]:.1f} at the start{blas_kernels()}"


def blas_kernels() -> str:
    """Those of which processor OpenBLAS runs, and whether the environment forces them;
    nothing for another BLAS.
    """
    import threadpoolctl

    found = {
        library["architecture"]
        for library in threadpoolctl.threadpool_info()
        if library.get("internal_api") == "openblas"
    }
    forced = ", forced by OPENBLAS_CORETYPE" if os.environ.get("OPENBLAS_CORETYPE") else ""
    return f", BLAS kernels for {' and '.join(sorted(found))}{forced}" if found else ""
