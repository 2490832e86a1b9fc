"""Feature maps are unbiased for their kernels within Monte-Carlo error, and independent of blocks,
threads and the number of features.
"""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from domains import suited
from scipy import stats

from rfx import env, kernels
from rfx.errors import DataError, UsageError
from rfx.features import MAPS, FeatureMap, base, random, sample
from rfx.features.dotproduct import DotProductMap

RADIUS = 2.6
LO, HI = np.full(6, -1.0), np.array([1.0, 2.0, 0.5, 1.0, 1.5, 3.0])
PARAMS = {
    "gaussian": {"gamma": 0.7},
    "laplacian": {"gamma": 0.4},
    "laplacian-l2": {"gamma": 0.9},
    "perceptron": {"radius": RADIUS},
    "stump": {"lo": LO, "hi": HI},
    "matern-3/2": {"gamma": 0.8},
    "matern-5/2": {"gamma": 0.8},
    "polynomial-2": {"gamma": 0.3},
    "polynomial-3": {"gamma": 0.2},
    "exponential": {"gamma": 0.3},
    "rational-quadratic": {"gamma": 0.7, "rq_alpha": 0.8},
    "multiscale": {"gamma": 0.3},
    "additive-chi2": {},
    "skewed-chi2": {"skewedness": 0.4},
    "hamming": {"gamma": 0.3},
    "arccosine-0": {},
    "arccosine-1": {},
    "arccosine-2": {},
}
# test_coordinates tests the maps that are exact, or that read letters
NAMES = [name for name in MAPS if name in PARAMS]
OTHERS = {"linear": {}}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (12, 6))


def exact(X, name):
    """The kernel of `suited(name, X)`, whose formula test_kernels tests."""
    rows = suited(name, X)
    return kernels.block(name, rows, rows, PARAMS[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variant"),
    [(name, variant) for name in NAMES for variant in MAPS[name].variants_of(name)],
)
def test_mean_product_is_the_kernel(name, variant, X):
    n = 200_000
    feature_map = sample(name, 6, n, seed=3, variant=variant, dtype=np.float64, **PARAMS[name])
    Z = feature_map.transform(suited(name, X))
    # the terms of a mean: products of one feature, or means over pairs of features
    size = 1 if variant in ("offset", "range") else 2
    parts = [Z[:, k::size] for k in range(size)]
    mean = Z @ Z.T / n
    square = sum((a * b) @ (a * b).T for a in parts for b in parts) / (n * size)
    error = mean - exact(X, name)
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0) * size / n)
    assert np.all(np.abs(error) <= 4.5 * deviation + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variant"),
    [(name, variant) for name in [*NAMES, *OTHERS] for variant in MAPS[name].variants_of(name)],
)
def test_feature_depends_on_seed_and_index_alone(name, variant, X):
    params = (PARAMS | OTHERS)[name]
    whole = sample(name, 6, 41, seed=5, variant=variant, **params)
    grown = sample(name, 6, 23, seed=5, variant=variant, **params)
    later = sample(name, 6, 18, seed=5, start=23, variant=variant, **params)
    other = sample(name, 6, 41, seed=6, variant=variant, **params)
    for key, values in whole.arrays.items():
        assert np.array_equal(values[..., :23], grown.arrays[key])
        assert np.array_equal(values[..., 23:], later.arrays[key])
    rows = suited(name, X)
    values = whole.transform(rows)
    np.testing.assert_allclose(values[:, :23], grown.transform(rows), atol=1e-5)
    np.testing.assert_allclose(values[:, 23:], later.transform(rows), atol=1e-5)
    assert not np.array_equal(values, other.transform(rows))


# one of each class of maps
VARIANTS = [
    *((name, "signs" if MAPS[name] is DotProductMap else "offset") for name in [*NAMES, *OTHERS]),
    ("gaussian", "hadamard"),
    ("polynomial-2", "sketch"),
    ("polynomial-3", "sketch"),
]


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_sparsity_and_file_form_change_nothing(name, variant, rng):
    rows = rng.uniform(-1, 1, (700, 6))
    rows[rows > 0.6] = 0.0
    rows, params = suited(name, rows), (PARAMS | OTHERS)[name]
    # in float64: heavy-tailed frequencies amplify float32's rounding of the projection
    feature_map = sample(name, 6, 64, seed=1, variant=variant, dtype=np.float64, **params)
    reference, out = feature_map.transform(rows), np.empty((700, 64))
    assert feature_map.transform(rows, out=out) is out
    again = FeatureMap.from_header(feature_map.header(), feature_map.arrays)
    for other in (out, feature_map.transform(sp.csr_matrix(rows)), again.transform(rows)):
        np.testing.assert_allclose(other, reference, atol=1e-9)


