"""A proxy on localhost between a client and the brokers. It records how the client reacts to throttle times (KIP-219).

The proxy replaces the addresses of brokers in responses with its own, so that every connection goes through it. It
lowers the versions of APIs with addresses to versions that it can read. All other bytes pass unchanged.
"""

from __future__ import annotations

import asyncio
import io
import struct
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeAlias

from kafka.protocol.admin.cluster import DescribeClusterResponse
from kafka.protocol.api_header import RequestHeader, ResponseClassRegistry
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse
from kafka.protocol.producer import ProduceResponse

from kquota.probe.behavior import BehaviorRecord, ClientConnection

Address: TypeAlias = tuple[str, int]
HOST: Final = "127.0.0.1"
_ADDRESSES: Final = {
    of.API_KEY: of
    for of in (DescribeClusterResponse, FetchResponse, FindCoordinatorResponse, MetadataResponse, ProduceResponse)
}
"""The responses that can have addresses of brokers, by API key."""
_UNREADABLE: Final = (ValueError, IndexError, struct.error)
_BUFFERED: Final = 64 * 2**20
"""The maximum number of bytes that the proxy buffers for a broker that has muted its connection. The buffer is large,
because the proxy must still read the client's requests.
"""


@contextmanager
def throttle_proxy(upstream: Address, record: BehaviorRecord) -> Iterator[str]:
    """Run the proxy in a thread until the context ends, and yield its address (host:port).

    The client uses this address to bootstrap, and the proxy connects the client to the broker `upstream`. At the end,
    the proxy closes all connections.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="throttle-proxy", daemon=True)
    thread.start()
    proxy = _Proxy(record)
    try:
        port = asyncio.run_coroutine_threadsafe(proxy.port(upstream), loop).result()
        yield f"{HOST}:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(proxy.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Proxy:
    def __init__(self, record: BehaviorRecord) -> None:
        self._record = record
        self._servers: dict[Address, asyncio.Server] = {}
        self._open: set[asyncio.Task[None]] = set()

    async def port(self, upstream: Address) -> int:
        if upstream not in self._servers:
            self._servers[upstream] = await asyncio.start_server(partial(self._accepted, upstream), HOST, 0)
        port: int = self._servers[upstream].sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        for server in self._servers.values():
            server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accepted(self, upstream: Address, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            # The client sees a broker that cannot be reached as a closed connection. `close` cancels this task.
            with suppress(OSError, asyncio.CancelledError):
                broker, to_broker = await asyncio.open_connection(*upstream)
                await _ProxiedConnection(self, self._record).run(client, to_client, broker, to_broker)
        finally:
            self._open.discard(task)
            to_client.close()


class _ProxiedConnection:
    """One connection of the client, joined with a connection to a broker."""

    def __init__(self, proxy: _Proxy, record: BehaviorRecord) -> None:
        self._seen: ClientConnection = record.connection()
        self._proxy = proxy
        self._record = record
        self._waiting: dict[int, tuple[int, int]] = {}
        """The API key and the version of each request without a response, by correlation id."""

    async def run(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        broker: asyncio.StreamReader,
        to_broker: asyncio.StreamWriter,
    ) -> None:
        to_broker.transport.set_write_buffer_limits(high=_BUFFERED)
        both = [
            asyncio.ensure_future(self._requests(client, to_broker)),
            asyncio.ensure_future(self._responses(broker, to_client)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in both:
                direction.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            self._seen.closed()
            to_broker.close()

    async def _requests(self, client: asyncio.StreamReader, to_broker: asyncio.StreamWriter) -> None:
        async for frame in _frames(client):
            key, version, correlation = struct.unpack_from(">hhi", frame)
            self._waiting[correlation] = (key, version)
            self._seen.requested(time.monotonic())
            to_broker.write(struct.pack(">i", len(frame)) + frame)
            await to_broker.drain()

    async def _responses(self, broker: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        async for frame in _frames(broker):
            (correlation,) = struct.unpack_from(">i", frame)
            key, version = self._waiting.pop(correlation)
            passed, throttle_ms = await self._read(key, version, frame)
            self._seen.answered(time.monotonic(), throttle_ms)
            to_client.write(struct.pack(">i", len(passed)) + passed)
            await to_client.drain()

    async def _read(self, key: int, version: int, frame: bytes) -> tuple[bytes, int]:
        """Return the response for the client, and its throttle time in ms. A response that the proxy cannot read is
        returned unchanged, with 0.
        """
        try:
            found = _decoded(key, version, frame)
        except _UNREADABLE:
            found = None
        if found is None:
            self._record.unread += 1
            return frame, 0
        changed = _limit_versions(found) if key == ApiVersionsResponse.API_KEY else False
        for holder in _with_address(key, found):
            if holder.host and holder.port > 0:
                holder.host, holder.port = HOST, await self._proxy.port((holder.host, holder.port))
                changed = True
        return (found.encode(header=True) if changed else frame), found.throttle_time_ms or 0


def _decoded(key: int, version: int, frame: bytes) -> Any | None:
    of = ResponseClassRegistry.get_response_class(RequestHeader(request_api_key=key, request_api_version=version))
    if of is None:
        return None
    data = io.BytesIO(frame)
    header = of.parse_header(data)
    # A broker that does not support this version of ApiVersions answers with version 0 (KIP-511).
    if key == ApiVersionsResponse.API_KEY and any(frame[data.tell() : data.tell() + 2]):
        return None
    found = of.decode(frame[data.tell() :])
    found.with_header(correlation_id=header.correlation_id)
    return found


def _limit_versions(found: Any) -> bool:
    changed = False
    for api in found.api_keys:
        of = _ADDRESSES.get(api.api_key)
        if of is not None and api.max_version > of.max_version:
            api.max_version, changed = of.max_version, True
    return changed


def _with_address(key: int, found: Any) -> list[Any]:
    """Return the parts of a response that have an address."""
    if key in (MetadataResponse.API_KEY, DescribeClusterResponse.API_KEY):
        return list(found.brokers)
    if key == FindCoordinatorResponse.API_KEY:
        return [*(found.coordinators or ()), *([found] if found.host else [])]
    if key in _ADDRESSES:
        return list(found.node_endpoints or ())
    return []


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            yield await reader.readexactly(size)
