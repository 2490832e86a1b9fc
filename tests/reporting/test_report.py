"""The report of the papers from hand-written results files: failed, unconverged, timed out, torn
and missing runs are counted correctly and shown; and the page of a results file of any rows.
"""

import re
import shlex
import shutil
from html.parser import HTMLParser

import pytest
from shell import called
from test_tables import row

from rfx import papers
from rfx.errors import DataError, UsageError
from rfx.plans import plan
from rfx.records import keys, results
from rfx.reporting import cells, tables
from rfx.reporting.cells import MARKS, Printed
from rfx.reporting.report import page as pages
from rfx.reporting.report import page as sources

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
        *(made(run, score=0.05 + 1e-4 * run.seed) for run in runs(method="rf", **GAUSSIAN)),
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


class Reader(HTMLParser):
    """Text by element: every table row of the page as a list of its cells' texts, every href, src
    and id.
    """

    def __init__(self, text):
        super().__init__()
        self.rows, self.links, self.ids, self.words, self._cell = [], [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.links += [known[name] for name in ("href", "src", "xlink:href") if name in known]
        self.ids += [known["id"]] if "id" in known else []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data):
        self.words.append(data)
        if self._cell is not None:
            self._cell.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def line(read, *start):
    return next(row for row in read.rows if tuple(row[: len(start)]) == start)


def test_the_summary_counts_the_cells(read, folder):
    table = tables.build(PLAN, results.read(folder / f"{PLAN}.csv"), None, papers.tables())
    counted = pages.tally(table.compared)
    # for the gaussian kernel on cpu: the RMSE of kernel is equal, that of rf worse; other
    # quantities of both and those of sparse-rf are not judged
    assert (counted["equal"], counted["better"], counted["worse"]) == (1, 0, 1)
    assert counted["beside"] == 3 * 5 - 2 and counted["none"] == sum(
        cell["paper"] is not None and cell["ours"] is None for cell in table.cells
    )
    other = pages.tally(papers.tables()["yen2014-table2"].unrun())
    assert other["none"] > 50 and not any(
        number for kind, number in other.items() if kind != "none"
    )
    verdicts, summary = (row for row in read.rows if row and row[0] == "Yen et al. 2014")
    (yen,) = papers.folders(("yen2014",))
    assert sum(map(int, verdicts[1:])) == len(yen.claims)
    assert [int(text.replace(",", "")) for text in summary[2:8]] == [
        1,
        0,
        1,
        0,
        13,
        counted["none"] + other["none"],
    ]


def test_every_mark_is_that_of_rfx_table(read, folder):
    table = tables.build(PLAN, results.read(folder / f"{PLAN}.csv"), "paper", papers.tables())
    text = tables.render(table, "text")
    for section in table.sections:
        above = ""
        for texts in tables.texts(section):
            above = texts[0] or above
            if section.n_labels == 2:
                assert [above, *texts[1:]] in read.rows, texts
    cells = [text for row in read.rows for text in row if re.search(r"\d.* / ", text)]
    for mark in MARKS.values():
        assert sum(mark in text for text in cells) == sum(
            line.count(mark) for line in text.splitlines() if " / " in line
        )
    assert line(read, "gaussian", "RMSE")[2:] == [
        "0.0382 ± 0.0002 / 0.038 (=)",
        "0.0502 ± 0.0002 / 0.037 (-)",
        "0.0364* / 0.032",
    ]


def test_what_went_wrong_is_said(read):
    counted = line(read, PLAN)
    total = len(plan.load(PLAN, False, papers.plans()).runs)
    assert counted[1:] == [
        f"{PLAN}.csv",
        f"{total:,}",
        "11",
        f"{total - 14:,}",
        "2",
        "1",
        "0",
        "1",
        "0",
        "1",
    ]
    assert "2 failed, 1 timed out, 1 not converged, 1 torn lines" in read.text
    assert (
        "Torn: line 16 of yen2014-table1.csv, left short by a writer that was killed, is passed"
        " over" in read.text
    )
    assert line(read, "census16h", "rf", "failed")[3:] == ["1", "out of memory <b>&</b> patience"]
    assert line(read, "census16h", "rf", "timed out")[3:] == ["1", "not finished within 60 seconds"]
    assert line(read, "cpu", "sparse-rf", "not converged")[3:] == [
        "1",
        "the solver ended as max_iter",
    ]
    assert line(read, "cpu", "kernel", "not run")[4].startswith("not run yet")
    by_hand = line(read, "YearPredictionMSD", "rf", "not run")
    assert (
        by_hand[4].startswith("not run yet")
        and line(read, "YearPredictionMSD", "rf", "failed")[4] == "no public download"
    )


