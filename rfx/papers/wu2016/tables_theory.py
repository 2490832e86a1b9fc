"""Theorem 1 of Wu et al. 2016 and its equations 29 and 30 in numbers, next to our measurements."""

from rfx.papers.wu2016 import curves as wu2016
from rfx.papers.wu2016 import theory
from rfx.papers.wu2016.tables import speedup_cell
from rfx.reporting.builders import Builder
from rfx.reporting.cells import Cell, Section, Table, count, decimals, general, number, short, words
from rfx.reporting.seeds import mean_of
from rfx.reporting.tables import failures, machines


def theorem1(rows) -> Table:
    """A section for each data set, penalty and gamma: R, kappa R, the distance above the limit, the
    bound's last term, and the bound.
    """
    lines, cells, summary = [], [], []
    for case in theory.cases(rows):
        slope, reference = case.slope(), case.reference
        of = [words(case.dataset), words(case.penalty), number(case.gamma, general)]
        for size, above, _ in zip(*case.points()):
            bound = (
                reference.bound(size, case.curvature, case.kappa) if case.penalty == "L1" else None
            )
            objective, product = mean_of(case.excess.values[size]).value, case.kappa * size
            lines.append(
                [
                    *of,
                    number(size, count),
                    number(product, short),
                    number(objective, decimals(5)),
                    number(above, decimals(5)),
                    number(above / case.scale * product, "{:.3g}".format),
                    bound_cell(bound, reference.zero),
                ]
            )
            cells.append(
                {
                    "table": "wu2016-theorem1",
                    "dataset": case.dataset,
                    "penalty": case.penalty,
                    "gamma": case.gamma,
                    "n_grids": size,
                    "kappa": case.kappa,
                    "objective": objective,
                    "above": above,
                    "bound": None if bound == float("inf") else bound,
                    "slope": slope,
                    "scale": case.scale,
                }
            )
        first = case.penalty == "L1"
        wasted = reference.wasted(case.curvature, case.kappa) if first else None
        summary.append(
            [
                *of,
                number(case.kappa, short),
                number(slope, decimals(2)),
                number(reference.norm, "{:.3g}".format),
                *(
                    number(value, decimals(4))
                    for value in (
                        reference.zero,
                        reference.value,
                        case.excess.limit if first else reference.objective,
                    )
                ),
                number(wasted, count),
            ]
        )
    columns = [
        "data set",
        "penalty",
        "1/sigma",
        "R",
        "kappa R",
        "objective",
        "above the limit",
        "x kappa R / (beta ||w*||^2)",
        "bound",
    ]
    heads = [
        "data set",
        "penalty",
        "1/sigma",
        "kappa",
        "slope",
        "||w*||",
        "F(0)",
        "F(w*)",
        "limit",
        "c",
    ]
    sections = [
        Section("slopes against R, and what the bound is made of", heads, summary, 3),
        Section("all R", columns, lines, 4),
    ]
    own = [row for row in rows if row["params"].get("label") == theory.LABEL]
    notes = [
        *theory.NOTES,
        (
            "Objectives are divided by the number of rows. The theorem promises a last but one"
            " column below 2 as long as F is above F(w*); vacuous: a bound above F(0)."
        ),
    ]
    notes += failures(own) + machines([row for row in own if row["status"] == "ok"])
    return Table(
        "wu2016-theorem1",
        "Wu et al. 2016, Theorem 1: the objective of random binning against kappa R",
        sections,
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
    sizes, lines, cells = theory.sizes(rows), [], []
    for curve in wu2016.speedups(rows):
        if (curve.dataset, curve.method) not in sizes:
            continue
        grids, bins = sizes[curve.dataset, curve.method]
        kappa = bins / grids
        for threads, point in sorted(curve.ours.items()):
            expected = theory.predicted(threads, grids, bins)
            lines.append(
                [
                    words(curve.dataset),
                    words(curve.method),
                    number(grids, count),
                    number(round(bins), count),
                    number(kappa, short),
                    number(threads, count),
                    number(expected, decimals(2)),
                    speedup_cell(point),
                    number(theory.limit(1.0, kappa), short),
                ]
            )
            cells.append(
                {
                    "table": "wu2016-speedup",
                    "dataset": curve.dataset,
                    "method": curve.method,
                    "threads": threads,
                    "kappa": kappa,
                    "predicted": expected,
                    "ours": point["speedup"],
                }
            )
    columns = [
        "data set",
        "method",
        "R",
        "D",
        "kappa",
        "threads",
        "equation 29",
        "measured",
        "equation 30",
    ]
    own = wu2016.of_figure(rows, "fig6")
    notes = [
        *theory.SPEEDUP_NOTES,
        *failures(own),
        *machines([row for row in own if row["status"] == "ok"]),
    ]
    title = (
        "Wu et al. 2016, equations 29 and 30: predicted and measured speed-up of parallel"
        " coordinate descent"
    )
    return Table("wu2016-speedup", title, [Section("", columns, lines, 2)], notes, cells)


TABLES = {
    "theorem1": Builder("wu2016-theorem1", theorem1),
    "speedup": Builder("wu2016-speedup", speedup, plan="fig6"),
}
