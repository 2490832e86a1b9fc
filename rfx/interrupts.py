"""Handle SIGTERM like Ctrl-C, so that no partial files are left behind."""

import signal
import threading
import time
from contextlib import contextmanager

# Seconds within which further signals are ignored: `timeout` sends two, and the second must not
# disturb the clean-up.
_TOGETHER = 1.0


@contextmanager
def terminate_as_interrupt():
    """Inside the block, SIGTERM, which cron and `timeout` send instead of Ctrl-C, raises
    KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = -_TOGETHER

    def terminate(number, frame):
        nonlocal last
        now = time.monotonic()
        if now - last >= _TOGETHER:
            last = now
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
