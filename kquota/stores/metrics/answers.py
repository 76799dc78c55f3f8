"""HTTP GET with limits on the size and the time of the answer, because the server at a given URL can send anything."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR, socket
from typing import Final
from urllib.parse import urlsplit

from kquota.errors import Invalid
from kquota.measure import counted

_PIECE: Final = 2**18


class NoAnswer(Exception):
    """A request failed or was answered with an HTTP error, or the answer was truncated, too large or too slow.

    The message is the reason. `body` is the beginning of the body of an HTTP error. It is empty for other errors.
    """

    def __init__(self, why: object, body: bytes = b"") -> None:
        super().__init__(str(why))
        self.body = body


class _Watch:
    """Closes the connections of one request when the request exceeds its time limit.

    The timeout of a socket is not enough, because it starts again at each byte.
    """

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._sockets: list[socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def add(self, connected: socket) -> None:
        self._sockets.append(connected)
        if self.over:
            self._end()

    def _end(self) -> None:
        self.over = True
        for one in self._sockets:
            with suppress(OSError):
                socket.shutdown(one, SHUT_RDWR)  # SSLSocket's own method would discard the TLS state


def must_be_url(text: str, named: str, example: str) -> None:
    """Raise Invalid if `text` is not an http or https URL, or if it contains a login.

    The message begins with `named`, the name of the option. `example` is a valid URL for the message.
    """
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not text.isprintable() or " " in text:
        # Text before an @ may be a login, which the message must not repeat.
        given = named if "@" in text else f"{named} {text!r}"
        raise Invalid(f"{given} is not an http or https URL. Write it like {example}")
    if parts.username is not None or parts.password is not None:
        raise Invalid(f"{named}: the URL contains a login, which other users can read on the command line. Remove it")


def pieces(url: str, largest: int, seconds: float) -> Iterator[bytes]:
    """Yield the body of the answer to a GET request for an http or https URL, in pieces.

    Raises NoAnswer if the request fails, or if the answer has more than `largest` bytes, ends early, or takes more than
    `seconds`. This time includes the time that the caller takes between the pieces.
    """
    with _Watch(seconds) as watch, ExitStack() as stack:
        try:
            answer = stack.enter_context(_opener(watch).open(url, timeout=seconds))
            length = 0
            while piece := answer.read1(_PIECE):
                length += len(piece)
                if length > largest:
                    raise NoAnswer(f"the answer has more than {largest >> 20} MiB")
                yield piece
            if not watch.over and answer.length:
                raise NoAnswer(f"the answer ended {counted(answer.length, 'byte')} early")
        except urllib.error.HTTPError as error:
            raise NoAnswer(error, _page(error)) from error
        except (OSError, HTTPException, ValueError) as error:
            if not watch.over:
                raise NoAnswer(error.reason if isinstance(error, urllib.error.URLError) else error) from error
        if watch.over:
            raise NoAnswer(f"the answer is not complete after {seconds:.0f} s")


def _page(error: urllib.error.HTTPError) -> bytes:
    with error:
        try:
            return error.read(_PIECE)
        except (OSError, HTTPException, ValueError):
            return b""


def _opener(watch: _Watch) -> urllib.request.OpenerDirector:
    """Return an opener that works like `urlopen`, but adds its connections to `watch`, and follows no redirects
    to FTP.
    """

    class Watched(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            watch.add(self.sock)

    class WatchedTls(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            watch.add(self.sock)

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> HTTPResponse:
            return self.do_open(Watched, request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> HTTPResponse:
            return self.do_open(WatchedTls, request)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        Http(),
        Https(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
