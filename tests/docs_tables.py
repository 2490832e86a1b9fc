"""Puts the tables of the documents in anew, from results files: `make docs-tables`, after the targets `reproduce-…` that make those.

In a document, between a line `<!-- rfx table … -->` and the next `<!-- end -->`, stands what that command prints as Markdown, but for
the data sets of which nothing was run. A table whose results file is not there is left as it is.
"""

import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MADE = re.compile(r"(<!-- (rfx table [^\n]*?) -->\n).*?(<!-- end -->)", re.S)


def printed(command: str) -> str | None:
    """The Markdown of an rfx command, which names its results file; None where there is no such file."""
    from click.testing import CliRunner

    from rfx.cli import cli

    words = shlex.split(command)[1:]
    if not Path(words[words.index("--results") + 1]).exists():
        return None
    done = CliRunner().invoke(cli, [*words, "--format", "markdown"], standalone_mode=False, catch_exceptions=False)
    return done.stdout


def run_only(markdown: str) -> str:
    """Without the sections, a title and its grid, in which every cell of ours is a dash."""
    parts = markdown.strip().split("\n\n")
    kept = []
    for part in parts:
        lines = part.splitlines()
        cells = [cell.strip() for line in lines[2:] for cell in line.strip("|").split("|")[2:]] if lines[0].startswith("| kernel |") else []
        if cells and all(cell == "-" or cell.startswith("- /") for cell in cells):
            kept.pop()
        else:
            kept.append(part)
    return "\n\n".join(kept)


def renewed(text: str, make=printed) -> str:
    """A document's text with every table of which there are results made anew."""

    def one(match):
        found = make(match[2])
        return match[0] if found is None else f"{match[1]}\n{run_only(found)}\n\n{match[3]}"

    return MADE.sub(one, text)


def main() -> int:
    for path in sorted((ROOT / "docs").glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: made anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
