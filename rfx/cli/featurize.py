"""`rfx featurize`: the random features of the rows of a file, as a LIBSVM file."""

import math

import click

from rfx import files, methods
from rfx.cli.common import (
    DeclaredCommand,
    Whole,
    force_option,
    named,
    output_option,
    reading,
    reading_options,
    threads_option,
)
from rfx.data.reading import Reading
from rfx.data.registry import registry
from rfx.errors import UsageError
from rfx.fitting.options import GAMMA, SCALING


class MapCommand(DeclaredCommand):
    """A command that has the options of the kernel named by its --map, or of all kernels."""

    flag = "--map"

    def declared(self, name):
        from rfx import features, kernels

        chosen = [features.find(name)[1]] if name else list(features.MAPS)
        return list(
            {
                option.name: option
                for kernel in chosen
                for option in kernels.get_kernel(kernel).options
            }.values()
        )

    def format_epilog(self, ctx, formatter):
        from rfx import features

        others = ", ".join(f"{alias} ({kernel})" for alias, (_, kernel) in features.ALIASES.items())
        formatter.write_paragraph()
        formatter.write_text(f"Maps: {', '.join(features.MAPS)}; {others}.")


@click.command("featurize", cls=MapCommand)
@click.argument("source", metavar="NAME|FILE", default="-")
@click.option(
    "--map",
    "name",
    default="gaussian",
    show_default=True,
    metavar="KERNEL",
    help="The kernel or map whose features are written; see the list below.",
)
@click.option(
    "-n",
    "--n-features",
    type=Whole(),
    default=1000,
    show_default=True,
    help="Number of features; for binning, the number of grids, with a feature for each bin.",
)
@output_option
@click.option(
    "--gamma",
    default="paper",
    show_default=True,
    metavar="VALUE",
    help="Bandwidth: a number, paper or median.",
)
@click.option(
    "--features",
    "variant",
    default=None,
    metavar="VARIANT",
    help=(
        "Fourier features: sqrt2 cos(w.x + b) (offset), or cos and sin of the same w (pairs). In"
        " pairs, w is also orthogonal in blocks (orthogonal), the same with fast products"
        " (hadamard), or from a Sobol sequence (quasi)."
        " Polynomial kernels: TensorSketch (sketch), or products of random signs (signs)."
        " Perceptrons: thresholds over the whole ball (offset), or within the range of the training"
        " rows (range)."
        "  [default: offset; sketch for polynomial kernels]"
    ),
)
@click.option(
    "--scaling",
    type=click.Choice(tuple(SCALING.meanings())),
    default=None,
    help=(
        f"{SCALING.description()}  [default: {SCALING.default}; none for kernels of counts and"
        " categories]"
    ),
)
@click.option(
    "--train",
    default=None,
    metavar="NAME|FILE",
    help=(
        "Learn the scaling, the ranges and the bins from these rows.  [default: the rows written,"
        " or a data set's training rows]"
    ),
)
@click.option(
    "--unscaled",
    is_flag=True,
    help="Write phi instead of phi / sqrt(n): the mean of products, not their sum, is the kernel.",
)
@click.option(
    "--model",
    type=click.Path(dir_okay=False),
    default=None,
    help=("Use the scaling and the features of this model; its options replace all except -o."),
)
@click.option("--seed", type=Whole(), default=0, show_default=True, help="Seed of the features.")
@reading_options
@force_option
@threads_option
def command(
    source,
    name,
    n_features,
    output,
    force,
    gamma,
    variant,
    scaling,
    unscaled,
    model,
    seed,
    zero_based,
    train,
    target,
    ignore,
    categorical,
    dates,
    header,
    missing,
    encoding,
    **options,
):
    """Write the random features of each row of a file, with its label, as LIBSVM text. For a named
    data set, these are its test rows.

    Word labels become 0, 1, …; the mapping is printed to standard error.

    Files are LIBSVM text, CSV, TSV, .npz, .npy or Parquet. A table is read like the file of --train
    or of the model, if given.

    Scaling, ranges and bins are learnt from the rows of the file, or from the data set's training
    rows; --train selects other rows.

    \b
    rfx featurize data.libsvm --map fourier -n 512 -o - | train -s 2 /dev/stdin
    rfx featurize train.libsvm --map binning -n 256 -o a.libsvm
    rfx featurize test.libsvm --train train.libsvm --map binning -n 256 -o b.libsvm
    """
    from rfx import features, kernels
    from rfx.cli.rows import labelled_rows
    from rfx.data.libsvm import svmlight
    from rfx.data.loading import load
    from rfx.data.tabular import labelwords
    from rfx.data.tabular.table import Words
    from rfx.data.transforms.scaling import Scaler
    from rfx.fitting import memory

    inputs = (
        named("the input", source)
        + named("--train", train)
        + ([] if model is None else [("--model", model)])
    )
    files.guard(("-o", output), inputs, svmlight.KIND, force)
    asked = Reading(
        **reading(target, ignore, categorical, dates, header, missing, encoding),
        zero_based=zero_based or None,
    )
    if model is not None:
        X, y, labels, scaler, feature_map = _by_model(model, source, train, asked)
        scale = 1.0
    else:
        kind, kernel = features.find(name)
        suited = kernels.get_kernel(kernel).scalings
        scaling = scaling or (suited[0] if suited else SCALING.default)
        variant = variant or kind.usual(kernel)
        kind.check_variant(kernel, n_features, variant)
        if train is None and registry.has(source.partition(":")[0]):
            train = source
        taught = (
            None
            if train is None
            else load(
                train, zero_based=zero_based, reading=asked, task=labelwords.KEPT, means=False
            )
        )
        learnt, schema = (None, None) if taught is None else (taught.X_train, taught.schema)
        X, y, labels = labelled_rows(
            source, None if learnt is None else learnt.shape[1], asked, schema
        )
        learnt = X if learnt is None else learnt
        memory.check(learnt, scaling, kind.width * n_features, 4)
        scaler = Scaler.fit(learnt, scaling)
        learnt = scaler.transform(learnt)
        params = _parameters(kernel, learnt, gamma, seed, options)
        feature_map = kind.learn(kernel, learnt, n_features, seed, variant=variant, **params)
        scale = 1.0 if unscaled else 1 / math.sqrt(n_features)
    with svmlight.open_output(output) as handle:
        for rows, Z in feature_map.row_blocks(scaler.transform(X, dtype=feature_map.dtype), scale):
            svmlight.write_rows(handle, Z, y.rows(rows) if isinstance(y, Words) else y[rows])
    for number, label in enumerate(labels or ()):
        click.echo(f"label {number}\t{label}", err=True)


