"""Options: conversion of values, refused values, and the help of an option that several methods
share. What counts as a number in a text: less than Python accepts, the same everywhere in rfx.
"""

import math

import pytest

from rfx import methods, numerals
from rfx.data import libsvm
from rfx.data.loading import read_weights
from rfx.errors import DataError, UsageError
from rfx.options import Declared, LabelWeights, Option, Path, Widths, path_names, union
from rfx.plans.plan import Condition

LARGEST = 2**63 - 1
OPTIONS = {option.name: option for option in methods.options_of(None)}


def test_an_annotation_without_an_option_is_refused():
    with pytest.raises(TypeError, match="write depth: int = option"):

        class Shallow(Declared):
            depth: int = 3


@pytest.mark.parametrize(
    "value, number",
    [
        ("9007199254740993", 2**53 + 1),
        (str(LARGEST), LARGEST),
        (LARGEST, LARGEST),
        ("1e3", 1000),
        ("7.0", 7),
        (7.0, 7),
        ("0", 0),
    ],
)
def test_whole_numbers_are_exact(value, number):
    converted = OPTIONS["seed"].convert(value)
    assert (converted, type(converted)) == (number, int)


@pytest.mark.parametrize(
    "name", ["seed", "n_features", "n_grids", "rounds", "block_size", "max_iter"]
)
@pytest.mark.parametrize(
    "value",
    ["1e300", "1e999999999999", str(2**63), "1.5", "-1", "nan", "snan", "inf", "x", "", True, None],
)
def test_other_whole_numbers_are_refused(name, value):
    with pytest.raises(
        UsageError,
        match=r"it must be a whole number [01] or more and at most \d+( or validation)?$",
    ):
        OPTIONS[name].convert(value)


def test_a_timeout_that_the_system_can_t_wait_for_is_refused():
    with pytest.raises(
        UsageError, match="--timeout is '1e300'; it must be a number above 0 and at most 2e[+]06"
    ):
        OPTIONS["timeout"].convert("1e300")


@pytest.mark.parametrize("text", ["1000:1:4", "1e300:1e-300:5", "1.0003:1:4", "1:5e-324:2"])
def test_a_path_falls_from_its_first_to_its_last_number(text):
    values = Path.values(OPTIONS["lam_path"].convert(text))
    high, low, count = text.split(":")
    assert (values[0], values[-1], len(values)) == (float(high), float(low), int(count))
    ratios = [after / before for before, after in zip(values, values[1:])]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-9) and ratios[0] < 1
    assert len(set(path_names(values))) == len(values)


@pytest.mark.parametrize(
    "text",
    [
        "1:1:2",
        "1:2:3",
        "1:0:3",
        "inf:1:3",
        "nan:1:3",
        "2:1:1",
        "2:1:99999",
        "x",
    ],
)
def test_other_paths_are_refused(text):
    with pytest.raises(UsageError, match="--lam-path is .* such as 1000:1:20"):
        OPTIONS["lam_path"].convert(text)


def test_an_option_of_several_methods_allows_what_each_of_them_does():
    one = Option(
        "size", int, "The size. Of one thing.", {"auto": "as it comes"}, low=2, high=5, default=3
    )
    both = union(
        [
            ("a", one),
            (
                "b",
                one.replace(
                    help="The size. Of another.",
                    choices=("auto", "none"),
                    low=1,
                    high=4,
                    default=None,
                ),
            ),
        ]
    )
    assert both.description() == "The size. Of one thing (a). Of another (b). auto: as it comes."
    assert both.expects() == "a whole number 1 or more and at most 5 or one of auto, none"
    assert (both.convert("1"), both.convert("5"), both.convert("none"), both.default) == (
        1,
        5,
        "none",
        None,
    )


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
    assert Condition.of({"n_features": "1e1"}).holds({"n_features": 10})
    assert not Condition.of({"n_features": text}).holds({"n_features": 10})


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
