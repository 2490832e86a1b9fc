"""Tables for Dai et al. 2014: the numbers of Figure 1, of the synthetic problem and of the table of
costs, with the paper's numbers; and the held-out errors that determine the settings of Figure 1
that the paper leaves open.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from rfx import lazy
from rfx.papers.dai2014 import curves as dai
from rfx.reporting import columns
from rfx.reporting.cells import (
    Around,
    Builder,
    Cell,
    Format,
    Line,
    Mean,
    Printed,
    Row,
    Section,
    Table,
    count,
    crossed,
    decimals,
    general,
    grouped,
    grouped_by,
    inputs_of,
    mean_if_any,
    mean_of,
    number,
    printed,
    section,
    short,
    tidy,
    token,
    verdict_of,
    with_paper,
)
from rfx.reporting.tables import failures, machines

_NOTES = {
    "adult": (
        "a9a as the LIBSVM site has it; the paper's adult has the same 32,561 rows and 123 inputs."
    ),
    "mnist8v6": (
        "The paper takes 1.6 million rows of infinite MNIST; ours are made of MNIST's eights and"
        " sixes in the same way, by seed."
    ),
    "forest": (
        "The paper says only that there are half a million rows: 464,810 for training and 116,202"
        " for testing are our choice."
    ),
    "mnist": (
        "The paper's inputs are 1,568 features of a convolutional network; ours are pixels, in"
        " principal components."
    ),
    "cifar10": (
        "The features are those that the user supplied. The paper calls doubly SGD comparable to"
        " its network and gives no number."
    ),
    "imagenet": "The features are those that the user supplied.",
    "molecularspace": ("The user supplied the rows; the paper gives no number in its text."),
    "qm7": (
        "The paper says 6,000 rows; ours are 5,732 for training and 1,433 for testing, with random"
        " orders of the atoms."
    ),
}


_TITLES = {title: method for method, title in dai.METHODS.items()}
_FIGURE1_NOTE = (
    "Means over seeds ± their standard deviation; without ± a single run. Seconds are of the steps."
    " Making Nystrom features is apart, as the paper does not count it."
)
_NETWORK_NOTE = (
    "network: here dense layers by scikit-learn, on the same virtual examples; the paper's is"
    " convolutional (mnist) or its own."
)
_FIGURE1 = {
    "title": Format("method"),
    "nu": Format("nu", general, "extremes"),
    "error": Format("error"),
    "seconds": Format("seconds", short),
    "samples": Format("rows", count),
    "seconds_nystrom": Format("Nystrom features, s", short),
    "quoted": Format("paper"),
}


def _compared(name: str, runs: Sequence[Row], paper: Printed | None) -> Cell:
    """The mean error of runs, compared with the quoted one, which has a separate column. A single
    run allows no verdict.
    """
    ours, unit = mean_if_any(map(dai.error, runs)), dai.unit(name)
    return Cell(
        ours,
        decimals(2),
        "decimals",
        paper=paper,
        verdict=verdict_of(ours, paper, "low", "percent" if unit == "error, %" else "relative"),
        marked=False,
    )


def _unrun(name: str) -> list[Cell]:
    """The cells of Figure 1 if there are no runs: the numbers that the paper quotes."""
    quoted = filter(None, (dai.quoted(name, method) for method in dai.METHODS))
    return [_compared(name, [], paper) for paper in quoted]


def figure1(name: str, rows: Sequence[Row]) -> Table:
    """Test error and seconds of every method, with a section for each criterion, and the numbers
    that the paper quotes.
    """
    found = dai.of(rows, name)
    by = dai.by_criterion(found)
    formats = _FIGURE1 | {"error": Format(dai.unit(name))}
    sections: list[Section] = []
    lines, notes = [], [_NOTES[name]]
    for key, methods in by.items():
        # quoted numbers of a method without runs are shown once
        own = [
            _method_line(name, key, method, methods.get(method, []))
            for method in dai.METHODS
            if method in methods or (not sections and dai.quoted(name, method) is not None)
        ]
        title = dai.criterion_words(key)
        sections.append(section(title, own, formats, dataset=name, methods=_TITLES))
        lines += own
        notes += _not_one_objective(key, methods)
    notes.append(_FIGURE1_NOTE)
    if dai.quoted(name, "mlp") is not None:
        notes.append(_NETWORK_NOTE)
    if (fixed := dai.quoted(name, "fixed-network")) is not None:
        notes.append(f"The paper's network with fixed lower layers has {fixed.text}.")
    return Table(
        name=f"dai2014-fig1-{name}",
        title=f"Dai et al. 2014, Figure 1: {name}",
        sections=sections,
        notes=notes + failures(rows) + machines(found),
        cells=tidy(lines, "title", "quoted", table=f"dai2014-fig1-{name}"),
        compared=with_paper(line["error"] for line in lines),
    )


def _not_one_objective(key: str, methods: Mapping[str, Sequence[Row]]) -> list[str]:
    """A note if methods that should share one nu have several."""
    nus = {nu for runs in methods.values() for row in runs if (nu := dai.nu(row)) is not None}
    several = ", ".join(general(nu) for nu in sorted(nus))
    note = f"{dai.criterion_words(key)}: not one objective: there are runs with nu {several}."
    return [note] if key in dai.ONE_NU and len(nus) > 1 else []


def _method_line(name: str, key: str, method: str, runs: Sequence[Row]) -> Line:
    """The means of a method's runs with one criterion, and the number that the paper quotes."""
    paper = dai.quoted(name, method)
    error = _compared(name, runs, paper)
    samples = mean_if_any(row.params.get("samples") for row in runs)
    return {
        "title": dai.METHODS[method],
        "method": method,
        "criterion": key or None,
        "nu": mean_if_any(map(dai.nu, runs)),
        "error": error,
        "ours": error,
        "sd": error.sd,
        "n": len(runs),
        "dataset": name,
        "seconds": mean_if_any(map(dai.seconds, runs)),
        "seconds_nystrom": mean_if_any(map(dai.before, runs)),
        "samples": samples,
        "paper": paper,
        "verdict": error.verdict,
        "quoted": None if paper is None else paper.text,
    }


