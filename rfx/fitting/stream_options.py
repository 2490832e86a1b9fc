"""The options of the methods that learn in batches."""

from __future__ import annotations

from rfx.features import MAPS
from rfx.fitting import virtual_examples as examples
from rfx.fitting.options import (
    CHOSEN_GAMMA,
    DTYPE,
    EPSILON,
    GAMMA,
    KERNEL,
    LOSS,
    MOST,
)
from rfx.fitting.settings import Settings
from rfx.kernels import KERNELS
from rfx.options import Option

# Number of first rows for learning preprocessing, if the input can be read only once.
HEAD = 10_000
# The candidates of --nu validation; and those of theta, the length of the first step, without
# preconditioning. With too few rows to choose, nu and theta are FEW_ROWS.
NUS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
THETAS = (1.0, 4.0, 16.0)
FEW_ROWS = {"nu": 1e-4, "theta": 1.0}
# Default epochs for fewer rows than MANY_ROWS; one for more.
PASSES, MANY_ROWS = 3, 100_000

NU = Option(
    "nu",
    float,
    "Regularisation of the mean loss, lambda / n: nu/2 ||f||^2.",
    {"validation": "the best of 1e-3, 1e-4, …, 1e-7 on held-out rows of a sample"},
    low=0,
    default="validation",
)
BATCH = Option("batch", int, "Rows per step (batch size).", low=1, high=MOST, default=1024)
EPOCHS = Option(
    "epochs",
    int,
    f"Passes over the rows; by default {PASSES} over fewer than {MANY_ROWS:,}, else 1.",
    low=1,
    high=MOST,
)
BUFFER = Option(
    "buffer",
    int,
    "Size of the shuffle buffer, in rows, for files and standard input; 0: no shuffling.",
    low=0,
    high=MOST,
    default=16384,
)
FEATURES = Option(
    "features",
    str,
    "Variant of the Fourier features: sqrt2 cos(w.x + b) (offset), or cos and sin of one w (pairs)."
    " In pairs, w is also orthogonal in blocks (orthogonal), the same with fast products"
    " (hadamard), or from a Sobol sequence (quasi). Polynomial kernels: TensorSketch (sketch, the"
    " default), or products of random signs (signs).",
    lambda: ("offset", "pairs", "orthogonal", "quasi", "hadamard", "sketch", "signs"),
    default="offset",
)
REPLACE = Option(
    "replace",
    bool,
    "Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.",
    default=False,
)
HEAD_ROWS = Option(
    "head",
    int,
    "Number of first rows that scaling, labels, components and gamma are learnt from; by default"
    f" all rows, for standard input {HEAD:,}.",
    low=1,
    high=MOST,
)
UNIT = Option("unit", bool, "Normalise scaled rows to unit length.", default=False)
PCA_TO = Option(
    "pca", int, "Number of principal components of the scaled rows to keep.", low=1, high=MOST
)
CENTRED = Option(
    "pca_centred",
    bool,
    "Centre the rows for the principal components.",
    default=True,
)
SECONDS = Option(
    "budget_seconds",
    float,
    "Seconds of training, after which it stops normally.",
    low=0,
    open_low=True,
    high=2e6,
)
SAMPLES = Option(
    "budget_samples",
    int,
    "Maximum number of rows to process, over all epochs.",
    low=1,
    high=10**12,
)
PRECONDITION = Option(
    "precondition",
    bool,
    "Multiply a step by the inverse of the covariance of its features on the batch.",
    default=True,
)
AVERAGING = Option(
    "averaging",
    str,
    "What predicts.",
    {
        "none": "the last f, as in the paper",
        "uniform": "the mean over all steps",
        "linear": "the mean with weight t",
    },
    default="linear",
)
PROJECT = Option(
    "project",
    bool,
    "Project onto the ball of radius 1/sqrt(nu), which contains the minimum of the hinge loss.",
    default=False,
)
# Newton steps on features cost as much for more rows.
PEGASOS = (BATCH.but(default=4096), PROJECT, PRECONDITION, AVERAGING)

OPTIONS = (
    KERNEL.but(choices=lambda: [name for name in MAPS if not KERNELS[name].needs_rows]),
    GAMMA.adding(
        {"median-matlab": "1 / median distance^2, as in the program of Dai et al."},
        {
            "loo": (
                f"{CHOSEN_GAMMA.meanings()['loo']}; then the best on held-out rows of a sample"
                " among that value and 4 and 16 times as much, which need fewer epochs"
            )
        },
    ).but(default="loo"),
    LOSS.but(
        help=(
            "The loss; by default squared for regression, squared_hinge for two classes, softmax"
            " for more if the method supports it."
        ),
        choices=(
            "hinge",
            "squared_hinge",
            "logistic",
            "squared",
            "absolute",
            "epsilon_insensitive",
            "softmax",
        ),
    ),
    EPSILON,
    NU,
    BATCH,
    EPOCHS,
    REPLACE,
    BUFFER,
    HEAD_ROWS,
    UNIT,
    PCA_TO,
    CENTRED,
    *examples.OPTIONS,
    SECONDS,
    SAMPLES,
    DTYPE,
)
# Options that may change when a training is resumed.
CHANGEABLE = frozenset(("budget_seconds", "budget_samples", "timeout", "epochs"))


def passes(settings: Settings, n_rows: int | None) -> int:
    """Number of epochs; n_rows: of a set, None if unknown."""
    given: int | None = settings.epochs
    if given is not None:
        return given
    return PASSES if n_rows is not None and n_rows < MANY_ROWS else 1
