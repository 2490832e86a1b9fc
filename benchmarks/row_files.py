"""Files of rows that a benchmark makes one at a time, each in a process with one thread."""

import csv
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def processor_seconds():
    """Of this process and of its children that have ended."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in own)


def append_missing(script, out, columns, jobs, python=sys.executable, words=()):
    """Append the row of each job that the file lacks.

    Parameters
    ----------
    script : str
        `python script one WORDS... VALUES...` prints the row as JSON.
    out : str
        The file, which may not exist yet.
    columns : sequence of str
    jobs : iterable of dict
        The columns that tell the row of a job from others, with their values.
    python : str
        An interpreter with the packages of the contestants.
    words : sequence of str
        Words of the command before the values.
    """
    path, rows = Path(out), []
    if path.exists():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        path.write_text(",".join(columns) + "\n")
    for job in jobs:
        values = {name: str(value) for name, value in job.items()}
        if any(values.items() <= row.items() for row in rows):
            continue
        command = [python, script, "one", *words, *values.values()]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
        if done.returncode:
            print(*values.values(), done.stderr[-500:], file=sys.stderr)
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        with path.open("a", newline="") as file:
            csv.DictWriter(file, columns, lineterminator="\n").writerow(values | row)
