"""The device in use, and the arithmetic of kernel machines for any device, in the Python array API
standard (data-apis.org): PyTorch, CuPy and numpy arrays work.

Kernel blocks, Cholesky factors, gradients and features are computed where their arrays are. The
rest of rfx passes numpy arrays, and gets numpy arrays back. Blocks and factors larger than a tile
are computed tile by tile. Distances, sums and refinement are float64. Factors are float64 where the
device is as fast with it, as data-centre GPUs are.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rfx import lazy, steps
from rfx.errors import DataError, UsageError
from rfx.types import DeviceArray, Inputs

T = TypeVar("T")
# of each row
Numbers: TypeAlias = np.ndarray | tuple[np.ndarray, ...]
# maps the namespace of arrays and distances s to -k'(s) / s
Slope: TypeAlias = Callable[[ModuleType, DeviceArray], DeviceArray]

# Rows from which `auto` takes a GPU: fewer take less time than its start.
MANY = 20_000
# Entries of a tile of values, and rows and columns of a tile of a factor.
ENTRIES = 1 << 25
PANEL = 4096
# Tiles in memory at a time.
TEMPORARY = 8
# Squared distances below this multiple of ||x||^2 + ||y||^2 are rounding errors: 0.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
# Those whose arrays estimators take and return.
LIBRARIES = ("torch", "cupy", "array_api_strict")
# The comparisons of rows that have a kernel block.
COMPARED = ("squared", "l2", "l1", "dot")


# ---------------------------------------------------------------------- functions of a number
# xp: the namespace of the array t.


def _cos_turns(xp, t):
    return xp.cos(2 * math.pi * (t - xp.round(t)))


def _cube(xp, t):
    return t * t * t


def _exp(xp, t):
    return xp.exp(t)


def _exp_minus(xp, t):
    return xp.exp(-t)


def _log_positive(xp, t):
    return xp.log(xp.where(t > 0, t, xp.ones_like(t)))


def _matern3(xp, t):
    return (1 + t) * xp.exp(-t)


def _matern5(xp, t):
    return (1 + t + t * t / 3) * xp.exp(-t)


def _multiscale(xp, t):
    scales = (1 / 16, 1 / 4, 1, 4, 16)
    return sum(xp.exp(-scale * t) for scale in scales) / len(scales)


def _positive(xp, t):
    return xp.astype(t > 0, t.dtype)


def _ramp(xp, t):
    return xp.where(t > 0, t, xp.zeros_like(t))


def _sqrt(xp, t):
    return xp.sqrt(t)


def _square(xp, t):
    return t * t


FUNCTIONS: dict[str, Callable[[ModuleType, DeviceArray], DeviceArray]] = {
    "cos_turns": _cos_turns,
    "cube": _cube,
    "exp": _exp,
    "exp_minus": _exp_minus,
    "log_positive": _log_positive,
    "matern3": _matern3,
    "matern5": _matern5,
    "multiscale": _multiscale,
    "positive": _positive,
    "ramp": _ramp,
    "sqrt": _sqrt,
    "square": _square,
}


# ---------------------------------------------------------------------- the device in use


@dataclass(frozen=True)
class Accelerator:
    """A device and the namespace of its arrays.

    Parameters
    ----------
    xp, device : object
        As in the array API standard.
    name : str
        For the results row.
    double : bool
        Whether float64 is about as fast as float32.
    free : callable
        The free bytes of its memory.
    demanded : bool
        Whether it was asked for by name, so that what it lacks is an error.
    """

    xp: ModuleType
    device: object
    name: str
    double: bool
    free: Callable[[], int]
    demanded: bool = True

    def put(self, values: ArrayLike, dtype: DTypeLike = np.float64) -> DeviceArray:
        """A copy of a numpy array on the device, in that type."""
        return self.xp.asarray(np.array(values, dtype, order="C"), device=self.device)

    def get(self, array: DeviceArray) -> np.ndarray:
        """An array of the device as a float64 numpy array."""
        return np.asarray(numpy_of(array), np.float64)

    def placed(self, some: steps.Steps) -> steps.Steps:
        """The steps with their arrays on the device; UsageError for a step without arithmetic."""
        return tuple(self._placed(step) for step in some)

    def _placed(self, step: steps.Step) -> steps.Step:
        known = type(step) in STEPS and getattr(step, "name", "exp") in FUNCTIONS
        if not known:
            raise UsageError(f"{type(step).__name__} is a step that no GPU computes here")
        values = {one.name: getattr(step, one.name) for one in fields(step)}
        arrays = {k: self.put(v) for k, v in values.items() if isinstance(v, np.ndarray)}
        nested = {k: tuple(map(self.placed, v)) for k, v in values.items() if k == "parts"}
        return replace(step, **arrays, **nested)  # type: ignore[arg-type]

    def room_mb(self) -> float:
        """MiB for a matrix with its factor in place, beside the tiles of its computation."""
        tiles_mb = TEMPORARY * 8 * ENTRIES / 2**20
        return max(0.0, 0.95 * self.free() / 2**20 - tiles_mb)


_used: contextvars.ContextVar[Accelerator | str | None] = contextvars.ContextVar(
    "device", default=None
)


@functools.lru_cache(maxsize=1)
def found() -> Accelerator | None:
    """The GPU of PyTorch, else of CuPy; None if there is none."""
    for name in ("torch", "cupy"):
        with contextlib.suppress(ImportError):
            library = getattr(lazy, name)
            if library.cuda.is_available():
                return _gpu(name, library)
    return None


def _gpu(name: str, library: ModuleType) -> Accelerator:  # pragma: no cover
    if name == "torch":
        title = library.cuda.get_device_name()
        version = "".join(map(str, library.cuda.get_device_capability()))
        xp = lazy.array_api_torch
        device = library.device("cuda")
        library.backends.cuda.matmul.allow_tf32 = False

        def free() -> int:
            library.cuda.empty_cache()
            return library.cuda.mem_get_info()[0]

        # PyTorch loads its linear algebra at the first call, which must not be two threads' call
        library.linalg.inv(library.ones((1, 1), device=device))
    else:
        version = library.cuda.Device().compute_capability
        title = library.cuda.runtime.getDeviceProperties(0)["name"].decode()
        xp = lazy.array_api_cupy
        device = library.cuda.Device()
        pool = library.get_default_memory_pool()

        def free() -> int:
            pool.free_all_blocks()
            return library.cuda.runtime.memGetInfo()[0]

    double = version in ("60", "70", "80", "90", "100")
    return Accelerator(xp, device, f"{title}, {name} {library.__version__}", double, free)


@contextlib.contextmanager
def use(name: str | Accelerator, demanded: bool = True) -> Iterator[None]:
    """Inside the block, training and prediction use that device: cpu, cuda or auto.

    demanded: see `Accelerator`.

    Raises
    ------
    UsageError
        For cuda without a GPU.
    DataError
        If the device has no memory left.
    """
    chosen: Accelerator | str | None = None if name == "cpu" else name
    if name == "cuda":
        if (gpu := found()) is None:
            raise UsageError(
                "--device is cuda, but neither PyTorch nor CuPy finds a GPU; run pip install"
                " 'rfx-kernels[gpu]' on a machine with one, or use --device cpu"
            )
        chosen = replace(gpu, demanded=demanded)
    token = _used.set(chosen)
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise DataError(
            f"the memory of the GPU is full ({str(error).splitlines()[0]:.100}); use fewer rows or"
            " features, end its other programs, or use --device cpu"
        ) from error
    finally:
        _used.reset(token)


def current() -> Accelerator | None:
    """The accelerator in use; None for the processor."""
    accelerator = _used.get()
    return accelerator if isinstance(accelerator, Accelerator) else None


def parts(rows: int) -> int | None:
    """How many systems of so many rows the accelerator has room for; None for the processor."""
    accelerator = current()
    if accelerator is None:
        return None
    return max(1, int(accelerator.room_mb() * 2**20 // (TEMPORARY * 8 * rows**2)))


def for_rows(function: Callable[..., T]) -> Callable[..., T]:
    """A decorator of methods whose first argument is X (n, d): `auto` becomes a device for n
    rows.
    """

    @functools.wraps(function)
    def decided(self: object, X: Inputs, *rest: object, **named: object) -> T:
        if _used.get() != "auto":
            return function(self, X, *rest, **named)
        accelerator = found() if X.shape[0] >= MANY else None
        chosen = "cpu" if accelerator is None else replace(accelerator, demanded=False)
        with use(chosen):
            return function(self, X, *rest, **named)

    return decided


# ---------------------------------------------------------------------- primitives


def _space(array: DeviceArray) -> ModuleType:
    return lazy.array_api_compat.array_namespace(array)


def _zeros(shape: tuple[int, ...], like: DeviceArray) -> DeviceArray:
    device = lazy.array_api_compat.device(like)
    return _space(like).zeros(shape, dtype=like.dtype, device=device)


def tiles(count: int, width: int) -> list[slice]:
    """Slices of `count` rows of that width, each of at most ENTRIES entries."""
    return _ranges(count, max(1, ENTRIES // max(1, width)))


def _ranges(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def compare(X: DeviceArray, Y: DeviceArray, how: str) -> DeviceArray:
    """(n, m) comparisons of the rows of X (n, d) and Y (m, d); how: one of COMPARED."""
    xp = _space(X)
    if how == "l1":
        total = _zeros((X.shape[0], Y.shape[0]), X)
        for k in range(X.shape[1]):
            differences = X[:, k : k + 1] - Y[:, k][None, :]
            total += xp.abs(differences)
        return total
    values = X @ Y.T
    if how == "dot":
        return values
    own = xp.sum(X * X, axis=1)
    others = xp.sum(Y * Y, axis=1)
    lengths = own[:, None] + others[None, :]
    values *= -2.0
    values += lengths
    values = xp.where(values > ROUNDING * lengths, values, xp.zeros_like(values))
    return xp.sqrt(values) if how == "l2" else values


def carry_out(todo: steps.Steps, X: DeviceArray) -> DeviceArray:
    """The result of steps, whose arrays are on X's device, for the rows X (n, d)."""
    for step in todo:
        X = STEPS[type(step)](_space(X), X, step)
    return X


