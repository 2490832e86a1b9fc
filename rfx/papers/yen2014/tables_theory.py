"""Corollary 1 of Yen et al. 2014 in numbers: the objective of Sparse-RF at every D beside the bound."""

from rfx.papers.yen2014 import theory
from rfx.reporting.seeds import mean, spread
from rfx.reporting.tables import Section, Table, count, failures, machines, short


def corollary1(rows, setting=None) -> Table:
    """A section for each data set and kernel: D, the objective, how far above its limit, the bound; then the slope."""
    sections, cells, notes = [], [], list(theory.NOTES)
    for case in theory.cases(rows, setting):
        lines = []
        for size, values in case.excess.values.items():
            own, bound = mean(values), case.reference.bound(size, case.curvature)
            text = "infinite" if bound == float("inf") else short(bound)
            above = own.value - case.excess.limit
            lines.append([count(size), spread(own.value, own.sd, lambda value: f"{value:.5f}"), f"{above:.5f}" if above else "limit",
                          f"{text}{', vacuous' if case.vacuous(size) else ''}", count(own.n)])  # fmt: skip
            cells.append({"table": "yen2014-corollary1", "dataset": case.dataset, "kernel": case.kernel, "n_features": size,
                          "objective": own.value, "sd": own.sd, "excess": above, "bound": None if bound == float("inf") else bound,
                          "runs": own.n, "slope": case.excess.slope, "norm": case.reference.norm})  # fmt: skip
        title = f"{case.dataset}, {case.kernel}"
        sections.append(Section(title, ["D", "F", "F - F(inf)", "bound on F", "runs"], lines))
        one, slope = case.reference, case.excess.slope
        notes.append(
            f"{title}: slope {'not known' if slope is None else f'{slope:.2f}'}; F(0) {one.zero:.4f}, F* {one.value:.4f}, limit "
            f"{case.excess.limit:.4f}; ||w*|| {one.norm:.3g}, gamma {case.curvature:g}, c {count(one.wasted(case.curvature))}; the bound "
            f"is below F(0) from D = {count(case.first_useful())} on."
        )
    own = [row for row in rows if row["params"].get("label") == theory.LABEL]
    notes += failures(own) + machines([row for row in own if row["status"] == "ok"])
    title = "Yen et al. 2014, Corollary 1: the objective of Sparse-RF against the number of features"
    return Table("yen2014-corollary1", title, sections, notes, cells)


TABLES = {"corollary1": corollary1}
