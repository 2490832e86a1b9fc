"""What counts as a number in a text: less than Python accepts, and the same everywhere in rfx."""

import math

import pytest

from rfx import numerals
from rfx.data import libsvm
from rfx.data.loading import read_weights
from rfx.errors import DataError, UsageError
from rfx.options import LabelWeights, Option, Path, Widths
from rfx.plans.plan import matches

# int() and float() accept these, rfx does not
ODD = ["1_0", "1_000", "٣", "１２", "1_0.5", "1e1_0", "߂"]


@pytest.mark.parametrize("text", ["7", "+7", "-7.5", ".5", "5.", "1e3", "1.5E-3", " 7 ", "\t7\r\n"])
def test_numbers_are_what_python_has(text):
    assert numerals.real(text) == float(numerals.exact(text)) == float(text)


@pytest.mark.parametrize("text", ["nan", "NaN", "-inf", "Infinity"])
def test_words_for_no_number_are_real_and_not_exact(text):
    assert not math.isfinite(numerals.real(text))
    with pytest.raises(ValueError):
        numerals.exact(text)


@pytest.mark.parametrize("text", [*ODD, "", " ", "x", "1,5", "0x10", "1 0", "--1", "1e", "\u00a07"])
def test_other_texts_are_no_numbers(text):
    for read in (numerals.real, numerals.whole, numerals.exact):
        with pytest.raises(ValueError):
            read(text)


@pytest.mark.parametrize("text", ODD)
def test_nothing_reads_a_number_that_only_python_has(text, tmp_path):
    for kind in (int, float):
        with pytest.raises(UsageError, match="--size is"):
            Option("size", kind, "").convert(text)
    for read in (
        lambda: Path.values(f"{text}:1:5"),
        lambda: Path.values(f"1000:1:{text}"),
        lambda: LabelWeights.values(f"a:{text}"),
        lambda: Widths.values(f"5,{text}"),
    ):
        with pytest.raises(ValueError):
            read()
    (tmp_path / "w.txt").write_text(f"1\n{text}\n")
    with pytest.raises(DataError, match=r"w\.txt, line 2: .* is not a weight"):
        read_weights(tmp_path / "w.txt", 2)
    assert libsvm._label_number(text.encode()) is None
    assert matches({"n_features": 10}, {"n_features": "1e1"})
    assert not matches({"n_features": 10}, {"n_features": text})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01234567, "0.01235"),
        (0.5, "0.5000"),
        (99.9996, "100.0"),
        (9.05e-10, "9.050e-10"),
        (123456.7, "123457"),
        (1.3e40, "1.300e+40"),
        (-2.5, "-2.500"),
        (0.0, "0"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_a_measured_number_has_significant_digits(value, text):
    assert numerals.significant(value) == text
