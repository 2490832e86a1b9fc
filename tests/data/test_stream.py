"""Streams: every row once per epoch, in batches that a position reproduces; changed inputs are
refused.
"""

import io
import json
import lzma
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from rfx.data import libsvm, load
from rfx.data.reading import Reading
from rfx.data.stream import ArraySource, CsvSource, LibsvmSource, Stream
from rfx.errors import DataError, UsageError


@pytest.fixture(scope="module")
def data():
    """Rows (97, 5) of which half the values are zero, and three classes."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((97, 5)) < 0.5, rng.standard_normal((97, 5)), 0.0)
    X[0, 4] = 1.5
    return SimpleNamespace(X=X, y=rng.integers(0, 3, 97).astype(float))


def dense(part):
    return part.toarray() if sp.issparse(part) else part


@pytest.fixture(params=["libsvm", "libsvm.xz", "csv", "array", "csr"])
def make(request, tmp_path, data):
    """A function that makes a fresh source of the rows."""
    path = tmp_path / "rows"
    kind = request.param
    if kind.startswith("libsvm"):
        libsvm.write(path, data.X, data.y)
        if kind.endswith("xz"):
            path.write_bytes(lzma.compress(path.read_bytes()))
        return lambda: LibsvmSource(path, n_inputs=5, chunk=300)
    if kind == "csv":
        rows = np.column_stack([data.X, data.y]).tolist()
        lines = [",".join(map(repr, row)) for row in rows]
        path.write_text("a,b,c,d,e,target\n" + "\n".join(lines))
        return lambda: CsvSource(path, chunk=300)
    rows = sp.csr_matrix(data.X) if kind == "csr" else data.X
    return lambda: ArraySource(rows, data.y, seed=4)


@pytest.mark.parametrize("buffer", [0, 30])
def test_an_epoch_is_every_row_once_in_batches_of_one_size(make, buffer, data):
    stream = Stream(make(), 8, buffer, seed=2, epochs=2)
    parts, targets, numbers = zip(*stream)
    assert [len(y) for y in targets] == 2 * ([8] * 12 + [1])
    orders = np.concatenate(numbers).reshape(2, 97)
    np.testing.assert_array_equal(np.sort(orders), [range(97)] * 2)
    np.testing.assert_allclose(np.concatenate([*map(dense, parts)]), data.X[orders.ravel()])
    np.testing.assert_array_equal(np.concatenate(targets), data.y[orders.ravel()])
    if buffer:
        assert (orders[0] != orders[1]).any() and (np.diff(orders[0]) < 0).any()
    assert stream.rows == 194


def test_peeking_takes_nothing(make):
    source = make()
    rows, y = source.peek(20)
    assert 20 <= len(y) < 60
    again, y_again, _ = source.read(len(y))
    np.testing.assert_array_equal(dense(rows), dense(again))
    np.testing.assert_array_equal(y, y_again)


@pytest.mark.slow
@pytest.mark.parametrize("buffer", [0, 20])
@pytest.mark.parametrize("taken", [0, 1, 4, 12, 13, 15])
def test_a_position_brings_back_the_rest(make, buffer, taken):
    whole, first, second = (Stream(make(), 8, buffer, seed=2, epochs=2) for _ in range(3))
    expected = list(whole)[taken:]
    for _ in range(taken):
        next(first)
    second.seek(json.loads(json.dumps(first.position())))
    for found, batch in zip(second, expected, strict=True):
        for part, other in zip(found, batch):
            np.testing.assert_array_equal(dense(part), dense(other))


def test_a_changed_or_shortened_file_is_refused(tmp_path, data):
    path = tmp_path / "rows.libsvm"
    libsvm.write(path, data.X, data.y)
    stream = Stream(LibsvmSource(path, chunk=400), 8)
    for _ in range(6):
        next(stream)
    position, text = stream.position(), path.read_bytes()

    def resume(content):
        path.write_bytes(content)
        again = Stream(LibsvmSource(path, chunk=400), 8)
        again.seek(position)
        return next(again)

    np.testing.assert_array_equal(resume(text)[1], data.y[48:56])
    for changed in (text[:-30], text.replace(b".", b".3", 1)):
        with pytest.raises(DataError, match="has changed since"):
            resume(changed)


BAD = [
    (
        "t.svm",
        "1 1:2\n" * 50 + "1 1:x\n1 1:2\n",
        r"t.svm, line 51, column 5: .*not a finite number",
    ),
    (
        "t.svm",
        "1 1:2\n" * 50 + "1 7:2\n",
        "feature 7 .* the first rows have 1 features; set the number of columns with --n-inputs",
    ),
    ("t.csv", "x,y\n1,2\n1,2,3\n", "line 3: it has 3 cells, but the previous rows have 2"),
    (
        "t.csv",
        "x,y\n1,2\n3,1\n2,1\n1,two\n",
        "line 5: column 'y' has 'two', which is not a number, unlike most",
    ),
]


@pytest.mark.parametrize("name, text, message", BAD)
def test_bad_rows_are_named_by_their_line(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    source = CsvSource if name == "t.csv" else LibsvmSource
    with pytest.raises(DataError, match=message):
        list(Stream(source(tmp_path / name, chunk=40), 8))


def test_a_csv_stream_is_the_table(tmp_path):
    """Quoted cells, categories, labels that are words, missing cells: the same as reading all at
    once, for pieces of any size.
    """
    rng = np.random.default_rng(0)
    rows = [
        f'{a:.3f},"{"one, or" if b else "two"}\nlines",{c},{"yes" if b else "no"}'
        for a, b, c in zip(
            rng.normal(size=90), rng.random(90) < 0.5, np.where(rng.random(90) < 0.2, "", "7")
        )
    ]
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,y\n" + "\n".join(rows))
    whole = load(path, reading=Reading(missing="mean"))
    for chunk in (50, 333, 1 << 20):
        source = CsvSource(path, Reading(missing="mean"), chunk=chunk)
        assert source.schema == whole.schema and source.n_inputs == 4
        parts, targets, _ = zip(*Stream(source, 8, epochs=2))
        np.testing.assert_array_equal(np.concatenate(parts), np.tile(whole.X_train, (2, 1)))
        np.testing.assert_array_equal(np.concatenate(targets), np.tile(whole.y_train, 2))
    with pytest.raises(UsageError, match="--missing is median.* --missing mean"):
        CsvSource(path, Reading(missing="median"))


def test_standard_input_is_read_once_and_resumed_by_its_digest(tmp_path, monkeypatch, data):
    libsvm.write(tmp_path / "rows", data.X, data.y)
    text = (tmp_path / "rows").read_bytes()

    def stream(content, epochs=1):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return Stream(LibsvmSource("-", n_inputs=5, chunk=500), 8, 16, epochs=epochs)

    first, second = stream(text), stream(text)
    index = np.concatenate([next(first)[2] for _ in range(5)])
    second.seek(first.position())
    assert sorted([*index, *np.concatenate([i for _, _, i in second])]) == list(range(97))
    with pytest.raises(DataError, match="has changed since the checkpoint was written"):
        stream(text.replace(b"1:", b"2:", 1).replace(b"2:2", b"2:3")).seek(first.position())
    with pytest.raises(DataError, match="standard input can be read only once"):
        list(stream(text, 2))


def test_rows_drawn_with_replacement_are_uniform(data):
    source = ArraySource(data.X, data.y, seed=3, replace=True)
    counts = np.zeros(97)
    for _, _, index in Stream(source, 10, epochs=100):
        np.add.at(counts, index, 1)
    assert counts.sum() == 9700 and counts.min() > 50 and counts.max() < 160
