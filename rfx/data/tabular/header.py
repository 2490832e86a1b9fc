"""Detect whether the first row of a table is a header, from the values below each of its cells."""

import re
from collections.abc import Container
from dataclasses import dataclass

from rfx.numerals import is_number

# Numbers, dates and times in common formats: frequent in column values, rare in names.
_VALUE = re.compile(
    r"[+-]?[$€£¥]?\s?[+-]?[0-9][0-9.,'\u00a0\u202f ]*(?:[eE][+-]?[0-9]+)?\s?(?:%|[$€£¥])?"
    r"|[+-]?(?:inf|infinity)|[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}(?:["
    r" T].*)?|[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?",
    re.IGNORECASE,
)
# Rows below to inspect, total cells to inspect, and the number of rows from which a range of
# numbers is meaningful.
ROWS, CELLS, ENOUGH = 1000, 400_000, 5


@dataclass
class Guess:
    """header: whether the first row is one. doubt: neither is certain. note: a message about a
    guess.
    """

    header: bool
    doubt: bool = False
    note: str = ""


def is_value(cell: str) -> bool:
    """Whether a cell is a number in a common format, a date or a time."""
    return _VALUE.fullmatch(cell) is not None or is_number(cell)


def guess(cells: list[str], rows: list[list[str]], absent: Container[str]) -> Guess:
    """Whether `cells`, the first row of a table, is a header; rows: those below, each with as many
    cells.

    absent: the cells that mean a missing value.
    """
    below = [row for row in rows if row != cells]
    evidence = [
        _evidence(cell, [row[place] for row in below if row[place] not in absent], absent)
        for place, cell in enumerate(cells)
    ]
    if all(what == "gone" for what in evidence):
        return Guess(False)
    if rows and not below:
        return Guess(False, True)
    places = [place for place, cell in enumerate(cells) if is_value(cell)]
    if places:
        columns = [[row[place] for row in below if row[place] not in absent] for place in places]
        return _with_numbers([cells[place] for place in places], columns, below, evidence)
    note = "its cells occur in no other row" if rows else ""
    return _without_numbers(cells, evidence, len(below) < len(rows), note)


def _without_numbers(cells, evidence, repeated: bool, note: str) -> Guess:
    """The guess for a first row without numbers. repeated: whether it occurs again below; note: for
    a header detected only by this.
    """
    over, seen, unseen = (evidence.count(what) for what in ("over", "seen", "unseen"))
    # an index column has no name and comes first
    gone = [
        cell
        for place, (cell, what) in enumerate(zip(cells, evidence))
        if what == "gone" and (place or cell)
    ]
    if seen:
        return Guess(False, over > 0, "its cells occur in other rows" if unseen else "")
    if gone and not over:
        return Guess(False, True)
    if over:
        return Guess(True, any(gone))
    return Guess(True, repeated and not unseen, note)


def _with_numbers(numbers, columns, below, evidence) -> Guess:
    """The guess for a first row that has numbers; columns: the values below each of them."""
    over, seen, unseen, far, near = (
        evidence.count(what) for what in ("over", "seen", "unseen", "far", "near")
    )
    if seen:
        return Guess(False, over > 0)
    counted = _counts_up(numbers) and not any(
        _counts_up([cell for cell in row if is_value(cell)]) for row in below
    )
    # the positions of columns without names, which pandas writes above decimals
    if counted and len(numbers) > 1 and any(map(_are_decimals, columns)):
        note = "its numbers count up from 0 or 1 and have no decimals, unlike those below"
        return Guess(len(below) >= ENOUGH, len(below) < ENOUGH, note)
    if not near and over + unseen:
        return Guess(
            True, False, "its cells occur in no other row, and its numbers are far from those below"
        )
    if not near:
        return Guess(
            False,
            far == len(evidence) > 1
            and all(is_number(cell) for cell in numbers)
            and _named(numbers),
        )
    if over:
        return Guess(False, True)
    if unseen:
        return Guess(
            False,
            counted and len(numbers) > 1,
            "" if counted else "its numbers are among those below",
        )
    least = 3 if any("." in value for values in columns for value in values) else 4
    return Guess(False, counted and len(numbers) >= least and len(below) >= ENOUGH)


def _evidence(cell, values, absent) -> str:
    """The evidence from a cell of the first row and the values below it: gone, over, seen, unseen,
    far, near, or nothing.
    """
    if cell in absent:
        return "gone"
    if not values:
        return ""
    numbers = [value for value in values if is_value(value)]
    if is_value(cell):
        return _evidence_of_value(cell, values, numbers)
    if len(numbers) == len(values):
        return "over"
    different = set(values)
    if cell in different:
        return "seen"
    return "unseen" if len(values) >= 4 and 2 * len(different) <= len(values) else ""


def _evidence_of_value(cell, values, numbers) -> str:
    """`_evidence` of a cell that is a number, a date or a time; numbers: the values that are
    too.
    """
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


def _are_decimals(values) -> bool:
    """Whether all values of a column have a decimal point."""
    return bool(values) and all("." in value for value in values)


def _named(numbers) -> bool:
    """Whether numbers may be names: integers, or increasing in equal steps."""
    values = [float(cell) for cell in numbers]
    steps = [round(after - before, 9) for before, after in zip(values, values[1:])]
    return all(value == int(value) for value in values) or (len(set(steps)) == 1 and steps[0] > 0)


def _counts_up(numbers) -> bool:
    """Whether numbers are 0, 1, 2, … or 1, 2, 3, …"""
    first = numbers[0] if numbers else ""
    return first in ("0", "1") and numbers == [
        str(number) for number in range(int(first), int(first) + len(numbers))
    ]
