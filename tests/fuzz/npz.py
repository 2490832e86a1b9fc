"""npz and npy files against numpy: read as by np.load without pickle, or refused; never another
value.

Half of the files are as numpy writes them, of every type, order and shape. They must be read if
they contain a table. The others are changed; if one is read, the values must equal those of numpy.
"""

import io
import logging
import random
import re
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse
from fuzz.mutations import mutated

from rfx.data import tables
from rfx.data.reading import Reading
from rfx.data.tabular.csvtext import DOUBTFUL
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError

_NUMBERS = [
    "?",
    "i1",
    "u1",
    "<i2",
    ">i2",
    "<u2",
    "<i4",
    ">i4",
    ">u4",
    "<i8",
    ">i8",
    "<u8",
    "<f2",
    ">f2",
    "<f4",
    ">f4",
    "<f8",
    ">f8",
    "g",
]
_WORDS = ["<U3", ">U5", "<U1", "S4", "S1"]
_OTHERS = ["c16", "M8[D]", "m8[s]", "V3", [("a", "<f4"), ("b", "u1")], "O"]
_SHAPES = [(5, 2), (5, 1), (1, 3), (4, 3), (2, 2), (7,), (), (0, 2), (3, 0), (2, 2, 2), (5, 2, 1)]
_CELLS = ["a", "b", "1", "2.5", "-3", "007", "1e2", "", "NA", "é", "x y", "?", "nan"]
_WIDE = 1000  # columns of a sparse matrix above which it is not made dense
_ABSENT = {"", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A", "<NA>"}
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def _array(dtype, shape, generator):
    size = int(np.prod(shape))
    if dtype == "O":
        array = np.array([generator.choice([1, "a", None]) for _ in range(size)], object)
    elif dtype in _WORDS:
        cells = _CELLS if generator.random() < 0.5 else ["1", "2.5", "", "30"]
        words = [generator.choice(cells) for _ in range(size)]
        if dtype.startswith("S"):
            words = [word.encode() for word in words]
            words = [
                word if len(word) <= int(dtype[1:]) else word[:1].replace(b"\xc3", b"z")
                for word in words
            ]
        array = np.array(words, dtype)
    else:
        values = np.array([generator.choice([0, 1, 1, 2, 3, 100]) for _ in range(size)])
        array = np.zeros(size, dtype)
        if array.dtype.names is None and array.dtype.kind != "V":
            array = values.astype(dtype)
        if array.dtype.kind == "f" and generator.random() < 0.2 and size:
            array[generator.randrange(size)] = generator.choice([np.nan, 0.1, -0.0, 6e4])
    array = array.reshape(shape)
    return np.asfortranarray(array) if generator.random() < 0.3 else array


def _dtype(generator):
    return generator.choice(generator.choices([_NUMBERS, _WORDS, _OTHERS], [6, 3, 1])[0])


def _arrays(generator) -> dict:
    """The arrays of an npz file; that of an npy file has the name None."""
    shape = generator.choice(_SHAPES)
    if generator.random() < 0.25:
        return {None: _array(_dtype(generator), shape, generator)}
    rows = shape[0] if shape else 1
    arrays = {
        generator.choice(["X", "X", "x", "data"]): _array(_dtype(generator), shape, generator)
    }
    if generator.random() < 0.15:
        sparse = scipy.sparse.csr_matrix(
            np.array(
                [[generator.choice([0, 0, 1, 2]) for _ in range(3)] for _ in range(rows or 1)],
                float,
            )
        )
        kinds = generator.choice(["i4", "i8"]), generator.choice(["f4", "f8", "u1", "i8"])
        arrays = {
            "indptr": sparse.indptr.astype(kinds[0]),
            "indices": sparse.indices.astype(kinds[0]),
            "data": sparse.data.astype(kinds[1]),
            "shape": np.array(sparse.shape),
            "format": np.array(b"csr"),
        }
    if generator.random() < 0.8:
        shapes = [(rows,), (rows,), (rows, 1), (rows, 2), (rows + 1,), (), (1, rows)]
        arrays[generator.choice(["y", "y", "target", "labels"])] = _array(
            _dtype(generator), generator.choice(shapes), generator
        )
    if generator.random() < 0.2 and len(shape) > 1:
        arrays["feature_names"] = np.array(
            [f"c{number}" for number in range(shape[1])], generator.choice(["<U4", "S4", "O"])
        )
    if generator.random() < 0.2:
        arrays["other"] = _array(_dtype(generator), (3,), generator)
    return arrays


def _written(arrays, generator) -> bytes:
    handle = io.BytesIO()
    if None in arrays:
        np.save(handle, arrays[None])
    else:
        generator.choice([np.savez, np.savez_compressed])(handle, **arrays)
    return handle.getvalue()


def _expected(content, suffix):
    """The columns from numpy, as lists of cells; None if it gives no table that rfx reads."""
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if suffix == ".npy":
            return _columns(loaded, None)
        target = next((key for key in ("y", "target", "labels") if key in loaded.files), None)
        sparse = {"indptr", "indices", "data", "shape", "format"} <= set(loaded.files)
        key = next((key for key in ("X", "x", "data") if key in loaded.files), None)
        y = None if target is None else loaded[target]
        if sparse:
            parts = loaded["data"].astype(float), loaded["indices"], loaded["indptr"]
            X = scipy.sparse.csr_matrix(parts, tuple(loaded["shape"].tolist()))
            return None if y is None else _columns(_dense(X), y, sparse=True)
        if (
            "feature_names" in loaded.files
            and loaded["feature_names"].shape != loaded[key].shape[1:]
        ):
            return None
        return None if key is None else _columns(loaded[key], y)
    except Exception:  # whatever numpy raises for a damaged file
        return None


def _dense(X):
    """A sparse matrix as an array; for a very wide one, the non-empty columns and a row of their
    numbers.
    """
    if X.shape[1] <= _WIDE:
        return X.toarray()
    kept = np.unique(X.indices)
    kept = kept if len(kept) else np.zeros(1, np.int64)
    places = np.searchsorted(kept, X.indices)
    narrow = scipy.sparse.csr_matrix((X.data, places, X.indptr), (X.shape[0], len(kept))).toarray()
    return np.hstack(
        [narrow, np.full((len(narrow), 1), X.shape[1]), np.tile(kept, (len(narrow), 1))]
    )


def _columns(X, y, sparse=False):
    if y is not None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    several = y is not None and y.ndim == 2 and y.shape[1] > 1
    kinds = "fiub" if several or sparse else "fiubUS"
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in kinds:
        return None
    if y is not None and (
        len(y.shape) != 1 + several
        or len(y) != len(X)
        or y.dtype.kind not in ("fiub" if several else "fiubUS")
    ):
        return None
    found = [_column(X[:, place], True) for place in range(X.shape[1])]
    own = (
        []
        if y is None
        else [_column(y[:, place], False) for place in range(y.shape[1])]
        if several
        else [_column(y, False)]
    )
    if (several or sparse) and not np.isfinite(X.astype(float)).all():
        return None
    if sparse and None in own[0]:
        return None
    if (several or (sparse and y.dtype.kind not in "US")) and not np.isfinite(
        y.astype(float)
    ).all():
        return None
    return found + own


def _column(values, numbers):
    if values.dtype.kind not in "US":
        return [float(value) for value in values]
    words = [word.decode() if isinstance(word, bytes) else str(word) for word in values.tolist()]
    if "".join(words).encode("utf-8", "replace") != "".join(words).encode("utf-8", "surrogatepass"):
        raise ValueError("half a character")
    words = [None if word in _ABSENT else word for word in words]
    there = [word for word in words if word is not None]
    if numbers and there and all(_NUMBER.fullmatch(word) for word in there):
        return [np.nan if word is None else float(word) for word in words]
    return words


def _read(path):
    """The columns that rfx reads, in lists of cells."""
    found = tables.File(path).read(Reading())
    if isinstance(found, Table):
        return [_cells(found.settled(position)) for position in range(len(found.columns))]
    X, y, _ = tables.plain_rows(found, "f")
    dense = _dense(X) if scipy.sparse.issparse(X) else X
    column = found[1]
    if isinstance(column, Words):
        # the generator writes no codes such as NA
        column = column.without(DOUBTFUL)
    own = column.T.tolist() if getattr(column, "ndim", 1) == 2 else [_cells(column)]
    return dense.T.tolist() + own


def _cells(column):
    if isinstance(column, Words):
        return [None if code < 0 else column.values[code] for code in column.codes]
    return column.tolist()


def _same(one, other) -> bool:
    return len(one) == len(other) and all(
        len(a) == len(b) and all(x == y or (x != x and y != y) for x, y in zip(a, b))
        for a, b in zip(one, other)
    )


def one(path: Path, content: bytes, whole: bool) -> bool:
    """Whether the file was read; AssertionError if numpy reads other values."""
    path.write_bytes(content)
    try:
        found = _read(path)
    except DataError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000, content
        expected = _expected(content, path.suffix) if whole else None
        assert expected is None, (str(error), expected, content)
        return False
    expected = _expected(content, path.suffix)
    assert expected is not None and _same(found, expected), (found, expected, content)
    return True


def _changed(arrays, generator) -> bytes:
    """The file with changed bytes, or with changed bytes of a member before it is packed, so that
    its checksum is valid.
    """
    content = _written(arrays, generator)
    if None in arrays or generator.random() < 0.5:
        return mutated(content, generator, most=2)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = generator.choice(old.namelist())
        for name in old.namelist():
            new.writestr(
                name,
                mutated(old.read(name), generator, most=2) if name == chosen else old.read(name),
            )
    return out.getvalue()


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` files were read."""
    generator, read = random.Random(seed), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        logging.getLogger("rfx").setLevel(logging.ERROR)
        for number in range(cases):
            arrays = _arrays(generator)
            content = _changed(arrays, generator) if number % 2 else _written(arrays, generator)
            read += one(
                Path(folder) / f"f.np{'y' if None in arrays else 'z'}", content, not number % 2
            )
    return read
