"""Table 1 of Sinha and Duchi 2016 (learnt and random features), and the numbers behind its figures as tables."""

from statistics import mean

from rfx.papers.sinha2016 import curves
from rfx.reporting.printed import printed
from rfx.reporting.seeds import LEGEND, mark, verdict
from rfx.reporting.seeds import mean as seeds_mean
from rfx.reporting.tables import DASH, Section, Table, count, failures, machines, short

_OF_GRID = {1: "lkrf", 2: "lkrf", 3: "rf", 4: "rf", 5: "lkrf"}
_GRID = ["D", "ours, error", "s", "random, error", "s", "ours, features"]
_SEEDS = "Errors in percent and seconds are means over the seeds, ± the standard deviation."
_TIMES = "Seconds are of the whole training: pool, scores, maximisation, features and fit."


def table1(rows, setting=None) -> Table:
    """Error and time of ours and of random features over D; what a given error costs; the best over D beside the printed ones."""
    setting = curves.choose_setting(rows, "table1", setting)
    own = curves.of(rows, curves.label("table1", setting))
    book, found = printed(__package__, "table1"), curves.by_size(own)
    sections, cells = [], []
    for dataset, stands_for in curves.DATA.items():
        both = {method: found.get((dataset, method), {}) for method in curves.METHODS}
        selected, beside = _selected(dataset, stands_for, both, book, setting)
        cells += beside
        if not any(both.values()):
            continue
        title = f"{dataset}: substitute for {stands_for}, not comparable" if stands_for else dataset
        sections.append(Section(f"{title}: over the number D of features", _GRID, _grid(both), 1, dataset, _OF_GRID))
        sections.append(_prices(dataset, both))
        sections.append(selected)
        cells += _cells("table1", setting, dataset, stands_for, both, book)
    notes = [
        f"Setting {setting}: {curves.SETTINGS[setting]}",
        _SEEDS,
        LEGEND,
        _TIMES,
        "support: all features with a positive probability, once; below it D features drawn from the distribution.",
        "The seconds of validation are not among them, and are in the rows as seconds_validation.",
    ]
    return Table(
        "sinha2016-table1",
        "Sinha and Duchi 2016, Table 1: learning kernels with random features",
        sections,
        notes + failures(own) + machines([row for row in own if row["status"] == "ok"]),
        cells,
    )


def _grid(both) -> list[list[str]]:
    lines = []
    places = sorted({place for points in both.values() for place in points if place != "support"})
    support = both["lkrf"].get("support")
    for place in [*places, *(["support"] if support else [])]:
        name = count(place) if place != "support" else f"support, {mean(support.size):.0f}"
        sizes = f"{mean(both['lkrf'][place].size):.0f}" if place in both["lkrf"] else DASH
        lines.append([name, *(text for points in both.values() for text in _error_and_seconds(points.get(place))), sizes])
    return lines


def _error_and_seconds(point) -> list[str]:
    return [DASH, DASH] if point is None else [curves.spread(point.test), short(mean(point.seconds))]


def _prices(dataset, both) -> Section:
    """What a given test error costs."""
    lines = []
    for wanted in curves.targets(dataset, list(both.values())):
        line, seconds = [f"{wanted:g} %"], []
        for points in both.values():
            reached = curves.reach(points, wanted)
            line += [DASH, DASH] if reached is None else [_place(*reached), short(mean(reached[1].seconds))]
            seconds.append(None if reached is None else mean(reached[1].seconds))
        lines.append([*line, DASH if None in seconds else short(seconds[1] / seconds[0])])
    return Section(f"{dataset}: seconds to reach a test error", ["error", "ours, D", "s", "random, D", "s", "random / ours"], lines,
                   dataset=dataset, methods=_OF_GRID)  # fmt: skip


def _place(place, point) -> str:
    return count(place) if place != "support" else f"support, {mean(point.size):.0f}"


