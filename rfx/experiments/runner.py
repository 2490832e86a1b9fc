"""The runner: takes a plan's missing runs one by one, each in a child process, and appends a row for each.

A row is on the disk before the next run starts, so that nothing finished is lost however the runner ends; the next
call takes up what has no row yet.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rfx import env, interrupts
from rfx.experiments import baseline, keys, results, traces
from rfx.experiments.child import NO_DATA
from rfx.experiments.plan import Plan, describe

CHILD = (sys.executable, "-m", "rfx.experiments.child")
# Options with a column of their own, and what that column may hold.
_OPTION_COLUMNS = {"kernel": str, "solver": str, "lam": (int, float), "n_features": int}


@dataclass
class Summary:
    """What became of a plan: `rows` are the newest rows of its runs, `ran` of them made now, `total` wanted."""

    plan: str
    results: str
    total: int
    ran: int = 0
    rows: list[dict] = field(default_factory=list)

    def count(self, status) -> int:
        return sum(row["status"] == status for row in self.rows)

    @property
    def not_converged(self) -> int:
        return sum(row["status"] == "ok" and row.get("converged") is False for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0 when every run of the plan has a row that is ok and converged, else 3."""
        return 0 if self.count("ok") == self.total and not self.not_converged else 3

    def as_dict(self) -> dict:
        counts = {status: self.count(status) for status in results.STATUSES}
        return {
            "plan": self.plan, "results": self.results, "total": self.total, "ran": self.ran, **counts,
            "not_converged": self.not_converged, "exit_code": self.exit_code, "rows": self.rows,
        }  # fmt: skip


def missing(plan: Plan, rows: list[dict], retry_failed: bool = False, traced=()) -> list[dict]:
    """The runs of `plan` that are to be made, given the rows there are, and the keys of the runs that are traced.

    A row that is ok is never made again, unless a trace of it is asked for and not there. One that was interrupted, has no
    status, or for which the data could not be had, always is; any other failure or timeout only with `retry_failed`, for it
    would most likely fail in the same way.
    """
    found = keys.rows_of(plan.runs, rows)

    def settled(run, row):
        if row["status"] == "ok" and run.get("trace") and keys.of_today(row) and row["key"] not in traced:
            return False
        again = row["status"] in (None, "interrupted") or row["params"].get("error") == NO_DATA or retry_failed
        return row["status"] == "ok" or not again

    return [run for run in plan.runs if keys.key(run) not in found or not settled(run, found[keys.key(run)])]


def run(
    plan: Plan, path, jobs=1, timeout=None, retry_failed=False, report=lambda text: None, command=CHILD, trace=None, progress=None
) -> Summary:
    """Make the missing runs of `plan`, `jobs` at a time, and append their rows to the results file `path`.

    `timeout` (seconds, for each run) goes before the plan's own. `report` gets one line a run. `command` is the child's command
    line, to which the spec is added. `trace` is the file for the traces of the runs that ask for one; by default it is beside the
    results. `progress(done, total, runs)` is told as runs begin, go on and end; runs: (words, the last step that its solver told, see
    rfx.methods.watch, or None) for each run at work. Raises LockedError when
    another runner holds `path`, KeyboardInterrupt after Ctrl-C or SIGTERM, when the runs at work have been ended and have rows
    that say so.
    """
    with results.exclusive(path), interrupts.terminate_as_interrupt():
        rows = results.read(path) if Path(path).exists() else []
        trace = trace or traces.beside(path)
        asked = any(run.get("trace") for run in plan.runs)
        if asked:
            traces.check(trace)
        todo = missing(plan, rows, retry_failed, traces.read(trace) if asked else ())
        report(f"{plan.name}: {len(plan.runs)} runs, {len(plan.runs) - len(todo)} have a row in {path}, {len(todo)} to do")
        _Pool(path, trace, jobs, timeout, report, command, progress).work(todo)
        rows = list(keys.rows_of(plan.runs, results.read(path)).values()) if Path(path).exists() else []
        return Summary(plan.name, str(path), len(plan.runs), len(todo), rows)


