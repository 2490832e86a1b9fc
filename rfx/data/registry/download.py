"""Download one file over HTTP with a limit of its size; transient failures are tried again."""

import logging
import time

from rfx import lazy
from rfx._version import __version__
from rfx.errors import NoData

log = logging.getLogger(__name__)
PAUSES = (1.0, 3.0, 9.0)  # seconds before the second, third and fourth attempt
PATIENCE = 60.0  # seconds without an answer
# the file as it is stored: its checksum is of the compressed content
HEADERS = {"User-Agent": f"rfx/{__version__}", "Accept-Encoding": "identity"}


class Missing(Exception):
    """There is no file at this URL."""


class _Limited:
    """A file that takes at most `limit` bytes."""

    def __init__(self, file, limit: int, url: str):
        self.flush = file.flush
        self._file, self._left = file, limit
        self._message = f"{url} exceeds the expected maximum of {limit:,} bytes; nothing was saved"

    def write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise NoData(self._message)
        self._file.write(data)


def download(url: str, path, limit: int, progress: bool = False) -> None:
    """Download url to path; after a transient failure, try again from the beginning.

    Parameters
    ----------
    limit : int
        Maximum bytes of the file.
    progress : bool
        Show a bar on standard error.

    Raises
    ------
    Missing
        If the file does not exist.
    NoData
        If it is unavailable or too large.
    OSError
        If path can't be written.
    """
    pooch, requests = lazy.pooch, lazy.requests
    fetched = pooch.HTTPDownloader(progressbar=progress, timeout=PATIENCE, headers=HEADERS)
    for pause in (*PAUSES, None):
        try:
            with open(path, "wb") as file:
                fetched(url, _Limited(file, limit, url), None)
            return
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status in (404, 410):
                raise Missing(url) from None
            reason, passing = f"status {status}", status >= 500 or status == 429
        except requests.RequestException as error:
            # the cause stands at the end, such as "[Errno 111] Connection refused"
            reason, passing = str(error).rpartition(": ")[2].rstrip("'\")")[:200], True
        failure = f"{url} can't be downloaded ({reason})"
        if pause is None or not passing:
            tries = f" after {len(PAUSES) + 1} attempts" if passing else ""
            raise NoData(f"{failure}{tries}; RFX_MIRROR can name another source")
        log.warning("%s; trying again in %g s", failure, pause)
        time.sleep(pause)
