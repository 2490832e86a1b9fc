"""Theorem 1 of Wu et al. 2016 and its equations 29 and 30 in numbers, beside what we measured."""

from rfx.papers.wu2016 import curves as wu2016
from rfx.papers.wu2016 import theory
from rfx.plans.catalogue import of_plan
from rfx.reporting.seeds import mean
from rfx.reporting.tables import DASH, Section, Table, count, failures, machines, short


def theorem1(rows, setting=None) -> Table:
    """A section for each data set, penalty and gamma: R, kappa R, what is above the limit, the bound's last term and the bound."""
    lines, cells, summary = [], [], []
    for case in theory.cases(rows, setting):
        slope, reference = case.slope(), case.reference
        for size, above, _ in zip(*case.points()):
            bound = reference.bound(size, case.curvature, case.kappa) if case.penalty == "L1" else None
            infinite = bound == float("inf")
            text = DASH if bound is None else "infinite" if infinite else f"{short(bound)}{', vacuous' if bound >= reference.zero else ''}"
            objective = mean(case.excess.values[size])
            product = case.kappa * size
            lines.append([case.dataset, case.penalty, f"{case.gamma:g}", count(size), short(product), f"{objective.value:.5f}",
                          f"{above:.5f}", f"{above / case.scale * product:.3g}", text])  # fmt: skip
            cells.append({"table": "wu2016-theorem1", "dataset": case.dataset, "penalty": case.penalty, "gamma": case.gamma,
                          "n_grids": size, "kappa": case.kappa, "objective": objective.value, "above": above,
                          "bound": None if infinite else bound, "slope": slope, "scale": case.scale})  # fmt: skip
        wasted = count(reference.wasted(case.curvature, case.kappa)) if case.penalty == "L1" else DASH
        summary.append([case.dataset, case.penalty, f"{case.gamma:g}", short(case.kappa), DASH if slope is None else f"{slope:.2f}",
                        f"{reference.norm:.3g}", f"{reference.zero:.4f}", f"{reference.value:.4f}",
                        f"{case.excess.limit if case.penalty == 'L1' else reference.objective:.4f}", wasted])  # fmt: skip
    columns = ["data set", "penalty", "1/sigma", "R", "kappa R", "objective", "above the limit", "x kappa R / (beta ||w*||^2)", "bound"]
    heads = ["data set", "penalty", "1/sigma", "kappa", "slope", "||w*||", "F(0)", "F(w*)", "limit", "c"]
    sections = [Section("slopes against R, and what the bound is made of", heads, summary, 3), Section("all R", columns, lines, 4)]
    own = [row for row in rows if row["params"].get("label") == theory.LABEL]
    notes = [
        *theory.NOTES,
        "Objectives are divided by the number of rows. The theorem promises a last but one column below 2 as long as F is above "
        "F(w*); vacuous: a bound above F(0).",
    ]
    notes += failures(own) + machines([row for row in own if row["status"] == "ok"])
    return Table("wu2016-theorem1", "Wu et al. 2016, Theorem 1: the objective of random binning against kappa R", sections, notes, cells)


@of_plan("fig6")
def speedup(rows, setting=None) -> Table:
    """Each data set and method of Figure 6: predicted and measured speed-up by threads, and equation 30's with kappa + 1."""
    wu2016.refuse_setting("speedup", setting)
    sizes, lines, cells = theory.sizes(rows), [], []
    for curve in wu2016.speedups(rows):
        if (curve.dataset, curve.method) not in sizes:
            continue
        grids, bins = sizes[curve.dataset, curve.method]
        kappa = bins / grids
        for threads, point in sorted(curve.ours.items()):
            expected = theory.predicted(threads, grids, bins)
            measured = f"{point['speedup']:.2f} ({point['low']:.2f} to {point['high']:.2f})" if point["speedup"] else DASH
            lines.append([curve.dataset, curve.method, count(grids), count(round(bins)), short(kappa), count(threads), f"{expected:.2f}",
                          measured, short(theory.limit(1.0, kappa))])  # fmt: skip
            cells.append({"table": "wu2016-speedup", "dataset": curve.dataset, "method": curve.method, "threads": threads, "kappa": kappa,
                          "predicted": expected, "ours": point["speedup"]})  # fmt: skip
    columns = ["data set", "method", "R", "D", "kappa", "threads", "equation 29", "measured", "equation 30"]
    own = wu2016.of_figure(rows, "fig6")
    notes = [*theory.SPEEDUP_NOTES, *failures(own), *machines([row for row in own if row["status"] == "ok"])]
    title = "Wu et al. 2016, equations 29 and 30: predicted and measured speed-up of parallel coordinate descent"
    return Table("wu2016-speedup", title, [Section("", columns, lines, 2)], notes, cells)


TABLES = {"theorem1": theorem1, "speedup": speedup}
