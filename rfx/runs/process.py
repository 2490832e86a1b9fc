"""A run in a separate process: start it, receive its steps, end it in time, and return its ending.

Nothing slow is imported: Dask workers use this module too, and their memory is not available to
runs.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rfx import lazy

COMMAND = (sys.executable, "-m", "rfx.runs.child")
NAP = 0.02  # seconds between two checks of a run


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

    `job` is the input of the child, as JSON; `timeout` the time limit in seconds; `tells`: whether
    its solver's steps are reported.
    """

    def __init__(self, job: dict, timeout: float | None = None, command=None, tells=False):
        self.timeout = timeout
        self.step, self._steps, self._rest = None, None, b""
        self.peak_mb: float | None = None
        self.timed_out = False
        # Unnamed files: nothing is left behind when the parent is killed.
        self.answer, self.printed = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        words, passed = (
            [json.dumps(job), "--fd", str(self.answer.fileno()), "--parent", str(os.getpid())],
            [self.answer.fileno()],
        )
        if tells:
            self._steps, end = os.pipe()
            os.set_blocking(self._steps, False)
            words, passed = [*words, "--tell", str(end)], [*passed, end]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*(command or COMMAND), *words],
            stdin=subprocess.DEVNULL,
            stdout=self.printed,
            stderr=subprocess.STDOUT,
            pass_fds=passed,
            start_new_session=True,
        )
        if tells:
            os.close(end)

    def heard(self) -> dict | None:
        """The last step reported by its solver."""
        if self._steps is None:
            return None
        told = b""
        with suppress(BlockingIOError):
            while piece := os.read(self._steps, 1 << 16):
                told += piece
        *lines, self._rest = (self._rest + told).split(b"\n")
        for line in reversed(lines):
            with suppress(ValueError):
                self.step = json.loads(line)
                break
        return self.step

    def __del__(self):
        if self._steps is not None:
            os.close(self._steps)

    def finished(self) -> bool:
        if (
            self.timeout
            and time.monotonic() - self.started > self.timeout
            and self.process.returncode is None
        ):
            self.timed_out = True
            self.kill()
        elif self.process.returncode is None:
            self.reap(os.WNOHANG)
        return self.process.returncode is not None

    def reap(self, flags):
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
            self.reap(0)

    def ending(self) -> Ending:
        """The ending of a finished run."""
        try:
            self.answer.seek(0)
            answer = json.loads(self.answer.read())
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            answer = None
        late = self.timeout if self.timed_out else None
        seconds = time.monotonic() - self.started
        return Ending(answer, None if answer else self.crash(), late, self.peak_mb, seconds)

    def crash(self) -> str:
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
