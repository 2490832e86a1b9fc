"""Shared code of the benchmarks: runs in turns, so that other load on the machine affects all of
them alike, and summaries of their seconds.
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
    parser.add_argument("--pairs", type=int, default=default, help="number of turns")


def turns(names, run, pairs: int) -> dict[str, list]:
    """For each name, the results of run(name) in all turns; every turn takes the names in their
    order.
    """
    found: dict[str, list] = {name: [] for name in names}
    for _ in range(pairs):
        for name in names:
            found[name].append(run(name))
    return found


def timed(function) -> dict:
    """Wall seconds, cpu (processor seconds of this process) and the result of a call."""
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "result": result,
    }


def scaled(X):
    """The rows X (n, d) as a dense array of the same type, every column scaled to [-1, 1]."""
    X = X.toarray() if hasattr(X, "toarray") else X
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * (X - low) / np.where(high > low, high - low, 1) - 1


def child(*words) -> str:
    """The last line that this script prints in its own process with these arguments appended."""
    command = [sys.executable, sys.argv[0], *sys.argv[1:], *map(str, words)]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()[-1]


def spread(values, form: str = ".2f") -> str:
    """Median (lowest to highest); a single number as it is."""
    middle = format(statistics.median(values), form)
    return (
        middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"
    )


def ratios(rows, first, name: str, form: str = ".1f") -> str:
    """The value of `name` in each of `rows`, divided by that of `first` in the same turn: median,
    lowest, highest.
    """
    return spread([one[name] / other[name] for one, other in zip(rows, first, strict=True)], form)


def machine(threads: int | None = None) -> str:
    """The processor, the threads of rfx, the number of other processes that wait for it, and the
    kernels of numpy's OpenBLAS.
    """
    who = f"{env.cpu_name()}, {threads or env.threads()} threads, {os.cpu_count()} cores"
    return f"{who}, load {os.getloadavg()[0]:.1f} at the start{blas_kernels()}"


def blas_kernels() -> str:
    """The processor that OpenBLAS's kernels are for, and whether the environment forces them; empty
    for another BLAS.
    """
    import threadpoolctl

    found = {
        library["architecture"]
        for library in threadpoolctl.threadpool_info()
        if library.get("internal_api") == "openblas"
    }
    forced = ", forced by OPENBLAS_CORETYPE" if os.environ.get("OPENBLAS_CORETYPE") else ""
    return f", BLAS kernels for {' and '.join(sorted(found))}{forced}" if found else ""
