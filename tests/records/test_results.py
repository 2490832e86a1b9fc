"""The results file: columns, keys, appending under a lock, torn lines, files written by other
programs; typed rows; traces.
"""

import contextlib
import csv
import io
import json
import math
import multiprocessing
import re
import resource
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import called

from rfx import env
from rfx.errors import DataError, LockedError
from rfx.records import results
from rfx.records.params import Missing
from rfx.reporting import cells, figures, tables
from rfx.runs import single

HEADER = (",".join(results.COLUMNS) + "\n").encode()


@pytest.fixture
def largest_file():
    """A function for `with`: no file grows beyond this many bytes, as on a disk that is full."""

    @contextlib.contextmanager
    def limited(size):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited


def row(**more):
    return {
        "key": "k1",
        "status": "ok",
        "dataset": "cpu",
        "method": "rf",
        "score": 0.0375,
        "n_train": 6554,
        "converged": True,
        "params": {"gamma": 0.5},
    } | more


def test_columns_end_with_what_the_environment_describes():
    described = list(env.describe())
    assert list(results.COLUMNS[-len(described) :]) == described
    assert results.COLUMNS[:5] == ("key", "created", "status", "message", "dataset")
    assert len(set(results.COLUMNS)) == len(results.COLUMNS)


def test_append_and_read_round_trip(tmp_path):
    path = tmp_path / "new" / "results.csv"
    results.append(path, row())
    values = {"score": None, "converged": np.bool_(False), "message": 'two\nlines, "quoted"'}
    results.append(path, row(key="k2", lam=np.int64(10), params={"b": [np.float32(0.5)]}, **values))
    first, second = results.read(path)
    expected = row() | {"message": None, "lam": None, "n_train": 6554}
    assert {name: first[name] for name in expected} == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first["created"])
    expected = values | {"message": 'two lines, "quoted"', "lam": 10.0, "params": {"b": [0.5]}}
    assert {name: second[name] for name in expected} == expected
    with path.open(newline="") as file:
        header, _, record = csv.reader(file)
    assert header == list(results.COLUMNS)
    assert json.loads(record[header.index("params")]) == {"b": [0.5]}


_floats = st.floats(-1e100, 1e100)
_names = st.text(max_size=5)
_params = st.dictionaries(_names, _floats, max_size=4)
_rows = st.lists(st.tuples(st.text(max_size=40), st.none() | _floats, _params), max_size=4)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(_rows)
def test_any_text_and_number_survives(tmp_path_factory, items):
    path = tmp_path_factory.mktemp("r") / "r.csv"
    for number, (text, score, params) in enumerate(items):
        results.append(path, row(key=str(number), message=text, score=score, params=params))
    if not items:
        return
    rows = results.read(path)
    assert [item["score"] for item in rows] == [score for _, score, _ in items]
    assert [item["params"] for item in rows] == [params for *_, params in items]
    # what can't be written as one line of UTF-8 is replaced; the rest is kept
    plain = re.compile(r"[^ -~]")
    kept = [plain.sub("", " ".join(text.replace("\0", " ").splitlines())) for text, *_ in items]
    assert [plain.sub("", item["message"] or "").replace("?", "") for item in rows] == [
        text.replace("?", "") for text in kept
    ]


def test_later_row_of_a_key_wins(tmp_path):
    path = tmp_path / "r.csv"
    for key, score in [("a", 1.0), ("b", 2.0), ("a", 3.0)]:
        results.append(path, row(key=key, score=score))
    assert [(item["key"], item["score"]) for item in results.read(path)] == [("b", 2.0), ("a", 3.0)]


