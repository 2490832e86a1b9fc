"""Table 1 of Wu et al. 2016 (random binning features), and the numbers behind its Figures 3 to 6,
Theorem 1 and equations 29 and 30 as tables.
"""

from collections.abc import Callable
from typing import Any

from rfx.data.registry import registry
from rfx.papers.wu2016 import curves as wu2016
from rfx.papers.wu2016 import theory
from rfx.reporting.builders import Builder
from rfx.reporting.cells import (
    DASH,
    Cell,
    Section,
    Table,
    count,
    decimals,
    general,
    grid,
    number,
    short,
    words,
)
from rfx.reporting.printed import Printed, printed
from rfx.reporting.seeds import LEGEND, Mean
from rfx.reporting.tables import failures, machines

_PROPERTIES = {"n_train": "N train", "n_test": "N test", "n_inputs": "d", "n_classes": "classes"}
_PAIRS = "Every cell is ours / paper; a dash: not run, or not printed."
_CURVES = (
    "Every cell is ours / authors' plot data; a dash: not run, or not there; *: the solver did not"
    " converge."
)
_score = decimals(4)

# name in wu2016.quantities -> heading, format
_SWEPT = {
    "test": ("test", _score),
    "train": ("train", _score),
    "seconds": ("training, s", short),
    "bins": ("bins D", count),
    "kappa": ("kappa", short),
}
_TITLES = {title: method for method, title in wu2016.METHODS.items()}
_TIMED = ("seconds", "speedup", "low", "high", "steps", "kappa", "runs")
# the labels of a line of figure 6, of (curve, threads, point)
_OF_THREADS: dict[str, Callable[[Any], Cell]] = {
    "data set": lambda of: words(of[0].dataset),
    "method": lambda of: words(of[0].method),
    "threads": lambda of: number(of[1], count),
}
_COMPARED = {
    "test": ("test", _score),
    "seconds": ("training, s", short),
    "memory": ("memory, MiB", count),
}


def table1(rows) -> Table:
    """The sizes of the data sets, counted in the training and test data, next to the
    printed ones.
    """
    book = printed(__package__, "table1")
    counted = {
        row["dataset"]: row for row in rows if row["status"] == "ok" and row["split"] == "wu2016"
    }
    names = [
        name
        for name, stands_for in wu2016.DATA.items()
        if name in counted or (not stands_for and (name, "", "", "n_train") in book)
    ]
    cells = {
        (name, field): _counted(counted.get(name), field, book.get((name, "", "", field)))
        for name in names
        for field in _PROPERTIES
    }
    cell = lambda field: lambda name: cells[name, field]
    columns = {
        "data set": lambda name: words(wu2016.heading(name)),
        **{heading: cell(field) for field, heading in _PROPERTIES.items()},
        "rows in its files": lambda name: words(_files(name)),
    }
    notes = [_PAIRS]
    for name in names:
        own = {field: cells[name, field] for field in _PROPERTIES}
        notes += [
            f"Mismatch: {name}: {_PROPERTIES[field]} is {count(of.value or 0)} in the data,"
            f" {of.paper.text} in the paper."
            for field, of in own.items()
            if of.verdict == "differs" and isinstance(of.paper, Printed)
        ]
        notes += _drawn(name) if name in counted else []
    return Table(
        "wu2016-table1",
        "Wu et al. 2016, Table 1: properties of the data sets",
        [grid("", columns, names)],
        [
            *notes,
            "A regression set has one class, as in the paper.",
            (
                "acoustic: the paper's 78,823 training rows are the file's; the authors' programs"
                " report 38 fewer, 78,785."
            ),
            *failures([row for row in wu2016.of_figure(rows, "table1") if _known(row)]),
            *machines(row for row in counted.values() if _known(row)),
        ],
        [
            {
                "table": "wu2016-table1",
                "dataset": name,
                "stands_for": wu2016.DATA[name] or None,
                "field": field,
                "ours": cell.value,
                "paper": cell.paper,
                "verdict": cell.verdict,
            }
            for (name, field), cell in cells.items()
        ],
        [cell for cell in cells.values() if cell.paper is not None],
    )


def _known(row) -> bool:
    return row["dataset"] in wu2016.DATA


