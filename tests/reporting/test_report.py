"""The report of the papers from hand-written results files: failed, unconverged, timed out, torn
and missing runs are counted correctly and shown; and the page of a results file of any rows.
"""

import html
import re
import shlex
import shutil
from dataclasses import replace

import pytest
from shell import called
from test_tables import row

from rfx import papers
from rfx.errors import DataError, UsageError
from rfx.plans import plan
from rfx.records import keys, results
from rfx.reporting import cells, claims, tables
from rfx.reporting.cells import MARKS, Printed
from rfx.reporting.report import page as pages

pytestmark = pytest.mark.slow

PLAN = "yen2014-table1"


def made(run, **more):
    """The row of a plan's run, as it is written."""
    options = run.options
    given = {
        "status": "ok",
        "task": "regression",
        "n_train": 6554,
        "n_test": 819,
        "n_inputs": 21,
        "metric": "rmse",
        "score": 0.04,
        "model_size": 57,
        "seconds_features": 0.5,
        "seconds_fit": 1.0,
        "seconds_predict": 0.01,
        "peak_rss_mb": 300.0,
        "converged": True,
        "threads": 2,
        "rfx": "0.1",
        "cpu": "A Processor",
        "solver": "rfx",
    }
    params = {
        name: value
        for name, value in options.items()
        if name not in ("kernel", "lam", "n_features")
    }
    params |= {"label": run.label} | more.pop("params", {})
    columns = {name: getattr(run, name) for name in ("dataset", "split", "method", "seed")}
    columns |= {name: options.get(name) for name in ("kernel", "lam", "n_features")}
    return {"key": keys.key(run)} | columns | given | {"params": params} | more


def runs(**wanted):
    """The requested runs of the plan, by seed."""
    return (
        plan.load(PLAN, False, papers.plans())
        .only([f"{name}={value}" for name, value in wanted.items()])
        .runs
    )