def test_a_file_torn_anywhere_keeps_every_finished_row(tmp_path):
    """As left by a killed writer: cut at every third byte; read at once, then appended to, then
    read again.
    """
    path = tmp_path / "r.csv"
    for number in range(2):
        results.append(
            path, row(key=f"k{number}", message='says "no", twice', git_revision="0123456789ab")
        )
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole) + 1, 3):
        finished = max(0, sum(end <= cut for end in ends) - 1)
        path.write_bytes(whole[:cut])
        keys = [item["key"] for item in results.read(path)]
        assert keys[:finished] == [f"k{number}" for number in range(finished)]
        results.append(path, row(key="new"))
        rows = results.read(path)
        assert [item["key"] for item in rows] == [*keys, "new"]
        assert all(item["score"] == 0.0375 and item["params"] == {"gamma": 0.5} for item in rows)
        if cut >= len(HEADER):
            assert path.read_bytes().startswith(whole[:cut])
        # other CSV readers count as many records as there are lines
        with path.open(newline="") as file:
            assert len(list(csv.reader(file))) == path.read_bytes().count(b"\n")


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "\x00\x01\x02", "key,created\n", "1 1:0.5\n"])
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "other.csv"
    path.write_text(content)
    with pytest.raises(DataError, match="or another program rearranged it"):
        results.append(path, row())
    with pytest.raises(DataError, match="other.csv is not an rfx results file"):
        results.read(path)
    assert path.read_text() == content


