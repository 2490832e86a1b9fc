"""Rows of results files are typed records: what no run can have written is refused in one sentence
when the file is read.
"""

import csv
import io
import math
from pathlib import Path

import pytest
from shell import called

from rfx.errors import DataError
from rfx.records import results, traces
from rfx.records.run import Missing, complete, having
from rfx.reporting import columns, figures, seeds, style, tables

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


def call(*words):
    """A command in this process: click's result; exceptions other than error messages are
    raised.
    """
    done = called(*words)
    if done.exception is not None and not isinstance(done.exception, DataError):
        raise done.exception
    return done


def test_every_row_of_the_documentation_is_read():
    files = [path for path in sorted(ROWS.glob("*.csv")) if ".trace" not in path.name]
    for path in files:
        with path.open(encoding="utf-8", newline="") as text:
            keys = {row["key"] for row in csv.DictReader(text)}
        assert {row["key"] for row in results.read(path)} == keys and keys
    assert all(traces.read(path) for path in ROWS.glob("*.trace.csv"))


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


@pytest.mark.parametrize("name", ["score", "objective", "gap", "seconds_fit", "peak_rss_mb"])
def test_a_measure_that_is_not_a_number_is_not_known(tmp_path, name):
    (row,) = results.read(written(tmp_path / "r.csv", {name: "nan"}))
    assert row[name] is None
    for words in (
        ("table", "summary"),
        ("table", "summary", "--mean-over", "seed"),
        ("figure", "pareto", "--output", f"{tmp_path}/f/"),
    ):
        call(
            *words,
            "--results",
            written(tmp_path / "r.csv", {name: "nan"}, {"key": "k2", "seed": "1", name: "nan"}),
        )


def test_what_rfx_writes_of_no_certificate_is_kept(tmp_path):
    (row,) = results.read(
        written(tmp_path / "r.csv", {"gap": "inf", "objective": "inf", "converged": "true"})
    )
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
    assert having([row], "score", "params.curve") == [row]
    assert having([row], "params.norm") == []


@pytest.mark.parametrize("step", ["objective,x", "iteration,1.5", "more,[]"])
def test_a_wrong_step_of_a_trace_is_refused_with_file_line_and_column(tmp_path, step):
    name, _, value = step.partition(",")
    path = tmp_path / "t.csv"
    path.write_text(f"key,step,{name}\nk,0,{value}\n")
    with pytest.raises(DataError, match=rf"t\.csv, line 2: the column {name} holds"):
        traces.read(path)


# ------------------------------------------------------------------------------------------ figures

NAMES = [
    "p$\\frac{$q.csv",
    "p$5 and $6.csv",
    "_hidden",
    "a\\b^{c}_d",
    "x" * 3000,
    "a\x01b\x1b[31m",
    "\u202eevil",
    "\u05e9\u05dc",
    "\U0001f4a5 boom",
    "a&b<c>'\"",
    "%s {0}",
]


def swept(path, name) -> Path:
    """Runs on a data set with that name by a method, two lambdas and two sizes; other texts have
    that name, too.
    """
    more = {"dataset": name, "cpu": name, "metric": "accuracy", "rfx": name, "message": name}
    rows = [
        {"key": f"k{n}", "lam": str(10.0**n), "n_features": str(4 + n), "score": str(0.5 + n / 10)}
        | more
        for n in range(3)
    ]
    return written(path, *rows, {"key": "f", "status": "failed"} | more)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("error")
def test_a_name_is_drawn_as_it_is_written_and_never_as_mathematics(tmp_path, name):
    rows = results.read(swept(tmp_path / "r.csv", name))
    for figure in ("lambda", "pareto"):
        paths = figures.draw(figure, rows, f"{tmp_path}/")
        assert all(path.stat().st_size for path in paths)
        panels = {line["panel"] for line in csv.DictReader(paths[-1].read_text().splitlines())}
        if len(name) < 60 and name.isascii() and name.isprintable():
            assert panels == {name}, "the numbers have the name as it is"


def test_what_is_drawn_of_a_name_with_dollars():
    assert (
        style.plain("p$5 and $6.csv") == r"p\$5 and \$6.csv"
        and style.written(style.plain("a$b$c")) == "a$b$c"
    )
    assert len(style.plain("y" * 500)) <= style.LONGEST + 1 and style.plain("_a") == " _a"


