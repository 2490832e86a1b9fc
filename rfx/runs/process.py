"""A run in a separate process: start it, receive its steps, end it in time, and turn its ending
into a result; and the pool of such processes on this machine.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rfx import env, lazy
from rfx.records import keys
from rfx.records.result import COLUMNS, Result
from rfx.records.run import Run

COMMAND = (sys.executable, "-m", "rfx.runs.child")
NAP = 0.02  # seconds between two checks of a run
STEP = 2000  # bytes of the file with a run's last step
_LONGEST = 2000  # maximum characters of a message
# Options with a column, and the types of that column: lam = "validation" is a request, and the
# column has the resulting number.
_OPTION_COLUMNS: dict[str, Any] = {
    "kernel": str,
    "solver": str,
    "lam": (int, float),
    "n_features": int,
}


@dataclass(frozen=True)
class Ending:
    """The ending of a run.

    Parameters
    ----------
    answer : dict or None
        Its output; None unless it is complete.
    crash : str or None
        A sentence about its end if there is no output.
    timeout : float or None
        The exceeded time limit in seconds.
    peak_mb : float or None
        Its peak memory, in MiB.
    seconds : float or None
        Elapsed seconds.
    worker, host : str or None
        The address and the machine of its worker.
    """

    answer: dict[str, Any] | None = None
    crash: str | None = None
    timeout: float | None = None
    peak_mb: float | None = None
    seconds: float | None = None
    worker: str | None = None
    host: str | None = None


class Child:
    """One run: a process in its own session, so that Ctrl-C reaches only the parent, which then
    ends it.

    `job` is the input of the child, as JSON; `timeout` the time limit in seconds.
    """

    def __init__(self, job: dict, timeout: float | None = None, command=None):
        self.timeout, self.started, self.timed_out = timeout, time.monotonic(), False
        self.step: dict | None = None
        self.peak_mb: float | None = None
        # Unnamed files: nothing is left behind when the parent is killed.
        self.answer, self.printed, self.steps = (tempfile.TemporaryFile() for _ in range(3))
        passed = self.answer.fileno(), self.steps.fileno()
        options = ["--fd", passed[0], "--tell", passed[1], "--parent", os.getpid()]
        self.process = subprocess.Popen(
            [*(command or COMMAND), json.dumps(job), *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=subprocess.STDOUT,
            pass_fds=passed,
            start_new_session=True,
        )

    def heard(self) -> dict | None:
        """The last step reported by its solver."""
        with suppress(ValueError):
            self.step = json.loads(os.pread(self.steps.fileno(), STEP, 0))
        return self.step

    def finished(self) -> bool:
        if self.process.returncode is None:
            self._reap(os.WNOHANG)
        late = self.timeout and time.monotonic() - self.started > self.timeout
        if late and self.process.returncode is None:
            self.timed_out = True
            self.kill()
        return self.process.returncode is not None

    def _reap(self, flags):
        # wait4 instead of Popen.wait: it returns the peak memory of a run that can no longer report
        # it.
        try:
            pid, status, usage = os.wait4(self.process.pid, flags)
        except ChildProcessError:
            # Started by a process that ignores SIGCHLD: the kernel has reaped it, and its row has
            # the outcome.
            self.process.returncode = 0
            return
        if pid:
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.peak_mb = usage.ru_maxrss / 1024

    def kill(self):
        if self.process.returncode is None:
            # Back ends have their own sessions, and detect their parent's death only after
            # start-up.
            with suppress(lazy.psutil.NoSuchProcess):
                process = lazy.psutil.Process(self.process.pid)
                for one in (process, *process.children(recursive=True)):
                    with suppress(lazy.psutil.NoSuchProcess):
                        one.kill()
            self._reap(0)

    def ending(self) -> Ending:
        """The ending of a finished run."""
        answer = None
        with suppress(ValueError):
            self.answer.seek(0)
            answer = json.loads(self.answer.read())
        late = self.timeout if self.timed_out else None
        seconds = time.monotonic() - self.started
        return Ending(answer, None if answer else self._crash(), late, self.peak_mb, seconds)

    def _crash(self) -> str:
        code = self.process.returncode
        self.printed.seek(max(0, self.printed.seek(0, os.SEEK_END) - 4096))
        lines = self.printed.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
            text = f"the run's process was killed by signal {-code} ({name})"
            if code == -signal.SIGKILL:
                text += ", probably because memory ran out"
        else:
            text = f"the run's process ended with code {code} and no row"
        return f"{text}; its last output: {last[:200]}" if last else text


@dataclass(frozen=True)
class Way:
    """How each run is executed. timeout: seconds, unless the run has its own; command: the child's
    command line.
    """

    timeout: float | None = None
    command: list | None = None

    def child(self, run: Run, threads: int | None = None, key: str | None = None) -> Child:
        """Begin a run.

        Parameters
        ----------
        run : Run
        threads : int, optional
            Default number of threads of a run.
        key : str, optional
            The run's key as requested: it fails if its data differs here.
        """
        job = replace(run, timeout=None, threads=run.threads or threads).as_dict()
        return Child(job | ({"key": key} if key else {}), self.timeout or run.timeout, self.command)


class Local:
    """`jobs` local processes at a time, which share the cores; `rfx.distributed.pool` has the same
    interface on Dask workers.

    Not a local Dask cluster, which takes seconds to start and needs distributed: rfx's required
    dependencies are enough.

    take(todo): start as many runs as possible, removing them from the list. ended(): (run, result)
    of each run that has ended since, one by one, so that a row is written before the next is
    requested. at_work(): each running run, and the last step of its solver, None before any.
    close(): end everything at once; return the runs in progress.
    """

    def __init__(self, jobs: int, way: Way):
        self.jobs, self.way = jobs, way
        self.children: list[tuple[Run, Child]] = []

    def at_work(self) -> list[tuple[Run, dict | None]]:
        return [(run, child.heard()) for run, child in self.children]

    def take(self, todo: list[Run]) -> None:
        threads = max(1, env.threads() // self.jobs) if self.jobs > 1 else None
        while todo and len(self.children) < self.jobs:
            run = todo.pop(0)
            self.children.append((run, self.way.child(run, threads)))

    def ended(self) -> Iterator[tuple[Run, Result]]:
        for run, child in list(self.children):
            if child.finished():
                self.children.remove((run, child))
                yield run, result_of(run, child.ending())

    def close(self) -> list[Run]:
        for _, child in self.children:
            child.kill()
        runs, self.children = [run for run, _ in self.children], []
        return runs


# ---------------------------------------------------------------------- results


def result_of(run: Run, ending: Ending) -> Result:
    """The result of a run with this ending: the one it wrote, or one with the reason why there is
    none.

    For a run on a worker, params also has `host`, the name of its machine.
    """
    answer, host = ending.answer or {}, {} if ending.host is None else {"host": ending.host}
    params = (answer.get("params") or {}) | host
    status, message = answer.get("status", "failed"), answer.get("message", ending.crash)
    if ending.timeout is not None:
        status, message = "timeout", f"not finished within {ending.timeout:g} seconds"
    if status == "ok":
        columns = {name: answer[name] for name in COLUMNS if answer.get(name) is not None}
        asked, options = _asked(run)
        columns["params"] = options | {"seconds_process": ending.seconds} | params
        columns |= {"key": keys.key(run), "steps": answer.get("trace") or None}
        return Result(**(asked | columns))
    row = failure(run, status, message or "", ending.peak_mb, **params)
    if not host:
        return row
    # BLAS and processor are those of this machine, which did not run it
    message = f"worker {ending.worker} on {ending.host}: {row.message}"[:_LONGEST]
    return replace(row, blas=None, cpu=None, message=message)


def failure(
    run: Run, status: str, message: str, peak_mb: float | None = None, **params: Any
) -> Result:
    """The result of a run without an answer; params: entries in addition to those of the run."""
    columns, options = _asked(run)
    columns |= env.describe() | {"key": keys.key(run), "peak_rss_mb": peak_mb}
    columns |= {"status": status, "message": message[:_LONGEST], "params": options | params}
    return Result(**columns)


def _asked(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a run, and the entries of its params."""
    names = ("dataset", "split", "method", "seed", "threads")
    options = {
        name: value
        for name, value in run.options.items()
        if isinstance(value, _OPTION_COLUMNS.get(name, ()))
    }
    params = {name: value for name, value in run.options.items() if name not in options}
    return {name: getattr(run, name) for name in names} | options, params | run.told()
