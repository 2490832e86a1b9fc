"""Handle Ctrl-C and SIGTERM alike, so that no partial files are left behind."""

import os
import signal
import threading
import time
from contextlib import contextmanager

# Seconds within which further signals are ignored: `timeout` sends two, and the second must not
# disturb the clean-up.
_TOGETHER = 1.0
# Seconds after which a signal that arrives inside LLVM is sent again.
_AGAIN = 0.02


@contextmanager
def terminate_as_interrupt():
    """Inside the block, SIGTERM, which cron and `timeout` send instead of Ctrl-C, raises
    KeyboardInterrupt.

    While LLVM compiles or loads a function, both signals wait: it calls back into Python, where the
    exception would be lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = -_TOGETHER

    def interrupt(number, frame):
        nonlocal last
        if _in_llvm(frame):
            threading.Timer(_AGAIN, os.kill, (os.getpid(), number)).start()
            return
        now = time.monotonic()
        if now - last >= _TOGETHER:
            last = now
            raise KeyboardInterrupt

    numbers = [signal.SIGTERM]
    # not where Ctrl-C is ignored, as in a background job of a shell
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_llvm(frame) -> bool:
    """Whether the frame belongs to a call into llvmlite."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite"):
            return True
        frame = frame.f_back
    return False