@pytest.mark.parametrize("form", tables.FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_any_names_has_no_control_characters(tmp_path, form, name):
    rows = results.read(swept(tmp_path / "r.csv", name))
    text = tables.render(tables.build("summary", rows), form, 80)
    assert not [one for one in text if one != "\n" and not one.isprintable() and not one.isspace()]
    if form == "latex":
        assert text.count("$") == text.count(r"\$") + text.count(r"$\pm$") * 2


def test_the_figure_of_lambda_without_any_model_size_has_no_panel_of_sizes(tmp_path):
    """As `rfx tune --results` writes rows."""
    path = written(tmp_path / "r.csv", *({"key": f"k{n}", "lam": str(10.0**n)} for n in range(3)))
    done = call("figure", "lambda", "--results", path, "--output", f"{tmp_path}/figs/")
    assert done.exit_code == 0 and len(list((tmp_path / "figs").iterdir())) == 4
    built = figures.catalogue.figures()["lambda"](results.read(path), None)
    assert [panel.y_axis for panel in built] == ["accuracy"]


@pytest.mark.parametrize("name", ["lambda", "features", "grid", "pareto", "tune"])
@pytest.mark.parametrize(
    "change",
    [
        {"score": ""},
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
    rows = [
        {"key": f"k{n}", "lam": str(10.0**n), "n_features": str(2**n), "seed": str(n % 2)} | change
        for n in range(4)
    ]
    done = call(
        "figure",
        name,
        "--results",
        written(tmp_path / "r.csv", *rows),
        "--output",
        f"{tmp_path}/figs/",
    )
    assert done.exception is None or "\n" not in str(done.exception)


@pytest.mark.parametrize("name", ["lambda", "features", "grid", "pareto", "tune"])
def test_a_figure_of_an_empty_results_file_is_one_sentence(tmp_path, name):
    path = written(tmp_path / "r.csv")
    assert isinstance(
        call("figure", name, "--results", path, "--output", f"{tmp_path}/f/").exception, DataError
    )


# ---------------------------------------------------------------------------------------- many rows


def test_means_and_deviations_are_those_of_the_statistics():
    import statistics

    for values in ([0.1, 0.2, 0.4], [1e-9, 3e-9], [1e99, -1e99, 3.0], [5, 5, 6]):
        found = seeds.mean(values)
        assert found.value == statistics.fmean(values) and found.sd == pytest.approx(
            statistics.stdev(values), rel=1e-14
        )


def test_what_varies_among_rows_is_found_in_one_pass(tmp_path):
    rows = [
        {
            "key": f"k{n}",
            "seed": str(n % 3),
            "lam": str(10.0 ** (n // 3)),
            "kernel": "gaussian" if n < 3 else "laplacian",
        }
        for n in range(6)
    ]
    given = columns.of(results.read(written(tmp_path / "r.csv", *rows)))
    assert (
        given.varying == ["kernel", "lam", "seed"]
        and "setting paper" in given.constant()
        and len(given.values) == 6
    )
    assert [one["lam"] for one in given.values] == [
        1.0,
        1.0,
        1.0,
        10.0,
        10.0,
        10.0,
    ] and given.requested[0]["seed"] == 0


def test_equal_inputs_have_one_token_and_others_another():
    assert seeds.token({"a": 1, "b": None}) == seeds.token({"a": 1.0})
    tokens = [seeds.token({"a": value}) for value in (1, "1", True, 1.5, [1], None)]
    assert len(set(tokens)) == len(tokens)


def test_many_failures_of_one_reason_are_one_note(tmp_path):
    rows = [{"key": f"k{n}", "status": "failed", "message": "no data"} for n in range(5)]
    table = tables.build("summary", results.read(written(tmp_path / "r.csv", *rows)))
    assert [note for note in table.notes if "no data" in note] == [
        "cpu rf (failed): no data (5 runs)"
    ]


def test_a_row_that_lacks_what_is_needed_is_left_out_and_said(tmp_path, caplog):
    for status, score in (("ok", 0.5), ("ok", None), ("failed", None)):
        row = {"key": f"{status}{score}", "status": status, "dataset": "d", "method": "rf"}
        results.append(tmp_path / "r.csv", row | {"score": score})
    rows = results.read(tmp_path / "r.csv")
    assert [row.score for row in complete(rows, "score", "method")] == [0.5]
    (message,) = caplog.messages
    assert message == f"{tmp_path / 'r.csv'}, line 3 has no score and is ignored; repeat the run"
