"""The table of all papers: the sources of the settings of their plans."""

from rfx import lazy, papers
from rfx.plans import plan
from rfx.reporting.cells import (
    Builder,
    Format,
    Table,
    section,
    tidy,
)

_COLUMNS = {name: Format(name) for name in ("option", "values", "runs", "source")}


def sources(rows) -> Table:
    """Every option that the papers' plans set, with its values, the labels of its runs, and its
    source.
    """
    starts = tuple(f"{name}-" for name in papers.names())
    known = {name: path for name, path in papers.plans().items() if name.startswith(starts)}
    sections, cells = [], []
    for name in known:
        lines = _lines(plan.load(name, known=known))
        sections.append(section(name, lines, _COLUMNS, 4))
        cells += tidy(lines, table="sources", plan=name)
    return Table(
        name="sources",
        title="Where the settings of the papers' plans come from",
        sections=sections,
        notes=[f"A source begins with one of: {', '.join(plan.SOURCES)}."],
        cells=cells,
    )


def _lines(loaded: plan.Plan) -> list[dict[str, str]]:
    """A line for each option and source, ordered by option."""
    records = [
        (option, loaded.source(run, option) or "", _text(value), str(run.label or run.dataset))
        for run in loaded.runs
        for option, value in run.options.items()
    ]
    table = lazy.pandas.DataFrame(records, columns=["option", "source", "values", "runs"])
    n_labels = len({run.label or run.dataset for run in loaded.runs})
    lines = []
    for (option, source), own in table.groupby(["option", "source"]):
        values, runs = (", ".join(own[name].unique()) for name in ("values", "runs"))
        runs = "all" if own["runs"].nunique() == n_labels else runs
        lines.append({"option": option, "values": values, "runs": runs, "source": source})
    return lines


def _text(value: str | float) -> str:
    """A value as in the plan; long numbers are shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


TABLES = {"sources": Builder("sources", sources, alone=True)}
