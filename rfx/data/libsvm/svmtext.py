"""The LIBSVM text format: parse bytes into arrays on all threads, and describe the problems of a
line.

The compiled parser (`svmparse`) only decides whether a line is valid; `line_problems` describes in
Python what is wrong with an invalid one. The rules are thus written twice, for speed and for
messages, and the tests check that both agree.
"""

import re

import numpy as np

from rfx import env
from rfx.data.libsvm.svmparse import count_marks, parse_lines
from rfx.numerals import DIGITS, NUMBER, is_not_finite, is_number
from rfx.parallel import for_ranges

_CHUNK = 1 << 20  # bytes; smaller files do not benefit from a second thread
# Quantifiers of characters are possessive: they never backtrack, so a word of any length is matched
# in one pass. Those of groups are not: CPython before 3.11.5 keeps the match of a failed group
# (cpython#106052).
_NUMBER = re.compile(NUMBER.encode())
_LABELS = re.compile(rf"{NUMBER}(?:,{NUMBER})+")
_UNFINISHED = re.compile(rf"[+-]?+(?:{DIGITS}[eE][+-]?+|\.?+)")  # the beginning of a number
_INDEX = re.compile(r"[+-]?+[0-9]++")
_TOKEN = re.compile(rb"[^ \t\r]+")
_LONGEST = 40  # characters of a word that are quoted completely


def _stretch(raw, text, at, stop, base, labels, ends, indices, values):
    """Parse text[at:stop] like `parse_lines`, with undecided numbers resolved by float().

    Returns (rows, entries, bad, wide, plain).
    """
    rows, entries, bad, wide, asked, plain = parse_lines(
        text, at, stop, base, labels, ends, indices, values
    )
    for offset, slot in asked.tolist():
        found = _NUMBER.match(raw, offset)
        assert found is not None
        number = float(found[0])
        if number in (np.inf, -np.inf):
            line = raw.rfind(b"\n", 0, offset) + 1
            bad = line if bad < 0 else min(bad, line)
        elif slot < 0:
            labels[-1 - slot] = number
        else:
            values[slot] = number
    return rows, entries, int(bad), wide, plain


