"""What kernel and nystrom share: a model that is a sum of kernel functions, f(x) = sum_i coef_i k(s_i, x) + intercept."""

import numpy as np
import scipy.sparse as sp

from rfx import kernels
from rfx.errors import DataError
from rfx.methods import width
from rfx.methods.base import Method
from rfx.methods.options import CHOSEN_GAMMA, DTYPE, KERNEL, MAX_ITER, MAX_MEMORY
from rfx.model import Array

# Sparse rows that are dense at a time, at least, where kernel values are made (see rfx.kernels.blocks).
SPARSE_ROWS = 128

OPTIONS = (
    KERNEL.but(choices=lambda: [name for name, kernel in kernels.KERNELS.items() if kernel.metric]),
    CHOSEN_GAMMA,
    MAX_ITER,
    DTYPE,
    MAX_MEMORY,
)


class ExpansionMethod(Method):
    """self.support (m, d) rows or CSR, self.coef (m, k), self.intercept (k,), self.kernel_params; the kernel is an option.

    decision_dtype: type of the kernel values of a prediction, None for the type of the rows.
    """

    decision_dtype = None
    arrays = Method.arrays | {
        "coef": Array("f", "vectors outputs"),
        "intercept": Array("f", "outputs"),
        "support": Array("f", "vectors inputs"),
        # or as CSR
        "support_data": Array("f", "entries"),
        "support_indices": Array("i", "entries", places="inputs"),
        "support_indptr": Array("i", "vectors+1", cuts="entries"),
    }

    @classmethod
    def saved_arrays(cls, header):
        if header["n_inputs"] != header["info"]["n_inputs"]:
            raise DataError("its rows are of another number of inputs")
        parameters = kernels.get_kernel(header["params"]["kernel"]).parameters
        return cls.arrays | {f"kernel_{name}": array for name, array in parameters.items()}

    def _vectors(self, X):
        # kernels make sparse rows dense a few at a time
        return min(X.shape[0], SPARSE_ROWS) if width.stays_sparse(X, self.params["scaling"]) else X.shape[0]

    def _decide(self, X):
        if not len(self.coef):
            return np.zeros((X.shape[0], len(self.intercept))) + self.intercept
        values = kernels.decision(self.params["kernel"], self.kernel_params, self.support, self.coef, X, dtype=self.decision_dtype)
        return np.asarray(values, np.float64).reshape(X.shape[0], -1) + self.intercept

    def _describe(self):
        params = {key: value for key, value in self.kernel_params.items() if np.isscalar(value)}
        return {"lam": self.lam, "n_features": None, "model_size": len(self.coef), "kernel_params": params}

    def _keep_nonzero(self, rows, coef):
        """The model of the rows with a non-zero coefficient in any output."""
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        self.support, self.coef = rows[used], coef[used]

    def _state(self):
        arrays = {f"kernel_{key}": np.asarray(value) for key, value in self.kernel_params.items()}
        support = {"support": self.support}
        if not isinstance(self.support, np.ndarray):
            part = self.support.tocsr()
            support = {"support_data": part.data, "support_indices": part.indices, "support_indptr": part.indptr}
        return {"n_inputs": self.support.shape[1]}, arrays | support | {"coef": self.coef, "intercept": self.intercept}

    def _restore(self, header, arrays):
        kernel = kernels.get_kernel(self.params["kernel"])
        missing = {key for key in kernel.optional if f"kernel_{key}" not in arrays}
        params = {key: arrays[f"kernel_{key}"] for key in kernel.parameters if key not in missing}
        self.kernel_params = {key: float(value) if value.ndim == 0 else value for key, value in params.items()}
        self.coef, self.intercept = arrays["coef"], arrays["intercept"]
        if "support" in arrays:
            self.support = arrays["support"]
        else:
            parts = tuple(arrays[f"support_{name}"] for name in ("data", "indices", "indptr"))
            self.support = sp.csr_matrix(parts, shape=(len(self.coef), header["n_inputs"]))
