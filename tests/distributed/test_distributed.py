"""Rows on the workers of a Dask cluster of processes give the result of one machine, whatever
happens to the workers.
"""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import called

from rfx import counters, methods
from rfx.counters import random_rows
from rfx.data import libsvm, stream, transforms
from rfx.data.tabular import readers
from rfx.data.transforms import Scaler
from rfx.distributed import cluster
from rfx.distributed import rows as matrix
from rfx.distributed import training as spread
from rfx.distributed.cluster import Workers
from rfx.distributed.rows import DistributedRows
from rfx.errors import DataError, UsageError
from rfx.estimators import RFClassifier, RFRegressor
from rfx.features import sample
from rfx.losses import SquaredHinge
from rfx.methods import rf
from rfx.operators.matrix import READ
from rfx.records.run import Run
from rfx.solvers.base import Budget
from rfx.solvers.l2 import solve_l2

pytestmark = pytest.mark.slow

# The choice of kernel, scaling and metric takes most of a training's seconds. It has its own tests.
PLAIN = {"kernel": "gaussian", "scaling": "standard", "metric": "none"}


@pytest.fixture(scope="module")
def data():
    """Rows (700, 4), and two classes that depend on them, with noise."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(700, 4)), 4)
    noisy = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    return SimpleNamespace(X=X, y=np.where(noisy > 0, 1.0, -1.0))


@pytest.fixture(scope="module")
def three():
    with cluster.connect("local:3") as found:
        found.wait_for_workers(3)
        yield Workers(found)


@pytest.fixture
def workers(client):
    client.wait_for_workers(2)
    return Workers(client)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """The rows in two files."""
    place = tmp_path_factory.mktemp("rows")
    for number, rows in enumerate((slice(0, 300), slice(300, None))):
        libsvm.write(place / f"{number}.svm", data.X[rows], data.y[rows])
    return place


def rows_of(workers, path, parts=3, **more):
    files = [stream.measured(own) for own in stream.matching(path)]
    return DistributedRows(
        workers,
        [stream.LibsvmRanges(False, own) for own in stream.cut(files, parts)],
        **more,
    )


@pytest.mark.parametrize("kind", ["numbers", "classes", "weights"])
def test_leaves_on_three_workers_are_those_of_one_machine(three, kind):
    """Bit for bit, however the rows are cut into parts."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (3000, 4)).astype(np.float32).astype(float)
    y = np.sin(4 * rows[:, 0]) + rows[:, 1] * rows[:, 2]
    y = np.sign(y) if kind == "classes" else y
    weights = rng.integers(1, 3, 3000) * 1.0 if kind == "weights" else None
    options = {"scaling": "minmax01", "metric": "none", "kernel": "laplacian-l2", "leaf_rows": 100}
    options |= {"task": "binary" if kind == "classes" else "regression", "target_scaling": "none"}
    options |= {"target_scaling": None} if kind == "classes" else {}
    here = methods.create("local", **options).fit(rows, y, weights)
    assert here.info["n_blocks"] >= 32
    for parts in (1, 3, 7):
        cuts = np.array_split(np.arange(3000), parts)
        of_parts = None if weights is None else [weights[cut] for cut in cuts]
        sources = [stream.Arrays(rows[cut], y[cut]) for cut in cuts]
        there = DistributedRows(three, sources, weights=of_parts)
        model = methods.create("local", **options).fit(there, there.y, there.weights)
        for name, array in here.model.arrays().items():
            assert np.array_equal(array, model.model.arrays()[name]), name


@pytest.mark.parametrize("kind", list(transforms.TRANSFORMS))
@pytest.mark.parametrize("most", [50_000, 200])
def test_columns_are_transformed_as_on_one_machine(workers, folder, kind, most, set_sizes, data):
    set_sizes(transforms, MOST_ROWS=most)
    ours = Scaler.fit(data.X, kind)
    for parts in (1, 2, 7):
        theirs = Scaler.fit(rows_of(workers, folder, parts), kind)
        for name, values in ours.to_dict().items():
            np.testing.assert_array_equal(theirs.to_dict()[name], values)


