"""The page: the contents of the requested papers, inserted into the template."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rfx import _version, files, lazy, methods
from rfx.errors import DataError, RfxError, UsageError
from rfx.plans import catalogue
from rfx.records.result import picker
from rfx.reporting import claims, tables
from rfx.reporting.cells import short
from rfx.reporting.report import coverage, grids, items, sources, tally
from rfx.reporting.report.svg import Shelf, key
from rfx.reporting.seeds import LEGEND

_MADE = '<meta name="generator" content="rfx report">'
KIND = files.Kind("a report of rfx", lambda path: _MADE.encode() in path.read_bytes()[:4096])
_VERSIONS = (
    "rfx",
    "git_revision",
    "python",
    "numpy",
    "scipy",
    "numba",
    "liblinear",
    "libsvm",
    "blas",
    "cpu",
    "threads",
)


def write(
    results, output, folders: list[catalogue.Folder], known: dict, force: bool = False
) -> Path:
    """Write OUTPUT/index.html and OUTPUT/figures/ from the results files in the folder `results`.

    Returns the path of the page. folders: the papers; known: all plans by name. The page is written
    completely or not at all. Raises UsageError if it would replace something other than a report of
    rfx without `force`, and DataError if it can't be written or `results` is not a folder.
    """
    results = sources.folder("--results", results)
    if not str(output):
        raise UsageError("--output is empty; give a folder")
    output = Path(output)

    def made(shelf: Shelf) -> str:
        found = [_paper(folder, results, output, known, shelf) for folder in folders]
        used = {
            one.source.path: one.source
            for paper in found
            for one in paper["plans"]
            if one.source.path is not None
        }
        rows = {one.name: one.source.rows for paper in found for one in paper["plans"]}
        more = {
            "papers": found,
            "names": [paper["name"] for paper in found],
            "claims": claims.judged(folders, lambda plan: rows.get(plan, ())),
            "verdicts": claims.VERDICTS,
            "short": short,
        }
        return rendered("page.html", list(used.values()), shelf, more)

    return put(output, made, (), force)


def put(output: Path, made: Callable[[Shelf], str], inputs, force: bool) -> Path:
    """Write the page that `made` returns into the folder `output`, and return its path. inputs: see
    files.guard.

    The page is written completely or not at all. Without `force`, it replaces only a report of rfx.
    """
    page = output / "index.html"
    files.guard(("--output", page), inputs, KIND, force)
    try:
        output.mkdir(parents=True, exist_ok=True)
        text = made(Shelf())
        with files.whole(page) as handle:
            handle.write(text.encode())
    except OSError as error:
        raise DataError(
            f"{error.filename or page} can't be written: {error.strerror}; give another --output"
        ) from error
    return page


def _paper(folder, results, output, known, shelf) -> dict:
    """The variables of the template for one paper."""
    # rows of PLAN-full are in the file of PLAN
    bases = {name: name.removesuffix("-full") for name in folder.plans}
    bases = {name: base if base in folder.plans else name for name, base in bases.items()}
    found_of = {base: sources.find(results, base) for base in dict.fromkeys(bases.values())}
    plans = {
        name: coverage.of(name, found_of[base], known, str(results)) for name, base in bases.items()
    }
    found = []
    for name in items.names(folder):
        plan = items.plan_of(folder, name)
        source = plans[plan].source if plan in plans else sources.Source()
        found.append(items.build(folder, name, source, shelf, output))
    return {
        "name": folder.name,
        "citation": folder.citation,
        "about": folder.about,
        "plans": list(plans.values()),
        "items": found,
        "tally": tally.added(item.tally for item in found),
        "settings": [_settings(name, known[name], plans[name]) for name in plans],
        "counts": {
            status: sum(one.counts.get(status, 0) for one in plans.values())
            for status in ("ok", "unconverged", "failed", "timeout", "interrupted", "missing")
        },
        "torn": sum(
            len(source.torn)
            for source in {one.source.path: one.source for one in plans.values()}.values()
        ),
    }


def _settings(name, plan, covered) -> dict:
    """All settings of a plan's runs: the plan itself, and the outcome of each combination over its
    seeds.
    """
    grid = None
    if covered.source.rows and not name.endswith("-full"):
        try:
            table = tables.build("summary", covered.source.rows, mean_over="seed")
            grid = grids.of(table.sections[0])
        except RfxError:
            grid = None
    return {"name": name, "text": plan.read_text(encoding="utf-8"), "grid": grid}


def rendered(template: str, used: list[sources.Source], shelf: Shelf, more: dict) -> str:
    """A page about rows: the variables that all pages share, and `more` for its template."""
    place = lazy.jinja2.PackageLoader("rfx.reporting.report", "templates")
    engine = lazy.jinja2.Environment(
        loader=place,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=lazy.jinja2.StrictUndefined,
    )
    rows = [row for source in used for row in source.rows]
    shown = sorted(
        {row["method"] for row in rows} & set(methods.names()), key=methods.names().index
    )
    made = sorted(row["created"] for row in rows if row["created"])
    keys = [(name, key(name, shelf)) for name in shown]
    return engine.get_template(template).render(
        keys=keys,
        datasets=sorted({row["dataset"].partition(":")[0] for row in rows}),
        version=_version.__version__,
        made=(made[0], made[-1]) if made else None,
        n_rows=len(rows),
        used=used,
        machines=_machines(rows),
        versions=_VERSIONS,
        kinds=tally.KINDS,
        legend=LEGEND,
        glyphs=dict(keys),
        styles=shelf.css(),
        light=shelf.colours.css(dark=False),
        dark=shelf.colours.css(dark=True),
        **more,
    )


_made_with = picker(*_VERSIONS)


def _machines(rows) -> list[tuple[list[str], int]]:
    """The environments of the rows: the values of _VERSIONS, and the number of rows of each."""
    found: Counter[tuple[str, ...]] = Counter()
    for what, n in Counter(map(_made_with, rows)).items():
        found[tuple(str(value or "") for value in what)] += n
    return [(list(what), n) for what, n in sorted(found.items())]
