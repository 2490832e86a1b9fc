"""What the settings of Figure 1 that the paper leaves open are chosen by: errors on training rows that were held out."""

from rfx.papers.dai2014 import curves as dai
from rfx.reporting import columns
from rfx.reporting.seeds import mean
from rfx.reporting.tables import Section, Table, failures, machines, short


def choice(rows, setting=None) -> Table:
    """The held-out error of every setting tried, and the least; scores on test rows, which take no part, are left out."""
    dai.refuse_setting("choice", setting)
    found = dai.of(rows, "choice")
    sections, cells = [], []
    for name in dict.fromkeys(dai.criterion_of(run) for run in found):
        own = [run for run in found if dai.criterion_of(run) == name]
        given = columns.of([run.row for run in own])
        varying = [option for option in given.varying if option != "seed"]
        settings: dict = {}
        for run, values in zip(own, given.values):
            tried = {option: values.get(option) for option in varying}
            settings.setdefault(tuple(tried.items()), (tried, []))[1].append(run)
        errors = [mean([held_out(run) for run in runs]) for _, runs in settings.values()]
        least = min(error.value for error in errors)
        lines = []
        for (tried, runs), error in zip(settings.values(), errors):
            mark = " !" if len(settings) > 1 and error.value == least else ""
            spread = "" if error.sd is None else f" ± {error.sd:.2f}"
            seconds = short(mean([run.seconds for run in runs]).value)
            lines.append([*(columns.written(*one) for one in tried.items()), f"{error.value:.2f}{spread}{mark}", seconds])
            found_here = {"held_out_error": error.value, "sd": error.sd, "n": error.n, "chosen": bool(mark)}
            cells.append({"table": "dai2014-choice", "setting": name, **tried, **found_here})
        unit = "held-out MAE" if own[0].regression else "held-out error, %"
        headings = [*map(columns.heading, varying), unit, "seconds"]
        sections.append(Section(name, headings, lines, len(varying), dataset=own[0].row["dataset"]))
    notes = [
        "!: the least error on training rows that were held out. Seconds are of the steps on all training rows.",
        "± is the standard deviation over seeds, of which each holds out rows of its own.",
    ]
    return Table(
        "dai2014-choice", "Dai et al. 2014: settings by validation", sections,
        notes + failures(rows) + machines(run.row for run in found), cells,
    )  # fmt: skip


def held_out(run) -> float:
    """The error of the run's settings on held-out training rows, as Run.error has it of the test rows."""
    params = run.row["params"]
    return params["held_out_mae"] if run.regression else 100 * (1 - params["held_out_score"])


TABLES = {"choice": choice}
