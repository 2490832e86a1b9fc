"""`kernel`: the exact kernel machine, ridge for regression and a support vector machine for classes (eq. 1 of Yen et al.)."""

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.methods import gamma
from rfx.methods.base import Method
from rfx.solvers.kernel_ridge import solve_kernel_ridge
from rfx.solvers.kernel_svm import solve_kernel_svm
from rfx.solvers.libsvm import solve_libsvm


class Kernel(Method):
    """lam/2 ||f||^2 + sum L(f(x) [+ b], y) over the kernel's Hilbert space; the model is the support vectors."""

    name = "kernel"
    summary = "the exact kernel machine: ridge regression or a support vector machine"
    options = {
        "kernel": "gaussian", "gamma": "paper", "lam": 1.0, "loss": None, "bias": None, "solver": "rfx", "tol": None,
        "max_iter": None, "dtype": "float64", "max_memory": None,
    }
    words = {"lam": (), "solver": ("rfx", "libsvm")}

    def _fit(self, X, Y):
        p = self.params
        self.lam = p["lam"]
        self.kernel_params = gamma.resolve(p["kernel"], p["gamma"], X, Y, self.lam, p["seed"])
        if self.task == "regression":
            solution = self._ridge(X, Y)
            self.intercept = np.zeros(Y.shape[1])
        else:
            solution = self._svm(X, Y)
        coef = np.asarray(solution.coef).reshape(X.shape[0], -1)
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        self.support, self.coef = X[support], coef[support]
        return solution

    def _ridge(self, X, Y):
        p = self.params
        if p["bias"]:
            raise UsageError("--bias is for classification; kernel ridge regression has none (Yen et al. 2014, eq. 1)")
        if p["solver"] != "rfx":
            raise UsageError(f"--solver is {p['solver']}, which has no ridge regression here; choose rfx")
        return solve_kernel_ridge(
            p["kernel"], X, self.kernel_params, Y, self.lam, deadline=self.deadline,
            **self._given("tol", "max_iter", "max_memory"),
        )

    def _svm(self, X, Y):
        p = self.params
        bias = True if p["bias"] is None else p["bias"]
        if p["solver"] == "libsvm" and not bias:
            raise UsageError("--solver libsvm always has a bias; set --bias true or choose --solver rfx")
        intercepts = []

        def solve(y):
            if p["solver"] == "libsvm":
                solution = solve_libsvm(
                    p["kernel"], X, y, self.kernel_params, self.lam, self.loss, seed=p["seed"], timeout=self._remaining(),
                    **self._given("tol"),
                )
            else:
                solution = solve_kernel_svm(
                    p["kernel"], X, y, self.kernel_params, self.lam, self.loss.name, bias=bias, deadline=self.deadline,
                    **self._given("tol", "max_iter", "max_memory"),
                )
            intercepts.append(solution.intercept)
            return solution

        solution = self._each_output(Y, solve)
        self.intercept = np.array(intercepts)
        return solution

    def _given(self, *names):
        """The solver's keyword arguments for the options that are set."""
        rename = {"max_memory": "max_memory_mb"}
        return {rename.get(name, name): self.params[name] for name in names if self.params[name] is not None}

    def _decide(self, X):
        if not len(self.coef):
            return np.zeros((X.shape[0], len(self.intercept))) + self.intercept
        values = kernels.decision(self.params["kernel"], self.kernel_params, self.support, self.coef, X)
        return np.asarray(values, np.float64).reshape(X.shape[0], -1) + self.intercept

    def _describe(self):
        params = {key: value for key, value in self.kernel_params.items() if np.isscalar(value)}
        return {"lam": self.lam, "n_features": None, "model_size": len(self.coef), "kernel_params": params}

    def _state(self):
        arrays = {f"kernel_{key}": np.asarray(value) for key, value in self.kernel_params.items()}
        support = {"support": self.support}
        if not isinstance(self.support, np.ndarray):
            part = self.support.tocsr()
            support = {"support_data": part.data, "support_indices": part.indices, "support_indptr": part.indptr}
        return {"n_inputs": self.support.shape[1]}, arrays | support | {"coef": self.coef, "intercept": self.intercept}

    def _restore(self, header, arrays):
        import scipy.sparse as sp

        params = {key[7:]: value for key, value in arrays.items() if key.startswith("kernel_")}
        self.kernel_params = {key: float(value) if value.ndim == 0 else value for key, value in params.items()}
        self.coef, self.intercept = arrays["coef"], arrays["intercept"]
        if "support" in arrays:
            self.support = arrays["support"]
        else:
            parts = tuple(arrays[f"support_{name}"] for name in ("data", "indices", "indptr"))
            self.support = sp.csr_matrix(parts, shape=(len(self.coef), header["n_inputs"]))
