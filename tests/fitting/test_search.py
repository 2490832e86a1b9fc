"""The search for options, on cheap functions: which points are tried, in which order, and which is
best.
"""

import math
import time

import pytest

from rfx.errors import DataError, UsageError
from rfx.fitting.selection import (
    Measure,
    Point,
    SearchBudget,
    SearchGrid,
    SearchRound,
    Size,
    Trial,
    search,
)

ERROR = Measure("error")


def points(*values, method="m"):
    return [Point(method, {"gamma": value}) for value in values]


def grid(found, lams=(1.0,), rounds=(SearchRound(100),), **more):
    return SearchGrid(found, {point.method: lams for point in found}, rounds, **more)


def bowl(centre):
    """An error that is smallest where gamma is `centre`, for every lambda."""
    return lambda point, round, lams: [abs(math.log(point["gamma"] / centre)) + 1 for _ in lams]


@pytest.mark.parametrize(
    "measure, expected",
    [
        (ERROR, (2, "b")),
        (Measure("score", larger=True), (1, "a")),
        (Measure("error", target=0.6), (1, "b")),
    ],
)
def test_the_first_of_the_best_is_taken_and_never_one_that_is_not_finite(measure, expected):
    values = {1: [0.9, 0.6], 2: [0.9, 0.1], 3: [math.nan, 0.1], 4: [math.inf, -math.inf]}
    found = search(
        lambda point, round, lams: values[point["gamma"]], grid(points(1, 2, 3, 4), "ab"), measure
    )
    assert (found.best.point["gamma"], found.best.lam) == expected and len(found.trials) == 4
    step = found.step(True, 50)
    assert step["chosen"] == list(expected) and step["options"] == ["gamma", "lam"]
    assert step["tried"][:3] == [[1, "a", 0.9], [1, "b", 0.6], [2, "a", 0.9]]
    assert (step["by"], step["fitted"], step["held_out"], step["error"]) == (
        "m",
        100,
        50,
        measure.name,
    )


def test_the_best_points_go_on_and_then_bandwidth_and_size_are_moved_from_the_best():
    def fit(point, round, lams):
        return [bowl(6.0)(point, round, lams)[0] + 1 / point["size"]]

    rounds = [SearchRound(10, 1, 0, 2), SearchRound(100, 3, 1)]
    asked = grid(
        points(1.0, 4.0, 16.0),
        (1.0,),
        rounds,
        sizes={"m": Size("size", (1, 2), 16)},
        halved="gamma",
    )
    found = search(fit, asked, ERROR)
    tried = [(one.round.number, one.point["gamma"], one.point["size"]) for one in found.trials]
    assert tried[:5] == [(0, 1.0, 1), (0, 4.0, 1), (0, 16.0, 1), (1, 4.0, 2), (1, 16.0, 2)]
    # half and twice, then the size up to its bound, then around the best at that size
    assert tried[5:] == [
        (1, 2.0, 2),
        (1, 8.0, 2),
        (1, 8.0, 4),
        (1, 8.0, 8),
        (1, 8.0, 16),
        (1, 4.0, 16),
        (1, 16.0, 16),
    ]
    assert found.best.point == Point("m", {"gamma": 8.0, "size": 16})


def test_a_path_starts_a_little_above_the_best_and_is_made_whole_where_that_is_at_its_end():
    asked, lams = [], (5.0, 4.0, 3.0, 2.0, 1.0)
    best = {1: 1.0, 2: 2.0, 3: 5.0}

    def fit(point, round, own):
        asked.append(tuple(own))
        return [abs(lam - best[point["gamma"]]) for lam in own]

    found = search(fit, grid(points(1, 2, 3), lams, above=2), ERROR)
    assert asked == [lams, lams[2:], lams[1:], lams]
    assert [one.lam for one in found.trials] == [1.0, 2.0, 5.0]


def test_trials_and_seconds_are_bounded_and_what_is_known_costs_nothing():
    there = Trial(points(2)[0], SearchRound(100), ((1.0, 0.5),), 1.0, 0.5, 0.0)
    known = lambda point, round: there if point == there.point else None
    told = []
    found = search(
        bowl(1.0),
        grid(points(1, 2, 3)),
        ERROR,
        SearchBudget(trials=1),
        known,
        lambda *one: told.append(one),
    )
    assert [one.point["gamma"] for one in found.trials] == [1, 2] and found.best is there
    assert [seen for _, seen in told] == [False, True]
    # the first is tried whatever it costs
    assert (
        len(
            search(
                bowl(1.0), grid(points(1, 2, 3)), ERROR, SearchBudget(time.monotonic() - 1)
            ).trials
        )
        == 1
    )
    with pytest.raises(UsageError, match="no combination"):
        search(bowl(1.0), grid(points(1)), ERROR, SearchBudget(trials=0))


def test_a_point_that_can_t_be_fitted_is_an_error_or_left_out():
    def fit(point, round, lams):
        if point["gamma"] == 2:
            raise DataError("two")
        return [1.0]

    assert len(search(fit, grid(points(1, 2), lenient=True), ERROR).trials) == 1
    assert (
        len(search(fit, grid(points(2) + points(1, method="n"), lenient=True), ERROR).trials) == 1
    )
    for asked in (grid(points(1, 2)), grid(points(2, 1), lenient=True)):
        with pytest.raises(DataError, match="two"):
            search(fit, asked, ERROR)


def test_a_budget_of_work_does_not_depend_on_time_and_says_what_it_left_out():
    def slow(seconds):
        return lambda point, round, lams: [time.sleep(seconds) or 1.0 for _ in lams]

    asked = grid(points(1, 2, 3, 4))
    work = 2.5 * asked.work(asked.points[0], SearchRound(100))
    for seconds in (0.0, 0.05):
        found = search(slow(seconds), asked, ERROR, SearchBudget(work=work))
        assert [one.point["gamma"] for one in found.trials] == [1, 2]
        assert found.cut["work"] == 2
        assert "2 trials" in found.limits[0]


@pytest.mark.parametrize("together", [False, True])
def test_a_search_that_time_stopped_says_so(together):
    late = SearchBudget(time.monotonic() - 1)
    found = search(bowl(1.0), grid(points(1, 2, 3)), ERROR, late, together=together)
    assert "another run may differ" in found.limits[0]
    assert "2 trials" in found.limits[0]


def test_a_search_in_which_no_point_can_be_fitted_raises_their_error():
    def fit(point, round, lams):
        raise DataError("one row of each class")

    asked = grid(points(1) + points(1, method="n"), lenient=True)
    with pytest.raises(DataError, match="one row of each class"):
        search(fit, asked, ERROR)
