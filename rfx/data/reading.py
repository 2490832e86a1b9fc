"""How files of rows are read: the user's options, and the format learnt in training; imports
nothing slow.
"""

import csv
import io
import shlex
from dataclasses import dataclass, fields

from rfx import numerals
from rfx.errors import UsageError
from rfx.options import option

# Treatments of missing cells, named as in scikit-learn's SimpleImputer.
MISSING = ("refuse", "mean", "median", "most_frequent")


@dataclass(frozen=True)
class Reading:
    """The user's options for reading a file; None means that it is inferred."""

    target: str | None = option(
        None,
        "Target column, by name or number. By default the last.",
        metavar="COLUMN",
    )
    header: bool | None = option(
        None, "Whether the first row of a CSV file has column names; inferred by default."
    )
    missing: str | None = option(
        None,
        "Fill missing cells by mean, median or most_frequent, or refuse them; later rows alike."
        " Missing words are a category of their own, except with most_frequent. By default the"
        " mean, and a line names the columns.",
        of=MISSING,
    )
    ignore: tuple[str, ...] = option(
        (), "Columns to ignore, such as names or row numbers.", metavar="COLUMN,…"
    )
    categorical: tuple[str, ...] = option(
        (), "Numeric columns with codes, read as categories.", metavar="COLUMN,…"
    )
    dates: tuple[str, ...] = option(
        (),
        "Columns to read as dates. By default those with nothing but dates. Each becomes four"
        " numbers: year, month, weekday and days since 1970.",
        metavar="COLUMN,…",
    )
    encoding: str | None = option(
        None,
        "Text encoding, such as cp1252. By default UTF-8, or that of the byte order mark.",
        metavar="NAME",
    )
    # of a run
    zero_based: bool | None = None
    groups: str | None = None
    time: str | None = None

    def given(self) -> dict[str, object]:
        """The options that differ from the defaults, by name; JSON serialisable."""
        return {
            one.name: list(value) if isinstance(value, tuple) else value
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default
        }


@dataclass(frozen=True)
class FileFormat:
    """The format of the training file. It is stored in the model, so that other files are read
    alike.

    Attributes
    ----------
    kind : str
        libsvm, csv, tsv, npy, npz or parquet.
    zero_based : bool, optional
        Whether the indices of LIBSVM text start at 0; None for other kinds.
    header : bool, optional
        Whether the first row of a CSV text has the column names; None for other kinds.
    separator : str, optional
        The separator of the cells of a CSV text.
    encoding : str, optional
        The encoding of a text, if it is not UTF-8.
    """

    kind: str
    zero_based: bool | None = None
    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None


def agreed(field: str, asked: Reading, trained: FileFormat | None, name: str) -> bool | None:
    """Whether the file `name` has a header, or indices from 0, by the field's name: as the model's
    training file, else as requested.

    Raises UsageError if the two differ.
    """
    wanted, flag = getattr(asked, field), field.replace("_", "-")
    learnt: bool | None = getattr(trained, field, None)
    if None not in (wanted, learnt) and wanted != learnt:
        raise UsageError(
            f"--{flag if wanted else f'no-{flag}'} contradicts the model's training file; omit it,"
            f" and write {name} like the training file"
        )
    return wanted if learnt is None else learnt


def written(names) -> str:
    """The option value that lists these columns; `rfx.options.Names` is the inverse."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def typed(flag: str, names) -> str:
    """A flag that lists these columns, in shell syntax."""
    return f"--{flag} {shlex.quote(written(names))}"


def training_share(split: str | None) -> float | None:
    """The fraction of rows to train on if a split is one, such as 0.8; None if it is a word or not
    given.

    Raises UsageError for a number that is not a fraction.
    """
    if split is None or not numerals.is_number(split):
        return None
    share = numerals.real(split)
    if not 0 < share < 1:
        raise UsageError(
            f"split {split[:40]} is not a fraction of the rows to train on; use a number between 0"
            " and 1, such as 0.8"
        )
    return share