def test_wide_sparse_rows_on_workers_are_not_transformed(workers):
    text = scipy.sparse.random(40, 1200, 0.01, "csr", random_state=0)
    rows = DistributedRows(workers, [stream.Arrays(text, np.ones(40))])
    with pytest.raises(UsageError, match="--scaling is power, but the rows are sparse"):
        Scaler.fit(rows, "power")


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_features_that_workers_hold_as_codes(workers, folder, loss, monkeypatch, set_sizes, data):
    options = {"task": "binary", "lam": 1.0, "seed": 3, "n_features": 40, "loss": loss, **PLAIN}
    set_sizes(rf, WORTH_MB=0)
    ours, made = methods.create("rf", **options).fit(data.X, data.y), []
    hold = matrix.PartsMatrix.hold

    def watched(Z, *given, **more):
        made.append(hold(Z, *given, **more))
        return made[-1]

    monkeypatch.setattr(matrix.PartsMatrix, "hold", watched)
    rows = rows_of(workers, folder, moments=True)
    theirs = methods.create("rf", **options).fit(rows, rows.y)
    assert any(Z.cost < READ for Z in made) and theirs.info["converged"]
    assert theirs.info["objective"] == pytest.approx(ours.info["objective"], rel=1e-6)
    assert theirs.info["gap"] <= 1e-4 * theirs.info["objective"]


def problem(data, workers, folder):
    rows = rows_of(workers, folder).scaled(Scaler.fit(data.X, "minmax01"), np.float32)
    Z = rows.features(sample("gaussian", 4, 50, 7, gamma=2.0), 50**-0.5)
    return Z, rows.y


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_the_same_parts_give_the_same_bits_whatever_happens_to_a_worker(
    workers, folder, number, data
):
    Z, y = problem(data, workers, folder)
    first = solve_l2(Z, y, 0.1, SquaredHinge, Budget(tol=1e-6))
    hit = []

    def disturb(entry, coef):
        if entry["iteration"] == 2 and not hit:
            hit.append(workers.client.run(os.getpid)[workers.addresses[0]])
            os.kill(hit[0], number)
            if number == signal.SIGSTOP:
                threading.Timer(3, os.kill, (hit[0], signal.SIGCONT)).start()

    Z, y = problem(data, workers, folder)
    second = solve_l2(Z, y, 0.1, SquaredHinge, Budget(tol=1e-6), callback=disturb)
    assert hit
    np.testing.assert_array_equal(first.coef, second.coef)


def test_time_that_is_up_ends_training(workers, folder, data):
    Z, y = problem(data, workers, folder)
    assert solve_l2(Z, y, 0.1, SquaredHinge, Budget(deadline=time.monotonic())).status == "timeout"


def test_features_held_or_computed_are_the_same(workers, folder, rng, data):
    Z, y = problem(data, workers, folder)
    held = Z.hold()
    assert held.cost < Z.cost
    w = rng.normal(size=50)
    np.testing.assert_array_equal(np.asarray(held.matvec(w)), np.asarray(Z.matvec(w)))
    chosen = np.flatnonzero(y > 0)
    np.testing.assert_allclose(held.rows(chosen).normal(w), Z.rows(chosen).normal(w), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(y[chosen]), 1.0)
    np.testing.assert_allclose(held.columns(np.array([3, 5])).to_array(), Z.to_array()[:, [3, 5]])


@pytest.mark.parametrize(
    "name, options",
    [
        ("rf", {"loss": "squared_hinge"}),
        ("rf", {"loss": "logistic"}),
        ("rf", {"loss": "squared"}),
        ("sparse-rf", {"loss": "squared_hinge", "rounds": 2, "n_features": 12, "lam": 30.0}),
        ("rb", {"loss": "squared", "n_grids": 4, "lam": 10.0}),
        ("lkrf", {"loss": "logistic", "pool": 100}),
    ],
)
def test_no_vector_over_all_rows_is_fetched(workers, monkeypatch, name, options, data):
    X, y = np.tile(data.X, (5, 1)), np.tile(data.y, 5)
    sources = [workers.submit(stream.Arrays, X, y, worker=k) for k in range(2)]
    rows = DistributedRows(workers, sources)

    def fetched(vector, *_, **__):
        assert vector.size < rows.shape[0]
        return whole(vector)

    whole = matrix.RowVector.__array__
    monkeypatch.setattr(matrix.RowVector, "__array__", fetched)
    size = {} if name == "rb" else {"n_features": 40}
    method = methods.create(name, task="binary", **{"lam": 1.0, "gamma": 1.0} | size | options)
    assert method.fit(rows, rows.y).info["converged"]


