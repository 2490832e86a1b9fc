"""Table 1: the test error of random features and of the exact kernel, in percent."""

from rfx.reporting.cells import (
    Builder,
    Cell,
    Format,
    Table,
    crossed,
    decimals,
    mean_if_any,
    printed,
    section,
    tidy,
    verdict_of,
    with_paper,
)
from rfx.reporting.effects import frame
from rfx.reporting.tables import failures, machines

_COLUMNS = {
    "dataset": Format("data set"),
    "rf": Format("random features"),
    "kernel": Format("exact kernel"),
}


def table1(rows) -> Table:
    """A line for each data set: means over the seeds, beside the printed numbers."""
    errors = 100 * frame(rows).set_index(["dataset", "method"])["wrong"]
    means = errors.groupby(level=["dataset", "method"], sort=False).agg(mean_if_any)
    lines = [_line(*names, mean) for names, mean in means.items()]
    return Table(
        name="example2007-table1",
        title="Author and Author 2007, Table 1: test errors in percent",
        sections=[section("", crossed(lines, ["dataset"], "method"), _COLUMNS)],
        notes=failures(rows) + machines(rows),
        cells=tidy(lines, "cell", table="example2007-table1"),
        compared=with_paper(line["cell"] for line in lines),
    )


def _line(dataset, method, mean) -> dict:
    paper = printed(__package__, "table1").get((dataset, "", method, "error"))
    verdict = verdict_of(mean, paper, "low", "percent")
    cell = Cell(mean, decimals(1), "deviation", paper, pair=True, verdict=verdict)
    return {"dataset": dataset, "method": method, "ours": mean, "paper": paper, "cell": cell}


TABLES = {"table1": Builder("example2007-table1", table1)}
