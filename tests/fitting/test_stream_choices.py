"""How stochastic methods choose their options: the same for any threads and parts, stored in
checkpoints, from training rows alone, and only options that are not given.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from rfx import methods, model
from rfx.data import libsvm
from rfx.data.stream import ArraySource, LibsvmSource
from rfx.fitting.stream_methods import FEW_NU, StreamMethod

METHODS = {
    "doubly-sgd": {"block": 32},
    "norma": {},
    "r-pegasos": {"n_features": 40},
    "n-pegasos": {"n_features": 40},
    "r-sdca": {"n_features": 40},
    "n-sdca": {"n_features": 40},
    "k-sdca": {},
}


@dataclass(frozen=True)
class NoisyRows:
    """Rows whose targets depend on the distance from an axis."""

    X: np.ndarray
    labels: np.ndarray
    numbers: np.ndarray

    @property
    def targets(self):
        return {"binary": self.labels, "regression": self.numbers}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (700, 3))
    distance, noise = np.linalg.norm(X[:, :2], axis=1), rng.standard_normal(700)
    labels = np.where(distance + 0.2 * noise > 1.6, 5.0, 2.0)
    return NoisyRows(X, labels, numbers=40 + 7 * np.cos(3 * distance) + noise)


def choosing(name="r-pegasos", **more):
    return methods.create(name, **{"batch": 64, "task": "binary"} | METHODS[name] | more)


def tried(pipeline):
    """What was tried and chosen, keyed by the options that were chosen together."""
    return {tuple(step["options"]): step for step in pipeline.info["validation"]}


class Seen:
    """The problems on which options were chosen."""

    def __init__(self, monkeypatch):
        self.problems, chosen = [], StreamMethod.chosen

        def noted(method, problem, n_rows):
            self.problems.append(problem)
            return chosen(method, problem, n_rows)

        monkeypatch.setattr(StreamMethod, "chosen", noted)


@pytest.mark.parametrize("name", METHODS)
def test_the_choice_predicts_and_is_of_the_values_that_were_tried(name, data):
    labels = data.labels
    found = choosing(name).fit(data.X, labels)
    step = next(step for options, step in tried(found).items() if options[0] == "nu")
    nus = {values[0] for values in step["tried"]}
    assert len(nus) > 3 and found.info["lam"] / 700 in nus
    least = min(values[-1] for values in step["tried"])
    chosen = next(values for values in step["tried"] if values[:-1] == step["chosen"])
    count = step["held_out"]
    deviation = np.sqrt(least * (1 - least) / count)
    assert least <= chosen[-1] <= least + deviation
    # more regularisation would have been chosen if it were as good
    before = step["tried"][: step["tried"].index(chosen)]
    assert all(values[-1] > chosen[-1] for values in before)
    # the model of all rows is as good as the best on held-out rows, which halves a constant's error
    assert 1 - found.score(data.X, labels).score < least + deviation
    assert least < 0.5 * np.mean(labels == 2)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "n-pegasos", "r-sdca"])
def test_any_threads_choose_the_same(name, task, by_threads, data):
    X = data.X
    one, other = by_threads(lambda: choosing(name, task=task).fit(X, data.targets[task]), (1, 3))
    assert one.info["validation"] == other.info["validation"]
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.slow
def test_a_file_in_any_parts_chooses_what_arrays_do(tmp_path, data):
    X = data.X
    libsvm.write(tmp_path / "rows", X, data.labels)
    options = {"scaling": "standard", "buffer": 0}
    sources = [LibsvmSource(tmp_path / "rows", 3, chunk=size) for size in (500, 100_000)]
    small, large = (choosing(**options).fit_stream(source) for source in sources)
    arrays = choosing(**options).fit_stream(ArraySource(X, data.labels))
    assert tried(small)[("nu",)] == tried(large)[("nu",)]
    assert small.info["kernel_params"] == large.info["kernel_params"]
    assert small.info["lam"] == large.info["lam"] == arrays.info["lam"]
    np.testing.assert_array_equal(small.decision_function(X), large.decision_function(X))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "r-pegasos", "k-sdca"])
def test_a_checkpoint_keeps_the_choice(name, tmp_path, data):
    """For any number of passes in the first part; nothing is chosen again."""
    X, labels = data.X, data.labels
    first, later = [], []
    path = tmp_path / "c.npz"
    whole = choosing(name, epochs=4).fit(X, labels)
    choosing(name, epochs=1).keep(path).fit(X, labels, progress=first.append)
    header, _ = model.read(path)
    assert header["chosen"]["nu"] == whole.info["lam"] / 700
    assert header["chosen"]["gamma"] == whole.info["kernel_params"]["gamma"]
    resumed = choosing(name, epochs=4).keep(path, resume=True)
    again = resumed.fit(X, labels, progress=later.append)
    assert any(report.choosing for report in first)
    assert not any(report.choosing for report in later)
    np.testing.assert_array_equal(again.decision_function(X), whole.decision_function(X))
    assert again.info["validation"] == whole.info["validation"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doubly-sgd", "r-sdca"])
def test_rows_that_are_only_evaluated_have_no_say(name, monkeypatch, data):
    X = data.X
    seen, rng = Seen(monkeypatch), np.random.default_rng(1)
    X_out, y_out = rng.uniform(-9, 9, (200, 3)), np.where(rng.random(200) > 0.5, 5.0, 2.0)
    plain = choosing(name, scaling="none").fit(X, data.labels)
    watched = choosing(name, scaling="none").fit(X, data.labels, held_out=(X_out, y_out))
    np.testing.assert_array_equal(plain.decision_function(X), watched.decision_function(X))
    assert plain.info["validation"] == watched.info["validation"]
    for problem in seen.problems:
        assert {*map(tuple, problem.X)} == {*map(tuple, X.astype(np.float32))}


@pytest.mark.parametrize(
    ("name", "options", "chosen"),
    [
        ("r-pegasos", {"nu": 1e-2}, None),
        ("r-pegasos", {"gamma": 0.3}, [("nu",)]),
        ("r-pegasos", {"nu": 1e-2, "gamma": 0.3}, []),
        ("doubly-sgd", {"gamma": 0.3, "precondition": False}, [("nu", "theta")]),
        ("doubly-sgd", {"gamma": 0.3, "precondition": False, "theta": 2.0}, [("nu",)]),
    ],
)
def test_what_is_given_is_not_chosen(name, options, chosen, data):
    found = choosing(name, **options).fit(data.X, data.labels)
    steps = found.info.get("validation", [])
    if chosen is None:
        assert steps and not any("nu" in step["options"] for step in steps)
    else:
        assert [tuple(step["options"]) for step in steps] == chosen
    if "nu" in options:
        assert found.info["lam"] == pytest.approx(7)
    if "gamma" in options:
        assert found.info["kernel_params"]["gamma"] == 0.3


@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "r-pegasos", "n-pegasos"])
def test_a_stream_shorter_than_the_sample_is_learnt(name, data):
    """Read once if there are fewer rows than a survey takes; with a handful of rows, validation
    chooses nothing.
    """
    X, labels = data.X, data.labels
    source = ArraySource(X[:60], labels[:60])
    source.rewindable = False
    found = choosing(name).fit_stream(source)
    assert tried(found) and found.score(X, labels).score > 0.7
    few = choosing(name).fit_stream(ArraySource(X[:4], labels[:4]))
    assert few.info["lam"] == FEW_NU * 4
    assert np.isfinite(few.decision_function(X)).all()


def test_weights_are_counted(monkeypatch, rng, data):
    X, labels = data.X, data.labels
    seen = Seen(monkeypatch)
    own = np.where(np.arange(700) % 3 == 0, 0.0, rng.uniform(0.5, 2, 700))
    wrong = np.where(own == 0, 7 - labels, labels)
    weighted = choosing(scaling="none").fit(X, wrong, own)
    of_row = {tuple(row): weight for row, weight in zip(X.astype(np.float32), own)}
    (problem,) = seen.problems
    # rows of weight zero are not used, whatever their labels are
    assert problem.n_rows == np.count_nonzero(own)
    np.testing.assert_allclose(problem.weights, [of_row[tuple(row)] for row in problem.X])
    plain = choosing(scaling="none").fit(X[own > 0], labels[own > 0])
    assert tried(plain)[("nu",)]["tried"] != tried(weighted)[("nu",)]["tried"]
    same = choosing(scaling="none").fit(X[own > 0], labels[own > 0], own[own > 0])
    assert same.info["lam"] == pytest.approx(weighted.info["lam"])


def test_a_metric_comes_before_the_choice(monkeypatch, data):
    """Gamma and nu are chosen for the rows after the metric."""
    labels = data.labels
    seen, noise = Seen(monkeypatch), np.random.default_rng(2).uniform(-2, 2, (700, 5))
    wide = np.hstack([data.X, noise])
    found = choosing(metric="diagonal", scaling="standard").fit(wide, labels)
    plain = choosing(scaling="standard").fit(wide, labels)
    scaler = found.preprocessing.scaler
    assert scaler.metric is not None
    rows = scaler.transform(wide, dtype=np.float32)
    mapped, scaled = (np.sort(problem.X, axis=0) for problem in seen.problems)
    np.testing.assert_allclose(mapped, np.sort(rows, axis=0), atol=1e-5)
    assert not np.allclose(mapped, scaled, atol=1e-3)
    assert [*tried(found)][0] == ("metric", "metric_steps") and ("nu",) in tried(found)
    assert found.info["kernel_params"]["gamma"] != plain.info["kernel_params"]["gamma"]
    assert found.score(wide, labels).score > plain.score(wide, labels).score
