"""The options of the methods that learn in batches."""

from __future__ import annotations

from rfx.fitting.options import (
    MOST,
)
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

# Options that may change when a training is resumed.
CHANGEABLE = frozenset(("budget_seconds", "budget_samples", "timeout", "epochs"))