def _cuts(raw, parts):
    """Offsets from 0 to len(raw) that split raw into at most `parts` blocks of whole lines."""
    cuts = {0: None}
    for part in range(1, parts):
        cuts[raw.find(b"\n", len(raw) * part // parts) + 1 or len(raw)] = None
    return sorted(cuts | {len(raw): None}) if len(raw) else [0, 0]


class Spelling:
    """plain: whether every label of the parsed texts is certainly spelled as rfx prints its number
    (1, not 1.0).
    """

    plain = True


def parse(raw, zero_based: bool, spelling: Spelling | None = None, index_type=np.int32):
    """Parse `raw` (bytes or mmap, not empty) into (labels, indptr, indices, values, bad), on all
    threads.

    bad is the offset of the first bad line, or -1; with a bad line the arrays are None. The indices
    have `index_type`, or int64 if one of them, or the number of entries, needs it. spelling:
    records how the labels are spelled.
    """
    text = np.frombuffer(raw, np.uint8)
    cuts = _cuts(raw, max(1, min(env.threads(), len(raw) // _CHUNK)))
    stretches = len(cuts) - 1
    counts = for_ranges(
        lambda i, _: count_marks(text, cuts[i], cuts[i + 1]), stretches, parts=stretches
    )
    # Every line except an unfinished last one has a newline, every entry a colon: enough space for
    # all, usually exact.
    row_at = np.cumsum([0] + [newlines + 1 for newlines, _ in counts])
    entry_at = np.cumsum([0] + [colons for _, colons in counts])
    if entry_at[-1] > np.iinfo(index_type).max:
        return parse(raw, zero_based, spelling, np.int64)
    labels, ends = np.empty(row_at[-1]), np.empty(row_at[-1], np.int64)
    indices, values = np.empty(entry_at[-1], index_type), np.empty(entry_at[-1])

    def work(i, _):
        rows, entries = slice(row_at[i], row_at[i + 1]), slice(entry_at[i], entry_at[i + 1])
        arrays = labels[rows], ends[rows], indices[entries], values[entries]
        return _stretch(raw, text, cuts[i], cuts[i + 1], 0 if zero_based else 1, *arrays)

    results = for_ranges(work, stretches, parts=stretches)
    for _, _, bad, wide, plain in results:
        if spelling is not None:
            spelling.plain = spelling.plain and bool(plain)
        if bad >= 0:
            return None, None, None, None, bad
        if wide:
            return parse(raw, zero_based, spelling, np.int64)
    n_rows = [result[0] for result in results]
    n_entries = [result[1] for result in results]
    before = np.cumsum([0] + n_entries)
    indptr = np.zeros(sum(n_rows) + 1, index_type)
    pieces = [ends[at : at + rows] + offset for at, rows, offset in zip(row_at, n_rows, before)]
    np.concatenate(pieces, out=indptr[1:], casting="same_kind")
    indices, values = _packed(indices, entry_at, n_entries), _packed(values, entry_at, n_entries)
    return _packed(labels, row_at, n_rows), indptr, indices, values, -1


def _packed(array, starts, lengths):
    """The used parts of array, contiguous; no copy if only the end is unused."""
    if all(
        start + length == after for start, length, after in zip(starts, lengths[:-1], starts[1:-1])
    ):
        return array[: starts[len(lengths) - 1] + lengths[-1]]
    return np.concatenate([array[start : start + length] for start, length in zip(starts, lengths)])


def bad_lines(raw, zero_based: bool):
    """Yield the (start, end) offsets of every bad line of `raw`, in order."""
    text = np.frombuffer(raw, np.uint8)
    base = 0 if zero_based else 1
    at = 0
    while at < len(raw):
        # One block at a time, so that a file full of bad lines is not counted from each of them to
        # its end.
        stop = raw.find(b"\n", at + _CHUNK) + 1 or len(raw)
        newlines, colons = count_marks(text, at, stop)
        arrays = (
            np.empty(newlines + 1),
            np.empty(newlines + 1, np.int64),
            np.empty(colons, np.int64),
            np.empty(colons),
        )
        while at < stop:
            _, _, bad, _, _ = _stretch(raw, text, at, stop, base, *arrays)
            if bad < 0:
                break
            end = raw.find(b"\n", bad)
            end = len(raw) if end < 0 else end
            yield bad, end
            at = end + 1
        at = stop


def line_problems(line: bytes, zero_based: bool, cut_off: bool = False):
    """Yield (column, message) for each problem of a line (without its newline); columns count from
    1.

    `cut_off`: the file ends here without a newline, so an incomplete last word was truncated.
    """
    if b"\0" in line.partition(b"#")[0]:
        yield line.index(b"\0") + 1, "a NUL byte: this is a binary file, not LIBSVM text"
        return
    last = -1
    for position, word in enumerate(_TOKEN.finditer(line.partition(b"#")[0])):
        text = word[0].decode("utf-8", "surrogateescape")
        if position == 0:
            offset, message = 0, _label_problem(text)
        else:
            offset, message, last = _entry_problem(text, last, zero_based)
        if message and cut_off and word.end() == len(line) and _unfinished(text, position, offset):
            yield (
                word.start() + 1,
                f"the file ends in the middle of {_shown(text)}; it is truncated, so download it"
                " again",
            )
        elif message:
            yield word.start() + 1 + offset, message


def _unfinished(text, position, offset):
    """Whether more bytes could make a bad word valid; `offset` is the position of its problem."""
    if position > 0 and offset == 0:
        return text.isascii() and text.isdigit()
    return _UNFINISHED.fullmatch(text[offset:]) is not None


def _shown(text):
    """A word as quoted in a message: if it is longer than any number, its beginning and its
    length.
    """
    shown = text[:_LONGEST].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return repr(shown) if len(text) <= _LONGEST else f"{shown!r}... ({len(text):,} characters)"


def _number_problem(text):
    """The problem of a number, or None."""
    if is_not_finite(text):
        return "is not a finite number"
    if not is_number(text):
        return "is not a number"
    return "is too large for a double" if float(text) in (np.inf, -np.inf) else None


def _label_problem(text):
    problem = _number_problem(text)
    if not problem:
        return None
    if ":" in text:
        return f"the label is missing: the line starts with {_shown(text)}"
    if _LABELS.fullmatch(text):
        return f"the label {_shown(text)} names several classes; rfx supports one label per line"
    return f"the label {_shown(text)} {problem}"


def _entry_problem(text, last, zero_based):
    """(offset in the word, problem or None, the last index so far) of one index:value word."""
    name, colon, value = text.partition(":")
    if name == "qid":
        return 0, f"{_shown(text)}: query ids (ranking data) are not supported", last
    if not colon:
        return 0, f"{_shown(text)} is not index:value", last
    if not _INDEX.fullmatch(name):
        return (
            0,
            (
                f"the index {_shown(name)} is not a whole number"
                if name
                else f"{_shown(text)} has no index"
            ),
            last,
        )
    if name[0] == "+" or (name[0] == "-" and not name.strip("-0")):
        return 0, f"the index {_shown(name)} has a sign", last
    if name[0] == "-":
        return 0, f"the index {name if len(name) <= _LONGEST else _shown(name)} is negative", last
    if len(name) > 18:
        return 0, f"the index {_shown(name)} is too large", last
    index = int(name)
    if index == 0 and not zero_based:
        return (
            0,
            (
                "the index is 0 but indices start at 1 (rows with indices from 0 are trained on and"
                " read with --zero-based)"
            ),
            last,
        )
    if index == last:
        return 0, f"the index {index} is repeated", last
    if index < last:
        return 0, f"the index {index} comes after {last}, but indices must ascend", last
    offset = len(name) + 1
    if not value:
        return offset, f"the index {index} has no value", index
    problem = _number_problem(value)
    return offset, f"the value {_shown(value)} {problem}" if problem else None, index