def _counted(row, field, paper) -> Cell:
    """Our count next to the paper's, with a verdict that the text does not mark."""
    ours = row and row[field] if field in ("n_train", "n_test", "n_inputs") else None
    if row and field == "n_classes":
        ours = max(1, row["params"].get("n_classes") or 0)
    verdict = None if None in (ours, paper) else "equal" if ours == paper else "differs"
    return number(ours, count, paper=paper, pair=True, verdict=verdict, marked=False)


def _files(name) -> str:
    return ", ".join(f"{entry.role} {count(entry.rows)}" for entry in registry.get(name).files)


def _drawn(name) -> list[str]:
    """How the split draws rows from the files, if the paper does not specify its rows."""
    info = registry.get(name)
    split = info.splits["wu2016"]
    if split.pool:
        return [
            f"{name}: which rows are for training is not said; the file is cut by rfx's own seed."
        ]
    there = sum(info.file(role).rows for role in split.train)
    if split.n_train and split.n_train < there:
        drawn = (
            f"{count(split.n_train)} of the training file's {count(there)} rows are drawn by rfx's"
            " own seed"
        )
        return [f"{name}: {drawn}; which ones the paper took is not said."]
    return []


def _swept(figure, title, axis, axis_heading, write_axis) -> Builder:
    """The table of figure 3 or 4: one section per data set, one line per place on the axis."""

    def section(curve, cells) -> Section:
        cell = lambda name: lambda place: cells[curve.dataset, place, name]
        gammas = "" if axis == "gamma" else f"; gamma = 1/sigma = {_gammas(curve)}"
        return grid(
            f"{wu2016.heading(curve.dataset)} ({wu2016.metric(curve.dataset)}{gammas})",
            {
                axis_heading: lambda place: number(place, write_axis),
                **{heading: cell(name) for name, (heading, _) in _SWEPT.items()},
            },
            curve.places,
            dataset=curve.dataset,
            methods=dict.fromkeys(range(1, len(_SWEPT) + 1), "rb"),
        )

    def make(rows, setting) -> Table:
        swept = wu2016.sweep(rows, figure, setting)
        cells = {
            (curve.dataset, place, name): _pair(curve, place, name, write)
            for curve in swept
            for place in curve.places
            for name, (_, write) in _SWEPT.items()
        }
        tidy = [
            {
                "table": f"wu2016-{figure}",
                "setting": setting,
                "dataset": dataset,
                "method": "rb",
                axis: place,
            }
            | _fields(name, cell)
            for (dataset, place, name), cell in cells.items()
        ]
        sections = [section(curve, cells) for curve in _shown(swept)]
        made = Table(f"wu2016-{figure}", f"{title}; setting: {setting}", sections, [], tidy)
        return _finished(made, figure, setting, rows, cells.values())

    return Builder(
        f"wu2016-{figure}",
        make,
        wu2016.settings(figure),
        unrun=lambda: make([], next(iter(wu2016.SETTINGS))).compared,
    )


def _shown(found):
    """The curves of data sets for which we have rows; if there are no rows at all, the authors'
    curves of all data sets.
    """
    ours = {curve.dataset for curve in found if curve.ours}
    return [curve for curve in found if not ours or curve.dataset in ours]


def _gammas(curve) -> str:
    """Ours / the authors' if they differ."""
    ours = [gamma for point in curve.ours.values() for gamma in point["gammas"]]
    authors = [point["gamma"] for point in curve.authors.values()]
    texts = [wu2016.span(found) if found else DASH for found in (ours, authors)]
    return texts[0] if texts[0] == texts[1] else " / ".join(texts)


def _fields(name, cell) -> dict:
    """A cell as entries of CSV and JSON."""
    return {
        "field": name,
        "ours": cell.value,
        "paper": cell.paper,
        "converged": cell.converged,
        "verdict": cell.verdict,
    }


