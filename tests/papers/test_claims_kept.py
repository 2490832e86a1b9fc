"""Every effect, interval and verdict of the claims from docs/rows is as kept in claims.csv. An
audit once found the same numbers with pandas and scipy alone.

`python tests/papers/test_claims_kept.py` writes the file anew, for new rows or claims.
"""

import io
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from rfx.cli import cli

ROWS = Path(__file__).resolve().parents[2] / "docs" / "rows"
KEPT = Path(__file__).with_name("claims.csv")
NUMBERS = ["mean", "low", "high", "seeds"]
WORDS = ["paper", "claim", "verdict", "case", "holds", "limit"]


def from_rows():
    words = ["table", "claims", "--results", str(ROWS), "--format", "csv"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    return pd.read_csv(io.StringIO(done.stdout))[WORDS + NUMBERS]


def test_effects_and_verdicts_are_as_kept():
    found, kept = from_rows(), pd.read_csv(KEPT)
    pd.testing.assert_frame_equal(found[WORDS], kept[WORDS])
    for name in NUMBERS:
        expected = pytest.approx(kept[name].tolist(), rel=1e-6, abs=1e-9, nan_ok=True)
        assert found[name].tolist() == expected


if __name__ == "__main__":
    from_rows().to_csv(KEPT, index=False)
