"""numba's njit with an optional disk cache: a missing folder, a full disk or a damaged file never
stops a command.
"""

import fcntl
import itertools
import logging
import os
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numba
from numba.core import caching

log = logging.getLogger(__name__)
_told: list[str] = []
F = TypeVar("F", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[F], F]:
    """Like numba.njit; with `cache=True` compiled code is stored below NUMBA_CACHE_DIR if possible,
    and otherwise compiled again.
    """
    keep = options.pop("cache", False)

    def decorate(function: F) -> F:
        made = numba.njit(**options)(function)
        # not if the user has disabled numba's compiler
        if keep and hasattr(made, "enable_caching"):
            try:
                made._cache = _Cache(function)
            # numba's RuntimeError: there is no writable folder
            except (OSError, RuntimeError) as error:
                _tell(error)
        return made

    return decorate


def _tell(error: Exception) -> None:
    """Warn, once per process, that nothing is cached."""
    if not _told:
        _told.append(str(error))
        folder = os.environ.get("NUMBA_CACHE_DIR", "the cache")
        reason = getattr(error, "strerror", None) or "it can't be created or written"
        log.warning(
            "compiled code can't be cached in %s (%s), so every command compiles again; RFX_CACHE"
            " names another folder",
            folder,
            reason,
        )


class _Place(caching.CompileResultCacheImpl):
    """Only the folder of NUMBA_CACHE_DIR: numba would try others, and run code that another user
    may have put there.
    """

    _locator_classes = caching.CompileResultCacheImpl._locator_classes[:1]


class _Files(caching.IndexDataCacheFile):
    """One process at a time adds a file, and the index last, so it never names the file of another
    signature or an older source.
    """

    def save(self, key, data):
        with _locked(self._cache_path):
            known = self._load_index()
            if key not in known:
                names = set(known.values())
                known[key] = next(
                    name for name in map(self._data_name, itertools.count(1)) if name not in names
                )
            self._save_data(known[key], data)
            self._save_index(known)


class _Cache(caching.FunctionCache):
    """The compiled code of one function."""

    _impl_class = _Place

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _Files(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file may raise anything
            self._forget()
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._forget()
            _tell(error)
        except Exception:  # from a damaged index
            self._forget()

    def _forget(self):
        """Remove the index, and thus all cached code of the function."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


@contextmanager
def _locked(folder):
    """Hold the lock of a folder; if the file system has no locks, nothing is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
