"""Options that several methods share, and the candidate values of every choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rfx.data import transforms
from rfx.measures import ROW_MEASURES
from rfx.options import LabelWeights, Option, Path

# ----------------------------------------------------------------------
# The candidate values of every choice, and what a method declares for the choice of its options.
#
# Lambdas stand largest first; bandwidths are multiples of that of the median distance.

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
LEAF_LAM = 0.003
LEAF_LAMS = (300.0, 30.0, 3.0, 0.3, 0.03, 0.003, 0.0003, 0.00003)
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


# ----------------------------------------------------------------------
# Options shared by several methods. Options of a single method are declared in its own file.

AUTO = "auto"
MOST = 10**9  # limit of a size or count; excludes absurd numbers

SCALING = Option(
    "scaling",
    str,
    "Scaling of the inputs, learnt on the training rows.",
    transforms.KINDS,
    default="minmax01",
)
CHOSEN_SCALING = SCALING.replace(
    choices=transforms.KINDS | {AUTO: f"the best of {', '.join(transforms.TRIED)} by leave-one-out"}
)
METRIC = Option(
    "metric",
    str,
    "Metric of the scaled inputs, learnt by recursive feature machines.",
    {
        "none": "unchanged inputs",
        "diagonal": "a weight for each input",
        "full": "a matrix",
        AUTO: "the best of these by leave-one-out",
    },
    default="none",
    before="none",
)
SEED = Option(
    "seed",
    int,
    "Random seed; the same seed gives the same model.",
    low=0,
    high=2**63 - 1,
    default=0,
)
TIMEOUT = Option(
    "timeout", float, "Seconds after which training is aborted.", low=0, high=2e6, open_low=True
)
BUDGET_SECONDS = Option(
    "budget_seconds",
    float,
    "Seconds after which no further scaling, kernel, metric or method is tried; by default all"
    " are tried.",
    low=0,
    high=2e6,
    open_low=True,
)

KERNEL = Option("kernel", str, "The kernel, exact or approximated.", default="gaussian")
GAMMA = Option(
    "gamma",
    float,
    "Bandwidth of exp(-gamma ||x-y||^2) and exp(-gamma ||x-y||), 1/sigma of Wu et al.",
    {
        "paper": "1/2 (Gaussian), 1 (Laplacian)",
        "median": "from median distances",
        "tuned": (
            "median times 1/4, 1, 4 or 16, and beyond while the error falls, by ridge regression on"
            " random features on held-out rows, the same for every method"
        ),
    },
    low=0,
    open_low=True,
    default="median",
)
# Without the choices that need targets.
MAP_GAMMA = GAMMA.replace(choices={name: GAMMA.meanings()[name] for name in ("paper", "median")})


def chosen_kernel(
    known: Callable[[], Iterable[str]], tried: Sequence[str], fixed: str | None = None
) -> Option:
    """--kernel with `auto` as its default, and another default if the bandwidth is a number.

    Parameters
    ----------
    known : callable
        Returns the kernels of the method.
    tried : sequence of str
        The candidates of ``auto``.
    fixed : str, optional
    """
    return KERNEL.replace(
        help=KERNEL.help + (f" {fixed} by default if --gamma is a number." if fixed else ""),
        choices=lambda: {
            AUTO: f"the best of {' and '.join(tried)} by leave-one-out",
            **dict.fromkeys(known(), ""),
        },
        default=AUTO,
        fixed=fixed,
    )


# More for more rows cost more than they gain: with sqrt(n) log n of them, sparse-rf has 5 % fewer
# errors on cod-rna (2,670) in 6.7 times the processor time, and rf 7 % fewer on 100,000 rows of
# covtype (3,640) in 3 times. On 200,000 rows with three inputs, rf then has three times the errors.
DEFAULT_FEATURES = 1000
N_FEATURES = Option(
    "n_features", int, "Number D of random features.", low=1, high=MOST, default=DEFAULT_FEATURES
)
LAM = Option(
    "lam",
    float,
    "Regularisation lambda_N of an un-normalised sum of losses: lam/2 ||w||^2.",
    low=0,
    open_low=True,
    default=1.0,
)
CHOSEN_GAMMA = GAMMA.replace(
    choices=GAMMA.meanings()
    | {
        "loo": (
            "the best of median times 1/32, 1/16, …, 4, and beyond while the error falls, by"
            " leave-one-out kernel ridge regression on at most 800 rows"
        ),
        "validation": (
            f"the best of median times {listed(GAMMA_FACTORS)}, and beyond while the error falls,"
            " on held-out rows, with this method"
        ),
    },
    default="loo",
)
ON_SAMPLE = {AUTO: f"validation on {SAMPLE:,} rows at most"}
CHOSEN_LAM = LAM.replace(
    choices={"validation": f"the best of {listed(LAMS)}, and beyond, on held-out rows"} | ON_SAMPLE,
    default=AUTO,
)
LAM_L1 = LAM.replace(help="Regularisation lambda_N of an un-normalised sum of losses: lam ||w||_1.")


def l1_choice(lams: Sequence[float]) -> dict[str, str]:
    """The word by which a lambda of L1 regularisation is chosen."""
    regression = f"for regression {listed(L1_SHARES)} times the range of the targets"
    best = f"the best of {listed(lams)}, and beyond, on held-out rows"
    return {"validation": f"{best}; {regression} (not with minmax01)"}


MEASURE = Option(
    "measure",
    str,
    "The measure of classes by which options are chosen. By default accuracy; log_loss for"
    " probabilities, and for labels with much noise.",
    tuple(ROW_MEASURES),
)
LAM_PATH = Option(
    "lam_path",
    Path,
    "Solve for a whole path of lambdas, with all D features; each lambda yields a model and a row.",
)
LOSS = Option(
    "loss",
    str,
    "The loss; by default squared for regression, squared_hinge for classification.",
    ("squared", "squared_hinge", "logistic"),
)
EPSILON = Option(
    "epsilon",
    float,
    "Half width of the tube of the epsilon_insensitive loss, in units of the scaled target.",
    low=0,
    default=0.1,
)
SOLVER = Option("solver", str, "The solver.", {"rfx": "rfx's own"}, default="rfx")
CG = {"cg": "plain conjugate gradients, for squared loss"}
PRCD = {"prcd": "parallel randomised coordinate descent"}
LIBLINEAR = {"liblinear": "LIBLINEAR, in a child process"}
TOL = Option("tol", float, "Relative duality gap at which the solver stops.", low=0, open_low=True)
# of a method whose solver may be CG or LIBLINEAR
TOL_OF_SOLVERS = TOL.replace(help=f"{TOL.help} cg: relative residual; the `-e` of LIBLINEAR.")
MAX_ITER = Option("max_iter", int, "Maximum iterations of rfx's solvers.", low=1, high=MOST)
DTYPE = Option(
    "dtype",
    str,
    "Type of the features; sums are float64.",
    ("float32", "float64"),
    default="float32",
)
MAX_MEMORY = Option(
    "max_memory",
    float,
    "Memory limit in MiB for features or kernel matrices, above which they are computed in blocks;"
    " by default a third of the free memory.",
    low=1,
)
CLASS_WEIGHT = Option(
    "class_weight",
    LabelWeights,
    "Weights of the classes, such as 1:10,-1:1; unlisted labels have weight 1; a label with a comma"
    " needs double quotes; balanced: inversely proportional to the number of rows of a class.",
)
