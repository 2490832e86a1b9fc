"""Exact kernels against their formulas: in blocks of every shape, dense and sparse, float32 and
float64; columns with two values, compared as bits.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from domains import suited
from scipy.spatial.distance import cdist

from rfx import env, kernels
from rfx.errors import DataError, UsageError
from rfx.kernels import blocks, gradients

NAMES = [name for name, kernel in kernels.KERNELS.items() if kernel.metric]
DISTANCES = [
    name for name in NAMES if kernels.get_kernel(name).metric != "dot" and name != "additive-chi2"
]


def sample(n_rows, n_inputs, seed=0, shift=0.0):
    return np.random.default_rng(seed).uniform(-1, 1, (n_rows, n_inputs)) + shift


def reference(name, X, Y, params):
    if name == "stump":
        X, Y = (np.clip(part, params["lo"], params["hi"]) for part in (X, Y))
    l1, l2 = cdist(X, Y, "cityblock"), cdist(X, Y)
    gamma, c = params.get("gamma"), params.get("skewedness")
    return {
        "gaussian": lambda: np.exp(-gamma * l2**2),
        "laplacian": lambda: np.exp(-gamma * l1),
        "laplacian-l2": lambda: np.exp(-gamma * l2),
        "perceptron": lambda: params["radius"] / kernels.perceptron_constant(X.shape[1]) - l2,
        "stump": lambda: 1 - 2 * l1 / (params["hi"] - params["lo"]).sum(),
        "linear": lambda: X @ Y.T,
        "hat": lambda: np.maximum(0, 1 - gamma * np.abs(X[:, None] - Y)).prod(-1),
        "rational": lambda: (1 / (1 + gamma * np.abs(X[:, None] - Y))).prod(-1),
        "erlang": lambda: (1 + gamma * np.abs(X[:, None] - Y) / 2).prod(-1) * np.exp(-gamma * l1),
        "matern-3/2": lambda: (1 + 3**0.5 * gamma * l2) * np.exp(-(3**0.5) * gamma * l2),
        "matern-5/2": lambda: (
            (1 + 5**0.5 * gamma * l2 + 5 / 3 * (gamma * l2) ** 2) * np.exp(-(5**0.5) * gamma * l2)
        ),
        "rational-quadratic": lambda: (
            (1 + gamma * l2**2 / params["rq_alpha"]) ** -params["rq_alpha"]
        ),
        "multiscale": lambda: np.mean(
            [np.exp(-scale * gamma * l2**2) for scale in (1 / 16, 1 / 4, 1, 4, 16)], axis=0
        ),
        "additive-chi2": lambda: np.nansum(2 * X[:, None] * Y / (X[:, None] + Y), axis=-1),
        "skewed-chi2": lambda: np.prod(
            2 * np.sqrt((X[:, None] + c) * (Y + c)) / (X[:, None] + Y + 2 * c), axis=-1
        ),
        "hamming": lambda: np.exp(-gamma * cdist(X, Y, "hamming") * X.shape[1]),
        "polynomial-2": lambda: (1 + gamma * X @ Y.T) ** 2,
        "polynomial-3": lambda: (1 + gamma * X @ Y.T) ** 3,
        "exponential": lambda: np.exp(gamma * X @ Y.T),
        "arccosine-0": lambda: angular(X, Y, lambda t: np.pi - t, 0),
        "arccosine-1": lambda: angular(X, Y, lambda t: np.sin(t) + (np.pi - t) * np.cos(t), 1),
        "arccosine-2": lambda: angular(
            X, Y, lambda t: 3 * np.sin(t) * np.cos(t) + (np.pi - t) * (1 + 2 * np.cos(t) ** 2), 2
        ),
    }[name]()


def angular(X, Y, function, order):
    """Cho and Saul (2009), equation 3."""
    lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)[None, :]
    return lengths**order * function(np.arccos(np.clip(X @ Y.T / lengths, -1, 1))) / np.pi


@pytest.mark.parametrize("n_inputs", [2, 80])
def test_the_perceptron_kernel_of_features_of_one_unit(n_inputs):
    X, Y = sample(70, n_inputs), sample(33, n_inputs, seed=1)
    params = kernels.parameters("perceptron", X, perceptron_scale="unit")
    factor = kernels.perceptron_constant(n_inputs) / params["radius"]
    K = kernels.block("perceptron", X, Y, params)
    np.testing.assert_allclose(K, 1 - factor * cdist(X, Y), rtol=0, atol=1e-12)
    assert np.all(kernels.diagonal("perceptron", X, params) == 1)
    zeros = np.zeros((3, n_inputs))
    params = kernels.parameters("perceptron", zeros, perceptron_scale="unit")
    assert np.all(kernels.block("perceptron", zeros, X, params) == 1)
    with pytest.raises(UsageError, match="--perceptron-scale is 'two'; it must be one of"):
        kernels.parameters("perceptron", X, perceptron_scale="two")


@pytest.mark.slow
@pytest.mark.parametrize("n_inputs", [1, 6, 22, 90])
@pytest.mark.parametrize("name", NAMES)
def test_block_is_the_formula(name, n_inputs):
    X, Y = sample(70, n_inputs), 1.2 * sample(131, n_inputs, seed=1)
    X, Y = suited(name, X), suited(name, Y)
    params = kernels.parameters(name, X)
    if "gamma" in params:
        params["gamma"] = 3.0 / n_inputs
    expected = reference(name, X, Y, params)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        K = kernels.block(name, X, Y, params, dtype=dtype)
        assert K.dtype == dtype
        np.testing.assert_allclose(
            K, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max())
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["hat", "rational", "erlang"])
def test_products_of_far_inputs_are_zero(name, dtype):
    X = np.full((2, 700), 1e30) * [[1], [-1]]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            kernels.block(name, X, X, {"gamma": 1.0}, dtype=dtype), np.eye(2)
        )


def test_the_median_number_of_different_codes():
    codes = np.random.default_rng(0).integers(3, size=(3000, 8)) * 100.0
    expected = 1 / np.median(cdist(codes[:500], codes[500:1000], "hamming") * 8)
    for rows in (codes, sp.csr_matrix(codes)):
        assert kernels.parameters("hamming", rows, "median")["gamma"] == pytest.approx(expected)


@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("additive-chi2", {}, "of 0 or more, but one is -3 after scaling; use --sc"),
        ("skewed-chi2", {"skewedness": 3.0}, r"above -3 .--skewedness 3., but one is -3"),
    ],
)
def test_inputs_out_of_the_domain_are_refused(name, params, message, make):
    X = np.array([[0.0, 1.0], [2.0, -3.0]])
    with pytest.raises(DataError, match=f"kernel {name} is for inputs {message}"):
        kernels.prepare(name, make(X), params)


@pytest.mark.parametrize(
    ("name", "option"), [("rational-quadratic", "rq_alpha"), ("skewed-chi2", "skewedness")]
)
def test_options_of_kernels_out_of_range(name, option):
    assert kernels.parameters(name, sample(5, 2), **{option: 2})[option] == 2.0
    with pytest.raises(
        UsageError, match=f"--{option.replace('_', '-')} is -1; it must be a number"
    ):
        kernels.parameters(name, sample(5, 2), **{option: -1})


def test_defaults_of_the_options_of_kernels():
    X = np.abs(sample(3000, 4))
    assert kernels.parameters("rational-quadratic", X)["rq_alpha"] == 1.0
    expected = np.sqrt(np.median(cdist(X, X, "sqeuclidean"))) / 2
    for rows in (X, 1000 * X, sp.csr_matrix(X)):
        c = kernels.parameters("skewed-chi2", rows)["skewedness"]
        assert c / rows.max() == pytest.approx(expected / X.max(), rel=0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_inputs", [3, 40, 100])
@pytest.mark.parametrize("name", NAMES)
def test_sparse_and_prepared_rows_equal_dense_rows(name, n_inputs, dtype, set_sizes):
    X = sample(50, n_inputs)
    X[np.random.default_rng(2).random(X.shape) < 0.6] = 0
    X = suited(name, X)
    Y = X[::-1][:33]
    params = kernels.parameters(name, X)
    for key, value in kernels.parameters(name, sp.csr_matrix(X)).items():
        np.testing.assert_allclose(value, params[key], rtol=1e-12)
    expected = kernels.block(name, X, Y, params, dtype=dtype)
    # relative to the largest value: kernels of products are unbounded, and rounding hides the angle
    # of a row to itself
    tolerance = (1e-5 if dtype == np.float32 else 1e-12) * max(1, np.abs(expected).max())
    tolerance = max(tolerance, 2e-7 if name.startswith("arccosine") else 0)
    np.testing.assert_allclose(
        kernels.block(name, sp.csr_matrix(X), sp.csr_matrix(Y), params, dtype=dtype),
        expected,
        atol=tolerance,
    )
    prepared = kernels.prepare(name, X, params, dtype)
    np.testing.assert_allclose(kernels.block(name, prepared, Y, params), expected, atol=tolerance)
    np.testing.assert_allclose(
        kernels.block(name, prepared.take([4, 9]), prepared.take(slice(3, 8)), params),
        kernels.block(name, X[[4, 9]], X[3:8], params, dtype=dtype),
        atol=tolerance,
    )
    # Too many sparse rows to make them dense at once.
    set_sizes(blocks, _DENSE_BYTES=64)
    sparse = kernels.prepare(name, sp.csr_matrix(np.vstack([X] * 3)), params, dtype)
    np.testing.assert_allclose(
        kernels.block(name, sparse, Y, params), np.vstack([expected] * 3), atol=tolerance
    )


def text(name):
    """60 wide rows that are mostly zeros, and six copies of some of them."""
    values = np.random.default_rng(3).normal(size=(60, 1200))
    values[np.random.default_rng(4).random(values.shape) < 0.98] = 0
    return suited(name, np.vstack([values, values[:6]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_text_equal_dense_rows(name, dtype):
    X = text(name)
    params = kernels.parameters(name, X)
    expected = kernels.block(name, X, X[:40], params, dtype=dtype)
    tolerance = (1e-5 if dtype == np.float32 else 1e-12) * max(1, np.abs(expected).max())
    tolerance = max(tolerance, 5e-7 if name.startswith("arccosine") else 0)
    rows = kernels.prepare(name, sp.csr_matrix(X), params, dtype)
    for columns in (rows.take(slice(0, 40)), X[:40], sp.csr_matrix(X[:40])):
        np.testing.assert_allclose(
            kernels.block(name, rows, columns, params), expected, atol=tolerance, rtol=0
        )
    K = kernels.block(name, rows, rows, params)
    assert (K[60:] == K[:6]).all()
    assert (np.diag(K)[60:] == K[np.arange(60, 66), np.arange(6)]).all()


@pytest.mark.parametrize("name", NAMES)
def test_block_shape_and_threads_change_nothing(name):
    X, Y = suited(name, sample(60, 40)), suited(name, sample(700, 40, seed=1))
    params = kernels.parameters(name, X)
    expected = kernels.block(name, X, Y, params)
    like = kernels.prepare(name, Y, params)
    pieces = np.empty((60, 700))
    for i in range(0, 60, 7):
        for j in range(0, 700, 333):
            pieces[i : i + 7, j : j + 333] = kernels.block(
                name, X[i : i + 7], like.take(slice(j, j + 333)), params
            )
    tolerance = max(
        1e-12 * max(1, np.abs(expected).max()), 2e-7 if name.startswith("arccosine") else 0
    )
    np.testing.assert_allclose(pieces, expected, atol=tolerance)
    for count in (1, 2):
        env.set_threads(count)
        np.testing.assert_allclose(kernels.block(name, X, Y, params), expected, atol=tolerance)


SEVERAL = [slice(start, start + 1000) for start in range(0, 17_000, 1000)]


@pytest.mark.parametrize("n_bits", [0, 20, 130])
@pytest.mark.parametrize("name", DISTANCES)
def test_a_wide_block_in_parts_has_the_same_bits(name, n_bits):
    X, Y = (
        suited(name, np.hstack([sample(n, 5, seed), np.sign(sample(n, n_bits, seed + 2))])).astype(
            np.float32
        )
        for seed, n in enumerate((13, 17_000))
    )
    like = kernels.prepare(name, Y, kernels.parameters(name, Y), np.float32)
    # wider than the parts of a block
    whole = kernels.block(name, X, like, like.params)
    parts = [kernels.block(name, X, like.take(some), like.params) for some in SEVERAL]
    np.testing.assert_array_equal(whole, np.hstack(parts))
    # written to columns of a wider array, as in a cache
    out = np.full((13, 17_100), 7, np.float32)
    kernels.block(name, X, like, like.params, out=out[:, :17_000])
    np.testing.assert_array_equal(out, np.hstack([whole, np.full((13, 100), 7, np.float32)]))


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("n_inputs", [4, 100])
@pytest.mark.parametrize("name", DISTANCES)
def test_identical_rows_have_distance_zero_in_float32(name, n_inputs, shift):
    X = suited(name, sample(30, n_inputs, shift=shift)).astype(np.float32)
    params = kernels.parameters(name, X)
    K = kernels.block(name, X, X, params, dtype=np.float32)
    np.testing.assert_array_equal(np.diag(K), kernels.diagonal(name, X, params).astype(np.float32))


@pytest.mark.parametrize("name", ["perceptron", "laplacian-l2", "matern-3/2"])
def test_distances_of_close_rows_keep_their_digits_in_float32(name):
    # every second row is near another one, at relative distances from 1e-5 up; squared distances
    # from inner products are only rounding errors
    X = sample(300, 90)
    X[1::2] = X[::2] + np.logspace(-5, 0, 150)[:, None] * sample(150, 90, seed=1) / 10
    X = X.astype(np.float32)
    params = kernels.parameters(name, X, None if name == "perceptron" else 1.0)
    expected = reference(name, X.astype(float), X.astype(float), params)
    K = kernels.block(name, X, X, params)
    assert K.dtype == np.float32
    np.testing.assert_allclose(
        K, expected, rtol=0, atol=4 * np.finfo(np.float32).eps * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", NAMES)
def test_decision_sums_over_the_support_vectors(name, monkeypatch):
    SV, X = suited(name, sample(5000, 3)), suited(name, sample(90, 3, seed=1))
    params = kernels.parameters(name, SV)
    K = kernels.block(name, X, SV, params)
    coef = np.random.default_rng(0).standard_normal((5000, 2))
    np.testing.assert_allclose(kernels.decision(name, params, SV, coef, X), K @ coef, atol=1e-9)
    np.testing.assert_allclose(
        kernels.decision(name, params, SV, coef[:, 0], X), K @ coef[:, 0], atol=1e-9
    )
    single = kernels.decision(name, params, SV, coef, X, dtype=np.float32)
    np.testing.assert_allclose(
        single, K @ coef, atol=1e-4 * np.abs(K).max() * np.abs(coef).sum() ** 0.5
    )
    none = kernels.decision(name, params, SV[:0], coef[:0], X)
    np.testing.assert_array_equal(none, np.zeros((90, 2)))


@pytest.mark.parametrize(
    ("name", "given", "gamma"),
    [
        ("gaussian", None, 0.5),
        ("gaussian", "paper", 0.5),
        ("laplacian", None, 1.0),
        ("laplacian-l2", None, 1.0),
        ("gaussian", 2, 2.0),
        ("gaussian", "2", 2.0),
    ],
)
def test_gamma_by_value_and_paper(name, given, gamma):
    assert kernels.parameters(name, sample(30, 4), given) == {"gamma": gamma}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("laplacian", lambda X: 1 / np.median(cdist(X, X, "cityblock"))),
        ("laplacian-l2", lambda X: 1 / np.median(cdist(X, X))),
        ("gaussian", lambda X: 0.5 / np.median(cdist(X, X)) ** 2),
        ("polynomial-2", lambda X: 1 / np.median(np.abs(X @ X.T))),
    ],
)
def test_gamma_by_the_median(name, expected):
    X = sample(3000, 4)
    first, again, other = (
        kernels.parameters(name, X, "median", seed=seed)["gamma"] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first == pytest.approx(expected(X), rel=0.1)


def test_perceptron_constant_is_the_mean_of_a_coordinate_of_the_sphere():
    theta = np.random.default_rng(0).standard_normal((200_000, 6))
    mean = np.abs(theta[:, 0] / np.linalg.norm(theta, axis=1)).mean()
    assert kernels.perceptron_constant(6) == pytest.approx(mean, abs=0.003)
    assert kernels.perceptron_constant(1) == pytest.approx(1)
    X = sample(20, 6)
    assert kernels.parameters("perceptron", X) == {
        "radius": pytest.approx(np.linalg.norm(X, axis=1).max())
    }


def test_stump_clips_to_the_training_range_and_lives_with_constant_inputs():
    X = np.array([[0.0, 0.0], [1.0, 4.0]])
    params = kernels.parameters("stump", X)
    np.testing.assert_allclose(
        kernels.block("stump", X, np.array([[9.0, -9.0]]), params), [[0.6], [-0.6]]
    )
    constant = np.ones((3, 2))
    np.testing.assert_array_equal(
        kernels.block("stump", constant, constant, kernels.parameters("stump", constant)),
        np.ones((3, 3)),
    )


def test_a_median_that_can_t_be_had():
    assert kernels.parameters("gaussian", sample(1, 2), "median") == {"gamma": 0.5}
    assert kernels.parameters("laplacian", np.ones((9, 2)), "median") == {"gamma": 1.0}
    # most pairs are equal rows: the median over the others
    X = np.zeros((100, 1))
    X[:5] = 3.0
    assert kernels.parameters("gaussian", X, "median") == {"gamma": pytest.approx(1 / (2 * 9.0))}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda X: kernels.parameters("rbf", X), "kernel 'rbf' is unknown .choose one of"),
        (lambda X: kernels.parameters("perceptron", X, 1.0), "'perceptron' has no gamma"),
        (lambda X: kernels.block("linear", X, sample(5, 3), {}), "2 columns can't be compared"),
        (lambda X: kernels.prepare("kmers", X, {}), "kernel 'kmers' has no exact values"),
    ],
)
def test_refusals(call, says):
    with pytest.raises((UsageError, DataError), match=says):
        call(sample(5, 2))


def test_no_rows():
    X = sample(5, 2)
    assert kernels.block("gaussian", X[:0], X, {"gamma": 1.0}).shape == (0, 5)
    assert kernels.block("gaussian", X, X[:0], {"gamma": 1.0}).shape == (5, 0)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_angle_to_a_row_of_zeros_counts_nothing(order):
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    K = kernels.block(f"arccosine-{order}", X, X, {})
    np.testing.assert_allclose(K, np.diag([0.0, (1, 5, 75)[order]]), atol=1e-6)
    np.testing.assert_allclose(np.diag(K), kernels.diagonal(f"arccosine-{order}", X, {}), atol=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "laplacian", "laplacian-l2", "polynomial-2"])
def test_the_median_of_wide_sparse_rows_is_that_of_arrays(name):
    X = sp.random(40, 1300, 0.02, "csr", random_state=0)
    assert kernels.parameters(name, X, "median", 3)["gamma"] == pytest.approx(
        kernels.parameters(name, X.toarray(), "median", 3)["gamma"]
    )


KNOWN = [name for name, kernel in kernels.KERNELS.items() if kernel.has_gradient]


@pytest.fixture(scope="module")
def expansion():
    """40 rows, and coefficients of two outputs."""
    rng = np.random.default_rng(0)
    return SimpleNamespace(X=rng.normal(size=(40, 5)), coef=rng.normal(size=(40, 2)))


@pytest.mark.parametrize("name", KNOWN)
def test_gradients_are_those_of_finite_differences(name, expansion):
    X, coef = expansion.X, expansion.coef
    rows, params, step = np.arange(0, 40, 3), {"gamma": 0.3}, 1e-6
    found = list(gradients.gradients(name, X, coef, params, rows))
    assert len(found) == 2
    for output, gradient in enumerate(found):
        for place, row in enumerate(rows):
            others = np.arange(40) != row  # a row contributes nothing to the gradient at itself

            def f(x):
                return kernels.block(name, x, X[others], params) @ coef[others, output]

            moved = np.eye(5) * step
            expected = (f(X[row] + moved) - f(X[row] - moved)) / (2 * step)
            np.testing.assert_allclose(gradient[place], expected, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_gradients_of_rows_of_text_equal_those_of_dense_rows(name):
    X, rows, params = text(name), np.arange(0, 66, 4), {"gamma": 0.02}
    coef = np.random.default_rng(5).normal(size=(66, 2))
    expected = list(gradients.gradients(name, X, coef, params, rows))
    of_text = list(gradients.gradients(name, sp.csr_matrix(X), coef, params, rows))
    np.testing.assert_allclose(of_text, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_outer_products_are_averages_over_rows_and_sums_over_outputs(name, expansion, set_sizes):
    X, coef = expansion.X, expansion.coef
    rows, weights = np.arange(40), np.arange(40) % 3 + 0.5
    found = [np.copy(one) for one in gradients.gradients(name, X, coef, {"gamma": 0.3}, rows)]
    expected = sum((one * weights[:, None]).T @ one for one in found) / weights.sum()
    for values in (1 << 22, 40 * 7):  # in one block, and in blocks of 7 rows
        set_sizes(gradients, _VALUES=values)
        full = gradients.outer_product(name, X, coef, {"gamma": 0.3}, rows, True, weights)
        diagonal = gradients.outer_product(name, X, coef, {"gamma": 0.3}, rows, False, weights)
        np.testing.assert_allclose(full, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(diagonal, np.diag(expected), rtol=1e-10)


KERNELS = {
    "gaussian": 0.3,
    "laplacian": 0.2,
    "laplacian-l2": 0.3,
    "matern-3/2": 0.3,
    "matern-5/2": 0.3,
}


def rows(n_rows=90, others=5, two=70, low=-1.0, high=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.hstack(
        [rng.uniform(-1, 1, (n_rows, others)), np.where(rng.random((n_rows, two)) < 0.2, high, low)]
    )
    return X[:, np.random.default_rng(1).permutation(X.shape[1])]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    ("others", "two"), [(0, 70), (40, 70), *((5, two) for two in (8, 31, 32, 33, 64, 70, 100))]
)
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_the_formula(name, others, two, form):
    params = {"gamma": KERNELS[name]}
    X, Y = (rows(n, others, two, 0.0, seed=seed) for seed, n in ((0, 90), (3, 50)))
    left = kernels.prepare(name, form(X), params, np.float64)
    right = kernels.prepare(name, form(Y), params, np.float64, like=left)
    assert left._bits is not None and right._bits is not None
    expected, some = reference(name, X, Y, params), np.array([4, 80, 7])
    np.testing.assert_allclose(
        kernels.block(name, left, right, params), expected, rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(
        kernels.block(name, left.take(some), right, params), expected[some], rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(
        kernels.block(name, form(X), form(Y), params, dtype=np.float32), expected, atol=2e-6
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_columns_of_other_values_are_compared_as_numbers(form):
    rng = np.random.default_rng(0)
    X = np.zeros((400, 26))
    X[:, :10] = rng.random((400, 10)) < 0.3
    X[:, 10:13] = 3.0 * (rng.random((400, 3)) < 0.5)  # another gap
    X[:, 13] = 1.0  # one value
    X[:, 14] = rng.integers(0, 3, 400)  # three
    X[:, 15:17] = rng.normal(size=(400, 2))
    X[:, 17] = np.where(rng.random(400) < 0.5, -0.5, 0.5)  # no zeros
    # zeros and others
    X[:, 18] = np.where(rng.random(400) < 0.5, -0.5, 0.5) * (rng.random(400) < 0.9)
    X[:, 19] = np.where(np.arange(400) == 399, 7.0, X[:, 0])  # two values except in the last row
    params = {"gamma": 0.2}
    left = kernels.prepare("laplacian", form(X), params, np.float64)
    assert left._binary.columns.tolist() == [*range(10), 17]
    Y = np.vstack([X[:50], np.full((1, 26), 0.25)])  # of two values and of another
    for other in (X, Y):
        right = kernels.prepare("laplacian", form(other), params, np.float64, like=left)
        K = kernels.block("laplacian", left, right, params)
        expected = reference("laplacian", X, other, params)
        np.testing.assert_allclose(K, expected, rtol=1e-11, atol=1e-14)


def test_only_distances_are_compared_as_bits():
    assert kernels.prepare("linear", rows(), {}, np.float64)._bits is None
