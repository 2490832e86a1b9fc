"""A search for a method's options on training rows: cheap first, a whole path of lambdas at a time.

Successive halving (Jamieson and Talwalkar 2016) over few rows and small models, then more: in every round the bandwidths, kernels
and methods that did best go on. Each is fitted once for all lambdas (`Method.along`), and on a path no lambda is tried after some
that only got worse, so that what is left to search is the bandwidth, in one dimension, and the size: a grid of powers of four,
then halves and doubles about the best. Then the size is doubled while that pays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rfx import env, kernels, methods
from rfx.data.loading import Split
from rfx.data.transforms.scaling import Scaler
from rfx.errors import DataError, RfxError, UsageError
from rfx.fitting.bandwidth import has_gamma
from rfx.fitting.calibration import Calibration
from rfx.records import keys, results
from rfx.records.run import Run
from rfx.runs import held_out, metrics

# What can be searched: the option that is a method's size (None: it has none), and the sizes of the rounds.
SIZES = {
    "rf": ("n_features", (256, 512, 1024)),
    "nystrom": ("n_features", (128, 256, 512)),
    "rb": ("n_grids", (32, 128, 256)),
    "block": ("block_size", (128, 512, 1024)),
    "kernel": (None, ()),
    "sparse-rf": ("n_features", (256, 512, 1024)),
    "sparse-rb": ("n_grids", (32, 64, 128)),
}
# What `auto` searches, and the most rows of those of it whose cost is the square of their number.
AUTO = ("rf", "nystrom", "rb", "kernel")
MOST_ROWS = {"kernel": 15_000}
# Multiples of the median's bandwidth in the first round; lambdas, largest first, from half decade to half decade.
FACTORS = tuple(4.0**power for power in range(-3, 4))
LAMS = tuple(float(f"{10 ** (3 - step / 2):.1g}") for step in range(13))
L1_LAMS = tuple(float(f"{10 ** (3 - step / 2):.1g}") for step in range(9))
# Rows to fit to in the rounds (the last has all), and to evaluate on; what goes on from each; lambdas above the last best that are
# tried again; lambdas in a row that are worse after which smaller ones are not tried.
ROWS, EVALUATED, KEPT, ABOVE, WAIT = (2000, 10_000), 10_000, (4, 2), 2, 2
# The size goes on being doubled while that takes this share off the error; the share of the budget that is for the search.
GAIN, SEARCHING = 0.01, 0.7
METRICS = {"accuracy": 1, "balanced_accuracy": 1, "auc": 1, "log_loss": -1, "rmse": -1}


@dataclass(frozen=True)
class Candidate:
    """A method with all options but lambda: kernel and bandwidth (None where it has none), size (None where it has none)."""

    method: str
    kernel: str
    gamma: float | None
    size: int | None

    def options(self) -> dict:
        """Its options, as Method takes them."""
        own = {"kernel": self.kernel, "gamma": self.gamma, SIZES[self.method][0]: self.size}
        return {name: value for name, value in own.items() if name and value is not None}


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate in a round: (lambda, score) along its path, the best of them, rows fitted to, parts, seconds."""

    candidate: Candidate
    round: int
    path: tuple[tuple[float, float], ...]
    lam: float
    score: float
    rows: int
    parts: int
    seconds: float


