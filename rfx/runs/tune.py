"""`rfx tune`: the grid, the budget and the held-out rows of a search over methods, with its trials
in a results file.

Few rows and small models first, then more; a whole path of lambdas at a time (`Method.along`). What
remains is a search over the bandwidth, in one dimension, and the size: a grid of powers of four,
then the refinement of `rfx.fitting.selection` around the best.
"""

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rfx import env, methods
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.training_table import TrainingTable
from rfx.errors import UsageError
from rfx.fitting.assessment import HELD_OUT_SHARE
from rfx.fitting.held_out import Calibration, Splitter, fewer
from rfx.fitting.method import gamma_of, has_gamma, not_none
from rfx.fitting.metric_learning import KERNEL, dense
from rfx.fitting.options import TUNE_FACTORS, TUNE_L1_LAMS, TUNE_LAMS
from rfx.fitting.pipeline import Pipeline
from rfx.fitting.problem import measured
from rfx.fitting.selection import (
    SPEED,
    Criterion,
    Evidence,
    Point,
    Search,
    SearchBudget,
    SearchGrid,
    SearchRound,
    Size,
    Stop,
    Trial,
    until,
)
from rfx.fitting.training import prepare
from rfx.measures import less_is_better
from rfx.records import keys, results
from rfx.records.params import Params
from rfx.records.run import COLUMNS, Result, Run
from rfx.types import JsonObject

# Searchable methods: the option that is a method's size (None: it has none), and the sizes of the
# rounds.
SIZES = {
    "rf": ("n_features", (256, 512, 1024)),
    "nystrom": ("n_features", (128, 256, 512)),
    "rb": ("n_grids", (32, 128, 256)),
    "block": ("block_size", (128, 512, 1024)),
    "kernel": (None, ()),
    "rfm": (None, ()),
    "local": (None, ()),
    "sparse-rf": ("n_features", (256, 512, 1024)),
    "sparse-rb": ("n_grids", (32, 64, 128)),
}
# Methods that `auto` searches, and the maximum rows for those with quadratic cost.
AUTO = ("local", "rf", "nystrom", "rb", "kernel", "rfm")
MOST_ROWS = {"kernel": 15_000, "rfm": 15_000}
# Rows to fit in the rounds (the last uses all), and to evaluate; number of points that continue;
# lambdas above the last best that are tried again.
ROWS = (2000, 10_000)
EVALUATED = 10_000
KEPT = (4, 2)
ABOVE = 2
# Fraction of the budget for the work of the search and as its outer bound in seconds; the rest is
# for the model of all rows.
WORKING, SEARCHING = 0.5, 0.8
# That for the choice of scaling, kernel and metric.
CHOOSING = 0.4
# The size is doubled up to this multiple of the rows.
LARGEST = 4


def searchable() -> dict[str, tuple[str | None, tuple[int, ...]]]:
    """SIZES, also of plug-ins with a kernel and a lambda, whose size is like that of rf."""
    found = dict(SIZES)
    for name, method in methods.METHODS.items():
        if methods.METHODS.package_of(name) and {"kernel", "lam"} <= method.declared().keys():
            found[name] = SIZES["rf"] if "n_features" in method.declared() else (None, ())
    return found


