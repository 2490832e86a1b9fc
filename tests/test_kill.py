"""A dozen kills; `python tests/kill.py 1000` makes as many as there is time for."""

import random

import pytest
from kill import Jobs, kill


@pytest.mark.parametrize("name, count", [("train", 4), ("run", 4)])
def test_a_kill_loses_nothing(tmp_path, name, count):
    kill(Jobs(tmp_path), name, count, random.Random(name))