def figure5(rows, setting) -> Table:
    """Test performance, training time and memory of all methods over R, and the cost of a given
    test performance for each.
    """
    found = wu2016.comparison(rows, setting)
    shown = [curve.dataset for curve in _shown(found)]
    by_data = {
        dataset: {method: wu2016.Curve(dataset, method) for method in wu2016.METHODS}
        | {curve.method: curve for curve in found if curve.dataset == dataset}
        for dataset in dict.fromkeys(curve.dataset for curve in found)
    }
    sections, cells, compared = [], [], []
    for dataset, own in by_data.items():
        section, known = _compared(dataset, own)
        compared += [cell for cell, _ in known]
        made = [(section, [line for _, line in known])]
        wanted = wu2016.target(own["rb"])
        if dataset in shown and wanted is not None:
            made.append(_reached(dataset, own, wanted))
        sections += [section for section, _ in made] if dataset in shown else []
        of = {"table": "wu2016-fig5", "setting": setting, "dataset": dataset}
        cells += [of | line for _, lines in made for line in lines]
    title = "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel"
    notes = [
        (
            "To reach a test performance: the quickest run that does; the authors' other methods go"
            " up to R = 65,536."
        ),
        f"Memory: {wu2016.MEMORY}",
    ]
    made_table = Table("wu2016-fig5", f"{title}; setting: {setting}", sections, notes, cells)
    return _finished(made_table, "fig5", setting, rows, compared)


def _compared(dataset, own) -> tuple[Section, list[tuple[Cell, dict]]]:
    """The section of one data set of figure 5; and for each existing point its cells and their
    values for CSV and JSON.
    """
    # the exact kernel, at 0, uses every row: it comes last
    places = {place for curve in own.values() for place in curve.places if place <= 1024}
    cells = {
        (place, name): {method: _pair(curve, place, name, write) for method, curve in own.items()}
        for place in sorted(places, key=lambda place: (place == 0, place))
        for name, (_, write) in _COMPARED.items()
    }
    cell_of = lambda method: lambda of: cells[of][method]
    columns = {
        "R": lambda of: words(("all" if of[0] == 0 else count(of[0])) if of[1] == "test" else ""),
        "": lambda of: words(_COMPARED[of[1]][0]),
        **{title: cell_of(method) for method, title in wu2016.METHODS.items()},
    }
    heading = f"{wu2016.heading(dataset)} ({wu2016.metric(dataset)})"
    return grid(heading, columns, cells, 2, dataset=dataset, methods=_TITLES), [
        (cell, {"method": method, "n_features": place or None} | _fields(name, cell))
        for (place, name), line in cells.items()
        for method, cell in line.items()
        if place in own[method].places
    ]


def _reached(dataset, own, wanted) -> tuple[Section, list[dict]]:
    """The section and cells of each method's cost to be as good as the authors' rb at R = 128."""
    found = {
        method: [wu2016.reach(curve, whose, wanted) for whose in ("ours", "authors")]
        for method, curve in own.items()
    }
    writes = {
        "R": ("R", count),
        "seconds": ("training, s", short),
        "memory": ("memory, MiB", count),
    }
    costs = {
        (name, method): [
            None if at is None else at[0] or None if name == "R" else at[1].get(name) for at in both
        ]
        for name in writes
        for method, both in found.items()
    }
    lines = [
        [
            words(heading),
            *(
                number(
                    costs[name, method][0], write, paper=_plain(costs[name, method][1]), pair=True
                )
                for method in found
            ),
        ]
        for name, (heading, write) in writes.items()
    ]
    title = (
        f"{dataset}: to reach a test {wu2016.metric(dataset)} of {wanted:.4f}, the authors' rb at R"
        " = 128"
    )
    columns = ["", *wu2016.METHODS.values()]
    return Section(title, columns, lines, dataset=dataset, methods=_TITLES), [
        {
            "method": method,
            "n_features": None,
            "field": f"{name} to reach {wanted:g}",
            "ours": ours,
            "paper": authors,
        }
        for (name, method), (ours, authors) in costs.items()
    ]


