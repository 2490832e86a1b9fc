"""npy, npz and Parquet files: values of each kind of array and column, or the error message."""

import numpy as np
import pytest
import scipy.sparse as sp
from shell import run

from rfx.data import ranges, tables
from rfx.data.reading import Reading
from rfx.data.tabular.table import Words
from rfx.errors import DataError

pytestmark = pytest.mark.usefixtures("own_folders")
N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def sparse_arrays(X):
    """The arrays of a file written by scipy.sparse.save_npz."""
    matrix = sp.csr_matrix(X)
    names = ("indptr", "indices", "data", "shape")
    return {name: getattr(matrix, name) for name in names} | {"format": b"csr"}


def read(path):
    return tables.File(path).read(Reading())


def cells(column):
    """The cells of a column, None for a missing one."""
    if isinstance(column, Words):
        return [None if code < 0 else column.values[code] for code in column.codes]
    return column.tolist()


FAST = ("train", "--method", "rf", "--n-features", 20, "--gamma", 1, "--lam", 1)

# ---------------------------------------------------------------------- numpy

TYPES = [
    "?",
    "i1",
    "u1",
    "<i2",
    ">i2",
    "<u4",
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


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_every_layout_are_read_as_numpy_has_them(dtype, order, tmp_path):
    values = (np.arange(N * 3).reshape(N, 3) % 100).astype(dtype)
    path = saved(tmp_path / "a.npz", X=np.asarray(values, order=order), y=values[:, 0])
    found = read(path)
    np.testing.assert_array_equal(np.column_stack(found.columns[:3]), values.astype(np.float64))
    np.testing.assert_array_equal(found.columns[3], values[:, 0].astype(np.float64))
    np.save(tmp_path / "a.npy", np.asarray(values, order=order))
    np.testing.assert_array_equal(
        np.column_stack(read(tmp_path / "a.npy").columns), values.astype(np.float64)
    )


NO_TABLE = {
    "complex": (X.astype(complex), "type complex128 instead of numbers"),
    "dates": (np.zeros((N, 2), "M8[D]"), "type datetime64"),
    "records": (np.zeros((N, 2), [("a", "f8")]), "instead of numbers"),
    "words": (np.full((N, 2), "a"), "type <U1 instead of numbers; save columns of several types"),
    "one axis": (np.zeros(N), r"shape \(60,\); .* such as X.reshape\(len\(X\), -1\)"),
    "images": (np.zeros((N, 2, 2)), r"shape \(60, 2, 2\)"),
    "no axis": (np.array(3.0), r"shape \(\)"),
    "no rows": (np.zeros((0, 2)), r"shape \(0, 2\)"),
    "no columns": (np.zeros((N, 0)), r"shape \(60, 0\)"),
    "objects": (X.astype(object), "not a readable .np. file .Object arrays"),
}


@pytest.mark.parametrize("what", NO_TABLE)
def test_inputs_that_are_no_table_are_refused_in_a_sentence(what, tmp_path):
    array, message = NO_TABLE[what]
    np.save(tmp_path / "a.npy", array)
    for path in (saved(tmp_path / "a.npz", X=array, y=Y), tmp_path / "a.npy"):
        with pytest.raises(DataError, match=message):
            read(path)


NO_TARGETS = {
    "complex": (Y.astype(complex), "the array of targets has type complex128"),
    "dates": (np.zeros(N, "M8[s]"), "the array of targets has type datetime64"),
    "a row": (Y.reshape(1, N), r"60 rows, but its targets have shape \(1, 60\)"),
    "too few": (Y[1:], r"60 rows, but its targets have shape \(59,\)"),
    "no axis": (np.array(1), r"60 rows, but its targets have shape \(\)"),
    "objects": (Y.astype(object), "not a readable .npz file .Object arrays"),
}


@pytest.mark.parametrize("what", NO_TARGETS)
@pytest.mark.parametrize("sparse", [False, True])
def test_targets_that_are_none_are_refused_in_a_sentence(what, sparse, tmp_path):
    array, message = NO_TARGETS[what]
    inputs = sparse_arrays(X) if sparse else {"X": X}
    with pytest.raises(DataError, match=message):
        read(saved(tmp_path / "a.npz", **inputs, y=array))


@pytest.mark.parametrize("labels", [("0", "1"), ("007", "7"), (b"10", b"20")])
def test_targets_that_are_words_of_digits_are_labels(labels, tmp_path, capfd):
    path = saved(tmp_path / "a.npz", X=X, y=np.where(Y, *labels))
    assert run(capfd, *FAST, "--data", path, "--model", tmp_path / "m.npz")[0] == 0
    code, out, _ = run(capfd, "predict", tmp_path / "m.npz", path)
    assert code == 0 and set(out.split()) == {
        label if isinstance(label, str) else label.decode() for label in labels
    }


def test_words_of_digits_in_parquet_are_categories(tmp_path, capfd):
    zips = np.where(np.arange(N) % 3, "94105", "02139")
    path = written(tmp_path / "a.parquet", {"a": X[:, 0], "zip": zips, "y": np.where(Y, "p", "q")})
    code, out, _ = run(capfd, *FAST, "--data", path)
    assert code == 0 and "60 rows x 3 inputs, binary" in out


def test_a_damaged_npz_is_refused(tmp_path):
    path = saved(tmp_path / "a.npz", X=X, y=Y)
    whole = path.read_bytes()
    for damaged in (whole[:-1], b"x" + whole):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="is not a readable .npz file"):
            read(path)


