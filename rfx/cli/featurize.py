"""`rfx featurize`: the random features of a LIBSVM file, as a LIBSVM file."""

import click

from rfx.cli.common import threads_option
from rfx.methods.options import OPTIONS, SCALINGS


@click.command("featurize")
@click.argument("source", metavar="NAME|FILE", default="-")
@click.option("--map", "name", default="gaussian", show_default=True, metavar="KERNEL",
              help="gaussian (also: fourier), laplacian, laplacian-l2, perceptron or stump.")
@click.option("-n", "--n-features", type=int, default=1000, show_default=True, help="Number of features.")
@click.option("-o", "--output", default="-", show_default=True, metavar="FILE", help="Where to write; - is standard output.")
@click.option("--gamma", default="paper", show_default=True, metavar="VALUE", help="Bandwidth: a number, paper or median.")
@click.option("--features", "variant", type=click.Choice(["offset", "pairs"]), default="offset", show_default=True,
              help="sqrt2 cos(w.x + b), or cos and sin of the same w.")
@click.option("--scaling", type=click.Choice(SCALINGS), default="minmax01", show_default=True, help="Scaling of the inputs, learnt on these rows.")
@click.option("--unscaled", is_flag=True, help="Write phi itself, not phi / sqrt(n): the mean of products, not their sum, is the kernel.")
@click.option("--model", type=click.Path(dir_okay=False), default=None,
              help="Use the scaling and the features of this model instead (all options but -o are then the model's).")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the features.")
@click.option("--zero-based", is_flag=True, help="The file's indices start at 0.")
@threads_option
def command(source, name, n_features, output, gamma, variant, scaling, unscaled, model, seed, zero_based):
    """Write the random features of each row, labels kept, as LIBSVM text.

    \b
    rfx featurize data.libsvm --map fourier -n 512 -o - | train -s 2 /dev/stdin
    """
    import math

    from rfx import features, kernels
    from rfx.cli.rows import labelled_rows
    from rfx.data import svmlight
    from rfx.data.scaling import Scaler
    from rfx.errors import UsageError
    from rfx.solvers.blocks import MapBlocks

    if model is not None:
        from rfx import methods

        trained = methods.load(model)
        if not hasattr(trained, "map"):
            raise UsageError(f"--model {model} is of method {trained.name}, which has no random features")
        X, y = labelled_rows(source, None, zero_based, trained.info["n_inputs"])
        scaler, feature_map, scale = trained.scaler, trained.map, 1.0
    else:
        X, y = labelled_rows(source, None, zero_based, None)
        scaler = Scaler.fit(X, scaling)
        gamma = gamma if gamma in ("paper", "median") else OPTIONS["gamma"].convert(gamma)
        kernel = "gaussian" if name == "fourier" else name
        has_gamma = kernel in kernels.KERNELS and kernels.get_kernel(kernel).paper_gamma is not None
        params = kernels.parameters(kernel, scaler.transform(X), gamma if has_gamma else None, seed)
        feature_map = features.sample(kernel, X.shape[1], n_features, seed, variant=variant, **params)
        scale = 1.0 if unscaled else 1 / math.sqrt(n_features)
    blocks = MapBlocks(feature_map, scaler.transform(X, dtype=feature_map.dtype), scale)
    with svmlight.open_output(output) as handle:
        for rows, Z in blocks:
            svmlight.write_rows(handle, Z, y[rows])
