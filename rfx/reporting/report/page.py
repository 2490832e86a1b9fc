"""The page: the contents of the requested papers, inserted into the template."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rfx import _version, files, lazy, methods
from rfx.errors import DataError, RfxError, UsageError
from rfx.plans import catalogue
from rfx.reporting import claims, columns, style, tables
from rfx.reporting.cells import short
from rfx.reporting.report import parts, sources
from rfx.reporting.seeds import LEGEND

_MARK = '<meta name="generator" content="rfx report">'
KIND = files.Kind("a report of rfx", lambda path: _MARK.encode() in path.read_bytes()[:4096])
_VERSIONS = "rfx git_revision python numpy scipy numba liblinear libsvm blas cpu threads".split()
# statuses in words, where these differ
_OUTCOMES = {
    "missing": "not run",
    "timeout": "timed out",
    "unconverged": "not converged",
    "constant": "no better than a constant",
}


def write(
    results, output, folders: list[catalogue.Folder], plans: dict, force: bool = False
) -> Path:
    """Write OUTPUT/index.html and OUTPUT/figures/ from the results files in the folder `results`.

    Returns the path of the page. folders: the papers; plans: all plans by name. The page is written
    completely or not at all. Raises UsageError if it would replace something other than a report of
    rfx without `force`, and DataError if it can't be written or `results` is not a folder.
    """
    results = sources.folder("--results", results)
    if not str(output):
        raise UsageError("--output is empty; give a folder")
    output = Path(output)

    def render() -> str:
        papers = [_paper(folder, results, output, plans) for folder in folders]
        read = {plan.name: plan.source for paper in papers for plan in paper["plans"]}
        used = {source.path: source for source in read.values() if source.path is not None}
        rows_of = lambda plan: read.get(plan, sources.Source()).rows
        return rendered(
            "page.html",
            list(used.values()),
            papers=papers,
            claims=claims.judged(folders, rows_of),
            verdicts=claims.VERDICTS,
            short=short,
        )

    return put(output, render, (), force)


def put(output: Path, render: Callable[[], str], inputs, force: bool) -> Path:
    """Write the page that `render` returns into the folder `output`, and return its path. inputs:
    see files.guard.

    The page is written completely or not at all. Without `force`, it replaces only a report of rfx.
    """
    page = output / "index.html"
    files.guard(("--output", page), inputs, KIND, force)
    try:
        output.mkdir(parents=True, exist_ok=True)
        text = render()
        with files.whole(page) as handle:
            handle.write(text.encode())
    except OSError as error:
        raise DataError(
            f"{error.filename or page} can't be written: {error.strerror}; give another --output"
        ) from error
    return page


def _paper(folder: catalogue.Folder, results: Path, output: Path, all_plans: dict) -> dict:
    """The variables of the template for one paper."""
    # rows of PLAN-full are in the file of PLAN
    shorter = {name: name.removesuffix("-full") for name in folder.plans}
    bases = {name: base if base in folder.plans else name for name, base in shorter.items()}
    source_of = {base: sources.find(results, base) for base in dict.fromkeys(bases.values())}
    plans = {
        name: sources.coverage(name, source_of[base], all_plans, str(results))
        for name, base in bases.items()
    }
    rows_of = lambda plan: source_of.get(bases.get(plan, ""), sources.Source())
    items = [
        parts.build(folder, name, rows_of(parts.plan_of(folder, name)), output)
        for name in parts.names(folder)
    ]
    return {
        "name": folder.name,
        "citation": folder.citation,
        "about": folder.about,
        "plans": list(plans.values()),
        "items": items,
        "tally": {kind: sum(item.tally[kind] for item in items) for kind in parts.KINDS},
        "settings": [_settings(name, all_plans[name], plan) for name, plan in plans.items()],
        "counts": {
            status: sum(plan.counts[status] for plan in plans.values())
            for status in ("ok", "unconverged", "failed", "timeout", "interrupted", "missing")
        },
        "torn": sum(len(source.torn) for source in source_of.values()),
    }


def _settings(name: str, path, plan: sources.Coverage) -> dict:
    """All settings of a plan's runs: the plan itself, and the outcome of each combination over its
    seeds.
    """
    part = parts.Part()
    if plan.source.rows and not name.endswith("-full"):
        try:
            part.table = tables.build("summary", plan.source.rows, mean_over="seed")
        except RfxError:
            part.table = None
    return {"name": name, "text": path.read_text(encoding="utf-8"), "grids": part.grids}


def rendered(template: str, used: list[sources.Source], **more) -> str:
    """A page about rows: the variables that all pages share, and `more` for its template."""
    engine = lazy.jinja2.Environment(
        loader=lazy.jinja2.PackageLoader("rfx.reporting.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=lazy.jinja2.StrictUndefined,
    )
    rows = [row for source in used for row in source.rows]
    dates = sorted(row["created"] for row in rows if row["created"])
    machines = Counter(tuple(str(row[name] or "") for name in _VERSIONS) for row in rows)
    present = {columns.method(row) for row in rows}
    shown = [name for name in methods.names() if name in present]
    return engine.get_template(template).render(
        colours={name: style.look(name)["color"] for name in shown},
        datasets=sorted({row["dataset"].partition(":")[0] for row in rows}),
        version=_version.__version__,
        dates=dates,
        n_rows=len(rows),
        used=used,
        machines=sorted(machines.items()),
        versions=_VERSIONS,
        kinds=parts.KINDS,
        outcomes=_OUTCOMES,
        legend=LEGEND,
        **more,
    )
