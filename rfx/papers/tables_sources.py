"""The table of all papers: the sources of the settings of their plans."""

from rfx import lazy, papers
from rfx.plans import plan
from rfx.reporting.cells import (
    Builder,
    Section,
    Table,
    words,
)

_HEADINGS = ["option", "values", "runs", "source"]


def sources(rows) -> Table:
    """Every option that the papers' plans set, with its values, the labels of its runs, and its
    source.
    """
    known = {
        name: path
        for name, path in papers.plans().items()
        if name.startswith(tuple(f"{name}-" for name in papers.names()))
    }
    lines = {name: _lines(plan.load(name, known=known)) for name in known}
    return Table(
        name="sources",
        title="Where the settings of the papers' plans come from",
        sections=[
            Section(name, _HEADINGS, [[*map(words, line)] for line in own], 4)
            for name, own in lines.items()
        ],
        notes=[f"A source begins with one of: {', '.join(plan.SOURCES)}."],
        cells=[
            {"table": "sources", "plan": name} | dict(zip(_HEADINGS, line))
            for name, own in lines.items()
            for line in own
        ],
    )


def _lines(loaded: plan.Plan) -> list[list[str]]:
    """A line for each option and source, ordered by option."""
    records = [
        (option, loaded.source(run, option) or "", _text(value), str(run.label or run.dataset))
        for run in loaded.runs
        for option, value in run.options.items()
    ]
    table = lazy.pandas.DataFrame(records, columns=["option", "source", "values", "runs"])
    n_labels = len({run.label or run.dataset for run in loaded.runs})
    words = lambda column: ", ".join(column.unique())
    runs = lambda column: "all" if column.nunique() == n_labels else words(column)
    groups = table.groupby(["option", "source"])
    return [[str(of), words(own["values"]), runs(own["runs"]), str(by)] for (of, by), own in groups]


def _text(value: str | float) -> str:
    """A value as in the plan; long numbers are shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


TABLES = {"sources": Builder("sources", sources, alone=True)}
