"""Gradient boosting beside a model has the table as it was read."""

import json

import numpy as np
import pandas
import pytest
from shell import printed
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from rfx.fitting.held_out import Splitter

FAST = "--method rf --gamma 1 --lam 1 --n-features 20 --metric none --scaling none".split()


@pytest.fixture
def frame():
    """Rents by town (60 words, 3 % missing), heating (3 words), size (a fifth missing) and day."""
    rng = np.random.default_rng(0)
    count = 400
    town, heating = rng.integers(0, 60, count), rng.integers(0, 3, count)
    size, day = rng.normal(size=count).round(2), rng.integers(0, 900, count)
    rent = (town % 7) + heating + size + day / 300 + rng.normal(0, 0.1, count)
    table = pandas.DataFrame({"town": [f"town {n:02}" for n in town]})
    table["heating"] = np.array(["gas", "oil", "wood"])[heating]
    table["size"] = size
    table["day"] = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(day, "D")
    table["rent"] = rent.round(3)
    table.loc[rng.uniform(size=count) < 0.2, "size"] = np.nan
    table.loc[rng.uniform(size=count) < 0.03, "town"] = None
    return table


def native(frame):
    """The inputs as pandas has them: categories by their type, gaps as nan, dates as numbers."""
    day = frame["day"].dt
    inputs = frame[["town", "heating"]].astype("category")
    inputs["size"] = frame["size"]
    inputs["year"], inputs["month"], inputs["weekday"] = day.year, day.month, day.day_of_week
    inputs["days"] = (frame["day"] - pandas.Timestamp("1970-01-01")).dt.days
    return inputs


def boosting(capfd, *words):
    """The score of gradient boosting beside a model."""
    row = json.loads(printed(capfd, "train", *FAST, "--target", "rent", "--json", *words))
    return row["params"]["baseline"]["boosting"]


def test_boosting_has_words_and_gaps_of_its_own_for_test_rows(frame, tmp_path, capfd):
    frame[:300].to_csv(tmp_path / "then.csv", index=False)
    frame[300:].to_csv(tmp_path / "now.csv", index=False)
    found = boosting(capfd, "--data", tmp_path / "then.csv", "--test", tmp_path / "now.csv")
    inputs = native(frame)
    model = HistGradientBoostingRegressor(early_stopping=False, random_state=0)
    predicted = model.fit(inputs[:300], frame["rent"][:300]).predict(inputs[300:])
    rmse = np.sqrt(np.mean((predicted - frame["rent"][300:]) ** 2))
    assert found == pytest.approx(rmse)


def test_boosting_has_words_and_gaps_of_its_own_in_folds(frame, tmp_path, capfd):
    frame["rent"] = np.where(frame["rent"] > 5, "high", "low")
    frame.to_csv(tmp_path / "all.csv", index=False)
    found = boosting(capfd, "--data", tmp_path / "all.csv", "--cv", 3)
    inputs, y = native(frame), (frame["rent"] == "low").to_numpy().astype(float)
    right = []
    for kept, out in Splitter(len(y), 0).folds(y, cv=3):
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        model.fit(inputs.iloc[kept], y[kept])
        right.append(model.predict(inputs.iloc[out]) == y[out])
    assert found == np.mean(np.concatenate(right))
