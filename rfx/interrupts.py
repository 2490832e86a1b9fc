"""SIGTERM handled as Ctrl-C is, so that nothing half-written is left behind."""

import signal
import threading
from contextlib import contextmanager


@contextmanager
def terminate_as_interrupt():
    """cron and `timeout` send SIGTERM where a person types Ctrl-C; within the block it raises KeyboardInterrupt, once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number, frame):
    # `timeout` sends it twice, and the second must not disturb the clearing up
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
