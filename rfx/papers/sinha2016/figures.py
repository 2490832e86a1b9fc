"""The figures of Sinha and Duchi 2016: the learnt kernel over the dimension and its frequencies,
feature selection, and Table 1 as curves.
"""

import numpy as np

from rfx import data
from rfx.features import alignment, sample
from rfx.features.alignment import maximise
from rfx.papers.sinha2016 import curves
from rfx.papers.sinha2016.curves import mean
from rfx.records.run import seconds_train
from rfx.reporting import style
from rfx.reporting.cells import Builder, good, labelled, mean_if_any, needed, printed
from rfx.reporting.figures import Chart, Curve, Panel, mean_curve, through

_PICTURED = 600
_SEEDS = "Marks: means over the seeds, bands: one standard deviation."


def figure1(rows) -> Chart:
    """In the plane, the data and the selected frequencies, which form an annulus; training and test
    error of both kernels over the dimension.
    """
    own = good(labelled(rows, "fig1"))
    found = needed(curves.by_dimension(own), "sinha2016-fig1")
    plane = found.get("lkrf", {}).get(2)
    picture = _picture(plane[0]) if plane else Panel(hidden=True)
    train = _over_dimension("train", curves.train, found)
    test = _over_dimension("test", curves.test, found)
    return Chart(
        "Sinha and Duchi 2016: learning a kernel, logistic regression",
        [_SEEDS, "x ~ N(0, I), y = sign(||x|| - sqrt d), 10,000 rows.", style.machines(own)],
        [[picture, train, test]],
        2.6,
    )


def _over_dimension(part, quantity, found) -> Panel:
    """The training or test error of both kernels over the dimension."""
    drawn = []
    for method, words in (("rf", "Gaussian kernel"), ("lkrf", "optimised kernel")):
        if method in found:
            gid = style.identifier("fig1", method, part)
            drawn.append(_curve(found[method], quantity, method, words, gid))
    return Panel(f"{part} error, %", "dimension d", "error, %", drawn, dress=_start_at_zero)


def _start_at_zero(axes) -> None:
    axes.set_ylim(bottom=0)


def _set_equal_aspect(axes) -> None:
    axes.set_aspect("equal")


def _picture(row) -> Panel:
    """Rows in the plane by class, and the frequencies in the support of the row's model, recomputed
    from its seed and options.
    """
    params = row.params
    split = data.load(row.dataset, seed=row.seed)
    gamma = params["kernel_params"]["gamma"]
    pool = sample("gaussian", 2, params["pool"], row.seed, gamma=gamma)
    scores = alignment.scores(pool, split.X_train, split.y_train[:, None])
    q = maximise(scores, params["rho"], params.get("divergence", "chi2"))
    frequencies = 2 * np.pi * pool.arrays["frequencies"][:, q > 0]
    dots = {"marker": ".", "linestyle": "None", "markersize": 2, "alpha": 0.5}
    crosses = {"marker": "+", "linestyle": "None", "markersize": 4, "color": "black"}
    drawn = []
    for label, colour in ((1, "#D55E00"), (-1, "#0072B2")):
        x, y = split.X_train[split.y_train == label][:_PICTURED].T
        look, words = dots | {"color": colour}, f"x, y = {label:+d}"
        drawn.append(Curve(x, y, look, words, f"fig1-class{label:+d}"))
    x, y = frequencies
    drawn.append(Curve(x, y, crosses, "w chosen", "fig1-chosen"))
    title = f"d = 2: {frequencies.shape[1]} of {len(q):,} w"
    x_axis, y_axis = "x$_1$ and w$_1$", "x$_2$ and w$_2$"
    return Panel(title, x_axis, y_axis, drawn, dress=_set_equal_aspect)


def _sizes(name, titles, title, rows, setting=None) -> Chart:
    """For each data set of `titles` with rows: test error over D, and over seconds with the printed
    numbers.
    """
    own = good(labelled(rows, curves.label(name, setting) if setting else name))
    found = needed(curves.by_size(own), f"sinha2016-{name}")
    notes = [_SEEDS, style.machines(own)]
    if setting:
        title = f"{title}; setting: {setting}"
        notes.insert(0, f"Setting {setting}: {curves.SETTINGS[setting]}")
    present = {dataset for dataset, _ in found}
    shown = [dataset for dataset in titles if dataset in present]
    panels = [_panels(dataset, titles[dataset], found, name) for dataset in shown]
    return Chart(title, notes, panels, height=2.3)


def _panels(dataset, heading, found, name) -> list[Panel | None]:
    """The panels of one data set, over D and over seconds."""
    book, over_size, over_time = printed(__package__, name), [], []
    for method, words in curves.METHODS.items():
        points = found.get((dataset, method), {}).values()
        sizes = dict(sorted({mean(curves.size, rows): rows for rows in points}.items()))
        gid, look = style.identifier(name, dataset, method), style.look(method)
        costs = {mean(seconds_train, rows): mean(curves.test, rows) for rows in sizes.values()}
        paper = [book.get((dataset, "", method, field)) for field in ("seconds", "error")]
        if sizes:
            over_size.append(_curve(sizes, curves.test, method, words, gid))
            over_time.append(through(costs, look, words, f"{gid}-seconds"))
        if sizes and None not in paper:
            mark, label = style.printed(method), f"{words}, paper"
            over_time.append(Curve(paper[:1], paper[1:], mark, label, f"{gid}-paper"))
    y_axis, dress = "test error, %", style.log_places
    return [
        Panel(heading, "features D", y_axis, over_size, dress=dress),
        Panel("", "seconds of training", y_axis, over_time, dress=dress),
    ]


def _curve(points, quantity, method, words, gid) -> Curve:
    """Means of a quantity with a band of one standard deviation. points: place -> rows."""
    means = {place: mean_if_any(map(quantity, rows)) for place, rows in points.items()}
    return mean_curve(means, style.look(method), words, gid)


_TABLE1 = {name: f"{name} (for {of})" if of else name for name, of in curves.DATA.items()}
_FIGURE2 = {
    "linear-selection": "1,000 inputs, 100 of which decide",
    "motifs": "105,476 words of sequences",
}


def table1(rows, setting) -> Chart:
    title = "Sinha and Duchi 2016, Table 1, as curves over D and over time"
    return _sizes("table1", _TABLE1, title, rows, setting)


def figure2(rows) -> Chart:
    title = "Sinha and Duchi 2016: feature selection, ridge on a linear kernel"
    return _sizes("fig2", _FIGURE2, title, rows)


FIGURES = {
    "fig1": Builder("sinha2016-fig1", figure1),
    "table1": Builder("sinha2016-table1", table1, curves.settings("table1")),
    "fig2": Builder("sinha2016-fig2", figure2),
}
