"""Shared by the methods with kernel functions: f(x) = sum_i coef_i k(s_i, x) + intercept."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from rfx import kernels
from rfx import steps as told
from rfx.errors import DataError
from rfx.fitting.candidates import GAMMA_FACTORS, LAMS, SearchSpace
from rfx.fitting.held_out import evenly
from rfx.fitting.method import Method, TunedMethod, scalars
from rfx.fitting.options import (
    DTYPE,
    chosen_kernel,
)
from rfx.fitting.preprocessing import stays_sparse
from rfx.kernels.gradients import outer_product
from rfx.model import Array

# For a model of pairs of classes.
PAIRS_COEF, PAIRS_INTERCEPT = Array("f", "vectors pairs"), Array("f", "pairs")
# Rows over which squared gradients are averaged.
GRADIENT_ROWS = 300
# Minimum number of sparse rows that are dense at a time when kernel values are computed
# (rfx.kernels.blocks).
SPARSE_ROWS = 128

TRIED_KERNELS = ("laplacian-l2", "laplacian")


@dataclass(frozen=True)
class ExpansionModel:
    """f(x) = sum_i coef_i k(s_i, x) + intercept.

    Parameters
    ----------
    kernel : str
    params : dict
        The kernel's parameters.
    support : array or CSR matrix, (m, d)
        The scaled rows s_i.
    coef : array, (m, k)
    intercept : array, (k,)
    dtype : type or None
        The type of kernel values in predictions; None for that of the rows.
    n_classes : int
        For one machine per pair of classes; 0 if each output has its own machine.

    Notes
    -----
    A pair's value for its first class is f, limited to [-1, 1], and -f for the second. A class gets
    the mean of its pairs' values.
    """

    kernel: str
    params: dict[str, Any]
    support: Any
    coef: np.ndarray
    intercept: np.ndarray
    dtype: Any = None
    n_classes: int = 0

    @classmethod
    def of(
        cls,
        kernel: str,
        params: dict[str, Any],
        rows: Any,
        coef: Any,
        intercept: np.ndarray,
        dtype: Any = None,
        n_classes: int = 0,
    ) -> ExpansionModel:
        """The model of the rows with a nonzero coefficient in any output."""
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        return cls(kernel, params, rows[used], coef[used], intercept, dtype, n_classes)

    def decision(self, X: Any) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        found: np.ndarray = np.zeros((X.shape[0], len(self.intercept))) + self.intercept
        if len(self.coef):
            values = kernels.decision(
                self.kernel, self.params, self.support, self.coef, X, dtype=self.dtype
            )
            found = np.asarray(values, np.float64).reshape(X.shape[0], -1) + self.intercept
        return np.clip(found, -1.0, 1.0) @ of_pairs(self.n_classes) if self.n_classes else found

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        found: told.Steps = told.constant(self.support.shape[1], self.intercept)
        if len(self.coef):
            found = *self.kernel_steps(), told.linear(self.coef, self.intercept)
        if self.n_classes:
            ones = np.ones(len(self.intercept))
            found += (told.Clip(-ones, ones), told.linear(of_pairs(self.n_classes)))
        return found

    def kernel_steps(self) -> told.Steps:
        """The computation steps from a row to its kernel values with the support."""
        dense = self.support.toarray() if sp.issparse(self.support) else self.support
        return kernels.get_kernel(self.kernel).steps(dense, self.params)

    def arrays(self) -> dict[str, np.ndarray]:
        found = {f"kernel_{key}": np.asarray(value) for key, value in self.params.items()}
        if isinstance(self.support, np.ndarray):
            found["support"] = self.support
        else:
            rows = self.support.tocsr()
            found |= {
                f"support_{name}": getattr(rows, name) for name in ("data", "indices", "indptr")
            }
        return found | {"coef": self.coef, "intercept": self.intercept}

    def header(self) -> dict[str, Any]:
        found: dict[str, Any] = {"n_inputs": self.support.shape[1]}
        return found | ({"pairs": True} if self.n_classes else {})

    def describe(self) -> dict[str, Any]:
        return {
            "n_features": None,
            "model_size": len(self.coef),
            "kernel_params": scalars(self.params),
        }

    @classmethod
    def restored(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        method: Method,
        dtype: Any = None,
    ) -> ExpansionModel:
        """The model of a file's header and arrays."""
        kernel = kernels.get_kernel(method.kernel)
        missing = {key for key in kernel.optional if f"kernel_{key}" not in arrays}
        values = {key: arrays[f"kernel_{key}"] for key in kernel.parameters if key not in missing}
        params = {key: float(v) if v.ndim == 0 else v for key, v in values.items()}
        coef = arrays["coef"]
        if "support" in arrays:
            support = arrays["support"]
        else:
            parts = tuple(arrays[f"support_{name}"] for name in ("data", "indices", "indptr"))
            support = sp.csr_matrix(parts, shape=(len(coef), header["n_inputs"]))
        n_classes = len(arrays["classes"]) if header.get("pairs") else 0
        if n_classes and len(arrays["intercept"]) != len(pairs(n_classes)):
            raise DataError(
                f"its {len(arrays['intercept'])} machines do not match the pairs of classes"
            )
        return cls(method.kernel, params, support, coef, arrays["intercept"], dtype, n_classes)


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of classes, each with the lower number first."""
    return list(itertools.combinations(range(n_classes), 2))


def of_pairs(n_classes: int) -> np.ndarray:
    """(pairs, classes), the matrix from the values of pairs to the means of the classes."""
    found = np.zeros((len(pairs(n_classes)), n_classes))
    for place, (first, second) in enumerate(pairs(n_classes)):
        found[place, first], found[place, second] = 1.0, -1.0
    return found / (n_classes - 1)


class ExpansionMethod(TunedMethod):
    """A method whose model is an `ExpansionModel`."""

    kernel: str = chosen_kernel(
        lambda: [name for name, own in kernels.KERNELS.items() if own.metric],
        TRIED_KERNELS,
        "gaussian",
    )()
    dtype: str = DTYPE()

    space = SearchSpace({"gamma": GAMMA_FACTORS, "lam": LAMS}, kernels=TRIED_KERNELS)
    arrays: ClassVar[dict[str, Array]] = {
        "coef": Array("f", "vectors outputs"),
        "intercept": Array("f", "outputs"),
        "support": Array("f", "vectors inputs"),
        # or as CSR
        "support_data": Array("f", "entries"),
        "support_indices": Array("i", "entries", places="inputs"),
        "support_indptr": Array("i", "vectors+1", cuts="entries"),
    }

    def vectors(self, X: Any) -> int:
        # kernels make sparse rows dense a few at a time
        return min(X.shape[0], SPARSE_ROWS) if stays_sparse(X, self.scaling) else X.shape[0]

    def saved_arrays(self, header: dict[str, Any]) -> dict[str, Array]:
        if header["n_inputs"] != header["info"]["n_inputs"]:
            raise DataError("its rows have another number of inputs")
        parameters = kernels.get_kernel(header["params"]["kernel"]).parameters
        found = self.arrays | {f"kernel_{name}": array for name, array in parameters.items()}
        if header.get("pairs"):
            found |= {"coef": PAIRS_COEF, "intercept": PAIRS_INTERCEPT}
        return found

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> ExpansionModel:
        return ExpansionModel.restored(header, arrays, self)

    def gradient_squares(self, model: Any) -> np.ndarray | None:
        if type(model) is not ExpansionModel or not len(model.coef) or sp.issparse(model.support):
            return None
        if model.n_classes or not kernels.get_kernel(model.kernel).has_gradient:
            return None
        rows = evenly(len(model.coef), GRADIENT_ROWS)
        return outer_product(model.kernel, model.support, model.coef, model.params, rows, False)
