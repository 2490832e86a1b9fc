"""Options chosen on the training rows: every combination of their values is fitted to some rows and judged on others.

A method says which of its options can be chosen so (`searched`), in which order (`stages`), and how it fits one combination for
several lambdas at once (`_fit_each`). Nothing but training rows takes part; the model is then fitted to all of them.
"""

import copy
import itertools
import logging
import time

import numpy as np

from rfx.methods import gamma, weights
from rfx.methods.validation import HELD_OUT, JUDGES, LAMS, SMALLER, error, parts, spread, step

log = logging.getLogger(__name__)
# Below so many rows lambda is not chosen, but this.
FEWEST, FEW_LAM = 5, 1.0
# Lambdas in a row with more than the least error after which smaller ones are not tried.
WAIT = 2
# Relative duality gap of the models that only judge, where --tol says nothing.
TOL = 1e-2


class Choosing:
    """What a method is given as a word, `validation`, `tuned` or one of its own, becomes a number in `chosen`; `validation` says how.

    searched: the values tried of each option, gamma's as multiples of the median's. stages: what is chosen together, one stage after
    another. held_out_share, held_out_rows: how many of the rows are held out, and the most to fit to and to judge by; judges: the least to
    judge by, see `validation.parts`.
    """

    searched: dict[str, tuple] = {}
    stages: tuple[tuple[str, ...], ...] = (("gamma", "lam"),)
    held_out_share = HELD_OUT
    held_out_rows: int | None = None
    judges = JUDGES
    # of `--gamma loo`, see `gamma.loo`
    loo_slack = 0.0
    # whether every lambda is tried, or those until the error is at most this or rises
    _every, _enough = False, None
    # of the rows that are fitted to, and of those that a trial is judged by; None for ones
    weights: np.ndarray | None = None
    weights_out: np.ndarray | None = None

    def _choose(self, X, Y):
        """Sets self.chosen, self.lam, self.validation (a list of `validation.step`) and self._seconds_validation."""
        start, p = time.perf_counter(), self.params
        self.chosen, self.validation = {}, []
        words = {name: self._candidates(name, Y) for name in self.searched if isinstance(p.get(name), str) and name != "gamma"}
        if p.get("lam_path"):
            words.pop("lam", None)
        elif "lam" in words and X.shape[0] < FEWEST:
            del words["lam"]
            self.chosen["lam"] = FEW_LAM
            log.warning("lambda is %g, for there are too few rows to choose it by validation; --lam sets it", FEW_LAM)
        if "gamma" in p and gamma.has_gamma(p["kernel"]):
            if p["gamma"] == "loo":
                self.chosen["gamma"], self.validation = gamma.loo(
                    p["kernel"], X, Y, self._loo_lams(), p["seed"], self.weights, self.loo_slack
                )
            elif p["gamma"] == "tuned":
                self.chosen["gamma"], self.validation = gamma.tuned(p["kernel"], X, Y, self._tuning_lams(), p["seed"], self.weights)
            elif p["gamma"] == "validation":
                words = {"gamma": gamma.candidates(p["kernel"], X, p["seed"], self.searched["gamma"])} | words
            elif words and isinstance(p["gamma"], str):
                # of all rows: what is fitted to some of them has the bandwidth of the model that they choose for
                self.chosen["gamma"] = gamma.resolve(p["kernel"], p["gamma"], X, p["seed"])["gamma"]
        if words:
            found, steps = search(self, words, X, Y)
            self.chosen, self.validation = self.chosen | found, self.validation + steps
        self.lam = self.chosen.get("lam", p.get("lam"))
        self._seconds_validation = time.perf_counter() - start

    def _candidates(self, name: str, Y) -> list:
        """The values that are tried of an option other than gamma."""
        values = self.searched[name]
        return self._loo_lams() if name == "lam" and values == LAMS and self.params.get("gamma") == "loo" else list(values)

    def _loo_lams(self) -> list[float]:
        """The ridge parameters of `--gamma loo`, and the lambdas of L2 regularisation that are tried after it."""
        return [*LAMS, *(SMALLER if self.task == "regression" else ())]

    def _tuning_lams(self) -> list[float]:
        """The ridge parameters of `--gamma tuned`, which takes the best of them."""
        return list(LAMS) if isinstance(self.params["lam"], str) else [self.params["lam"]]

    def _value(self, name: str):
        """An option's value: the one that was chosen, else the one that was given."""
        return self.chosen.get(name, self.params[name])

    def _trial(self) -> "Choosing":
        """A copy to be fitted to some of the rows with the values in its `chosen`."""
        trial = copy.copy(self)
        if "tol" in self.params and self.params["tol"] is None and self.params.get("solver") in (None, "rfx"):
            trial.params = self.params | {"tol": TOL}
        trial.held_out = trial.progress = None
        trial._seconds_features = 0.0
        return trial

    def _judge(self) -> "Choosing":
        """A trial that only judges: LIBLINEAR's problem is solved by rfx, which needs no process for each model."""
        trial = self._trial()
        if self.params.get("solver") == "liblinear":
            trial.params = self.params | {"solver": "rfx", "tol": TOL}
        return trial

    def _target_error(self, X, Y, X_out, Y_out, share: float) -> float | None:
        """The error on X_out, Y_out that is to be met; None where the least is asked for. The rows X, Y are that share of all."""

    def _held_out_errors(self, lams, X, Y, X_out, Y_out) -> list[float]:
        """Of a trial: the error on X_out, Y_out of a model of the rows X, Y for each of lams, or for the first of them.

        lams falls; once the error has been above its least WAIT times in a row, what is smaller is not tried; where an error
        is to be met, once it is that or less, or rises.
        """
        errors = []
        for model in self._fit_each(X, Y, lams):
            errors.append(error(self.task, model._decide(X_out), Y_out, self.weights_out))
            if self._enough is not None and (errors[-1] <= self._enough or errors[-1] > min(errors)):
                break
            if not self._every and len(errors) > WAIT and min(errors[-WAIT:]) > min(errors):
                break
        return errors

    def along(self, X, y, lams, X_out):
        """Yields (model, decision values of the rows X_out) for each of lams, largest first, of models of the rows X, targets y.

        X, X_out: raw rows (n, d), (m, d). What does not depend on lambda is made once; the models only judge, to a relative gap of
        TOL where --tol says nothing, and the next one takes the place of the last. Raises as fit does.
        """
        trial = self._trial()
        scaled, Y = trial._begin(X, y)
        trial._choose(scaled, Y)
        rows = trial.scaler.transform(X_out, dtype=trial._input_dtype())
        for model in trial._fit_each(scaled, Y, lams):
            values = model._decide(rows)
            yield model, values[:, 0] if values.shape[1] == 1 else values

    def _fit_each(self, X, Y, lams):
        """Yields itself fitted with each of lams in turn."""
        for lam in lams:
            self.lam = lam
            self._fit(X, Y)
            yield self


