"""numba's njit with an optional disk cache: a missing folder, a full disk or a damaged file never
stops a command.
"""

import fcntl
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import numba
from numba.core import caching

log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[F], F]:
    """Like numba.njit; with `cache=True` compiled code is stored below NUMBA_CACHE_DIR if possible,
    and otherwise compiled again.
    """
    keep = options.pop("cache", False)

    def decorate(function: F) -> F:
        dispatcher = numba.njit(**options)(function)
        # not if the user has disabled numba's compiler
        if keep and hasattr(dispatcher, "enable_caching"):
            try:
                dispatcher._cache = _Cache(function)
            except (OSError, RuntimeError):  # there is no writable folder
                _warn("no folder is writable")
        return dispatcher

    return decorate


@cache
def _warn(reason: str) -> None:
    """Warn, once per process, that nothing is cached."""
    log.warning(
        "compiled code can't be cached in %s (%s), so every command compiles again; RFX_CACHE"
        " names another folder",
        os.environ.get("NUMBA_CACHE_DIR", "the cache"),
        reason,
    )


class _Cache(caching.FunctionCache):
    """The compiled code of one function."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may raise anything
            self._forget()
            return None

    def save_overload(self, sig, data):
        try:
            # one process at a time: otherwise two signatures could get the same file
            with open(self._cache_path + "/lock", "wb") as lock:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
                super().save_overload(sig, data)
        except Exception as error:  # a full disk, a damaged index
            self._forget()
            if isinstance(error, OSError):
                _warn(error.strerror)

    def _forget(self):
        """Remove the index, and thus all cached code of the function."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)