# ---------------------------------------------------------------------- Parquet


def written(path, columns, **how):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path, **how)
    return path


LAYOUTS = [
    {},
    {"row_group_size": 7},
    {"use_dictionary": False},
    {"data_page_version": "2.0"},
    {"compression": "zstd"},
    {"compression": "none"},
    {"data_page_size": 64, "dictionary_pagesize_limit": 64},
    {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}},
    {
        "use_dictionary": False,
        "column_encoding": {"s": "DELTA_LENGTH_BYTE_ARRAY"},
        "row_group_size": 11,
    },
    {"write_page_index": True},
]


@pytest.mark.parametrize(
    "kind", ["string", "large_string", "binary", "large_binary", "dictionary", "string_view"]
)
@pytest.mark.parametrize("layout", LAYOUTS, ids=range(len(LAYOUTS)))
def test_words_of_every_layout_are_read_as_pyarrow_has_them(layout, kind, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    words = [None if number % 5 == 0 else f"é{number % 17}" * (number % 3) for number in range(N)]
    if kind == "dictionary" and "DELTA" in str(layout):
        pytest.skip("pyarrow itself does not read such a file")
    types = {"dictionary": pyarrow.dictionary(pyarrow.int8(), pyarrow.string())}
    column = pyarrow.array(words, types.get(kind) or getattr(pyarrow, kind)())
    path = written(
        tmp_path / "a.parquet",
        {"a": np.arange(N), "s": column, "t": pyarrow.nulls(N), "y": X[:, 0]},
        **layout,
    )
    found = read(path)
    assert found.names == ["a", "s", "t", "y"]
    assert cells(found.columns[1]) == words and cells(found.columns[2]) == [None] * N
    np.testing.assert_array_equal(found.columns[0], np.arange(N))
    np.testing.assert_array_equal(found.columns[3], X[:, 0])


def test_a_file_larger_than_memory_is_read_by_row_groups(tmp_path, monkeypatch):
    """Workers read row groups: each must fit into memory, not all of them."""
    path = written(
        tmp_path / "a.parquet",
        {"a": np.arange(4000.0), "y": np.arange(4000) % 2},
        row_group_size=1000,
    )
    monkeypatch.setenv("RFX_MAX_BYTES", "40000")
    with pytest.raises(
        DataError, match="does not fit into memory|needs at least .* bytes of memory"
    ):
        read(path)
    assert ranges.measured(path).units == 4
    parts = ranges.TableRanges(pieces=[ranges.Piece(str(path), 1, 3, False)]).tables()
    assert np.concatenate([part.columns[0] for part in parts]).tolist() == list(range(1000, 3000))


@pytest.mark.parametrize("y", [Y, np.where(Y, "yes", "no"), np.where(Y, b"yes", b"no")])
def test_targets_in_one_column_are_targets(y, tmp_path):
    flat = read(saved(tmp_path / "a.npz", X=X, y=y)).columns[2]
    assert cells(read(saved(tmp_path / "b.npz", X=X, y=y[:, None])).columns[2]) == cells(flat)
    targets = read(saved(tmp_path / "c.npz", **sparse_arrays(X), y=y[:, None]))[1]
    assert list(map(str, cells(targets))) == [str(cell) for cell in y.astype(str)]


def unreadable(pyarrow):
    """By name, cells that are neither numbers nor words, and what is said of them."""
    return {
        "lists": (pyarrow.array([[1, 2]] * N), "is of type list"),
        "structs": (pyarrow.array([{"b": 1}] * N), "is of type struct"),
        "bytes": (pyarrow.array([b"\xff"] * N), "has words that are not UTF-8"),
    }


@pytest.mark.parametrize("what", ["lists", "structs", "bytes"])
def test_columns_that_are_no_numbers_or_words_must_be_ignored(what, tmp_path, capfd):
    column, reason = unreadable(pytest.importorskip("pyarrow"))[what]
    labels, model = np.where(Y, "p", "q"), tmp_path / "m.npz"
    path = written(tmp_path / "a.parquet", {"o": column, "a": X[:, 0], "y": labels})
    code, _, said = run(capfd, *FAST, "--data", path)
    assert code == 1
    assert f"column 'o' {reason}" in said
    assert "ignore it with --ignore o" in said
    assert run(capfd, *FAST, "--data", path, "--ignore", "o", "--model", model)[0] == 0
    code, out, _ = run(capfd, "predict", model, path)
    assert set(out.split()) == {"p", "q"}
    code, _, said = run(capfd, "predict", model, written(path, {"a": column, "y": labels}))
    assert code == 1
    assert f"column 'a' {reason}" in said
