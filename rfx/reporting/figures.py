"""Figures: the rows of a results file plotted in the layout of a paper, with the authors' curve if
it is available.

`rfx.plans.catalogue` finds the figures. A figure is a chart (see `charts`), and `style` defines its
appearance. matplotlib is imported only when something is drawn, and never opens a window.
"""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rfx import files, lazy
from rfx.errors import DataError, UsageError, or_near
from rfx.fitting.pipeline import Pipeline
from rfx.plans import catalogue
from rfx.reporting import charts, style

FORMATS = ("png", "svg", "pdf", "csv")
DPI = 150
# The same rows result in the same file: it has no date, and its identifiers are not random. Letters
# are drawn as paths, so that the file looks the same on every machine.
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "rfx",
    "svg.fonttype": "path",
    "font.family": style.FONT,
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
}
_METADATA = {
    "png": {"Software": "rfx"},
    "svg": {"Date": None, "Creator": "rfx"},
    "pdf": {"CreationDate": None, "Creator": "rfx"},
}
# the form of the metadata in the file: in the first kilobytes, or in a PDF anywhere
_MARKS = {"png": b"Software\0rfx", "svg": b"<dc:title>rfx</dc:title>", "pdf": b"/Creator (rfx)"}


def _kind(form: str) -> files.Kind:
    """The kind of files that are figures drawn by rfx in this format."""
    return files.Kind(
        f"a figure of rfx in {form.upper()}",
        lambda path: (
            charts.is_written(path)
            if form == "csv"
            else _MARKS[form] in path.read_bytes()[: None if form == "pdf" else 4096]
        ),
    )


def draw(
    name: str,
    rows: Sequence[Mapping] | Pipeline,
    output=None,
    setting: str | None = None,
    builders: Mapping[str, Callable] | None = None,
    inputs=(),
    force: bool = False,
) -> list[Path]:
    """Draw the figure `name` from result rows, or from a model, as PNG, SVG and PDF, and write its
    numbers as CSV.

    Returns the paths of these files. builders: the figures, name to builder; default: the general
    ones. output: a folder (an existing one, or a name that ends in /), or the files' name with or
    without .png or .svg; default: NAME in the current folder. The CSV file is STEM.figure.csv, to
    distinguish it from results files. inputs, force: see files.guard; figures of rfx are replaced
    without confirmation. Each file is written completely or not at all. Raises UsageError if there
    is no such figure or a file must not be replaced. Raises DataError if no row belongs to it, the
    model has nothing to draw, or a file can't be written.
    """
    builders = catalogue.figures() if builders is None else builders
    if name not in builders:
        raise UsageError(f"there is no figure {name}{or_near(name, builders)}")
    folder = str(output).endswith(os.sep) or Path(output or "").is_dir()
    stem = Path(output or "") / name if folder else Path(output or name)
    if stem.suffix.lower().removeprefix(".") in FORMATS and not folder:
        stem = stem.with_suffix("")
    for path, form in zip(_targets(stem), FORMATS):
        files.guard(("--output", path), inputs, _kind(form), force)
    with styled():
        chart = builders[name](rows, setting)
        return save(chart, charts.paint(chart), stem)


def guard_one(path, inputs=(), force: bool = False) -> None:
    """Raise UsageError if the name of a figure's file has no known format, or if the file must not
    be replaced. inputs, force: see files.guard.
    """
    files.guard(("--figure", path), inputs, _kind(_form(path)), force)


def draw_one(chart: charts.Chart, path) -> None:
    """Draw a chart into one file in the format of its name; the file is written completely or not
    at all.

    Raises DataError if it can't be written.
    """
    try:
        with styled(), files.whole(path) as handle:
            _draw_into(charts.paint(chart), handle, _form(path))
    except OSError as error:
        raise DataError(f"{path} can't be written: {error.strerror}") from error


def _form(path) -> str:
    """The format from the name of a figure's file."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in _METADATA:
        endings = ", ".join(f".{one}" for one in _METADATA)
        raise UsageError(f"--figure is {path}, but its name must end in one of {endings}")
    return form


def styled():
    """Context in which figures are drawn and written: rfx's own style."""
    return lazy.matplotlib.rc_context(_STYLE)


def save(chart: charts.Chart, figure, stem: Path) -> list[Path]:
    """Write a chart and its drawn figure in all FORMATS, and return the paths. Each file is written
    completely or not at all.

    Raises DataError if a file can't be written.
    """
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path, form in zip(_targets(stem), FORMATS):
            with files.whole(path) as handle:
                if form == "csv":
                    handle.write(charts.written(chart))
                else:
                    _draw_into(figure, handle, form)
            # the layout takes as long as drawing, and is the same in all formats
            figure.set_layout_engine("none")
    except OSError as error:
        raise DataError(
            f"{stem} can't be written: {error.strerror}; give another --output"
        ) from error
    return _targets(stem)


def _targets(stem: Path) -> list[Path]:
    ends = ("figure.csv" if form == "csv" else form for form in FORMATS)
    return [stem.with_name(f"{stem.name}.{end}") for end in ends]


def _draw_into(figure, handle, form: str) -> None:
    """Draw a figure once, in a format, into an open file.

    `savefig` draws twice: first without output, for layouts that a drawing may change.
    """
    name = {"png": "Agg", "svg": "SVG", "pdf": "Pdf"}[form]
    backend = importlib.import_module(f"matplotlib.backends.backend_{name.lower()}")
    # vector formats count in points
    figure.dpi = DPI if form == "png" else 72
    canvas = getattr(backend, f"FigureCanvas{name}")(figure)
    getattr(canvas, f"print_{form}")(handle, metadata=_METADATA[form])
