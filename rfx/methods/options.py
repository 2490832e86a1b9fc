"""Every option of every method, in one table: its values, its range, its help. The command line is made from it."""

import decimal
import math
from dataclasses import dataclass

from rfx.errors import UsageError


class Path:
    """The kind of an option that is a geometric grid, written HIGH:LOW:COUNT."""

    MOST = 10_000

    @staticmethod
    def values(text: str) -> list[float]:
        """The grid from high to low; ValueError when the text is no grid."""
        high, low, count = str(text).split(":")
        high, low, count = float(high), float(low), int(count)
        if not (math.inf > high > low > 0 and 2 <= count <= Path.MOST):
            raise ValueError(text)
        shares = [step / (count - 1) for step in range(count)]
        grid = [high ** (1 - share) * low**share for share in shares]
        if any(after >= before for before, after in zip(grid, grid[1:])):
            raise ValueError(text)
        return grid

    @staticmethod
    def names(values: list[float]) -> list[str]:
        """A text for each value: four significant digits, or as many more as it takes to tell them apart."""
        for digits in range(4, 18):
            texts = [f"{value:.{digits}g}" for value in values]
            if len(set(texts)) == len(values):
                break
        return texts


@dataclass(frozen=True)
class Option:
    """One option. kind: int, float, bool, str or Path; words: what may stand instead of a number, or a str's choices."""

    name: str
    kind: type
    help: str
    words: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def expects(self) -> str:
        """The values allowed, as a phrase."""
        if self.kind is bool:
            return "true or false"
        if self.kind is Path:
            return f"HIGH:LOW:COUNT, from HIGH down to LOW above 0 in COUNT different numbers, 2 to {Path.MOST}, such as 1000:1:20"
        parts = [f"one of {', '.join(self.words)}"] if self.words else []
        if self.kind in (int, float):
            noun = "a whole number" if self.kind is int else "a number"
            left = f"above {self._shown(self.low)}" if self.open_low else f"{self._shown(self.low)} or more"
            bounds = [left] if self.low > -math.inf else []
            bounds += [f"at most {self._shown(self.high)}"] if self.high < math.inf else []
            parts.insert(0, " ".join([noun, " and ".join(bounds)]).strip())
        return " or ".join(parts)

    def convert(self, value):
        """The value in its type.

        Raises UsageError naming the option, the value and what is allowed.
        """
        refusal = UsageError(f"{self.flag} is {value!r}; it must be {self.expects()}")
        if self.kind is bool:
            if str(value).lower() in ("true", "false"):
                return str(value).lower() == "true"
            raise refusal
        if self.kind is Path:
            try:
                Path.values(value)
            except ValueError:
                raise refusal from None
            return value
        if isinstance(value, str) and value in self.words:
            return value
        if self.kind is str:
            raise refusal
        try:
            # whole numbers are never rounded on their way: a float holds 15 digits
            number = float(value) if self.kind is float else decimal.Decimal(str(value))
            if isinstance(value, bool) or not math.isfinite(number):
                raise refusal
        except (TypeError, ValueError, decimal.InvalidOperation):
            raise refusal from None
        too_low = number <= self.low if self.open_low else number < self.low
        if too_low or number > self.high or (self.kind is int and number % 1):
            raise refusal
        return self.kind(number)

    def _shown(self, bound) -> str:
        return str(bound) if self.kind is int else f"{bound:g}"


_MOST = 10**9  # of a size or count; keeps absurd numbers from loops and memory

SCALINGS = ("none", "minmax01", "minmax11", "standard")

