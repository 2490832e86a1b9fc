"""What a person says of how a table is read; nothing is imported here that takes time."""

from dataclasses import dataclass

# What is done with cells that are missing: the words of scikit-learn's SimpleImputer.
MISSING = ("refuse", "mean", "median", "most_frequent")


@dataclass(frozen=True)
class Reading:
    """How a table is read: the column of the targets and those left out, by name or number from 1, and what replaces missing cells.

    target: by default the last column. header: whether the first row of a CSV file has the names, None to tell by its cells.
    """

    target: str | None = None
    header: bool | None = None
    missing: str = "refuse"
    ignore: tuple[str, ...] = ()