@dataclass
class Tuning:
    """The search for the best options of some methods; `run` executes it.

    Parameters
    ----------
    table : TrainingTable
    names : list of str
        The methods to search.
    given : dict
        The fixed options, including task.
    source : Run
        The data, the held-out rows, the seed, and whether the most probable labels are scored, by
        Platt's curve of a trial's evaluation rows: if it calibrates.
    tell : callable, optional
        Called with (trial, whether it existed before) for each trial.
    kernels : sequence of str
        Kernels to try, for each method those that it has; by default its own.
    score : str, optional
        One of SCORES; by default accuracy or rmse.
    seconds : float
    most_trials : int, optional
    results_file : Path, optional
        CSV file of rows, one per trial; existing trials are not repeated.
    """

    table: TrainingTable
    names: Sequence[str]
    given: Mapping[str, Any]
    source: Run
    tell: Callable[[Trial, bool], None] | None = None
    kernels: Sequence[str] = ()
    score: str | None = None
    seconds: float = 300.0
    most_trials: int | None = None
    results_file: Path | None = None

    def __post_init__(self) -> None:
        start = time.monotonic()
        table = self.table
        self.task = self.given["task"]
        regression = self.task == "regression"
        name = self.score or ("rmse" if regression else "accuracy")
        if (name == "rmse") != regression:
            raise UsageError(f"--measure is {name}, but the task is {self.task}")
        self.criterion = Criterion(name, larger=not less_is_better(name))
        self.X, self.y = table.X_train, np.asarray(table.y_train)
        cv, self.seed = self.source.cv, self.source.seed
        self.share = None if cv else self.source.holdout or HELD_OUT_SHARE
        rows = Splitter(len(self.y), self.seed, table.constraint)
        self.parts = rows.folds(None if regression else self.y, cv, self.share, table.schema)
        self.given = dict(self.given)
        self.rows = self._choose_inputs()
        file = self.results_file
        known = results.read(file) if file is not None and file.exists() else []
        self.known = {row.key: row for row in known if row.status == "ok"}
        work = SPEED * WORKING * self.seconds
        self.budget = SearchBudget(start + SEARCHING * self.seconds, self.most_trials, work)

    def run(self) -> Evidence:
        """All trials, and the best of the last completed round."""
        calls = self._known, self._keep
        return Search(self._scores, self._grid(), self.criterion, self.budget, *calls).run()

    def options(self, point: Point) -> dict[str, object]:
        """The options of a point, and the given options of its method."""
        declared = methods.get(point.method).declared()
        fixed = {name: value for name, value in self.given.items() if name in declared}
        return fixed | point.options

    def chosen_run(self, best: Trial) -> Run:
        """The run that trains the options of the best trial on all rows."""
        options = self.options(best.point)
        if best.lam is not None:
            options["lam"] = best.lam
        source = self.source
        if not source.calibrate:  # rows are held out again only if they calibrate the model
            source = replace(source, cv=None, holdout=None)
        return replace(source, method=best.point.method, options=options)

    @property
    def by(self) -> str:
        """The column by which rows are held out, in words; empty without one."""
        constraint = self.table.constraint
        return f" by {constraint.by}" if constraint is not None and constraint.given else ""

    def edges(self, evidence: Evidence) -> list[str]:
        """The options whose best value is the first or the last tried, in words."""
        best = evidence.best
        alike = [one.point for one in evidence.trials if one.like(best.point)]
        gammas = sorted({one.gamma for one in alike if one.gamma is not None})
        lams = sorted(lam for lam in self._lams(best.point.method) if lam is not None)
        gamma = best.point.gamma
        return _edge("lambda", best.lam, lams, "g") + _edge("gamma", gamma, gammas, ".4g")

    # ------------------------------------------------------------------ the grid

    def _choose_inputs(self) -> np.ndarray:
        """Add scaling and metric to the given options, and the kernel, chosen on the training rows
        of the first fold; return these rows, scaled and mapped.

        A trial learns its own scaling and metric of that kind, from its training rows.
        """
        defaults = methods.get(self.names[0]).defaults(self.given)
        options = {name: self.given.get(name, defaults[name]) for name in ("scaling", "metric")}
        options |= {"budget_seconds": CHOOSING * self.seconds, "seed": self.seed}
        passed = (
            "task",
            "metric_steps",
            "target_scaling",
            "target_transform",
            "kernel",
            "class_weight",
        )
        options |= {name: self.given[name] for name in passed if name in self.given}
        known = methods.get("rfm").declared()["kernel"].meanings()
        kernel = options.get("kernel")
        if kernel is not None and kernel not in known:
            options["kernel"] = KERNEL
        trainer = replace(methods.create("rfm", **options), schema=self.table.schema)
        kept, out = self.parts[0]
        X, _ = self.table.part(kept, out)
        prepared = prepare(trainer, X, self.y[kept], constraint=self._apart(kept))
        found = {name: prepared.asked.get(name) for name in ("scaling", "metric", "metric_steps")}
        self.given = {**self.given, **not_none(found)}
        self.kernel = prepared.asked.kernel
        return np.asarray(dense(prepared.problem.X), np.float32)

    def _grid(self) -> SearchGrid:
        names = list(self.names)
        if len(names) > 1:
            n_rows = self.X.shape[0]
            names = [name for name in names if n_rows <= MOST_ROWS.get(name, math.inf)]
        points = self._points(names)
        sizes = {name: self._size(name) for name in names}
        return SearchGrid(
            points,
            {name: self._lams(name) for name in names},
            self._rounds(len(points)),
            {name: size for name, size in sizes.items() if size is not None},
            halved=None if "gamma" in self.given else "gamma",
            above=ABOVE,
            lenient=True,
        )

    def _points(self, names: list[str]) -> list[Point]:
        """The candidates: each method with each of its kernels and their first bandwidths."""
        gammas = functools.cache(self._gammas)
        points = []
        for name in names:
            has_bandwidth = "gamma" in methods.get(name).declared()
            for kernel in self._kernels(name):
                bandwidths = gammas(kernel) if has_bandwidth else [{}]
                points += [Point(name, {"kernel": kernel} | gamma) for gamma in bandwidths]
        return points

    def _rounds(self, n_points: int) -> list[SearchRound]:
        """The rounds on few rows, for several candidates, and the last one."""
        fitted = len(self.parts[0][0])
        last = SearchRound(fitted, len(self.parts), len(ROWS))
        if n_points == 1:
            return [last]
        early = [
            SearchRound(rows, 1, number, kept)
            for number, (rows, kept) in enumerate(zip(ROWS, KEPT))
            if 1.5 * rows < fitted
        ]
        return [*early, last]

    def _kernels(self, name: str) -> list[str]:
        """The candidate kernels of a method."""
        declared = methods.get(name).declared()["kernel"]
        wanted = [kernel for kernel in self.kernels if kernel in declared.meanings()]
        chosen = self.kernel if self.kernel in declared.meanings() else declared.default
        return wanted or [self.given.get("kernel") or str(chosen)]

    def _gammas(self, kernel: str) -> list[dict[str, float]]:
        """The first candidate bandwidths of the kernel; if it has none, one point without."""
        given = self.given.get("gamma")
        if not has_gamma(kernel):
            return [{}]
        if isinstance(given, (int, float)):
            return [{"gamma": float(given)}]
        base = gamma_of(kernel, self.rows, given or "median", self.seed)
        factors = TUNE_FACTORS if given is None else (1.0,)
        return [{"gamma": base * factor} for factor in factors]

    def _size(self, name: str) -> Size | None:
        """Sizes of the rounds; a given size is that of the last round and not exceeded before."""
        option, sizes = searchable()[name]
        if option is None:
            return None
        given = self.given.get(option)
        if given is None:
            return Size(option, sizes, LARGEST * len(self.y))
        before = [min(size, given) for size in sizes[:-1]]
        return Size(option, (*before, given), 0)

    def _lams(self, method: str) -> tuple[float | None, ...]:
        """The candidates; None if the method chooses its own."""
        given = self.given.get("lam")
        if given is not None:
            return (given,)
        if "lam" not in methods.get(method).space.values:
            return (None,)
        return TUNE_L1_LAMS if method.startswith("sparse") else TUNE_LAMS

    # ------------------------------------------------------------------ one trial

    def _scores(
        self, point: Point, round: SearchRound, lams: Sequence[float | None]
    ) -> list[float]:
        """Mean scores over the folds, for the lambdas that every fold tried."""
        folds = []
        end = Stop()
        seed = self.seed

        def stop(path: list[float]) -> bool:
            return end([self.criterion.loss(score) for score in path])

        options = self.options(point)
        if lams[0] is not None:
            options["lam"] = 1.0
        model = methods.create(point.method, seed=seed, **options)
        if self.task != "regression":
            # all rows of a label may be held out
            model = replace(model, classes=np.unique(self.y))
        for kept, out in self.parts[: round.parts]:
            if round.kept is not None:
                kept, out = fewer((kept, out), round.rows, EVALUATED, seed)
            share = len(kept) / len(self.y)
            X, X_out = self.table.part(kept, out)
            own = [None if lam is None else lam * share for lam in lams]
            along = model.along(X, self.y[kept], own, X_out, self._apart(kept))
            scores = (self._scored(fitted, decision, self.y[out]) for fitted, decision in along)
            folds.append(until(scores, stop))
        return [float(np.mean(column)) for column in zip(*folds)]

    def _apart(self, kept: np.ndarray) -> SplitConstraint | None:
        return None if self.table.constraint is None else self.table.constraint.rows(kept)

    def _scored(self, model: Pipeline, decision: np.ndarray, y: np.ndarray) -> float:
        if model.task == "regression":
            return model.evaluate(decision, y).score
        if self.source.calibrate is not None:
            # by two parameters, from its evaluation rows: no trial gains more than others by it
            by = "the rows that were held out"
            fitting = decision, y, np.asarray(model.classes), by, self.table.schema
            curve = Calibration.fit("platt", *fitting)
            decision = model.replace(calibration=curve).ranked(decision)
        values = decision[:, None] if decision.ndim == 1 else decision
        error = measured(self.criterion.name, model.task, values, model.preprocessing.targets(y))
        return self.criterion.error(error)

    # ------------------------------------------------------------------ rows

    def _known(self, point: Point, round: SearchRound) -> Trial | None:
        """The trial in the results file."""
        row = self.known.get(self._key(point, round.number))
        if row is None:
            return None
        assert row.n_train is not None and row.score is not None and row.seconds_fit is not None
        path = tuple((lam, score) for lam, score in row.params.path or ())
        round = replace(round, rows=row.n_train, parts=row.params.parts or 1)
        return Trial(point, round, path, row.lam, row.score, row.seconds_fit)

    def _keep(self, trial: Trial, known: bool) -> None:
        if self.results_file is not None and not known:
            results.append(self.results_file, self._result(trial))
        if self.tell is not None:
            self.tell(trial, known)

    def _run(self, point: Point, number: int) -> Run:
        cv, share = self.source.cv, self.share
        way = f"cv {cv:g}" if cv else f"holdout {share:g}"
        label = f"tune {number} {self.criterion.name} {way}{self.by}"
        options = self.options(point)
        source = replace(self.source, cv=None, holdout=None, calibrate=None)
        return replace(source, method=point.method, label=label, options=options)

    def _key(self, point: Point, number: int) -> str:
        return keys.key(self._run(point, number), lams=self._lams(point.method))

    def _result(self, trial: Trial) -> Result:
        point, round = trial.point, trial.round
        run = self._run(point, round.number)
        params = {
            name: value
            for name, value in run.options.items()
            if name not in COLUMNS and value is not None
        }
        params |= {
            "label": run.label,
            "path": trial.path,
            "round": round.number,
            "parts": round.parts,
        }
        columns: JsonObject = {**env.describe()}
        columns["n_test"] = len(self.parts[0][1])
        columns["n_inputs"] = self.X.shape[1]
        return Result(
            key=self._key(point, round.number),
            status="ok",
            dataset=self.table.name,
            split=self.table.split,
            task=self.task,
            n_train=round.rows,
            method=point.method,
            kernel=point.kernel,
            lam=trial.lam,
            n_features=point.options.get("n_features"),
            params=Params(params),
            seed=self.seed,
            metric=self.criterion.name,
            score=trial.score,
            seconds_fit=trial.seconds,
            threads=env.threads(),
            **columns,
        )


def _edge(name: str, value: float | None, tried: list[float], digits: str) -> list[str]:
    """A value that is the first or the last of several tried, in words; else nothing."""
    if len(tried) < 2 or value not in (tried[0], tried[-1]):
        return []
    which = "smallest" if value == tried[0] else "largest"
    return [f"{name} {value:{digits}} is the {which} value tried"]