def _by_model(model, source, train, asked):
    """(X, y, labels, scaler, feature map) of the rows of `source`, read and mapped like those of a
    model.
    """
    from rfx.cli.rows import labelled_rows

    if train is not None:
        raise UsageError(
            f"--train is {train}, but --model {model} defines the scaling and the features; use"
            " only one of them"
        )
    trained = methods.load(model)
    n_inputs = trained.info["n_inputs"]
    rows = labelled_rows(source, n_inputs, asked, trained.schema, trained.letters)
    if not hasattr(trained.model, "map"):
        raise UsageError(
            f"--model {model} was trained with method {trained.name}, which has no random features"
        )
    return *rows, trained.preprocessing.scaler, trained.model.map


def _parameters(kernel, X, gamma, seed, options) -> dict:
    """The kernel's parameters: those given, else inferred from the scaled rows X (n, d)."""
    from rfx import kernels

    found = kernels.get_kernel(kernel)
    gamma = gamma if gamma in ("paper", "median") else GAMMA.convert(gamma)
    # as in training, these words mean "choose for this kernel"
    needed = not isinstance(gamma, str) or "gamma" in found.parameters
    own = {
        option.name: option.convert(options[option.name])
        for option in found.options
        if options[option.name] is not None
    }
    return kernels.parameters(kernel, X, gamma if needed else None, seed, **own)