def _scale(xp, X, step):
    return (X - step.centre) * step.factor


def _linear(xp, X, step):
    return X @ step.matrix + step.offset


def _function(xp, X, step):
    return FUNCTIONS[step.name](xp, X)


def _clip(xp, X, step):
    return xp.maximum(xp.minimum(X, step.high), step.low)


def _round(xp, X, step):
    return xp.astype(xp.astype(X, xp.float32), xp.float64)


def _sign(xp, X, step):
    return 2 * xp.astype(X >= step.thresholds, X.dtype) - 1


def _compare(xp, X, step):
    return compare(X, step.rows, step.how)


def _product(xp, X, step):
    return math.prod(carry_out(part, X) for part in step.parts)


def _sum(xp, X, step):
    return sum(carry_out(part, X) for part in step.parts)


STEPS: dict[type[steps.Step], Callable[[ModuleType, DeviceArray, Any], DeviceArray]] = {
    steps.Scale: _scale,
    steps.Linear: _linear,
    steps.Function: _function,
    steps.Clip: _clip,
    steps.Round: _round,
    steps.Sign: _sign,
    steps.Compare: _compare,
    steps.Product: _product,
    steps.Sum: _sum,
}


@dataclass(frozen=True)
class KernelRows:
    """Rows on a device with which a kernel compares others.

    Parameters
    ----------
    accelerator : Accelerator
    rows : array, (m, d)
    how : str
        One of COMPARED.
    finishing : Steps
        From comparisons to kernel values, on the device.
    """

    accelerator: Accelerator
    rows: DeviceArray
    how: str
    finishing: steps.Steps

    def block(self, X: DeviceArray) -> DeviceArray:
        """(n, m) values of the rows X (n, d) of the device, in one tile."""
        return carry_out(self.finishing, compare(X, self.rows, self.how))

    def values(
        self, X: DeviceArray, dtype: DTypeLike = np.float64, factors: np.ndarray | None = None
    ) -> Values:
        """All values (n, m) of the rows X, a numpy array or one of the device, in float64 or
        float32; factors: multiply rows and columns, (n,).
        """
        X = self._on_device(X)
        xp = self.accelerator.xp
        shape = (X.shape[0], self.rows.shape[0])
        kind = getattr(xp, np.dtype(dtype).name)
        out = xp.empty(shape, dtype=kind, device=self.accelerator.device)
        factors = None if factors is None else self.accelerator.put(factors)
        for rows in tiles(*shape):
            part = self.block(X[rows, :])
            if factors is not None:
                part *= factors[rows][:, None] * factors[None, :]
            out[rows, :] = xp.astype(part, kind)
        return Values(self.accelerator, out)

    def times(self, X: DeviceArray, coef: np.ndarray) -> np.ndarray:
        """(n,) or (n, k) sums of the values of X times coefficients (m,) or (m, k)."""
        X = self._on_device(X)
        weights = self.accelerator.put(coef)
        # with no rows there are no parts
        parts = [np.zeros((0, *coef.shape[1:]))]
        for rows in tiles(X.shape[0], self.rows.shape[0]):
            values = self.block(X[rows, :])
            parts.append(self.accelerator.get(values @ weights))
        return np.concatenate(parts)

    def _on_device(self, X: DeviceArray) -> DeviceArray:
        return self.accelerator.put(X) if isinstance(X, np.ndarray) else X

    def outer_product(
        self,
        slope: Slope,
        coef: np.ndarray,
        rows: np.ndarray,
        weights: np.ndarray,
        full: bool,
    ) -> np.ndarray:
        """The sum over some of the rows, and the outputs, of the outer products of the gradients of
        f = sum_j coef_j k(x_j, .), each times its weight: (d, d), or its diagonal (d,).

        slope: maps a namespace and distances s to -k'(s) / s; unused for `l1`.
        """
        put = self.accelerator.put
        Z = self.rows
        xp, at, C, w = self.accelerator.xp, Z, put(coef), put(weights)
        if not np.array_equal(rows, np.arange(Z.shape[0])):
            at = xp.take(Z, xp.asarray(rows, device=self.accelerator.device), axis=0)
        total = _zeros((Z.shape[1], Z.shape[1]) if full else (Z.shape[1],), Z)
        for part in tiles(at.shape[0], Z.shape[0]):
            for G in self._gradients(slope, at[part, :], C):
                weighted = G * w[part][:, None]
                total += weighted.T @ G if full else xp.sum(weighted * G, axis=0)
        return self.accelerator.get(total)

    def _gradients(self, slope: Slope, at: DeviceArray, C: DeviceArray) -> Iterator[DeviceArray]:
        xp = self.accelerator.xp
        Z = self.rows
        if self.how == "l1":
            K = self.block(at)
            columns = []
            for k in range(Z.shape[1]):
                signs = xp.sign(at[:, k : k + 1] - Z[:, k][None, :])
                columns.append(-(K * signs) @ C)
            every = xp.stack(columns, axis=1)
            yield from (every[:, :, k] for k in range(C.shape[1]))
            return
        S = slope(xp, compare(at, Z, self.how))
        totals = S @ C
        for k in range(C.shape[1]):
            output = slice(k, k + 1)
            yield S @ (C[:, output] * Z) - totals[:, output] * at


