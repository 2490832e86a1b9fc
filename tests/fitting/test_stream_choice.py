"""How streaming methods choose options: the same for any threads and parts, stored in checkpoints,
from training rows alone, and only options that are not given.
"""

import numpy as np
import pytest

from rfx import env, methods, model
from rfx.data import libsvm
from rfx.data.stream import ArraySource, LibsvmSource
from rfx.fitting.streaming import FEW_NU, StreamMethod

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (700, 3))
RADIUS = np.linalg.norm(X[:, :2], axis=1)
NOISE = RNG.standard_normal(700)
Y = np.where(RADIUS + 0.2 * NOISE > 1.6, 5.0, 2.0)
TARGETS = {"binary": Y, "regression": 40 + 7 * np.cos(3 * RADIUS) + NOISE}
METHODS = {
    "doubly-sgd": {"block": 32},
    "norma": {},
    "r-pegasos": {"n_features": 40},
    "n-pegasos": {"n_features": 40},
    "r-sdca": {"n_features": 40},
    "n-sdca": {"n_features": 40},
    "k-sdca": {},
}


def made(name="r-pegasos", **more):
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
def test_the_choice_predicts_and_is_of_the_values_that_were_tried(name):
    found = made(name).fit(X, Y)
    step = next(step for options, step in tried(found).items() if options[0] == "nu")
    nus = {values[0] for values in step["tried"]}
    assert len(nus) > 3 and found.info["lam"] / 700 in nus
    least = min(values[-1] for values in step["tried"])
    chosen = next(values for values in step["tried"] if values[:-1] == step["chosen"])
    count = step["held_out"]
    assert least <= chosen[-1] <= least + np.sqrt(least * (1 - least) / count)
    # more regularisation would have been chosen if it were as good
    before = step["tried"][: step["tried"].index(chosen)]
    assert all(values[-1] > chosen[-1] for values in before)
    assert found.score(X, Y)["score"] > 0.85


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "n-pegasos", "r-sdca"])
def test_any_threads_choose_the_same(name, task):
    found = []
    for threads in (1, 3):
        env.set_threads(threads)
        found.append(made(name, task=task).fit(X, TARGETS[task]))
    assert found[0].info["validation"] == found[1].info["validation"]
    np.testing.assert_array_equal(*(one.decision_function(X) for one in found))


def test_a_file_in_any_parts_chooses_what_arrays_do(tmp_path):
    libsvm.write(tmp_path / "rows", X, Y)
    options = {"scaling": "standard", "buffer": 0}
    sources = [LibsvmSource(tmp_path / "rows", 3, chunk=size) for size in (500, 100_000)]
    small, large = (made(**options).fit_stream(source) for source in sources)
    arrays = made(**options).fit_stream(ArraySource(X, Y))
    assert tried(small)[("nu",)] == tried(large)[("nu",)]
    assert small.info["kernel_params"] == large.info["kernel_params"]
    assert small.info["lam"] == large.info["lam"] == arrays.info["lam"]
    np.testing.assert_array_equal(small.decision_function(X), large.decision_function(X))


@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "r-pegasos", "k-sdca"])
def test_a_checkpoint_keeps_the_choice(name, tmp_path, monkeypatch):
    """For any number of passes in the first part."""
    path = tmp_path / "c.npz"
    whole = made(name, epochs=4).fit(X, Y)
    made(name, epochs=1).keep(path).fit(X, Y)
    header, _ = model.read(path)
    assert header["chosen"]["nu"] == whole.info["lam"] / 700
    assert header["chosen"]["gamma"] == whole.info["kernel_params"]["gamma"]
    monkeypatch.setattr(StreamMethod, "chosen", None)
    again = made(name, epochs=4).keep(path, resume=True).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), whole.decision_function(X))
    assert again.info["validation"] == whole.info["validation"]


