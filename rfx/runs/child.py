"""One run in a separate process: `python -m rfx.runs.child RUN --fd N --tell N --parent PID`.

RUN is the run as JSON. The row is written as JSON to the file descriptor --fd, not to standard
output, because LIBLINEAR and LIBSVM print there. --tell is a file for the last `ProgressReport`,
as JSON.
"""

import json
import os
import sys
import time
import traceback
from dataclasses import dataclass

from rfx import env
from rfx.errors import LockedError, NoData, OutOfTime, RfxError
from rfx.fitting.progress import Progress, ProgressReport
from rfx.numerals import native
from rfx.records.run import Run

# Seconds between two reports; bytes of the file with the last one.
TELL, STEP = 0.2, 2000
# params.error of a run with unavailable data: worth retrying, unlike other failures
NO_DATA = NoData.__name__


def outcome(asked: dict, progress: Progress | None = None, execute=None) -> dict:
    """The row of the requested run, given in the form of `Run.as_dict`, and by its `key` if another
    machine requests it.

    If the run fails, a row with only status, message and params.error.
    """
    try:
        if execute is None:
            # Before numpy is imported: BLAS reads the number of threads once.
            env.own_process()
            threads = asked.get("threads")
            env.set_threads(threads and min(threads, env.cores()))
            from rfx.runs.single import execute

        result = execute(_run(asked), progress=progress)
        return result.as_dict() | {"trace": result.steps}
    except KeyboardInterrupt:
        return {"status": "interrupted", "message": "interrupted"}
    except RfxError as error:
        status = "timeout" if isinstance(error, OutOfTime) else "failed"
        # A run waits only for the lock of a file being fetched.
        kind = NO_DATA if isinstance(error, (NoData, LockedError)) else type(error).__name__
        message = str(error)
    except MemoryError as error:
        status, kind = "failed", "MemoryError"
        message = f"out of memory ({error}); use fewer n_features or a smaller max_memory"
    except Exception as error:
        traceback.print_exc()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        status, kind = "failed", type(error).__name__
        place = f"{os.path.basename(frame.filename)} line {frame.lineno}"
        message = f"{kind}: {error} ({place})"
    return {"status": status, "message": message, "params": {"error": kind}}


def _run(asked: dict):
    """The run; if another machine requests it, its data must match its key."""
    from rfx.records import keys  # imports numpy, which `outcome` defers

    values = dict(asked)
    wanted = values.pop("key", None)
    run = Run.of(values)
    if wanted is not None:
        keys.check(run, wanted)
    return run


def _teller(fd: int) -> Progress:
    """A function that occasionally writes a report to the file."""
    last = -TELL

    def tell(report: ProgressReport) -> None:
        nonlocal last
        if time.monotonic() - last > TELL:
            last = time.monotonic()
            text = json.dumps(report.as_dict(), default=native)
            os.pwrite(fd, text.ljust(STEP).encode()[:STEP], 0)

    return tell


@dataclass(frozen=True)
class _Options:
    """The numbers on the command line: two file descriptors, and the process of the runner."""

    fd: int
    tell: int
    parent: int


def main(args) -> None:
    numbers = {name.removeprefix("--"): int(value) for name, value in zip(args[1::2], args[2::2])}
    options = _Options(**numbers)
    env.die_with(options.parent)
    for file in (options.fd, options.tell):
        # A back end that outlives this process must not keep the files open.
        os.set_inheritable(file, False)
    row = outcome(json.loads(args[0]), _teller(options.tell))
    with os.fdopen(options.fd, "w", encoding="utf-8", errors="replace") as out:
        json.dump(row, out, default=native)


if __name__ == "__main__":
    main(sys.argv[1:])
