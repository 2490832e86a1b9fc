"""Whether the first row of a table is a header: told by what stands below each of its cells."""

import re
from collections.abc import Container
from dataclasses import dataclass

from rfx.numerals import is_number

# Numbers, also as people write them, and dates and times: what a column of values has, and a name
# seldom is.
_VALUE = re.compile(
    r"[+-]?[$€£¥]?\s?[+-]?[0-9][0-9.,'\u00a0\u202f ]*(?:[eE][+-]?[0-9]+)?\s?(?:%|[$€£¥])?"
    r"|[+-]?(?:inf|infinity)|[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}(?:["
    r" T].*)?|[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?",
    re.IGNORECASE,
)
# Rows below that are looked at, cells that are looked at in all, and rows from which on a range of
# numbers means something.
ROWS, CELLS, ENOUGH = 1000, 400_000, 5


@dataclass
class Guess:
    """header: whether the first row is one. doubt: neither is certain enough to go on.
    note: what a person should know of a guess.
    """

    header: bool
    doubt: bool = False
    note: str = ""


def is_value(cell: str) -> bool:
    """Whether a cell is a number, also as people write them, a date or a time."""
    return _VALUE.fullmatch(cell) is not None or is_number(cell)


def guess(cells: list[str], rows: list[list[str]], absent: Container[str]) -> Guess:
    """Whether `cells`, the first row of a table, are a header; rows: those below, each with as many
    cells.

    absent: the cells that mean that there is no value.
    """
    same = [row for row in rows if row == cells]
    below = [row for row in rows if row != cells]
    found: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        values = [row[place] for row in below if row[place] not in absent]
        found.setdefault(_evidence(cell, values, absent), []).append(place)
    over, seen, unseen, far, near = (
        len(found.get(name, ())) for name in ("over", "seen", "unseen", "far", "near")
    )
    # an index has no name, and stands first
    gone = [place for place in found.get("gone", ()) if place or cells[place]]
    numbers = [cell for cell in cells if is_value(cell)]
    if len(found.get("gone", ())) == len(cells):
        return Guess(False)
    if same and not below:
        return Guess(False, True)
    if numbers:
        return _with_numbers(numbers, below, over, seen, unseen, far, near, len(cells))
    if seen:
        return Guess(False, over > 0, "its cells occur in other rows" if unseen else "")
    if gone and not over:
        return Guess(False, True)
    if over:
        return Guess(True, bool([place for place in gone if cells[place]]))
    return Guess(True, bool(same) and not unseen, "its cells occur in no other row" if rows else "")


def _with_numbers(numbers, below, over, seen, unseen, far, near, width) -> Guess:
    """The guess for a first row that has numbers."""
    if seen:
        return Guess(False, over > 0)
    if not near and over + unseen:
        return Guess(
            True, False, "its cells occur in no other row, and its numbers are far from those below"
        )
    if not near:
        return Guess(
            False, far == width > 1 and all(is_number(cell) for cell in numbers) and _named(numbers)
        )
    if over:
        return Guess(False, True)
    counted = _counts_up(numbers) and not any(
        _counts_up([cell for cell in row if is_value(cell)]) for row in below
    )
    if unseen:
        return Guess(
            False,
            counted and len(numbers) > 1,
            "" if counted else "its numbers are among those below",
        )
    return Guess(False, counted and len(numbers) > 3 and len(below) >= ENOUGH)


def _evidence(cell, values, absent) -> str:
    """What a cell of the first row is beside the values below it: gone, over, seen, unseen,
    far, near, or nothing.
    """
    if cell in absent:
        return "gone"
    if not values:
        return ""
    numbers = [value for value in values if is_value(value)]
    if not is_value(cell):
        if len(numbers) == len(values):
            return "over"
        different = set(values)
        return (
            "seen"
            if cell in different
            else "unseen"
            if len(values) >= 4 and 2 * len(different) <= len(values)
            else ""
        )
    if not numbers:
        return "unseen"
    if 2 * len(numbers) <= len(values):
        return "seen" if cell in values else ""
    if not is_number(cell):
        return "near" if any(not is_number(value) for value in numbers) else "unseen"
    known = [float(value) for value in numbers if is_number(value)]
    if len(known) < ENOUGH:
        return "near"
    low, high = min(known), max(known)
    return "near" if 2 * low - high <= float(cell) <= 2 * high - low else "far"


def _named(numbers) -> bool:
    """Whether numbers may be names: whole ones, or such that rise by equal steps."""
    values = [float(cell) for cell in numbers]
    steps = [round(after - before, 9) for before, after in zip(values, values[1:])]
    return all(value == int(value) for value in values) or (len(set(steps)) == 1 and steps[0] > 0)


def _counts_up(numbers) -> bool:
    """Whether numbers are 0, 1, 2, … or 1, 2, 3, …"""
    first = numbers[0] if numbers else ""
    return first in ("0", "1") and numbers == [
        str(number) for number in range(int(first), int(first) + len(numbers))
    ]
