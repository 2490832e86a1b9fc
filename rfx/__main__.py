"""The program `rfx`, which is also `python -m rfx`."""

import sys


def main():
    """Run the command line; Ctrl-C shows no traceback while it is still being imported either."""
    try:
        from rfx.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("rfx: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
