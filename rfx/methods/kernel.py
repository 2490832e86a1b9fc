"""`kernel`: the exact kernel machine, ridge for regression and a support vector machine for classes (eq. 1 of Yen et al.).

With squared loss classes are fitted by ridge, too, one against the others as targets +-1 (Wu et al. 2016); with logistic loss by
kernel logistic regression. Equation 1 has no bias, and neither have these two; a support vector machine has one unless `--bias
false` is given, because LIBSVM, by which the paper trained it, always has.
"""

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.methods import weights
from rfx.methods.expansion import OPTIONS, ExpansionMethod
from rfx.methods.options import CHOSEN_LAM, DTYPE, LOSS, SOLVER, TOL
from rfx.methods.validation import GAMMA_FACTORS, LAMS
from rfx.methods.watch import teller, watcher
from rfx.operators.kernel import KernelMatrix, ScaledKernel
from rfx.options import Option
from rfx.solvers.kernel.newton import solve_kernel_newton
from rfx.solvers.kernel.ridge import solve_kernel_ridge
from rfx.solvers.kernel.svm import solve_kernel_svm
from rfx.solvers.published.libsvm import solve_libsvm

# Validation fits this many rows at most, for each fit takes the square of their number.
ROWS = 5000


class Kernel(ExpansionMethod):
    """lam/2 ||f||^2 + sum L(f(x) [+ b], y) over the kernel's Hilbert space; the model is the support vectors."""

    name = "kernel"
    watches = True
    summary = "the exact kernel machine: ridge regression or a support vector machine"
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    held_out_rows = ROWS
    weighted = True
    options = (
        *OPTIONS,
        DTYPE.but(default="float64"),
        CHOSEN_LAM.but(help=f"{CHOSEN_LAM.help} Validation of this or of gamma fits to {ROWS:,} rows at most."),
        LOSS.but(choices=("squared", "squared_hinge", "hinge", "logistic")),
        Option("bias", bool, "A free bias b, as LIBSVM has it (classification); the paper's objective has none."),
        SOLVER.but(choices=SOLVER.choices | {"libsvm": "LIBSVM, in a child process"}),
        TOL.but(help=f"{TOL.help} The `-e` of LIBSVM."),
    )

    def _fit(self, X, Y):
        p = self.params
        self.kernel_params = self._learn_kernel(X)
        Y, loss = weights.targets(Y, self.loss, self.weights)
        K, factors = KernelMatrix(p["kernel"], X, self.kernel_params), 1.0
        if loss.name in ("hinge", "squared_hinge"):
            solution = self._svm(K, Y, loss)
        else:
            self._check_without_bias()
            if loss.name == "squared" and self.weights is not None:
                factors = np.sqrt(self.weights)
                K = ScaledKernel(p["kernel"], X, self.kernel_params, factors)
            solve = solve_kernel_ridge if loss.name == "squared" else solve_kernel_newton

            def decide(rows):
                return lambda coef: kernels.decision(p["kernel"], self.kernel_params, X, (coef.T * factors).T, rows)

            solution = solve(K, Y, self.lam, loss, self._budget(), callback=watcher(self, decide, Y.shape[1]))
            self.intercept = np.zeros(Y.shape[1])
        self.norm = self._norm(solution, K, Y, loss)
        self._keep_nonzero(X, (np.asarray(solution.coef).reshape(X.shape[0], -1).T * factors).T)
        return solution

    def _norm(self, solution, K, Y, loss) -> float | None:
        """The root of sum_k ||f_k||_H^2; None without a duality gap.

        Where the gap is that of the dual point -lam alpha, it needs no pass over kernel values: the dual, objective - gap, is
        -sum L*(-lam alpha) - lam/2 ||f||^2. Newton's gap may be of another point.
        """
        if solution.certificate is None or solution.certificate.kind != "gap":
            return None
        if loss.name == "logistic":
            return float(np.sqrt(max(0.0, np.sum(solution.coef * K.matvec(np.asarray(solution.coef))))))
        dual = solution.objective - solution.gap
        conjugates = float(loss.conjugate(-self.lam * np.asarray(solution.coef).reshape(Y.shape), Y).sum())
        return float(np.sqrt(max(0.0, 2 * (-conjugates - dual) / self.lam)))

    def _describe(self):
        # ||f||, with which the objective tells the sum of losses, too (Yen et al. 2014, Figure 1 and Corollary 1)
        return super()._describe() | ({} if self.norm is None else {"norm": self.norm})

    def _check_without_bias(self):
        p, what = self.params, "kernel ridge" if self.loss.name == "squared" else "kernel logistic regression"
        if p["bias"]:
            raise UsageError(f"--bias is for classification by a support vector machine; {what} has none (Yen et al. 2014, eq. 1)")
        if p["solver"] != "rfx":
            raise UsageError(f"--solver is {p['solver']}, which has no {what} here; choose rfx")

    def _svm(self, K, Y, loss):
        p = self.params
        bias = True if p["bias"] is None else p["bias"]
        if self.held_out is not None:
            raise UsageError("a support vector machine's bias is known at its end only, so that it has no curve; leave that away")
        if p["solver"] == "libsvm" and not bias:
            raise UsageError("--solver libsvm always has a bias; set --bias true or choose --solver rfx")
        intercepts = []

        def solve(y, tell):
            if p["solver"] == "libsvm":
                solution = solve_libsvm(K, y, self.lam, loss, self._budget(), seed=p["seed"])
            else:
                solution = solve_kernel_svm(K, y, self.lam, loss, self._budget(), callback=tell, bias=bias)
            intercepts.append(solution.intercept)
            return solution

        solution = self._each_output(Y, solve, teller(self, Y.shape[1]))
        self.intercept = np.array(intercepts)
        return solution