_RIPPLE = {
    "nu": Format("nu", general),
    "seeds": Format("seeds", count),
    "steps": Format("steps", count),
    "distance": Format("E|f - f*|^2", "{:.2e}".format),
    "slope": Format("slope", decimals(2), "decimals"),
    "theorem": Format("theorem 4"),
}
_PASS = {
    "title": Format("method"),
    "nu": Format("nu", general, "extremes"),
    "rmse": Format("RMSE", decimals(4), "decimals"),
    "seconds": Format("seconds", short),
}
_SYNTHETIC_NOTES = (
    (
        "f* is the exact kernel ridge solution of the training rows at the same nu; the mean is"
        " over the test rows and seeds."
    ),
    (
        "A slope is that of the mean over the seeds, ± the standard deviation of the seeds' own,"
        " over the last 15/16 of the steps, and after the burn-in where t is shifted."
    ),
    (
        "theta nu is 1.5, in one pass 1. Theorem 4 has theta/t; for small nu f is then far off for"
        " the first 1/nu steps and more."
    ),
)


def synthetic(rows: Sequence[Row]) -> Table:
    """The measured rate at which doubly stochastic gradients approach the exact solution of the
    same nu, and all methods after one pass.
    """
    found = dai.of(rows, "synthetic")
    sections, cells, notes = [], [], [*_SYNTHETIC_NOTES]
    for kind, steps in dai.STEPS.items():
        ripples = dai.ripple(rows, kind)
        lines = [_ripple_line(ripples[nu]) for nu in sorted(ripples, reverse=True)]
        if lines:
            sections.append(section(f"distance to f*, steps {steps}", lines, _RIPPLE))
        cells += tidy(lines, "seeds", "theorem", table="dai2014-synthetic")
    by = dai.by_criterion(found)
    for key in ("sc1", "theta", "own"):
        if key in by:
            lines = [_pass_line(key, method, runs) for method, runs in by[key].items()]
            sections.append(section(dai.criterion_words(key), lines, _PASS))
            cells += tidy(lines, "title", table="dai2014-synthetic")
            notes += _not_one_objective(key, by[key])
    return Table(
        name="dai2014-synthetic",
        title="Dai et al. 2014: the ripple",
        sections=sections,
        notes=notes + failures(rows) + machines(found),
        cells=cells,
    )


def _ripple_line(one: dai.Ripple) -> Line:
    """The last distance to the exact solution and its slope."""
    slope = _slope(one)
    return {
        "step": one.kind,
        "nu": one.nu,
        "steps": one.mean.index[-1],
        "distance": one.mean.iloc[-1],
        "slope": slope,
        "slope_sd": slope and slope.sd,
        "paper": -1.0,
        "seeds": one.distances.shape[1],
        "theorem": "-1",
    }


