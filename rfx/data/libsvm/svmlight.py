"""Read and write LIBSVM text: `label index:value ...`, one row per line, ascending indices from 1.

Reading is strict: a bad line is rejected with its number and column. `-` is standard input or
output. The format and its errors are defined in `svmtext`.
"""

import contextlib
import itertools
import mmap
import os
import stat
import warnings

import numpy as np
import scipy.sparse

from rfx import files
from rfx.data import archives, encodings
from rfx.data.libsvm import sequences, svmtext
from rfx.data.tabular import labelwords, schema
from rfx.data.tabular.table import Words
from rfx.errors import DataError, RfxWarning

_VALUES_A_BLOCK = 1 << 16
_HEAD = 1 << 16  # bytes that identify the kind of a file
_KEPT = "\0"  # follows a label whose spelling is preserved


class Text:
    """The plain bytes of a LIBSVM file: name (for messages) and raw (bytes or mmap).

    Parameters
    ----------
    path : path or "-"
    content : bytes, optional
        The plain bytes, if already read.
    encoding : str, optional
        Of the text, by default from its mark, else UTF-8.
    """

    raw: bytes | bytearray | mmap.mmap

    def __init__(self, path, content=None, encoding=None):
        self.name = "standard input" if str(path) == "-" else files.shown(path)
        if content is None and str(path) == "-":
            content = archives.read_plain(files.standard_input(), self.name)
        try:
            content = self._content(path) if content is None else content
        except OSError as error:
            raise DataError(f"{self.name} can't be read: {error.strerror or error}") from None
        self.raw = encodings.text(content, self.name, encoding)

    def _content(self, path):
        with files.open_regular(path, pipes=True) as handle:
            status = os.fstat(handle.fileno())
            if not stat.S_ISREG(status.st_mode):
                return archives.read_plain(handle, self.name)  # a pipe can't be mapped
            if status.st_size == 0:
                return b""
            raw = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
            packed = archives.compressed(raw[:8])
            return archives.read_plain(handle, self.name) if packed else raw


class Labels:
    """The possible word labels. names: ascending, those represented by the numbers 0, 1, … of y;
    None for numeric labels.

    known: the names are a model's, and new ones come after them. optional: rows may lack labels.
    task: the model's, or None to infer it when numeric labels are not spelled as rfx prints them.
    """

    def __init__(self, names=None, known=False, optional=False, task=None):
        self.names, self.known, self.optional, self.task = names, known, optional, task

    def settled(self, y, text: Text, plain: bool):
        """y (n,) of labels that are numbers in a text and words in the model; otherwise unchanged.

        plain: whether all are certainly spelled as rfx prints their numbers.
        """
        if self.optional or (self.known and self.names is None):
            return y
        if self.known:
            return schema.places(labelwords.of_rows(text.raw, y, plain), self.names, text.name)
        if plain or self.task == "regression":
            return y
        words = labelwords.spelled(text.raw)
        self.names, self.task = labelwords.decided(words, y, self.task, text.name)
        return y if self.names is None else schema.places(words, self.names, text.name)


def _is_text(path) -> bool:
    """Whether the file begins with valid rows, at least one with a feature. Only the first bytes
    are read.
    """
    with open(path, "rb") as handle:
        head = handle.read(_HEAD)
    lines = head.split(b"\n")
    if len(head) == _HEAD:
        lines[-1] = lines[-1].rpartition(b" ")[0]  # truncated within a word
    rows = [row for line in lines if (row := line.partition(b"#")[0].strip())]
    return any(b":" in row for row in rows) and not any(
        next(svmtext.line_problems(row, True), None) for row in rows
    )


KIND = files.Kind("LIBSVM text", _is_text)


