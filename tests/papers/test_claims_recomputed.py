"""Every effect and interval of the claims, compared with those that pandas alone finds."""

import io

import pandas as pd
import pytest
import recompute_claims
from click.testing import CliRunner

from rfx.cli import cli


@pytest.fixture(scope="module")
def both(request):
    folder = request.config.rootpath / "docs" / "rows"
    done = CliRunner().invoke(cli, ["table", "claims", "--results", str(folder), "--format", "csv"])
    table = pd.read_csv(io.StringIO(done.stdout)).dropna(subset="case")
    keys = ["paper", "claim", "case"]
    return recompute_claims.everything().merge(
        table, "outer", keys, suffixes=("", "_rfx"), indicator=True
    )


def test_both_have_the_same_cases(both):
    assert list(both[both._merge != "both"].case) == []


@pytest.mark.parametrize("number", ["mean", "low", "high", "seeds"])
def test_numbers_agree(both, number):
    expected = both[f"{number}_rfx"].astype(float).tolist()
    assert both[number].astype(float).tolist() == pytest.approx(
        expected, rel=1e-6, abs=1e-9, nan_ok=True
    )


def test_limits_agree(both):
    assert both.limit.fillna("").tolist() == both.limit_rfx.fillna("").tolist()
