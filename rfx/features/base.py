"""Shared by all random feature maps: products with a row, sampled arrays, endless maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from rfx import device, env, parallel
from rfx import steps as told
from rfx.compiled import njit
from rfx.counters import uniforms
from rfx.errors import DataError, UsageError, or_near
from rfx.features.binning import BinMap
from rfx.kernels import Kernel
from rfx.model import Array
from rfx.operators.accelerated import DeviceMatrix
from rfx.operators.mapped import MapMatrix
from rfx.parallel import cached
from rfx.plugins import Registry
from rfx.types import Inputs

# ----------------------------------------------------------------------
# Products of rows with a map's vectors, x.w, bitwise independent of other rows and columns.
#
# BLAS sums in another order for another shape, which changes the float32 phase of a heavy-tailed
# frequency: features differed by up to 0.1 between a block of rows and all of them. Here entry (i,
# j) is one chain of float64 additions over the inputs in order, which depends only on row i and
# column j. Four rows are processed together; an input that is zero in all four is skipped, since
# adding it would change nothing. A row whose inputs are mostly -1, or 1, as for scaled indicators,
# is represented relative to that value.

# Columns whose four sums fit into the first-level cache.
BLOCK = 256
# Rows per task of a thread: those of about this many features, within these limits.
_ENTRIES = 1 << 18
_LEAST = 256
_MOST = 4096
# Float64 multiplications count this many times, including the processing of the product.
_WORK = 1.5
_TOGETHER = 4
# Parts are multiples of this number of rows, because some maps process as many together.
_WHOLE = 8
# A sum may be fused with its product, but nothing may be reordered.
_CHAIN = {"contract"}


# Numbers of a map stored in float64; larger maps, with many inputs, are widened during use, with
# the same products.
_HELD = 1 << 24
# rows in the form of `_packed`
Packed: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Vectors:
    """The vectors of a map, the columns of an (n_inputs, D) array, for products with rows
    in float64.
    """

    def __init__(self, matrix):
        self.W = np.ascontiguousarray(matrix, dtype=np.float64 if matrix.size <= _HELD else None)
        self.sums = np.zeros(self.W.shape[1])
        add_all(self.W, self.sums)

    def compute(self, X, out, function: Callable[..., None], *more, finish=None):
        """function(*packed rows, W, sums, *more, out) for every part of the rows of X (n,
        n_inputs), array or CSR, and of out (n, D), then finish(out) while that is in cache.
        """
        if sp.issparse(X):
            X = X.tocsr()
            X.sum_duplicates()

        def part(rows: slice, some) -> None:
            function(*_packed(some), self.W, self.sums, *more, out[rows])
            if finish is not None:
                finish(out[rows])

        work = _WORK * X.shape[0] * self.W.size
        each_part(X, self.W.shape[1], part, work)

    def times(self, X, out, finish=None):
        """out (n, D) <- X W in the type of `out`, then finish(part of its rows) for each part."""
        self.compute(X, out, _products, finish=finish)
        return out


def each_part(X, width: int, function: Callable[[slice, Inputs], None], work: float) -> None:
    """function(rows, these rows of X) for every part of the rows of X (n, d), array or CSR, by
    several threads; width: features per row, which decide the size of the parts.
    """
    n_rows = X.shape[0]
    threads = env.threads()
    # of nearly equal size, the same number for each thread
    most = min(_MOST, max(_LEAST, _ENTRIES // max(1, width)))
    count = threads * -(-n_rows // (most * threads))
    size = _WHOLE * -(-n_rows // (_WHOLE * max(1, count)))

    def part(first, last):
        for k in range(first, last):
            parallel.check_time()
            rows = slice(k * size, min((k + 1) * size, n_rows))
            function(rows, X[rows])

    parallel.for_ranges(part, -(-n_rows // max(1, size)), work=work)


def as_array(X) -> np.ndarray:
    """Rows X, an array or CSR, as an array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _packed(X) -> Packed:
    """The rows of X in groups of four: (values (groups, 4, width), their inputs (groups, width),
    counts, the rows' reference values (n,)).
    """
    groups = -(-X.shape[0] // _TOGETHER)
    shifts = np.zeros(X.shape[0])
    counts = np.zeros(groups, np.int64)
    width = X.shape[1]
    if sp.issparse(X):
        longest = int(np.diff(X.indptr).max(initial=0))
        width = min(width, _TOGETHER * longest)
    width = -(-width // _TOGETHER) * _TOGETHER
    values = np.zeros((groups, _TOGETHER, width))
    inputs = np.zeros((groups, width), np.int64)
    if sp.issparse(X):
        _pack_sparse(X.indptr, X.indices, X.data, values, inputs, counts)
    else:
        _find_shifts(X, shifts)
        _pack_dense(X, values, inputs, counts, shifts)
    return values, inputs, counts, shifts


@njit(cache=True, nogil=True)
def _find_shifts(X, shifts):
    """shifts_i <- -1 or 1 if more than half of the inputs of row i have this value, else 0."""
    for i in range(len(X)):
        x = X[i]
        low = 0
        high = 0
        for j in range(len(x)):
            low += x[j] == -1
            high += x[j] == 1
        half = len(x) / 2
        if high > half:
            shifts[i] = 1.0
        elif low > half:
            shifts[i] = -1.0
        else:
            shifts[i] = 0.0


@njit(cache=True, nogil=True)
def _pack_dense(X, values, inputs, counts, shifts):
    n, width = X.shape
    for g in range(len(counts)):
        count = 0
        own = values[g]
        for t in range(width):
            used = False
            for r in range(4):
                # if the rows end within the group, the last one is repeated
                i = min(4 * g + r, n - 1)
                own[r, count] = np.float64(X[i, t]) - shifts[i]
                used |= own[r, count] != 0.0
            inputs[g, count] = t
            count += used
        if count < width:
            own[:, count] = 0.0
        counts[g] = count


@njit(cache=True, nogil=True)
def _pack_sparse(ends, columns, data, values, inputs, counts):
    n = len(ends) - 1
    at = np.zeros(4, np.int64)
    for g in range(len(counts)):
        rows = min(4, n - 4 * g)
        for r in range(rows):
            at[r] = ends[4 * g + r]
        count = 0
        while True:
            least = np.int64(2**62)
            for r in range(rows):
                if at[r] < ends[4 * g + r + 1]:
                    least = min(least, np.int64(columns[at[r]]))
            if least == 2**62:
                break
            for r in range(rows):
                if at[r] < ends[4 * g + r + 1] and columns[at[r]] == least:
                    values[g, r, count] = data[at[r]]
                    at[r] += 1
            inputs[g, count] = least
            count += 1
        counts[g] = count


@njit(cache=True, nogil=True)
def add_all(W, sums):
    """sums_j <- sums_j + sum_k W[k, j], in order of k."""
    for k in range(W.shape[0]):
        for j in range(len(sums)):
            sums[j] += W[k, j]


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def _add_group(values, inputs, count, W, low, high, sums):
    """sums (4, high - low) <- sums + values (4, count) @ W[inputs, low:high]."""
    width = high - low
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    # the values are padded with zeros to a multiple of four
    for k in range(0, count, 4):
        w0, w1 = W[inputs[k], low:high], W[inputs[k + 1], low:high]
        w2, w3 = W[inputs[k + 2], low:high], W[inputs[k + 3], low:high]
        a0, a1, a2, a3 = values[0, k], values[0, k + 1], values[0, k + 2], values[0, k + 3]
        b0, b1, b2, b3 = values[1, k], values[1, k + 1], values[1, k + 2], values[1, k + 3]
        c0, c1, c2, c3 = values[2, k], values[2, k + 1], values[2, k + 2], values[2, k + 3]
        d0, d1, d2, d3 = values[3, k], values[3, k + 1], values[3, k + 2], values[3, k + 3]
        for j in range(width):
            p, q, r, s = w0[j], w1[j], w2[j], w3[j]
            a[j] = (((a[j] + a0 * p) + a1 * q) + a2 * r) + a3 * s
            b[j] = (((b[j] + b0 * p) + b1 * q) + b2 * r) + b3 * s
            c[j] = (((c[j] + c0 * p) + c1 * q) + c2 * r) + c3 * s
            d[j] = (((d[j] + d0 * p) + d1 * q) + d2 * r) + d3 * s


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def _start_group(shift, sums, total):
    """total <- shift * sums."""
    for j in range(len(sums)):
        total[j] = shift * sums[j]


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def sum_group(g, n, values, inputs, counts, shifts, W, sums, low, high, totals):
    """The number of the n packed rows in group g; totals (4, BLOCK) <- their products with the
    columns low .. high-1 of W.
    """
    rows = min(4, n - 4 * g)
    for r in range(rows):
        _start_group(shifts[4 * g + r], sums[low:high], totals[r])
    _add_group(values[g], inputs[g], counts[g], W, low, high, totals)
    return rows


@njit(cache=True, nogil=True, fastmath=_CHAIN)
def _products(values, inputs, counts, shifts, W, sums, out):
    """out <- the rows times W."""
    n, columns = out.shape
    totals = np.empty((4, BLOCK))
    for low in range(0, columns, BLOCK):
        high = min(low + BLOCK, columns)
        for g in range(len(counts)):
            rows = sum_group(g, n, values, inputs, counts, shifts, W, sums, low, high, totals)
            for r in range(rows):
                out[4 * g + r, low:high] = totals[r, : high - low]


# ----------------------------------------------------------------------
# Shared by all random feature maps: sampled arrays with one entry per feature, selection, and
# storage in model files.

# Numbers drawn together.
_DRAWN = 1 << 20


class MapArray:
    """An array of a feature map, as an attribute: `self.phases` is `self.arrays["phases"]`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: FeatureMap, owner: type) -> np.ndarray:
        return instance.arrays[self.name]


class FeatureMap:
    """A sampled map from (n, n_inputs) rows to (n, n_features) features.

    The mean over features of phi(x) phi(y) estimates the kernel `name`. Feature j depends only on
    (seed, j).

    arrays: name -> array whose LAST axis runs over the features. params: the kernel's parameters
    (gamma, radius, …). A subclass declares its kernels in `kernels`, its arrays in `parts` (their
    last axis is `features`), and the variants of its features with their meanings in `variants`.
    Any map may have the array `scales`, the factor of each feature; a map with it in its parts
    applies it itself.

    A subclass defines the class method draw(name, n_inputs, start, stop, seed, params, variant),
    the float64 (or integer) arrays of the features start..stop-1, and `compute`.
    """

    kernels: ClassVar[tuple[Kernel, ...]] = ()
    parts: ClassVar[dict[str, Array]] = {}
    variants: ClassVar[dict[str, str]] = {"offset": ""}
    # variant -> the class of its maps, if that is another one
    forms: ClassVar[dict[str, type[FeatureMap]]] = {}
    # numbers per feature and input
    width: ClassVar[int] = 1
    # the largest magnitude of a feature before the factors, if it is known
    amplitude: ClassVar[float | None] = None

    def __init__(self, name: str, n_inputs: int, params: dict, arrays: dict):
        self.name = name
        self.n_inputs = n_inputs
        self.params = params
        self.arrays = arrays

    @property
    def n_features(self) -> int:
        return next(iter(self.arrays.values())).shape[-1]

    @property
    def dtype(self) -> np.dtype:
        """Type of the features returned by `transform`."""
        return next(iter(self.arrays.values())).dtype

    @property
    def bound(self) -> float | None:
        """The largest magnitude of a feature, if it is known."""
        if self.amplitude is None or self.factors is None:
            return self.amplitude
        return self.amplitude * float(np.abs(self.factors).max(initial=0.0))

    @property
    def factors(self) -> np.ndarray | None:
        """The array `scales`, if the map has it."""
        return self.arrays.get("scales")

    @classmethod
    def total(cls, n_inputs, params) -> int | None:
        """The number of different features; None if unlimited."""
        return None

    @classmethod
    def sampled(cls, name, n_inputs, params, arrays, seed) -> FeatureMap:
        """The map of arrays that were drawn."""
        return cls(name, n_inputs, params, arrays)

    @classmethod
    def learn(
        cls, kernel: str, X, n_features: int, seed: int, variant: str | None = None, **more
    ) -> FeatureMap:
        """The map for that kernel, adapted by the variant to the training rows X (n, n_inputs);
        more: the kernel's parameters, and dtype, by default float32.
        """
        variant = variant or cls.usual(kernel)
        cls.check_variant(kernel, n_features, variant)
        drawn = sample(kernel, X.shape[1], n_features, seed, variant=variant, **more)
        return drawn.fit(X, variant)

    @classmethod
    def saved_arrays(cls) -> dict[str, Array]:
        """The required forms of its arrays in a model file."""
        return cls.parts | {"scales": Array("f", "features")}

    @classmethod
    def variants_of(cls, name: str) -> dict[str, str]:
        """The variants that the kernel `name` has."""
        return cls.variants

    @classmethod
    def usual(cls, name: str) -> str:
        """The default variant of the kernel `name`: the first one."""
        return next(iter(cls.variants_of(name)))

    @classmethod
    def check_variant(cls, name: str, n_features: int, variant: str) -> None:
        """Raise UsageError for an unsupported variant or number of features."""
        own = cls.variants_of(name)
        if variant in own:
            return
        having = [kernel for kernel, kind in MAPS.items() if variant in kind.variants_of(kernel)]
        some = f"is for the kernels {', '.join(having)}" if having else "no map has"
        supported = " or ".join(own)
        raise UsageError(
            f"--features is {variant}, which {some}; kernel {name} supports {supported}"
        )

    def fit(self, X, variant: str) -> FeatureMap:
        """The map adapted by the variant to the training rows X (n, n_inputs); itself if nothing is
        learnt from them.
        """
        return self

    def transform(self, X, out=None) -> np.ndarray:
        """Features of the rows of X: (n, n_inputs) array or CSR matrix -> (n, n_features), written
        to `out` if given.

        Raises DataError if X has another number of inputs.
        """
        if X.shape[1] != self.n_inputs:
            raise DataError(
                f"the rows have {X.shape[1]} features, but the map was made for {self.n_inputs}"
            )
        if out is None:
            out = np.empty((X.shape[0], self.n_features), self.dtype)
        if (placed := DeviceMatrix.of(self, X)) is not None:
            for rows, Z in placed.row_blocks():
                out[rows] = Z
            return out
        self.compute(X, out)
        if self.factors is not None and "scales" not in self.parts:
            out *= self.factors
        return out

    def on_device(self, accelerator: device.Accelerator, X):
        """(the function from rows on the device to their features, the rows that it takes); None if
        the map's steps are not for devices.

        Raises UsageError instead if the accelerator was asked for by name.
        """
        try:
            steps = accelerator.placed(self.steps())
        except UsageError:
            if accelerator.demanded:
                raise UsageError(
                    f"the features of kernel {self.name} are not computed on a GPU; use --device"
                    " cpu"
                ) from None
            return None
        return partial(device.carry_out, steps), as_array(X)

    def compute(self, X, out) -> None:
        """out (n, n_features) <- the features of the rows of X (n, n_inputs)."""
        raise TypeError(f"{type(self).__name__} does not define compute")

    def steps(self) -> told.Steps:
        """The computation steps of `transform` for dense rows.

        Raises
        ------
        UsageError
            If the map does not define them.
        """
        found = self.own_steps()
        if self.factors is None:
            return found
        return *found, told.scaled(self.factors, self.n_features)

    def own_steps(self) -> told.Steps:
        """The steps before the product with the array `scales`, if there is one."""
        raise UsageError(
            f"the features of kernel {self.name} can't be exported: there are no steps for them"
        )

    def row_blocks(self, X, scale: float = 1.0):
        """(rows, scale times their features) for all rows of X, some megabytes at a time, valid
        until the next iteration.
        """
        return MapMatrix(self, X, scale).row_blocks()

    def sparse_features(self, X):
        """The features of the rows of X as CSR (n, n_features) if nearly all of them are zero;
        otherwise None.
        """
        return None

    def quick_decision(self, X: Inputs, coef: np.ndarray) -> np.ndarray | None:
        """(n, k) float64 values of coef' phi(x) for coef (n_features, k), if they can be computed
        faster than by `transform`; else None.
        """
        return None

    def quick_adjoint(self, X, U):
        """(n_features, k) float64 sums over the rows of X of u_i phi(x_i), for U (n, k), without
        features; None if not supported.
        """
        return None

    def select(self, indices) -> FeatureMap:
        """The map of these features (an index array, a boolean mask or a slice), in that order."""
        arrays = {
            key: np.ascontiguousarray(value[..., indices]) for key, value in self.arrays.items()
        }
        return type(self)(self.name, self.n_inputs, self.params, arrays)

    def weighted(self, indices, weights) -> FeatureMap:
        """The features of these indices, each times its weight: (count,) integers and
        (count,) numbers.
        """
        part = self.select(indices)
        before = self.dtype.type(1) if part.factors is None else part.factors
        scales = (before * weights).astype(self.dtype)
        return type(self)(self.name, self.n_inputs, self.params, part.arrays | {"scales": scales})

    @cached
    def _vectors(self) -> Vectors:
        return Vectors(next(iter(self.arrays.values())))

    def _rows(self, X):
        """X in the map's type."""
        if sp.issparse(X):
            return X.astype(self.dtype)
        return np.ascontiguousarray(X, dtype=self.dtype)

    def _project(self, X, out, finish=None):
        """out <- the products of the rows of X with the first array, then finish(part) on every
        part of the rows, while it is in cache.
        """
        return self._vectors.times(self._rows(X), out, finish)

    def check(self):
        """Raise DataError for file content that is inconsistent in ways that `parts` can't
        declare.
        """

    def header(self) -> dict:
        """The JSON part of a model file; `arrays` is the other part."""
        params = {key: np.asarray(value).tolist() for key, value in self.params.items()}
        header = {"name": self.name, "n_inputs": self.n_inputs, "params": params}
        for form, kind in MAPS[self.name].forms.items():
            if type(self) is kind:
                header["form"] = form
        return header

    @staticmethod
    def from_header(header: dict, arrays: dict) -> FeatureMap:
        kind = form_of(header)
        own = {name: arrays[name] for name in kind.parts}
        if "scales" in arrays:
            own["scales"] = arrays["scales"]
        found = kind(header["name"], header["n_inputs"], header["params"], own)
        found.check()
        return found


class SeededMap(FeatureMap):
    """A map whose model stores the seed in place of large arrays, and the features' `numbers`."""

    numbers = MapArray()

    @classmethod
    def sampled(cls, name, n_inputs, params, arrays, seed):
        return cls(name, n_inputs, params | {"seed": seed}, arrays)

    @property
    def seed(self) -> int:
        return self.params["seed"]

    def _in_blocks(self, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(blocks, starts, order): the blocks of `size` numbers that the features are in, and the
        features by blocks, from starts[k] to starts[k + 1] those of blocks[k].
        """
        numbers = self.numbers.astype(np.int64)
        blocks, of = np.unique(numbers // size, return_inverse=True)
        sizes = np.bincount(of, minlength=len(blocks))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return blocks, starts, np.argsort(of, kind="stable")


def block_uniforms(seed: int, stream: int, blocks: np.ndarray, width: int) -> np.ndarray:
    """(blocks, width) uniform numbers of the blocks with these numbers."""
    parts = [uniforms(seed, stream, block, block + 1, width) for block in blocks.tolist()]
    return np.concatenate(parts)


def form_of(header: dict) -> type[FeatureMap]:
    """The class of the map whose header this is; KeyError where there is none."""
    kind = MAPS[header["name"]]
    if "form" not in header:
        return kind
    return kind.forms[header["form"]]


def _declares(value) -> dict[str, type]:
    """The kernels of a map class at the top of a module."""
    if not (isinstance(value, type) and issubclass(value, FeatureMap)):
        return {}
    return {kernel.name: value for kernel in value.__dict__.get("kernels", ())}


# other names of maps for `rfx featurize`, with their kernels
ALIASES = {"binning": "laplacian", "fourier": "gaussian"}
# kernel -> map
MAPS = Registry("kernel", "rfx.features", _declares, "rfx.feature_maps")


def sample(
    name, n_inputs, n_features, seed, *, start=0, dtype=np.float32, variant=None, **params
) -> FeatureMap:
    """Sample the features start .. start+n_features-1 of the map for the kernel `name`.

    params: the kernel's parameters, as from `rfx.kernels.parameters`. variant: one of the map's,
    by default the usual one; see `FeatureMap.check_variant`.
    """
    kind = MAPS[name]
    variant = variant or kind.usual(name)
    kind = kind.forms.get(variant, kind)
    stop = start + n_features
    arrays = _drawn(kind, name, n_inputs, start, stop, seed, params, variant, dtype)
    return kind.sampled(name, n_inputs, params, arrays, seed)


def _drawn(kind, name, n_inputs, start, stop, seed, params, variant, dtype) -> dict:
    """kind.draw of the features start .. stop-1 in `dtype`: in parts if these are many numbers,
    because float64 needs twice the memory.
    """

    def draw(first, last):
        found = kind.draw(name, n_inputs, start + first, start + last, seed, params, variant)
        arrays = {}
        for key, values in found.items():
            stored = dtype if values.dtype.kind == "f" else None
            arrays[key] = np.ascontiguousarray(values, stored)
        return arrays

    numbers = (stop - start) * n_inputs * kind.width
    count = max(1, -(-numbers // _DRAWN))
    parts = parallel.for_ranges(draw, stop - start, parts=count)
    return joined_arrays(parts)


def joined_arrays(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of all features from those of parts, which follow one another on the last axis."""
    arrays = {}
    for name in parts[0]:
        arrays[name] = np.concatenate([part[name] for part in parts], axis=-1)
    return arrays


def find(name: str) -> tuple[type[FeatureMap] | type[BinMap], str]:
    """(map, kernel) for a kernel's name, or an alternative name of a map.

    Raises UsageError with the available names.
    """
    kernel = ALIASES.get(name, name)
    if kernel not in MAPS:
        near = or_near(name, [*MAPS, *ALIASES], "choose one of")
        raise UsageError(f"there is no feature map {name!r}{near}")
    return BinMap if name == "binning" else MAPS[kernel], kernel


# ----------------------------------------------------------------------
# An infinite random feature map: feature j is determined by (seed, j), so parts of it are computed
# when needed.
#
# Needed by doubly stochastic gradients (Dai et al. 2014, algorithm 1), whose model is its
# coefficients and a seed.

# Features sampled together: enough for BLAS, few enough that they fit into cache with some hundred
# rows.
PIECE = 1024


class GrowingMap:
    """The features 0, 1, 2, … of a kernel's map from n_inputs inputs.

    kernel, variant, dtype, params: as for `rfx.features.sample`. piece: features sampled together,
    which affects only the time. max_memory_mb: of cached pieces; others are recomputed each time.
    """

    def __init__(
        self,
        kernel,
        n_inputs,
        seed,
        params,
        *,
        variant=None,
        dtype=np.float32,
        piece=PIECE,
        max_memory_mb=256.0,
    ):
        self.kernel = kernel
        self.n_inputs = n_inputs
        self.seed = seed
        self.params = params
        self.variant = variant
        self.dtype = np.dtype(dtype)
        self.piece = piece
        self._room = max_memory_mb * 2**20
        self._kept: dict[int, FeatureMap] = {}
        self._latest: tuple[int, FeatureMap] | None = None

    def sampled(self, start: int, stop: int) -> FeatureMap:
        """The map of the features start .. stop-1."""
        first = start // self.piece * self.piece
        if stop > first + self.piece:
            return self._draw(start, stop)
        whole = self._piece(first)
        if stop - start == self.piece:
            return whole
        return whole.select(slice(start - first, stop - first))

    def _piece(self, first):
        if first in self._kept:
            return self._kept[first]
        if self._latest is not None and self._latest[0] == first:
            return self._latest[1]
        made = self._draw(first, first + self.piece)
        size = sum(values.nbytes for values in made.arrays.values())
        # the first pieces are cached: a pass uses all of them in order, so caching the latest would
        # never hit
        if size <= self._room:
            self._room -= size
            self._kept[first] = made
        else:
            self._latest = first, made
        return made

    def _draw(self, start, stop):
        options = {"start": start, "dtype": self.dtype, "variant": self.variant}
        return sample(self.kernel, self.n_inputs, stop - start, self.seed, **options, **self.params)