@pytest.mark.parametrize("name", ["", ".", "other.csv", "other.csv/r.csv"])
def test_a_path_that_is_no_results_file_is_found_before_anything_is_made(
    tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises((DataError, OSError)):
        results.RESULTS.check(name)
    with pytest.raises((DataError, OSError)), results.exclusive(name):
        pass
    results.RESULTS.check("new/folder/r.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_a_file_that_another_program_rearranged_is_refused(tmp_path, delimiter, start):
    path = tmp_path / "r.csv"
    results.append(path, row())
    out = io.StringIO()
    with path.open(newline="") as file:
        csv.writer(out, delimiter=delimiter).writerows(csv.reader(file))
    path.write_bytes(start + out.getvalue().encode())
    before = path.read_bytes()
    for use in (results.read, lambda path: results.append(path, row())):
        with pytest.raises(DataError, match="another program rearranged it: its first line"):
            use(path)
    assert path.read_bytes() == before


def test_a_file_with_some_of_the_columns_is_read_and_not_appended_to(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("status,key,dataset,method,lam\nok,k,cpu,rf,2.0\n")
    (first,) = results.read(path)
    assert (first["lam"], first["score"], first["params"]) == (2.0, None, {})
    with pytest.raises(DataError, match="has other columns than those that rfx writes"):
        results.append(path, row())
    assert len(results.read(path)) == 1


HEAD, LINE = (
    "key,status,dataset,method,score,params\n",
    'k{0},ok,cpu,rf,{0}.5,"{{""samples"": {0}}}"\n',
)


def test_torn_lines_are_told(tmp_path):
    path, torn = tmp_path / "r.csv", []
    path.write_text(
        HEAD
        + LINE.format(1)
        + "k2,ok,cp\n"
        + '\nk3,ok,cpu,rf,"x\n'
        + LINE.format(4) * 600
        + "k5,ok"
    )
    assert [item["key"] for item in results.read(path, torn=torn)] == ["k1", "k4"]
    assert torn == [3, 5, 606]


def test_a_full_disk_takes_back_what_it_took(tmp_path, largest_file):
    """There is room for ten bytes of the second row."""
    path = tmp_path / "r.csv"
    results.append(path, row())
    before = path.read_bytes()
    with largest_file(len(before) + 10), pytest.raises(OSError, match="No space left"):
        results.append(path, row(key="k2"))
    assert path.read_bytes() == before


_TEXTS = [
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@x",
    "\tx",
    "'=1",
    "''",
    "'",
    "-",
    "＝1",
    "'plain'",
    "a=1",
]


@pytest.mark.parametrize("text", _TEXTS)
def test_no_cell_of_text_is_run_by_a_spreadsheet(tmp_path, text):
    path = tmp_path / "r.csv"
    results.append(path, row(dataset=text, message=text, score=-0.5, params={"=a": "=b"}))
    with path.open(newline="") as file:
        (record,) = csv.DictReader(file)
    assert record["dataset"][0] not in "=+-@\t\r＝" and record["score"] == "-0.5"
    (read,) = results.read(path)
    assert (read.dataset, read.message, read.score) == (text, text, -0.5)
    assert read.params == {"=a": "=b"}


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="'=+-@\tax", max_size=5))
def test_text_made_safe_reads_back(text):
    assert results.plain(results.safe(text)) == text and results.safe(text)[:1] not in set("=+-@\t")


# ---------------------------------------------------------------------------------- files and locks


def _append_many(path, name):
    for number in range(25):
        results.append(path, row(key=f"{name}-{number}", message="x" * 300))


def test_several_writers_at_once(tmp_path):
    path = tmp_path / "r.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(results.read(path)) == 100
    assert path.read_bytes().count(b"\n") == 101


def test_exclusive_is_held_by_one_and_freed(tmp_path):
    path = tmp_path / "r.csv"
    with results.exclusive(path):
        with pytest.raises(LockedError, match="in use by another rfx run"):
            with results.exclusive(path):
                pass
        results.append(path, row())
    with results.exclusive(path):
        assert Path(f"{path}.lock").exists()


# ------------------------------------------- typed rows: what no run can have written is refused

ROWS = Path(__file__).resolve().parents[2] / "docs/rows"
GOOD = {
    "key": "k1",
    "status": "ok",
    "dataset": "cpu",
    "method": "rf",
    "metric": "accuracy",
    "score": "0.5",
    "lam": "1.0",
    "seed": "0",
    "n_features": "8",
    "seconds_fit": "0.5",
    "params": '{"label": "paper"}',
}


def written(path, *rows) -> Path:
    """A results file of these rows, each GOOD with the given changes."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in (GOOD, *rows) for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows([GOOD | row for row in rows])
    path.write_text(out.getvalue())
    return path


def test_every_row_of_the_documentation_is_read():
    files = [path for path in sorted(ROWS.glob("*.csv")) if ".trace" not in path.name]
    for path in files:
        with path.open(encoding="utf-8", newline="") as text:
            keys = {row["key"] for row in csv.DictReader(text)}
        assert {row["key"] for row in results.read(path)} == keys and keys
    assert all(results.read_steps(path) for path in ROWS.glob("*.trace.csv"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("score", "good"),
        ("n_features", "1.5"),
        ("n_features", "inf"),
        ("converged", "perhaps"),
        ("dataset", ""),
        ("params", "[1]"),
        ("params", "{"),
        ("params", "[" * 100_000),
    ],
)
def test_a_value_that_no_run_writes_is_refused_with_file_line_and_column(tmp_path, name, value):
    path = written(tmp_path / "r.csv", {}, {"key": "k2", name: value})
    with pytest.raises(DataError, match=rf"r\.csv, line 3: the column {name} holds") as caught:
        results.read(path)
    assert len(str(caught.value)) < 400


def test_a_line_with_more_cells_than_columns_is_refused(tmp_path):
    (tmp_path / "r.csv").write_text(HEADER.decode() + "," * 90 + "x\n")
    with pytest.raises(DataError, match="line 2: the column"):
        results.read(tmp_path / "r.csv")


@pytest.mark.parametrize("name", ["score", "objective", "gap", "peak_rss_mb"])
def test_a_measure_that_is_not_a_number_is_not_known(tmp_path, name):
    nan = {"key": "k2", "seed": "1", name: "nan"}
    rows = results.read(written(tmp_path / "r.csv", {name: "nan"}, nan))
    assert [row[name] for row in rows] == [None, None]
    for more in ({}, {"mean_over": "seed"}):
        assert tables.render(tables.build("summary", rows, **more), "text")


def test_what_rfx_writes_of_no_certificate_is_kept(tmp_path):
    no_bound = {"gap": "inf", "objective": "inf", "converged": "true"}
    (row,) = results.read(written(tmp_path / "r.csv", no_bound))
    assert (row.gap, row.objective, row.converged) == (math.inf, None, True)
    assert row.params["label"] == "paper"


def test_a_record_is_frozen_and_a_mapping_of_its_columns(tmp_path):
    params = '{"curve": [{"samples": 5, "error": NaN}], "a": null}'
    (row,) = results.read(written(tmp_path / "r.csv", {"params": params}))
    assert set(row) == {*results.COLUMNS}
    assert row.as_dict()["params"] == {"curve": [{"samples": 5}]}
    with pytest.raises(AttributeError):
        row.score = 1.0
    with pytest.raises(Missing, match=r"r\.csv, line 2 lacks params\.norm; repeat the run"):
        row.params["norm"]


@pytest.mark.parametrize("step", ["objective,x", "iteration,1.5", "more,[]"])
def test_a_wrong_step_of_a_trace_is_refused_with_file_line_and_column(tmp_path, step):
    name, _, value = step.partition(",")
    path = tmp_path / "t.csv"
    path.write_text(f"key,step,{name}\nk,0,{value}\n")
    with pytest.raises(DataError, match=rf"t\.csv, line 2: the column {name} holds"):
        results.read_steps(path)


# ------------------------------------------------------------------------------------------ figures


def test_the_figure_of_lambda_without_any_model_size_has_no_panel_of_sizes(tmp_path):
    """As `rfx tune --results` writes rows."""
    path = written(tmp_path / "r.csv", *({"key": f"k{n}", "lam": str(10.0**n)} for n in range(3)))
    chart = figures.lambda_path(results.read(path))
    assert [panel.y_axis for panel in chart] == ["accuracy"]
    assert figures.paint(chart)


@pytest.mark.parametrize("name", figures.FIGURES)
@pytest.mark.parametrize(
    "change",
    [
        None,
        {"score": ""},
        {"score": "nan", "peak_rss_mb": "nan"},
        {"lam": "0"},
        {"lam": ""},
        {"seconds_fit": "0"},
        {"seconds_fit": ""},
        {"metric": ""},
        {"model_size": "0"},
        {"n_features": "0"},
        {"kernel": ""},
        {"params": '{"label": "tune 1", "gamma": 1.0, "round": 1, "path": [[1.0, NaN]]}'},
        {"params": '{"label": "tune 1", "gamma": 1.0}'},
        {
            "params": '{"validation": [{"by": "rf", "error": "x", "options": ["lam", "gamma"], '
            '"tried": [[1, 2, Infinity]]}]}'
        },
    ],
)
def test_a_figure_of_rows_that_lack_something_is_drawn_or_refused_in_one_sentence(
    tmp_path, name, change
):
    """None: without any row."""
    rows = [
        {"key": f"k{n}", "lam": str(10.0**n), "n_features": str(2**n), "seed": str(n % 2)} | change
        for n in range(0 if change is None else 4)
    ]
    rows = results.read(written(tmp_path / "r.csv", *rows))
    try:
        chart = figures.FIGURES[name](rows)
    except DataError as error:
        assert "\n" not in str(error)
    else:
        assert rows and figures.paint(chart)


# ---------------------------------------------------------------------------------------- many rows


def test_means_and_deviations_are_those_of_the_statistics():
    for values in ([0.1, 0.2, 0.4], [1e-9, 3e-9], [1e99, -1e99, 3.0], [5, 5, 6]):
        found = cells.mean_if_any(values)
        assert found.value == statistics.fmean(values)
        assert found.sd == pytest.approx(statistics.stdev(values), rel=1e-14)


def test_equal_inputs_have_one_token_and_others_another():
    assert cells.token({"a": 1, "b": None}) == cells.token({"a": 1.0})
    tokens = [cells.token({"a": value}) for value in (1, "1", True, 1.5, [1], None)]
    assert len(set(tokens)) == len(tokens)


def test_many_failures_of_one_reason_are_one_note(tmp_path):
    rows = [{"key": f"k{n}", "status": "failed", "message": "no data"} for n in range(5)]
    table = tables.build("summary", results.read(written(tmp_path / "r.csv", *rows)))
    assert table.notes[0] == "cpu rf (failed): no data (5 runs)"


# ---------------------------------------------------------------------------------------- traces

STEPS = [
    {"iteration": 0, "seconds": 0.0, "objective": 3.5, "nnz": 0},
    {"iteration": 1, "seconds": 0.25, "objective": 1.5, "gap": 0.01, "nnz": 7},
]


def test_steps_read_back_by_name(tmp_path):
    path = tmp_path / "r.trace.csv"
    results.append_steps(path, "v1-a", STEPS)
    results.append_steps(path, "v1-b", STEPS[:1])
    assert results.read_steps(path) == {"v1-a": STEPS, "v1-b": STEPS[:1]}
    with path.open(newline="") as file:
        records = list(csv.DictReader(file))
    assert [record["step"] for record in records] == ["0", "1", "0"]
    assert json.loads(records[1]["more"]) == {"nnz": 7}
    # of several traces of one run the last counts
    results.append_steps(path, "v1-a", STEPS[1:])
    assert results.read_steps(path)["v1-a"] == STEPS[1:]
    assert results.read_steps(tmp_path / "none.csv") == {}


def test_a_results_file_is_no_file_of_traces(tmp_path):
    path = tmp_path / "r.csv"
    results.append(path, {"key": "k", "status": "ok", "dataset": "cpu", "method": "rf"})
    before = path.read_bytes()
    for use in (
        results.read_steps,
        results.TRACES.check,
        lambda path: results.append_steps(path, "k", STEPS),
    ):
        with pytest.raises(DataError, match="is not an rfx trace file"):
            use(path)
    assert path.read_bytes() == before
    assert results.trace_path("out/results.csv").as_posix() == "out/results.trace.csv"


PLAN = """
[defaults]
dataset = "diabetes-sklearn"
options.n_features = 16
options.lam = 1
options.kernel = "gaussian"
options.scaling = "standard"
options.metric = "none"
[[run]]
method = "sparse-rf"
"""


@pytest.mark.slow
def test_a_plan_asks_for_traces_and_gets_them_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PLAN)
    assert called("run", "p.toml").return_value == 0
    assert not (tmp_path / "results.trace.csv").exists()
    (tmp_path / "p.toml").write_text(PLAN.replace("[[run]]", "trace = true\n[[run]]"))
    assert len(called("run", "p.toml", "--dry-run").stdout.splitlines()) == 1, (
        "there is a row, but no trace"
    )
    assert called("run", "p.toml").return_value == 0
    (row,) = results.read("results.csv", results.finder("results.trace.csv"))
    assert "trace" not in row["params"]
    assert row["trace"][-1]["objective"] == pytest.approx(row["objective"])
    assert called("run", "p.toml", "--dry-run").stdout == ""
    said = called("run", "p.toml", "--trace", "other.csv", "--dry-run").stdout
    assert len(said.splitlines()) == 1


def test_train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "train --method sparse-rf --data diabetes-sklearn --n-features 16 --lam 1 --no-baseline"
    line += " --kernel gaussian --scaling standard --metric none --trace"
    done = called(*line.split(), "t.csv", "--results", "r.csv", "--json")
    (row,) = results.read("r.csv")
    assert "trace" not in json.loads(done.stdout)
    assert called(*line.split(), "t.csv").exception is None
    assert list(results.read_steps("t.csv")) == [row["key"]]
    refused = called(*line.split(), "r.csv", "--results", "r.csv").exception
    assert "is the same file as --results" in str(refused)


def test_a_method_whose_solver_tells_of_no_steps_has_its_end():
    class Silent:
        info = {"n_iter": 1, "seconds_fit": 0.5, "objective": 2.0, "gap": None}

    assert single.steps_of(Silent()) == [{"iteration": 1, "seconds": 0.5, "objective": 2.0}]