def _selected(dataset, stands_for, both, book, setting) -> tuple[Section, list[dict]]:
    """The best over D, on held-out training rows or, where the setting says so, on the test rows: ours / printed, and the cells."""
    lines, cells, by_test = [], [], setting != "tuned"
    for method, points in both.items():
        if by_test:
            place, point = curves.best(points) or (None, None)
        else:
            place, point = None, curves.validated(points)
        paper = {} if stands_for else {field: book.get((dataset, "", method, field)) for field in ("error", "seconds")}
        judged = None if point is None else verdict(seeds_mean(point.test), paper.get("error"), "low")
        cells += [
            {"table": "sinha2016-table1", "setting": setting, "dataset": dataset, "stands_for": stands_for or None, "method": method,
             "n_features": "best", "field": name, "ours": point and mean(values(point)), "paper": paper.get(name),
             "verdict": judged if name == "error" else None, "seeds": 0 if point is None else len(point.test)}
            for name, values in (("error", lambda point: point.test), ("seconds", lambda point: point.seconds))
        ]  # fmt: skip
        if point is None:
            continue
        line = [curves.METHODS[method], _place(place, point) if by_test else curves.spread(point.size, 0)]
        for values, name in ((point.test, "error"), (point.seconds, "seconds")):
            ours = curves.spread(values) if name == "error" else short(mean(values))
            marked = mark(judged) if name == "error" else ""
            line.append(f"{ours} / {paper[name].text if paper.get(name) is not None else DASH}{marked}")
        lines.append(line)
    how = "on the TEST rows (the paper's selection)" if by_test else "by validation on the training rows, for each seed"
    heads, titles = ["method", "D", "error, %", "seconds"], {title: method for method, title in curves.METHODS.items()}
    return Section(f"{dataset}: best D {how}, ours / paper", heads, lines, 1, dataset, titles), cells


def _cells(table, setting, dataset, stands_for, both, book=None) -> list[dict]:
    cells = []
    for method, points in both.items():
        for place, point in points.items():
            shared = {"table": f"sinha2016-{table}", "setting": setting, "dataset": dataset, "stands_for": stands_for or None,
                      "method": method, "n_features": place, "seeds": len(point.test)}  # fmt: skip
            for name, values in (("error", point.test), ("train_error", point.train), ("seconds", point.seconds)):
                if values:
                    paper = book.get((dataset, "", method, name)) if book else None
                    cells.append(shared | {"field": name, "ours": mean(values), "paper": paper})
    return cells


def figure1(rows, setting=None) -> Table:
    """Train and test error of the Gaussian and of the optimised kernel over the dimension."""
    curves.refuse_setting("fig1", setting)
    own = curves.of(rows, "fig1")
    found = curves.by_dimension(own)
    gk, ok = found.get("rf", {}), found.get("lkrf", {})
    lines = []
    for d in sorted({*gk, *ok}):
        line = [str(d)]
        for points in (gk, ok):
            point = points.get(d)
            line += [curves.spread(values) if values else DASH for values in ((point.train, point.test) if point else ((), ()))]
        lines.append([*line, f"{mean(ok[d].size):.0f}" if d in ok else DASH])
    section = Section("", ["d", "GK, train", "GK, test", "OK, train", "OK, test", "support"], lines)
    cells = [
        cell | {"d": cell.pop("n_features")}
        for method, points in found.items()
        for cell in _cells("fig1", None, "sphere", "", {method: points})
    ]
    title = "Sinha and Duchi 2016, learning a kernel: x ~ N(0, I), y = sign(||x|| - sqrt d), logistic regression, error in percent"
    notes = ["GK: 350 random features of the Gaussian kernel. OK: the support of the optimised distribution.", _SEEDS]
    return Table("sinha2016-fig1", title, [section], notes + failures(own) + machines([row for row in own if row["status"] == "ok"]), cells)


def figure2(rows, setting=None) -> Table:
    """Error and time of chosen and of random coordinates and words over D."""
    curves.refuse_setting("fig2", setting)
    own = curves.of(rows, "fig2")
    found = curves.by_size(own)
    sections, cells = [], []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        both = {method: found.get((dataset, method), {}) for method in curves.METHODS}
        sections.append(Section(dataset, _GRID, _grid(both)))
        cells += _cells("fig2", None, dataset, "", both)
    notes = [_SEEDS, _TIMES]
    title = "Sinha and Duchi 2016, feature selection: ridge on chosen and on random coordinates, error in percent"
    return Table("sinha2016-fig2", title, sections, notes + failures(own) + machines([row for row in own if row["status"] == "ok"]), cells)


TABLES = {"table1": table1, "fig1": figure1, "fig2": figure2}
