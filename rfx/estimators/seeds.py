"""`random_state`, scikit-learn's name for a seed, as an alternative to `seed` in every estimator
that has one.

scikit-learn requires that the parameters of an estimator are stored unchanged. So `random_state`
must be a separate parameter.
"""

import numbers
import warnings
from typing import Any

import numpy as np

from rfx.errors import RfxWarning

_MOST = 2**31  # drawn seeds are below this number


class Seeded:
    """The seed of a fit, from the parameters `seed` and `random_state`."""

    # for an estimator from an older pickle
    random_state: Any = None
    _drawn: int | None = None

    def _begin(self) -> None:
        """Draw the seed of the current fit if `random_state` is a generator."""
        given = self.random_state
        if isinstance(given, np.random.RandomState):
            self._drawn = int(given.randint(_MOST))
        elif isinstance(given, np.random.Generator):
            self._drawn = int(given.integers(_MOST))

    def _seed(self) -> Any:
        """The seed of this fit.

        Raises
        ------
        ValueError
            For an invalid `random_state`.
        """
        given, seed = self.random_state, getattr(self, "seed", 0)
        if given is None:
            return seed
        if seed != 0:
            warnings.warn(
                f"seed={seed!r:.40} is not used, because random_state is also set",
                RfxWarning,
                stacklevel=2,
            )
        if isinstance(given, (np.random.RandomState, np.random.Generator)):
            if self._drawn is None:
                self._begin()
            return self._drawn
        if isinstance(given, numbers.Integral) and not isinstance(given, bool) and int(given) >= 0:
            return int(given)
        raise ValueError(
            f"random_state is {given!r:.80}; it must be None, an integer of 0 or more, or a numpy"
            " RandomState or Generator"
        )
