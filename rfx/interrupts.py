"""SIGTERM handled as Ctrl-C is, so that nothing half-written is left behind."""

import signal
import sys
import threading
from contextlib import contextmanager


@contextmanager
def terminate_as_interrupt():
    """cron and `timeout` send SIGTERM where a person types Ctrl-C; within the block it raises KeyboardInterrupt, once.

    After either, until its end, objects that were being made, such as those of numba's compiler, go in silence.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is _terminate:
        yield
        return
    hook, before = sys.unraisablehook, {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number, frame):
    # `timeout` sends it twice, and the second must not disturb the clearing up
    signal.signal(number, signal.SIG_IGN)
    _interrupt(number, frame)


def _interrupt(number, frame):
    sys.unraisablehook = lambda unraisable: None
    raise KeyboardInterrupt
