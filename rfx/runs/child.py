"""One run in a separate process: `python -m rfx.runs.child RUN [--fd N --parent PID --tell N]`.

RUN is the run as JSON. The row is written as JSON to the file descriptor N, not to standard output,
because LIBLINEAR and LIBSVM print there; without --fd, for manual use, it is printed. --tell is a
pipe for the solver's steps, one line of JSON each.
"""

import json
import os
import sys
import time
import traceback
from contextlib import suppress

from rfx import env
from rfx.errors import LockedError, NoData, OutOfTime, RfxError
from rfx.records.run import Run

# Seconds between two reported steps.
TELL = 0.2
# params.error of a run with unavailable data: worth retrying, unlike other failures
NO_DATA = NoData.__name__


def outcome(asked: dict, progress=None, execute=None) -> dict:
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

        found = execute(_run(asked), progress=progress)
        return found.as_dict() | {"trace": found.steps}
    except KeyboardInterrupt:
        return {"status": "interrupted", "message": "interrupted"}
    except RfxError as error:
        status = "timeout" if isinstance(error, OutOfTime) else "failed"
        # A run waits only for the lock of a file being fetched.
        kind = NO_DATA if isinstance(error, (NoData, LockedError)) else type(error).__name__
        return {"status": status, "message": str(error), "params": {"error": kind}}
    except MemoryError as error:
        message = f"out of memory ({error}); use fewer n_features or a smaller max_memory"
        return {"status": "failed", "message": message, "params": {"error": "MemoryError"}}
    except Exception as error:
        traceback.print_exc()
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)} line {frame.lineno}"
        return {
            "status": "failed",
            "message": f"{type(error).__name__}: {error} ({place})",
            "params": {"error": type(error).__name__},
        }


def _run(asked: dict):
    """The run; if another machine requests it, its data must match its key."""
    from rfx.records import keys  # imports numpy, which `outcome` defers

    values = dict(asked)
    wanted = values.pop("key", None)
    run = Run.of(values)
    if wanted is not None:
        keys.check(run, wanted)
    return run


def _plain(value):
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def _teller(fd):
    """A function that occasionally writes a step to the pipe; a full or closed pipe is ignored."""
    os.set_inheritable(fd, False)
    os.set_blocking(fd, False)
    last = -TELL

    def tell(entry):
        nonlocal last
        if time.monotonic() - last < TELL:
            return
        last = time.monotonic()
        # below the atomic write size of a pipe, so that lines stay complete
        line = json.dumps(entry, default=_plain)
        with suppress(OSError):
            os.write(fd, line.encode()[:2000] + b"\n")

    return tell


def main(args) -> None:
    env.keep_freed_memory()
    asked = json.loads(args[0])
    options = dict(zip(args[1::2], args[2::2]))
    if "--parent" in options:
        env.die_with(int(options["--parent"]))
    fd = int(options.get("--fd", 1))
    if fd != 1:
        # A back end that outlives this process must not keep the row's file open.
        os.set_inheritable(fd, False)
    row = outcome(asked, _teller(int(options["--tell"])) if "--tell" in options else None)
    with os.fdopen(fd, "w", encoding="utf-8", errors="replace", closefd=False) as out:
        json.dump(row, out, default=_plain)
        if fd == 1:
            out.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
