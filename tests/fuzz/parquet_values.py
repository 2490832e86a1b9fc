"""Parquet files against pyarrow: the cells of pyarrow.parquet.read_table, or refused; never another
value.

Half of the files are as pyarrow writes them, of many types, encodings and pages; they must be read.
The others are changed; if one is read, the values must equal those of pyarrow.
"""

import decimal
import io
import logging
import math
import random
import tempfile
import warnings
from pathlib import Path

import pyarrow
import pyarrow.parquet
from fuzz.mutations import mutated
from fuzz.npz import _cells, _same

from rfx.data import tables
from rfx.data.reading import Reading
from rfx.errors import DataError

_WORDS = ["", "a", "b", "10", "007", "é", "x" * 300, "nan", "NA", "True"]
_WHOLE = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
_ENCODINGS = [None, None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]


def _column(generator, rows):
    """A pyarrow array of numbers, truth values or words, with some missing values."""
    kind = generator.choice(
        [*_WHOLE, "float16", "float32", "float64", "decimal", "bool", "null", *["word"] * 5]
    )
    gaps = generator.choice([0, 0.3])
    if kind in _WHOLE:
        values, type_ = (
            [generator.choice([0, 1, 2, 100, 127]) for _ in range(rows)],
            getattr(pyarrow, kind)(),
        )
    elif kind.startswith("float"):
        values, type_ = (
            [generator.choice([0.5, -1.0, 3.25, math.nan, -0.0]) for _ in range(rows)],
            getattr(pyarrow, kind)(),
        )
    elif kind == "decimal":
        values, type_ = (
            [decimal.Decimal(generator.randint(-999, 999)).scaleb(-2) for _ in range(rows)],
            pyarrow.decimal128(9, 2),
        )
    elif kind == "bool":
        values, type_ = [generator.random() < 0.5 for _ in range(rows)], pyarrow.bool_()
    elif kind == "null":
        values, type_ = [None] * rows, pyarrow.null()
    else:
        values = [generator.choice(_WORDS) for _ in range(rows)]
        type_ = generator.choice(
            [
                pyarrow.string(),
                pyarrow.large_string(),
                pyarrow.string(),
                pyarrow.dictionary(pyarrow.int16(), pyarrow.string()),
            ]
        )
    return pyarrow.array([None if generator.random() < gaps else value for value in values], type_)


def _file(generator) -> bytes:
    rows = generator.choice([1, 2, 9, 40])
    columns = {f"c{number}": _column(generator, rows) for number in range(generator.randint(2, 4))}
    way = {
        "compression": generator.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "data_page_version": generator.choice(["1.0", "2.0"]),
        "data_page_size": generator.choice([None, 32]),
        "row_group_size": generator.choice([None, 1, 4]),
        "write_statistics": generator.random() < 0.5,
        "write_page_index": generator.random() < 0.3,
    }
    words = [
        name
        for name, column in columns.items()
        if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
    ]
    encoding = generator.choice(_ENCODINGS)
    if (
        encoding
        and words
        and not any(pyarrow.types.is_dictionary(column.type) for column in columns.values())
    ):
        way |= {"use_dictionary": False, "column_encoding": dict.fromkeys(words, encoding)}
    elif generator.random() < 0.3:
        way |= {"dictionary_pagesize_limit": 16}
    handle = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), handle, **way)
    return handle.getvalue()


def _expected(content):
    """The columns from pyarrow, as lists of cells; None if it refuses, or has other columns than
    rfx reads.
    """
    try:
        table = pyarrow.parquet.ParquetFile(io.BytesIO(content)).read()
        table.validate(full=True)
        return [_plain(column) for column in table.columns] if table.num_rows else None
    except Exception:  # whatever pyarrow raises for a damaged file
        return None


def _plain(column):
    kind = column.type
    values = column.to_pylist()
    if pyarrow.types.is_boolean(kind):
        return [None if value is None else str(value) for value in values]
    if (
        pyarrow.types.is_integer(kind)
        or pyarrow.types.is_floating(kind)
        or pyarrow.types.is_decimal(kind)
    ):
        return [math.nan if value is None else float(value) for value in values]
    return [value.decode() if isinstance(value, bytes) else value for value in values]


def one(path: Path, content: bytes, whole: bool) -> bool:
    """Whether the file was read; AssertionError if pyarrow reads other values."""
    path.write_bytes(content)
    try:
        found = [_cells(column) for column in tables.File(path).read(Reading()).columns]
    except DataError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000, content
        assert not whole, (str(error), content)
        return False
    expected = _expected(content)
    if whole or expected is not None:
        assert expected is not None and _same(found, expected), (found, expected, content)
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` files were read."""
    generator, read = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("rfx").setLevel(logging.ERROR)
        content = b""
        for number in range(cases):
            whole = number % 2 == 0
            content = _file(generator) if whole else mutated(content, generator, most=2)
            read += one(Path(folder) / "f.parquet", content, whole)
    return read