def _pass_line(key: str, method: str, runs: Sequence[Row]) -> Line:
    """The means of a method's runs with one criterion."""
    rmse = mean_if_any(row.score for row in runs)
    return {
        "title": dai.METHODS[method],
        "method": method,
        "criterion": key,
        "nu": mean_if_any(map(dai.nu, runs)),
        "rmse": rmse,
        "sd": rmse and rmse.sd,
        "n": len(runs),
        "seconds": mean_if_any(map(dai.seconds, runs)),
    }


def _slope(ripple: dai.Ripple) -> Mean | None:
    """The slope of the mean over the seeds, with the deviation of their own."""
    slope, noise = ripple.slope(ripple.mean), mean_if_any(ripple.slopes)
    deviation, n = noise and noise.sd, ripple.distances.shape[1]
    return None if slope is None else Mean(slope, deviation, n, slope, slope)


_COMPLEXITY_NOTES = (
    (
        "Every cell is ours / paper: the power of n, and of 1/epsilon, with n, features and rank"
        " all in proportion to 1/epsilon."
    ),
    (
        "The paper's further factor d, of all but the storage of methods with features, is not"
        " measured: d is fixed."
    ),
    (
        "Small sizes are ruled by costs that do not grow, so that measured powers are below the"
        " limit."
    ),
)


def complexity(rows: Sequence[Row]) -> Table:
    """Measured powers of the number of rows next to the paper's powers of 1/epsilon; rows, features
    and ranks grow together.
    """
    found, book = dai.of(rows, "complexity"), printed(__package__, "complexity")
    lines = [
        _power_line(str(method), cost, dai.exponent(line, cost), book)
        for method, line in dai.costs(rows).groupby(level=0, sort=False)
        for cost in dai.COSTS
    ]
    powers = lazy.pandas.DataFrame(lines)
    formats = {"title": Format("method")}
    for cost, (text, _) in dai.COSTS.items():
        formats[cost] = Format(text.partition(",")[0])
    return Table(
        name="dai2014-complexity",
        title="Dai et al. 2014: computation and storage",
        sections=[section("", crossed(powers, ["title"], "quantity"), formats)],
        notes=[*_COMPLEXITY_NOTES, *machines(found)],
        cells=tidy(lines, "title", "cell", table="dai2014-complexity"),
        compared=with_paper(powers["cell"]),
    )


def _power_line(method: str, cost: str, power: float | None, book: Mapping) -> Line:
    """The power of n in a cost of a method, next to the paper's."""
    paper = book.get(("", "", method, cost))
    return {
        "title": dai.METHODS.get(method, method),
        "method": method,
        "quantity": cost,
        "ours": power,
        "paper": paper,
        "verdict": None,
        "cell": number(power, decimals(2), paper=paper, pair=True),
    }


_CHOICE_NOTES = (
    (
        "!: the least error on training rows that were held out. Seconds are of the steps on all"
        " training rows."
    ),
    "± is the standard deviation over seeds, of which each holds out rows of its own.",
    (
        "One nu for all methods is the one with the least mean of their errors, each by the best of"
        " the steps tried."
    ),
)


def choice(rows: Sequence[Row]) -> Table:
    """The held-out error of every setting tried, and the least. Scores on test rows play no part in
    the choice and are omitted.
    """
    found = dai.of(rows, "choice")
    made = []
    for name, own in grouped_by(found, dai.criterion_of).items():
        if not name.endswith("-nu"):
            made.append(_chosen(name, own))
            continue
        made.append(_one_nu(name, own))
        for method, part in grouped_by(own, "method").items():
            has_several_settings = len(part) > len(set(map(dai.nu, part)))
            if has_several_settings:
                made.append(_chosen(f"{name}, {dai.METHODS[method]}", part))
    sections, lines = [], []
    for one, own_lines in made:
        sections.append(one)
        lines += own_lines
    return Table(
        name="dai2014-choice",
        title="Dai et al. 2014: settings by validation",
        sections=sections,
        notes=[*_CHOICE_NOTES, *failures(rows), *machines(found)],
        cells=tidy(lines, table="dai2014-choice"),
    )


