"""Waiting for what another process does."""

import time


def wait_for(condition, what, seconds=60):
    """Until condition() holds; an AssertionError that says `what` after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def pid_in(path, seconds=60) -> int:
    """The number that a process writes to a file when it begins."""
    wait_for(lambda: path.exists() and path.read_text(), "the child never started", seconds)
    return int(path.read_text())