def read(path, n_features=None, zero_based=False, letters=None, labels=None, wider="refuse"):
    """Read a LIBSVM file, or a file of sequences, recognised by its first row.

    Parameters
    ----------
    path : path, Text or "-"
        Plain or compressed (xz, bz2, gz, or zip of one file); `-` is standard input.
    n_features : int, optional
        Columns of X, by default the largest index in the file.
    zero_based : bool
        Indices start at 0 instead of 1.
    letters : bytes, optional
        The allowed letters of sequences.
    labels : Labels, optional
        The possible word labels, by default only numbers.
    wider : {"refuse", "leave out"}
        The treatment of columns from n_features on; leaving them out warns once.

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
    text, spelling = path if isinstance(path, Text) else Text(path), svmtext.Spelling()
    if sequences.recognised(text.raw):
        return sequences.parse(text.raw, text.name, n_features, letters)
    if labels is not None and _without_numbers(text.raw, labels):
        y, indptr, indices, values = _worded(text, zero_based, labels)
    else:
        y, indptr, indices, values = _parsed(text, zero_based, spelling)
        if labels is not None:
            y = labels.settled(y, text, spelling.plain)
    width = int(indices.max()) + 1 if len(indices) else 0
    if n_features is None or width <= n_features:
        return _matrix((len(y), n_features or width), indptr, indices, values), y
    _check_base(text.name, n_features, width, zero_based, indices)
    if wider == "refuse":
        _refuse_width(text, indptr, indices, n_features, zero_based)
    return narrowed(_matrix((len(y), width), indptr, indices, values), n_features, text.name), y


def _check_base(name: str, n_features: int, width: int, zero_based: bool, indices) -> None:
    """Raise an error for rows with one column too many because their indices seem to start at 1."""
    if zero_based and width == n_features + 1 and not (indices == 0).any():
        raise DataError(
            f"{name} has index {n_features} but no index 0, so its indices seem to start at 1, but"
            " the model was trained on indices that start at 0; write it with indices from 0"
        )


def _matrix(shape, indptr, indices, values) -> scipy.sparse.csr_matrix:
    """The matrix of valid arrays."""
    X = scipy.sparse.csr_matrix(shape, dtype=np.float64)
    # Assigned rather than passed to the constructor, which would check every index again.
    X.indptr, X.indices, X.data = indptr, indices, values
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def _without_numbers(raw, labels: Labels) -> bool:
    """Whether a text's labels are words or, if allowed, missing."""
    return labelwords.recognised(raw) or (labels.optional and labelwords.lacking(raw))


def _worded(text, zero_based, labels):
    """The arrays of a text whose labels are words or, if allowed, missing."""
    if not labelwords.recognised(text.raw):
        return _parsed(Text(text.name, labelwords.unlabelled(text.raw)), zero_based)
    if not labels.optional:
        encodings.check(bytes(text.raw), text.name)
    raw, words = labelwords.numbered(text.raw, text.name)
    _, *arrays = _parsed(Text(text.name, raw), zero_based)
    if labels.optional:
        return [np.zeros(len(words.codes)), *arrays]
    if labels.task == "regression":
        raise labelwords.first_word(text.raw, text.name)
    if labels.known and labels.names is None:
        raise DataError(
            f"{text.name} has word labels ({', '.join(words.values[:5]):.100}), but the model's"
            " labels are numbers"
        )
    if not labels.known:
        labels.names = sorted(words.values)
    return [schema.places(words, labels.names, text.name), *arrays]


def narrowed(X, n_features: int, name: str, strict: bool = False):
    """X (n, d), CSR, with n_features columns. Columns beyond are dropped with one warning, or raise
    an error if strict.
    """
    if X.shape[1] > n_features:
        beyond = X.indices >= n_features
        rows, columns = (
            np.count_nonzero(np.diff(np.concatenate([[0], np.cumsum(beyond)])[X.indptr])),
            len(np.unique(X.indices[beyond])),
        )
        if not columns:
            return X[:, :n_features]
        what = (
            f"{name} has columns beyond the {n_features:,} that the model was trained on"
            f" ({columns:,} of them, in {rows:,} rows)"
        )
        if strict:
            raise DataError(f"{what}; without --strict they are ignored")
        warnings.warn(f"{what}, which are ignored", RfxWarning, stacklevel=2)
        return X[:, :n_features]
    return scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], n_features))


