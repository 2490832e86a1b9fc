"""Figures and the tables of their numbers: files, curves by their identifiers, errors, and the
plans that provide their rows; figures of any results file.
"""

import csv
import itertools
import json
import struct
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.markers import MarkerStyle
from shell import called, printed

from rfx import env, methods, papers
from rfx.errors import DataError, UsageError
from rfx.papers.wu2016 import curves as wu2016
from rfx.plans import plan
from rfx.records import results
from rfx.records.run import Result
from rfx.reporting import figures, style, tables

WU2016 = "rfx.papers.wu2016"


def draw(name, rows, output=None, setting=None):
    return figures.draw(name, rows, output, setting, papers.figures())


def build(name, rows, setting=None):
    return tables.build(name, rows, setting, papers.tables())


def runs_of(name, quick=False):
    return plan.load(name, quick, papers.plans()).runs


def row(label, dataset="cadata", method="rb", **more):
    params = {
        "label": label,
        "relative_error": 0.25,
        "train_relative_error": 0.2,
        "n_grids": 128,
        "kappa": 61.5,
        "kernel_params": {"gamma": 1.58},
    } | more.pop("params", {})
    given = {
        "key": f"{label}{dataset}{method}{params}{more}",
        "status": "ok",
        "dataset": dataset,
        "split": "wu2016",
        "method": method,
        "kernel": "laplacian",
        "n_train": 16512,
        "n_test": 4128,
        "n_inputs": 8,
        "lam": 0.3,
        "metric": "rmse",
        "score": 5e4,
        "n_features": 7872,
        "model_size": 7872,
        "seconds_fit": 1.5,
        "seconds_features": 0.5,
        "seconds_predict": 0.04,
        "peak_rss_mb": 180.0,
        "converged": True,
        "threads": 2,
        "cpu": "A Processor",
        "rfx": "0.1",
        "seed": 0,
        "n_iter": 7,
    }
    return Result(**given | more | {"params": params})


def classes(label, dataset="ijcnn1", method="rb", score=0.97, **more):
    params = {"relative_error": None, "train_relative_error": None, "train_score": 0.99} | more.pop(
        "params", {}
    )
    return row(label, dataset, method, metric="accuracy", score=score, params=params, **more)


def swept(figure, setting="tuned"):
    """Rows of three points of figure 3 or 4 on two data sets."""
    label = f"{figure}-{setting}"
    values = (
        [(gamma, 128) for gamma in (0.79, 1.58, 3.16)]
        if figure == "fig3"
        else [(4.46, size) for size in (8, 128, 1024)]
    )
    points = [{"n_grids": size, "kernel_params": {"gamma": gamma}} for gamma, size in values]
    return [row(label, params=point) for point in points] + [
        classes(label, params=point) for point in points
    ]


def compared(setting="tuned"):
    """Rows of all methods at two R on cadata."""
    label, found = f"fig5-{setting}", []
    for number, size in enumerate((8, 128)):
        better = {"relative_error": 0.3 - 0.1 * number}
        found.append(row(label, params=better | {"n_grids": size}))
        found += [
            row(label, method=method, n_features=size, params=better | {"n_grids": None})
            for method in ("rf", "nystrom")
        ]
        found.append(
            row(
                label,
                method="block",
                n_features=None,
                params=better | {"n_grids": None, "block_size": size},
            )
        )
    return [
        *found,
        row(
            label,
            method="kernel",
            n_features=None,
            params={"n_grids": None, "relative_error": 0.21},
        ),
    ]


def timed():
    """Rows of figure 6: with two threads sparse-rb is twice as fast for seed 0 and 1.5 times for
    seed 1, sparse-rf not at all.
    """
    found = []
    for seed, both in ((0, 4.0), (1, 6.0), (2, 5.0)):
        for threads in (1, 2):
            gain = 1.0 if threads == 1 else 2.0 if seed == 0 else 1.5
            same = {"threads": threads, "seed": seed}
            found.append(row("fig6", method="sparse-rb", seconds_fit=both / gain, **same))
            found.append(
                row(
                    "fig6",
                    method="sparse-rf",
                    seconds_fit=3.0,
                    params={"n_grids": None, "kappa": None},
                    **same,
                )
            )
    return found


FIGURES = ("wu2016-fig3", "wu2016-fig4", "wu2016-fig5", "wu2016-fig6")


