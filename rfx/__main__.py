"""The program `rfx`, also available as `python -m rfx`."""

import sys


def main():
    """Run the command line; Ctrl-C shows no traceback, even during imports."""
    try:
        from rfx.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("rfx: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
