"""The claims of the example paper."""

from rfx.reporting.claims import Claim
from rfx.reporting.effects import Effects, Frame, difference, exponent


@Claim(
    where="Figure 1",
    says="The test error falls as the number of features grows.",
    effect="exponent of D in the test error",
    plan="table1",
    rows={"method": "rf"},
    most=0.0,
    settings="ours",
)
def error_falls(table: Frame) -> Effects:
    return exponent(table, "wrong", "n_features", places=2)


@Claim(
    where="Table 1",
    says="With 256 features the error is that of the exact kernel.",
    effect="test error of random features less that of the exact kernel, in points",
    plan="table1",
    most=1.0,
    equivalence=True,
    settings="ours",
)
def close_to_exact(table: Frame) -> Effects:
    return difference(table, "wrong", {"n_features": 256}, {"method": "kernel"}, scale=100)


CLAIMS = [error_falls, close_to_exact]