def figure6(rows) -> Table:
    """Seconds and speed-up of parallel coordinate descent over threads."""
    points = [
        (curve, threads, point)
        for curve in wu2016.speedups(rows)
        for threads, point in sorted(curve.ours.items())
    ]
    columns = _OF_THREADS | {
        "training, s": lambda of: number(
            of[2]["seconds"], short, converged=bool(of[2]["converged"])
        ),
        "speed-up": lambda of: speedup_cell(of[2]),
        "passes": lambda of: number(of[2]["steps"], count),
        "kappa": lambda of: number(of[2]["kappa"], short),
        "runs": lambda of: number(of[2]["runs"], count),
    }
    cells = [
        {
            "table": "wu2016-fig6",
            "dataset": curve.dataset,
            "method": curve.method,
            "threads": threads,
            "field": name,
            "ours": point[name],
            "converged": point["converged"],
        }
        for curve, threads, point in points
        for name in _TIMED
    ]
    notes = [
        (
            "Medians over the seeds; speed-up: a seed's time with one thread over its time with"
            " several, its range in brackets."
        ),
        "Times are of the passes over the columns, to the same relative duality gap.",
        "The authors' speed-ups are in no file that we have.",
        *_of_rows(wu2016.of_figure(rows, "fig6")),
    ]
    title = (
        "Wu et al. 2016, Figure 6: speed-up of parallel randomised coordinate descent (L1) over"
        " threads"
    )
    return Table("wu2016-fig6", title, [grid("", columns, points, 3)], notes, cells)


def _of_rows(rows) -> list[str]:
    """The notes on failed runs and on the machines of the others."""
    return failures(rows) + machines([row for row in rows if row["status"] == "ok"])


def speedup_cell(point) -> Cell:
    """The median speed-up over the seeds, with its range."""
    if not point["speedup"]:
        return Cell()
    return Cell(
        Mean(point["speedup"], None, point["runs"], point["low"], point["high"]),
        decimals(2),
        "range",
    )


def _plain(value: float | None) -> float | None:
    """A number from the authors' plot data, written with as many digits as ours."""
    return None if value is None else float(value)


def _pair(curve: wu2016.Curve, place: float, name: str, write) -> Cell:
    """Ours next to the authors' at one place: performance with its noise over the seeds, and test
    performance with a verdict.
    """
    ours, authors = curve.ours.get(place, {}), curve.authors.get(place, {})
    return Cell(
        ours.get("means", {}).get(name),
        write,
        "deviation" if name in ("test", "train") else "",
        _plain(authors.get(name)),
        pair=True,
        verdict=wu2016.judged(curve.dataset, name, ours, authors),
        converged=ours.get("converged"),
        marked=name == "test",
    )


def _finished(made: Table, figure, setting, rows, compared) -> Table:
    """A table of our numbers next to the authors' plot data, with its notes and the
    compared cells.
    """
    own = wu2016.of_figure(rows, figure, setting)
    used = [row for row in own if row["status"] == "ok"]
    runs = len({row["seed"] for row in used})
    seeds = (
        [
            (
                f"Ours: means over up to {runs} seeds, ± their standard deviation; without it a"
                " single run."
            ),
            LEGEND,
        ]
        if runs > 1
        else []
    )
    made.notes = [_CURVES, f"Setting {setting}: {wu2016.SETTINGS[setting]}", *made.notes]
    made.notes += [
        *seeds,
        *([f"lambda: {wu2016.lambdas(used, by_method=figure == 'fig5')}"] if used else []),
    ]
    made.notes += [f"Differs from the paper: {text}" for text in wu2016.AUTHORS]
    made.notes += failures(own) + machines(used)
    made.compared = [cell for cell in compared if cell.paper is not None]
    return made


