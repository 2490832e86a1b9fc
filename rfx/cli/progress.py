"""Progress of a command: one line that is overwritten on a terminal, a line per minute with a
timestamp in a log, and nothing in quiet mode.
"""

import shutil
import sys
import threading
import time

import click

from rfx.errors import plain

TICK, MINUTE = 0.25, 60.0
# Seconds before the first line on a terminal; shorter commands need no progress.
PATIENCE = 1.0
# Below this finished fraction, the remaining time is not estimated.
LEAST = 0.02


def stamp() -> str:
    """The time of day as printed in a log."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def clock(seconds: float) -> str:
    """1:05 or 2:03:10."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Progress:
    """A context manager; `tell` receives the steps of a solver or a search, `count` the number of
    finished items.

    log: receives a line per minute if standard error is not used. A separate thread updates the
    time between steps.
    """

    def __init__(self, what: str, quiet: bool = False, log=None):
        self.what, self.log, self.quiet = what, log, quiet
        self.live = log is None and sys.stderr is not None and sys.stderr.isatty()
        self.start, self._words, self._shown = time.monotonic(), "", False
        self._share: float | None = None
        # seconds of training before this start, when resuming from a checkpoint
        self._earlier = 0.0
        self._end, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self._clear()

    def tell(self, entry: dict) -> None:
        """Report one step of training; rfx.fitting.problem describes its contents."""
        self._words, self._share = words(entry), share(entry)
        self._earlier = max(0.0, (entry.get("seconds") or 0.0) - (time.monotonic() - self.start))

    def count(self, done: int, total: int, words: str = "", more: float = 0.0) -> None:
        """Report the number of finished items; words: those in progress; more: results so far."""
        self._words = f"{done} of {total} done" + (f", {words}" if words else "")
        self._share, self._earlier = (done + more) / total if total else None, 0.0

    def runs(self, done: int, total: int, working) -> None:
        """Report the number of finished runs; working: for each run in progress, its name and the
        last step of its solver, or None.
        """
        names = [": ".join(filter(None, (name, words(step or {})))) for name, step in working]
        more = sum(share(step or {}) or 0.0 for _, step in working)
        self.count(done, total, "; ".join(names), more)

    def say(self, text) -> None:
        """Print a separate line on standard error."""
        with self._lock:
            self._clear()
            click.echo(text, err=True)

    def _tick(self):
        wait = TICK if self.live else MINUTE
        while not (self.quiet or self._end.wait(wait)):
            with self._lock:
                if not self.live:
                    line = f"{self.what}: {self.line()}"
                    self.log(line) if self.log else click.echo(f"{stamp()} {line}", err=True)
                elif time.monotonic() - self.start > PATIENCE:
                    width = shutil.get_terminal_size().columns - 1
                    text = plain(f"{self.what}: {self.line()}")[:width]
                    click.echo(f"\r\033[K{text}", err=True, nl=False)
                    self._shown = True

    def _clear(self):
        click.echo("\r\033[K" * self._shown, err=True, nl=False)
        self._shown = False

    def line(self) -> str:
        """Seconds since the start, the last step, and the remaining time if it is known."""
        elapsed = time.monotonic() - self.start
        parts = [clock(elapsed), *([self._words] if self._words else [])]
        if self._share is not None and self._share >= LEAST:
            parts.append(f"{clock((self._earlier + elapsed) * (1 / self._share - 1))} left")
        return ", ".join(parts)


def words(entry: dict) -> str:
    """A step in words."""
    several = entry.get("outputs", 1) > 1 and "output" in entry
    samples, seconds = entry.get("samples"), entry.get("seconds")
    parts = [
        f"part {entry['part'][0]} of {entry['part'][1]}" if "part" in entry else "",
        entry.get("doing", ""),
        _choice(entry) if "choosing" in entry else "",
        f"class {entry['output'] + 1} of {entry['outputs']}" if several else "",
        f"{samples:,} rows" if samples is not None else "",
        f"step {entry['iteration']}" if samples is None and "iteration" in entry else "",
        _quality(entry.get("loss"), entry.get("gap"), entry.get("objective")),
        f"error {entry['error']:.4g}" if entry.get("error") is not None else "",
        f"{samples / seconds:,.0f} rows a second" if samples is not None and seconds else "",
    ]
    return ", ".join(filter(None, parts))


def _choice(entry: dict) -> str:
    least = f", lowest error {entry['least']:.4g}" if "least" in entry else ""
    names = ", ".join(entry["choosing"])
    return f"choosing {names}: {entry['tried']} of {entry['of']} tried{least}"


def _quality(loss: float | None, gap: float | None, objective: float | None) -> str:
    if loss is not None:
        return f"loss {loss:.4g}"
    if gap is not None and objective:
        return f"relative gap {gap / abs(objective):.1e}"
    return "" if objective is None else f"objective {objective:.5g}"


def share(entry: dict) -> float | None:
    """The finished fraction of the work, if the step contains it."""
    if "part" in entry:
        # the model of all rows was trained first
        number, total = entry["part"]
        return number / (total + 1)
    if entry.get("outputs", 1) > 1 and "output" in entry:
        return entry["output"] / entry["outputs"]
    return entry.get("share")
