"""rfx figure: a paper's figure from a results file, next to the published curves."""

import click

from rfx import methods, papers
from rfx.cli.common import complete_figure, force_option
from rfx.errors import UsageError, or_near
from rfx.plans.catalogue import rows_for
from rfx.records.results import read
from rfx.records.traces import beside, chosen


@click.command(
    "figure", short_help="Draw a paper's figure from a results file, next to the published curves."
)
@click.argument("name", required=False, shell_complete=complete_figure)
@click.option(
    "--results", default="results.csv", show_default=True, help="CSV file written by rfx run."
)
@click.option(
    "--output",
    metavar="DIR|STEM",
    help="Output folder (an existing one, or a name that ends in /), or base name of the files. "
    " [default: NAME]",
)
@click.option(
    "--trace",
    metavar="FILE",
    help="Traces of the runs.  [default: next to the results, such as results.trace.csv]",
)
@click.option(
    "--setting",
    help="Use rows of this setting, such as paper or tuned.  [default: the first one present]",
)
@click.option("--model", metavar="FILE", help="Draw the figure importance of this model instead.")
@force_option
@click.option("--list", "as_list", is_flag=True, help="List the figures and exit.")
def command(name, results, output, trace, setting, model, force, as_list):
    """Draw the figure NAME from the rows of a results file as PNG, SVG and PDF, with its numbers as
    CSV, and print the file names.

    importance is the figure of a model: rfx figure importance --model m.npz.

    The CSV contains every point drawn; `rfx table NAME` prints them as a table. The same rows give
    the same files.
    """
    from rfx.reporting import figures, figures_general

    known, of_models = papers.figures(), figures_general.OF_MODELS
    if as_list:
        click.echo("\n".join([*known, *of_models]))
        return
    if name is None:
        raise UsageError(f"which figure? There are: {', '.join([*known, *of_models])}")
    if model is not None or name in of_models:
        _of_model(name, model, output, force)
        return
    rows = rows_for(known.get(name), lambda: read(results, chosen(trace, results)))
    trace = beside(results) if trace is None else trace
    for path in figures.draw(
        name, rows, output, setting, known, [("--results", results), ("--trace", trace)], force
    ):
        click.echo(path)


def _of_model(name, model, output, force):
    """Draw a figure of a model file."""
    from rfx.reporting import figures
    from rfx.reporting.figures_general import OF_MODELS

    if name not in OF_MODELS:
        raise UsageError(
            f"figure {name} does not show a model{or_near(name, list(OF_MODELS), 'there are')};"
            " omit --model"
        )
    if model is None:
        raise UsageError(f"figure {name} shows a model; pass --model FILE")
    for path in figures.draw_model(name, methods.load(model), output, [("--model", model)], force):
        click.echo(path)
