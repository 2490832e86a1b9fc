"""The figures of Sinha and Duchi 2016: the learnt kernel over the dimension and its frequencies,
feature selection, and Table 1 as curves.
"""

from statistics import mean

import numpy as np

from rfx import data
from rfx.features import alignment, sample
from rfx.features.divergence import maximise
from rfx.papers.sinha2016 import curves
from rfx.reporting import style
from rfx.reporting.builders import Builder, needed
from rfx.reporting.charts import Chart, Curve, Panel
from rfx.reporting.printed import printed
from rfx.reporting.seeds import mean_of

_PICTURED = 600
_SEEDS = "Marks: means over the seeds, bands: one standard deviation."


def figure1(rows) -> Chart:
    """In the plane, the data and the selected frequencies, which form an annulus; training and test
    error of both kernels over the dimension.
    """
    own = [row for row in curves.of(rows, "fig1") if row["status"] == "ok"]
    found = needed(curves.by_dimension(own), "sinha2016-fig1")
    plane = next((point.rows[0] for d, point in found.get("lkrf", {}).items() if d == 2), None)
    panels = [_picture(plane) if plane else Panel(hidden=True)]
    for part in ("train", "test"):
        drawn = []
        for method, words in (("rf", "Gaussian kernel"), ("lkrf", "optimised kernel")):
            points = {
                d: getattr(point, part)
                for d, point in found.get(method, {}).items()
                if getattr(point, part)
            }
            if points:
                drawn.append(_curve(points, method, words, style.identifier("fig1", method, part)))
        panels.append(
            Panel(
                f"{part} error, %",
                "dimension d",
                "error, %",
                drawn,
                dress=lambda axes: axes.set_ylim(bottom=0),
            )
        )
    title = "Sinha and Duchi 2016: learning a kernel, logistic regression"
    return Chart(
        title,
        [_SEEDS, "x ~ N(0, I), y = sign(||x|| - sqrt d), 10,000 rows.", style.machines(own)],
        [panels],
        2.6,
    )


def _picture(row) -> Panel:
    """Rows in the plane by class, and the frequencies in the support of the row's model, recomputed
    from its seed and options.
    """
    params = row["params"]
    split = data.load(row["dataset"], seed=row["seed"])
    pool = sample(
        "gaussian", 2, params["pool"], row["seed"], gamma=params["kernel_params"]["gamma"]
    )
    q = maximise(
        alignment.scores(pool, split.X_train, split.y_train[:, None]),
        params["rho"],
        params.get("divergence", "chi2"),
    )
    frequencies = 2 * np.pi * pool.arrays["frequencies"][:, q > 0]
    drawn = []
    for label, colour in ((1, "#D55E00"), (-1, "#0072B2")):
        x, y = split.X_train[split.y_train == label][:_PICTURED].T
        look = {"marker": ".", "linestyle": "None", "markersize": 2, "alpha": 0.5, "color": colour}
        drawn.append(Curve(x, y, look, f"x, y = {label:+d}", f"fig1-class{label:+d}"))
    look = {"marker": "+", "linestyle": "None", "markersize": 4, "color": "black"}
    drawn.append(Curve(frequencies[0], frequencies[1], look, "w chosen", "fig1-chosen"))
    title = f"d = 2: {frequencies.shape[1]} of {len(q):,} w"
    return Panel(
        title,
        "x$_1$ and w$_1$",
        "x$_2$ and w$_2$",
        drawn,
        dress=lambda axes: axes.set_aspect("equal"),
    )


def figure2(rows) -> Chart:
    """Test error of selected and of random coordinates and words over D."""
    own = [row for row in curves.of(rows, "fig2") if row["status"] == "ok"]
    found = needed(curves.by_size(own), "sinha2016-fig2")
    panels = _panels(
        found,
        {
            "linear-selection": "1,000 inputs, 100 of which decide",
            "motifs": "105,476 words of sequences",
        },
        "fig2",
    )
    title = "Sinha and Duchi 2016: feature selection, ridge on a linear kernel"
    return Chart(title, [_SEEDS, style.machines(own)], panels, 2.3)


def table1(rows, setting) -> Chart:
    """Table 1 as curves: test error over D and over seconds."""
    own = [row for row in curves.of(rows, curves.label("table1", setting)) if row["status"] == "ok"]
    found = needed(curves.by_size(own), "sinha2016-table1")
    titles = {
        name: name + (f" (for {stands_for})" if stands_for else "")
        for name, stands_for in curves.DATA.items()
    }
    notes = [f"Setting {setting}: {curves.SETTINGS[setting]}", _SEEDS, style.machines(own)]
    title = f"Sinha and Duchi 2016, Table 1, as curves over D and over time; setting: {setting}"
    return Chart(title, notes, _panels(found, titles, "table1"), 2.3)


def _panels(found, titles, name) -> list[list[Panel | None]]:
    """For each data set of `titles` with rows: error over D, and error over seconds with the
    printed numbers.
    """
    lines: list[list[Panel | None]] = []
    for dataset in titles:
        if any(key[0] == dataset for key in found):
            over_size, over_time = _of_data(dataset, found, name)
            words = ("features D", "test error, %"), ("seconds of training", "test error, %")
            lines.append(
                [
                    Panel(titles[dataset], *words[0], over_size, dress=_log),
                    Panel("", *words[1], over_time, dress=_log),
                ]
            )
    return lines


def _log(axes) -> None:
    style.log_scale(axes, "x")
    style.plain_ticks(axes.xaxis)


def _of_data(dataset, found, name) -> tuple[list[Curve], list[Curve]]:
    """The curves of one data set, over D and over seconds."""
    book = printed(__package__, name)
    over_size, over_time = [], []
    for method, words in curves.METHODS.items():
        points = found.get((dataset, method), {})
        if points:
            sizes = dict(sorted({mean(point.size): point for point in points.values()}.items()))
            gid = style.identifier(name, dataset, method)
            over_size.append(
                _curve({size: point.test for size, point in sizes.items()}, method, words, gid)
            )
            errors = [mean(point.test) for point in sizes.values()]
            seconds = [mean(point.seconds) for point in sizes.values()]
            over_time.append(Curve(seconds, errors, style.look(method), words, f"{gid}-seconds"))
            paper = [book.get((dataset, "", method, field)) for field in ("seconds", "error")]
            if None not in paper:
                over_time.append(
                    Curve(
                        [paper[0]],
                        [paper[1]],
                        style.printed(method),
                        f"{words}, paper",
                        f"{gid}-paper",
                    )
                )
    return over_size, over_time


def _curve(points, method, words, gid) -> Curve:
    """Means with a band of one standard deviation if there are several values. points: place ->
    values.
    """
    means = {place: mean_of(values) for place, values in points.items()}
    band = {
        place: (one.value - (one.sd or 0.0), one.value + (one.sd or 0.0))
        for place, one in means.items()
    }
    around = band if any(one.sd for one in means.values()) else {}
    return Curve(
        list(means), [one.value for one in means.values()], style.look(method), words, gid, around
    )


FIGURES = {
    "table1": Builder("sinha2016-table1", table1, curves.settings("table1")),
    "fig1": Builder("sinha2016-fig1", figure1),
    "fig2": Builder("sinha2016-fig2", figure2),
}