@pytest.fixture(scope="module")
def rows_of():
    """The rows of each figure."""
    return {
        "wu2016-fig3": swept("fig3"),
        "wu2016-fig4": swept("fig4"),
        "wu2016-fig5": compared(),
        "wu2016-fig6": timed(),
    }


def identifiers(path):
    return {element.get("id") for element in xml.parse(path).iter() if element.get("id")}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, rows_of):
    """The folder of the files of every figure."""
    folder = tmp_path_factory.mktemp("drawn")
    for name, rows in rows_of.items():
        draw(name, rows, folder)
    return folder


def written(path, gid):
    """The lines of a figure's CSV file with that identifier."""
    return [line for line in csv.DictReader(path.read_text().splitlines()) if line["id"] == gid]


def test_the_figures_and_tables_of_the_paper_are_found():
    figures_of = {name for name in papers.figures() if name.startswith("wu2016-fig")}
    assert set(FIGURES) == figures_of - {"wu2016-fig2"}
    assert set(FIGURES) | {"wu2016-table1"} <= set(papers.tables())


@pytest.mark.slow
def test_only_the_files_are_left(drawn):
    ends = ("png", "svg", "pdf", "figure.csv")
    expected = {f"{name}.{end}" for name in FIGURES for end in ends}
    assert {path.name for path in drawn.iterdir()} == expected


