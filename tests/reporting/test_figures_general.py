"""Figures of any results file: what is drawn where, what is marked best, and what can't be
drawn.
"""

import itertools

import pytest
from matplotlib.markers import MarkerStyle

from rfx.errors import DataError, UsageError
from rfx.reporting import figures, style
from rfx.reporting import figures_general as general


def row(method="rf", score=0.5, dataset="a", seconds=1.0, metric="accuracy", **given):
    options = {
        name: value
        for name, value in given.items()
        if name not in ("seed", "model_size", "validation")
    }
    return {
        "key": repr((method, dataset, given)),
        "status": "ok",
        "dataset": dataset,
        "split": None,
        "method": method,
        "kernel": "gaussian",
        "solver": "rfx",
        "lam": given.get("lam"),
        "n_features": given.get("n_features"),
        "seed": given.get("seed", 0),
        "threads": 2,
        "metric": metric,
        "score": score,
        "model_size": given.get("model_size", 10),
        "seconds_features": 0.0,
        "seconds_fit": seconds,
        "seconds_predict": 0.1,
        "peak_rss_mb": 1.0,
        "cpu": "cpu",
        "converged": True,
        "message": None,
        "params": {
            name: value for name, value in options.items() if name not in ("lam", "n_features")
        }
        | ({"validation": given["validation"]} if "validation" in given else {}),
    }


def lines(panel):
    return {curve.gid: [list(point) for point in curve.points] for curve in panel.curves}


def test_a_path_has_the_mean_over_seeds_and_a_line_for_what_else_varies():
    rows = [
        row(lam=lam, gamma=gamma, seed=seed, score=lam + gamma + 0.1 * seed)
        for lam, gamma, seed in itertools.product((0.1, 1.0), (2, 4), (0, 1))
    ]
    chart = general.lambda_path(rows)
    score, size = chart
    assert lines(score) == {
        "score-a-rf, gamma 2": [[0.1, pytest.approx(2.15)], [1.0, pytest.approx(3.05)]],
        "score-a-rf, gamma 4": [[0.1, pytest.approx(4.15)], [1.0, pytest.approx(5.05)]],
    }
    assert len(lines(size)) == 2 and figures.paint(chart).axes[0].get_xscale() == "log"
    deviation = 0.1 / 2**0.5
    assert [curve.around[0.1] for curve in score.curves] == [
        (pytest.approx(middle - deviation), pytest.approx(middle + deviation))
        for middle in (2.15, 4.15)
    ]


@pytest.mark.parametrize(("metric", "best"), [("accuracy", [4.0, 2.0]), ("rmse", [2.0, 0.5])])
def test_a_grid_marks_its_best_cell(metric, best):
    scores = {(2.0, 0.5): 0.1, (2.0, 2.0): 0.3, (4.0, 0.5): 0.4, (4.0, 2.0): 0.9}
    rows = [
        row(gamma=gamma, lam=lam, score=score, metric=metric)
        for (gamma, lam), score in scores.items()
    ]
    (panel,) = general.surface(rows)
    assert panel.heat.values.tolist() == [[0.1, 0.3], [0.4, 0.9]]
    ((across, up),) = panel.curves[0].points
    assert [float(panel.heat.up[up]), float(panel.heat.across[across])] == best


def test_the_grid_of_one_run_is_what_its_validation_tried():
    step = {
        "options": ["gamma", "lam"],
        "tried": [[1.0, 10.0, 0.2], [1.0, 1.0, 0.1]],
        "error": "share of wrong labels",
        "chosen": [1.0, 1.0],
    }
    (panel,) = general.surface([row(validation=[step])])
    assert panel.heat.values.tolist() == [[0.1, 0.2]] and panel.curves[0].points == [(0, 0)]


def test_the_front_is_what_nothing_as_quick_is_better_than():
    points = [(1, 0.5), (2, 0.4), (2, 0.7), (3, 0.7), (4, 0.9)]
    assert general._front(points, "accuracy") == [(1, 0.5), (2, 0.7), (4, 0.9)]
    assert general._front(points, "rmse") == [(1, 0.5), (2, 0.4)]
    rows = [
        row(seconds=seconds, score=score, gamma=place)
        for place, (seconds, score) in enumerate(points)
    ]
    drawn = lines(next(iter(general.pareto(rows))))
    assert len(drawn["points-a-rf"]) == 5 and drawn["front-a"] == [[1, 0.5], [2, 0.7], [4, 0.9]]


def test_the_front_names_the_method_that_was_asked_for():
    asked = row("rfm", seconds=0.5) | {"params": {"asked": {"method": "auto"}, "gamma": 1.0}}
    asked["params"]["seconds_validation"] = 2.0
    drawn = lines(next(iter(general.pareto([asked, row("rfm", seconds=1.0)]))))
    assert drawn["points-a-auto"] == [[2.5, 0.5]] and drawn["points-a-rfm"] == [[1.0, 0.5]]


