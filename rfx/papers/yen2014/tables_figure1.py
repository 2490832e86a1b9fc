"""The numbers behind Figure 1 of Yen et al. 2014: where each curve ends, and when it is below the kernel's line."""

from rfx.papers.yen2014 import figure1 as yen
from rfx.reporting import seeds
from rfx.reporting.tables import DASH, Section, Table, failures, machines, short

_COLUMNS = ["method", "lambda", "features kept", "objective / N", "error", "seconds", "seconds to the kernel's line"]
NAME = "yen2014-figure1"


def figure1(rows, setting=None) -> Table:
    """A section for each data set: the kernel's line first, then Sparse-RF and boosting, means over the seeds."""
    panels, sections, cells, used = yen.found(rows, setting), [], [], []
    for name, (curves, line) in panels.items():
        lines = []
        if line is not None:
            found = {"objective": yen.spread(line.bounds), "error": yen.spread(line.errors), "seconds": yen.spread(line.seconds)}
            lines.append(["Kernel (dashed)", f"{line.lam:g}", DASH, *_words(found), DASH])
            cells.append(_cell(name, "kernel", found, lam=line.lam, seeds=len(line.seeds)))
        for key, runs in curves.items():
            used += runs.rows
            reached = [] if line is None else [value for value in runs.reached(line) if value is not None]
            found = {
                "features": yen.spread([row["model_size"] for row in runs.rows]),
                "objective": yen.spread(runs.ends(1)),
                "error": yen.spread(runs.ends(2)),
                "seconds": yen.spread(runs.ends(0)),
                "seconds_to_line": yen.spread(reached) if reached else (None, None),
            }
            many = "" if len(reached) in (0, len(runs.rows)) else f" ({len(reached)} of {len(runs.rows)} seeds)"
            lines.append(
                [
                    yen.CURVES[key],
                    f"{runs.lam:g}",
                    seeds.spread(*found["features"], lambda value: f"{value:,.0f}"),
                    *_words(found),
                    f"{seeds.spread(*found['seconds_to_line'], short)}{many}" if reached else "never" if line else DASH,
                ]
            )
            cells.append(_cell(name, key, found, lam=runs.lam, seeds=len(runs.rows)))
        first = next(iter(curves.values()))
        printed = yen.AXES.get(name)
        axes = "" if printed is None else "; the paper's axes: {} s, {}, {}".format(*(f"{low:g} to {high:g}" for low, high in printed))
        sections.append(Section(f"{yen.DATA[name]}, N = {first.n:,}{axes}", _COLUMNS, lines))
    notes = [
        "The kernel's line is (lambda_N/N) ||w*||_2 + mean loss with the lambda_N of the L1 problem; its own lambda is in its column. "
        "Curves are held against that of their own seed, which draws the rows.",
        "All with perceptrons +-1 and the kernel 1 - (c_d/R) ||x - y||, no bias. The paper prints no lambda for its Figure 1.",
        "Seconds are the processor's, of all threads; of the kernel machine they are the wall clock's.",
        *seeds.noise([cell["seeds"] for cell in cells])[:1],
    ]
    return Table(NAME, "Yen et al. 2014, Figure 1: Sparse-RF and boosting", sections, notes + failures(rows) + machines(used), cells)


def _words(found) -> list[str]:
    """Objective, error and seconds as they are printed."""
    four = lambda value: f"{value:.4f}"
    return [seeds.spread(*found["objective"], four), seeds.spread(*found["error"], four), seeds.spread(*found["seconds"], short)]


def _cell(dataset, method, found, **more) -> dict:
    means = {quantity: mean for quantity, (mean, _) in found.items()}
    deviations = {f"{quantity}_sd": deviation for quantity, (_, deviation) in found.items()}
    return {"table": NAME, "dataset": dataset, "method": method} | more | means | deviations


TABLES = {"figure1": figure1}