def test_it_says_what_to_type(read, folder):
    for command in (
        f"rfx run {PLAN} --results {folder}/{PLAN}.csv",
        f"rfx run {PLAN} --results {folder}/{PLAN}.csv --retry-failed",
        "rfx fetch YearPredictionMSD",
        f"rfx run yen2014-table2 --results {folder}/yen2014-table2.csv",
    ):
        assert command in read.text


def test_what_to_type_can_be_typed_whatever_the_folder_is_called(folder, tmp_path):
    place = tmp_path / "my $HOME results"
    shutil.copytree(folder, place)
    found = sources.coverage(PLAN, sources.find(place, PLAN), papers.plans(), str(place))
    runs = [command for _, command in found.commands if "rfx run" in command]
    assert all(f"{place}/{PLAN}.csv" in shlex.split(command) for command in runs)


def test_the_full_form_goes_before_the_small_one(read, folder, tmp_path):
    assert f"{PLAN} from {PLAN}.csv; {PLAN}-quick.csv is there too and not used" in read.text
    small = tmp_path / f"{PLAN}-quick.csv"
    small.write_text((folder / f"{PLAN}.csv").read_text())
    assert sources.find(tmp_path, PLAN).quick


def test_the_same_files_give_the_same_bytes(folder, page, tmp_path):
    for _ in range(2):  # a report replaces itself
        assert page_of_yen(folder, tmp_path / "again") == page


def test_it_stands_alone(read, page):
    assert len(page.encode()) < 5_000_000 and len(read.ids) == len(set(read.ids))
    assert all(link.startswith("#") for link in read.links), (
        "no figure was drawn, so that nothing lies beside the page"
    )
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert not re.search(
        r"https?://(?!www\.w3\.org/)", re.sub(r"<(pre|dd|td)[^>]*>.*?</\1>", "", page, flags=re.S)
    )


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
    labels = [line["cells"][0] for line in grid["lines"]]
    assert [label["parts"].ours for label in labels] == ["gaussian", "gaussian"]
    assert labels[1]["again"]
    assert grid["heads"][2] == ("RF", "rf")
    assert {line["dataset"] for line in grid["lines"]} == {"cpu"}


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


def plain(page):
    """The texts of a page, separated by spaces, without figures, styles and scripts."""
    page = re.sub(r"<(style|svg|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_a_page_of_any_results_file(tmp_path, written):
    failed = row("two", "rb", key="failed", status="failed", message="no <b>memory</b>", score=None)
    first = rows_of("one", "two")
    again = first[0] | {"status": "failed", "score": None, "message": "at first"}
    path, page = written([again, *first, failed]), tmp_path / "page" / "index.html"
    assert report(path, "-o", tmp_path / "page") == str(page)
    html = page.read_text()
    text = plain(html)
    assert "19 runs: 2 data sets, 4 methods, 3 seeds." in text, "of one key the last row"
    assert "18 done 1 failed" in text and "at first" not in text
    assert "0.9090 ± 0.0070!" in text or "0.9070 ± 0.0070!" in text
    for words in ("paired p", "rank by score", "1.00 ± 0.00!", "What went wrong", "a-plug-in"):
        assert words in text
    assert "no &lt;b&gt;memory&lt;/b&gt;" in html
    assert 'src="figures/pareto.svg"' in html
    for form in ("png", "svg", "pdf", "figure.csv"):
        assert (tmp_path / "page" / "figures" / f"pareto.{form}").exists()
    report(path, "-o", tmp_path / "page")
    assert page.read_text() == html, "the same rows give the same bytes"


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
    html = page_of(
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
    assert "Over a grid" in plain(html)
    assert '<img src="figures/grid.svg"' in html
