"""Stochastic methods: tasks, model files, streams that equal arrays, checkpoints with the same
bits, errors. How they choose options: the same for any threads and parts, stored in checkpoints,
from training rows alone, and only options that are not given. A row of weight 2 counts as two.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from shell import printed
from sklearn.datasets import load_digits
from weighted_rows import weighted_rows

from rfx import methods, model
from rfx.data import libsvm
from rfx.data.stream import ArraySource, CsvSource, LibsvmSource
from rfx.data.transforms import TRANSFORMS
from rfx.data.virtual import virtual_copies
from rfx.errors import DataError, UsageError
from rfx.fitting import session
from rfx.fitting.stream_methods import FEW_NU, StreamMethod

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (900, 3))
RADIUS = np.linalg.norm(X, axis=1)
TARGETS = {
    "regression": 40 + 7 * np.cos(RADIUS),
    "binary": np.where(RADIUS > 2.2, 5.0, 2.0),
    "multiclass": np.digitize(RADIUS, [1.8, 2.5]).astype(float),
}
# plain gradient steps; the tests of choices have the default steps
PLAIN = {"precondition": False}
CONSTANT = {"nu": 1e-5, "step": "constant", "step0": 1.0, "averaging": "none"} | PLAIN
OPTIONS = {
    "doubly-sgd": {"block": 64} | CONSTANT,
    "norma": CONSTANT,
    "k-sdca": {"nu": 1e-3},
    "r-pegasos": {"nu": 1e-2} | PLAIN,
    "n-pegasos": {"nu": 1e-2} | PLAIN,
    "r-sdca": {"nu": 1e-3},
    "n-sdca": {"nu": 1e-3},
}
DUAL = ("k-sdca", "r-sdca", "n-sdca")


def made(name, **more):
    return methods.create(
        name, **({"gamma": 1.0, "scaling": "none", "batch": 16, "epochs": 6} | OPTIONS[name] | more)
    )


def same_arrays(one, other):
    for key, value in one.model.arrays().items():
        assert np.array_equal(value, other.model.arrays()[key]), key


@pytest.mark.slow
@pytest.mark.parametrize("task", list(TARGETS))
@pytest.mark.parametrize("name", list(OPTIONS))
def test_learns_saves_and_loads(name, task, reloaded):
    target = {"task": task} | ({"target_scaling": "mean"} if task == "regression" else {})
    if name.endswith("pegasos"):
        # its steps are 1 / (nu t), which is too long at first for the squared loss
        target |= {"nu": 1e-3 if task == "multiclass" else 1e-2}
    y = TARGETS[task]
    method = made(name, **target).fit(X[:800], y[:800], held_out=(X[800:], y[800:]))
    score = method.score(X[800:], y[800:])
    assert score.mae < 1.2 if task == "regression" else score.score > 0.85
    samples = [point["samples"] for point in method.trace]
    assert samples == sorted(set(samples)) and 5 < len(samples) < 40
    assert samples[-1] == method.info["samples"] == 4800
    # the trace is of the solver's own predictions, before landmarks are folded
    shown = score.mae if task == "regression" else 1 - score.score
    assert method.trace[-1]["error"] == pytest.approx(shown, abs=1e-4)
    assert method.info["converged"] and method.info["gap"] is None
    # landmarks predict the same before a file as after
    atol = 0 if name.startswith("n-") else 2e-4
    assert reloaded(method, X[800:], atol).method == method.method


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "minmax11", "pca": 2, "unit": True},
        {"scaling": "standard", "pca": 3, "pca_centred": False},
    ],
)
@pytest.mark.parametrize("form", ["libsvm", "csv"])
def test_a_file_in_pieces_teaches_what_arrays_do(form, options, tmp_path, reloaded):
    path, y = tmp_path / "rows", TARGETS["binary"]
    if form == "libsvm":
        libsvm.write(path, X, y)
        source = LibsvmSource(path, 3, chunk=2000)
    else:
        lines = (",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist())
        path.write_text("\n".join(lines) + "\n")
        source = CsvSource(path, chunk=2000)
    options = {"gamma": 1.0, "epochs": 1, "buffer": 0, "task": "binary"} | options
    streamed = made("doubly-sgd", **options).fit_stream(source)
    # the same rows in the same order, from memory
    whole = made("doubly-sgd", **options).session().further(X, y)
    coef, expected = (one.model.arrays()["coef"] for one in (streamed, whole))
    np.testing.assert_allclose(coef, expected, atol=1e-6)
    assert streamed.info["samples"] == 900
    assert streamed.model.header()["n_prepared"] == options.get("pca", 3)
    reloaded(streamed, X, 1e-5)


def test_partial_fit_goes_on_and_knows_classes_beforehand():
    y = TARGETS["multiclass"]
    session = made("doubly-sgd", loss="softmax").session()
    for start in range(0, 900, 300):
        rows = slice(start, start + 300)
        method = session.further(X[rows], y[rows], classes=[0, 1, 2])
    assert method.info["samples"] == 900 and method.info["n_iter"] == 3 * 19
    assert method.score(X, y).score > 0.6
    with pytest.raises(DataError, match="the label 7 did not occur in the first rows"):
        session.further(X[:5], np.full(5, 7.0))
    with pytest.raises(UsageError, match="method k-sdca does not learn from further rows"):
        made("k-sdca").session().further(X, y)


def test_rows_of_partial_fit_have_no_kept_values():
    trained = (made("doubly-sgd", keep_values=kept) for kept in (True, False))
    same_arrays(*(one.session().further(X, TARGETS["binary"]) for one in trained))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, more",
    [
        *((name, {"pca": 2, "scaling": "minmax01"}) for name in OPTIONS),
        *(("r-pegasos", {"scaling": kind}) for kind in TRANSFORMS),
        ("norma", {"scaling": "standard", "metric": "diagonal", "metric_steps": 1}),
    ],
)
def test_a_training_cut_in_two_gives_the_same_bits(name, more, tmp_path):
    path, y = tmp_path / "rows", TARGETS["binary"]
    libsvm.write(path, X, y)
    more = more | {"buffer": 100, "task": "binary"}

    def trained(budget, resume):
        method = made(name, **more, budget_samples=budget).keep(tmp_path / "point", 7, resume)
        return method.fit_stream(LibsvmSource(path, 3, chunk=2000), held_out=(X[:50], y[:50]))

    whole = trained(2000, False)
    trained(1234, False)
    again = trained(2000, True)
    same_arrays(whole, again)
    assert again.info["objective"] == whole.info["objective"]
    assert again.trace[-1]["samples"] == whole.trace[-1]["samples"] == 2008
    assert again.info["n_iter"] == whole.info["n_iter"]


def test_checkpoints_refuse_what_does_not_go_on(tmp_path):
    y, point, path = TARGETS["binary"], tmp_path / "point", tmp_path / "rows"
    libsvm.write(path, X, y)

    def refused(error, message, name="doubly-sgd", **more):
        method = made(name, budget_samples=100, task="binary", **more).keep(point, None, True)
        with pytest.raises(error, match=message):
            method.fit_stream(LibsvmSource(path, 3))

    first = made("doubly-sgd", budget_samples=100, task="binary").keep(point)
    first.fit_stream(LibsvmSource(path, 3))
    words = "--gamma is 2.0, but was 1.0 when the checkpoint .* was written"
    refused(UsageError, words, gamma=2.0)
    refused(UsageError, "is of method doubly-sgd, not norma", "norma")
    path.write_bytes(path.read_bytes()[:-200])
    refused(DataError, "since the checkpoint was written")
    with pytest.raises(DataError, match="is incomplete|can't be used"):
        methods.load(point)
    made("doubly-sgd", task="binary").fit(X, y).save(point)
    refused(DataError, "is not a checkpoint but a model file")


@pytest.mark.parametrize(
    ("budget", "most"), [({"budget_samples": 160}, 160), ({"budget_seconds": 0.05}, 9e7)]
)
def test_budgets(budget, most):
    method = made("doubly-sgd", task="binary", epochs=100_000, **budget).fit(X, TARGETS["binary"])
    assert 0 < method.info["samples"] <= most and method.info["converged"]


def test_virtual_examples():
    digits, labels = load_digits(return_X_y=True)
    options = {"virtual": "digits", "task": "multiclass", "unit": True, "pca": 20, "step0": 4.0}
    options |= {"gamma": "median", "budget_samples": 5000, "block": 256, "batch": 64, "nu": 0}
    method = made("doubly-sgd", **options).fit(digits[:1400], labels[:1400])
    assert method.loss.name == "softmax" and method.info["samples"] >= 5000
    assert method.score(digits[1400:], labels[1400:]).score > 0.8
    with pytest.raises(UsageError, match="--virtual is endless"):
        made("doubly-sgd", virtual="digits").fit(digits, labels)


@pytest.mark.parametrize("virtual", ["digits", "images", "molecules", "molecules-sorted"])
def test_views_are_averaged_for_each_row_by_itself(virtual, reloaded):
    """f is the mean over changes that are the same for all rows, and does not depend on the other
    rows; the curve shows its error.
    """
    matrices = np.random.default_rng(8).integers(1, 200, (120, 8, 8)).astype(np.float64)
    rows, targets = (matrices + matrices.swapaxes(1, 2))[:, *np.triu_indices(8)], matrices[:, 3, 4]
    options = {
        "task": "regression",
        "scaling": "minmax01",
        "virtual": virtual,
        "virtual_copies": 2,
        "seed": 4,
        "gamma": 0.1,
        "max_blocks": 9,
    }
    method = made("doubly-sgd", views=3, **options)
    method = method.fit(rows[:80], targets[:80], held_out=(rows[80:], targets[80:]))
    seen = list(method.method.views_of(rows[80:]))
    assert len(seen) == 3 and not np.array_equal(seen[1], seen[2])
    plain = made("doubly-sgd", **options).fit(rows[:80], targets[:80])
    expected = np.mean([plain.decision_function(view) for view in seen], axis=0)
    np.testing.assert_allclose(method.decision_function(rows[80:]), expected, rtol=1e-12)
    rounding = 1e-6 * np.ptp(targets)
    alone = reloaded(method, rows[80:], rounding).decision_function(rows[85:86])
    np.testing.assert_allclose(alone, method.decision_function(rows[80:])[5:6], atol=rounding)
    assert method.trace[-1]["error"] == pytest.approx(
        np.mean(np.abs(method.predict(rows[80:]) - targets[80:])), rel=1e-6
    )
    if virtual == "digits":
        np.testing.assert_array_equal(seen[0], rows[80:])


@pytest.mark.parametrize(
    "name, more",
    [("doubly-sgd", {"keep_values": True, "step": "normalized", "step0": 0.1}), ("k-sdca", {})],
)
def test_virtual_copies_are_a_set_of_rows(name, more):
    """The first virtual examples of each row, instead of an endless stream."""
    images = np.random.default_rng(5).integers(0, 256, (90, 16)).astype(np.float32)
    labels = np.where(images[:, 5] > 128, 1.0, -1.0)
    rows, own = virtual_copies("digits", images, labels, 3, 2)
    assert (
        rows.shape == (180, 16)
        and own.sum() == 2 * labels.sum()
        and len(np.unique(rows, axis=0)) == 180
    )
    options = {"task": "binary", "seed": 3, "epochs": 3, "batch": 50, **more}
    virtual = made(name, virtual="digits", virtual_copies=2, **options).fit(images, labels)
    assert virtual.info["samples"] == 3 * 180
    np.testing.assert_array_equal(
        virtual.decision_function(images),
        made(name, **options).fit(rows, own).decision_function(images),
    )


@pytest.mark.parametrize(
    "name, options, message",
    [
        (
            "doubly-sgd",
            {"step": "theorem", "theta": 1.0, "nu": 0.1},
            "need a product from 1 to 2: below, f converges more slowly",
        ),
        (
            "doubly-sgd",
            {"features": "pairs", "block": 7},
            "--n-features is 7, but --features pairs needs an even number|must be even",
        ),
        ("k-sdca", {"loss": "softmax"}, "softmax, which method k-sdca does not support"),
        (
            "doubly-sgd",
            {"loss": "softmax"},
            "--loss is softmax, but the task is binary; use hinge",
        ),
        ("r-pegasos", {"nu": 0}, "Pegasos steps are 1/\\(nu t\\), so it must be above 0"),
        ("norma", {"step0": 1e300}, "not finite|flip the sign"),
    ],
)
def test_refusals(name, options, message):
    with pytest.raises((UsageError, DataError), match=message):
        made(name, task="binary", **options).fit(X, TARGETS["binary"])


def test_a_stream_that_is_read_once():
    source = ArraySource(X, TARGETS["binary"])
    source.rewindable = False
    with pytest.raises(UsageError, match="needs all rows beforehand"):
        made("r-sdca").fit_stream(source)
    method = made("doubly-sgd", epochs=1, head=200, task="binary", buffer=64).fit_stream(source)
    assert method.info["samples"] == 900
    assert method.info["n_train"] >= 200


@pytest.mark.parametrize("name", list(OPTIONS))
def test_a_stream_is_judged_before_it_is_learnt(name, tmp_path):
    libsvm.write(tmp_path / "rows", X, TARGETS["binary"])
    options = {"task": "binary", "loss": "squared_hinge", "buffer": 0, "batch": 64}

    def trained(resume, **more):
        method = made(name, **options | more).keep(tmp_path / "point", None, resume)
        return method.fit_stream(LibsvmSource(tmp_path / "rows", 3))

    whole = trained(False)
    # after 0, 64, 128, 256 and 512 rows, of which the latest four batches count
    rows = np.concatenate([np.arange(at, at + 64) for at in (64, 128, 256, 512)])
    np.testing.assert_array_equal(whole.left_out.y, TARGETS["binary"][rows])
    shares = whole.calibration.probabilities(whole.left_out.decision)
    own = np.mean(whole.left_out.y == whole.classes[1])
    # where they are further from it, an intercept makes them equal
    assert shares[:, 1].mean() == pytest.approx(own, abs=2 * np.sqrt(own * (1 - own) / 256))
    # before the batch of row 512, its model had 512 rows
    if name not in DUAL:  # which know the number of rows
        before = made(name, **options, budget_samples=512).fit_stream(
            LibsvmSource(tmp_path / "rows", 3)
        )
        decided = before.decision_function(X[512:576])
        np.testing.assert_allclose(whole.left_out.decision[-64:], decided, rtol=1e-4, atol=1e-4)
    trained(False, budget_samples=300)
    assert trained(True).calibration.to_dict() == whole.calibration.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(OPTIONS))
def test_several_targets_are_several_regressions(name, reloaded):
    """Outputs share rows, features and steps, so each equals the one trained alone."""
    y = np.column_stack([TARGETS["regression"], -3 * X[:, 0], np.sin(X[:, 1])])
    options = {"task": "regression", "target_scaling": "mean", "seed": 3}
    method = made(name, **options).fit(X[:800], y[:800], held_out=(X[800:], y[800:]))
    found = method.predict(X[800:])
    assert found.shape == (100, 3)
    for k in range(3):
        alone = made(name, **options).fit(X[:800], y[:800, k])
        np.testing.assert_allclose(
            found[:, k], alone.predict(X[800:]), atol=1e-4 * np.abs(y[:, k]).max()
        )
    score = method.score(X[800:], y[800:])
    assert score.mae == pytest.approx(np.abs(found - y[800:]).mean())
    assert method.trace[-1]["error"] == pytest.approx(score.mae, abs=1e-4)
    reloaded(method, X[800:], 2e-3)


def test_several_targets_are_refused_where_they_make_no_sense():
    y = np.column_stack([TARGETS["regression"]] * 2)
    with pytest.raises(UsageError, match="2 targets each, which requires regression"):
        made("doubly-sgd", task="binary").fit(X, y)
    with pytest.raises(UsageError, match="method rf .* local or doubly-sgd"):
        methods.create("rf").fit(X, y)
    session = made("doubly-sgd", task="regression").session()
    session.further(X, y)
    with pytest.raises(DataError, match="3 targets each, but the model was trained on 2"):
        session.further(X, np.column_stack([y, y[:, 0]]))


@pytest.mark.parametrize("replace", [False, True])
def test_kept_values_change_the_cost_alone_and_resume_to_the_same_bits(replace, tmp_path):
    y = TARGETS["binary"]
    options = {"precondition": True, "damping": 1e-3, "step0": 0.2, "batch": 300}
    options |= {"replace": replace}
    plain = made("doubly-sgd", **options).fit(X, y)
    trainer = made("doubly-sgd", keep_values=True, **options)
    kept = trainer.fit(X, y)
    np.testing.assert_allclose(plain.decision_function(X), kept.decision_function(X), atol=1e-4)
    short = made("doubly-sgd", keep_values=True, **options, budget_samples=1500)
    short.keep(tmp_path / "point").fit(X, y)
    same_arrays(kept, trainer.keep(tmp_path / "point", resume=True).fit(X, y))


@pytest.mark.parametrize("name", ["n-pegasos", "n-sdca"])
def test_landmarks_may_be_more_than_the_rows_that_gamma_is_learnt_from(name, set_sizes):
    set_sizes(session, SAMPLE=100)
    few, many = (
        made(name, n_features=count, gamma="median").fit(X, TARGETS["binary"])
        for count in (20, 150)
    )
    assert (few.info["rank"], many.info["rank"]) == (20, 150)
    assert few.info["kernel_params"] == many.info["kernel_params"]
    known = [set(map(tuple, method.model.arrays()["support"].tolist())) for method in (few, many)]
    assert len(known[1]) == 150 and known[0] < known[1]


@pytest.mark.parametrize(
    "more",
    [{}, {"budget_samples": 4000, "batch": 5000}, {"virtual_copies": 2, "virtual": "images"}],
)
def test_held_features_change_the_cost_alone(more):
    """Also for steps on other rows after it; a method that does not visit its rows three times, or
    lacks memory, stores none.
    """
    options = {
        "max_blocks": 3,
        "precondition": True,
        "damping": 1e-3,
        "step0": 0.2,
        "batch": 300,
        "block": 128,
    } | more
    rows = np.hstack([X, X[:, :1]]) if "virtual" in more else X
    y = TARGETS["multiclass"]

    def trained(**more):
        session = made("doubly-sgd", **options | more).session()
        pipeline = session.fit(rows, y)
        held = session.method.held_mb(replace(session.learned.setup, rewindable=True)) > 0
        assert session.solver.expansion.held is None, "what training alone needs is not kept"
        return session, pipeline, held

    sessions, models, held = zip(*(trained(max_memory=memory) for memory in (1, 256)))
    assert held == (False, True)
    for _ in range(2):
        same_arrays(*models)
        models = [one.further(-rows[:400], y[:400]) for one in sessions]
    for other in (
        {"epochs": 2, "budget_samples": None},
        {"max_blocks": None},
        {"budget_samples": 1500},
        {"head": 500},
    ):
        assert not trained(**{"virtual": "none", "virtual_copies": None} | other)[2]


def test_several_targets_of_a_file_are_trained_scored_and_predicted(tmp_path, capfd):
    """y (n, k) in an .npz file, through the commands."""
    y = np.column_stack([TARGETS["regression"], X[:, 1]])
    data, others, saved = (tmp_path / name for name in ("rows.npz", "others.npz", "m.npz"))
    np.savez(data, X=X[:800], y=y[:800])
    np.savez(others, X=X[800:], y=y[800:])
    words = "train --method doubly-sgd --task regression --gamma 1 --batch 16 --block 64 --epochs 2"
    more = ("--data", data, "--model", saved, "--test", others)
    printed(capfd, *words.split(), "--scaling", "none", "--target-scaling", "minmax01", *more)
    scores = json.loads(printed(capfd, "eval", saved, "--data", others, "--json"))
    expected = methods.load(saved).score(X[800:], y[800:]).score
    assert scores["score"] == pytest.approx(expected)


DRAWS = np.random.default_rng(0)
ROWS = DRAWS.uniform(-2, 2, (700, 3))
FROM_AXIS = np.linalg.norm(ROWS[:, :2], axis=1)
NOISE = DRAWS.standard_normal(700)
LABELS = np.where(FROM_AXIS + 0.2 * NOISE > 1.6, 5.0, 2.0)
NOISY = {"binary": LABELS, "regression": 40 + 7 * np.cos(3 * FROM_AXIS) + NOISE}
METHODS = {
    "doubly-sgd": {"block": 32},
    "norma": {},
    "r-pegasos": {"n_features": 40},
    "n-pegasos": {"n_features": 40},
    "r-sdca": {"n_features": 40},
    "n-sdca": {"n_features": 40},
    "k-sdca": {},
}


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
def test_the_choice_predicts_and_is_of_the_values_that_were_tried(name):
    found = choosing(name).fit(ROWS, LABELS)
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
    assert 1 - found.score(ROWS, LABELS).score < least + deviation
    assert least < 0.5 * np.mean(LABELS == 2)


@pytest.mark.slow
@pytest.mark.parametrize("task", NOISY)
@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "n-pegasos", "r-sdca"])
def test_any_threads_choose_the_same(name, task, by_threads):
    one, other = by_threads(lambda: choosing(name, task=task).fit(ROWS, NOISY[task]), (1, 3))
    assert one.info["validation"] == other.info["validation"]
    np.testing.assert_array_equal(one.decision_function(ROWS), other.decision_function(ROWS))


@pytest.mark.slow
def test_a_file_in_any_parts_chooses_what_arrays_do(tmp_path):
    libsvm.write(tmp_path / "rows", ROWS, LABELS)
    options = {"scaling": "standard", "buffer": 0}
    sources = [LibsvmSource(tmp_path / "rows", 3, chunk=size) for size in (500, 100_000)]
    small, large = (choosing(**options).fit_stream(source) for source in sources)
    arrays = choosing(**options).fit_stream(ArraySource(ROWS, LABELS))
    assert tried(small)[("nu",)] == tried(large)[("nu",)]
    assert small.info["kernel_params"] == large.info["kernel_params"]
    assert small.info["lam"] == large.info["lam"] == arrays.info["lam"]
    np.testing.assert_array_equal(small.decision_function(ROWS), large.decision_function(ROWS))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doubly-sgd", "norma", "r-pegasos", "k-sdca"])
def test_a_checkpoint_keeps_the_choice(name, tmp_path):
    """For any number of passes in the first part; nothing is chosen again."""
    first, later = [], []
    path = tmp_path / "c.npz"
    whole = choosing(name, epochs=4).fit(ROWS, LABELS)
    choosing(name, epochs=1).keep(path).fit(ROWS, LABELS, progress=first.append)
    header, _ = model.read(path)
    assert header["chosen"]["nu"] == whole.info["lam"] / 700
    assert header["chosen"]["gamma"] == whole.info["kernel_params"]["gamma"]
    resumed = choosing(name, epochs=4).keep(path, resume=True)
    again = resumed.fit(ROWS, LABELS, progress=later.append)
    assert any(report.choosing for report in first)
    assert not any(report.choosing for report in later)
    np.testing.assert_array_equal(again.decision_function(ROWS), whole.decision_function(ROWS))
    assert again.info["validation"] == whole.info["validation"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doubly-sgd", "r-sdca"])
def test_rows_that_are_only_evaluated_have_no_say(name, monkeypatch):
    seen, rng = Seen(monkeypatch), np.random.default_rng(1)
    X_out, y_out = rng.uniform(-9, 9, (200, 3)), np.where(rng.random(200) > 0.5, 5.0, 2.0)
    plain = choosing(name, scaling="none").fit(ROWS, LABELS)
    watched = choosing(name, scaling="none").fit(ROWS, LABELS, held_out=(X_out, y_out))
    np.testing.assert_array_equal(plain.decision_function(ROWS), watched.decision_function(ROWS))
    assert plain.info["validation"] == watched.info["validation"]
    for problem in seen.problems:
        assert {*map(tuple, problem.X)} == {*map(tuple, ROWS.astype(np.float32))}


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
def test_what_is_given_is_not_chosen(name, options, chosen):
    found = choosing(name, **options).fit(ROWS, LABELS)
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
def test_a_stream_shorter_than_the_sample_is_learnt(name):
    """Read once if there are fewer rows than a survey takes; with a handful of rows, validation
    chooses nothing.
    """
    source = ArraySource(ROWS[:60], LABELS[:60])
    source.rewindable = False
    found = choosing(name).fit_stream(source)
    assert tried(found) and found.score(ROWS, LABELS).score > 0.7
    few = choosing(name).fit_stream(ArraySource(ROWS[:4], LABELS[:4]))
    assert few.info["lam"] == FEW_NU * 4
    assert np.isfinite(few.decision_function(ROWS)).all()


def test_weights_are_counted(monkeypatch, rng):
    seen = Seen(monkeypatch)
    own = np.where(np.arange(700) % 3 == 0, 0.0, rng.uniform(0.5, 2, 700))
    wrong = np.where(own == 0, 7 - LABELS, LABELS)
    weighted = choosing(scaling="none").fit(ROWS, wrong, own)
    of_row = {tuple(row): weight for row, weight in zip(ROWS.astype(np.float32), own)}
    (problem,) = seen.problems
    # rows of weight zero are not used, whatever their labels are
    assert problem.n_rows == np.count_nonzero(own)
    np.testing.assert_allclose(problem.weights, [of_row[tuple(row)] for row in problem.X])
    plain = choosing(scaling="none").fit(ROWS[own > 0], LABELS[own > 0])
    assert tried(plain)[("nu",)]["tried"] != tried(weighted)[("nu",)]["tried"]
    same = choosing(scaling="none").fit(ROWS[own > 0], LABELS[own > 0], own[own > 0])
    assert same.info["lam"] == pytest.approx(weighted.info["lam"])


def test_a_metric_comes_before_the_choice(monkeypatch):
    """Gamma and nu are chosen for the rows after the metric."""
    seen, noise = Seen(monkeypatch), np.random.default_rng(2).uniform(-2, 2, (700, 5))
    wide = np.hstack([ROWS, noise])
    found = choosing(metric="diagonal", scaling="standard").fit(wide, LABELS)
    plain = choosing(scaling="standard").fit(wide, LABELS)
    scaler = found.preprocessing.scaler
    assert scaler.metric is not None
    rows = scaler.transform(wide, dtype=np.float32)
    mapped, scaled = (np.sort(problem.X, axis=0) for problem in seen.problems)
    np.testing.assert_allclose(mapped, np.sort(rows, axis=0), atol=1e-5)
    assert not np.allclose(mapped, scaled, atol=1e-3)
    assert [*tried(found)][0] == ("metric", "metric_steps") and ("nu",) in tried(found)
    assert found.info["kernel_params"]["gamma"] != plain.info["kernel_params"]["gamma"]
    assert found.score(wide, LABELS).score > plain.score(wide, LABELS).score


FEW, FEW_TARGETS, WEIGHTS, SHARES, REPEATED = weighted_rows(60)
# statistics that are learnt from the rows besides f change if rows are repeated
FIXED = {"gamma": 1.0, "scaling": "none", "dtype": "float64"}
ASCENT = {"k-sdca": {}, "r-sdca": {"n_features": 30}, "n-sdca": {"n_features": 1000}}
STEPS = {"step": "root", "theta": 1.0}
STOCHASTIC = {
    "doubly-sgd": {"block": 16} | STEPS,
    "norma": STEPS,
    "r-pegasos": {"n_features": 30},
    "n-pegasos": {"n_features": 1000},
}


def of_weights(name, **more):
    own = {"target_scaling": "none"} if more.get("task") == "regression" else {}
    return methods.create(
        name, **FIXED | own | ASCENT.get(name, {}) | STOCHASTIC.get(name, {}) | more
    )


def close(one, other, tol):
    a, b = one.decision_function(FEW), other.decision_function(FEW)
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * np.abs(b).max())


@pytest.mark.parametrize("name", ASCENT)
@pytest.mark.parametrize(
    "task, loss",
    [
        ("regression", "absolute"),
        ("binary", "hinge"),
        ("binary", "logistic"),
        ("binary", "squared"),
        ("multiclass", "squared_hinge"),
    ],
)
def test_the_optimum_of_dual_ascent_is_that_of_rows_repeated(name, task, loss):
    options = {"nu": 1e-2, "epochs": 150, "batch": 16, "task": task, "loss": loss, "gap": True}
    weighted = of_weights(name, **options).fit(FEW, FEW_TARGETS[task], WEIGHTS)
    repeated = of_weights(name, **options).fit(FEW[REPEATED], FEW_TARGETS[task][REPEATED])
    gaps = weighted.info["gap"], repeated.info["gap"]
    assert max(gaps) <= 1e-5 * repeated.info["objective"]
    assert weighted.info["objective"] == pytest.approx(
        repeated.info["objective"], abs=sum(gaps) + 1e-9
    )
    assert weighted.info["weight_sum"] == len(REPEATED) and weighted.info["lam"] == pytest.approx(
        repeated.info["lam"]
    ) == 1e-2 * len(REPEATED)
    close(weighted, repeated, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
def test_dual_ascent_finds_the_minimum_that_newtons_method_finds(loss):
    """Any weights; lambda is nu times their sum, and the random features are those of rf."""
    y, options = FEW_TARGETS["binary"], {"task": "binary", "loss": loss, "n_features": 30}
    dual = of_weights("r-sdca", nu=1e-2, epochs=150, batch=16, gap=True, **options).fit(
        FEW, y, SHARES
    )
    peer = of_weights("rf", lam=dual.info["lam"], tol=1e-10, **options).fit(FEW, y, SHARES)
    assert dual.info["lam"] == pytest.approx(1e-2 * SHARES.sum())
    assert dual.info["objective"] == pytest.approx(peer.info["objective"], rel=1e-6)
    close(dual, peer, 1e-3)


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize(
    "task, loss",
    [("binary", "hinge"), ("multiclass", "softmax"), ("regression", "epsilon_insensitive")],
)
def test_steps_over_all_rows_are_those_over_rows_repeated(name, task, loss):
    """The gradient of a step is the weighted mean over its batch, so a batch of all rows equals one
    of repeated rows.
    """
    options = {"nu": 1e-2, "epochs": 12, "batch": 1000, "task": task, "loss": loss}
    weighted = of_weights(name, **options).fit(FEW, FEW_TARGETS[task], WEIGHTS)
    repeated = of_weights(name, **options).fit(FEW[REPEATED], FEW_TARGETS[task][REPEATED])
    close(weighted, repeated, 1e-6)
    assert weighted.info["objective"] == pytest.approx(repeated.info["objective"], rel=1e-6)
    plain = of_weights(name, **options).fit(FEW, FEW_TARGETS[task])
    assert np.abs(plain.decision_function(FEW) - repeated.decision_function(FEW)).max() > 1e-3


@pytest.mark.parametrize("name", STOCHASTIC)
def test_partial_fit_counts_weights_relative_to_those_so_far(name):
    y, options = FEW_TARGETS["binary"], {"nu": 1e-2, "batch": 20, "task": "binary", "loss": "hinge"}
    plain, twice, by_rows, by_label = (
        of_weights(name, **options | more).session()
        for more in ({}, {}, {}, {"class_weight": "1:3"})
    )
    for _ in range(2):
        models = [
            plain.further(FEW, y),
            twice.further(FEW, y, sample_weight=np.full(60, 2.0)),
            by_rows.further(FEW, y, sample_weight=np.where(y == 1, 3.0, 1.0)),
            by_label.further(FEW, y),
        ]
    plain, twice, by_rows, by_label = models
    np.testing.assert_array_equal(plain.decision_function(FEW), twice.decision_function(FEW))
    np.testing.assert_array_equal(by_rows.decision_function(FEW), by_label.decision_function(FEW))
    assert by_label.decision_function(FEW).mean() > plain.decision_function(FEW).mean()
    # rows of weight zero have no effect: a batch of only such rows just shrinks f, and as the first
    # batch it does nothing
    nothing = (
        of_weights(name, **options)
        .session()
        .further(FEW, y, sample_weight=np.append(np.zeros(40), np.ones(20)))
    )
    assert np.isfinite(nothing.decision_function(FEW)).all()


def test_balanced_weights_are_those_of_the_counts():
    y, options = FEW_TARGETS["binary"], {"nu": 1e-2, "epochs": 3, "batch": 20, "task": "binary"}
    balanced = of_weights("norma", class_weight="balanced", **options).fit(FEW, y)
    of_rows = np.where(y == 1, 30 / np.sum(y == 1), 30 / np.sum(y == -1))
    peer = of_weights("norma", **options).fit(FEW, y, of_rows)
    close(balanced, peer, 1e-12)


def test_rows_after_a_fit_are_weighted_by_label():
    y, models = FEW_TARGETS["binary"], []
    for more, weights in (({"class_weight": "1:5"}, None), ({}, np.where(y == 1, 5.0, 1.0))):
        session = of_weights("norma", nu=1e-2, batch=20, task="binary", **more).session()
        session.fit(FEW, y, weights)
        models.append(session.further(FEW, y, sample_weight=weights).decision_function(FEW))
    np.testing.assert_array_equal(*models)


def test_a_stream_takes_weights_of_labels():
    y = FEW_TARGETS["binary"]
    options = {"nu": 1e-2, "batch": 20, "epochs": 1, "buffer": 0, "task": "binary"}
    options |= {"class_weight": "1:3"}
    streamed = of_weights("r-pegasos", **options).fit_stream(ArraySource(FEW, y))
    np.testing.assert_array_equal(
        streamed.decision_function(FEW),
        of_weights("r-pegasos", **options).session().further(FEW, y).decision_function(FEW),
    )


def by_fit(method, y, weights=None):
    return method.fit(FEW, y, weights)


def by_stream(method, y, weights=None):
    return method.fit_stream(ArraySource(FEW, y))


@pytest.mark.parametrize(
    "train, weights, more",
    [(by_fit, SHARES, {}), (by_fit, None, {"class_weight": "1:3"})]
    # whose mean weight is that of the rows so far
    + [(by_stream, None, {"class_weight": "1:3", "buffer": 0})],
)
def test_a_checkpoint_goes_on_with_the_same_weights(tmp_path, train, weights, more):
    name = "r-pegasos" if train is by_stream else "doubly-sgd"
    options = {"nu": 1e-2, "epochs": 4, "batch": 16, "task": "binary"} | more
    y, path = FEW_TARGETS["binary"], tmp_path / "c.npz"
    whole = train(of_weights(name, **options), y, weights)
    train(of_weights(name, **options | {"epochs": 2}).keep(path), y, weights)
    resumed = train(of_weights(name, **options).keep(path, resume=True), y, weights)
    np.testing.assert_array_equal(resumed.decision_function(FEW), whole.decision_function(FEW))
    if train is by_fit:
        with pytest.raises(DataError, match="the rows differ from those of the checkpoint"):
            train(of_weights(name, **options).keep(path, resume=True), y, SHARES + 1)


def by_parts(method, y, weights=None):
    return method.session().further(FEW, y, sample_weight=weights)


OF_NUMBERS = {"class_weight": "1:2", "task": "regression"}
GENERATED = {"virtual": "digits", "budget_samples": 100}


@pytest.mark.parametrize(
    "train, options, weights, message",
    [
        (by_parts, {"class_weight": "balanced"}, None, "--class-weight balanced needs the counts"),
        (by_stream, {"class_weight": "balanced"}, None, "--class-weight balanced needs the counts"),
        (by_fit, {"class_weight": "7:2"}, None, "--class-weight has the label 7"),
        (by_parts, {"class_weight": "7:2"}, None, "--class-weight has the label 7"),
        (by_fit, OF_NUMBERS, None, "but the task is regression"),
        (by_parts, OF_NUMBERS, None, "but the task is regression"),
        (by_stream, {"name": "k-sdca", "class_weight": "1:2"}, None, "k-sdca needs all rows .*--c"),
        (by_fit, {}, -SHARES, "weight of row 1"),
        (by_parts, {}, -SHARES, "weight of row 1"),
        (by_fit, GENERATED, SHARES, "is digits, whose .* no weights"),
    ],
)
def test_weights_that_do_not_match_are_refused(train, options, weights, message):
    options = {"name": "norma", "task": "binary"} | options
    with pytest.raises((DataError, UsageError), match=message):
        train(of_weights(**options), FEW_TARGETS[options["task"]], weights)


@pytest.mark.parametrize("task", list(TARGETS))
@pytest.mark.parametrize("name", ["n-pegasos", "n-sdca"])
def test_landmarks_predict_what_their_features_do_before_a_file_as_after(name, task, reloaded):
    target = {"task": task} | ({"target_scaling": "mean"} if task == "regression" else {})
    trained = made(name, n_features=60, **target).fit(X[:800], TARGETS[task][:800])
    session = made(name, n_features=60, **target).session()
    session.fit(X[:800], TARGETS[task][:800])
    rows = session.learned.inputs.transform(X[800:], np.float64)
    by_features = session.solver.predictions(rows)
    folded = session.method.predict(session.solver, rows)
    atol = 1e-3 * np.abs(by_features).max()
    np.testing.assert_allclose(folded, by_features, rtol=1e-4, atol=atol)
    reloaded(trained, X[800:])
