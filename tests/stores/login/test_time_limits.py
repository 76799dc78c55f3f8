"""A server that accepts connections and never answers. The error names the time limit, also below one second."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from kquota.errors import Unreachable
from kquota.stores.admin.connection import Wire
from kquota.stores.login.arguments import Access
from kquota.stores.zookeeper import session


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


LIMITED: dict[str, tuple[Callable[[str], object], str]] = {
    "a broker": (lambda at: Wire(at, {}, 0.1), "no broker answered within 0.1 s"),
    "ZooKeeper": (lambda at: session.started(at, Access(), 0.1), "no session started within 0.1 s"),
}


@pytest.mark.parametrize(("connect", "reason"), LIMITED.values(), ids=LIMITED)
def test_the_error_names_the_time_limit(silent: str, connect: Callable[[str], object], reason: str) -> None:
    with pytest.raises(Unreachable, match=reason):
        connect(silent)
