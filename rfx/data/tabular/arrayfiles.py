"""Tables from numpy's .npy and .npz files: code in a file is never run, and memory is limited."""

import contextlib
import logging
import math
import zipfile
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from rfx import model
from rfx.data import archives
from rfx.data.tabular.csvtext import ABSENT, DOUBTFUL
from rfx.data.tabular.table import A_COLUMN, Table, Words, digits, none_forced
from rfx.errors import DataError
from rfx.numerals import is_number

# Accepted names of the two arrays of an .npz file.
_INPUTS, _TARGETS, _NAMES = (
    ("X", "x", "data"),
    ("y", "target", "labels"),
    ("feature_names", "columns"),
)
_SPARSE = {"indptr", "indices", "data", "shape", "format"}
# Columns of a table; each is a separate object, from reading to the model file.
MOST_COLUMNS = 1_000_000
_PIECE = 1 << 20
_SHOWN = 5
log = logging.getLogger(__name__)


@contextlib.contextmanager
def _refused(name, what):
    try:
        yield
    except DataError:
        raise
    except (*model.DAMAGED, ArithmeticError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is not a readable {what} ({reason:.200})") from None


def npy(file, name: str, forced=none_forced) -> Table:
    """The array of a .npy file, one row of numbers or words per row; the file is a binary handle.

    forced: a function of the column titles and of whether these are names, which returns the
    positions of numeric columns to read as words: texts unchanged, integers with all their digits.
    """
    with _refused(name, ".npy file"):
        form = _Form.of(file, "it", name)
        archives.check_held(form.held, name)
        return _of_array(form.read(file), name, forced)


@dataclass(frozen=True)
class _Form:
    """The header of a .npy array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @classmethod
    def of(cls, handle, what: str, name: str) -> "_Form":
        """Read from a handle, leaving it at the first number; DataError, with the array's name, for
        Python objects.
        """
        version = np.lib.format.read_magic(handle)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version}")
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = reader(handle)
        if dtype.hasobject:
            own = what if what.isidentifier() and what != "it" else "array"
            raise DataError(
                f"{name}: {what} holds Python objects, which are not supported; save it with a"
                f" numeric or string type, such as {own}.astype(float) or {own}.astype(str)"
            )
        if any(type(size) is not int or size < 0 for size in shape) or not dtype.itemsize:
            raise ValueError(f"its shape is {shape}")
        return cls(shape, fortran, dtype)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def held(self) -> int:
        """Bytes of memory for reading: numbers become float64 or int64, bytes become words of four
        bytes per letter.
        """
        numbers = (
            4 * self.nbytes
            if self.dtype.kind == "S"
            else max(self.nbytes, 8 * math.prod(self.shape))
        )
        return numbers + (A_COLUMN * self.shape[1] if len(self.shape) == 2 else 0)

    def read(self, handle) -> np.ndarray:
        """The array after a header; ValueError unless the number of values matches the header."""
        content = bytearray(self.nbytes)  # memory is allocated when it is written
        view, at = memoryview(content), 0
        while at < len(view) and (count := handle.readinto(view[at : at + _PIECE])):
            at += count
        if at < len(view) or handle.read(1):
            raise ValueError("the number of its values does not match its shape")
        array = np.frombuffer(content, self.dtype, math.prod(self.shape))
        return array.reshape(self.shape, order="F" if self.fortran else "C")


def _check_shape(array: np.ndarray, name: str) -> None:
    """Raise DataError for an array that is not a table of rows and columns."""
    if array.ndim != 2 or not array.shape[1] or not array.shape[0]:
        advice = {1: "; reshape(-1, 1) turns it into one column"}.get(array.ndim, "")
        advice = (
            "; reshape(len(X), -1) turns it into rows" if array.ndim > 2 and array.size else advice
        )
        advice = "" if array.dtype.names else advice
        raise DataError(
            f"{name} has an array of shape {array.shape!s:.80}; a nonempty array of rows and"
            f" columns is needed{advice}"
        )
    if array.shape[1] > MOST_COLUMNS:
        raise DataError(
            f"{name} has {array.shape[1]:,} columns, but a table may have at most {MOST_COLUMNS:,};"
            " use a sparse matrix (scipy.sparse.save_npz)"
        )


def _of_array(array, name, forced, names=None, y=None) -> Table:
    _check_shape(array, name)
    y = _one_column(y)
    if y is not None and y.shape != (array.shape[0],):
        raise DataError(
            f"{name} has {array.shape[0]:,} rows, but its targets have shape {y.shape!s:.80}"
        )
    titles = [str(number) for number in range(1, array.shape[1] + 1)] if names is None else names
    as_words, texts = forced(titles, names is not None), array.dtype.kind in "US"
    if texts:
        columns = _of_words(array, titles, name, as_words)
    elif array.dtype.kind in "fiub":
        columns = list(np.array(array.T, np.float64, order="C"))
        if _has_own_digits(array.dtype):
            columns = [
                digits(array[:, place]) if place in as_words else column
                for place, column in enumerate(columns)
            ]
    else:
        raise _no_numbers(array, name, "its array")
    doubtful = DOUBTFUL if texts or (y is not None and y.dtype.kind in "US") else None
    if y is None:
        return Table(name, titles, names is not None, columns, doubtful=doubtful, texts=texts)
    own = vector(y, name, len(titles) in as_words)
    typed = frozenset({"y"}) if y.dtype.kind in "US" else frozenset()
    return Table(
        name,
        [*titles, "y"],
        names is not None,
        [*columns, own],
        own_target=len(columns),
        typed=typed,
        doubtful=doubtful,
        texts=texts,
    )


def _of_words(array, titles, name, forced):
    """The columns of an array of words, converted to numbers where possible, because the array has
    a single type for all columns.
    """
    columns, numbers = [], []
    for position in range(array.shape[1]):
        column = _words(array[:, position], name)
        clear = column.without(DOUBTFUL)
        if position not in forced and clear.values and all(map(is_number, clear.values)):
            numbers.append(titles[position])
            column = np.array([*map(float, clear.values), np.nan])[clear.codes]
        columns.append(column)
    if numbers:
        shown = ", ".join(numbers[:_SHOWN]) + (
            f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
        )
        log.warning("the words of %s are read as numbers in the columns %s", name, shown)
    return columns


def _one_column(y):
    """Targets (n, 1) as (n,)."""
    return y[:, 0] if y is not None and y.ndim == 2 and y.shape[1] == 1 else y


def _no_numbers(array, name, what):
    kinds = {
        "c": "complex numbers",
        "M": "dates",
        "m": "time spans",
        "V": "records of several values",
    }
    found = kinds.get(array.dtype.kind, f"type {array.dtype!s:.40}")
    return DataError(f"{name}: {what} has {found}; numbers or words are needed")


def vector(y, name, as_words=False):
    """A column of an array (n,) of numbers or words; as_words: numbers become words with the digits
    of their own type.
    """
    if y.dtype.kind in "US":
        return _words(y, name)
    if as_words and _has_own_digits(y.dtype):
        return digits(y)
    if y.dtype.kind not in "fiub":
        raise _no_numbers(y, name, "the array of targets")
    return y.astype(np.float64)


def _has_own_digits(dtype) -> bool:
    """Whether numbers of a type print in other digits than float64: large integers, and floats of
    16 and 32 bits.
    """
    return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize < 8)


def _words(values, name) -> Words:
    """A column of words; the words for missing values in CSV text are missing here too, except the
    doubtful one.
    """
    found, codes = np.unique(_unicode(values, name), return_inverse=True)
    words = found.tolist()
    absent = np.array([word in ABSENT and word != DOUBTFUL for word in words], bool)
    places = np.where(absent, -1, np.cumsum(~absent) - 1).astype(np.int32)
    return Words(places[codes.ravel()], [word for word, gone in zip(words, absent) if not gone])


def _unicode(values, name):
    """An array of words in this machine's byte order; DataError if they are not text."""
    if values.dtype.kind == "S":
        try:
            return np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{name} has words that are not UTF-8; save them as str") from None
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    points = values.view(np.uint32)
    if len(points) and (points.max() > 0x10FFFF or ((points >= 0xD800) & (points < 0xE000)).any()):
        raise DataError(f"{name} has words with invalid Unicode characters; it is damaged")
    return values


def npz(file, name: str, forced=none_forced):
    """The content of a .npz file, a binary handle: a Table of its arrays X and y, or (X, column of
    y or None) if X (n, d) is sparse or y is (n, k) with k targets per row.

    X is called X or data; y is called y, target or labels and is optional; feature_names are the
    column names. A matrix written by scipy.sparse.save_npz is sparse X, with or without y. Other
    arrays are not read. forced: see npy; y follows the columns of X, and is the only one with
    sparse X.
    """
    with _refused(name, ".npz file"):
        arrays = _arrays(file, name)
        y = _one_column(next((arrays[key] for key in _TARGETS if key in arrays), None))
        if arrays.keys() >= _SPARSE:
            return _sparse_rows(_sparse(arrays), y, name, forced)
    X = next(arrays[key] for key in _INPUTS if key in arrays)
    if y is not None and y.ndim == 2 and y.shape[1] > 1:
        return _numbers(X, name), _beside(_numbers(y, name), X, name)
    names = next((arrays[key] for key in _NAMES if key in arrays), None)
    titles = None if names is None else _feature_names(names, X, name)
    return _of_array(X, name, forced, titles, y)


def _arrays(file, name: str) -> dict[str, np.ndarray]:
    """The arrays to read from a .npz file, by name."""
    with zipfile.ZipFile(file) as archive:
        archives.check_zip(archive)
        infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        members = {info.filename.removesuffix(".npy"): info for info in infos}
        if len(members) < len(infos):
            raise ValueError("two of its arrays have the same name")
        needed = _needed(members, name)
        forms = {key: _form(archive, members[key], key, name) for key in needed}
        archives.check_held(sum(form.held for form in forms.values()), name)
        return {key: _member(archive, members[key], form) for key, form in forms.items()}


def _sparse_rows(X: scipy.sparse.csr_matrix, y: np.ndarray | None, name: str, forced):
    """(X, the targets or None) of sparse X and its targets array, as returned by `npz`."""
    if y is None:
        return X, None
    if y.ndim not in (1, 2):
        raise DataError(
            f"{name} has {X.shape[0]:,} rows, but its targets have shape {y.shape!s:.80}"
        )
    column = _numbers(y, name) if y.ndim == 2 else vector(y, name, 0 in forced([], False))
    return X, _beside(column, X, name)


def _feature_names(names: np.ndarray, X: np.ndarray, name: str) -> list[str]:
    """The names of the columns of X; DataError unless there is one for each."""
    if names.dtype.kind in "US" and X.ndim == 2 and names.shape == X.shape[1:]:
        titles = _unicode(names, name).tolist()
        if len(set(titles)) == len(titles):
            return titles
    raise DataError(f"{name} needs one distinct feature name per column")


def _needed(members, name) -> list[str]:
    """The arrays to read among all arrays of a .npz file."""
    target = next((key for key in _TARGETS if key in members), None)
    if members.keys() >= _SPARSE:
        return [*sorted(_SPARSE), *([target] if target else [])]
    X = next((key for key in _INPUTS if key in members), None)
    if X is None:
        raise DataError(
            f"{name} has the arrays {', '.join(sorted(members)) or '(none)':.200}, but needs an"
            " array X with the rows"
        )
    names = next((key for key in _NAMES if key in members), None)
    return [key for key in (X, target, names) if key is not None]


def _form(archive, info, key, name):
    with archive.open(info) as member:
        form = _Form.of(member, key, name)
        if form.nbytes != info.file_size - member.tell():
            raise ValueError(f"the number of values of {key} does not match its shape")
    return form


def _member(archive, info, form):
    with archive.open(info) as member:
        _Form.of(member, "", "")  # skip to the first number
        return form.read(member)


def _numbers(values, name) -> np.ndarray:
    """An array (n, k) of numbers as float64."""
    if (
        values.ndim != 2
        or not values.size
        or values.dtype.kind not in "fiub"
        or not np.isfinite(values).all()
    ):
        raise DataError(
            f"{name} has an array of shape {values.shape} that does not contain rows of finite"
            " numbers"
        )
    return values.astype(np.float64)


def _beside(column, X, name):
    if len(column) != X.shape[0]:
        raise DataError(f"{name} has {X.shape[0]:,} rows, but {len(column):,} targets")
    if isinstance(column, Words) and (column.codes < 0).any():
        raise DataError(
            f"{name}, row {int(np.argmax(column.codes < 0)) + 1}: its target is missing; fill it in"
        )
    return column


def _sparse(arrays):
    kind = arrays["format"].tobytes().rstrip(b"\0").decode("ascii", "replace").replace("\0", "")
    if kind != "csr":
        raise ValueError(f"its matrix has the format {kind!r}, not csr")
    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    rows, columns = (int(size) for size in arrays["shape"])
    if (
        indptr.dtype.kind not in "iu"
        or indices.dtype.kind not in "iu"
        or data.dtype.kind not in "fiub"
        or data.ndim != 1
    ):
        raise ValueError("its arrays have types that scipy does not write")
    if (
        len(indptr) != rows + 1
        or rows < 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(indices) != len(data)
        or (np.diff(indptr.astype(np.int64)) < 0).any()
    ):
        raise ValueError("its arrays are inconsistent")
    if len(indices) and not (0 <= int(indices.min()) and int(indices.max()) < columns < 2**62):
        raise ValueError("it has indices outside its columns")
    X = scipy.sparse.csr_matrix(
        (data.astype(np.float64), indices.astype(np.int64), indptr.astype(np.int64)),
        (rows, columns),
    )
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("it has numbers that are not finite")
    return X