@pytest.mark.parametrize("name", FIGURES)
def test_files_are_whole_and_every_curve_has_its_numbers(name, drawn):
    content = (drawn / f"{name}.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content[-8:-4] == b"IEND"
    assert min(struct.unpack(">II", content[16:24])) > 300
    assert b"CreationDate" not in (drawn / f"{name}.pdf").read_bytes()
    svg = drawn / f"{name}.svg"
    assert b"date" not in svg.read_bytes().lower()
    lines = list(csv.DictReader((drawn / f"{name}.figure.csv").read_text().splitlines()))
    ids = {gid for gid in identifiers(svg) if gid.startswith(name.removeprefix("wu2016-"))}
    assert ids == {line["id"] for line in lines if line["id"]}
    assert all(line["panel"] and line["x_axis"] and line["y_axis"] for line in lines)


@pytest.mark.slow
def test_the_same_rows_give_the_same_files(drawn, tmp_path, rows_of):
    for path in draw("wu2016-fig3", rows_of["wu2016-fig3"], tmp_path / "b.svg"):
        first = drawn / path.name.replace("b.", "wu2016-fig3.", 1)
        assert path.read_bytes() == first.read_bytes()


def test_the_numbers_of_a_figure_are_those_that_are_drawn(drawn):
    path = drawn / "wu2016-fig3.figure.csv"
    points = written(path, "fig3-cadata-test-ours")
    assert [(point["x"], point["y"], point["curve"]) for point in points] == [
        (x, "0.25", "test, ours") for x in ("0.79", "1.58", "3.16")
    ]
    (level,) = written(path, "fig3-cadata-exact-authors")
    assert level["x"] == ""
    _, point = written(drawn / "wu2016-fig6.figure.csv", "fig6-cadata-sparse-rb-ours")
    assert (point["y"], point["low"], point["high"]) == ("1.5", "1.5", "2.0")


def test_the_deviation_of_ours_is_not_written_beside_the_authors_points(tmp_path):
    rows = [
        replace(one, seed=seed, params=one.params | {"relative_error": 0.2 + 0.02 * seed})
        for one in swept("fig4")
        for seed in (0, 1)
    ]
    path = draw("wu2016-fig4", rows, tmp_path)[-1]
    lows = lambda whose: [one["low"] for one in written(path, f"fig4-cadata-test-{whose}")]
    assert len(lows("ours")) == 3
    assert all(lows("ours"))
    assert lows("authors") == [""] * 8


@pytest.mark.parametrize("short", ["fig3", "fig4"])
def test_sweeps_have_ours_and_the_authors_curves(short, drawn):
    svg = drawn / f"wu2016-{short}.svg"
    gids = identifiers(svg)
    quantities = ("test", "train", "seconds", "bins")
    ends = {f"{quantity}-{whose}" for quantity in quantities for whose in ("ours", "authors")}
    for dataset in ("cadata", "ijcnn1"):
        assert {f"{short}-{dataset}-{end}" for end in (*ends, "exact-authors")} <= gids
    assert not any(word.startswith(f"{short}-letter") for word in gids), "it has no rows of ours"
    for whose, count in (("ours", 3), ("authors", 19 if short == "fig3" else 8)):
        numbers = drawn / f"wu2016-{short}.figure.csv"
        assert len(written(numbers, f"{short}-cadata-test-{whose}")) == count


def test_speed_ups_are_of_the_passes_if_they_are_known():
    alone, both, slow, same = wu2016.timed(timed())
    assert alone.speedup[0] == 1
    assert both.speedup == (1.5, None, 3, 1.5, 2)
    assert both.seconds == pytest.approx(10 / 3)
    assert same.speedup.value == 1
    passes = [
        replace(one, params=one.params | {"pass_seconds": 4.0 / one.threads}) for one in timed()
    ]
    assert wu2016.timed(passes)[1].speedup.value == 2
    # those of the trace go first, over all outputs
    ends = ((0, 0.0), (0, 1.0), (1, 0.0))
    traced = [
        replace(
            one,
            steps=[
                {"pass_seconds": seconds, "output": output}
                for output, seconds in (*ends, (1, 5.0 if one.threads == 1 else 0.5))
            ],
        )
        for one in passes
    ]
    assert wu2016.timed(traced)[1].speedup.value == 4


@pytest.mark.parametrize(("setting", "has"), [(None, False), ("tuned", True)])
def test_settings_are_kept_apart(tmp_path, setting, has):
    """Without one, it is the first that there is: paper."""
    rows = swept("fig3") + swept("fig3", "paper")[:1]
    draw("wu2016-fig3", rows, tmp_path / "drawn.png", setting=setting)
    assert ("fig3-ijcnn1-test-ours" in identifiers(tmp_path / "drawn.svg")) == has
    with pytest.raises(UsageError, match="--setting best: wu2016-fig3 has paper, tuned"):
        draw("wu2016-fig3", rows, tmp_path, setting="best")


@pytest.mark.parametrize(
    ("make", "name"), [(draw, "wu2016-fig6"), (build, "wu2016-fig6"), (build, "wu2016-table1")]
)
def test_what_has_no_settings_says_so(make, name):
    with pytest.raises(UsageError, match=f"--setting tuned: {name} has no settings"):
        make(name, timed(), setting="tuned")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wu2016-fig4", "no finished rows of wu2016-fig4; rfx run wu2016-fig4 makes them"),
        ("x", "there is no figure x .there are: .*wu2016-fig3"),
    ],
)
def test_refusals(tmp_path, name, says):
    with pytest.raises((DataError, UsageError), match=says):
        draw(name, [row("fig4-tuned", status="failed", message="x")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_figure_of_a_model(tmp_path, monkeypatch, capfd):
    """A dot for each column, the columns of a category summed; an error if there is nothing to
    draw.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = rng.choice(["x", "y", "z"], 200)
    rows = [f"{p},{q},{w},{np.sin(3 * p)}" for (p, q), w in zip(rng.normal(size=(200, 2)), words)]
    Path("t.csv").write_text("\n".join(["a,b,kind,y", *rows]))
    train = ["train", "--data", "t.csv", "--target", "y", "--method", "kernel", "--lam", "0.1"]
    train += ["--scaling", "standard", "--kernel", "laplacian-l2", "--metric"]
    for metric in ("diagonal", "none"):
        printed(capfd, *train, metric, "--model", f"{metric}.npz")
    files = printed(capfd, "figure", "importance", "--model", "diagonal.npz").split()
    assert files == [f"importance.{end}" for end in ("png", "svg", "pdf", "figure.csv")]
    shares = json.loads(printed(capfd, "info", "diagonal.npz", "--json"))["importances"]
    assert list(shares)[0] == "a" and set(shares) == {"a", "b", "kind"}
    assert sum(shares.values()) == pytest.approx(1) and shares["a"] > 0.8
    points = [float(one["x"]) for one in written(Path("importance.figure.csv"), "importance")]
    assert points == pytest.approx(sorted(shares.values())[::-1])
    for words, says in (
        (("importance", "--model", "none.npz"), "no learnt metric"),
        (("importance",), "pass --model"),
    ):
        assert says in str(called("figure", *words).exception)


@pytest.mark.slow
def test_command(tmp_path, monkeypatch, capfd, rows_of):
    monkeypatch.chdir(tmp_path)
    for one in rows_of["wu2016-fig4"]:
        results.append("r.csv", one)
    made = [f"out/wu2016-fig4.{end}" for end in ("png", "svg", "pdf", "figure.csv")]
    words = ("figure", "wu2016-fig4", "--results", "r.csv", "--output", "out")
    assert printed(capfd, *words).split() == made
    assert (tmp_path / made[1]).exists()
    assert printed(capfd, "figure", "--list").split() == [*papers.figures(), "importance", "claims"]


# -------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize(("cores", "counts"), [(6, [1, 2, 4]), (1, [1])])
def test_plan_of_figure6_goes_up_to_the_cores_there_are(cores, counts):
    env.set_threads(cores)
    runs = runs_of("wu2016-fig6")
    own = [run.threads for run in runs if (run.dataset, run.method) == ("cadata", "sparse-rb")]
    assert own == counts * 5, "one thread right before several"
    assert all(run.fixed_threads and run.options["solver"] == "prcd" for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in papers.plans() if name.startswith("wu2016")])
def test_every_run_has_a_place_in_its_table_and_a_scaling(name):
    short = name.removeprefix("wu2016-")
    for quick in (False, True):
        for run in runs_of(name, quick):
            assert run.dataset in wu2016.DATA and run.split == "wu2016"
            assert run.label in {short, *(f"{short}-{setting}" for setting in wu2016.SETTINGS)}
            assert short == "table1" or "scaling" in run.options
            if not run.seed:
                methods.create(run.method, seed=run.seed, **run.options)


def plain_row(method="rf", score=0.5, dataset="a", seconds=1.0, metric="accuracy", **given):
    options = {
        name: value
        for name, value in given.items()
        if name not in ("seed", "model_size", "validation")
    }
    return Result(
        **{
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
    )


def points_of(panel):
    return {curve.gid: [list(point) for point in curve.points] for curve in panel.curves}


def test_a_path_has_the_mean_over_seeds_and_a_line_for_what_else_varies():
    rows = [
        plain_row(lam=lam, gamma=gamma, seed=seed, score=lam + gamma + 0.1 * seed)
        for lam, gamma, seed in itertools.product((0.1, 1.0), (2, 4), (0, 1))
    ]
    chart = figures.lambda_path(rows)
    score, size = chart
    assert points_of(score) == {
        "score-a-rf, gamma 2": [[0.1, pytest.approx(2.15)], [1.0, pytest.approx(3.05)]],
        "score-a-rf, gamma 4": [[0.1, pytest.approx(4.15)], [1.0, pytest.approx(5.05)]],
    }
    assert len(points_of(size)) == 2 and figures.paint(chart).axes[0].get_xscale() == "log"
    deviation = 0.1 / 2**0.5
    assert [curve.around[0.1] for curve in score.curves] == [
        (pytest.approx(middle - deviation), pytest.approx(middle + deviation))
        for middle in (2.15, 4.15)
    ]


@pytest.mark.parametrize(("metric", "best"), [("accuracy", [4.0, 2.0]), ("rmse", [2.0, 0.5])])
def test_a_grid_marks_its_best_cell(metric, best):
    scores = {(2.0, 0.5): 0.1, (2.0, 2.0): 0.3, (4.0, 0.5): 0.4, (4.0, 2.0): 0.9}
    rows = [
        plain_row(gamma=gamma, lam=lam, score=score, metric=metric)
        for (gamma, lam), score in scores.items()
    ]
    (panel,) = figures.surface(rows)
    assert panel.heat.values.tolist() == [[0.1, 0.3], [0.4, 0.9]]
    ((across, up),) = panel.curves[0].points
    assert [float(panel.heat.up[up]), float(panel.heat.across[across])] == best


def test_the_grid_of_one_run_is_what_its_validation_tried():
    step = {
        "by": "rf",
        "options": ["gamma", "lam"],
        "fitted": 60,
        "held_out": 20,
        "tried": [[1.0, 10.0, 0.2], [1.0, 1.0, 0.1]],
        "error": "share of wrong labels",
        "chosen": [1.0, 1.0],
    }
    (panel,) = figures.surface([plain_row(validation=[step])])
    assert panel.heat.values.tolist() == [[0.1, 0.2]] and panel.curves[0].points == [(0, 0)]


def test_the_front_is_what_nothing_as_quick_is_better_than():
    points = [(1, 0.5), (2, 0.4), (2, 0.7), (3, 0.7), (4, 0.9)]
    assert figures._front(points, "accuracy") == [(1, 0.5), (2, 0.7), (4, 0.9)]
    assert figures._front(points, "rmse") == [(1, 0.5), (2, 0.4)]
    rows = [
        plain_row(seconds=seconds, score=score, gamma=place)
        for place, (seconds, score) in enumerate(points)
    ]
    drawn = points_of(next(iter(figures.pareto(rows))))
    assert len(drawn["points-a-rf"]) == 5 and drawn["front-a"] == [[1, 0.5], [2, 0.7], [4, 0.9]]


def test_the_front_names_the_method_that_was_asked_for():
    asked = replace(
        plain_row("rfm", seconds=0.5), params={"asked": {"method": "auto"}, "gamma": 1.0}
    )
    asked = asked.with_params(seconds_validation=2.0)
    drawn = points_of(next(iter(figures.pareto([asked, plain_row("rfm", seconds=1.0)]))))
    assert drawn["points-a-auto"] == [[2.5, 0.5]] and drawn["points-a-rfm"] == [[1.0, 0.5]]


CHOSEN = [
    plain_row(
        lam=lam,
        seed=seed,
        score=lam,
        asked={"lam": "auto", "metric_steps": None},
        metric_steps=seed + 1,
    )
    for seed, lam in enumerate((0.1, 1.0))
]


@pytest.mark.parametrize(
    ("figure", "rows", "says"),
    [
        (
            figures.pareto,
            [replace(plain_row(), status="failed")],
            "no row of the results file has a",
        ),
        (figures.lambda_path, [plain_row(lam=1.0)], "at several values of lambda"),
        (figures.surface, [plain_row(lam=1.0), plain_row(lam=2.0)], "vary in two options"),
        # values that the runs chose
        (figures.lambda_path, CHOSEN, "at several values of lambda"),
        (figures.surface, CHOSEN, "vary in two options"),
        (lambda rows: figures.features(rows, "tuned"), [plain_row()], "in setting tuned"),
        (figures.pareto, [plain_row(dataset=f"d{n}") for n in range(13)], "has 13 data sets, of"),
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
        figures.level(7.0, look, "even"),
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
        plain_row(method=method, seconds=seconds + 0.1 * seed, score=score + 0.1 * seed, seed=seed)
        for method, seconds, score in (("rf", 1.0, 0.5), ("kernel", 2.0, 0.6), ("rb", 3.0, 0.4))
        for seed in (0, 1)
    ]
    (panel, *_) = figures.pareto(rows)
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
    alone = next(iter(figures.pareto(rows[:1]))).curves[1]
    assert alone.around == {} and figures.paint(figures.pareto(rows[:1]))


def test_methods_of_other_packages_have_marks_that_are_seen_and_differ():
    names = [f"plug-in-{number}" for number in range(20)]
    looks = style.looks(names)
    pairs = {(look["color"], look["marker"]) for look in looks.values()}
    assert len(pairs) == len(names) and not pairs & set(style._LOOKS.values())
    assert all(MarkerStyle(look["marker"]).is_filled() for look in looks.values())
    rows = [plain_row(method=name, seconds=1.0 + place) for place, name in enumerate(names[:3])]
    curves = [curve for curve in next(iter(figures.pareto(rows))).curves if "points" in curve.gid]
    assert len({(curve.look["color"], curve.look["marker"]) for curve in curves}) == 3


@pytest.mark.parametrize("seconds", [(0.0136, 0.069), (3.0, 3.001), (0.5,), (0.001, 900.0)])
def test_a_logarithmic_axis_has_two_labels_at_least(seconds):
    rows = [plain_row(seconds=one, score=0.5, gamma=place) for place, one in enumerate(seconds)]
    figure = figures.paint(figures.pareto(rows))
    figure.canvas.draw()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    labels = zip(axes.get_xticks(), axes.get_xticklabels())
    shown = {text.get_text() for place, text in labels if low <= place <= high}
    assert axes.get_xscale() == "log"
    assert len(shown) >= 2
