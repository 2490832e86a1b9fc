"""Download one file over HTTP with limits of size and time, because servers are not trusted."""

import contextlib
import http.client
import logging
import socket
import threading
import time
import urllib.error
import urllib.request

from rfx import lazy, terminal
from rfx._version import __version__
from rfx.errors import NoData

log = logging.getLogger(__name__)
PAUSES = (1.0, 3.0, 9.0)  # seconds before the second, third and fourth attempt
# seconds within which a server must answer, and then repeatedly send SLOWEST bytes
PATIENCE = 60.0
SLOWEST = 64 << 10
_PIECE = 1 << 16


class Missing(Exception):
    """There is no file at this URL."""


class _Failed(Exception):
    """A failed attempt; passing: whether a retry may succeed."""

    def __init__(self, reason, passing):
        super().__init__(reason)
        self.passing = passing


def download(url: str, path, limit: int, progress: bool = False) -> None:
    """Download url to path; after a transient failure, retry from the beginning.

    limit: maximum bytes of the file. Raises Missing if the file does not exist, NoData if it is
    unavailable, too large or too slow; OSError if path can't be written.
    """
    for pause in (*PAUSES, None):
        try:
            with open(path, "wb") as file:
                _receive(url, file, limit, progress)
            return
        except _Failed as failure:
            what = f"{url} can't be downloaded ({failure})"
            if pause is None or not failure.passing:
                tries = f" after {len(PAUSES) + 1} attempts" if failure.passing else ""
                raise NoData(f"{what}{tries}; RFX_MIRROR can name another source") from None
        log.warning("%s; trying again in %g s", what, pause)
        time.sleep(pause)


def _receive(url, file, limit, progress):
    with _Watch() as watch:
        with _opened(url, watch) as response:
            length = response.length  # remaining bytes, None if the server does not state them
            if length is not None and length > limit:
                raise NoData(
                    f"{url} has {length:,} bytes, but at most {limit:,} are expected; nothing was"
                    " saved"
                )
            received = 0
            with _bar(length, progress) as bar:
                while data := _piece(response, watch):
                    received += len(data)
                    if received > limit:
                        raise NoData(
                            f"{url} exceeds the expected maximum of {limit:,} bytes; nothing was"
                            " saved"
                        )
                    file.write(data)
                    bar.update(len(data))
        if length is not None and received < length:
            raise _Failed(f"it ended after {received:,} of {length:,} bytes", passing=True)


def _opened(url, watch):
    try:
        return watch.opener.open(
            urllib.request.Request(url, headers={"User-Agent": f"rfx/{__version__}"}),
            timeout=PATIENCE,
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise Missing(url) from None
        raise _Failed(
            f"status {error.code}", passing=error.code >= 500 or error.code == 429
        ) from None
    except urllib.error.URLError as error:
        raise _Failed(watch.reason or _words(error.reason), passing=True) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Failed(watch.reason or _words(error), passing=True) from None


def _piece(response, watch):
    try:
        data = response.read1(_PIECE)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Failed(watch.reason or _words(error), passing=True) from None
    if not data and watch.reason:
        raise _Failed(watch.reason, passing=True)
    watch.count(len(data))
    return data


def _words(error):
    return terminal.line(str(getattr(error, "strerror", None) or error)) or type(error).__name__


class _Watch(threading.Thread):
    """Closes the connections of a download that is too slow, in any phase: handshake, header or
    content.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.reason, self._sockets, self._received, self._over = "", [], 0, threading.Event()
        self.opener = urllib.request.OpenerDirector()
        # only these protocols, even after redirects
        for handler in (
            urllib.request.ProxyHandler(),
            _Handler(self),
            _SecureHandler(self),
            urllib.request.HTTPDefaultErrorHandler(),
            _Redirects(),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.UnknownHandler(),
        ):  # fmt: skip
            self.opener.add_handler(handler)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()
        for connected in self._sockets:
            connected.close()

    def count(self, received):
        self._received += received

    def connect(self, *args, **more):
        """socket.create_connection that remembers the socket."""
        connected = socket.create_connection(*args, **more)
        # of the TCP connection, below TLS
        self._sockets.append(connected.dup())
        return connected

    def run(self):
        before = 0
        while not self._over.wait(PATIENCE):
            if self._received - before < SLOWEST:
                self.reason = f"fewer than {SLOWEST:,} bytes arrived in {PATIENCE:g} s"
                for connected in self._sockets:
                    with contextlib.suppress(OSError):
                        # the blocked reader wakes up and sees the end of the stream
                        connected.shutdown(socket.SHUT_RDWR)
                return
            before = self._received


class _Handler(urllib.request.HTTPHandler):
    def __init__(self, watch):
        super().__init__()
        self._watch = watch

    def _connection(self: "_Handler | _SecureHandler", kind):
        def make(*args, **more):
            connection = kind(*args, **more)
            connection._create_connection = self._watch.connect
            return connection

        return make

    def http_open(self, req):
        return self.do_open(self._connection(http.client.HTTPConnection), req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def __init__(self, watch):
        super().__init__()
        self._watch = watch

    _connection = _Handler._connection

    def https_open(self, req):
        return self.do_open(self._connection(http.client.HTTPSConnection), req)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects, but never from https to http."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise _Failed(
                f"it redirects to {terminal.line(newurl)}, which is not https", passing=False
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _bar(total, progress):
    return lazy.tqdm.tqdm(
        total=total,
        unit="B",
        unit_scale=True,
        leave=True,
        file=terminal.drawing(),
        disable=not progress,
    )
