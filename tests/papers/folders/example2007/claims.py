"""The claims of the example paper."""

from rfx.reporting.claims import Claim
from rfx.reporting.effects import difference, exponent

CLAIMS = [
    Claim(
        "error-falls",
        "Figure 1",
        "The test error falls as the number of features grows.",
        "exponent of D in the test error",
        "table1",
        exponent("wrong", "n_features", places=2),
        rows={"method": "rf"},
        most=0.0,
        settings="ours",
    ),
    Claim(
        "close-to-exact",
        "Table 1",
        "With 256 features the error is that of the exact kernel.",
        "test error of random features less that of the exact kernel, in points",
        "table1",
        difference("wrong", {"n_features": 256}, {"method": "kernel"}, scale=100),
        most=1.0,
        equivalence=True,
        settings="ours",
    ),
]
