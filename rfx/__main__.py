"""The program `rfx`, also available as `python -m rfx`."""

import os
import sys
from contextlib import suppress

_INTERRUPTED = 130


def main():
    """Run the command line; Ctrl-C shows no traceback, even during imports."""
    try:
        from rfx.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("rfx: interrupted\n")
    except SystemExit as stop:
        if stop.code != _INTERRUPTED:
            raise
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed
            stream.flush()
    # Not sys.exit: other threads may still compute, and the interpreter's shutdown waits for them,
    # or aborts.
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
