"""Regenerate the tables of the documents, and the pictures of the claims, from results files: `make
docs-tables`, after the targets `reproduce-…` that write those.

The text between a line `<!-- rfx table … -->` and the next `<!-- end -->` is the Markdown output of
that command, without data sets that have no runs; with `; only TITLE` in the line, only its section
of this title. The rows of a results file in results/ are merged
into the file of the same name in docs/rows/, with their traces. For each run the newest row that
succeeded is kept. Rows that were not run again stay. The tables come from docs/rows/. A table that
has no rows stays unchanged.
"""

import re
import shlex
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from rfx import papers
from rfx.cli import cli
from rfx.records import results
from rfx.reporting import claim_figures, claim_tables, claims, figures
from rfx.reporting.report import page

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "rows"
MADE = re.compile(r"(<!-- (rfx table [^\n;]*?)(?:; only ([^\n]*?))? -->\n).*?(<!-- end -->)", re.S)


def keep(found: Path, kept: Path) -> None:
    """Append to `kept` the rows of the results file `found` that it lacks, and their traces to the
    file of its traces.

    Each run has one row: the newest that succeeded, or else the newest.
    """
    rank = lambda row: (row["status"] == "ok", row["created"])
    known = {row["key"]: rank(row) for row in results.read(kept)} if kept.exists() else {}
    new = [
        row
        for row in results.read(found)
        if row["key"] not in known or rank(row) > known[row["key"]]
    ]
    results.RESULTS.append(kept, new)
    steps = results.read_steps(results.trace_path(found))
    for key in dict.fromkeys(row["key"] for row in new):
        if key in steps:
            results.append_steps(results.trace_path(kept), key, steps[key])


@cache
def printed(command: str) -> str | None:
    """The Markdown of an rfx command on the kept rows of the results file that it names; None if
    there are none.
    """
    words = shlex.split(command)[1:]
    where = words.index("--results") + 1
    named = Path(words[where])
    kept = ROWS / named.name if named.suffix else ROWS
    if not kept.exists():
        return None
    words[where] = str(kept)
    done = CliRunner().invoke(
        cli, [*words, "--format", "markdown"], standalone_mode=False, catch_exceptions=False
    )
    return done.stdout


def run_only(markdown: str) -> str:
    """The text without the sections (a title and its grid) in which every cell of ours is a dash;
    empty if nothing is left.
    """
    parts = markdown.strip().split("\n\n") if markdown.strip() else []
    kept = []
    for part in parts:
        lines = part.splitlines()
        cells = (
            [cell.strip() for line in lines[2:] for cell in line.strip("|").split("|")[2:]]
            if lines[0].startswith("| kernel |")
            else []
        )
        if cells and all(cell == "-" or cell.startswith("- /") for cell in cells):
            kept.pop()
        else:
            kept.append(part)
    nothing = len(kept) < len(parts) and not any(part.startswith("| kernel |") for part in kept)
    return "" if nothing else "\n\n".join(kept)


def renewed(text: str, make=printed) -> str:
    """The text of a document with every table regenerated for which there are results for all that
    it shows.
    """

    def one(match):
        start, command, title, end = match.groups()
        found = run_only(make(command) or "")
        if title and found:
            found = found.partition(f"\n\n{title}\n\n")[2].partition("\n\n")[0]
        return f"{start}\n{found}\n\n{end}" if found else match[0]

    return MADE.sub(one, text)


@cache
def judged() -> list:
    """The papers with their claims judged by the kept rows."""
    return claims.judged(papers.folders(), lambda plan: page.find(ROWS, plan).rows)


def case_counts(own: list) -> str:
    """The numbers of cases that are a yes, a no and open; vacuous ones are not counted."""
    outcomes = Counter(case.outcome for one in own for case in one.cases)
    return ", ".join(str(outcomes[outcome]) for outcome in claims.OUTCOMES)


def counted(readme: str) -> str:
    """The README, or the page of results, with the numbers of each paper's claims by verdict, and
    of its cases by outcome.
    """
    for paper, own in judged():
        numbers = [*claim_tables.counts(own), case_counts(own)]
        counts = " | ".join(map(str, numbers))
        surname = paper.citation.split()[0]
        readme = re.sub(
            rf"^(\| {surname} .*? \| .*? \|) [^`\n]*$", rf"\1 {counts} |", readme, flags=re.M
        )
    return readme


def main() -> int:
    for found in sorted((ROOT / "results").glob("*.csv")):
        if found.stem in papers.plans():
            keep(found, ROWS / found.name)
    for paper, own in judged():
        picture = claim_figures.chart(paper, own)
        figures.draw_one(picture, ROOT / "docs" / "images" / f"claims-{paper.name}.svg")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        before = path.read_text(encoding="utf-8")
        after = counted(before) if path.stem in ("README", "results") else renewed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: regenerated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
