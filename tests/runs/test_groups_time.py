"""`--groups` and `--time` of rfx train and rfx tune: the rows on either side, messages, the key,
errors.
"""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shell import printed, run

from rfx import methods
from rfx.data.training_table import TrainingTable
from rfx.plans import plan
from rfx.records.run import Run
from rfx.runs import baselines, single

FAST = ("--method", "rf", "--n-features", 60, "--scaling", "none", "--metric", "none", "--kernel")
FAST += ("gaussian", "--gamma", 1)


@pytest.fixture(scope="module")
def visits():
    """240 rows, who each is of, and a label of each of the 40 people, whose rows are close."""
    rng = np.random.default_rng(0)
    who = rng.permutation(np.arange(240) // 6)
    centres, labels = rng.normal(size=(40, 4)), rng.permutation(np.tile(["no", "yes"], 20))
    X = centres[who] + 0.01 * rng.normal(size=(240, 4))
    return SimpleNamespace(X=X, who=who, labels=labels)


@pytest.fixture
def people(tmp_path, visits):
    """Inputs that identify the group; all rows of a group have one label."""
    lines = [
        ",".join([f"p{who}", *(f"{x:.5f}" for x in row), visits.labels[who]])
        for who, row in zip(visits.who, visits.X)
    ]
    (tmp_path / "people.csv").write_text("\n".join(["who,a,b,c,d,sick", *lines]))
    return tmp_path / "people.csv"


@pytest.fixture
def days(tmp_path, visits):
    """Targets that are the day."""
    first = np.datetime64("2024-01-01")
    lines = [
        f"{first + who},{x[0]:.5f},{x[1]:.5f},{who + 0.5}" for who, x in zip(visits.who, visits.X)
    ]
    (tmp_path / "days.csv").write_text("\n".join(["day,a,b,y", *lines]))
    return tmp_path / "days.csv"


@pytest.fixture
def sides(monkeypatch):
    """The rows of each part that was held out."""
    found, part = [], TrainingTable.part

    def watched(self, kept, out):
        found.append((kept, out))
        return part(self, kept, out)

    monkeypatch.setattr(TrainingTable, "part", watched)
    return found


def train(capfd, *args):
    return json.loads(printed(capfd, "train", *FAST, "--lam", 0.1, "--json", *args))


@pytest.mark.parametrize(
    "more, words, count",
    [
        (("--cv", 3), "3-fold cross-validation by groups", 3),
        (("--holdout", 0.2), "held out, 0.2 of the training rows by groups", 1),
        (("--calibrate", "platt"), "5-fold cross-validation by groups", 5),
        ((), "5-fold cross-validation by groups", 5),
    ],
)
def test_groups_are_on_one_side_and_the_score_is_chance(
    capfd, people, sides, more, words, count, visits
):
    row = train(capfd, "--data", people, "--groups", "who", *more)
    assert len(sides) == 2 * count  # those of the model, and of the simple models
    for kept, out in sides:
        assert not set(visits.who[kept]) & set(visits.who[out]) and len(out)
    assert row["params"]["baseline"]["on"] == f"the same {row['n_test']} rows"
    assert row["n_inputs"] == 4
    assert row["params"]["groups"] == "who"
    assert row["params"]["scored_on"] == words
    assert row["score"] < 0.8
    plain = train(capfd, "--data", people, "--ignore", "who", *more)
    assert plain["score"] > 0.95
    assert "by groups" not in plain["params"]["scored_on"]


@pytest.mark.parametrize(
    "more, words, held",
    [
        (("--cv", 4), "4 growing windows by time", 4 * 48),
        (("--holdout", 0.2), "held out, the last 20 % by time", 48),
    ],
)
def test_held_out_rows_are_later(capfd, days, sides, more, words, held, visits):
    row = train(capfd, "--data", days, "--task", "regression", "--time", "day", *more)
    for kept, out in sides:
        assert visits.who[kept].max() < visits.who[out].min()
    assert row["params"]["scored_on"] == words and row["n_test"] == held
    assert row["params"]["baseline"]["on"] == f"the same {held} rows"
    constant = row["params"]["baseline"]["constant"]
    assert row["params"]["constant_score"] == constant, "learnt from earlier rows alone"


@pytest.mark.parametrize(
    "option, how", [("groups", ("--cv", 3)), ("groups", ()), ("time", ("--holdout", 0.3))]
)
def test_tune_keeps_rows_apart(capfd, people, days, sides, option, how, visits):
    data, column = {"groups": (people, "who"), "time": (days, "day")}[option]
    words = ("tune", *FAST, "--data", data, f"--{option}", column, *how, "--json")
    row = json.loads(printed(capfd, *words))
    assert row["params"]["choice_on"] == f"the held-out rows of the search by {option}"
    assert f"--{option} {column}" in row["command"]
    assert len(sides) > 1
    for kept, out in sides:
        assert visits.who[kept].max() < visits.who[out].min() or option == "groups"
        assert not set(visits.who[kept]) & set(visits.who[out])
    assert option == "time" or row["params"]["choice_score"] < 0.85


def test_the_model_takes_rows_with_and_without_the_column(capfd, people):
    model = people.parent / "m.npz"
    train(capfd, "--data", people, "--groups", "who", "--model", model)
    (people.parent / "bare.csv").write_text(
        "\n".join(line.partition(",")[2] for line in people.read_text().splitlines())
    )
    found = [
        run(capfd, "predict", model, people.parent / name) for name in ("people.csv", "bare.csv")
    ]
    assert found[0] == found[1] and found[0][0] == 0 and not found[0][2]
    assert methods.load(model).schema.ignored == ("who",)


def test_a_plan_has_the_column(people):
    text = f'[[run]]\ndataset = "{people.name}"\nmethod = "rf"\ncv = 3\ngroups = "who"\n'
    (people.parent / "p.toml").write_text(text + "options.lam = 1\noptions.n_features = 20\n")
    (one,) = plan.load(people.parent / "p.toml").runs
    assert one.groups == "who"
    assert single.execute(one).params["scored_on"] == "3-fold cross-validation by groups"


def test_the_simple_models_need_two_groups(people):
    one = Run(dataset=str(people), method="rf", groups="who", options={"lam": 1.0})
    trained = single.train(one)
    table = trained.table
    table = replace(table, constraint=table.constraint.rows(np.zeros(240, int)))
    assert baselines.baseline_scores(one, table, trained.model) is None


@pytest.mark.parametrize(
    "line, message",
    [
        ("rf --groups who --time a", "--groups is who and --time is a; use only one"),
        ("rf --groups who --cv 41", "--cv 41 needs 41 groups at least, but there are 40"),
        ("rf --time a --cv 900", "--cv 900 needs 901 different times at least, but there"),
        ("rf --groups whom", "--groups is 'whom', which is not a column"),
        ("rf --groups who --scheduler local:1", "--groups needs all rows in one process"),
        ("rf --groups=", "--groups is ''"),
        ("norma --stream --time a", "--time needs all rows in memory; omit --stream"),
    ],
)
def test_what_is_refused(capfd, people, line, message):
    code, _, err = run(capfd, "train", "--data", people, "--method", *line.split())
    assert code and message in err.splitlines()[-1]
