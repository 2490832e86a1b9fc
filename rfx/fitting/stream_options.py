"""The options of the methods that learn batch by batch."""

from rfx.features import MAPS
from rfx.fitting import virtual_examples as examples
from rfx.fitting.options import DTYPE, GAMMA, KERNEL, LOSS, MOST
from rfx.kernels import KERNELS
from rfx.options import Option

# Rows from which all is learnt that must be known beforehand, of an input that can be read once.
HEAD = 10_000
NU = Option(
    "nu", float, "Regularisation of the mean loss, lambda / n: nu/2 ||f||^2.", low=0, default=1e-6
)
BATCH = Option("batch", int, "Rows of a step.", low=1, high=MOST, default=256)
EPOCHS = Option("epochs", int, "Passes over the rows.", low=1, high=MOST, default=1)
BUFFER = Option(
    "buffer",
    int,
    "Rows of a file or of standard input that are shuffled with one another; 0: none.",
    low=0,
    high=MOST,
    default=16384,
)
FEATURES = Option(
    "features",
    str,
    "Fourier features: sqrt2 cos(w.x + b), or cos and sin of one w.",
    ("offset", "pairs"),
    default="offset",
)
REPLACE = Option(
    "replace",
    bool,
    "Draw the rows with replacement, as the theorems have it; else every pass has each once.",
    default=False,
)
HEAD_ROWS = Option(
    "head",
    int,
    "Rows at the beginning that scaling, labels, components and gamma are learnt from; by default"
    f" all, of standard input {HEAD:,}.",
    low=1,
    high=MOST,
)
UNIT = Option("unit", bool, "Divide rows, once they are scaled, by their length.", default=False)
PCA_TO = Option(
    "pca", int, "Keep so many principal components of the scaled rows.", low=1, high=MOST
)
CENTRED = Option(
    "pca_centred",
    bool,
    "Principal components about the mean of the rows; false: about the origin.",
    default=True,
)
SECONDS = Option(
    "budget_seconds",
    float,
    "Seconds of training after which it ends well.",
    low=0,
    open_low=True,
    high=2e6,
)
SAMPLES = Option(
    "budget_samples",
    int,
    "Rows after which training ends well, however many passes that takes.",
    low=1,
    high=10**12,
)
EPSILON = Option(
    "epsilon", float, "Half the width of the tube of epsilon_insensitive.", low=0, default=0.1
)
PROJECT = Option(
    "project",
    bool,
    "Project on the ball of radius 1/sqrt(nu), which the minimum of the hinge loss lies in.",
    default=False,
)
OPTIONS = (
    KERNEL.but(
        choices=lambda: [name for name in MAPS if not set(KERNELS[name].parameters) - {"gamma"}]
    ),
    GAMMA.adding({"median-matlab": "1 / median distance^2, as the program of Dai et al. has it"}),
    LOSS.but(
        help=(
            "The loss; by default squared for regression, hinge for two classes, softmax for more"
            " where the method has it."
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
# Options that a training that is taken up again may change.
CHANGEABLE = frozenset(("budget_seconds", "budget_samples", "timeout", "epochs"))
