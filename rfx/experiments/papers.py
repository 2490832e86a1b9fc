"""The numbers that the papers print, from `papers/*.csv`: facts, kept apart from everything that is ours."""

import csv
from functools import lru_cache
from importlib import resources


class Printed(float):
    """A printed number; `text` is how the paper writes it, so that no digit is added or lost."""

    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text if "." in text else f"{int(text):,}"
        return number


@lru_cache
def printed(paper: str, table: str) -> dict[tuple[str, str, str, str], Printed]:
    """Printed numbers of one table, by (dataset, kernel, method, field); kernel and method are "" for a data set's size.

    `paper` is a file of `papers/`, such as "yen2014"; cells that the paper leaves empty are missing.
    """
    source = resources.files("rfx.experiments") / "papers" / f"{paper}.csv"
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {
        (row["dataset"], row["kernel"], row["method"], row["field"]): Printed(row["value"])
        for row in csv.DictReader(lines)
        if row["table"] == table
    }
