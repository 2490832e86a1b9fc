"""Table 1 of Wu et al. 2016 (random binning features), and the numbers behind its Figures 3 to 6 as tables."""

from rfx.data import registry
from rfx.papers.wu2016 import curves as wu2016
from rfx.reporting.printed import printed
from rfx.reporting.seeds import LEGEND, mark, spread
from rfx.reporting.tables import DASH, Section, Table, count, failures, machines, short

_PROPERTIES = {"n_train": "N train", "n_test": "N test", "n_inputs": "d", "n_classes": "classes"}
_PAIRS = "Every cell is ours / paper; a dash: not run, or not printed."
_CURVES = "Every cell is ours / authors' plot data; a dash: not run, or not there; *: the solver did not converge."


def _score(value):
    return f"{value:.4f}"


# name in wu2016.quantities -> heading, how it is written
_SWEPT = {
    "test": ("test", _score), "train": ("train", _score), "seconds": ("training, s", short), "bins": ("bins D", count),
    "kappa": ("kappa", short),
}  # fmt: skip
_TITLES = {title: method for method, title in wu2016.METHODS.items()}
_TIMED = ("seconds", "speedup", "low", "high", "steps", "kappa", "runs")
_COMPARED = {"test": ("test", _score), "seconds": ("training, s", short), "memory": ("memory, MiB", count)}


def table1(rows, setting=None) -> Table:
    """The data sets' sizes as counted in the data that was trained and tested on, beside the printed ones."""
    wu2016.refuse_setting("table1", setting)
    book = printed(__package__, "table1")
    rows = [row for row in rows if row["dataset"] in wu2016.DATA]
    counted = {row["dataset"]: row for row in rows if row["status"] == "ok" and row["split"] == "wu2016"}
    lines, cells, notes = [], [], [_PAIRS]
    for name, stands_for in wu2016.DATA.items():
        row = counted.get(name)
        if row is None and (stands_for or (name, "", "", "n_train") not in book):
            continue
        line = []
        for field, heading in _PROPERTIES.items():
            ours, paper = row and _property(row, field), book.get((name, "", "", field))
            line.append(f"{DASH if ours is None else count(ours)} / {paper.text if paper is not None else DASH}")
            cells.append(
                {
                    "table": "wu2016-table1",
                    "dataset": name,
                    "stands_for": stands_for or None,
                    "field": field,
                    "ours": ours,
                    "paper": paper,
                    "verdict": None if None in (ours, paper) else "equal" if ours == paper else "differs",
                }
            )
            if None not in (ours, paper) and ours != paper:
                notes.append(f"Mismatch: {name}: {heading} is {count(ours)} in the data, {paper.text} in the paper.")
        lines.append([wu2016.heading(name), *line, _files(name)])
        notes += _drawn(name) if row else []
    section = Section("", ["data set", *_PROPERTIES.values(), "rows in its files"], lines)  # of no method
    notes += [
        "A regression set has one class, as in the paper.",
        "acoustic: the paper's 78,823 training rows are the file's; the authors' programs report 38 fewer, 78,785.",
    ]
    return Table(
        "wu2016-table1",
        "Wu et al. 2016, Table 1: properties of the data sets",
        [section],
        notes + failures(wu2016.of_figure(rows, "table1")) + machines(counted.values()),
        cells,
    )


def _property(row, field):
    return max(1, row["params"].get("n_classes") or 0) if field == "n_classes" else row[field]


def _files(name) -> str:
    return ", ".join(f"{entry.role} {count(entry.rows)}" for entry in registry.get(name).files)


def _drawn(name) -> list[str]:
    """What the split does to the rows of the files, where the paper does not say which rows it took."""
    info = registry.get(name)
    split = info.splits["wu2016"]
    if split.pool:
        return [f"{name}: which rows are for training is not said; the file is cut by rfx's own seed."]
    there = sum(info.file(role).rows for role in split.train)
    if split.n_train and split.n_train < there:
        drawn = f"{count(split.n_train)} of the training file's {count(there)} rows are drawn by rfx's own seed"
        return [f"{name}: {drawn}; which ones the paper took is not said."]
    return []