def test_thresholds_within_the_range_estimate_the_kernel_less_a_constant(X):
    feature_map = sample("perceptron", 6, 60_000, seed=3, dtype=np.float64, radius=RADIUS).fit(
        X, "range"
    )
    Z = feature_map.transform(X)
    products = Z[:, None, :] * Z[None, :, :]
    difference = products.mean(-1) - exact(X, "perceptron")
    deviation = products.std(-1) / math.sqrt(products.shape[-1])
    assert np.all(np.abs(difference - np.diag(difference).mean()) <= 5 * deviation + 1e-3)
    assert np.all(np.ptp(Z, axis=0) > 0)  # every feature separates some rows
    part = sample("perceptron", 6, 7, seed=3, start=40, dtype=np.float64, radius=RADIUS).fit(
        X, "range"
    )
    np.testing.assert_allclose(part.transform(X), Z[:, 40:47])


@pytest.mark.parametrize("variant", ["offset", "range"])
def test_perceptrons_of_scale_unit_are_plus_and_minus_one(variant, X):
    raw, unit = (
        sample("perceptron", 6, 50_000, seed=3, dtype=np.float64, radius=RADIUS, **more).fit(
            X, variant
        )
        for more in ({}, {"unit": 1})
    )
    Z = unit.transform(X)
    assert set(np.unique(Z)) == {-1.0, 1.0}
    np.testing.assert_array_equal(Z, np.sign(raw.transform(X)))  # the same thresholds
    again = FeatureMap.from_header(unit.header(), unit.arrays)
    np.testing.assert_array_equal(again.select([3, 9]).transform(X), Z[:, [3, 9]])
    if variant == "offset":
        products = Z[:, None, :] * Z[None, :, :]
        deviation = products.std(-1) / math.sqrt(products.shape[-1])
        expected = exact(X, "perceptron") / exact(X, "perceptron")[0, 0]  # (c_d / R) K_P
        assert np.all(np.abs(products.mean(-1) - expected) <= 4.5 * deviation + 1e-12)


def test_thresholds_of_rows_that_are_all_equal():
    same = np.ones((30, 4))
    feature_map = sample("perceptron", 4, 50, seed=0, radius=2.0).fit(same, "range")
    assert np.all(feature_map.transform(same) == 0)


@pytest.mark.parametrize(
    ("kernel", "variant", "says"),
    [
        ("stump", "pairs", "--features is pairs, .* for"),
        ("perceptron", "cubes", "--features is cubes, which no map has"),
        ("laplacian", "orthogonal", "laplacian supports offset or pairs or quasi"),
        ("laplacian", "hadamard", "laplacian supports offset or pairs or quasi"),
    ],
)
def test_refusals(kernel, variant, says):
    with pytest.raises(UsageError, match=says):
        MAPS[kernel].check_variant(kernel, 4, variant)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_row_of_zeros_has_arccosine_features_zero(order):
    assert not sample(f"arccosine-{order}", 5, 40, seed=1).transform(np.zeros((3, 5))).any()


def test_rows_of_another_width_are_refused(X):
    with pytest.raises(DataError, match="have 6 features, but the map was made for 3"):
        sample("gaussian", 3, 4, 0, gamma=1.0).transform(X)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_weights_of_features(name, variant, X):
    params, rows = PARAMS.get(name, {}), suited(name, X)
    whole = sample(name, 6, 20, seed=1, variant=variant, dtype=np.float64, **params)
    chosen, weights = np.array([3, 17, 3, 0]), np.array([0.5, 2.0, 1.0, 3.0])
    part = whole.weighted(chosen, weights)
    np.testing.assert_allclose(
        part.transform(rows), whole.transform(rows)[:, chosen] * weights, rtol=1e-12
    )
    again = part.weighted([1, 2], [2.0, 2.0])
    np.testing.assert_allclose(
        again.transform(rows), 2 * part.transform(rows)[:, [1, 2]], rtol=1e-12
    )
    np.testing.assert_array_equal(
        FeatureMap.from_header(again.header(), again.arrays).transform(rows), again.transform(rows)
    )
    assert part.arrays["scales"].dtype == whole.dtype


@pytest.mark.parametrize(
    "name, variant",
    [
        ("gaussian", "offset"),
        ("gaussian", "pairs"),
        ("laplacian-l2", "offset"),
        ("arccosine-1", "offset"),
    ],
)
def test_features_of_many_inputs_are_drawn_some_at_a_time(name, variant):
    """They equal those drawn alone, from any feature on, with any number of threads."""
    params = {"gamma": 0.3} if "arccosine" not in name else {}
    few = sample(name, 60_000, 2, 5, start=4, variant=variant, **params)
    last = sample(name, 60_000, 2, 5, start=40, variant=variant, **params)
    for count in (1, 2):
        env.set_threads(count)
        found = sample(name, 60_000, 38, 5, start=4, variant=variant, **params)
        for alone, places in ((few, slice(2)), (last, slice(36, None))):
            for key, values in found.select(places).arrays.items():
                np.testing.assert_array_equal(alone.arrays[key], values)


@pytest.mark.slow
def test_products_with_vectors_that_are_widened_as_they_are_used_are_the_same(set_sizes):
    rows = sp.random(30, 1200, 0.02, "csr", dtype=np.float32, random_state=0)
    whole = sample("gaussian", 1200, 40, 0, gamma=1.0).transform(rows)
    set_sizes(base, _HELD=0)
    np.testing.assert_array_equal(sample("gaussian", 1200, 40, 0, gamma=1.0).transform(rows), whole)


