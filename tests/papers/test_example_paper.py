"""A paper is a folder: `folders/example2007` has a plan, a table, a figure and two claims in at
most 120 lines, and no list elsewhere names it.
"""

from pathlib import Path

import pytest

from rfx.plans import plan
from rfx.records.run import Result
from rfx.reporting import claims, figures, tables

FOLDER = Path(__file__).parent / "folders" / "example2007"


@pytest.fixture
def example(add_paper):
    """The folder among the papers."""
    return add_paper(FOLDER)


def row(method, seed, error, n_features=None):
    given = {
        "status": "ok",
        "dataset": "sphere",
        "method": method,
        "n_features": n_features,
        "seed": seed,
        "metric": "accuracy",
        "score": 1 - error,
        "params": {},
    }
    return Result(**given)


ROWS = [row("rf", seed, 0.12 + noise, 64) for seed, noise in enumerate((-0.001, 0.0, 0.001))]
ROWS += [row("rf", seed, 0.10 + noise, 256) for seed, noise in enumerate((-0.001, 0.0, 0.001))]
ROWS += [row("kernel", seed, 0.10) for seed in range(3)]


def test_a_paper_takes_120_lines():
    files = [path for path in FOLDER.rglob("*") if path.suffix in (".py", ".toml", ".csv")]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 120


def test_the_table_has_ours_beside_the_papers(example):
    table = tables.build("example2007-table1", ROWS, None, example.tables)
    assert tables.texts(table.sections[0]) == [
        ["sphere", "11.0 ± 1.1 / 12.0 (?)", "10.0 ± 0.0 / 10.0 (=)"]
    ]
    assert [cell["paper"] for cell in table.cells] == [12.0, 10.0]


def test_the_figure_has_a_mean_for_each_number_of_features(example):
    chart = example.figures["example2007-figure1"](ROWS)
    points = [(point["x"], round(point["y"], 3)) for point in figures.numbers(chart)]
    assert points == [(64, 0.12), (256, 0.1)]


def test_the_claims_are_judged_by_the_rows_of_the_plan(example):
    ((_, judged),) = claims.judged([example], lambda plan: ROWS)
    verdicts = {one.claim.name: one.verdict for one in judged}
    assert verdicts == {"error-falls": claims.REPRODUCED, "close-to-exact": claims.EQUIVALENT}


def test_the_plan_has_the_runs(example):
    loaded = plan.load("example2007-table1", known=example.plans)
    assert [(run.method, run.seed) for run in loaded.runs[-4:]] == [
        ("rf", 2),
        *(("kernel", seed) for seed in range(3)),
    ]