def _parsed(text, zero_based, spelling=None):
    if not len(text.raw):
        raise DataError(f"{text.name} is empty")
    *arrays, bad = svmtext.parse(text.raw, zero_based, spelling)
    if bad < 0:
        if len(arrays[0]) == 0:
            raise DataError(f"{text.name} has no rows, only blank lines and comments")
        return arrays
    if text.raw.find(b"\0") >= 0:
        raise DataError(f"{text.name} is a binary file, not LIBSVM text")
    end = text.raw.find(b"\n", bad)
    end = end if end >= 0 else len(text.raw)
    number = 1 + int(np.count_nonzero(np.frombuffer(text.raw, np.uint8, bad) == 10)) if bad else 1
    column, message = next(
        svmtext.line_problems(text.raw[bad:end], zero_based, cut_off=end == len(text.raw))
    )
    raise DataError(f"{text.name}, line {number}, column {column}: {message}")


def _refuse_width(text, indptr, indices, n_features, zero_based):
    entry = int(np.argmax(indices >= n_features))
    row = int(np.searchsorted(indptr, entry, side="right")) - 1
    number = next(itertools.islice(_row_lines(text.raw), row, None))
    raise DataError(
        f"{text.name} has feature {int(indices[entry]) + (not zero_based)} on line {number}, "
        f"but the model was trained on {n_features} features"
    )


def _row_lines(raw):
    """The line numbers of the rows."""
    start, number = 0, 1
    while start < len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        if raw[start:end].partition(b"#")[0].strip():
            yield number
        start, number = end + 1, number + 1


def write(path, X, y, zero_based=False, precision=None):
    """Write X (n, d), dense or sparse, and y (n,), numbers or Words, as a LIBSVM file.

    `path`: a path (replaced atomically), `-` (standard output) or a binary handle. `precision`:
    significant digits; None writes the shortest text that reads back as the same float64 (for
    float32 input nine digits, which read back as the same float32). Zeros of a dense X are omitted;
    stored zeros of a sparse X are written. Raises DataError if X and y differ in length or contain
    nan or infinity.
    """
    if hasattr(path, "write"):
        write_rows(path, X, y, zero_based, precision)
        return
    with open_output(path) as handle:
        write_rows(handle, X, y, zero_based, precision)


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


def write_rows(handle, X, y, zero_based=False, precision=None):
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
        handle.write(
            _formatted(
                texts, indptr, columns.astype(np.int64) + (not zero_based), values, precision
            )
        )


def _formatted(labels, indptr, columns, values, precision):
    if precision is None and values.dtype == np.float32:
        precision = 9
    form = "%d:%r" if precision is None else f"%d:%.{precision}g"
    values = values.astype(np.float64) if precision is None else values
    entries = list(map(form.__mod__, zip(columns.tolist(), values.tolist())))
    bounds = indptr.tolist()
    return _lines([name, *entries[a:b]] for name, a, b in zip(labels, bounds, bounds[1:])).encode(
        "ascii"
    )


def numbers(values) -> str:
    """Text of values (n,) or (n, k), one line per row, in the shortest digits that read back as the
    same float64.
    """
    rows = np.asarray(values, np.float64)
    return _lines(map(repr, row) for row in (rows if rows.ndim == 2 else rows[:, None]).tolist())


def _lines(rows) -> str:
    """One line per row of words, integers without the `.0` of repr unless _KEPT follows."""
    text = "\n".join([*map(" ".join, rows), ""])
    # passes over the text are faster than a call per number
    return text.replace(".0 ", " ").replace(".0\n", "\n").replace(_KEPT, "")
