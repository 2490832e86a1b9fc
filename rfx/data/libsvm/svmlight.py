"""Read and write LIBSVM text: `label index:value ...`, one row per line, ascending indices from 1.

Reading is strict: a bad line is rejected with its number and column. `-` is standard input or
output. The format and its errors are defined in `parser`.
"""

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import scipy.sparse

from rfx import env, files
from rfx.data import encodings
from rfx.data.libsvm import parser, sequences
from rfx.data.pieces import Piece, pieces
from rfx.data.tabular import labelwords, schema
from rfx.data.tabular.labelwords import Spellings
from rfx.data.tabular.table import Words
from rfx.errors import DataError, NoRows, RfxWarning
from rfx.parallel import for_ranges

MOST_LABELS = 1_000_000  # maximum distinct labels that a scan counts
_PIECE = 4 << 20  # bytes of a file that a thread parses at a time
_VALUES_A_BLOCK = 1 << 16
_HEAD = 1 << 16  # bytes that identify the kind of a file
_KEPT = "\0"  # follows a label whose spelling is preserved


class OtherSpelling(Exception):
    """Labels are words, or are spelled differently from rfx's output, although neither was
    expected.
    """


class Labels:
    """How the labels of a text become targets: numbers, or the positions of words.

    Parameters
    ----------
    names : list of str, optional
        The words, ascending, as in a model; by default labels are numbers.
    task : str, optional
        As requested, to learn the labels. Those of a regression are numbers.
    settled : bool
        Whether nothing is to be learnt.
    optional : bool
        Whether labels are ignored, and may be missing.
    """

    def __init__(
        self,
        names: list[str] | None = None,
        task: str | None = None,
        settled: bool = True,
        optional: bool = False,
    ):
        self.names, self.task, self.optional = names, task, optional
        self.settled = settled or task == "regression"
        self.kind: int | None = None  # as in `parser`, if known
        if optional or (self.settled and names is None):
            self.kind = parser.ANY if optional else parser.NUMBERS

    def parse(self, piece: Piece, zero_based: bool, name: str) -> parser.Rows:
        """The rows of a piece; DataError for the first bad line. The first row of a text decides
        whether its labels are words.
        """
        return self.checked(self.scan(piece, zero_based, name), piece, zero_based, name)

    def checked(self, rows: parser.Rows, piece: Piece, zero_based: bool, name: str) -> parser.Rows:
        """The rows of a piece; DataError if one is bad."""
        if len(rows.bad):
            if b"\0" in piece.raw:
                raise DataError(f"{name} is a binary file, not LIBSVM text")
            offset = int(rows.bad[0])
            column, message = next(self.problems(piece, offset, zero_based))
            raise DataError(f"{name}, {piece.place(offset)}, column {column}: {message}")
        return rows

    def scan(self, piece: Piece, zero_based: bool, name: str) -> parser.Rows:
        """The rows of a piece, whether lines are bad or not."""
        if self.kind is None and (worded := labelwords.recognised(piece.raw)) is not None:
            self.kind = parser.WORDS if worded else parser.NUMBERS
        if self.kind == parser.WORDS:
            encodings.check(piece.raw, name, piece.line or 1)
        return parser.parse(piece.raw, zero_based, self.kind or parser.NUMBERS)

    def problems(self, piece: Piece, offset: int, zero_based: bool) -> Iterator[tuple[int, str]]:
        """(column, message) of each problem of the line at an offset."""
        line = piece.line_at(offset)
        cut_off = offset + len(line) == len(piece.raw)
        return parser.line_problems(line, zero_based, self.kind or parser.NUMBERS, cut_off)

    def count(self, spellings: Spellings, rows: parser.Rows) -> None:
        """Count the labels of some rows."""
        if rows.plain:
            spellings.add_numbers(rows.y)
        elif not spellings.full:
            words, worded = rows.words, self.kind == parser.WORDS
            spellings.add(words, [None if worded else float(word) for word in words.values])

    def learn(self, spellings: Spellings, name: str) -> None:
        """Learn names and task from the spellings of a text's labels."""
        self.names, self.task = spellings.decided(self.task, name)
        worded = None in spellings.numbers.values()
        self.settled, self.kind = True, parser.WORDS if worded else parser.NUMBERS

    def targets(self, rows: parser.Rows, name: str) -> np.ndarray:
        """y (n,) of some rows; OtherSpelling if the labels are yet to be learnt, and are not
        numbers as rfx prints them.
        """
        if self.optional:
            return np.zeros(len(rows.y))
        if self.names is not None:
            return schema.places(rows.words, self.names, name)
        if not (self.settled or rows.plain or all(map(labelwords.printed, rows.words.values))):
            raise OtherSpelling
        return rows.y

    def targets_of_all(self, parts: list[parser.Rows], name: str) -> np.ndarray:
        """y (n,) of all rows of a text, after learning the labels if needed."""
        if not self.settled and not all(rows.plain for rows in parts):
            many = self.kind == parser.WORDS or self.task not in (None, labelwords.KEPT)
            spellings = Spellings(None if many else labelwords.MOST)
            for rows in parts:
                self.count(spellings, rows)
            if not spellings.full:
                self.learn(spellings, name)
        self.settled = True
        return np.concatenate([self.targets(rows, name) for rows in parts])


