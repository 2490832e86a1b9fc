"""The outcomes of the cells with a printed number."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rfx.reporting.cells import Cell

KINDS = {
    "equal": "reproduced: equivalent to the printed number within the margin",
    "better": "better than the printed number",
    "worse": "worse, or a count that differs",
    "undecided": "neither equivalent nor different by the seeds that were run",
    "beside": (
        "beside the printed number, not compared: a single run, or runs that are all the same, have"
        " no known noise, and seconds are of another machine"
    ),
    "none": "no data of ours",
}


def count(cells: Iterable[Cell]) -> dict[str, int]:
    """The number of cells of each of KINDS."""
    return added([Counter(cell.outcome for cell in cells)])


def added(tallies: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of several tallies."""
    tallies = list(tallies)
    return {kind: sum(tally.get(kind, 0) for tally in tallies) for kind in KINDS}


def of_nothing(builder: Callable | None) -> dict[str, int]:
    """The tally of a table without rows: its printed numbers, all without data."""
    return count(getattr(builder, "unrun", list)())
