"""`python -m rfx` is `rfx`."""

from rfx.cli import main

if __name__ == "__main__":
    main()