def _is_text(path) -> bool:
    """Whether the file begins with valid rows, at least one with a feature. Only the first bytes
    are read.
    """
    with open(path, "rb") as handle:
        head = handle.read(_HEAD)
    if len(head) == _HEAD:
        head = head[: head.rfind(b" ") + 1]  # truncated within a word
    rows = parser.parse(head, True)
    return len(rows.values) > 0 and not len(rows.bad)


KIND = files.Kind("LIBSVM text", _is_text)


def read(path, n_features=None, zero_based=False, letters=None, labels=None, strict=True):
    """Read a LIBSVM file, or a file of sequences, recognised by its first row.

    Parameters
    ----------
    path : path, encodings.Text or "-"
        Plain or compressed (xz, bz2, gz, or zip of one file); `-` is standard input.
    n_features : int, optional
        Columns of X, by default the largest index in the file.
    zero_based : bool
        Indices start at 0 instead of 1.
    letters : bytes, optional
        The allowed letters of sequences.
    labels : Labels, optional
        The possible word labels, by default only numbers.
    strict : bool
        Whether to refuse columns from n_features on; otherwise they are left out, with one warning.

    Returns
    -------
    X : csr_matrix, (n, n_features)
        float64, with the entries of the file, explicit zeros too, and int32 indices (int64 if
        needed). An array of letter codes for sequences (see `sequences`).
    y : array, (n,)

    Raises
    ------
    DataError
        One sentence with file, line and column, for anything that is not a strict LIBSVM file.
    """
    labels = Labels() if labels is None else labels
    with path if isinstance(path, encodings.Text) else encodings.Text(path, whole=True) as text:
        stream = pieces(text.read, text.name, _PIECE)
        first = next(stream, None)
        if first is None:
            raise NoRows(f"{text.name} is empty")
        if sequences.recognised(first.raw):
            raw = b"".join([first.raw, *(piece.raw for piece in stream)])
            return sequences.parse(raw, text.name, n_features, letters)
        parts, group = [], [first]
        while group:
            scan = lambda i, _: labels.scan(group[i], zero_based, text.name)
            for piece, rows in zip(group, for_ranges(scan, len(group), parts=len(group))):
                labels.checked(rows, piece, zero_based, text.name)
                if not (labels.optional or rows.plain) and (labels.names or not labels.settled):
                    rows.words  # noqa: B018 (from the text, which is not kept)
                rows.raw = b""
                parts.append(rows)
            # the first label decides the kind of all
            group = list(islice(stream, 1 if labels.kind is None else env.threads()))
    if not sum(len(rows.y) for rows in parts):
        raise NoRows(f"{text.name} has no rows, only blank lines and comments")
    y = labels.targets_of_all(parts, text.name)
    width = max(rows.width for rows in parts)
    X = _matrix(parts, max(width, n_features or 0))
    if n_features is None or width <= n_features:
        return X, y
    if zero_based and width == n_features + 1 and not (X.indices == 0).any():
        raise DataError(
            f"{text.name} has index {n_features} but no index 0, so its indices seem to start at 1,"
            " but the model was trained on indices that start at 0; write it with indices from 0"
        )
    return narrowed(X, n_features, text.name, strict), y


