"""Tables and figures of Sinha and Duchi (2016) from rows of small runs."""

from dataclasses import replace

import pytest

from rfx import papers
from rfx.errors import DataError, UsageError
from rfx.papers.sinha2016 import curves
from rfx.records.run import Run
from rfx.reporting import figures, tables
from rfx.reporting.tables import texts
from rfx.runs import single

SPHERE = "sphere:n=400,n_test=200,d="


def ran(dataset, method, label, seed=0, **options):
    """The row of a run; its data set may be small."""
    spec = {"dataset": dataset, "method": method, "label": label, "seed": seed, "train_score": True}
    return single.execute(Run.of(spec | {"options": {"scaling": "none"} | options}))


@pytest.fixture(scope="module")
def rows():
    found = []
    for d in (2, 3):
        found += [
            ran(f"{SPHERE}{d}", "lkrf", "fig1", seed, pool=500, loss="logistic") for seed in (0, 1)
        ]
        found += [
            ran(f"{SPHERE}{d}", "rf", "fig1", seed, n_features=50, loss="logistic")
            for seed in (0, 1)
        ]
    for label, name in (("fig2", "motifs"), ("table1-tuned", "a9a")):
        for method, sizes in (("lkrf", (5, None)), ("rf", (5, 20, 40))):
            more = {"rho": 100} if method == "lkrf" else {}
            more |= {"lam": "validation"} if label == "table1-tuned" else {}
            for n_features in sizes:
                row = ran(
                    "motifs:n=300,n_test=100,d=12",
                    method,
                    label,
                    kernel="kmers",
                    k=2,
                    n_features=n_features,
                    **more,
                )
                found.append(replace(row, dataset=name))
    return found


def built(name, rows, setting=None):
    return tables.build(name, rows, setting, papers.tables())


def test_d_is_chosen_on_test_rows_only_where_that_is_asked_for(rows):
    """The errors on held-out training rows and on test rows are reversed: D follows those that the
    setting names.
    """

    def section(setting, held_out):
        own = []
        for row in rows:
            if row["params"]["label"] == "table1-tuned" and row["method"] == "rf":
                size = row["n_features"]
                step = row["params"]["validation"][-1] | {"tried": [[1.0, held_out[size]]]}
                own.append(replace(row, score=size / 100).with_params(validation=[step]))
        return built("sinha2016-table1", own, setting).sections[-1]

    for least in (5, 20, 40):
        held_out = {size: 0.1 if size == least else 0.2 for size in (5, 20, 40)}
        assert texts(section("tuned", held_out)) == texts(section(None, held_out))
        assert texts(section("tuned", held_out))[0][1:3] == [
            f"{least}",
            f"{100 - least}.00 / 15.44",
        ]
        by_test = section("test-selected", held_out)
        assert (
            texts(by_test)[0][1:3] == ["40", "60.00 / 15.44"]
            and "on the TEST rows" in by_test.title
        )
    assert texts(section("tuned", dict.fromkeys((5, 20, 40), 0.3)))[0][1] == "5"


def test_the_price_of_an_error():
    priced = lambda error, seconds: {"score": 1 - error / 100, "seconds_fit": seconds}
    cheap, dear = [priced(10.0, 1.0), priced(12.0, 1.0)], [priced(9.0, 5.0)]
    points = {10: cheap, 20: dear}
    assert curves.reach(points, 11.0) == (10, cheap)
    assert curves.reach(points, 10.0) == (20, dear)
    assert curves.reach(points, 8.0) is None
    assert curves.best(points) == (20, dear)
    assert curves.targets("other", [points, {5: cheap}, {}]) == [11.0, 9.0]


@pytest.mark.parametrize("name", ["sinha2016-fig1", "sinha2016-fig2", "sinha2016-table1"])
def test_figures(rows, name, tmp_path):
    paths = figures.draw(name, rows, tmp_path / "figure", builders=papers.figures())
    assert len(paths) == 4 and all(
        path.stat().st_size > 5000 for path in paths if path.suffix != ".csv"
    )
    text = next(path for path in paths if path.suffix == ".svg").read_text()
    assert ("fig1-chosen" in text) == (name == "sinha2016-fig1") and "lkrf" in text
    with pytest.raises(DataError, match=f"no finished rows of {name}"):
        figures.draw(name, [], tmp_path / "none", builders=papers.figures())


def test_settings(rows):
    with pytest.raises(
        UsageError, match="--setting other: sinha2016-table1 has tuned, paper, test-selected"
    ):
        built("sinha2016-table1", rows, "other")
    with pytest.raises(UsageError, match="sinha2016-fig1 has no settings"):
        built("sinha2016-fig1", rows, "tuned")