OPTIONS = {
    option.name: option
    for option in (
        Option("task", str, "What is learnt; by default guessed from the targets.", ("regression", "binary", "multiclass")),
        Option("scaling", str, "Scaling of the inputs, learnt on the training rows.", SCALINGS),
        Option(
            "target_scaling",
            str,
            "Scaling of a regression target: to [0, 1], or its mean to 0; the RMSE is in scaled units.",
            ("none", "minmax01", "mean"),
        ),
        Option(
            "kernel",
            str,
            "The kernel, exact or approximated.",
            ("gaussian", "laplacian", "laplacian-l2", "perceptron", "stump", "linear"),
        ),
        Option(
            "gamma",
            float,
            "Bandwidth of exp(-gamma ||x-y||^2) and exp(-gamma ||x-y||), 1/sigma of Wu et al.: a number; paper: 1/2 (Gaussian), 1 "
            "(Laplacian); median: from median distances; tuned: median times 1/4, 1, 4 or 16, by validation.",
            ("paper", "median", "tuned"),
            low=0,
            open_low=True,
        ),
        Option(
            "features",
            str,
            "Fourier features: sqrt2 cos(w.x + b) (offset) or cos and sin of the same w (pairs). Perceptron: thresholds over the "
            "whole ball (offset), within the range of the training rows (range), where they tell rows apart, or so and drawn from "
            "ten times as many by their leverage on the training rows (leverage), for a better approximation by the same number.",
            ("offset", "pairs", "range", "leverage"),
        ),
        Option("n_features", int, "Number D of random features; of landmarks (nystrom).", low=1, high=_MOST),
        Option(
            "landmarks",
            str,
            "Landmarks: rows drawn uniformly, centres of k-means, or pivots of randomly pivoted Cholesky.",
            ("uniform", "kmeans", "rpcholesky"),
        ),
        Option("block_size", int, "Most rows R of a block (block).", low=1, high=_MOST),
        Option(
            "partition",
            str,
            "Blocks cut by random hyperplanes, a row predicted by the block that it falls into; or rows dealt out uniformly, "
            "a row predicted by the mean of all blocks.",
            ("hyperplanes", "uniform"),
        ),
        Option(
            "n_grids",
            int,
            "Number R of random grids (rb, sparse-rb), with --grow the most; a row is in one bin of each.",
            low=1,
            high=_MOST,
        ),
        Option(
            "grow",
            float,
            "Share of the training rows to hold out: R is doubled from 16 up to --n-grids while that lowers their error by 1 % "
            "of it or more; the model is then fitted to all rows (rb).",
            low=0,
            high=0.5,
            open_low=True,
        ),
        Option(
            "lam",
            float,
            "Regularisation lambda_N of an un-normalised sum of losses: lam/2 ||w||^2 or lam ||w||_1. sparse-rf also takes "
            "validation (best of 1, 10, 100, 1000 on held-out rows) and match-rf (closest to rf there, as Yen et al. choose it).",
            ("validation", "match-rf"),
            low=0,
            open_low=True,
        ),
        Option(
            "lam_path",
            Path,
            "Solve for a whole path of lambdas (rf, sparse-rf), from one Gram matrix or each started at the one before, over all D "
            "features at once; a model and a row each.",
        ),
        Option(
            "loss",
            str,
            "The loss; by default squared for regression, squared_hinge for classification.",
            ("squared", "squared_hinge", "logistic", "hinge"),
        ),
        Option("bias", bool, "A free bias b, as LIBSVM has it (classification); the paper's objective has none."),
        Option(
            "solver",
            str,
            "rfx's own solver, or a published one in a child process; cg: plain conjugate gradients, for squared loss (rf, nystrom); "
            "prcd: parallel randomised coordinate descent (sparse-rb, sparse-rf).",
            ("rfx", "cg", "liblinear", "libsvm", "prcd"),
        ),
        Option("rounds", int, "Rounds T of Algorithm 1; each draws D/T new features.", low=1, high=_MOST),
        Option(
            "tol",
            float,
            "Relative duality gap at which rfx's solvers stop; cg: relative residual; the `-e` of LIBLINEAR and LIBSVM.",
            low=0,
            open_low=True,
        ),
        Option("max_iter", int, "Most iterations of rfx's solvers.", low=1, high=_MOST),
        Option("dtype", str, "Type of the features; sums are kept in float64.", ("float32", "float64")),
        Option(
            "max_memory",
            float,
            "MiB that features or kernel matrices may take before they are computed in blocks; rb, sparse-rb: the most.",
            low=1,
        ),
        Option("timeout", float, "Seconds after which training is given up.", low=0, high=2e6, open_low=True),
        Option("seed", int, "Seed of everything random; the same seed gives the same model.", low=0, high=2**63 - 1),
    )
}
