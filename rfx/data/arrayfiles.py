"""Tables out of numpy's .npy and .npz files and of Parquet: no code of a file is ever run, no more is read than memory allows."""

import contextlib
import io
import math
import zipfile

import numpy as np
import scipy.sparse

from rfx import model
from rfx.data import archives
from rfx.data.table import Table, Words
from rfx.errors import DataError

# What the two arrays of an .npz file may be called.
_INPUTS, _TARGETS, _NAMES = ("X", "x", "data"), ("y", "target", "labels"), ("feature_names", "columns")
_SPARSE = {"indptr", "indices", "data", "shape", "format"}


@contextlib.contextmanager
def _refused(name, what):
    try:
        yield
    except DataError:
        raise
    except (*model.DAMAGED, ArithmeticError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is no {what} that can be read ({reason:.200})") from None


def npy(file, name: str) -> Table:
    """The array of a .npy file, a row of numbers a row; the file is a binary handle."""
    with _refused(name, ".npy file"):
        most = archives.most_held()
        content = file.read(most + 1)
        if len(content) > most:
            raise DataError(f"{name} holds more than {most:,} bytes, which is the most that are read; RFX_MAX_BYTES sets another limit")
        array = _array(content)
    return _of_array(array, name)


def _array(content: bytes) -> np.ndarray:
    """The array of the bytes of a .npy file; ValueError where the header claims another size than there is."""
    handle = io.BytesIO(content)
    version = np.lib.format.read_magic(handle)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version}")
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(handle)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    count = math.prod(shape)
    if any(type(size) is not int or size < 0 for size in shape) or not dtype.itemsize:
        raise ValueError(f"its shape is {shape}")
    if count * dtype.itemsize != len(content) - handle.tell():
        raise ValueError("its numbers are not as many as its shape says")
    return np.frombuffer(content, dtype, count, handle.tell()).reshape(shape, order="F" if fortran else "C")


def _of_array(array, name, names=None, y=None) -> Table:
    if array.ndim != 2 or not array.shape[1] or not array.shape[0]:
        raise DataError(f"{name} has an array of the shape {array.shape}; one of rows and columns, with some of both, is needed")
    if y is not None and y.shape != (array.shape[0],):
        raise DataError(f"{name} has {array.shape[0]:,} rows, but its targets have the shape {y.shape}")
    if array.dtype.kind in "US":
        columns = [_words(array[:, position]) for position in range(array.shape[1])]
    elif array.dtype.kind in "fiub":
        columns = list(np.array(array.T, np.float64, order="C"))
    else:
        raise DataError(f"{name} holds {array.dtype!s:.40}; numbers or words are needed")
    titles = [str(number) for number in range(1, len(columns) + 1)] if names is None else names
    if y is None:
        return Table(name, titles, names is not None, columns)
    return Table(name, [*titles, "y"], names is not None, [*columns, vector(y, name)], own_target=len(columns))


def vector(y, name):
    """A column of an array (n,) of numbers or words."""
    if y.dtype.kind in "US":
        return _words(y)
    if y.dtype.kind not in "fiub":
        raise DataError(f"{name} holds targets of type {y.dtype!s:.40}; numbers or words are needed")
    return y.astype(np.float64)


def _words(values) -> Words:
    words, codes = np.unique(values.astype(str) if values.dtype.kind == "U" else np.char.decode(values, "utf-8", "backslashreplace"),
                             return_inverse=True)  # fmt: skip
    return Words(codes.astype(np.int32).ravel(), [str(word) for word in words])


def npz(file, name: str):
    """What a .npz file has, a binary handle: a Table of its arrays X and y, or (X, column of y or None) of sparse X (n, d) and where
    y is (n, k), k targets a row.

    X is called X or data, y is called y, target or labels and may be missing; feature_names are the columns' names. A matrix that
    scipy.sparse.save_npz wrote is sparse X, also beside y.
    """
    with _refused(name, ".npz file"):
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist() if info.filename.endswith(".npy")}
            most = archives.most_held()
            if sum(info.file_size for info in members.values()) > most:
                raise DataError(f"{name} holds more than {most:,} bytes, which is the most that are read; RFX_MAX_BYTES sets another limit")
            arrays = {key: _array(archive.read(info)) for key, info in members.items()}
        y = next((arrays[key] for key in _TARGETS if key in arrays), None)
        if arrays.keys() >= _SPARSE:
            X = _sparse(arrays)
            return X, None if y is None else _beside(_numbers(y, name) if y.ndim == 2 else vector(y, name), X, name)
    X = next((arrays[key] for key in _INPUTS if key in arrays), None)
    if X is None:
        raise DataError(f"{name} has the arrays {', '.join(sorted(arrays)) or '(none)':.200}, but rows are expected in one called X")
    if y is not None and y.ndim == 2 and y.shape[1] > 1:
        return _numbers(X, name), _beside(_numbers(y, name), X, name)
    names = next((arrays[key] for key in _NAMES if key in arrays), None)
    if names is not None and (
        names.dtype.kind not in "US" or X.ndim != 2 or names.shape != X.shape[1:] or len(set(names.tolist())) < len(names)
    ):
        raise DataError(f"{name} has feature names that are not one different word for each column")
    return _of_array(X, name, None if names is None else _words_of(names), y)


