"""`kernel`: the exact kernel machine, ridge for regression and a support vector machine for classes (eq. 1 of Yen et al.).

With squared loss classes are fitted by ridge, too, one against the others as targets +-1 (Wu et al. 2016).
"""

import numpy as np

from rfx.errors import UsageError
from rfx.methods.expansion import OPTIONS, ExpansionMethod
from rfx.methods.options import DTYPE, LAM, LOSS, SOLVER, TOL
from rfx.options import Option
from rfx.solvers.kernel.ridge import solve_kernel_ridge
from rfx.solvers.kernel.svm import solve_kernel_svm
from rfx.solvers.published.libsvm import solve_libsvm


class Kernel(ExpansionMethod):
    """lam/2 ||f||^2 + sum L(f(x) [+ b], y) over the kernel's Hilbert space; the model is the support vectors."""

    name = "kernel"
    summary = "the exact kernel machine: ridge regression or a support vector machine"
    options = (
        *OPTIONS,
        DTYPE.but(default="float64"),
        LAM,
        LOSS.but(choices=("squared", "squared_hinge", "hinge")),
        Option("bias", bool, "A free bias b, as LIBSVM has it (classification); the paper's objective has none."),
        SOLVER.but(choices=SOLVER.choices | {"libsvm": "LIBSVM, in a child process"}),
        TOL.but(help=f"{TOL.help} The `-e` of LIBSVM."),
    )

    def _fit(self, X, Y):
        p = self.params
        self.lam = p["lam"]
        self.kernel_params = self._learn_kernel(X, Y, self.lam)
        if self.loss.name == "squared":
            solution = self._ridge(X, Y)
            self.intercept = np.zeros(Y.shape[1])
        else:
            solution = self._svm(X, Y)
        self._keep_nonzero(X, np.asarray(solution.coef).reshape(X.shape[0], -1))
        return solution

    def _ridge(self, X, Y):
        p = self.params
        if p["bias"]:
            raise UsageError("--bias is for classification by a support vector machine; kernel ridge has none (Yen et al. 2014, eq. 1)")
        if p["solver"] != "rfx":
            raise UsageError(f"--solver is {p['solver']}, which has no ridge regression here; choose rfx")
        return solve_kernel_ridge(
            p["kernel"],
            X,
            self.kernel_params,
            Y,
            self.lam,
            deadline=self.deadline,
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
                    p["kernel"],
                    X,
                    y,
                    self.kernel_params,
                    self.lam,
                    self.loss,
                    seed=p["seed"],
                    timeout=self._remaining(),
                    **self._given("tol"),
                )
            else:
                solution = solve_kernel_svm(
                    p["kernel"],
                    X,
                    y,
                    self.kernel_params,
                    self.lam,
                    self.loss.name,
                    bias=bias,
                    deadline=self.deadline,
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