def _one_nu(name: str, rows: Sequence[Row]) -> tuple[Section, list[Line]]:
    """The held-out error of every method for every nu tried, and the mean over the methods for each
    nu that all of them have. The least of each column is marked.
    """
    errors = _least_errors(rows)
    methods = [method for method in dai.METHODS if method in errors]
    for nu in sorted(set().union(*errors.values())):
        known = [errors[method][nu].value for method in methods if nu in errors[method]]
        if len(known) == len(methods):
            errors.setdefault("mean", {})[nu] = mean_of(known)
    write = decimals(4 if rows[0]["task"] == "regression" else 2)
    shown: dict[float, Line] = {nu: {"nu": nu} for nu in sorted(set().union(*errors.values()))}
    cells = []
    for method in [*methods, "mean"]:
        own = errors.get(method, {})
        least = min((error.value for error in own.values()), default=None)
        around: Around = "" if method == "mean" else "decimals"
        for nu in sorted(own):
            chosen = own[nu].value == least
            note = " !" if chosen else ""
            shown[nu][method] = Cell(own[nu], write, around, note=note)
            cells.append({"setting": name, "nu": nu, "method": method} | _tidy(own[nu], chosen))
    formats = {"nu": Format("nu", general)}
    formats |= {method: Format(dai.METHODS[method]) for method in methods}
    formats |= {"mean": Format("mean")}
    return section(name, shown.values(), formats, dataset=rows[0].dataset), cells


def _least_errors(rows: Sequence[Row]) -> dict[str, dict[float, Mean]]:
    """Method -> nu -> the least held-out error of the settings tried, means over the seeds."""
    errors: dict[str, dict[float, Mean]] = {}
    for group in grouped((token(inputs_of(row)), row) for row in rows).values():
        of_method = errors.setdefault(group[0].method, {})
        nu, tried = dai.nu(group[0]) or 0.0, mean_of([*map(held_out, group)])
        if nu not in of_method or tried.value < of_method[nu].value:
            of_method[nu] = tried
    return errors


def _tidy(error: Mean, chosen: bool) -> Line:
    """A held-out error in CSV and JSON."""
    return {"held_out_error": error.value, "sd": error.sd, "n": error.n, "chosen": chosen}


def _chosen(name: str, rows: Sequence[Row]) -> tuple[Section, list[Line]]:
    """The settings tried for one data set, with the least error marked."""
    inputs = columns.of(rows)
    varying = [option for option in inputs.varying if option != "seed"]
    settings = grouped(
        (tuple(map(values.get, varying)), row) for row, values in zip(rows, inputs.values)
    )
    errors = {tried: mean_of([*map(held_out, runs)]) for tried, runs in settings.items()}
    least = min(error.value for error in errors.values())
    unit, places = _unit(rows[0])
    lines, cells = [], []
    for tried, error in errors.items():
        chosen = len(errors) > 1 and error.value == least
        options = dict(zip(varying, tried))
        shown = {f"option {one}": columns.written(one, value) for one, value in options.items()}
        error_cell = Cell(error, decimals(places), "decimals", note=" !" if chosen else "")
        seconds = mean_if_any(map(dai.seconds, settings[tried]))
        lines.append(shown | {"error": error_cell, "seconds": seconds})
        cells.append({"setting": name} | options | _tidy(error, chosen))
    formats = {f"option {one}": Format(columns.heading(one)) for one in varying}
    formats |= {"error": Format(unit), "seconds": Format("seconds", short)}
    return section(name, lines, formats, len(varying), dataset=rows[0].dataset), cells


def _unit(row: Row) -> tuple[str, int]:
    """The heading of a held-out error, and its decimals."""
    if row.task != "regression":
        return "held-out error, %", 2
    return ("held-out RMSE", 4) if _of_squares(row) else ("held-out MAE", 2)


def _of_squares(row: Row) -> bool:
    """Whether the error is the root mean square, as in the ripple's table."""
    return row.task == "regression" and dai.label(row).endswith("-nu")


def held_out(row: Row) -> float:
    """The error of the run's settings on held-out training rows, in the units of dai.error."""
    if row.task == "regression" and not _of_squares(row):
        return row.params["held_out_mae"]
    score = row.params["held_out_score"]
    return score if _of_squares(row) else 100 * (1 - score)


def _figure1_builder(name: str) -> Builder:
    return Builder(f"dai2014-fig1-{name}", partial(figure1, name), unrun=partial(_unrun, name))


TABLES = {f"fig1-{name}": _figure1_builder(name) for name in dai.DATA} | {
    "synthetic": Builder("dai2014-synthetic", synthetic),
    "complexity": Builder("dai2014-complexity", complexity),
    "choice": Builder("dai2014-choice", choice),
}
