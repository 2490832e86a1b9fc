"""SIGTERM handled as Ctrl-C is, so that nothing half-written is left behind."""

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import Any

# Seconds after which an interrupt is made once more; those that are to come.
_SOON = 0.02
_coming: list[Any] = []


@contextmanager
def terminate_as_interrupt():
    """cron and `timeout` send SIGTERM where a person types Ctrl-C; within the block it raises
    KeyboardInterrupt, once.

    After either, until its end, objects that were being made, such as those of numba's compiler, go
    in silence, and an interrupt that one of them swallowed at its end is made once more. One that
    comes while LLVM works waits until it has ended.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is _terminate
    ):
        yield
        return
    hook, before = sys.unraisablehook, {signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        while _coming:
            _coming.pop().cancel()
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number, frame):
    # `timeout` sends it twice, and the second must not disturb the clearing up
    signal.signal(number, signal.SIG_IGN)
    _interrupt(number, frame)


def _interrupt(number, frame):
    if _in_llvm(frame):
        _once_more()
        return
    sys.unraisablehook = _swallowed
    raise KeyboardInterrupt


def _in_llvm(frame) -> bool:
    """Whether LLVM called what runs there: it does not know of exceptions, and would go on
    with an answer that it did not get.
    """
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite.binding"):
            return True
        frame = frame.f_back
    return False


def _swallowed(unraisable):
    if unraisable.exc_type is KeyboardInterrupt:
        _once_more()


def _once_more():
    signal.signal(signal.SIGTERM, _terminate)
    _coming.append(threading.Timer(_SOON, os.kill, (os.getpid(), signal.SIGTERM)))
    _coming[-1].daemon = True
    _coming[-1].start()
