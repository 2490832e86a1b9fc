"""Puts the tables of the documents in anew, from results files: `make docs-tables`, after the targets `reproduce-…` that make those.

In a document, between a line `<!-- rfx table … -->` and the next `<!-- end -->`, stands what that command prints as Markdown, but for
the data sets of which nothing was run. The rows of a results file in results/ are kept in the file of its name in docs/rows/, of
several of one run the newest that ended well, and the tables are made of these: of a plan that was run in part the other rows stay.
A table of which there are no rows is left as it is.
"""

import csv
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "rows"
MADE = re.compile(r"(<!-- (rfx table [^\n]*?) -->\n).*?(<!-- end -->)", re.S)


def keep(found: Path, kept: Path) -> None:
    """Add the rows of the results file `found` to those of `kept`: a row a run, the newest of those that ended well if one did."""
    rows, columns = {}, {}
    for path in (kept, found):
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file)
                columns |= dict.fromkeys(reader.fieldnames)
                for row in reader:
                    rank = lambda row: (row["status"] == "ok", row["created"])
                    rows[row["key"]] = max(rows.get(row["key"], row), row, key=rank)
    kept.parent.mkdir(exist_ok=True)
    with kept.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())


def printed(command: str) -> str | None:
    """The Markdown of an rfx command on the rows kept of the results file that it names; None where there are none."""
    from click.testing import CliRunner

    from rfx.cli import cli

    words = shlex.split(command)[1:]
    where = words.index("--results") + 1
    kept = ROWS / Path(words[where]).name
    if not kept.exists():
        return None
    words[where] = str(kept)
    done = CliRunner().invoke(cli, [*words, "--format", "markdown"], standalone_mode=False, catch_exceptions=False)
    return done.stdout


def run_only(markdown: str) -> str:
    """Without the sections, a title and its grid, in which every cell of ours is a dash; empty if that are all that there are."""
    parts = markdown.strip().split("\n\n") if markdown.strip() else []
    kept, full, empty = [], 0, 0
    for part in parts:
        lines = part.splitlines()
        cells = [cell.strip() for line in lines[2:] for cell in line.strip("|").split("|")[2:]] if lines[0].startswith("| kernel |") else []
        if cells and all(cell == "-" or cell.startswith("- /") for cell in cells):
            kept.pop()
            empty += 1
        else:
            kept.append(part)
            full += bool(cells)
    return "\n\n".join(kept) if full or not empty else ""


def renewed(text: str, make=printed) -> str:
    """A document's text with every table of which there are results made anew."""

    def one(match):
        found = run_only(make(match[2]) or "")
        return f"{match[1]}\n{found}\n\n{match[3]}" if found else match[0]

    return MADE.sub(one, text)


def main() -> int:
    for found in sorted((ROOT / "results").glob("*.csv")):
        if any(f"--results results/{found.name}" in path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")):
            keep(found, ROWS / found.name)
    for path in sorted((ROOT / "docs").glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: made anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
