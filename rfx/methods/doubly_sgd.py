"""`doubly-sgd`: doubly stochastic gradients (Dai et al. 2014): every step takes random rows and features that were never used."""

import numpy as np

from rfx.errors import DataError, UsageError
from rfx.features import MAPS
from rfx.features.growing import PIECE, GrowingMap
from rfx.methods import examples
from rfx.methods.options import MOST
from rfx.methods.stream_options import FEATURES
from rfx.methods.streaming import StreamMethod
from rfx.model import Array
from rfx.options import Option
from rfx.solvers.stochastic.doubly import DAMPING, DoublySGD
from rfx.solvers.stochastic.expansion import ROWS
from rfx.solvers.stochastic.steps import Steps

STEP = Option(
    "step",
    str,
    "Step sizes.",
    {
        "theorem": "theta / (t + t0), theta nu from 1 to 2",
        "root": "theta / sqrt(t + t0)",
        "decay": "step0 / (1 + step1 t)",
        "constant": "step0",
        "normalized": "step0 / root mean square of the loss's derivatives on the batch, at most 1",
    },
    default="constant",
)
THETA = Option("theta", float, "See --step; by default 1 / nu (theorem), 1 (root).", low=0, open_low=True)
T0 = Option("t0", float, "See --step; by default 2 theta (theorem), 0 (root).", low=0)
STEP0 = Option("step0", float, "See --step.", low=0, open_low=True, default=1.0)
STEP1 = Option("step1", float, "See --step.", low=0, default=1e-4)
_KEPT = "the rows of a set that are met again, and for fresh blocks"
STEPS = (STEP, THETA, T0, STEP0, STEP1)
MEMORY = Option(
    "max_memory",
    float,
    "MiB of what is kept between steps: sampled frequencies, and with --max-blocks the features of rows that are met again. What has no "
    "room is made again from the seed.",
    low=1,
    default=256.0,
)


def steps_of(params) -> Steps:
    """The steps of the options; UsageError where the theorem does not allow them."""
    kind, nu, theta, t0 = params["step"], params["nu"], params["theta"], params["t0"]
    if kind == "theorem":
        theta = (1 / nu if nu else None) if theta is None else theta
        t0 = (2 * theta if theta else 0.0) if t0 is None else t0
    elif kind == "root":
        theta = 1.0 if theta is None else theta
    return Steps(kind, nu, theta, t0 or 0.0, params["step0"], params["step1"])


