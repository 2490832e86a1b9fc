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
    return {
        (row["dataset"], row["kernel"], row["method"], row["field"]): Printed(row["value"]) for row in _read(paper) if row["table"] == table
    }


@lru_cache
def curves(name: str) -> list[dict]:
    """The points of a paper's curves, from the file `name` of `papers/`, such as "wu2016_fig3": numbers by column.

    dataset and method are text, an empty field is None.
    """
    return [
        {column: text if column in ("dataset", "method") else float(text) if text else None for column, text in row.items()}
        for row in _read(name)
    ]


def _read(name) -> list[dict[str, str]]:
    source = resources.files("rfx.experiments") / "papers" / f"{name}.csv"
    return list(csv.DictReader(line for line in source.read_text(encoding="utf-8").splitlines() if not line.startswith("#")))
