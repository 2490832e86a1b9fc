"""Handle SIGTERM like Ctrl-C, so that no partial files are left behind."""

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import Any

# Seconds after which an interrupt is raised once more; those still to come.
_SOON = 0.02
_coming: list[Any] = []


@contextmanager
def terminate_as_interrupt():
    """cron and `timeout` send SIGTERM instead of Ctrl-C; inside the block it raises
    KeyboardInterrupt, once.

    After either, until the end of the block, errors of incomplete objects, such as those of numba's
    compiler, are silent, and an interrupt swallowed by one of them is raised once more. An
    interrupt during LLVM code waits until that has ended.
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
    # `timeout` sends it twice, and the second must not disturb the clean-up
    signal.signal(number, signal.SIG_IGN)
    _interrupt(number, frame)


def _interrupt(number, frame):
    if _in_llvm(frame):
        _once_more()
        return
    sys.unraisablehook = _swallowed
    raise KeyboardInterrupt


def _in_llvm(frame) -> bool:
    """Whether the current code was called by LLVM, which does not support exceptions and would
    continue with an undefined result.
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