class _Pool:
    """Up to `jobs` children at a time; the parent alone writes rows."""

    def __init__(self, path, trace, jobs, timeout, report, command, progress=None):
        self.path, self.trace, self.jobs, self.timeout, self.report, self.command = path, trace, jobs, timeout, report, list(command)
        self.progress = progress
        self.children = []
        self.without = {}  # data set that can't be had -> why; asked for once a call, for a download is tried for long
        self.done = self.total = 0

    def work(self, todo):
        self.total = len(todo)
        todo = list(todo)
        try:
            while todo or self.children:
                while todo and len(self.children) < self.jobs:
                    spec = todo.pop(0)
                    if spec["dataset"] in self.without:
                        row = failure(spec, "failed", self.without[spec["dataset"]])
                        row["params"]["error"] = NO_DATA
                        self.write(spec, row)
                        continue
                    self.children.append(_Child(spec, self.command, self.jobs, self.timeout, self.progress is not None))
                    self.tell()
                finished = [child for child in self.children if child.finished()]
                if any([child.heard() for child in self.children]):
                    self.tell()
                for child in finished:
                    self.children.remove(child)
                    self.write(child.spec, child.row())
                if not finished:
                    time.sleep(0.02)
        except KeyboardInterrupt:
            for child in list(self.children):
                self.children.remove(child)
                if child.finished():
                    self.write(child.spec, child.row())
                else:
                    child.kill()
                    self.write(child.spec, failure(child.spec, "interrupted", "interrupted while it ran"))
            raise
        finally:
            for child in self.children:
                child.kill()

    def tell(self):
        if self.progress is not None:
            self.progress(self.done, self.total, [(describe(child.spec), child.step) for child in self.children])

    def write(self, spec, row):
        steps = row.pop("trace", None)
        if steps:
            # Before the row: a run that has one is not made again.
            traces.append(self.trace, row["key"], steps)
        results.append(self.path, row)
        if row["params"].get("error") == NO_DATA:
            self.without[spec["dataset"]] = row["message"]
        self.done += 1
        self.tell()
        self.report(f"[{self.done}/{self.total}] {describe(spec)}: {_in_words(row)}")


class _Child:
    """One run: a process in a session of its own, so that Ctrl-C reaches the parent alone, which then ends it."""

    def __init__(self, spec, command, jobs, timeout, tells=False):
        self.spec = spec
        self.step, self._steps, self._rest = None, None, b""
        self.timeout = timeout or spec.get("timeout")
        self.status = self.peak_mb = None
        self.timed_out = False
        # Files without names: nothing is left behind when the parent is killed.
        self.answer, self.printed = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        job = {name: value for name, value in spec.items() if name != "timeout"}
        if jobs > 1 and not job.get("threads"):
            job["threads"] = max(1, env.threads() // jobs)
        words, passed = [json.dumps(job), "--fd", str(self.answer.fileno()), "--parent", str(os.getpid())], [self.answer.fileno()]
        if tells:
            self._steps, end = os.pipe()
            os.set_blocking(self._steps, False)
            words, passed = [*words, "--tell", str(end)], [*passed, end]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*command, *words], stdin=subprocess.DEVNULL, stdout=self.printed, stderr=subprocess.STDOUT,
            pass_fds=passed, start_new_session=True,
        )  # fmt: skip
        if tells:
            os.close(end)

    def heard(self) -> bool:
        """Whether its solver has told a step since this was asked last; `step` is the latest."""
        if self._steps is None:
            return False
        told = b""
        with suppress(BlockingIOError):
            while piece := os.read(self._steps, 1 << 16):
                told += piece
        *lines, self._rest = (self._rest + told).split(b"\n")
        for line in reversed(lines):
            with suppress(ValueError):
                self.step = json.loads(line)
                return True
        return False

    def __del__(self):
        if self._steps is not None:
            os.close(self._steps)

    def finished(self) -> bool:
        if self.timeout and time.monotonic() - self.started > self.timeout and self.process.returncode is None:
            self.timed_out = True
            self.kill()
        elif self.process.returncode is None:
            self.reap(os.WNOHANG)
        return self.process.returncode is not None

    def reap(self, flags):
        # wait4 instead of Popen.wait: it tells the largest memory of a run that can't tell it itself any more.
        try:
            pid, status, usage = os.wait4(self.process.pid, flags)
        except ChildProcessError:
            # Started by something that ignores SIGCHLD: the kernel has reaped it, and its row says how it went.
            self.process.returncode = 0
            return
        if pid:
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.peak_mb = usage.ru_maxrss / 1024

    def kill(self):
        if self.process.returncode is None:
            # Back ends have sessions of their own, and learn of their parent's death only once they are up.
            below = _descendants(self.process.pid)
            for pid in (self.process.pid, *below):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.reap(0)

    def row(self) -> dict:
        """The row that the child wrote, or one that says why there is none."""
        try:
            self.answer.seek(0)
            answer = json.loads(self.answer.read())
        except ValueError:
            answer = None
        if self.timed_out:
            return failure(self.spec, "timeout", f"not done within {self.timeout:g} seconds", self.peak_mb)
        if not isinstance(answer, dict):
            return failure(self.spec, "failed", self.crash(), self.peak_mb)
        if answer.get("status") != "ok":
            row = failure(self.spec, answer.get("status", "failed"), answer.get("message") or "", self.peak_mb)
            row["params"] |= answer.get("params") or {}
            return row
        known = {name: value for name, value in answer.items() if name in results.COLUMNS}
        steps = answer.pop("trace", None)
        more = {name: value for name, value in answer.items() if name not in results.COLUMNS}
        known["params"] = _params(self.spec) | (answer.get("params") or {}) | more
        row = _from_spec(self.spec) | known | {"key": keys.key(self.spec)}
        return row | {"trace": steps} if steps else row

    def crash(self) -> str:
        code = self.process.returncode
        self.printed.seek(max(0, self.printed.seek(0, os.SEEK_END) - 4096))
        lines = self.printed.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
            text = f"the run's process was killed by signal {-code} ({name})"
            if code == -signal.SIGKILL:
                text += ", as the kernel does when memory runs out"
        else:
            text = f"the run's process ended with code {code} and no row"
        return f"{text}; it printed last: {last[:200]}" if last else text