class Values:
    """A matrix (n, m) on a device, whose products and solutions are numpy arrays."""

    def __init__(self, accelerator: Accelerator, array: DeviceArray) -> None:
        self.accelerator = accelerator
        self.array = array
        self.shape = tuple(array.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        return self.accelerator.get(self.array @ self._put(V))

    def __getitem__(self, index: np.ndarray | tuple[np.ndarray, ...]) -> Values:
        """The values of some rows, or of some rows and columns, as from numpy.ix_."""
        xp = self.accelerator.xp
        device = self.accelerator.device
        part = self.array
        for axis, numbers in enumerate(index if isinstance(index, tuple) else (index,)):
            part = xp.take(part, xp.asarray(numbers.ravel(), device=device), axis=axis)
        return Values(self.accelerator, part)

    def factored(
        self, shift: ArrayLike, dtype: DTypeLike = np.float64, copy: bool = True
    ) -> CholeskyFactor:
        """The factor of this symmetric matrix plus shift, a number or (n,), on the diagonal.

        dtype applies where float64 is slow. Without a copy the values are overwritten. Raises
        LinAlgError if there is no factor.
        """
        xp = self.accelerator.xp
        n = len(self)
        kind = xp.float64 if self.accelerator.double else getattr(xp, np.dtype(dtype).name)
        A = xp.astype(self.array, kind, copy=True) if copy else self.array
        added = self.accelerator.put(np.broadcast_to(shift, (n,)))
        for own in _ranges(n, PANEL):
            unit = xp.eye(own.stop - own.start, dtype=A.dtype, device=self.accelerator.device)
            A[own, own] += unit * xp.astype(added[own], A.dtype)
        return CholeskyFactor(self.accelerator, factor(A))

    def _put(self, V: np.ndarray) -> DeviceArray:
        return self.accelerator.xp.astype(self.accelerator.put(V), self.array.dtype)


class CholeskyFactor(Values):
    """L of A = L L', in the lower triangle."""

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A^-1 B for B (n,) or (n, k)."""
        found = backward(self.array, forward(self.array, self._put(B.reshape(len(B), -1))))
        return self.accelerator.get(found).reshape(B.shape)

    def inverse_diagonal(self, last: int | None = None) -> np.ndarray:
        """The `last` entries, by default all (n,), of the diagonal of A^-1: the squared lengths of
        the columns of L^-1.
        """
        L = self.array
        xp = self.accelerator.xp
        parts = []
        count = len(self) if last is None else last
        for own in _ranges(len(self), PANEL):
            if own.stop <= len(self) - count:
                continue
            width = own.stop - own.start
            B = _zeros((len(self) - own.start, width), L)
            B[:width, :] = xp.eye(width, dtype=L.dtype, device=self.accelerator.device)
            columns = forward(L[own.start :, own.start :], B)
            parts.append(self.accelerator.get(xp.sum(columns * columns, axis=0)))
        return np.concatenate(parts)[-count:]


def factor(A: DeviceArray) -> DeviceArray:
    """A (n, n) with its Cholesky factor in the lower triangle, which it overwrites by panels.

    Raises numpy's LinAlgError if A is not positive definite.
    """
    xp = _space(A)
    panels = _ranges(A.shape[0], PANEL)
    for place, own in enumerate(panels):
        try:
            L = xp.linalg.cholesky(A[own, own])
        except Exception as error:
            if "LinAlgError" not in type(error).__name__:
                raise
            raise np.linalg.LinAlgError("the matrix is not positive definite") from None
        # CuPy raises no error
        if not bool(xp.isfinite(xp.sum(L[-1, :]))):
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        A[own, own] = L
        rest = panels[place + 1 :]
        for rows in rest:
            A[rows, own] = _triangular(L, A[rows, own].T).T
        for columns in rest:
            A[columns.start :, columns] -= A[columns.start :, own] @ A[columns, own].T
    return A


def forward(L: DeviceArray, B: DeviceArray) -> DeviceArray:
    """L^-1 B for B (n, k), which it overwrites."""
    for own in _ranges(L.shape[0], PANEL):
        right = B[own, :] - L[own, : own.start] @ B[: own.start, :]
        B[own, :] = _triangular(L[own, own], right)
    return B


def backward(L: DeviceArray, B: DeviceArray) -> DeviceArray:
    """L'^-1 B for B (n, k), which it overwrites."""
    for own in reversed(_ranges(L.shape[0], PANEL)):
        right = B[own, :] - L[own.stop :, own].T @ B[own.stop :, :]
        B[own, :] = _triangular(L[own, own].T, right, upper=True)
    return B


def _triangular(T: DeviceArray, B: DeviceArray, upper: bool = False) -> DeviceArray:
    """T^-1 B; the standard has no solver for triangles, but PyTorch has."""
    linalg = _space(T).linalg
    if hasattr(linalg, "solve_triangular"):
        return linalg.solve_triangular(T, B, upper=upper)
    return linalg.solve(T, B)


def add_gram(G: DeviceArray, Z: DeviceArray) -> None:
    """G (D, D) <- G + Z'Z for Z (n, D), in the lower triangle and the tiles of the diagonal."""
    for own in _ranges(Z.shape[1], PANEL):
        product = Z[:, own.start :].T @ Z[:, own]
        G[own.start :, own] += _space(Z).astype(product, G.dtype)


# ---------------------------------------------------------------------- arrays of the user


def numpy_of(X: T) -> T | np.ndarray:
    """The array of one of LIBRARIES, on any device, as a numpy array; anything else unchanged."""
    if not _foreign(X):
        return X
    return np.asarray(X.cpu() if hasattr(X, "cpu") else X.get() if hasattr(X, "get") else X)


def like_rows(function: Callable[..., Numbers]) -> Callable[..., DeviceArray]:
    """A decorator of methods of rows X: numbers come out in the library of X, and on its device."""

    @functools.wraps(function)
    def converted(self: object, X: DeviceArray, **named: object) -> DeviceArray:
        values = function(self, X, **named)
        if isinstance(values, tuple):
            return tuple(placed(one, X) for one in values)
        return placed(values, X)

    def placed(values: np.ndarray, X: DeviceArray) -> DeviceArray:
        if not _foreign(X) or values.dtype.kind not in "fiub":
            return values
        return _space(X).asarray(values, device=lazy.array_api_compat.device(X))

    return converted


def _foreign(X: object) -> bool:
    return type(X).__module__.partition(".")[0] in LIBRARIES
