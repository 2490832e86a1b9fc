"""`rfx featurize`: the random features of a LIBSVM file, as a LIBSVM file."""

import click

from rfx.cli.common import force_option, named, threads_option
from rfx.methods.options import GAMMA, SCALINGS


@click.command("featurize")
@click.argument("source", metavar="NAME|FILE", default="-")
@click.option(
    "--map",
    "name",
    default="gaussian",
    show_default=True,
    metavar="KERNEL",
    help="gaussian (also: fourier), laplacian, laplacian-l2, perceptron, stump or binning (the Laplacian kernel).",
)
@click.option(
    "-n", "--n-features", type=int, default=1000, show_default=True, help="Number of features; binning: of grids, a feature for each bin."
)
@click.option("-o", "--output", default="-", show_default=True, metavar="FILE", help="Where to write; - is standard output.")
@click.option("--gamma", default="paper", show_default=True, metavar="VALUE", help="Bandwidth: a number, paper or median.")
@click.option(
    "--features",
    "variant",
    type=click.Choice(["offset", "pairs"]),
    default="offset",
    show_default=True,
    help="sqrt2 cos(w.x + b), or cos and sin of the same w.",
)
@click.option("--scaling", type=click.Choice(SCALINGS), default="minmax01", show_default=True, help="Scaling of the inputs.")
@click.option(
    "--train",
    default=None,
    metavar="NAME|FILE",
    help="Learn the scaling, the ranges and the bins on these rows; by default on those written, or a data set's training rows.",
)
@click.option("--unscaled", is_flag=True, help="Write phi itself, not phi / sqrt(n): the mean of products, not their sum, is the kernel.")
@click.option(
    "--model",
    type=click.Path(dir_okay=False),
    default=None,
    help="Use the scaling and the features of this model instead (all options but -o are then the model's).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the features.")
@click.option("--zero-based", is_flag=True, help="The file's indices start at 0.")
@force_option
@threads_option
def command(source, name, n_features, output, force, gamma, variant, scaling, unscaled, model, seed, zero_based, train):
    """Write the random features of each row of a file, labels kept, as LIBSVM text; of a data set by its name, of its test rows.

    Scaling, ranges and bins are learnt on the rows of the file, or on the data set's training rows; --train names others.

    \b
    rfx featurize data.libsvm --map fourier -n 512 -o - | train -s 2 /dev/stdin
    rfx featurize train.libsvm --map binning -n 256 -o a.libsvm
    rfx featurize test.libsvm --train train.libsvm --map binning -n 256 -o b.libsvm
    """
    import math

    from rfx import features, files, kernels
    from rfx.cli.rows import labelled_rows
    from rfx.data import load, registry, svmlight
    from rfx.data.scaling import Scaler
    from rfx.errors import UsageError
    from rfx.features.binning import sample_grids
    from rfx.methods import width

    inputs = named("the input", source) + named("--train", train) + ([] if model is None else [("--model", model)])
    files.guard(("-o", output), inputs, svmlight.KIND, force)
    if model is not None:
        from rfx import methods

        if train is not None:
            raise UsageError(f"--train is {train}, but --model {model} has the scaling and the features; give one of the two")
        trained = methods.load(model)
        X, y = labelled_rows(source, None, zero_based, trained.info["n_inputs"])
        scaler = trained.scaler
        if hasattr(trained, "map"):
            blocks = _dense(trained.map, scaler, X, 1.0)
        elif hasattr(trained, "bins"):
            blocks = _bins(trained.grids, trained.bins, scaler, X, 1.0)
        else:
            raise UsageError(f"--model {model} is of method {trained.name}, which has no random features")
    else:
        features.check_variant({"fourier": "gaussian"}.get(name, name), n_features, variant)
        if train is None and registry.has(source.partition(":")[0]):
            train = source
        learnt = None if train is None else load(train, zero_based=zero_based).X_train
        X, y = labelled_rows(source, None, zero_based, None if learnt is None else learnt.shape[1])
        learnt = X if learnt is None else learnt
        width.check(learnt, scaling, 3 * n_features if name == "binning" else n_features, 4)
        scaler = Scaler.fit(learnt, scaling)
        gamma = gamma if gamma in ("paper", "median") else GAMMA.convert(gamma)
        kernel = {"fourier": "gaussian", "binning": "laplacian"}.get(name, name)
        has_gamma = kernel in kernels.KERNELS and "gamma" in kernels.get_kernel(kernel).parameters
        # as in training, the words mean "whatever this kernel needs"
        given = gamma if has_gamma or not isinstance(gamma, str) else None
        params = kernels.parameters(kernel, scaler.transform(learnt), given, seed)
        if name == "binning":
            if n_features < 1:
                raise UsageError(f"--n-features is {n_features}; it must be 1 or more")
            grids = sample_grids(kernel, X.shape[1], n_features, seed, **params)
            blocks = _bins(grids, grids.number(scaler.transform(learnt))[1], scaler, X, 1.0 if unscaled else None)
        else:
            feature_map = features.sample(kernel, X.shape[1], n_features, seed, variant=variant, **params)
            blocks = _dense(feature_map, scaler, X, 1.0 if unscaled else 1 / math.sqrt(n_features))
    with svmlight.open_output(output) as handle:
        for rows, Z in blocks:
            svmlight.write_rows(handle, Z, y[rows])


def _dense(feature_map, scaler, X, scale):
    """(rows, features) block by block."""
    from rfx.operators.mapped import MapMatrix

    return MapMatrix(feature_map, scaler.transform(X, dtype=feature_map.dtype), scale).row_blocks()


def _bins(grids, bins, scaler, X, value, rows=4096):
    """(rows, CSR of the bins that they are in) block by block."""
    X = scaler.transform(X)
    for start in range(0, X.shape[0], rows):
        part = slice(start, min(start + rows, X.shape[0]))
        yield part, grids.transform(X[part], bins, value)
