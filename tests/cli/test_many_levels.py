"""A column with hundreds of categories: the printed score is that of new rows."""

import json

import numpy as np
import pandas as pd
import pytest
from shell import printed

ROWS, PLACES = 500, 200


def places(effect: float) -> pd.DataFrame:
    """Twice ROWS rows of a place, whose effect on the target has that deviation, and a number."""
    rng = np.random.default_rng(3)
    place, number, noise = rng.integers(PLACES, size=2 * ROWS), *rng.normal(size=(2, 2 * ROWS))
    target = effect * rng.normal(size=PLACES)[place] + number + noise
    names = [f"place {code}" for code in place]
    return pd.DataFrame({"place": names, "number": number, "target": target})


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 2.0])
def test_the_printed_score_is_not_too_good(effect, tmp_path, capfd):
    table = places(effect)
    table[:ROWS].to_csv(tmp_path / "train.csv", index=False)
    table[ROWS:].to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model.npz"
    command = "train", "--data", tmp_path / "train.csv", "--model", model, "--no-baseline"
    told = json.loads(printed(capfd, *command, "--json"))
    new = json.loads(printed(capfd, "eval", model, "--data", tmp_path / "new.csv", "--json"))
    assert told["params"]["scored_on"].startswith("by ")
    assert told["score"] == pytest.approx(new["score"], rel=0.1)
