"""Inputs for models with their own treatment of words and missing cells."""

import numpy as np
import pytest

from rfx import data
from rfx.data.reading import Reading
from rfx.data.tabular.native import native_inputs

# Two letters, sizes and dates with gaps, and 50 towns, with which target means begin.
LINES = [
    f"{'ab'[number % 2]},{'' if number == 3 else number},"
    f"{'' if number == 4 else f'2020-01-{1 + number % 28:02}'},"
    f"{'' if number == 5 else f'town {number % 50:02}'},{number * 1.5}"
    for number in range(150)
]
NAN = np.nan


@pytest.fixture
def split(tmp_path):
    """The training rows, and a row with a town, a letter and cells that they lack."""
    header = "letter,size,day,town,target"
    (tmp_path / "t.csv").write_text("\n".join([header, *LINES]))
    (tmp_path / "new.csv").write_text(f"{header}\nc,,,town 99,1.5\na,7,2020-01-03,town 02,1.5\n")
    reading = Reading(target="target")
    return data.load(tmp_path / "t.csv", reading=reading, test=tmp_path / "new.csv")


def test_words_become_category_numbers_and_gaps_stay(split):
    table, _ = split.source
    inputs, categorical = native_inputs(split.schema, split.X_train, table)
    assert categorical.tolist() == [True, False, False, False, False, False, True]
    assert inputs[:2, 0].tolist() == [0, 1]
    np.testing.assert_array_equal(inputs[2:5, 1], [2, NAN, 4])
    np.testing.assert_array_equal(inputs[4, 2:6], [NAN] * 4)
    assert inputs[0, 2:5].tolist() == [2020, 1, 2]  # a Wednesday
    np.testing.assert_array_equal(inputs[[0, 5, 149], 6], [0, NAN, 49])


def test_what_training_lacked_is_missing_in_other_rows(split):
    inputs, _ = native_inputs(split.schema, split.X_test, split.test_source)
    np.testing.assert_array_equal(inputs[0], [NAN] * 7)
    assert inputs[1, [0, 1, 2, 6]].tolist() == [0, 7, 2020, 2]


def test_without_a_table_filled_cells_and_target_means_stay(split):
    inputs, categorical = native_inputs(split.schema, split.X_train)
    assert categorical.tolist() == [True] + [False] * 6
    np.testing.assert_array_equal(inputs[:, 1:], split.X_train[:, 2:])


def test_more_categories_than_boosting_takes_stay_target_means(tmp_path):
    rows = [f"town {number % 300},{number % 7}" for number in range(900)]
    rows[0] = ",3"
    (tmp_path / "many.csv").write_text("\n".join(["town,target", *rows]))
    split = data.load(tmp_path / "many.csv", reading=Reading(target="target"), task="regression")
    inputs, categorical = native_inputs(split.schema, split.X_train, split.source[0])
    assert categorical.tolist() == [False]
    assert np.isnan(inputs[0])
    np.testing.assert_array_equal(inputs[1:], split.X_train[1:])
