"""Detect whether the first row of a table is a header, from the values below each of its cells."""

import re
from collections import Counter
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
    columns = [
        [row[place] for row in below if row[place] not in absent] for place in range(len(cells))
    ]
    evidence = [_evidence(cell, values, absent) for cell, values in zip(cells, columns)]
    counts = Counter(evidence)
    if counts["gone"] == len(cells):
        return Guess(False)
    if rows and not below:
        return Guess(False, True)
    if counts["seen"]:
        note = "its cells occur in other rows" if counts["unseen"] else ""
        return Guess(False, counts["over"] > 0, note)
    if any(map(is_value, cells)):
        return _with_numbers(cells, columns, below, counts)
    absent_names = [cell for cell, what in zip(cells, evidence) if what == "gone"]
    if counts["over"]:
        return Guess(True, any(absent_names))
    if absent_names and absent_names != [""] or evidence[0] != "gone" and absent_names:
        return Guess(False, True)  # an index column has no name, but comes first
    repeated = len(below) < len(rows)
    note = "its cells occur in no other row" if rows else ""
    return Guess(True, repeated and not counts["unseen"], note)


def _with_numbers(cells, columns, below, counts: Counter) -> Guess:
    """The guess for a first row that has numbers; columns: the values below each cell."""
    numbers = [cell for cell in cells if is_value(cell)]
    values = [column for cell, column in zip(cells, columns) if is_value(cell)]
    counted = len(numbers) > 1 and _counts_up(numbers)
    counted = counted and not any(_counts_up(list(filter(is_value, row))) for row in below)
    # the positions of columns without names, which pandas writes above decimals
    if counted and any(column and all("." in value for value in column) for column in values):
        note = "its numbers count up from 0 or 1 and have no decimals, unlike those below"
        return Guess(len(below) >= ENOUGH, len(below) < ENOUGH, note)
    words = counts["over"] + counts["unseen"]
    if not counts["near"] and words:
        note = "its cells occur in no other row, and its numbers are far from those below"
        return Guess(True, False, note)
    if not counts["near"]:
        plain = counts["far"] == len(cells) > 1 and all(map(is_number, numbers))
        return Guess(False, plain and _named(numbers))
    if counts["over"]:
        return Guess(False, True)
    if words:
        return Guess(False, counted, "" if counted else "its numbers are among those below")
    least = 3 if any("." in value for column in values for value in column) else 4
    return Guess(False, counted and len(numbers) >= least and len(below) >= ENOUGH)


def _evidence(cell: str, values: list[str], absent) -> str:
    """The evidence from a cell of the first row and the values below it: gone, over, seen, unseen,
    far, near, or nothing.
    """
    if cell in absent or not values:
        return "gone" if cell in absent else ""
    numbers = [value for value in values if is_value(value)]
    if not is_value(cell):
        different = set(values)
        if len(numbers) == len(values):
            return "over"
        repeat = len(values) >= 4 and 2 * len(different) <= len(values)
        return "seen" if cell in different else "unseen" if repeat else ""
    if 2 * len(numbers) <= len(values):
        return "unseen" if not numbers else "seen" if cell in values else ""
    plain = [float(value) for value in numbers if is_number(value)]
    if not is_number(cell):
        return "near" if len(plain) < len(numbers) else "unseen"
    if len(plain) < ENOUGH:
        return "near"
    low, high = min(plain), max(plain)
    return "near" if 2 * low - high <= float(cell) <= 2 * high - low else "far"


def _named(numbers) -> bool:
    """Whether numbers may be names: integers, or increasing in equal steps."""
    values = [float(cell) for cell in numbers]
    steps = {round(after - before, 9) for before, after in zip(values, values[1:])}
    return all(value == int(value) for value in values) or (len(steps) == 1 and min(steps) > 0)


def _counts_up(numbers) -> bool:
    """Whether numbers are 0, 1, 2, … or 1, 2, 3, …"""
    first = numbers[0] if numbers else ""
    return first in ("0", "1") and numbers == [
        str(number) for number in range(int(first), int(first) + len(numbers))
    ]