GAUSSIAN = {"dataset": "cpu", "kernel": "gaussian", "label": "paper"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results: of cpu, gaussian, five equal seeds of kernel, five worse ones of rf, and one of
    sparse-rf that did not converge; one failed, one timed out, one without data, a torn line.
    """
    place = tmp_path_factory.mktemp("results")
    path = place / f"{PLAN}.csv"
    (sparse,) = runs(method="sparse-rf", lam="10", seed="0", **GAUSSIAN)
    first, second, *_ = runs(method="rf", **GAUSSIAN | {"dataset": "census16h"})
    (absent,) = runs(method="rf", seed="0", **GAUSSIAN | {"dataset": "YearPredictionMSD"})
    none = {"score": None, "converged": None}
    for one in (
        *(made(run, score=0.038 + 1e-4 * run.seed) for run in runs(method="kernel", **GAUSSIAN)),
        *(made(run, score=0.05 + 1e-4 * run.seed) for run in runs(method="rf", **GAUSSIAN)[:5]),
        made(sparse, score=0.0364, converged=False, params={"ended": "max_iter"}),
        made(first, status="failed", message="out of memory <b>&</b> patience", **none),
        made(second, status="timeout", message="not finished within 60 seconds", **none),
        made(
            absent,
            status="failed",
            message="no public download",
            params={"error": "NoData"},
            **none,
        ),
    ):
        results.append(path, one)
    with path.open("a") as file:
        file.write('v1-0123456789abcdef,2026-01-01T00:00:00+00:00,ok,,cpu,"yen2014')
    (place / f"{PLAN}-quick.csv").write_text(path.read_text())
    return place


def report(*words):
    done = called("report", *words)
    if done.exception:
        raise done.exception
    return done.stdout.strip()


def page_of_yen(folder, output):
    report("--paper", "yen2014", "--results", folder, "-o", output)
    return (output / "index.html").read_text()


@pytest.fixture(scope="module")
def page(folder, tmp_path_factory):
    return page_of_yen(folder, tmp_path_factory.mktemp("report"))


def plain(page, space=" "):
    """The words of a page, without figures, styles and scripts; space: in the place of a tag."""
    page = re.sub(r"<(style|svg|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", space, page)).split())


@pytest.fixture(scope="module")
def lines(page):
    """Every line of the page's tables as a list of the texts of its cells."""
    cells = [
        re.findall(r"<t[dh]\b.*?</t[dh]>", one, re.S)
        for one in re.findall(r"<tr\b.*?</tr>", page, re.S)
    ]
    return [[plain(cell, "") for cell in own] for own in cells]


def line(lines, *start):
    return next(own for own in lines if tuple(own[: len(start)]) == start)


def test_the_summary_counts_the_cells(lines, folder):
    table = tables.build(PLAN, results.read(folder / f"{PLAN}.csv"), None, papers.tables())
    counted = pages.tally(table.compared)
    # for the gaussian kernel on cpu: the RMSE of kernel is equal, that of rf worse; other
    # quantities of both and those of sparse-rf are not judged
    none = sum(cell["paper"] is not None and cell["ours"] is None for cell in table.cells)
    kinds = {"equal": 1, "better": 0, "worse": 1, "undecided": 0, "beside": 3 * 5 - 2}
    assert counted == kinds | {"none": none}
    other = pages.tally(papers.tables()["yen2014-table2"].unrun())
    assert other["none"] == sum(other.values()) > 50
    (yen,) = papers.folders(("yen2014",))
    headings = [verdict + words for verdict, words in claims.VERDICTS.items()]
    assert sum(int(line(lines, heading)[1]) for heading in headings) == len(yen.claims)
    summary = line(lines, "Yen et al. 2014")
    counts = [int(text.replace(",", "")) for text in summary[2:8]]
    assert counts == [*kinds.values(), none + other["none"]]


def test_every_mark_is_that_of_rfx_table(lines, folder):
    table = tables.build(PLAN, results.read(folder / f"{PLAN}.csv"), "paper", papers.tables())
    text = tables.render(table, "text")
    for section in table.sections:
        above = ""
        for texts in tables.texts(section):
            above = texts[0] or above
            if section.n_labels == 2:
                assert [above, *texts[1:]] in lines, texts
    cells = [text for own in lines for text in own if re.search(r"\d.* / ", text)]
    for mark in MARKS.values():
        assert sum(mark in text for text in cells) == sum(
            line.count(mark) for line in text.splitlines() if " / " in line
        )
    assert line(lines, "gaussian", "RMSE")[2:] == [
        "0.0382 ± 0.0002 / 0.038 (=)",
        "0.0502 ± 0.0002 / 0.037 (-)",
        "0.0364* / 0.032",
    ]


def test_what_went_wrong_is_said(lines):
    total = len(plan.load(PLAN, False, papers.plans()).runs)
    counts = [f"{total:,}", "11", f"{total - 14:,}", *"210101"]
    assert line(lines, PLAN)[1:] == [f"{PLAN}.csv", *counts]
    for start, reason in (
        (("census16h", "rf", "failed"), "out of memory <b>&</b> patience"),
        (("census16h", "rf", "timed out"), "not finished within 60 seconds"),
        (("cpu", "sparse-rf", "not converged"), "the solver ended as max_iter"),
        (("YearPredictionMSD", "rf", "failed"), "no public download"),
    ):
        assert line(lines, *start)[3:] == ["1", reason]
    for dataset, method in (("cpu", "kernel"), ("YearPredictionMSD", "rf")):
        assert line(lines, dataset, method, "not run")[4].startswith("not run yet")


@pytest.mark.parametrize(
    "words",
    [
        "2 failed, 1 timed out, 1 not converged, 1 torn lines",
        f"Torn: line 16 of {PLAN}.csv, left short by a writer that was killed, is passed over",
        f"{PLAN} from {PLAN}.csv; {PLAN}-quick.csv is there too and not used",
        f"rfx run {PLAN} --results {{0}}/{PLAN}.csv",
        f"rfx run {PLAN} --results {{0}}/{PLAN}.csv --retry-failed",
        "rfx fetch YearPredictionMSD",
        "rfx run yen2014-table2 --results {0}/yen2014-table2.csv",
    ],
)
def test_it_says_what_there_is_and_what_to_type(page, folder, words):
    assert words.format(folder) in plain(page, "")


def test_what_to_type_can_be_typed_whatever_the_folder_is_called(folder, tmp_path):
    place = tmp_path / "my $HOME results"
    shutil.copytree(folder, place)
    found = pages.coverage(PLAN, pages.find(place, PLAN), papers.plans(), str(place))
    runs = [command for _, command in found.commands if "rfx run" in command]
    assert all(f"{place}/{PLAN}.csv" in shlex.split(command) for command in runs)


def test_the_small_form_is_read_where_there_is_no_other(folder, tmp_path):
    shutil.copy(folder / f"{PLAN}-quick.csv", tmp_path)
    assert pages.find(tmp_path, PLAN).quick


def test_the_same_files_give_the_same_bytes(folder, page, tmp_path):
    for _ in range(2):  # a report replaces itself
        assert page_of_yen(folder, tmp_path / "again") == page


def test_it_stands_alone(page):
    ids, links = (re.findall(rf' (?:{names})="([^"]*)"', page) for names in ("id", "href|src"))
    assert len(page.encode()) < 5_000_000 and len(ids) == len(set(ids))
    # no figure was drawn, so that nothing lies beside the page
    assert set(links) <= {f"#{name}" for name in ids}
    text = re.sub(r"<(pre|dd|td)[^>]*>.*?</\1>", "", page, flags=re.S)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--results", "none"), "not a folder of results files; make some with rfx run"),
        (("--paper", "yen2015"), "no such paper; did you mean yen2014"),
        (("-o", "mine"), "index.html exists and is not a report of rfx"),
        (("-o", "file/out"), "Not a directory"),
        (("none.csv",), "No such file"),
        (("other.csv",), "is not an rfx results file"),
        (("own.csv", "-o", "mine"), "exists and"),
    ],
)
def test_refusals(folder, written, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    written(rows_of("one"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<p>my own page")
    (tmp_path / "file").write_text("a,b\n1,2\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    own = () if words[0].endswith(".csv") else ("--results", folder)
    with pytest.raises((DataError, UsageError, OSError), match=says):
        report(*own, "-o", "new", *words)
    assert not (tmp_path / "new").exists()


def test_parts_of_a_cell():
    ours = cells.Mean(0.0364, 0.0007, 5, 0.036, 0.037)
    given = {"paper": Printed("0.032"), "pair": True, "verdict": "worse", "converged": False}
    cell = cells.Cell(ours, cells.decimals(4), "deviation", **given)
    assert tables.text(cell) == "0.0364 ± 0.0007* / 0.032 (-)"
    assert tables.text(cells.Cell()) == "-"
    assert tables.text(cells.Cell(pair=True)) == "- / -"
    hidden = cells.Cell(cells.Mean(0.5, 0.00004, 2, 0.5, 0.5), cells.decimals(2), "deviation")
    assert tables.text(hidden) == "0.50 ± 4e-05", (
        "the first digit where the mean's decimals would not show it"
    )


def test_a_label_stands_in_every_line():
    lines = [
        [*map(cells.words, names), cells.number(1, str)]
        for names in (("gaussian", "RMSE"), ("", "seconds"))
    ]
    section = cells.Section("cpu", ["kernel", "", "RF"], lines, 2, "cpu", {"RF": "rf"})
    grid = pages.grid(section)
    labels = [line.cells[0] for line in grid.lines]
    assert [label.parts.ours for label in labels] == ["gaussian", "gaussian"]
    assert labels[1].again
    assert grid.heads[2] == ("RF", "rf")
    assert {line.dataset for line in grid.lines} == {"cpu"}


SCORES = {"rf": 0.80, "kernel": 0.90, "a-plug-in": 0.85}


def rows_of(*datasets):
    """Three seeds of three methods on some data sets; one method is not installed."""
    return [
        row(
            dataset,
            method,
            key=f"{dataset}{method}{seed}",
            seed=seed,
            score=score + 0.01 * seed * (1 + len(method)) / 10,
            metric="accuracy",
            created="2026-01-01T00:00:00+00:00",
            seconds_fit=1.0 + score,
        )
        for dataset in datasets
        for method, score in SCORES.items()
        for seed in (0, 1, 2)
    ]


@pytest.fixture
def written(tmp_path):
    def write(rows):
        path = tmp_path / "own.csv"
        for one in rows:
            results.append(path, one)
        return path

    return write


def test_a_page_of_any_results_file(tmp_path, written):
    failed = row("two", "rb", key="failed", status="failed", message="no <b>memory</b>", score=None)
    first = rows_of("one", "two")
    again = replace(first[0], status="failed", score=None, message="at first")
    path, page = written([again, *first, failed]), tmp_path / "page" / "index.html"
    assert report(path, "-o", tmp_path / "page") == str(page)
    content = page.read_text()
    text = plain(content)
    assert "19 runs: 2 data sets, 4 methods, 3 seeds." in text, "of one key the last row"
    assert "18 done 1 failed" in text and "at first" not in text
    assert "0.9090 ± 0.0070!" in text or "0.9070 ± 0.0070!" in text
    for words in ("paired p", "rank by score", "1.00 ± 0.00!", "What went wrong", "a-plug-in"):
        assert words in text
    assert "no &lt;b&gt;memory&lt;/b&gt;" in content
    assert 'src="figures/pareto.svg"' in content
    drawn = {path.name for path in (tmp_path / "page" / "figures").iterdir()}
    assert {f"pareto.{form}" for form in ("png", "svg", "pdf", "figure.csv")} <= drawn
    report(path, "-o", tmp_path / "page")
    assert page.read_text() == content, "the same rows give the same bytes"


@pytest.fixture
def page_of(tmp_path, written):
    """The page of a results file with these rows, as HTML."""

    def made(rows):
        report(written(rows), "-o", tmp_path / "page")
        return (tmp_path / "page" / "index.html").read_text()

    return made


def test_one_data_set_has_no_ranks_and_few_rows_few_figures(page_of):
    text = plain(page_of(rows_of("one")[:1]))
    assert "rank by" not in text and "What went wrong" not in text and "Along lambda" not in text


def test_rows_without_a_good_one_are_troubles_alone(page_of):
    rows = [row(key="x", status="timeout", score=None, message="not done")]
    assert "1 timed out" in plain(page_of(rows))


def test_a_grid_of_two_options_is_drawn(page_of):
    content = page_of(
        [
            row(
                "one",
                "rf",
                key=f"{gamma}{lam}",
                lam=lam,
                score=gamma / lam,
                params={"gamma": gamma, "kernel_params": {"gamma": gamma}},
            )
            for gamma in (1.0, 2.0)
            for lam in (1.0, 10.0)
        ]
    )
    assert "Over a grid" in plain(content)
    assert '<img src="figures/grid.svg"' in content
