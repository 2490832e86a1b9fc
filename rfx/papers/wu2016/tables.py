"""Table 1 of Wu et al. 2016 (random binning features), and the numbers behind its Figures 3 to 6,
Theorem 1 and equations 29 and 30 as tables.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rfx.data import registry
from rfx.papers.wu2016 import curves as wu2016
from rfx.reporting.cells import (
    DASH,
    LEGEND,
    Builder,
    Cell,
    Printed,
    Row,
    Section,
    Table,
    count,
    crossed,
    decimals,
    general,
    good,
    grid,
    labelled,
    number,
    printed,
    short,
    words,
)
from rfx.reporting.tables import failures, machines

_PROPERTIES = {"n_train": "N train", "n_test": "N test", "n_inputs": "d", "n_classes": "classes"}
_PAIRS = "Every cell is ours / paper; a dash: not run, or not printed."
_CURVES = (
    "Every cell is ours / authors' plot data; a dash: not run, or not there; *: the solver did not"
    " converge."
)
_score = decimals(4)

# name in wu2016.QUANTITIES -> heading, format
_SWEPT: dict[str, tuple[str, Callable[[float], str]]] = {
    "test": ("test", _score),
    "train": ("train", _score),
    "seconds": ("training, s", short),
    "bins": ("bins D", count),
    "kappa": ("kappa", short),
}
_COMPARED: dict[str, tuple[str, Callable[[float], str]]] = {
    "test": ("test", _score),
    "seconds": ("training, s", short),
    "memory": ("memory, MiB", count),
}
_TITLES = {title: method for method, title in wu2016.METHODS.items()}
# the columns of a wu2016.Timed
_TIMED: dict[str, Callable[[wu2016.Timed], Cell]] = {
    "data set": lambda one: words(one.dataset),
    "method": lambda one: words(one.method),
    "threads": lambda one: number(one.threads, count),
}


def table1(rows: Sequence[Row]) -> Table:
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
    return Table(
        name="wu2016-table1",
        title="Wu et al. 2016, Table 1: properties of the data sets",
        sections=[
            grid(
                "",
                {
                    "data set": lambda name: words(wu2016.heading(name)),
                    **crossed(cells, {heading: field for field, heading in _PROPERTIES.items()}),
                    "rows in its files": lambda name: words(
                        ", ".join(
                            f"{one.role} {count(one.rows)}" for one in registry.get(name).files
                        )
                    ),
                },
                names,
            )
        ],
        notes=[
            _PAIRS,
            *(note for name in names for note in _mismatches(name, cells, counted)),
            "A regression set has one class, as in the paper.",
            (
                "acoustic: the paper's 78,823 training rows are the file's; the authors' programs"
                " report 38 fewer, 78,785."
            ),
            *failures(
                wu2016.of_figure([row for row in rows if row["dataset"] in wu2016.DATA], "table1")
            ),
            *machines(row for row in counted.values() if row["dataset"] in wu2016.DATA),
        ],
        cells=[
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
        compared=[cell for cell in cells.values() if cell.paper is not None],
    )


def _mismatches(name: str, cells: Mapping, counted: Mapping) -> list[str]:
    """The notes on counts that differ from the printed ones, and on how the split draws rows from
    the files, if the paper does not specify its rows.
    """
    info = registry.get(name)
    split = info.splits["wu2016"]
    there = sum(info.file(role).rows for role in split.train)
    drawn = ""
    if split.pool:
        drawn = "which rows are for training is not said; the file is cut by rfx's own seed."
    elif split.n_train and split.n_train < there:
        drawn = (
            f"{count(split.n_train)} of the training file's {count(there)} rows are drawn by rfx's"
            " own seed; which ones the paper took is not said."
        )
    return [
        f"Mismatch: {name}: {heading} is {count(cell.value or 0)} in the data, {cell.paper.text} in"
        " the paper."
        for field, heading in _PROPERTIES.items()
        if (cell := cells[name, field]).verdict == "differs" and isinstance(cell.paper, Printed)
    ] + [f"{name}: {drawn}"] * bool(drawn and name in counted)


def _counted(row: Row | None, field: str, paper: Printed | None) -> Cell:
    """Our count next to the paper's, with a verdict that the text does not mark."""
    ours: int | None = row.get(field) if row else None
    if row and field == "n_classes":
        ours = max(1, row["params"].get("n_classes") or 0)
    verdict = None if None in (ours, paper) else "equal" if ours == paper else "differs"
    return number(ours, count, paper=paper, pair=True, verdict=verdict, marked=False)


