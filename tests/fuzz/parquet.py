"""Mutated Parquet files: each is read, or refused in one sentence."""

import datetime
import decimal
import io
import random
import tempfile
import warnings
from pathlib import Path

import pyarrow
import pyarrow.parquet
from fuzz.mutations import mutated
from fuzz.table import one

_COLUMNS = {
    "number": [1.5, None, 3.0, 4.0, 1e9, -0.25],
    "whole": [1, 2, None, 4, 5, 6],
    "word": ["a", "b", None, "a", "é", ""],
    "truth": [True, False, None, True, False, True],
    "day": [datetime.date(2020, 1, day) for day in range(1, 7)],
    "money": [decimal.Decimal("1.10"), None, decimal.Decimal("2.00"), *[decimal.Decimal(3)] * 3],
    "list": [[1.0], [2.0, 3.0], [], None, [4.0], [5.0]],
}
# How a file is written: the content and the format of its pages.
_WAYS = [
    {"compression": "none", "use_dictionary": False},
    {"compression": "snappy"},
    {"compression": "gzip", "data_page_version": "2.0"},
    {"compression": "zstd", "row_group_size": 2},
    {"compression": "none", "use_dictionary": False, "use_byte_stream_split": ["number"]},
    {"compression": "lz4", "write_statistics": False, "store_schema": False},
]


def _files() -> list[bytes]:
    """Valid files to start from, with all columns, without lists, or with readable columns only."""
    found = []
    for way in _WAYS:
        for left_out in ((), ("list",), ("list", "day", "money")):
            columns = {name: values for name, values in _COLUMNS.items() if name not in left_out}
            handle = io.BytesIO()
            pyarrow.parquet.write_table(
                pyarrow.table(columns | {"y": [0.0, 1.0] * 3}), handle, **way
            )
            found.append(handle.getvalue())
    return found


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated files were read."""
    generator, read = random.Random(seed), 0
    files = _files()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(cases):
            content = mutated(generator.choice(files), generator, most=3)
            read += one(Path(folder) / "f.parquet", content, generator)
    return read
