"""The figures of Sinha and Duchi 2016: the learnt kernel over the dimension and its frequencies, feature selection, Table 1 drawn."""

from statistics import mean, stdev

import numpy as np

from rfx.errors import DataError
from rfx.papers.sinha2016 import curves
from rfx.reporting import style
from rfx.reporting.printed import printed

_PICTURED = 600


def figure1(rows, setting=None):
    """In the plane the data and the frequencies chosen, an annulus; train and test error of both kernels over the dimension."""
    curves.refuse_setting("fig1", setting)
    own = [row for row in curves.of(rows, "fig1") if row["status"] == "ok"]
    found = curves.by_dimension(own)
    _refuse_nothing(found, "fig1")
    figure, grid = style.grid(1, 3, 2.6)
    plane = next((point.rows[0] for d, point in found.get("lkrf", {}).items() if d == 2), None)
    if plane:
        _picture(grid[0][0], plane)
    else:
        grid[0][0].set_visible(False)
    for axes, part in zip(grid[0][1:], ("train", "test")):
        for method, words in (("rf", "Gaussian kernel"), ("lkrf", "optimised kernel")):
            points = {d: getattr(point, part) for d, point in found.get(method, {}).items() if getattr(point, part)}
            if points:
                _curve(axes, points, method, words, style.identifier("fig1", method, part))
        axes.set_xlabel("dimension d")
        axes.set_ylabel("error, %")
        axes.set_ylim(bottom=0)
        style.head(axes, f"{part} error, %")
    title = "Sinha and Duchi 2016: learning a kernel, logistic regression"
    style.finish(figure, title, [_SEEDS, "x ~ N(0, I), y = sign(||x|| - sqrt d), 10,000 rows.", style.machines(own)])
    return figure


def _picture(axes, row):
    """Rows of the plane by their class, and the frequencies of the row's support, found anew from its seed and options."""
    from rfx import data
    from rfx.features import alignment, sample
    from rfx.features.divergence import maximise

    params = row["params"]
    split = data.load(row["dataset"], seed=row["seed"])
    pool = sample("gaussian", 2, params["pool"], row["seed"], gamma=params["kernel_params"]["gamma"])
    q = maximise(alignment.scores(pool, split.X_train, split.y_train[:, None]), params["rho"], params.get("divergence", "chi2"))
    frequencies = 2 * np.pi * pool.arrays["frequencies"][:, q > 0]
    for label, colour in ((1, "#D55E00"), (-1, "#0072B2")):
        some = split.X_train[split.y_train == label][:_PICTURED]
        axes.plot(*some.T, ".", markersize=2, alpha=0.5, color=colour, label=f"x, y = {label:+d}", gid=f"fig1-class{label:+d}")
    axes.plot(*frequencies, "+", markersize=4, color="black", label="w chosen", gid="fig1-chosen")
    axes.set_aspect("equal")
    axes.set_xlabel("x$_1$ and w$_1$")
    axes.set_ylabel("x$_2$ and w$_2$")
    style.head(axes, f"d = 2: {frequencies.shape[1]} of {len(q):,} w")


def figure2(rows, setting=None):
    """Test error of chosen and of random coordinates and words over D."""
    curves.refuse_setting("fig2", setting)
    own = [row for row in curves.of(rows, "fig2") if row["status"] == "ok"]
    found = curves.by_size(own)
    _refuse_nothing(found, "fig2")
    figure = _panels(found, {"linear-selection": "1,000 inputs, 100 of which decide", "motifs": "105,476 words of sequences"}, "fig2")
    style.finish(figure, "Sinha and Duchi 2016: feature selection, ridge on a linear kernel", [_SEEDS, style.machines(own)])
    return figure


def table1(rows, setting=None):
    """Table 1 as curves: test error over D and over seconds."""
    setting = curves.choose_setting(rows, "table1", setting)
    own = [row for row in curves.of(rows, curves.label("table1", setting)) if row["status"] == "ok"]
    found = curves.by_size(own)
    _refuse_nothing(found, "table1")
    titles = {name: name + (f" (for {stands_for})" if stands_for else "") for name, stands_for in curves.DATA.items()}
    figure = _panels(found, titles, "table1")
    notes = [f"Setting {setting}: {curves.SETTINGS[setting]}", _SEEDS, style.machines(own)]
    style.finish(figure, f"Sinha and Duchi 2016, Table 1, as curves over D and over time; setting: {setting}", notes)
    return figure


_SEEDS = "Marks: means over the seeds, bands: one standard deviation."


def _panels(found, titles, name):
    """For each data set of `titles` that has rows: error over D, error over seconds with what the paper prints."""
    book = printed(__package__, name)
    drawn = [dataset for dataset in titles if any(key[0] == dataset for key in found)]
    figure, grid = style.grid(len(drawn), 2, 2.3)
    for line, dataset in zip(grid, drawn):
        for method, words in curves.METHODS.items():
            points = found.get((dataset, method), {})
            if points:
                sizes = {mean(point.size): point for point in points.values()}
                sizes = dict(sorted(sizes.items()))
                gid = style.identifier(name, dataset, method)
                _curve(line[0], {size: point.test for size, point in sizes.items()}, method, words, gid)
                errors = [mean(point.test) for point in sizes.values()]
                seconds = [mean(point.seconds) for point in sizes.values()]
                line[1].plot(seconds, errors, label=words, gid=f"{gid}-seconds", **style.look(method))
                paper = [book.get((dataset, "", method, field)) for field in ("seconds", "error")]
                if None not in paper:
                    line[1].plot(*([value] for value in paper), label=f"{words}, paper", gid=f"{gid}-paper", **style.printed(method))
        for axes, label in zip(line, ("features D", "seconds of training")):
            style.log_scale(axes, "x")
            style.plain_ticks(axes.xaxis)
            axes.set_xlabel(label)
            axes.set_ylabel("test error, %")
        style.head(line[0], titles[dataset])
    return figure


def _curve(axes, points, method, words, gid):
    """Means with a band of one standard deviation; points: place -> values."""
    places, means = list(points), [mean(values) for values in points.values()]
    spreads = [stdev(values) if len(values) > 1 else 0.0 for values in points.values()]
    axes.plot(places, means, label=words, gid=gid, **style.look(method))
    if any(spreads):
        style.band(axes, places, [m - s for m, s in zip(means, spreads)], [m + s for m, s in zip(means, spreads)], method)


def _refuse_nothing(found, name):
    if not found:
        raise DataError(f"the results file has no finished rows of sinha2016-{name}; rfx run sinha2016-{name} makes them")


FIGURES = {"table1": table1, "fig1": figure1, "fig2": figure2}
