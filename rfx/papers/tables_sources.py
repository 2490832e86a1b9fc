"""The table of all papers: the sources of the settings of their plans."""

from rfx import papers
from rfx.plans import plan
from rfx.records.run import Run
from rfx.reporting.builders import Builder
from rfx.reporting.cells import Section, Table, words

_HEADINGS = ["option", "values", "runs", "source"]


def missing(loaded: plan.Plan) -> list[tuple[Run, str]]:
    """The runs of a plan with their options that have no source."""
    return [
        (run, option)
        for run in loaded.runs
        for option in run.options
        if loaded.source(run, option) is None
    ]


def sources(rows) -> Table:
    """Every option that the papers' plans set, with its values, the labels of its runs, and its
    source.
    """
    known = {name: path for name, path in papers.plans().items() if name.startswith(_papers())}
    sections, cells = [], []
    for name in known:
        lines = _lines(plan.load(name, known=known))
        sections.append(Section(name, _HEADINGS, [[*map(words, line)] for line in lines], 4))
        cells += [{"table": "sources", "plan": name} | dict(zip(_HEADINGS, line)) for line in lines]
    notes = [f"A source begins with one of: {', '.join(plan.SOURCES)}."]
    title = "Where the settings of the papers' plans come from"
    return Table("sources", title, sections, notes, cells)


def _papers() -> tuple[str, ...]:
    return tuple(f"{name}-" for name in papers.names())


def _lines(loaded: plan.Plan) -> list[list[str]]:
    """A line for each option and source, ordered by option."""
    label = lambda run: str(run.label or run.dataset)
    everywhere = {label(run) for run in loaded.runs}
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for run in loaded.runs:
        for option, value in run.options.items():
            where = option, loaded.source(run, option) or ""
            found.setdefault(where, []).append((_text(value), label(run)))
    lines = []
    for (option, source), own in sorted(found.items()):
        values = dict.fromkeys(value for value, _ in own)
        labels = dict.fromkeys(name for _, name in own)
        runs = "all" if everywhere == set(labels) else ", ".join(labels)
        lines.append([option, ", ".join(values), runs, source])
    return lines


def _text(value: str | float) -> str:
    """A value as in the plan; long numbers are shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


TABLES = {"sources": Builder("sources", sources, alone=True)}