def _swept(figure: str, title: str, axis: str, axis_heading: str, write_axis) -> Builder:
    """The table of figure 3 or 4: one section per data set, one line per place on the axis."""

    def section(curve: wu2016.Curve) -> Section:
        cell = lambda name, write: lambda place: _pair(curve, place, name, write)
        gammas = "" if axis == "gamma" else f"; gamma = 1/sigma = {_gammas(curve)}"
        columns = {axis_heading: lambda place: number(place, write_axis)} | {
            heading: cell(name, write) for name, (heading, write) in _SWEPT.items()
        }
        heading = f"{wu2016.heading(curve.dataset)} ({wu2016.metric(curve.dataset)}{gammas})"
        methods = dict.fromkeys(range(1, len(columns)), "rb")
        return grid(heading, columns, curve.places, dataset=curve.dataset, methods=methods)

    def make(rows: Sequence[Row], setting: str) -> Table:
        swept = wu2016.compared(rows, figure, setting)
        cells = {
            (curve.dataset, place, name): _pair(curve, place, name, write)
            for curve in swept
            for place in curve.places
            for name, (_, write) in _SWEPT.items()
        }
        tidy = [
            {"dataset": dataset, "method": "rb", axis: place} | _fields(name, cell)
            for (dataset, place, name), cell in cells.items()
        ]
        sections = [section(curve) for curve in _shown(swept)]
        return _table(figure, title, setting, rows, sections, tidy, cells.values())

    first = next(iter(wu2016.SETTINGS))
    unrun = lambda: make([], first).compared
    return Builder(f"wu2016-{figure}", make, wu2016.settings(figure), unrun=unrun)


def _shown(curves: Sequence[wu2016.Curve]) -> list[wu2016.Curve]:
    """The curves of data sets for which we have rows; if there are no rows at all, the authors'
    curves of all data sets.
    """
    ours = {curve.dataset for curve in curves if curve.ours}
    return [curve for curve in curves if not ours or curve.dataset in ours]


def _gammas(curve: wu2016.Curve) -> str:
    """Ours / the authors' if they differ."""
    both = (curve.ends("gamma"), curve.series("authors", "gamma").values())
    return " / ".join(
        dict.fromkeys(wu2016.span(gammas, "{:.3g}".format) or DASH for gammas in both)
    )


def _pair(curve: wu2016.Curve, place: float, name: str, write: Callable[[float], str]) -> Cell:
    """Ours next to the authors' at one place: performance with its noise over the seeds, and test
    performance with a verdict.
    """
    authors = curve.authors.get(place, {}).get(name)
    return Cell(
        curve.ours.get(place, {}).get(name),
        write,
        "deviation" if name in ("test", "train") else "",
        # written with as many digits as ours
        None if authors is None else float(authors),
        pair=True,
        verdict=curve.judged(place, name),
        converged=curve.converged(place),
        marked=name == "test",
    )


def _fields(name: str, cell: Cell) -> dict[str, Any]:
    """A cell as entries of CSV and JSON."""
    return {
        "field": name,
        "ours": cell.value,
        "paper": cell.paper,
        "converged": cell.converged,
        "verdict": cell.verdict,
    }


def figure5(rows: Sequence[Row], setting: str) -> Table:
    """Test performance, training time and memory of all methods over R, and the cost of a given
    test performance for each.
    """
    found = wu2016.compared(rows, "fig5", setting)
    shown = {curve.dataset for curve in _shown(found)}
    sections: list[Section] = []
    tidy: list[dict[str, Any]] = []
    compared: list[Cell] = []
    for dataset in dict.fromkeys(curve.dataset for curve in found):
        curves = {method: wu2016.Curve(dataset, method) for method in wu2016.METHODS} | {
            curve.method: curve for curve in found if curve.dataset == dataset
        }
        # the exact kernel, at 0, uses every row: it comes last
        places = {place for curve in curves.values() for place in curve.places if place <= 1024}
        cells = {
            (place, name, method): _pair(curve, place, name, write)
            for place in sorted(places, key=lambda place: (place == 0, place))
            for name, (_, write) in _COMPARED.items()
            for method, curve in curves.items()
        }
        known = {of: cell for of, cell in cells.items() if of[0] in curves[of[2]].places}
        compared += known.values()
        tidy += [
            {"dataset": dataset, "method": method, "n_features": place or None}
            | _fields(name, cell)
            for (place, name, method), cell in known.items()
        ]
        wanted = wu2016.target(curves["rb"])
        if dataset in shown:
            sections.append(_all_methods(dataset, cells))
        if dataset in shown and wanted is not None:
            section, lines = _reached(dataset, curves, wanted)
            sections.append(section)
            tidy += lines
    return _table(
        "fig5",
        "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel",
        setting,
        rows,
        sections,
        tidy,
        compared,
        [
            (
                "To reach a test performance: the quickest run that does; the authors' other"
                " methods go up to R = 65,536."
            ),
            f"Memory: {wu2016.MEMORY}",
        ],
    )