def search(method, grid: dict[str, list], X, Y) -> tuple[dict, list[dict]]:
    """(values, steps): the values of `grid`'s options with the least error on held-out rows, or the error closest to method's target.

    method: with its task, loss and deadline set. grid: option -> values to try, gamma's as numbers. X: (n, d) scaled rows; Y: (n, k).
    Options of a later stage have their first value until then. Of equal errors the first is taken. Raises UsageError where there
    are too few rows.
    """
    given = " and ".join(f"--{name.replace('_', '-')} is {method.params[name]!r}" for name in grid)
    found = parts(X.shape[0], method.held_out_share, method.judges, method.params["seed"], given)
    found = [(kept[spread(len(kept), method.held_out_rows)], out[spread(len(out), method.held_out_rows)]) for kept, out in found]
    fitted, judged, trial = len(found[0][0]), sum(len(out) for _, out in found), method._judge()
    shares = [len(kept) / X.shape[0] for kept, _ in found]
    best, steps = {name: values[0] for name, values in grid.items()}, []

    def weighed(kept, out):
        trial.weights, trial.weights_out = weights.part(method.weights, kept), weights.part(method.weights, out)
        return X[kept], Y[kept], X[out], Y[out]

    target = _mean(trial._target_error(*weighed(*part), share) for share, part in zip(shares, found))
    # of several parts, the mean error is the one to be met: no part alone tells
    trial._every, trial._enough = target is not None, target if len(found) == 1 else None
    measure = "mean squared error" if method.task == "regression" else "share of wrong labels"
    for stage in method.stages:
        names = [name for name in stage if name in grid]
        if not names:
            continue
        others = [name for name in names if name != "lam"]
        lams = grid["lam"] if "lam" in names else [best.get("lam", method.params.get("lam"))]
        tried, combinations = [], list(itertools.product(*(grid[name] for name in others)))
        for number, values in enumerate(combinations):
            trial.chosen = method.chosen | best | dict(zip(others, values))
            errors = []
            for part, (share, rows) in enumerate(zip(shares, found)):
                if method.progress is not None:
                    method.progress({"choosing": names, "tried": number * len(found) + part, "of": len(combinations) * len(found)})
                errors.append(trial._held_out_errors([lam * share for lam in lams], *weighed(*rows)))
            # where one part went on to smaller lambdas than another, that one's error stands for what it would have been
            most = max(map(len, errors))
            errors = [own + own[-1:] * (most - len(own)) for own in errors]
            errors = np.average(errors, axis=0, weights=[len(out) for _, out in found]).tolist()
            tried += [[*values, *([lam] if "lam" in names else []), error] for lam, error in zip(lams, errors)]
        names = [*others, *(["lam"] if "lam" in names else [])]
        errors = np.array([one[-1] for one in tried])
        # a model that is not finite judges nothing
        errors = np.where(np.isfinite(errors), errors, np.inf)
        place = int(np.argmin(errors if target is None else np.abs(errors - target)))
        chosen = step(method.name, names, fitted, judged, measure, tried, place)
        steps.append(chosen if target is None else chosen | {"target": target})
        best |= dict(zip(names, chosen["chosen"]))
    return best, steps


def _mean(values) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