@pytest.mark.parametrize(
    ("figure", "rows", "says"),
    [
        (general.pareto, [row() | {"status": "failed"}], "no row of the results file has a score"),
        (general.lambda_path, [row(lam=1.0)], "at several values of lambda"),
        (general.surface, [row(lam=1.0), row(lam=2.0)], "vary in two options"),
        (lambda rows: general.features(rows, "tuned"), [row()], "in setting tuned"),
        (general.pareto, [row(dataset=f"d{n}") for n in range(13)], "has 13 data sets, of which"),
    ],
)
def test_what_can_t_be_drawn_is_said(figure, rows, says):
    with pytest.raises((DataError, UsageError), match=says):
        figure(rows)


def test_the_numbers_of_a_chart_are_those_of_its_curves():
    look = {"color": "#0072B2"}
    curves = [
        figures.Curve([1, 2], [3.0, 4.0], look, "one", "a", {1: (2.0, 4.0)}),
        figures.Curve([1, 2], [5.0, 6.0], look, "other of the same colour", "b"),
        figures.level(7.0, "even", **look),
        figures.Curve([1], [1], look),
    ]
    chart = figures.Chart("title", [], [[figures.Panel("panel", "x", "y", curves)]])
    found = [
        (one["id"], one["x"], one["y"], one["low"], one["high"]) for one in figures.numbers(chart)
    ]
    assert found == [
        ("a", 1, 3.0, 2.0, 4.0),
        ("a", 2, 4.0, None, None),
        ("b", 1, 5.0, None, None),
        ("b", 2, 6.0, None, None),
        ("", None, 7.0, None, None),
    ]
    assert figures.paint(chart).axes[0].get_title(loc="left") == "panel" and chart.labels == [
        "one",
        "other of the same colour",
        "even",
    ]


def test_the_front_is_of_groups_each_with_its_deviation():
    rows = [
        row(method=method, seconds=seconds + 0.1 * seed, score=score + 0.1 * seed, seed=seed)
        for method, seconds, score in (("rf", 1.0, 0.5), ("kernel", 2.0, 0.6), ("rb", 3.0, 0.4))
        for seed in (0, 1)
    ]
    (panel, *_) = general.pareto(rows)
    drawn = {curve.gid: curve for curve in panel.curves}
    assert [tuple(map(pytest.approx, point)) for point in drawn["front-a"].points] == [
        (1.05, 0.55),
        (2.05, 0.65),
    ]
    assert drawn["front-a"].label == "Pareto front"
    kernel = drawn["points-a-kernel"]
    deviation = 0.1 / 2**0.5 / 1
    assert list(kernel.around.values()) == [
        (pytest.approx(0.65 - deviation), pytest.approx(0.65 + deviation))
    ]
    alone = next(iter(general.pareto(rows[:1]))).curves[1]
    assert alone.around == {} and figures.paint(general.pareto(rows[:1]))


def test_methods_of_other_packages_have_marks_that_are_seen_and_differ():
    names = [f"plug-in-{number}" for number in range(20)]
    looks = style.looks(names)
    pairs = {(look["color"], look["marker"]) for look in looks.values()}
    assert len(pairs) == len(names) and not pairs & set(style._LOOKS.values())
    assert all(MarkerStyle(look["marker"]).is_filled() for look in looks.values())
    rows = [row(method=name, seconds=1.0 + place) for place, name in enumerate(names[:3])]
    curves = [curve for curve in next(iter(general.pareto(rows))).curves if "points" in curve.gid]
    assert len({(curve.look["color"], curve.look["marker"]) for curve in curves}) == 3


@pytest.mark.parametrize("seconds", [(0.0136, 0.069), (3.0, 3.001), (0.5,), (0.001, 900.0)])
def test_a_logarithmic_axis_has_two_labels_at_least(seconds):
    rows = [row(seconds=one, score=0.5, gamma=place) for place, one in enumerate(seconds)]
    figure = figures.paint(general.pareto(rows))
    figure.canvas.draw()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    labels = zip(axes.get_xticks(), axes.get_xticklabels())
    shown = {text.get_text() for place, text in labels if low <= place <= high}
    assert axes.get_xscale() == "log"
    assert len(shown) >= 2


def test_values_that_runs_chose_are_no_path_and_no_grid():
    rows = [
        row(
            lam=lam,
            seed=seed,
            score=lam,
            asked={"lam": "auto", "metric_steps": None},
            metric_steps=seed + 1,
        )
        for seed, lam in enumerate((0.1, 1.0))
    ]
    with pytest.raises(DataError, match="at several values of lambda"):
        general.lambda_path(rows)
    with pytest.raises(DataError, match="vary in two options"):
        general.surface(rows)
