"""Wait for other processes."""

import time


def wait_for(condition, what, seconds=60):
    """Wait until condition() holds; AssertionError with `what` after this many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def pid_in(path, seconds=60) -> int:
    """The number that a process writes to a file at its start."""
    wait_for(lambda: path.exists() and path.read_text(), "the child never started", seconds)
    return int(path.read_text())
