"""The tables and claims made of docs/rows are those kept in tests/papers/kept, and the plans still
ask for these rows.

`python tests/papers/test_kept.py` writes them anew; the difference shows what a change does to
them. An audit once found the effects of the claims with pandas and scipy alone.
"""

import io
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from rfx import env, papers
from rfx.cli import cli
from rfx.plans import plan
from rfx.records import keys, results
from rfx.reporting.cells import settings_of
from rfx.reporting.report import page
from rfx.reporting.tables import render

ROWS = Path(__file__).resolve().parents[2] / "docs" / "rows"
KEPT = Path(__file__).with_name("kept")
NUMBERS = ["mean", "low", "high", "seeds"]
WORDS = ["paper", "claim", "verdict", "case", "holds", "limit"]


def tables_of(paper):
    """All tables of a paper as text, in every setting with rows."""
    folder, texts = papers.folder(paper), []
    for name, builder in folder.tables.items():
        rows = page.find(ROWS, page.plan_of(folder, name)).rows
        settings = settings_of(builder, rows) or [None]
        for setting in settings if rows else ():
            texts.append(f"{name}\n\n{render(builder(rows, setting), 'text')}")
    return "\n".join(texts)


def keys_of(name):
    """The keys of the runs of a plan in all its forms."""
    known = papers.plans()
    forms = [form for form in (name, f"{name}-full", f"{name}-quick") if form in known]
    return {keys.key(run) for form in forms for run in plan.load(form, known=known).runs}


def claims():
    words = ["table", "claims", "--results", str(ROWS), "--format", "csv"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    return pd.read_csv(io.StringIO(done.stdout))[WORDS + NUMBERS]


@pytest.mark.parametrize(
    "name", [name for name in papers.plans() if (ROWS / f"{name}.csv").exists()]
)
def test_the_plan_asks_for_its_rows(name, monkeypatch):
    # the cores of the machine of the rows
    monkeypatch.setattr(env, "threads", lambda: 2)
    rows = results.read(ROWS / f"{name}.csv")
    assert {row["key"] for row in rows if row["status"] == "ok"} <= keys_of(name)


@pytest.mark.parametrize("paper", papers.names())
def test_tables_are_as_kept(paper):
    assert tables_of(paper) == (KEPT / f"{paper}.txt").read_text(encoding="utf-8")


def test_effects_and_verdicts_are_as_kept():
    found, kept = claims(), pd.read_csv(KEPT / "claims.csv")
    pd.testing.assert_frame_equal(found[WORDS], kept[WORDS])
    for name in NUMBERS:
        expected = pytest.approx(kept[name].tolist(), rel=1e-6, abs=1e-9, nan_ok=True)
        assert found[name].tolist() == expected


if __name__ == "__main__":
    claims().to_csv(KEPT / "claims.csv", index=False)
    for name in papers.names():
        (KEPT / f"{name}.txt").write_text(tables_of(name), encoding="utf-8")
