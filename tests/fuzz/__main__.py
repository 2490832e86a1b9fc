"""Every reader against mutated files: `python tests/fuzz [--cases N] [--seed S] [--jobs J]
[NAME…]`.

A module of this folder with a function fuzz(cases, seed) is a target. The function returns how many
of the cases were read, and raises if a case fails with anything but an error of one sentence.
Processes with a limit of memory share the cases. Exits with 1 if a target failed.
"""

import argparse
import importlib
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
# cases per process, and how many of a million cases a target gets: those that write files take
# longer per case
SHARES = {
    "libsvm": 0.35,
    "model": 0.1,
    "plan": 0.05,
    "results": 0.1,
}
BATCH, MEGABYTES = 10_000, 4096


def batch(name, cases, seed):
    """(cases that were read, "" or the end of the error output) of one process."""
    words = [sys.executable, __file__, "--one", name, "--cases", str(cases), "--seed", str(seed)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return 0, f"{name} with seed {seed} ended with {done.returncode}:\n{done.stderr[-2000:]}"
    return int(done.stdout.split()[-1]), ""


def run(names, cases, seed, jobs) -> int:
    failures = 0
    with ThreadPoolExecutor(jobs) as pool:
        for name in names:
            mine = cases if len(names) == 1 else max(1, round(cases * SHARES[name]))
            sizes = [min(BATCH, mine - at) for at in range(0, mine, BATCH)]
            seeds = range(seed, seed + len(sizes))
            counts, failed = zip(*pool.map(batch, [name] * len(sizes), sizes, seeds))
            print(f"{name}: {mine:,} cases, {sum(counts):,} read", flush=True)
            print("".join(failed), file=sys.stderr, flush=True)
            failures += any(failed)
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *SHARES], default=[])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        sys.path.insert(0, str(HERE.parent))
        module = importlib.import_module(f"fuzz.{given.one}")
        limit = MEGABYTES << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        print(module.fuzz(given.cases, given.seed))
        return 0
    return run(given.names or SHARES, given.cases, given.seed, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