def _words_of(names):
    words = _words(names)
    return [words.values[code] for code in words.codes]


def _numbers(values, name) -> np.ndarray:
    """An array (n, k) of numbers as float64."""
    if values.ndim != 2 or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise DataError(f"{name} has an array of the shape {values.shape} that is not of rows of finite numbers")
    return values.astype(np.float64)


def _beside(column, X, name):
    if len(column) != X.shape[0]:
        raise DataError(f"{name} has {X.shape[0]:,} rows, but {len(column):,} targets")
    return column


def _sparse(arrays):
    kind = arrays["format"].tobytes().rstrip(b"\0").decode("ascii", "replace").replace("\0", "")
    if kind != "csr":
        raise ValueError(f"its matrix has the format {kind!r}, not csr")
    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    rows, columns = (int(size) for size in arrays["shape"])
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu" or data.dtype.kind not in "fiub" or data.ndim != 1:
        raise ValueError("its arrays have other types than scipy's")
    if (
        len(indptr) != rows + 1
        or rows < 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(indices) != len(data)
        or (np.diff(indptr.astype(np.int64)) < 0).any()
    ):
        raise ValueError("its arrays do not fit one another")
    if len(indices) and not (0 <= int(indices.min()) and int(indices.max()) < columns < 2**62):
        raise ValueError("it has indices outside of its columns")
    X = scipy.sparse.csr_matrix((data.astype(np.float64), indices.astype(np.int64), indptr.astype(np.int64)), (rows, columns))
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("it has numbers that are not finite")
    return X


def parquet_file(file, name: str):
    """The pyarrow ParquetFile of a path or a binary handle; DataError where it is none, or pyarrow is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{name} is a Parquet file, which pyarrow reads; pip install 'rfx-kernels[parquet]'") from None
    try:
        return pyarrow.parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(name, error) from None


def _no_parquet(name, error) -> DataError:
    return DataError(f"{name} is no Parquet file that can be read ({str(error).splitlines()[0] if str(error) else error!r:.200})")


def parquet(file, name: str) -> Table:
    """The columns of a Parquet file, a path or a binary handle: numbers, truth values and words."""
    content = parquet_file(file, name)
    import pyarrow

    metadata = content.metadata
    if metadata.num_rows * max(1, metadata.num_columns) * 8 > archives.most_held():
        raise DataError(f"{name} has {metadata.num_rows:,} rows of {metadata.num_columns:,} columns, more than memory holds")
    try:
        read = content.read()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(name, error) from None
    if not read.num_rows or not read.num_columns:
        raise DataError(f"{name} has no rows or no columns")
    return parquet_table(read, name)


def parquet_table(read, name: str) -> Table:
    """The Table of a pyarrow table."""
    if len(set(read.column_names)) < read.num_columns:
        raise DataError(f"{name} has two columns of the same name")
    return Table(
        name, list(read.column_names), True, [_arrow(column, title, name) for title, column in zip(read.column_names, read.columns)]
    )


def _arrow(column, title, name):
    import pyarrow
    import pyarrow.compute

    types, kind = pyarrow.types, column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_boolean(kind):
        column = pyarrow.compute.if_else(column, "True", "False")
        kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64)
    if not (types.is_string(kind) or types.is_large_string(kind)):
        try:
            column = column.cast(pyarrow.string())  # dates and the like: words, as in a CSV file
        except pyarrow.ArrowException:
            raise DataError(f"{name}: column {title!r:.80} is of type {kind!s:.40}; numbers, truth values and words are read") from None
    coded = column.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pyarrow.ChunkedArray) else coded
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    try:
        words = coded.dictionary.to_pylist()
    except UnicodeDecodeError:
        raise DataError(f"{name}: column {title!r:.80} has words that are not UTF-8") from None
    return Words(codes, [str(word) for word in words])
