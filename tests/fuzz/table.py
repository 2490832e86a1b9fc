"""Mutated CSV texts and numpy archives: each is read, with the same result for pieces of any size,
or refused in one sentence.
"""

import io
import random
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from fuzz.mutations import mutated

from rfx.data import encodings, tables
from rfx.data.reading import Reading
from rfx.data.tabular import csvtext
from rfx.data.tabular.learner import Learner
from rfx.data.tabular.table import Table, Words
from rfx.errors import RfxError

_TEXTS = [
    (
        b'id,job,"height, cm",buys\n1,clerk,170.5,yes\n2,"smith,'
        b' ""old""",,no\n3,clerk,1e2,yes\n4,?,181,no\n'
    ),
    b"1;0,5;a\n2;1,5;b\r\n3;-2;a\r\n",
    b"\xef\xbb\xbfx\ty\n1\t2\n\n3\t4\n",
    b"a,b\n01,true\n2,False\n",
    b"id;a;b\n1;1.234;DE\n2;12.345;NA\n3;1,5;FR\n4;9,125;NA\n",
]
_PIECES = [
    b",",
    b";",
    b"\t",
    b'"',
    b'""',
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"nan",
    b"inf",
    b"1e999",
    b"9" * 40,
    b"NA",
    b"?",
    b" ",
    b"'",
    b"#",
    b"0x10",
    b"1_0",
    b"True",
    b"\xc3\xa9",
    b"-",
    b",,,,",
    b'"\n"',
]


def _arrays() -> list[tuple[str, bytes]]:
    """(suffix, content) of valid archives to start from."""
    X, y = np.arange(12.0).reshape(6, 2), np.array(["a", "b"] * 3)
    sparse = scipy.sparse.csr_matrix(X)
    kinds = [
        {"X": X, "y": y, "feature_names": np.array(["u", "v"])},
        {"data": X.astype(np.float32), "target": np.arange(6)},
        {
            "indptr": sparse.indptr,
            "indices": sparse.indices,
            "data": sparse.data,
            "shape": np.array(sparse.shape),
            "format": np.array(b"csr"),
            "y": np.arange(6.0),
        },
    ]
    found = []
    for arrays in kinds:
        handle = io.BytesIO()
        np.savez(handle, **arrays)
        found.append((".npz", handle.getvalue()))
    handle = io.BytesIO()
    np.save(handle, X)
    return [*found, (".npy", handle.getvalue())]


def _same(first: Table, second: Table) -> bool:
    if (
        first.names != second.names
        or first.dotted != second.dotted
        or first.padded != second.padded
        or not np.array_equal(first.lines, second.lines)
    ):
        return False
    for one, other in zip(first.columns, second.columns):
        if isinstance(one, Words) != isinstance(other, Words):
            return False
        if isinstance(one, Words):
            words = [
                [None if code < 0 else column.values[code] for code in column.codes]
                for column in (one, other)
            ]
            if words[0] != words[1]:
                return False
        elif not np.array_equal(one, other, equal_nan=True):
            return False
    return True


def _in_pieces(content: bytes, name: str, size: int) -> Table:
    content = encodings.opened(io.BytesIO(content), name).read()
    return csvtext.read(lambda: io.BytesIO(content), csvtext.dialect(content, name), chunk=size)


def one(path: Path, content: bytes, generator) -> bool:
    """Whether the file was read; its numbers must be finite."""
    path.write_bytes(content)
    reading = Reading(missing=generator.choice(["refuse", "most_frequent"]))
    try:
        found = tables.File(path).read(reading)
        if not isinstance(found, Table):
            X, y, _ = tables.plain_rows(found, "f")
        else:
            if path.suffix == ".csv" and generator.random() < 0.3:
                pieces = _in_pieces(content, found.name, generator.randint(1, 40))
                assert _same(found, pieces), content
            X, y = Learner(reading).update(found).finish().encode(found)
    except RfxError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000, content
        return False
    values = X.data if scipy.sparse.issparse(X) else X
    assert X.shape[0] == len(y) > 0 and np.isfinite(values).all() and np.isfinite(y).all(), content
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated files were read."""
    generator, read = random.Random(seed), 0
    archives = _arrays()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(cases):
            suffix, content = (
                (".csv", generator.choice(_TEXTS))
                if generator.random() < 0.5
                else generator.choice(archives)
            )
            content = mutated(
                content,
                generator,
                _PIECES if suffix == ".csv" else (),
                most=4 if suffix == ".csv" else 2,
            )
            read += one(Path(folder) / f"f{suffix}", content, generator)
    return read