def _sweep_table(figure, title, axis, axis_heading, write_axis):
    def build(rows, setting=None) -> Table:
        setting = wu2016.choose_setting(rows, figure, setting)
        sections, cells = [], []
        swept = wu2016.sweep(rows, figure, setting)
        shown = [curve.dataset for curve in _shown(swept)]
        for curve in swept:
            lines = []
            for place in curve.places:
                ours, authors = curve.ours.get(place, {}), curve.authors.get(place, {})
                lines.append(
                    [write_axis(place), *(_pair(curve.dataset, ours, authors, name, write) for name, (_, write) in _SWEPT.items())]
                )
                cells += [
                    {"table": f"wu2016-{figure}", "setting": setting, "dataset": curve.dataset, "method": "rb", axis: place, "field": name,
                     "ours": ours.get(name), "paper": authors.get(name), "converged": ours.get("converged"),
                     "verdict": wu2016.judged(curve.dataset, name, ours, authors)}
                    for name in _SWEPT
                ]  # fmt: skip
            if curve.dataset not in shown:
                continue
            gammas = "" if axis == "gamma" else f"; gamma = 1/sigma = {_gammas(curve)}"
            sections.append(
                Section(
                    f"{wu2016.heading(curve.dataset)} ({wu2016.metric(curve.dataset)}{gammas})",
                    [axis_heading, *(heading for heading, _ in _SWEPT.values())],
                    lines,
                    dataset=curve.dataset,
                    methods=dict.fromkeys(range(1, len(_SWEPT) + 1), "rb"),
                )
            )
        return _table(figure, title, setting, sections, rows, cells)

    return build


def _shown(found):
    """The curves of the data sets that have rows of ours; the authors' alone where there is no row at all."""
    ours = {curve.dataset for curve in found if curve.ours}
    return [curve for curve in found if not ours or curve.dataset in ours]


def _gammas(curve) -> str:
    """Ours / the authors' where they differ."""
    ours = [gamma for point in curve.ours.values() for gamma in point["gammas"]]
    authors = [point["gamma"] for point in curve.authors.values()]
    texts = [wu2016.span(found) if found else DASH for found in (ours, authors)]
    return texts[0] if texts[0] == texts[1] else " / ".join(texts)


def figure5(rows, setting=None) -> Table:
    """Test performance, training time and memory of all methods over R, and what a given test performance costs each."""
    setting = wu2016.choose_setting(rows, "fig5", setting)
    by_data: dict[str, dict[str, wu2016.Curve]] = {}
    found = wu2016.comparison(rows, setting)
    shown = [curve.dataset for curve in _shown(found)]
    for curve in found:
        by_data.setdefault(curve.dataset, {})[curve.method] = curve
    sections, cells = [], []
    for dataset, own in by_data.items():
        lines = []
        # the exact kernel, at 0, has every row: it comes last
        places = {place for curve in own.values() for place in curve.places if place <= 1024}
        own |= {method: wu2016.Curve(dataset, method) for method in wu2016.METHODS if method not in own}
        for place in sorted(places, key=lambda place: (place == 0, place)):
            points = [(method, own[method].ours.get(place, {}), own[method].authors.get(place, {})) for method in wu2016.METHODS]
            for name, (heading, write) in _COMPARED.items():
                label = ("all" if place == 0 else count(place)) if name == "test" else ""
                lines.append([label, heading, *(_pair(dataset, ours, authors, name, write) for _, ours, authors in points)])
                cells += [
                    {"table": "wu2016-fig5", "setting": setting, "dataset": dataset, "method": method, "n_features": place or None,
                     "field": name, "ours": ours.get(name), "paper": authors.get(name), "converged": ours.get("converged"),
                     "verdict": wu2016.judged(dataset, name, ours, authors)}
                    for method, ours, authors in points if ours or authors
                ]  # fmt: skip
        if dataset not in shown:
            continue
        columns = ["R", "", *wu2016.METHODS.values()]
        sections.append(Section(f"{wu2016.heading(dataset)} ({wu2016.metric(dataset)})", columns, lines, 2, dataset, _TITLES))
        wanted = wu2016.target(own["rb"])
        if wanted is not None:
            section, more = _reached(dataset, own, wanted, setting)
            sections.append(section)
            cells += more
    title = "Wu et al. 2016, Figure 5: random binning beside other approximations of the kernel"
    notes = ["To reach a test performance: the quickest run that does; the authors' other methods go up to R = 65,536.",
             f"Memory: {wu2016.MEMORY}"]  # fmt: skip
    return _table("fig5", title, setting, sections, rows, cells, notes)


