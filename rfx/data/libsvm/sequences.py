"""Read text of labelled sequences, `label letters` per line, as arrays, on behalf of the LIBSVM
reader.

A letter becomes its character code, so that separately read files agree; lower case counts as upper
case. All sequences have the same length. Blank lines and comments after # are skipped, as in LIBSVM
text.
"""

import numpy as np

from rfx.errors import DataError
from rfx.numerals import is_number

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
    upper-case letters; by default A to Z. Raises DataError with file and line.
    """
    labels, rows = [], []
    for number, line in enumerate(bytes(raw).split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if words:
            if problem := _problem(words, places, bytes(letters or _LETTERS)):
                raise DataError(f"{name}, line {number}: {problem}")
            labels.append(_number(words[0]))
            rows.append(np.frombuffer(words[1].upper(), np.uint8))
            places = places or len(rows[0])
    return np.array(rows, dtype=np.float64), np.array(labels)


def _problem(words: list[bytes], places: int | None, letters: bytes) -> str | None:
    """What is wrong with the words of a row, or None."""
    if _number(words[0]) is None:
        return f"the label {_text(words[0])} is not a finite number"
    if len(words) != 2:
        return (
            f"a row needs a label and one sequence of letters, but this one has {len(words)} words"
        )
    if odd := words[1].upper().translate(None, letters):
        listed = f"; the letters are {', '.join(map(chr, letters))}" if letters != _LETTERS else ""
        return f"{_text(odd[:1])} is not a known letter{listed}"
    if places not in (None, len(words[1])):
        return f"the sequence has {len(words[1])} letters, but {places} are expected in every row"
    return None


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


def _number(word: bytes) -> float | None:
    text = word.decode("utf-8", "replace")
    return float(text) if is_number(text) and np.isfinite(float(text)) else None


def _text(word) -> str:
    return repr(word[:20].decode("ascii", "replace"))
