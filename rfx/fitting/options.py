"""Options shared by several methods. Options of a single method are declared in its own file."""

from collections.abc import Callable, Iterable, Sequence

from rfx.data.transforms import scaling
from rfx.fitting.candidates import GAMMA_FACTORS, L1_SHARES, LAMS, SAMPLE, listed
from rfx.options import LabelWeights, Option, Path

AUTO = "auto"
MOST = 10**9  # limit of a size or count; excludes absurd numbers

SCALING = Option(
    "scaling",
    str,
    "Scaling of the inputs, learnt on the training rows.",
    scaling.KINDS,
    default="minmax01",
)
CHOSEN_SCALING = SCALING.but(
    choices=scaling.KINDS | {AUTO: f"the best of {', '.join(scaling.TRIED)} by leave-one-out"}
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
            "median times 1/4, 1, 4 or 16 by ridge regression on random features on held-out rows,"
            " the same for every method"
        ),
    },
    low=0,
    open_low=True,
    default="median",
)


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
    return KERNEL.but(
        help=KERNEL.help + (f" {fixed} by default if --gamma is a number." if fixed else ""),
        choices=lambda: {
            AUTO: f"the best of {' and '.join(tried)} by leave-one-out",
            **dict.fromkeys(known(), ""),
        },
        default=AUTO,
        fixed=fixed,
    )


N_FEATURES = Option(
    "n_features", int, "Number D of random features.", low=1, high=MOST, default=1000
)
LAM = Option(
    "lam",
    float,
    "Regularisation lambda_N of an un-normalised sum of losses: lam/2 ||w||^2.",
    low=0,
    open_low=True,
    default=1.0,
)
CHOSEN_GAMMA = GAMMA.but(
    choices=GAMMA.meanings()
    | {
        "loo": (
            "the best of median times 1/32, 1/16, …, 4 by leave-one-out kernel ridge regression on"
            " at most 800 rows"
        ),
        "validation": (
            f"the best of median times {listed(GAMMA_FACTORS)} on held-out rows, with this method"
        ),
    },
    default="loo",
)
ON_SAMPLE = {AUTO: f"validation on {SAMPLE:,} rows at most"}
CHOSEN_LAM = LAM.but(
    choices={"validation": f"the best of {listed(LAMS)} on held-out rows"} | ON_SAMPLE, default=AUTO
)
LAM_L1 = LAM.but(help="Regularisation lambda_N of an un-normalised sum of losses: lam ||w||_1.")


def l1_choice(lams: Sequence[float]) -> dict[str, str]:
    """The word by which a lambda of L1 regularisation is chosen."""
    regression = f"for regression {listed(L1_SHARES)} times the range of the targets"
    best = f"the best of {listed(lams)} on held-out rows"
    return {"validation": f"{best}; {regression} (not with minmax01)"}


# Measures of classes by which options are chosen, and the errors that they minimise.
MEASURES = {
    "accuracy": "share of wrong labels",
    "balanced_accuracy": "mean share of wrong labels of the classes",
    "auc": "1 - AUC",
    "log_loss": "log-loss",
}
MEASURE = Option(
    "measure",
    str,
    "The measure of classes by which options are chosen. By default accuracy; log_loss for"
    " probabilities, and for labels with much noise.",
    tuple(MEASURES),
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