def theorem1(rows) -> Table:
    """A section for each data set, penalty and gamma: R, kappa R, the distance above the limit, the
    bound's last term, and the bound.
    """
    found = theory.cases(rows)
    labels: dict[str, Callable[[Any], Cell]] = {
        "data set": lambda case: words(case.dataset),
        "penalty": lambda case: words(case.penalty),
        "1/sigma": lambda case: number(case.gamma, general),
    }
    summary = labels | {
        "kappa": lambda case: number(case.kappa, short),
        "slope": lambda case: number(case.slope(), decimals(2)),
        "||w*||": lambda case: number(case.reference.norm, "{:.3g}".format),
        "F(0)": lambda case: number(case.reference.zero, decimals(4)),
        "F(w*)": lambda case: number(case.reference.value, decimals(4)),
        "limit": lambda case: number(
            case.excess.limit if case.penalty == "L1" else case.reference.objective, decimals(4)
        ),
        "c": lambda case: number(case.wasted, count),
    }
    points = [(case, size, above) for case in found for size, above, _ in zip(*case.points())]
    columns = {name: lambda of, cell=cell: cell(of[0]) for name, cell in labels.items()} | {
        "R": lambda of: number(of[1], count),
        "kappa R": lambda of: number(of[0].kappa * of[1], short),
        "objective": lambda of: number(of[0].objective(of[1]), decimals(5)),
        "above the limit": lambda of: number(of[2], decimals(5)),
        "x kappa R / (beta ||w*||^2)": lambda of: number(
            of[2] / of[0].scale * of[0].kappa * of[1], "{:.3g}".format
        ),
        "bound": lambda of: bound_cell(of[0].bound(of[1]), of[0].reference.zero),
    }
    cells = [
        {
            "table": "wu2016-theorem1",
            "dataset": case.dataset,
            "penalty": case.penalty,
            "gamma": case.gamma,
            "n_grids": size,
            "kappa": case.kappa,
            "objective": case.objective(size),
            "above": above,
            "bound": None if case.bound(size) == float("inf") else case.bound(size),
            "slope": case.slope(),
            "scale": case.scale,
        }
        for case, size, above in points
    ]
    notes = [
        *theory.NOTES,
        (
            "Objectives are divided by the number of rows. The theorem promises a last but one"
            " column below 2 as long as F is above F(w*); vacuous: a bound above F(0)."
        ),
        *_of_rows([row for row in rows if row["params"].get("label") == theory.LABEL]),
    ]
    return Table(
        "wu2016-theorem1",
        "Wu et al. 2016, Theorem 1: the objective of random binning against kappa R",
        [
            grid("slopes against R, and what the bound is made of", summary, found, 3),
            grid("all R", columns, points, 4),
        ],
        notes,
        cells,
    )


def bound_cell(bound: float | None, zero: float) -> Cell:
    """A bound, which is vacuous if it is at least the objective of zero weights."""
    if bound == float("inf"):
        return words("infinite")
    return number(bound, short, note=", vacuous" if bound is not None and bound >= zero else "")


def speedup(rows) -> Table:
    """Each data set and method of Figure 6: predicted and measured speed-up by threads, and the
    prediction of equation 30 with kappa + 1 threads.
    """
    sizes = theory.sizes(rows)
    points = [
        (curve, threads, point, *sizes[curve.dataset, curve.method])
        for curve in wu2016.speedups(rows)
        if (curve.dataset, curve.method) in sizes
        for threads, point in sorted(curve.ours.items())
    ]
    columns = {
        **dict(list(_OF_THREADS.items())[:2]),
        "R": lambda of: number(of[3], count),
        "D": lambda of: number(round(of[4]), count),
        "kappa": lambda of: number(of[4] / of[3], short),
        "threads": _OF_THREADS["threads"],
        "equation 29": lambda of: number(theory.predicted(of[1], of[3], of[4]), decimals(2)),
        "measured": lambda of: speedup_cell(of[2]),
        "equation 30": lambda of: number(theory.limit(1.0, of[4] / of[3]), short),
    }
    cells = [
        {
            "table": "wu2016-speedup",
            "dataset": curve.dataset,
            "method": curve.method,
            "threads": threads,
            "kappa": bins / grids,
            "predicted": theory.predicted(threads, grids, bins),
            "ours": point["speedup"],
        }
        for curve, threads, point, grids, bins in points
    ]
    title = (
        "Wu et al. 2016, equations 29 and 30: predicted and measured speed-up of parallel"
        " coordinate descent"
    )
    notes = [*theory.SPEEDUP_NOTES, *_of_rows(wu2016.of_figure(rows, "fig6"))]
    return Table("wu2016-speedup", title, [grid("", columns, points, 2)], notes, cells)


TABLES = {
    "theorem1": Builder("wu2016-theorem1", theorem1),
    "speedup": Builder("wu2016-speedup", speedup, plan="fig6"),
    "table1": Builder("wu2016-table1", table1, unrun=lambda: table1([]).compared),
    "fig3": _swept(
        "fig3",
        "Wu et al. 2016, Figure 3: random binning while sigma varies, R = 128",
        "gamma",
        "1/sigma",
        general,
    ),
    "fig4": _swept(
        "fig4",
        "Wu et al. 2016, Figure 4: random binning while R varies, sigma fixed",
        "n_grids",
        "R",
        count,
    ),
    "fig5": Builder(
        "wu2016-fig5", figure5, wu2016.settings("fig5"), unrun=lambda: figure5([], "paper").compared
    ),
    "fig6": Builder("wu2016-fig6", figure6),
}
