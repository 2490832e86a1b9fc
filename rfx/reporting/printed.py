"""The numbers that a paper prints, from the CSV files in its folder; our own numbers are stored
elsewhere.
"""

import csv
from functools import lru_cache
from importlib import resources


class Printed(float):
    """A printed number. `text` is its form in the paper, so that no digit is added or lost.

    decimals: the number of decimals to which it was rounded: those of the text, or more if trailing
    zeros are not written.
    """

    text: str
    decimals: int

    def __new__(cls, text: str, decimals: int = 0):
        number = super().__new__(cls, text)
        number.text = f"{int(text):,}" if text.isdigit() else text
        number.decimals = max(decimals, len(text.partition(".")[2]))
        return number


@lru_cache
def printed(package: str, table: str) -> dict[tuple[str, str, str, str], Printed]:
    """Printed numbers of one table, by (dataset, kernel, method, field); kernel and method are ""
    for a data set's size.

    They are in `printed.csv` of the paper's `package`, such as "rfx.papers.yen2014". Cells that are
    empty in the paper are missing.
    """
    return {
        (row["dataset"], row["kernel"], row["method"], row["field"]): Printed(row["value"])
        for row in _read(package, "printed")
        if row["table"] == table
    }


@lru_cache
def curves(package: str, name: str) -> list[dict]:
    """The points of a paper's curves, from NAME.csv of its package: numbers by column.

    dataset and method are text, and an empty field is None. The authors' plot data omit trailing
    zeros, so each number is assumed to have as many decimals as the longest of its data set and
    column.
    """
    rows = _read(package, name)
    longest: dict[tuple[str, str], int] = {}
    for row in rows:
        for column, text in row.items():
            key = row["dataset"], column
            longest[key] = max(longest.get(key, 0), len(text.partition(".")[2]))
    return [
        {
            column: text
            if column in ("dataset", "method")
            else Printed(text, longest[row["dataset"], column])
            if text
            else None
            for column, text in row.items()
        }
        for row in rows
    ]


def _read(package, name) -> list[dict[str, str]]:
    source = resources.files(package) / f"{name}.csv"
    return list(
        csv.DictReader(
            line
            for line in source.read_text(encoding="utf-8").splitlines()
            if not line.startswith("#")
        )
    )
