"""`rfx export`: export a model to other programs, as ONNX, C or JSON."""

import sys
import warnings

import click

from rfx import files, methods
from rfx.cli.common import force_option, output_option
from rfx.errors import RfxWarning, UsageError

FORMS = {
    "onnx": "a graph for onnxruntime, in float64",
    "c": "one C99 file that needs only the standard library",
    "json": "the steps of a prediction, for your own reader",
}


@click.command("export")
@click.argument("model", type=click.Path(dir_okay=False))
@click.option(
    "--to",
    "form",
    type=click.Choice(list(FORMS)),
    required=True,
    help="; ".join(f"{name}: {meaning}" for name, meaning in FORMS.items()) + ".",
)
@click.option(
    "--prefix",
    metavar="NAME",
    help="With --to c: begin the names of functions and macros with NAME.  [default: rfx]",
)
@output_option
@force_option
def command(model, form, prefix, output, force):
    """Export a model as a program that predicts without rfx. It includes scaling, metric,
    categories, labels and probabilities.

    docs/export.md describes each format, and the model file itself.
    """
    from rfx.data.libsvm import svmlight
    from rfx.exporting import c_source, json_text, onnx_graph
    from rfx.exporting.program import Program

    if prefix is not None and form != "c":
        raise UsageError(f"--prefix is {prefix!r:.80}, which needs --to c")
    # no existing file can be recognised as an exported model
    unknown = files.Kind("known to be an exported model", lambda path: False)
    files.guard(("-o", output), [("the model", model)], unknown, force)
    if form == "onnx":
        onnx_graph.check()
        if output == "-" and sys.stdout is not None and sys.stdout.isatty():
            raise UsageError(
                "--to onnx writes binary data, which a terminal can't show; use -o FILE"
            )
    program = Program.of(methods.load(model))
    writer = {"onnx": onnx_graph, "c": c_source, "json": json_text}[form]
    text = writer.written(program, **{} if prefix is None else {"prefix": prefix})
    left_out = program.facts.get("not_included")
    if left_out is not None:
        warnings.warn(f"the exported file does not include {left_out}", RfxWarning, stacklevel=2)
    with svmlight.open_output(output) as handle:
        handle.write(text)