# ------------------------------------------------------------ orthogonal and quasi-random points


@pytest.mark.parametrize("n_inputs", [3, 40])
def test_directions_are_orthogonal_in_blocks_and_have_the_lengths_of_normal_ones(n_inputs):
    w = random.orthonormals(3, 0, 0, 5 * n_inputs, n_inputs)
    for block in w.reshape(5, n_inputs, n_inputs):
        np.testing.assert_allclose(block @ block.T, np.eye(n_inputs), atol=1e-12)
    # the blocks are independent
    assert np.abs(w[:n_inputs] @ w[n_inputs : 2 * n_inputs].T).max() > 0.1
    squares = random.lengths(3, 0, 0, 4000, n_inputs) ** 2
    assert stats.kstest(squares[:, 0], stats.chi2(n_inputs).cdf).pvalue > 0.01


@pytest.mark.parametrize("start", [0, 64])
def test_sobol_points_are_a_net_and_a_part_of_one_sequence(start):
    u = random.sobol(5, 0, start, start + 64, 7)
    assert u.min() > 0 and u.max() < 1
    for column in u.T:
        assert sorted((column * 64).astype(int)) == list(range(64))
    np.testing.assert_array_equal(u, random.sobol(5, 0, 0, 200, 7)[start : start + 64])
    assert not np.array_equal(u, random.sobol(6, 0, start, start + 64, 7))


@pytest.mark.parametrize(
    ("name", "n_inputs", "gamma", "variant", "base", "at_most"),
    [
        ("gaussian", 8, 1.0 / 3, "orthogonal", "pairs", 0.9),
        ("gaussian", 8, 1.0 / 3, "hadamard", "pairs", 0.9),
        ("gaussian", 8, 1.0 / 3, "quasi", "pairs", 0.8),
        ("polynomial-3", 20, 0.3, "sketch", "signs", 0.8),
    ],
)
def test_the_kernel_s_error_is_smaller_than_that_of_independent_features(
    name, n_inputs, gamma, variant, base, at_most, rng
):
    rows = rng.uniform(-1, 1, (60, n_inputs))
    K = kernels.block(name, rows, rows, {"gamma": gamma})

    def error(kind):
        squares = []
        for seed in range(8):
            Z = sample(name, n_inputs, 512, seed, variant=kind, dtype=np.float64, gamma=gamma)
            Z = Z.transform(rows) / math.sqrt(512)
            squares.append(np.mean((Z @ Z.T - K) ** 2))
        return math.sqrt(np.mean(squares))

    assert error(variant) < at_most * error(base)


def test_a_hadamard_model_holds_a_seed_and_no_frequencies():
    found = sample("gaussian", 50, 600, 7, variant="hadamard", gamma=1.0)
    assert found.header()["params"]["seed"] == 7 and found.header()["form"] == "hadamard"
    assert sum(values.size for values in found.arrays.values()) == 3 * 600


# ------------------------------------------------------------ single features, and other domains


def test_chi_square_features_of_every_start_are_unbiased_over_the_seeds():
    # inputs take turns, so for few features only the mean over the seeds is the kernel
    rows = np.array([[0.5, 0.0, 2.0, 0.1], [0.4, 1.0, 3.0, 0.0]])
    expected = kernels.block("additive-chi2", rows, rows, {})
    for start, count in ((0, 2), (3, 1), (5, 4)):
        found = np.array(
            [
                (lambda Z: Z @ Z.T / count)(
                    sample("additive-chi2", 4, count, s, start=start, dtype=np.float64).transform(
                        rows
                    )
                )
                for s in range(1500)
            ]
        )
        error = np.abs(found.mean(0) - expected)
        assert np.all(error <= 4.5 * found.std(0) / math.sqrt(len(found)) + 1e-12)


def test_frequencies_of_chi_square_have_the_density_sech():
    w = random.secants(random.uniforms(0, 0, 0, 4000, 1)[:, 0])
    assert stats.kstest(w * np.pi, stats.hypsecant.cdf).pvalue > 0.01


def test_hamming_features_are_signs_of_codes(rng):
    codes = rng.integers(4, size=(50, 6)).astype(float)
    found = sample("hamming", 6, 200, 0, gamma=0.2)
    Z = found.transform(codes)
    assert set(np.unique(Z)) == {-1.0, 1.0}
    # -0 equals 0
    np.testing.assert_array_equal(found.transform(np.where(codes == 0, -0.0, codes)), Z)


def test_hamming_signs_of_codes_are_independent():
    # all 10 codes of an input, over all pairs and features, by the sum of products
    codes = np.arange(10.0)[:, None] * [1.0, 0.1]
    Z = sample("hamming", 2, 64 * 400, 1, gamma=50.0).transform(codes)
    products = (Z @ Z.T)[np.triu_indices(10, 1)] / math.sqrt(Z.shape[1])
    assert np.abs(products).max() < 4.5 and 0.5 < np.mean(products**2) < 1.7