def _all_methods(dataset: str, cells: Mapping[tuple, Cell]) -> Section:
    """The section of one data set of figure 5."""
    return grid(
        f"{wu2016.heading(dataset)} ({wu2016.metric(dataset)})",
        {
            "R": lambda of: words("" if of[1] != "test" else "all" if of[0] == 0 else count(of[0])),
            "": lambda of: words(_COMPARED[of[1]][0]),
            **crossed(cells, _TITLES),
        },
        dict.fromkeys(of[:2] for of in cells),
        2,
        dataset=dataset,
        methods=_TITLES,
    )


def _reached(
    dataset: str, curves: Mapping[str, wu2016.Curve], wanted: float
) -> tuple[Section, list[dict[str, Any]]]:
    """The section and cells of each method's cost to be as good as the authors' rb at R = 128."""
    writes = {"R": ("R", count)} | {name: _COMPARED[name] for name in ("seconds", "memory")}

    def cost(curve: wu2016.Curve, whose: str, name: str) -> float | None:
        place = wu2016.reach(curve, whose, wanted)
        if place is None:
            return None
        return (place or None) if name == "R" else curve.series(whose, name).get(place)

    cells = {
        (name, method): number(
            cost(curve, "ours", name),
            write,
            paper=None if (paper := cost(curve, "authors", name)) is None else float(paper),
            pair=True,
        )
        for name, (_, write) in writes.items()
        for method, curve in curves.items()
    }
    title = (
        f"{dataset}: to reach a test {wu2016.metric(dataset)} of {wanted:.4f}, the authors' rb at R"
        " = 128"
    )
    return grid(
        title,
        {"": lambda name: words(writes[name][0])} | crossed(cells, _TITLES),
        writes,
        dataset=dataset,
        methods=_TITLES,
    ), [
        {"dataset": dataset, "method": method, "n_features": None}
        | {"field": f"{name} to reach {wanted:g}", "ours": cell.value, "paper": cell.paper}
        for (name, method), cell in cells.items()
    ]


def _table(
    figure: str,
    title: str,
    setting: str,
    rows: Sequence[Row],
    sections: list[Section],
    tidy: list[dict[str, Any]],
    compared: Iterable[Cell],
    notes: Sequence[str] = (),
) -> Table:
    """A table of our numbers next to the authors' plot data, with the notes common to all."""
    own = wu2016.of_figure(rows, figure, setting)
    used = good(own)
    runs = len({row["seed"] for row in used})
    seeds = (
        f"Ours: means over up to {runs} seeds, ± their standard deviation; without it a single run."
    )
    lams = wu2016.lambdas(used, by_method=figure == "fig5")
    name = f"wu2016-{figure}"
    return Table(
        name=name,
        title=f"{title}; setting: {setting}",
        sections=sections,
        notes=[
            _CURVES,
            f"Setting {setting}: {wu2016.SETTINGS[setting]}",
            *notes,
            *([seeds, LEGEND] if runs > 1 else []),
            *([f"lambda: {lams}"] if used else []),
            *(f"Differs from the paper: {text}" for text in wu2016.AUTHORS),
            *failures(own),
            *machines(own),
        ],
        cells=[{"table": name, "setting": setting} | line for line in tidy],
        compared=[cell for cell in compared if cell.paper is not None],
    )


def figure6(rows: Sequence[Row]) -> Table:
    """Seconds and speed-up of parallel coordinate descent over threads."""
    points = wu2016.timed(rows)
    own = wu2016.of_figure(rows, "fig6")
    return Table(
        name="wu2016-fig6",
        title=(
            "Wu et al. 2016, Figure 6: speed-up of parallel randomised coordinate descent (L1)"
            " over threads"
        ),
        sections=[
            grid(
                "",
                _TIMED
                | {
                    "training, s": lambda one: number(one.seconds, short, converged=one.converged),
                    "speed-up": lambda one: Cell(one.speedup, decimals(2), "range"),
                    "passes": lambda one: number(one.steps, count),
                    "kappa": lambda one: number(one.kappa, short),
                    "runs": lambda one: number(one.runs, count),
                },
                points,
                3,
            )
        ],
        notes=[
            (
                "Medians over the seeds; speed-up: a seed's time with one thread over its time with"
                " several, its range in brackets."
            ),
            "Times are of the passes over the columns, to the same relative duality gap.",
            "The authors' speed-ups are in no file that we have.",
            *failures(own),
            *machines(own),
        ],
        cells=[
            {
                "table": "wu2016-fig6",
                "dataset": one.dataset,
                "method": one.method,
                "threads": one.threads,
                "field": name,
                "ours": ours,
                "converged": one.converged,
            }
            for one in points
            for name, ours in {
                "seconds": one.seconds,
                "speedup": one.speedup and one.speedup.value,
                "low": one.speedup and one.speedup.low,
                "high": one.speedup and one.speedup.high,
                "steps": one.steps,
                "kappa": one.kappa,
                "runs": one.runs,
            }.items()
        ],
    )


