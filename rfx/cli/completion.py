"""Column names for shell completion, from the data file on the command line.

Only the head of the file is read, without importing numpy or pandas.
"""

import csv
import io
import os
import shlex
from pathlib import Path

from click.shell_completion import split_arg_string

from rfx import files, lazy
from rfx.data import archives, encodings
from rfx.data.reading import listed
from rfx.data.tabular import delimited
from rfx.errors import RfxError

_MOST = 8 << 20  # maximum bytes of a file's header


def last_value(words, flag: str) -> str | None:
    """The value of the last --flag among the words of a line, or None."""
    found = None
    for place, word in enumerate(words):
        if word == flag:
            # bash passes the = between them as a separate word
            after = [one for one in words[place + 1 : place + 3] if one != "="]
            found = after[0] if after else None
        elif word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found


def one_column(ctx, param, incomplete: str) -> list[str]:
    """The columns of the file of --data that begin with the typed text."""
    return [_typed(name) for name in _columns() if name.startswith(incomplete)]


def more_columns(ctx, param, incomplete: str) -> list[str]:
    """The typed text, a comma-separated list of columns, with its last column completed by those
    not yet listed.
    """
    before, comma, last = incomplete.rpartition(",")
    if incomplete.count('"') % 2:  # a quoted name may contain a comma
        before, comma, last = incomplete.rpartition('"')
        before = before.rstrip().removesuffix(",")
    there = listed(before)
    return [
        _typed(_joined([*there, name]))
        for name in _columns()
        if name.startswith(last.lstrip()) and name not in there
    ]


def _joined(names) -> str:
    """A list of columns in option syntax; `rfx.data.reading.listed` is the inverse."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def _typed(value: str) -> str:
    """A value in the syntax of the shell: zsh and fish quote by themselves."""
    bash = os.environ.get("_RFX_COMPLETE", "").startswith("bash")
    return shlex.quote(value) if bash else value


def _columns() -> list[str]:
    """The columns of the file on the line, given by --data or as its first file; empty if the file
    is missing or unreadable.
    """
    # of the whole line: --data may follow the completed word
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[2:]
    path = last_value(words, "--data") or next(filter(os.path.isfile, words), None)
    if path is None:
        return []
    header = False if "--no-header" in words else True if "--header" in words else None
    try:
        return columns(os.path.expanduser(path), header, last_value(words, "--encoding"))
    except (*archives.DAMAGE, RfxError, csv.Error, ImportError):
        return []


def columns(path, header: bool | None = None, encoding: str | None = None) -> list[str]:
    """The column names of a CSV, TSV or Parquet file, from its head; column numbers for a file
    without names, and nothing for other files.

    Raises OSError, RfxError or one of archives.DAMAGE if it can't be read.
    """
    with files.open_regular(path) as handle:
        if handle.read(4) == b"PAR1":
            names = lazy.pyarrow.parquet.read_schema(path).names
            return [name for name in names if not name.startswith("__index_level_")]
    tabs = Path(archives.plain_name(path)).suffix.lower() in (".tsv", ".tab")
    raw, size = b"", delimited.HEAD
    with archives.open_plain(path) as handle:
        while size <= _MOST:
            more = handle.read(size - len(raw))
            raw += more
            text = encodings.head(raw, encoding)
            if not delimited.looks_like(text):
                break
            found = delimited.titles(text, not more, header, "\t" if tabs else None)
            if found is not None or not more:
                return found or []
            size *= 4
    return []
