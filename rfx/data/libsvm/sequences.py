"""Read text of labelled sequences, `label letters` per line, as arrays, on behalf of the LIBSVM
reader.

A letter becomes its character code, so that separately read files agree; lower case counts as upper
case. All sequences have the same length. Blank lines and comments after # are skipped, as in LIBSVM
text.
"""

import numpy as np

from rfx import numerals
from rfx.errors import DataError

_HEAD = 1 << 16
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def recognised(raw) -> bool:
    """Whether the first row of these bytes is a number and a word of letters, and nothing else."""
    for line in bytes(raw[:_HEAD]).split(b"\n"):
        words = line.partition(b"#")[0].split()
        if words:
            return len(words) == 2 and words[1].isalpha() and _number(words[0]) is not None
    return False


def parse(raw, name: str, places: int | None = None, letters: bytes | None = None):
    """X (n, places) float64 of the letters' codes and y (n,) float64.

    places: the required length; by default that of the first sequence. letters: the allowed
    upper-case letters; by default A to Z. Raises DataError with file, line and column.
    """
    labels, rows = [], []
    allowed = np.zeros(256, bool)
    allowed[list(letters or _LETTERS)] = True
    for number, line in enumerate(bytes(raw).split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue

        def refuse(column, message, number=number):
            raise DataError(f"{name}, line {number}, column {column}: {message}")

        label = _number(words[0])
        if label is None:
            refuse(line.index(words[0]) + 1, f"the label {_text(words[0])} is not a finite number")
        if len(words) != 2:
            refuse(
                len(line.rstrip()),
                f"a row needs a label and one sequence of letters, but this one has {len(words)}"
                " words",
            )
        start = line.index(words[1], line.index(words[0]) + len(words[0])) + 1
        sequence = np.frombuffer(words[1].upper(), np.uint8)
        bad = np.flatnonzero(~allowed[sequence])
        if len(bad):
            known = f"; the letters are {', '.join(map(chr, letters))}" if letters else ""
            refuse(
                start + bad[0],
                f"{_text(words[1][bad[0] : bad[0] + 1])} is not a known letter{known}",
            )
        places = places or len(sequence)
        if len(sequence) != places:
            refuse(
                start,
                f"the sequence has {len(sequence)} letters, but {places} are expected in every row",
            )
        labels.append(label)
        rows.append(sequence)
    return np.array(rows, dtype=np.float64), np.array(labels)


def letters(X) -> bytes | None:
    """The letters of rows of codes; None if X is not an array of letter codes."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return None
    values = np.unique(X)
    return (
        bytes(values.astype(np.uint8))
        if len(values) <= 26 and np.isin(values, list(_LETTERS)).all()
        else None
    )


def _number(word):
    try:
        value = numerals.real(word.decode())
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _text(word) -> str:
    return repr(word[:20].decode("ascii", "replace"))