# Called with an outcome, and whether it was there before.
Tell: TypeAlias = Callable[[Outcome, bool], None]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How a search goes.

    Parameters
    ----------
    kernels : sequence of str
        Those that are tried, of each method those that it has; by default its own.
    metric : str, optional
        Of METRICS; by default accuracy or rmse.
    cv, holdout : int, float, optional
        See `rfx.runs.held_out`.
    seed : int
    budget : float
        Seconds.
    trials : int, optional
        The most outcomes.
    results_file : Path, optional
        CSV file of rows, one an outcome, of which those that are there already are not made again.
    source : Run, optional
        What the rows are of; by default the data set of the split.
    """

    kernels: Sequence[str] = ()
    metric: str | None = None
    cv: int | None = None
    holdout: float | None = None
    seed: int = 0
    budget: float = 300.0
    trials: int | None = None
    results_file: Path | None = None
    source: Run | None = None


class Search:
    """`run` finds the best Outcome.

    Parameters
    ----------
    split : Split
    names : iterable of str
        The methods to search.
    given : dict
        The options that are fixed, task among them.
    asked : Asked
    tell : callable, optional
        Called with (outcome, whether it was there before) for every one.
    """

    def __init__(
        self, split: Split, names: Iterable[str], given: dict[str, Any], asked: Asked | None = None, tell: Tell | None = None
    ) -> None:
        asked = asked or Asked()
        self.X: Any = split.X_train
        self.y, self.names, self.given, self.seed = np.asarray(split.y_train), list(names), given, asked.seed
        self.task, self.split = given["task"], split
        self.metric = asked.metric or ("rmse" if self.task == "regression" else "accuracy")
        self.budget, self.trials, self.tell = asked.budget, asked.trials, tell
        if (self.metric == "rmse") != (self.task == "regression"):
            raise UsageError(f"--metric is {self.metric}, but the task is {self.task}")
        self.sign = METRICS[self.metric]
        share = None if asked.cv else asked.holdout or held_out.SHARE
        self.parts = held_out.folds(self.y, self.task != "regression", asked.seed, asked.cv, share, split.schema)
        self.how = {"cv": asked.cv, "holdout": share}
        self.kernels_asked, self.file = list(asked.kernels), asked.results_file
        self.source = asked.source or Run(dataset=split.name, split=split.split, method="")
        known = results.read(self.file) if self.file is not None and self.file.exists() else []
        self.known = {row["key"]: row for row in known if row["status"] == "ok"}
        self.outcomes: list[Outcome] = []
        self._median: dict[str, float] = {}

    # ------------------------------------------------------------------ the search

    def run(self) -> Outcome:
        """The best outcome of the last round that was reached."""
        self.start = time.monotonic()
        names = [name for name in self.names if len(self.names) == 1 or self.X.shape[0] <= MOST_ROWS.get(name, math.inf)]
        front = [candidate for name in names for candidate in self._first(name)]
        fitted = len(self.parts[0][0])
        rounds = [number for number, rows in enumerate(ROWS) if 1.5 * rows < fitted] if len(front) > 1 else []
        for number in (*rounds, len(ROWS)):
            tried = [found for candidate in front if (found := self._evaluate(self._sized(candidate, number), number)) is not None]
            ranked = sorted(tried, key=lambda found: self.sign * found.score, reverse=True)
            if number < len(ROWS):
                front = [found.candidate for found in ranked[: KEPT[number]]]
        best = self.best()
        if best.round == len(ROWS):
            best = self._refine(best)
            best = self._grow(best)
            self._refine(best)
        return self.best()

    def best(self) -> Outcome:
        """The best outcome of the latest round."""
        if not self.outcomes:
            raise UsageError("not one combination of options could be tried; give a longer --budget-seconds or more --trials")
        last = max(found.round for found in self.outcomes)
        return max((found for found in self.outcomes if found.round == last), key=lambda found: self.sign * found.score)

    def _refine(self, best: Outcome) -> Outcome:
        """Half and twice the bandwidth as long as one of them is better."""
        while best.candidate.gamma is not None and "gamma" not in self.given:
            around = [replace(best.candidate, gamma=best.candidate.gamma * factor) for factor in (0.5, 2.0)]
            seen = {(found.candidate, found.round) for found in self.outcomes}
            around = [candidate for candidate in around if (candidate, best.round) not in seen]
            found = [one for candidate in around if (one := self._evaluate(candidate, best.round)) is not None]
            better = max(found, key=lambda one: self.sign * one.score, default=best)
            if self.sign * better.score <= self.sign * best.score:
                break
            best = better
        return best

    def _grow(self, best: Outcome) -> Outcome:
        """Twice the size as long as that takes GAIN off the error, where the size is not given."""
        option = SIZES[best.candidate.method][0]
        while option is not None and option not in self.given:
            size = best.candidate.size
            if size is None or size >= 4 * len(self.y):
                break
            found = self._evaluate(replace(best.candidate, size=2 * size), best.round)
            if found is None or self._error(found) > (1 - GAIN) * self._error(best):
                break
            best = found
        return self.best()

    def _error(self, found: Outcome) -> float:
        return 1 - found.score if self.sign > 0 else found.score

    def edges(self, best: Outcome) -> list[str]:
        """The options whose best value is the first or the last of those tried, in words."""
        said = []
        lams = self._lams(best.candidate.method)
        if len(lams) > 1 and best.lam in (lams[0], lams[-1]):
            said.append(f"lambda {best.lam:g} is the {'largest' if best.lam == lams[0] else 'smallest'} that was tried")
        alike = lambda one: (one.candidate.method, one.candidate.kernel) == (best.candidate.method, best.candidate.kernel)
        gammas = sorted({gamma for found in self.outcomes if alike(found) and (gamma := found.candidate.gamma) is not None})
        if len(gammas) > 1 and best.candidate.gamma in (gammas[0], gammas[-1]):
            said.append(f"gamma {best.candidate.gamma:.4g} is the {'smallest' if best.candidate.gamma == gammas[0] else 'largest'}")
        return said

    # ------------------------------------------------------------------ candidates

    def _first(self, name: str) -> list[Candidate]:
        declared = methods.get(name).declared()["kernel"]
        names = [kernel for kernel in self.kernels_asked if kernel in declared.meanings()] or [self.given.get("kernel") or declared.default]
        size = self.given.get(SIZES[name][0] or "")
        return [Candidate(name, kernel, gamma, size) for kernel in names for gamma in self._gammas(kernel)]

    def _gammas(self, kernel: str) -> list[float | None]:
        if not has_gamma(kernel):
            return [None]
        given = self.given.get("gamma")
        if isinstance(given, (int, float)):
            return [float(given)]
        base = self._base(kernel, "median" if given is None else given)
        return [base] if given is not None else [base * factor for factor in FACTORS]

    def _base(self, kernel: str, word: str) -> float:
        """The bandwidth that a word stands for on all training rows, scaled as the method scales them."""
        if kernel not in self._median:
            scaled = Scaler.fit(self.X, self.given["scaling"]).transform(self.X, dtype=np.float32)
            self._median[kernel] = kernels.parameters(kernel, scaled, word, self.seed)["gamma"]
        return self._median[kernel]

    def _sized(self, candidate: Candidate, number: int) -> Candidate:
        """The candidate at the size of a round, or the one that is given where that is smaller or the last round."""
        sizes = SIZES[candidate.method][1]
        if not sizes:
            return candidate
        given = self.given.get(SIZES[candidate.method][0] or "")
        size = sizes[number] if given is None else given if number == len(ROWS) else min(sizes[number], given)
        return replace(candidate, size=size)

    def _lams(self, method: str) -> tuple[float, ...]:
        if self.given.get("lam") is not None:
            return (self.given["lam"],)
        return L1_LAMS if method.startswith("sparse") else LAMS

    # ------------------------------------------------------------------ one candidate in a round

    def _evaluate(self, candidate: Candidate, number: int) -> Outcome | None:
        """None where budget or trials are used up, or it can't be fitted."""
        row = self.known.get(self._key(candidate, number))
        if row is None:
            late = time.monotonic() - self.start + self._expected(candidate, number) > SEARCHING * self.budget
            if (late and self.outcomes) or (self.trials is not None and len(self.outcomes) >= self.trials):
                return None
            found = self._fit(candidate, number)
            if found is None:
                return None
            if self.file is not None:
                results.append(self.file, self._row(found))
        else:
            p = row["params"]
            path = tuple((lam, score) for lam, score in p["path"])
            found = Outcome(candidate, number, path, row["lam"], row["score"], row["n_train"], p["parts"], row["seconds_fit"])
        self.outcomes.append(found)
        if self.tell is not None:
            self.tell(found, row is not None)
        return found

    def _expected(self, candidate: Candidate, number: int) -> float:
        """Seconds by what the like of it took before: in proportion to rows, parts and the power 1.5 of the size."""
        rows, parts = self._rows(number)
        alike = [one for one in self.outcomes if (one.candidate.method, one.candidate.kernel) == (candidate.method, candidate.kernel)]
        if not alike:
            return 0.0
        last = max(alike, key=lambda one: (one.round, one.candidate.size or 0))
        sizes = 1.0 if candidate.size is None or last.candidate.size is None else candidate.size / last.candidate.size
        return last.seconds * parts / last.parts * rows / last.rows * max(1.0, sizes) ** 1.5

    def _rows(self, number: int) -> tuple[int, int]:
        """Rows to fit to and parts in a round."""
        fitted = len(self.parts[0][0])
        return (fitted, len(self.parts)) if number == len(ROWS) else (min(ROWS[number], fitted), 1)

    def _above(self, candidate: Candidate, number: int, lams: tuple) -> tuple[float, ...]:
        """The lambdas from a little above the best so far on."""
        before = [one for one in self.outcomes if one.candidate.method == candidate.method and one.candidate.kernel == candidate.kernel]
        last = max((one.round for one in before), default=None)
        own = [lams.index(one.lam) for one in before if one.round == last and one.lam in lams]
        return lams if not own else lams[max(0, min(own) - ABOVE) :]

    def _fit(self, candidate: Candidate, number: int) -> Outcome | None:
        lams, start = self._lams(candidate.method), time.monotonic()
        tried = self._above(candidate, number, lams)
        try:
            path = self._path(candidate, number, tried)
            if len(tried) < len(lams) and path[0][1] == max(path, key=lambda one: self.sign * one[1])[1]:
                path = self._path(candidate, number, lams)
        except RfxError as error:
            if len(self.names) == 1 and not self.outcomes:
                raise
            self.problem = str(error)
            return None
        lam, score = max(path, key=lambda one: self.sign * one[1])
        rows, parts = self._rows(number)
        return Outcome(candidate, number, tuple(path), lam, score, rows, parts, time.monotonic() - start)

    def _path(self, candidate: Candidate, number: int, lams) -> list[tuple[float, float]]:
        """(lambda, mean score over the parts) as far as every part went."""
        rows, parts = self._rows(number)
        found = []
        fixed = {name: value for name, value in self.given.items() if name in methods.get(candidate.method).declared()}
        for kept, out in self.parts[:parts]:
            if number < len(ROWS):
                order = np.random.default_rng(self.seed)
                kept, out = np.sort(order.permutation(kept)[:rows]), np.sort(order.permutation(out)[:EVALUATED])
            share = len(kept) / len(self.y)
            model = methods.create(candidate.method, seed=self.seed, **fixed | candidate.options() | {"lam": 1.0})
            scores = []
            X, X_out = self.split.part(kept, out)
            for fitted, decision in model.along(X, self.y[kept], [lam * share for lam in lams], X_out):
                scores.append(self._score(fitted, decision, self.y[out]))
                signed = [self.sign * score for score in scores]
                if len(signed) > WAIT and max(signed[-WAIT:]) < max(signed):
                    break
            found.append(scores)
        return [(lam, float(np.mean(column))) for lam, column in zip(lams, zip(*found))]

    def _score(self, model, decision, y) -> float:
        if self.metric in ("accuracy", "rmse"):
            return model.evaluate(decision, y)["score"]
        if self.metric == "log_loss":
            # by Platt's curve, of two numbers, from the rows that it is evaluated on: no candidate gains by it more than others
            by = "the rows that were held out"
            curve = Calibration.fit("platt", decision, y, model.classes, by, self.split.schema)
            model = model.replace(calibration=curve)
        # a class of a few rows may be missing among those that a trial is fitted to
        known = np.isin(y, model.classes) if self.metric in ("auc", "log_loss") else slice(None)
        found = metrics.measures(model, decision[known], y[known])
        if self.metric not in found:
            raise DataError(f"--metric {self.metric} is not defined where held-out rows are all of one class; choose accuracy")
        return found[self.metric]

    # ------------------------------------------------------------------ rows

    def _run(self, candidate: Candidate, number: int) -> Run:
        label = f"tune {number} {self.metric} {'cv' if self.how['cv'] else 'holdout'} {self.how['cv'] or self.how['holdout']:g}"
        fixed = {name: value for name, value in self.given.items() if name in methods.get(candidate.method).declared()}
        return replace(self.source, method=candidate.method, seed=self.seed, label=label, options=fixed | candidate.options())

    def _key(self, candidate, number) -> str:
        return keys.key(self._run(candidate, number), lams=self._lams(candidate.method))

    def _row(self, found: Outcome) -> dict:
        run = self._run(found.candidate, found.round)
        params = {name: value for name, value in run.options.items() if name not in results.COLUMNS and value is not None}
        params |= {"label": run.label, "path": found.path, "round": found.round, "parts": found.parts}
        return {
            "key": self._key(found.candidate, found.round), "status": "ok", "dataset": self.split.name, "split": self.split.split,
            "task": self.task, "n_train": found.rows, "n_test": len(self.parts[0][1]), "n_inputs": self.X.shape[1],
            "method": found.candidate.method, "kernel": found.candidate.kernel, "lam": found.lam,
            "n_features": found.candidate.size if SIZES[found.candidate.method][0] == "n_features" else None, "params": params,
            "seed": self.seed, "metric": self.metric, "score": found.score, "seconds_fit": found.seconds, "threads": env.threads(),
        } | env.describe()  # fmt: skip
