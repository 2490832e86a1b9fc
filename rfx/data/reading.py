"""How files of rows are read: what a person says of it, and what training learns of it;
nothing is imported here that takes time.
"""

import csv
import io
import shlex
from dataclasses import dataclass, fields

from rfx import numerals
from rfx.errors import UsageError

# What is done with cells that are missing: the words of scikit-learn's SimpleImputer.
MISSING = ("refuse", "mean", "median", "most_frequent")


@dataclass(frozen=True)
class Reading:
    """What a person says of how a file is read.

    Attributes
    ----------
    target : str, optional
        The column of a table with the targets, by name or by number from 1; by default the last.
    header : bool, optional
        Whether the first row of a CSV file has the columns' names; None: its cells and those below
        tell.
    missing : str
        What replaces missing cells, one of MISSING.
    ignore : tuple of str
        The columns of a table that are left out, by name or by number from 1.
    categorical : tuple of str
        The columns that are read as categories although they are numbers.
    dates : tuple of str
        The columns of dates, which become numbers.
    encoding : str, optional
        The encoding of a text; None: UTF-8, or what a byte order mark says.
    zero_based : bool, optional
        Whether the indices of LIBSVM text start at 0; None: as the model has it, else at 1.
    groups, time : str, optional
        The column of a table that says which rows stay together, or which are later, where some are
        held out; it is no input.
    """

    target: str | None = None
    header: bool | None = None
    missing: str = "refuse"
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    encoding: str | None = None
    zero_based: bool | None = None
    groups: str | None = None
    time: str | None = None

    def given(self) -> dict[str, object]:
        """What is not as it is by default, by name; JSON can hold it."""
        found = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
        }


@dataclass(frozen=True)
class FileFormat:
    """How the file of the training rows is written. It is part of the model, so that other files
    are read alike.

    Attributes
    ----------
    kind : str
        libsvm, csv, tsv, npy, npz or parquet.
    zero_based : bool, optional
        Whether the indices of LIBSVM text start at 0; None for other kinds.
    header : bool, optional
        Whether the first row of a CSV text has the columns' names; None for other kinds.
    separator : str, optional
        What separates the cells of a CSV text.
    encoding : str, optional
        The encoding of a text, where it is not UTF-8.
    """

    kind: str
    zero_based: bool | None = None
    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None

    @classmethod
    def from_dict(cls, saved: dict) -> "FileFormat":
        """Of a model file's header; TypeError or ValueError where it makes no sense."""
        found = cls(**saved)
        words, flags = (found.separator, found.encoding), (found.zero_based, found.header)
        good = isinstance(found.kind, str) and all(
            word is None or isinstance(word, str) for word in words
        )
        if not (good and all(flag is None or isinstance(flag, bool) for flag in flags)):
            raise ValueError("its file format is inconsistent")
        return found


def index_base(asked: Reading, known: FileFormat | None, name: str) -> bool:
    """Whether the indices of the LIBSVM text `name` start at 0: as the model's file has it, else as
    it is asked for.

    Raises UsageError where the two differ.
    """
    if known is None or known.zero_based is None:
        return bool(asked.zero_based)
    if asked.zero_based is not None and asked.zero_based != known.zero_based:
        raise UsageError(
            "--zero-based contradicts the model, whose training rows have indices from 1; omit it,"
            f" or write {name} with indices from 1"
        )
    return known.zero_based


def check_header(asked: Reading, known: FileFormat | None, name: str) -> None:
    """Refuse, with a UsageError, a --header or --no-header that contradicts the model."""
    if (
        known is None
        or known.header is None
        or asked.header is None
        or asked.header == known.header
    ):
        return
    flag, has = ("--header", "none") if asked.header else ("--no-header", "one")
    raise UsageError(
        f"{flag} contradicts the model, whose training file has {has}; omit it, and write {name}"
        " like the training file"
    )


def listed(text: str | None) -> list[str]:
    """The columns that an option's value names, separated by commas; a name that has a
    comma stands in double quotes.
    """
    rows = list(csv.reader([text or ""], skipinitialspace=True))
    return [word.strip() for word in (rows[0] if rows else ()) if word.strip()]


def written(names) -> str:
    """The text that names these columns; `listed` is the inverse."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def typed(option: str, names) -> str:
    """An option that names these columns, as one types it in a shell."""
    return f"--{option} {shlex.quote(written(names))}"


def training_share(split: str | None) -> float | None:
    """The share of the rows to train on where a split is one, such as 0.8; None where it is a
    word or not given.

    Raises UsageError for a number that is no share.
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