def _reached(dataset, own, wanted, setting):
    """The section and cells of what it costs each method to be as good as the authors' rb at R = 128."""
    found = {method: {whose: wu2016.reach(own[method], whose, wanted) for whose in ("ours", "authors")} for method in wu2016.METHODS}
    lines, cells = [], []
    for name, (heading, write) in {"R": ("R", count), "seconds": ("training, s", short), "memory": ("memory, MiB", count)}.items():
        line = []
        for method, both in found.items():
            values = {whose: None if at is None else at[0] or None if name == "R" else at[1].get(name) for whose, at in both.items()}
            line.append(" / ".join(DASH if value is None else write(value) for value in values.values()))
            cells.append(
                {
                    "table": "wu2016-fig5",
                    "setting": setting,
                    "dataset": dataset,
                    "method": method,
                    "n_features": None,
                    "field": f"{name} to reach {wanted:g}",
                    "ours": values["ours"],
                    "paper": values["authors"],
                }
            )
        lines.append([heading, *line])
    title = f"{dataset}: to reach a test {wu2016.metric(dataset)} of {wanted:.4f}, the authors' rb at R = 128"
    return Section(title, ["", *wu2016.METHODS.values()], lines, dataset=dataset, methods=_TITLES), cells


def figure6(rows, setting=None) -> Table:
    """Seconds and speed-up of parallel coordinate descent over threads."""
    wu2016.refuse_setting("fig6", setting)
    lines, cells = [], []
    for curve in wu2016.speedups(rows):
        for threads, point in sorted(curve.ours.items()):
            mark = "" if point["converged"] else "*"
            spread = f"{point['speedup']:.2f} ({point['low']:.2f} to {point['high']:.2f})" if point["speedup"] else DASH
            kappa = DASH if point["kappa"] is None else short(point["kappa"])
            lines.append([curve.dataset, curve.method, count(threads), short(point["seconds"]) + mark, spread, count(point["steps"]), kappa,
                          count(point["runs"])])  # fmt: skip
            cells += [{"table": "wu2016-fig6", "dataset": curve.dataset, "method": curve.method, "threads": threads, "field": name,
                       "ours": point[name], "converged": point["converged"]} for name in _TIMED]  # fmt: skip
    columns = ["data set", "method", "threads", "training, s", "speed-up", "passes", "kappa", "runs"]
    title = "Wu et al. 2016, Figure 6: speed-up of parallel randomised coordinate descent (L1) over threads"
    notes = ["Medians over the seeds; speed-up: a seed's time with one thread over its time with several, its range in brackets.",
             "Times are of the passes over the columns, to the same relative duality gap.",
             "The authors' speed-ups are in no file that we have."]  # fmt: skip
    own = wu2016.of_figure(rows, "fig6")
    notes += failures(own) + machines([row for row in own if row["status"] == "ok"])
    return Table("wu2016-fig6", title, [Section("", columns, lines, 3)], notes, cells)


def _pair(dataset: str, ours: dict, authors: dict, name: str, write) -> str:
    star = "*" if name == "test" and ours.get("converged") is False else ""
    texts = [DASH if point.get(name) is None else write(point[name]) for point in (ours, authors)]
    if name in ("test", "train") and ours.get(name) is not None:
        texts[0] = spread(ours[name], ours["sd"].get(name), write)
    return f"{texts[0]}{star} / {texts[1]}{mark(wu2016.judged(dataset, name, ours, authors))}"


def _table(figure, title, setting, sections, rows, cells, notes=()):
    own = wu2016.of_figure(rows, figure, setting)
    used = [row for row in own if row["status"] == "ok"]
    runs = len({row["seed"] for row in used})
    seeds = [f"Ours: means over up to {runs} seeds, ± their standard deviation; without it a single run.", LEGEND] if runs > 1 else []
    notes = [_CURVES, f"Setting {setting}: {wu2016.SETTINGS[setting]}", *notes]
    notes += [*seeds, *([f"lambda: {wu2016.lambdas(used, by_method=figure == 'fig5')}"] if used else [])]
    notes += [f"Differs from the paper: {text}" for text in wu2016.AUTHORS]
    return Table(f"wu2016-{figure}", f"{title}; setting: {setting}", sections, notes + failures(own) + machines(used), cells)


TABLES = {
    "table1": table1,
    "fig3": _sweep_table("fig3", "Wu et al. 2016, Figure 3: random binning while sigma varies, R = 128", "gamma", "1/sigma",
                                lambda value: f"{value:g}"),
    "fig4": _sweep_table("fig4", "Wu et al. 2016, Figure 4: random binning while R varies, sigma fixed", "n_grids", "R", count),
    "fig5": figure5,
    "fig6": figure6,
}  # fmt: skip
