"""The command `rfx`, outside the package `rfx`: it runs, and says why, where another
distribution's `rfx` is in the way.
"""

import os
import re
import sys

DISTRIBUTION = "rfx-kernels"
_HERE = os.path.dirname(os.path.abspath(__file__))
_REPAIR = f"`pip install --force-reinstall --no-deps {DISTRIBUTION}`"


def main() -> None:
    """Run the command line; where its package is mixed with another one or hidden by it,
    exit with one sentence.
    """
    try:
        import rfx

        if (
            not _is_ours(getattr(rfx, "__file__", None))
            or getattr(rfx, "__distribution__", None) != DISTRIBUTION
        ):
            raise ImportError(f"rfx is not the package of {DISTRIBUTION}")
        if "--version" in sys.argv[1:2] and (told := conflict()):
            sys.stderr.write(f"rfx: {told}\n")
        from rfx.__main__ import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("rfx: interrupted\n")
        sys.exit(130)
    except Exception:
        told = conflict()
        if told is None:
            raise
        sys.stderr.write(f"rfx: {told}\n")
        sys.exit(1)


def conflict() -> str | None:
    """One sentence about another package `rfx` in this environment, or about a damaged one;
    None where there is neither.
    """
    # heavier than all else that a command needs to start
    from importlib import metadata, util

    others = [name for name in map(_owner, metadata.distributions()) if name is not None]
    if others:
        names = " and ".join(dict.fromkeys(others))
        return (
            f"{names} has files in the same package rfx as {DISTRIBUTION}, so that neither can be"
            f" relied on; `pip uninstall {names.replace(' and ', ' ')}`, then {_REPAIR}"
        )
    try:
        found = getattr(util.find_spec("rfx"), "origin", None)
    except ValueError:  # what was imported as rfx does not say where it is from
        found = getattr(sys.modules["rfx"], "__file__", None)
    if found is None:
        return f"the package rfx in {_HERE} is damaged; {_REPAIR} mends it"
    if not _is_ours(found):
        return (
            f"{found} is imported in the place of the package rfx of {DISTRIBUTION}; rename it, or"
            " remove its distribution"
        )
    return None


def _is_ours(path: str | None) -> bool:
    return path is not None and os.path.realpath(path) == os.path.realpath(
        os.path.join(_HERE, "rfx", "__init__.py")
    )


def _owner(distribution) -> str | None:
    """The name of a distribution other than this one that installed files into a package
    `rfx`; else None.
    """
    # as text: what metadata.packages_distributions makes of the same files takes ten times as long
    record = distribution.read_text("RECORD") or distribution.read_text("installed-files.txt") or ""
    if not re.search(r"^(?:\.\./)?rfx/", record, re.MULTILINE):
        return None
    name = distribution.metadata["Name"] or "a distribution without a name"
    return None if re.sub(r"[-_.]+", "-", name).lower() == DISTRIBUTION else name


if __name__ == "__main__":
    main()