@pytest.mark.parametrize("name", ["doubly-sgd", "r-sdca"])
def test_rows_that_are_only_evaluated_have_no_say(name, monkeypatch):
    seen, rng = Seen(monkeypatch), np.random.default_rng(1)
    X_out, y_out = rng.uniform(-9, 9, (200, 3)), np.where(rng.random(200) > 0.5, 5.0, 2.0)
    plain = made(name, scaling="none").fit(X, Y)
    watched = made(name, scaling="none").fit(X, Y, held_out=(X_out, y_out))
    np.testing.assert_array_equal(plain.decision_function(X), watched.decision_function(X))
    assert plain.info["validation"] == watched.info["validation"]
    for problem in seen.problems:
        assert {*map(tuple, problem.X)} == {*map(tuple, X.astype(np.float32))}


def test_what_is_given_is_not_chosen():
    found = made(nu=1e-2).fit(X, Y)
    assert found.info["lam"] == pytest.approx(7) and not any("nu" in step for step in tried(found))
    found = made(gamma=0.3).fit(X, Y)
    assert found.info["kernel_params"]["gamma"] == 0.3
    assert [*tried(found)] == [("nu",)]
    found = made(nu=1e-2, gamma=0.3).fit(X, Y)
    assert "validation" not in found.info
    found = made("doubly-sgd", gamma=0.3, precondition=False).fit(X, Y)
    assert [*tried(found)] == [("nu", "theta")]
    found = made("doubly-sgd", gamma=0.3, precondition=False, theta=2.0).fit(X, Y)
    assert [*tried(found)] == [("nu",)]


@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "r-pegasos", "n-pegasos"])
def test_a_stream_shorter_than_the_sample_is_learnt(name):
    """Read once if there are fewer rows than a survey takes; with a handful of rows, validation
    chooses nothing.
    """
    source = ArraySource(X[:60], Y[:60])
    source.rewindable = False
    found = made(name).fit_stream(source)
    assert tried(found) and found.score(X, Y)["score"] > 0.7
    few = made(name).fit_stream(ArraySource(X[:4], Y[:4]))
    assert few.info["lam"] == FEW_NU * 4
    assert np.isfinite(few.decision_function(X)).all()


def test_weights_are_counted(monkeypatch):
    seen = Seen(monkeypatch)
    own = np.where(np.arange(700) % 3 == 0, 0.0, RNG.uniform(0.5, 2, 700))
    wrong = np.where(own == 0, 7 - Y, Y)
    weighted = made(scaling="none").fit(X, wrong, own)
    of_row = {tuple(row): weight for row, weight in zip(X.astype(np.float32), own)}
    (problem,) = seen.problems
    # rows of weight zero are not used, whatever their labels are
    assert problem.n_rows == np.count_nonzero(own)
    np.testing.assert_allclose(problem.weights, [of_row[tuple(row)] for row in problem.X])
    plain = made(scaling="none").fit(X[own > 0], Y[own > 0])
    assert tried(plain)[("nu",)]["tried"] != tried(weighted)[("nu",)]["tried"]
    same = made(scaling="none").fit(X[own > 0], Y[own > 0], own[own > 0])
    assert same.info["lam"] == pytest.approx(weighted.info["lam"])


def test_a_metric_comes_before_the_choice(monkeypatch):
    """Gamma and nu are chosen for the rows after the metric."""
    seen, noise = Seen(monkeypatch), np.random.default_rng(2).uniform(-2, 2, (700, 5))
    wide = np.hstack([X, noise])
    found = made(metric="diagonal", scaling="standard").fit(wide, Y)
    plain = made(scaling="standard").fit(wide, Y)
    scaler = found.preprocessing.scaler
    assert scaler.metric is not None
    rows = scaler.transform(wide, dtype=np.float32)
    mapped, scaled = (np.sort(problem.X, axis=0) for problem in seen.problems)
    np.testing.assert_allclose(mapped, np.sort(rows, axis=0), atol=1e-5)
    assert not np.allclose(mapped, scaled, atol=1e-3)
    assert [*tried(found)][0] == ("metric", "metric_steps") and ("nu",) in tried(found)
    assert found.info["kernel_params"]["gamma"] != plain.info["kernel_params"]["gamma"]
    assert found.score(wide, Y)["score"] > plain.score(wide, Y)["score"]