def speedup(rows: Sequence[Row]) -> Table:
    """Each data set and method of Figure 6: predicted and measured speed-up by threads, and the
    prediction of equation 30 with kappa + 1 threads.
    """
    points = wu2016.timed(rows)
    predicted = lambda one: wu2016.predicted(one.threads, one.grids, one.bins)
    own = wu2016.of_figure(rows, "fig6")
    return Table(
        name="wu2016-speedup",
        title="Wu et al. 2016, equations 29 and 30: predicted and measured speed-up of parallel"
        " coordinate descent",
        sections=[
            grid(
                "",
                {
                    "data set": _TIMED["data set"],
                    "method": _TIMED["method"],
                    "R": lambda one: number(one.grids, count),
                    "D": lambda one: number(round(one.bins), count),
                    "kappa": lambda one: number(one.bins / one.grids, short),
                    "threads": _TIMED["threads"],
                    "equation 29": lambda one: number(predicted(one), decimals(2)),
                    "measured": lambda one: Cell(one.speedup, decimals(2), "range"),
                    "equation 30": lambda one: number(
                        wu2016.limit(1.0, one.bins / one.grids), short
                    ),
                },
                points,
                2,
            )
        ],
        notes=[*wu2016.SPEEDUP_NOTES, *failures(own), *machines(own)],
        cells=[
            {
                "table": "wu2016-speedup",
                "dataset": one.dataset,
                "method": one.method,
                "threads": one.threads,
                "kappa": one.bins / one.grids,
                "predicted": predicted(one),
                "ours": one.speedup and one.speedup.value,
            }
            for one in points
        ],
    )


def theorem1(rows: Sequence[Row]) -> Table:
    """A section for each data set, penalty and gamma: R, kappa R, the distance above the limit, the
    bound's last term, and the bound.
    """
    found = wu2016.cases(rows)
    labels: dict[str, Callable[[wu2016.Case], Cell]] = {
        "data set": lambda case: words(case.dataset),
        "penalty": lambda case: words(case.penalty),
        "1/sigma": lambda case: number(case.gamma, general),
    }
    # case, R, the distance above the limit
    points = [
        (case, size, mean.value) for case in found for size, mean in case.excess.above.items()
    ]
    own = labelled(rows, wu2016.THEOREM1)
    return Table(
        name="wu2016-theorem1",
        title="Wu et al. 2016, Theorem 1: the objective of random binning against kappa R",
        sections=[
            grid(
                "slopes against R, and what the bound is made of",
                labels
                | {
                    "kappa": lambda case: number(case.reference.kappa, short),
                    "slope": lambda case: number(case.excess.slope, decimals(2)),
                    "||w*||": lambda case: number(case.reference.norm, "{:.3g}".format),
                    "F(0)": lambda case: number(case.reference.zero, decimals(4)),
                    "F(w*)": lambda case: number(case.reference.value, decimals(4)),
                    "limit": lambda case: number(case.excess.limit, decimals(4)),
                    "c": lambda case: number(case.wasted, count),
                },
                found,
                3,
            ),
            grid(
                "all R",
                {name: lambda of, cell=cell: cell(of[0]) for name, cell in labels.items()}
                | {
                    "R": lambda of: number(of[1], count),
                    "kappa R": lambda of: number(of[0].reference.kappa * of[1], short),
                    "objective": lambda of: number(of[0].excess.limit + of[2], decimals(5)),
                    "above the limit": lambda of: number(of[2], decimals(5)),
                    "x kappa R / (beta ||w*||^2)": lambda of: number(
                        of[2] / of[0].reference.scale * of[0].reference.kappa * of[1],
                        "{:.3g}".format,
                    ),
                    "bound": lambda of: of[0].bound_cell(of[1]),
                },
                points,
                4,
            ),
        ],
        notes=[
            *wu2016.THEOREM_NOTES,
            (
                "Objectives are divided by the number of rows. The theorem promises a last but one"
                " column below 2 as long as F is above F(w*); vacuous: a bound above F(0)."
            ),
            *failures(own),
            *machines(own),
        ],
        cells=[
            {
                "table": "wu2016-theorem1",
                "dataset": case.dataset,
                "penalty": case.penalty,
                "gamma": case.gamma,
                "n_grids": size,
                "kappa": case.reference.kappa,
                "objective": case.excess.limit + above,
                "above": above,
                "bound": case.bound_cell(size).value,
                "slope": case.excess.slope,
                "scale": case.reference.scale,
            }
            for case, size, above in points
        ],
    )


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
