"""Servers that never answer, answer slowly, too much or too little. Each ends the request with one reason."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from kquota.stores.metrics.answers import NoAnswer, pieces

LARGEST = 2**20
OK = b"HTTP/1.1 200 OK\r\n"
Sends = Callable[[socket.socket, threading.Event], object]


@contextmanager
def serving(sends: Sends) -> Iterator[str]:
    """A server that calls `sends` for each connection. The event is set at the end."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connected: socket.socket) -> None:
        with connected, suppress(OSError):
            connected.recv(10_000)
            sends(connected, over)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def then(*parts: bytes) -> Sends:
    return lambda connected, _: connected.sendall(b"".join(parts))


def drop_by_drop(start: bytes, drop: bytes) -> Sends:
    """Send without end, and never pause for as long as the time limit."""

    def send(connected: socket.socket, over: threading.Event) -> None:
        connected.sendall(start)
        while not over.wait(0.01):
            connected.sendall(drop)

    return send


def without_end(connected: socket.socket, over: threading.Event) -> None:
    connected.sendall(OK + b"\r\n")
    while not over.is_set():
        connected.sendall(b"a 1\n" * 10_000)


def read(url: str, seconds: float = 30.0) -> bytes:
    return b"".join(pieces(url, LARGEST, seconds))


WHOLE = {
    "until the end of the connection": then(OK + b"\r\nup 1\n"),
    "with a length": then(OK + b"Content-Length: 5\r\n\r\nup 1\n"),
    "in chunks": then(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("sends", WHOLE.values(), ids=WHOLE)
def test_an_answer_is_read_to_its_end(sends: Sends) -> None:
    with serving(sends) as url:
        assert read(url) == b"up 1\n"


SLOW: dict[str, Sends] = {
    "nothing": lambda _, over: over.wait(),
    "a header drop by drop": drop_by_drop(OK + b"X: ", b"x"),
    "headers drop by drop": drop_by_drop(OK, b""),
    "a body drop by drop": drop_by_drop(OK + b"\r\n", b"a"),
    "a body with a length drop by drop": drop_by_drop(OK + b"Content-Length: 1000000\r\n\r\n", b"a"),
    "chunks drop by drop": drop_by_drop(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    "an error page drop by drop": drop_by_drop(b"HTTP/1.1 500 Oops\r\n\r\n", b"a"),
}


@pytest.mark.parametrize("sends", SLOW.values(), ids=SLOW)
def test_the_whole_answer_has_one_time_limit(sends: Sends) -> None:
    with serving(sends) as url, pytest.raises(NoAnswer, match=r"complete after 1 s|timed out|500"):
        read(url, 0.6)


REFUSED = {
    "without an end": (without_end, "more than 1 MiB"),
    "shorter than it says": (then(OK + b"Content-Length: 100\r\n\r\nup 1\n"), "ended 95 bytes early"),
    "a chunk shorter than it says": (then(OK + b"Transfer-Encoding: chunked\r\n\r\n64\r\nup"), "IncompleteRead"),
    "not HTTP": (then(b"up 1\n"), "up 1"),
    "nothing at all": (then(), "without response"),
    "many headers": (then(OK + b"X: 1\r\n" * 1_000 + b"\r\n"), "more than 100 headers"),
    "a redirection to a file": (then(b"HTTP/1.1 302 F\r\nLocation: file:///etc/passwd\r\n\r\n"), "302"),
    "a redirection to FTP": (then(b"HTTP/1.1 302 F\r\nLocation: ftp://127.0.0.1/x\r\n\r\n"), "unknown url type: ftp"),
    "a redirection to itself": (then(b"HTTP/1.1 302 F\r\nLocation: /metrics\r\n\r\n"), "infinite loop"),
}


@pytest.mark.parametrize(("sends", "why"), REFUSED.values(), ids=REFUSED)
def test_an_answer_that_is_refused(sends: Sends, why: str) -> None:
    with serving(sends) as url, pytest.raises(NoAnswer, match=why):
        read(url)


def test_an_error_comes_with_the_beginning_of_its_page() -> None:
    page = b"no such path" + b" " * LARGEST
    with serving(then(b"HTTP/1.1 404 Not Found\r\n\r\n" + page)) as url, pytest.raises(NoAnswer) as raised:
        read(url)
    assert str(raised.value) == "HTTP Error 404: Not Found"
    assert raised.value.body.startswith(b"no such path")
    assert len(raised.value.body) < LARGEST
