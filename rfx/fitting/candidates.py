"""The candidate values of every choice, and what a method declares for the choice of its options.

Lambdas stand largest first; bandwidths are multiples of that of the median distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Lambdas of L2 regularisation; additional ones when a regression's bandwidth is chosen without
# fitting the method, because trials are cheap there, and targets may have no noise.
LAMS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
SMALLER = (0.003, 0.001)
# Lambdas of L1 regularisation: over random features; over bins; and for regression, as multiples of
# the range of the targets.
L1_LAMS = (1000.0, 100.0, 10.0, 1.0)
L1_LAMS_OF_BINS = (100.0, 10.0, 1.0, 0.1)
L1_SHARES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
# Bandwidths of --gamma validation and tuned; of loo.
GAMMA_FACTORS = (0.25, 1.0, 4.0, 16.0)
LOO_FACTORS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
# Kernels of --kernel auto.
KERNELS = ("laplacian-l2", "laplacian", "gaussian")
# Of machines that learn a metric: bandwidth, iterations, ridge parameters, and the first tried.
METRIC_WIDTH, METRIC_STEPS, METRIC_LAM = 0.5, 5, 0.1
METRIC_LAMS = (
    *(1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
    *(0.0003, 0.0001, 0.00003, 0.00001),
)
# Other bandwidths with which each kernel is tried after the choice of scaling, kernel and metric.
WIDTHS = {
    "laplacian-l2": (0.25, 1.0),
    "laplacian": (0.25, 1.0, 2.0),
    "gaussian": (0.1, 0.2, 1.0, 2.0),
}
# Rows of the leaves of `local` for many rows and for few, and the sum of their squares.
LEAF_ROWS, LEAF_WORK = (2500, 5000), 1e12
# Maximum inputs of the 1-norm there, whose distances would take longer than the factor.
LEAF_WIDEST = 128
# Bandwidths in the leaves of `local` that differ from METRIC_WIDTH. Choosing them in each leaf has
# larger errors; powers of the distance (0.6, 0.8, 1.2) are no better at the best bandwidth.
LEAF_WIDTHS = {"laplacian": 1.0}
# Ridge parameters of the leaves of `local`, for rows of weight 1, tried from LEAF_LAM on; the
# largest leave little more than a constant.
# Those next to the best are tried afterwards, the factor LEAF_BESIDE apart.
LEAF_LAM, LEAF_LAMS = 0.003, (300.0, 30.0, 3.0, 0.3, 0.03, 0.003, 0.0003, 0.00003)
LEAF_BESIDE = 3.0
# Of lkrf: multiples of the pool's size, bandwidths, numbers of features, lambdas.
RHO_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)
POOL_GAMMAS = (1.0, 0.25, 4.0, 16.0)
COUNTS = (64, 256, 1024, 4096)
POOL_LAMS = (1.0, 0.1, 0.01, 10.0, 100.0)
# Of rfx tune: bandwidths in the first round; lambdas in half decades.
TUNE_FACTORS = tuple(4.0**power for power in range(-3, 4))
TUNE_LAMS = tuple(float(f"{10 ** (3 - step / 2):.1g}") for step in range(13))
TUNE_L1_LAMS = TUNE_LAMS[:9]
# Lambda for too few rows to choose one.
FEW_LAM = 1.0
# Maximum rows to fit and to evaluate, for options that are `auto`.
SAMPLE = 10_000


def listed(values: Sequence[float]) -> str:
    """Candidates for a help text: of more than six, the first three and the last two."""
    texts = [f"{value:g}" for value in values]
    return ", ".join([*texts[:3], "…", *texts[-2:]] if len(texts) > 6 else texts)


@dataclass(frozen=True)
class SearchSpace:
    """The choices of a method's options on held-out rows.

    Parameters
    ----------
    values : dict
        Options that can be chosen, and their candidates; those of gamma are multiples of the median
        bandwidth.
    stages : tuple
        Options that are chosen together, stage by stage.
    share : float
        The fraction of rows held out.
    most : int or None
        The maximum rows to fit and to evaluate.
    fewest : int
        The minimum to evaluate; with fewer there is a cross-validation.
    few_rows : dict
        Values of options for too few rows.
    kernels : tuple of str
        The candidates of ``--kernel auto``.
    thorough : bool
        Whether the choice of scaling, kernel and metric may take longer than the fit.
    slack : float
        Among bandwidths whose leave-one-out error exceeds the lowest by at most this fraction, the
        one closest to the median is used.
    multiples : tuple
        The multiples of the bandwidth of ``loo`` to try on held-out rows.
    simplest : bool
        Whether to take, among error rates within half a standard error of the lowest, that of the
        first values.
    l1 : bool
        Whether lambda is of L1 regularisation.
    """

    values: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    stages: tuple[tuple[str, ...], ...] = (("gamma", "lam"),)
    share: float = 0.2
    most: int | None = None
    fewest: int = 500
    few_rows: Mapping[str, float] = field(default_factory=lambda: {"lam": FEW_LAM})
    kernels: tuple[str, ...] = ()
    thorough: bool = False
    slack: float = 0.0
    multiples: tuple[float, ...] = (1.0,)
    simplest: bool = False
    l1: bool = False