def _matrix(parts: list[parser.Rows], width: int) -> scipy.sparse.csr_matrix:
    """The matrix of all rows; the parts lose theirs, so that memory never holds them twice."""
    sizes = np.cumsum([0] + [len(rows.values) for rows in parts])
    wide = sizes[-1] > np.iinfo(np.int32).max or any(
        rows.indices.dtype == np.int64 for rows in parts
    )
    kind = np.int64 if wide else np.int32
    indptr = [
        np.add(rows.indptr[1:], at, dtype=kind, casting="same_kind")
        for rows, at in zip(parts, sizes)
    ]
    X = scipy.sparse.csr_matrix((sum(map(len, indptr)), width), dtype=np.float64)
    # Assigned rather than passed to the constructor, which would check every index again.
    X.indptr = np.concatenate([np.zeros(1, kind), *indptr])
    X.indices = np.concatenate([rows.indices for rows in parts]).astype(kind, copy=False)
    for rows in parts:
        rows.indices = rows.indices[:0]
    X.data = np.concatenate([rows.values for rows in parts])
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def narrowed(X, n_features: int, name: str, strict: bool = False):
    """X (n, d), CSR, with n_features columns. Columns beyond are dropped with one warning, or raise
    an error if strict.
    """
    beyond = np.unique(X.indices[X.indices >= n_features])
    if len(beyond):
        what = (
            f"{name} has columns beyond the {n_features:,} that the model was trained on"
            f" ({len(beyond):,} of them)"
        )
        if strict:
            raise DataError(f"{what}; without --strict they are ignored")
        warnings.warn(f"{what}, which are ignored", RfxWarning, stacklevel=2)
    if X.shape[1] > n_features:
        return X[:, :n_features]
    return scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], n_features))


class Scan:
    """The content of a LIBSVM text of any size, in bounded memory. `problems` scans it; if it finds
    none, the counts cover the whole text.

    rows; columns: the largest index (plus one if zero-based); spellings: of the labels; low, high
    and mean of numeric labels.
    """

    def __init__(self, text: encodings.Text, zero_based: bool = False, worded: bool = True):
        """worded: whether labels may be words, as in training: if the first is, all must be."""
        self._text, self._zero_based = text, zero_based
        self._labels = Labels(settled=not worded)
        self.rows = self.columns = 0
        self.spellings = Spellings(MOST_LABELS)
        self.low, self.high, self._sum = np.inf, -np.inf, 0.0

    @property
    def mean(self) -> float:
        return self._sum / self.rows

    def labels(self) -> dict[str, int] | None:
        """The rows of each label; None for more than MOST_LABELS."""
        counts, numbers = self.spellings.counts, self.spellings.numbers.values()
        if self.spellings.full:
            return None
        return {
            label: counts[label]
            for label in labelwords.ascending(counts, None if None in numbers else numbers)
        }

    def problems(self) -> Iterator[tuple[int, int, str]]:
        """Yield (line, column, message) for every problem, in order; nothing for a text that `read`
        accepts.

        A problem of the whole text (empty, binary, no rows) is reported at line 1, column 1.
        """
        empty = clean = True
        for piece in pieces(self._text.read, self._text.name):
            empty = False
            rows = self._labels.scan(piece, self._zero_based, self._text.name)
            if clean and len(rows.bad) and b"\0" in piece.raw:
                yield 1, 1, "this is a binary file, not LIBSVM text"
                return
            for offset in rows.bad.tolist():
                clean = False
                for column, message in self._labels.problems(piece, offset, self._zero_based):
                    yield piece.number(offset), column, message
            if len(rows.y):
                self.count(rows.width, rows.y)
                self._labels.count(self.spellings, rows)
        if empty:
            yield 1, 1, "the file is empty"
        elif not self.rows and clean:
            yield 1, 1, "the file has no rows, only blank lines and comments"

    @property
    def worded(self) -> bool:
        """Whether the labels are words."""
        return self._labels.kind == parser.WORDS

    def count(self, columns: int, y: np.ndarray) -> None:
        """Count the columns and the labels y (n,) of some rows."""
        self.rows += len(y)
        self.columns = max(self.columns, columns)
        self.low, self.high = min(self.low, y.min()), max(self.high, y.max())
        self._sum += y.sum()