def _descendants(pid) -> list[int]:
    """Processes below `pid`, by Linux's /proc; empty elsewhere."""
    below = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in brackets, may hold anything; the parent is the second field after it.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        children = below.get(todo.pop(), [])
        found += children
        todo += children
    return found


def failure(spec: dict, status: str, message: str, peak_mb: float | None = None) -> dict:
    """The row of a run that gave no result."""
    row = _from_spec(spec) | {"key": keys.key(spec), "status": status, "message": message[:2000]}
    return row | {"params": _params(spec), "peak_rss_mb": peak_mb} | env.describe()


def _from_spec(spec) -> dict:
    options = spec["options"]
    row = {name: spec.get(name) for name in ("dataset", "split", "method", "seed", "threads")}
    return row | {name: options[name] for name in options if _has_column(name, options[name])}


def _has_column(name, value) -> bool:
    # lam = "validation" is a wish; the column takes the number that came of it.
    return name in _OPTION_COLUMNS and isinstance(value, _OPTION_COLUMNS[name])


def _params(spec) -> dict:
    params = {name: value for name, value in spec["options"].items() if not _has_column(name, value)}
    return params | {name: spec[name] for name in ("label", "test") if spec.get(name)}


def _in_words(row) -> str:
    if row["status"] != "ok":
        return f"{row['status']}: {row['message']}"
    words = []
    if row.get("score") is not None:
        words.append(f"{row.get('metric') or 'score'} {row['score']:.4g}")
    elif "train_score" in row["params"]:
        words.append(f"{'rmse' if row.get('task') == 'regression' else 'accuracy'} {row['params']['train_score']:.4g} on the training rows")
    if row.get("model_size") is not None:
        words.append(f"size {row['model_size']}")
    if results.seconds_train(row) is not None:
        words.append(f"{results.seconds_train(row):.3g} s")
    if row.get("peak_rss_mb") is not None:
        words.append(f"{row['peak_rss_mb']:.0f} MB")
    if row.get("converged") is False:
        words.append("did not converge")
    if baseline.no_better(row):
        words.append("no better than a constant")
    return ", ".join(words) or "ok"
