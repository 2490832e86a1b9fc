"""`random_state`, scikit-learn's name for a seed, as an alternative to `seed` in every estimator
that has one.

scikit-learn reads the parameters of an estimator from its constructor and requires that they are
stored unchanged. So `random_state` must be a separate parameter. It is added here to the signature
and docstring of each class, instead of in some sixty constructors.
"""

import functools
import inspect
import numbers
import re
import warnings
from typing import Any

import numpy as np

from rfx.errors import RfxWarning

NAME = "random_state"
_MOST = 2**31  # drawn seeds are below this number
_ENTRY = """\
{0}random_state : int, numpy RandomState or Generator, default=None
{0}    scikit-learn's name for seed, which it overrides if given; a generator draws the seed of
{0}    each fit.
"""
_OF_SEED = re.compile(r"^( *)seed : int, default=0\n(?:\1 +\S.*(?:\n|$))+", re.M)


class Seeded:
    """Adds the parameter `random_state` to each subclass whose constructor has `seed`.

    Attributes
    ----------
    random_state : int, RandomState, Generator or None
        None for an estimator without a seed, and for one from an older pickle.
    """

    random_state: Any = None
    _drawn: int | None = None

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own = cls.__dict__.get("__init__")
        if own is None or "seed" not in inspect.signature(own).parameters:
            return
        cls.__init__ = _taking(own)  # type: ignore[method-assign]
        cls.__doc__ = _documented(cls.__doc__)

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


def _taking(init: Any) -> Any:
    """A constructor that accepts `random_state` after `seed` and stores it."""
    known = inspect.signature(init)
    kind = inspect.Parameter.KEYWORD_ONLY
    more = inspect.Parameter(NAME, kind, default=None, annotation=Any)
    parameters = []
    for parameter in known.parameters.values():
        parameters += [parameter, more] if parameter.name == "seed" else [parameter]

    @functools.wraps(init)
    def __init__(self: Any, *, random_state: Any = None, **given: Any) -> None:
        init(self, **given)
        self.random_state = random_state

    made: Any = __init__
    made.__signature__ = known.replace(parameters=parameters)
    return made


def _documented(text: str | None) -> str | None:
    """The docstring of a class, with an entry for `random_state` after that of `seed`."""
    if text is None:
        return None
    return _OF_SEED.sub(lambda found: found[0].rstrip("\n") + "\n" + _ENTRY.format(found[1]), text)