def shape(path) -> tuple[int, int]:
    """Rows and columns of the LIBSVM text at `path`; DataError for the first problem."""
    with encodings.Text(path) as text:
        scan = Scan(text, worded=False)
        for line, column, message in scan.problems():
            raise DataError(f"{text.name}, line {line}, column {column}: {message}")
    return scan.rows, scan.columns


def write(path, X, y, zero_based=False):
    """Write X (n, d), dense or sparse, and y (n,), numbers or Words, as a LIBSVM file.

    `path`: a path (replaced atomically) or `-` (standard output). Numbers are written in the
    shortest text that reads back as the same float64; for float32 input with nine digits, which
    read back as the same float32. Zeros of a dense X are omitted; stored zeros of a sparse X are
    written. Raises DataError if X and y differ in length or contain nan or infinity.
    """
    with open_output(path) as handle:
        write_rows(handle, X, y, zero_based)


@contextlib.contextmanager
def open_output(path):
    """A binary handle that becomes the file `path` if the block succeeds; otherwise nothing is
    left.

    `-` is standard output; if its reader has closed it, BrokenPipeError is raised.
    """
    if str(path) == "-":
        handle = files.standard_output()
        yield handle
        handle.flush()
        return
    try:
        with files.whole(path) as handle:
            yield handle
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(
            f"{files.shown(path)} can't be written: {error.strerror or error}"
        ) from None


def write_rows(handle, X, y, zero_based=False):
    """Append rows X (n, d), y (n,) to a binary handle in the format of `write`. Call it block by
    block to stream.
    """
    sparse = scipy.sparse.issparse(X)
    X = X.tocsr() if sparse else np.asarray(X)
    y, names = (y.codes, y.values) if isinstance(y, Words) else (np.asarray(y), None)
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise DataError(
            f"{X.shape[0]} rows and labels of shape {y.shape} can't be written as a LIBSVM file"
        )
    if sparse and not X.has_sorted_indices:
        X = X.sorted_indices()
    per_row = max(1, X.nnz // max(1, X.shape[0]) if sparse else X.shape[1])
    step = max(1, _VALUES_A_BLOCK // per_row)
    for start in range(0, X.shape[0], step):
        block, labels = X[start : start + step], y[start : start + step]
        if sparse:
            indptr, columns, values = block.indptr, block.indices, block.data
        else:
            rows, columns = np.nonzero(block)
            values = block[rows, columns]
            indptr = np.searchsorted(rows, np.arange(len(labels) + 1))
        if not (np.isfinite(values).all() and np.isfinite(labels).all()):
            raise DataError(
                f"rows {start + 1} to {start + len(labels)} contain nan or infinity, which LIBSVM"
                " text can't represent"
            )
        # Labels are few and always exact, so that the classes remain the same numbers.
        texts = (
            map(repr, labels.astype(np.float64).tolist())
            if names is None
            else (names[code] + _KEPT for code in labels.tolist())
        )
        handle.write(_formatted(texts, indptr, columns.astype(np.int64) + (not zero_based), values))


def _formatted(labels, indptr, columns, values) -> bytes:
    form = "%d:%.9g" if values.dtype == np.float32 else "%d:%r"
    entries = list(map(form.__mod__, zip(columns.tolist(), values.astype(np.float64).tolist())))
    bounds = indptr.tolist()
    lines = ([name, *entries[a:b]] for name, a, b in zip(labels, bounds, bounds[1:]))
    return _lines(lines).encode("ascii")


def numbers(values) -> str:
    """Text of values (n,) or (n, k), one line per row, in the shortest digits that read back as the
    same float64.
    """
    rows = np.asarray(values, np.float64)
    return _lines(map(repr, row) for row in (rows if rows.ndim == 2 else rows[:, None]).tolist())


def _lines(rows: Iterable) -> str:
    """One line per row of words, integers without the `.0` of repr unless _KEPT follows."""
    text = "\n".join([*map(" ".join, rows), ""])
    # passes over the text are faster than a call per number
    return text.replace(".0 ", " ").replace(".0\n", "\n").replace(_KEPT, "")
