"""How the cells that stand beside a printed number came out."""

from collections.abc import Callable

from rfx.errors import RfxError

KINDS = {
    "equal": "reproduced: equal to the printed number by the noise over seeds",
    "better": "better than the printed number by more than that noise",
    "worse": "worse by more than that noise, or a count that differs",
    "beside": "beside the printed number, not judged: a single run has no known noise, and seconds are of another machine",
    "none": "no data of ours",
}


def count(cells: list[dict]) -> dict[str, int]:
    """The number of cells of each of KINDS; cells that have no printed number beside them are not counted."""
    found = dict.fromkeys(KINDS, 0)
    for cell in cells:
        if "verdict" in cell and cell.get("paper") is not None:
            found[kind(cell)] += 1
    return found


def kind(cell: dict) -> str:
    """The one of KINDS that a cell is."""
    if cell.get("ours") is None:
        return "none"
    return {None: "beside", "differs": "worse"}.get(cell["verdict"], cell["verdict"])


def added(tallies) -> dict[str, int]:
    """The sums of several."""
    found = dict.fromkeys(KINDS, 0)
    for one in tallies:
        for name, number in one.items():
            found[name] += number
    return found


def of_nothing(builder: Callable) -> dict[str, int]:
    """The tally of a table of which there are no rows: its printed numbers, all without data."""
    try:
        return count(builder([], None).cells)
    except RfxError:
        return count(builder.unrun()) if hasattr(builder, "unrun") else count([])