class DoublySgd(StreamMethod):
    """f = sum_j coef_j phi_j over features that are made again from (seed, j) whenever they are needed; no bias."""

    name = "doubly-sgd"
    summary = "doubly stochastic gradients: random rows and fresh random features in every step, for rows without end"
    options = (
        *StreamMethod.options,
        FEATURES,
        Option("block", int, "Features of a step.", low=1, high=MOST, default=256),
        Option(
            "max_blocks",
            int,
            "Blocks of features after which a step takes one of them again, drawn at random: not the paper's algorithm but what the "
            "authors' program for graphics cards does.",
            low=1,
            high=MOST,
        ),
        *STEPS,
        Option("precondition", bool, "Multiply the step of a block by the inverse of its covariance on the batch.", default=False),
        Option("damping", float, "What is added to that covariance, besides nu.", low=0, open_low=True, default=DAMPING),
        Option(
            "averaging",
            str,
            "What predicts.",
            {"none": "the last f, as in the paper", "uniform": "the mean over all steps", "linear": "the mean with weight t"},
            default="none",
        ),
        MEMORY,
        Option(
            "keep_values",
            bool,
            "Keep f of every row, so that a step computes only the blocks since the row's last: for rows that are met again and again "
            "with fresh blocks. Memory then grows with the rows, a number each.",
            default=False,
        ),
    )
    arrays = StreamMethod.arrays | {"coef": Array("f", "features outputs")}
    # whether rows come from a source that can be read again
    _rewindable = False

    def check_given(self, given):
        super().check_given(given)
        MAPS[self.params["kernel"]].check_variant(self.params["kernel"], self.params["block"], self.params["features"])
        steps_of(self.params)
        if self.params["keep_values"]:
            if examples.endless(self.params):
                given = f"--virtual is {self.params['virtual']}, without end"
                raise UsageError(f"{given}, but --keep-values is for {_KEPT}; give --virtual-copies")
            for option in ("head", "max_blocks"):
                if self.params[option] not in (None, "none"):
                    raise UsageError(f"--{option.replace('_', '-')} is {self.params[option]}, but --keep-values is for {_KEPT}")

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if self.params["keep_values"]:
            raise UsageError("--keep-values is for the rows of a set that is known beforehand; use fit, or leave it out")
        return super().partial_fit(X, y, classes, sample_weight)

    def _fit_source(self, source, chunks, buffer, start, classes=None):
        self._rewindable = source.rewindable
        if self.params["keep_values"] and not source.rewindable:
            raise UsageError(f"{source.name} is read once, but --keep-values is for {_KEPT}; give a file")
        super()._fit_source(source, chunks, buffer, start, classes)
        self.solver.held = None
        return self

    def _step(self, X, Y, index, own):
        return self.solver.step(X, Y, index, own)

    def _held_mb(self) -> float:
        """MiB of the features of all rows in all blocks, where they are met at least three times, before which keeping gains nothing.

        0 where they have no room; and for batches whose values of f are summed in another order than from features that are kept.
        """
        p = self.params
        passes = p["budget_samples"] / self.n_rows if p["budget_samples"] else p["epochs"]
        known = self._rewindable and not p["head"] and not examples.endless(p)
        if not (p["max_blocks"] and known and passes >= 3) or (self.n_outputs == 1 and p["batch"] > ROWS):
            return 0.0
        needed = self.n_rows * p["max_blocks"] * p["block"] * np.dtype(self._input_dtype()).itemsize / 2**20
        return needed if needed <= p["max_memory"] else 0.0

    def _make(self, state):
        p, known, held = self.params, None, self._held_mb()
        if p["keep_values"]:
            known, needed = self.n_rows, 8 * self.n_rows * (self.n_outputs + 1) / 2**20
            if needed > p["max_memory"]:
                raise UsageError(f"--keep-values takes {needed:,.0f} MiB for {known:,} rows, more than --max-memory {p['max_memory']:g}")
        return DoublySGD(
            self._growing(p["block"], held), self.n_outputs, self.loss, p["nu"], steps_of(p), block=p["block"],
            max_blocks=p["max_blocks"], precondition=p["precondition"], damping=p["damping"], averaging=p["averaging"],
            keep_rows=known, hold_rows=self.n_rows if held else None, seed=p["seed"],
        )  # fmt: skip

    def _growing(self, block, held_mb=0.0):
        p = self.params
        piece = block * max(1, PIECE // block)
        options = {"variant": p["features"], "dtype": self._input_dtype(), "piece": piece, "max_memory_mb": p["max_memory"] - held_mb}
        return GrowingMap(p["kernel"], self.n_prepared, p["seed"], self.kernel_params, **options)

    def _follow(self, X):
        return super()._follow(X) if self.params["averaging"] != "none" else self.solver.expansion.track(X).values

    def _model_arrays(self):
        return {"coef": self.solver.expansion.coef}

    def _restore_solver(self, arrays):
        coef = arrays["coef"]
        if len(coef) % self.params["block"]:
            raise DataError(f"its {len(coef)} coefficients are not of blocks of {self.params['block']}")
        self.solver = DoublySGD(
            self._growing(self.params["block"]), self.n_outputs, self.loss, 0.0, Steps("constant"), block=self.params["block"]
        )
        self.solver.expansion.restore({"coef": np.asarray(coef, np.float64), "scales": np.array([1.0, 0.0, 0.0])})

    def _describe(self):
        return self._describe_model()

    def _describe_model(self):
        e = self.solver.expansion
        return {"n_features": e.n_features, "model_size": e.n_features, "step": self.params["step"]}