def test_a_file_that_a_worker_does_not_see_is_named_with_it(workers, folder):
    address = workers.addresses[0]
    workers.client.run(os.chdir, str(folder))
    workers.client.run(os.chdir, "/", workers=[address])
    with pytest.raises(DataError, match=f"worker {address}.*0.svm"):
        spread._files("0.svm", workers)


@pytest.mark.parametrize(
    "name, options, words",
    [
        (
            "kernel",
            {},
            "needs all rows in one process; methods for rows on several machines: .*rf",
        ),
        ("rf", {"lam": "validation"}, "--lam is validation.*use auto or a number"),
        ("rf", {"lam": 1.0, "solver": "liblinear"}, "--solver is liblinear"),
        ("rf", {"lam": 1.0, "class_weight": "balanced"}, "--class-weight is balanced"),
        ("rb", {"lam": 1.0, "grow": 0.1}, "--grow is 0.1"),
    ],
)
def test_what_needs_all_rows_in_one_process_is_refused(name, options, words):
    with pytest.raises(UsageError, match=words):
        spread.check(methods.create(name, **options), Run(dataset="rows.svm", method=name))


# ---------------------------------------------------------------------- ranges of files


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.text("ab1 :", max_size=7), max_size=12), min_size=1, max_size=4),
    st.booleans(),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_ranges_have_every_line_once(tmp_path_factory, texts, ended, parts, chunk):
    place, files = tmp_path_factory.mktemp("texts"), []
    for number, lines in enumerate(texts):
        text = "\n".join(["x", *lines]) + "\n" * ended
        (place / f"{number}").write_text(text)
        files.append(stream.Measured(str(place / f"{number}"), "libsvm", len(text), len(text)))
    whole = [line for file in files for line in open(file.path, "rb").read().splitlines()]
    cut = stream.cut(files, parts)
    found = [
        line
        for part in cut
        for piece in part
        for text in stream.lines(piece, chunk)
        for line in text.raw.splitlines()
    ]
    assert len(cut) == parts and found == whole


def test_tables_in_ranges_are_read_as_whole(tmp_path, data):
    rows = zip(data.X[:, 0], data.y)
    lines = ["a,b,c", *(f"{x:.3f},{'red' if x > 0 else 'blue'},{y:g}" for x, y in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    file = stream.measured(tmp_path / "t.csv")
    reader = stream.TableRanges(stream.dialect(file, None))
    parts = [replace(reader, pieces=part) for part in stream.cut([file], 5)]
    tables = [table for part in parts for table in part.tables()]
    np.testing.assert_array_equal(np.concatenate([table.columns[2] for table in tables]), data.y)


def test_a_cell_with_a_line_break_is_refused(tmp_path):
    (tmp_path / "q.csv").write_text('a,b\n1,"x\ny"\n2,z\n')
    pieces = stream.cut([stream.measured(tmp_path / "q.csv")], 1)[0]
    reader = stream.TableRanges(readers.Dialect(",", True, ("a", "b"), "q.csv"))
    with pytest.raises(DataError, match="spans several lines"):
        list(replace(reader, pieces=pieces).tables())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 400),
    st.integers(1, 400),
    st.lists(st.integers(0, 400), max_size=4),
    st.booleans(),
)
def test_rows_that_are_drawn_are_known_part_by_part(size, count, cuts, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "_PERMUTED", 0 if many else 1000)
        check_drawn(size, min(size, count), cuts)


def check_drawn(size, count, cuts):
    whole = random_rows(size, count)
    assert len(np.unique(whole)) == count and whole.min() >= 0 and whole.max() < size
    ends = sorted({0, size, *(cut for cut in cuts if cut < size)})
    np.testing.assert_array_equal(
        np.concatenate([random_rows(size, count, *own) for own in zip(ends, ends[1:])]), whole
    )


@pytest.mark.parametrize("rows", [2, 5])
def test_files_that_change_are_refused(rows):
    """Of 3 rows, fewer or more were surveyed."""
    X = np.arange(9.0).reshape(3, 3)
    source = stream.Arrays(X, np.zeros(3))
    with pytest.raises(DataError, match="the files changed while they were read"):
        stream.load(source, rows, 3, Scaler.fit(X, "none"), float, lambda X: X)


# ------------------------------------------------------------------ estimators and the command line


