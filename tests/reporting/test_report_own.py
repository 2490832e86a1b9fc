"""The page of one results file: tables over seeds, ranks, figures and problems of any rows."""

import re

import pytest
from click.testing import CliRunner
from test_tables import row

from rfx.cli import cli
from rfx.errors import DataError, UsageError
from rfx.records import results

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


def report(*words):
    done = CliRunner().invoke(cli, ["report", *map(str, words)], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.stdout.strip()


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
    path = written([again, *first, failed])
    said = report(path, "-o", tmp_path / "page")
    page = tmp_path / "page" / "index.html"
    assert said == str(page)
    text, html = plain(page.read_text()), page.read_text()
    assert "19 runs: 2 data sets, 4 methods, 3 seeds." in text, "of one key the last row"
    assert "18 done 1 failed" in text and "at first" not in text
    assert "0.9090 ± 0.0070!" in text or "0.9070 ± 0.0070!" in text
    assert "paired p" in text and "rank by score" in text and "1.00 ± 0.00!" in text
    assert "What went wrong" in text and "no &lt;b&gt;memory&lt;/b&gt;" in html
    assert 'src="figures/pareto.svg"' in html and "a-plug-in" in text
    for form in ("png", "svg", "pdf", "figure.csv"):
        assert (tmp_path / "page" / "figures" / f"pareto.{form}").exists()
    before = page.read_bytes()
    report(path, "-o", tmp_path / "page")
    assert page.read_bytes() == before, "the same rows give the same bytes"


def test_one_data_set_has_no_ranks_and_few_rows_few_figures(tmp_path, written):
    report(written(rows_of("one")[:1]), "-o", tmp_path / "page")
    text = plain((tmp_path / "page" / "index.html").read_text())
    assert "rank by" not in text and "What went wrong" not in text and "Along lambda" not in text


def test_rows_without_a_good_one_are_troubles_alone(tmp_path, written):
    report(
        written([row(key="x", status="timeout", score=None, message="not done")]),
        "-o",
        tmp_path / "page",
    )
    assert "1 timed out" in plain((tmp_path / "page" / "index.html").read_text())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none.csv", "-o", "new"), "no such results file"),
        (("other.csv", "-o", "new"), "is not an rfx results file"),
        (("own.csv", "--paper", "wu2016"), "--paper applies to the papers' report"),
        (("own.csv", "-o", "page"), "exists and"),
    ],
)
def test_what_is_no_results_file_is_refused(words, says, tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    written(rows_of("one"))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("mine")
    with pytest.raises((DataError, UsageError), match=says):
        report(*words)
    assert not (tmp_path / "new").exists()


def test_a_grid_of_two_options_is_drawn(tmp_path, written):
    rows = [
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
    report(written(rows), "-o", tmp_path / "page")
    html = (tmp_path / "page" / "index.html").read_text()
    assert "Over a grid" in plain(html)
    assert '<img src="figures/grid.svg"' in html