def test_estimators_take_dask_arrays_and_dataframes(workers, data):
    X, y = data.X, data.y
    array, frames = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    words, options = np.where(y > 0, "yes", "no"), {"lam": 1.0, "n_features": 30, **PLAIN}
    frame = pandas.DataFrame(X, columns=list("abcd"))
    blocks = frames.from_pandas(frame.assign(y=X[:, 0] ** 2), npartitions=3)
    with workers.client.as_current():
        theirs = RFClassifier(**options).fit(
            array.from_array(X, chunks=(250, 2)), array.from_array(words, chunks=300)
        )
        ours = RFClassifier(**options).fit(X, words)
        assert theirs.info_["objective"] == pytest.approx(ours.info_["objective"], rel=1e-6)
        assert list(theirs.classes_) == ["no", "yes"]
        theirs = RFRegressor(**options).fit(blocks[list("abcd")], blocks["y"])
        ours = RFRegressor(**options).fit(frame, X[:, 0] ** 2)
        assert theirs.info_["objective"] == pytest.approx(ours.info_["objective"], rel=1e-6)
        assert list(theirs.feature_names_in_) == list("abcd")
        with pytest.raises(ValueError, match="lam is validation"):
            RFClassifier(lam="validation").fit(array.from_array(X), array.from_array(y))
        with pytest.raises(ValueError, match="X contains NaN"):
            RFRegressor(lam=1.0).fit(array.from_array(X * np.nan), array.from_array(y))


def test_train_by_a_scheduler(workers, tmp_path, data):
    table = tmp_path / "t.csv"
    lines = [f"{x},{'red' if z > 0 else 'blue'},{'on' if y > 0 else 'off'}"
             for x, z, y in zip(data.X[:, 0], data.X[:, 1], data.y)]  # fmt: skip
    table.write_text("\n".join(["a,colour,y", *lines]))
    # nothing is chosen, because one process would choose without the rows of its score
    line = ["train", "--method", "rf", "--lam", "1", "--n-features", "30", "--json", "--gamma"]
    line += ["0.4", "--kernel", "gaussian", "--scaling", "standard", "--metric", "none"]
    line += ["--data", table]
    call = lambda *words: json.loads(called(*words).stdout)
    model, ours = tmp_path / "m.npz", call(*line)
    theirs = call(*line, "--scheduler", workers.client.scheduler.address, "--model", model)
    assert theirs["objective"] == pytest.approx(ours["objective"], rel=1e-6)
    assert theirs["key"] == ours["key"]
    score = call("eval", model, "--data", table, "--json")["score"]
    assert theirs["params"]["train_score"] == pytest.approx(score)
    assert methods.load(model).schema.labels == ["off", "on"]
    said = str(called("predict", model, table, "--proba").exception)
    assert "no probabilities, because it was trained with --scheduler" in said


@pytest.mark.parametrize("kind", ["libsvm", "csv", "parquet"])
def test_an_address_and_a_folder_are_read_as_the_file(workers, tmp_path, kind, data):
    """Files of each kind by an address that fsspec opens, and as a folder; the objective equals
    that of the files in one process.
    """
    X, y = data.X, data.y
    options = {"lam": 1.0, "n_features": 30, "task": "binary", "seed": 3, **PLAIN}
    ours = methods.create("rf", **options).fit(X, y)
    for number, rows in enumerate((slice(0, 300), slice(300, None))):
        frame = pandas.DataFrame(X[rows], columns=list("abcd")).assign(y=y[rows])
        if kind == "libsvm":
            libsvm.write(tmp_path / f"{number}.svm", X[rows], y[rows])
        elif kind == "csv":
            frame.to_csv(tmp_path / f"{number}.csv", index=False)
        else:
            pytest.importorskip("pyarrow")
            frame.to_parquet(tmp_path / f"{number}.parquet", row_group_size=90)
    address = workers.client.scheduler.address
    reading = {} if kind == "libsvm" else {"reading": {"target": "y"}}
    for path in (f"file://{tmp_path}/*", str(tmp_path)):
        run = {"dataset": path, "method": "rf", "scheduler": address, "parts": 5} | reading
        method = spread.train(methods.create("rf", **options), Run.of(run)).model
        assert method.info["objective"] == pytest.approx(ours.info["objective"], rel=1e-6)
        assert method.info["parts"] == 5
