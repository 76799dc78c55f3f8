"""The LogReader port on the Admin API: DescribeLogDirs (KIP-113, KIP-827) and ListOffsets, once for each broker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from kquota.errors import KquotaError
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.log_sizes import LogDirSizes, LogSizesRequest
from kquota.stores.admin.offsets import DEBUGGING_REPLICA, LATEST, ListOffsetsRequest, Offsets
from kquota.terms import BrokerId, ReplicaId, TopicPartition
from kquota.watch.reading import DirSpace, ReplicaLog, ReplicaLogs

_SECONDS: Final = 8.0
"""The seconds after which a broker counts as silent. The time is short, so that a watch soon reports the broker."""


class WireReplicaLogs:
    """The logs of replicas. kquota asks each broker only for its own replicas. Implements `LogReader`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def read(self, replicas: Collection[ReplicaId], ends: Collection[ReplicaId]) -> ReplicaLogs:
        sizes = self._wire.ask_each({b: LogSizesRequest(those) for b, those in _by_broker(replicas).items()}, _SECONDS)
        silent = {broker: str(answer) for broker, answer in sizes.items() if isinstance(answer, KquotaError)}
        asked = {
            b: ListOffsetsRequest(those, LATEST, DEBUGGING_REPLICA)
            for b, those in _by_broker(ends).items()
            if b not in silent
        }
        found_ends: dict[BrokerId, Offsets] = {}
        for broker, answer in (self._wire.ask_each(asked, _SECONDS) if asked else {}).items():
            if isinstance(answer, KquotaError):
                silent[broker] = str(answer)
            else:
                found_ends[broker] = answer.offsets
        logs: dict[ReplicaId, ReplicaLog] = {}
        futures: dict[ReplicaId, ReplicaLog] = {}
        dirs: dict[tuple[BrokerId, str], DirSpace] = {}
        for broker, answer in sizes.items():
            if isinstance(answer, KquotaError):
                continue
            if answer.error_code or not answer.results:
                silent[broker] = f"DescribeLogDirs failed: {kafka_error(answer.error_code or _DENIED, None)}"
                continue
            of_broker = found_ends.get(broker, {})
            for found in answer.results:
                path = found.path
                dirs[broker, path] = _space(found)
                for topic, entries in found.topics:
                    end = of_broker.get(topic, {}).get
                    for number, size, _, future in entries:
                        replica = TopicPartition(topic, number), broker
                        (futures if future else logs)[replica] = ReplicaLog(size, end(number), path)
        return ReplicaLogs(logs=logs, futures=futures, dirs=dirs, silent=silent)


_DENIED: Final = 31
"""CLUSTER_AUTHORIZATION_FAILED. Before version 3 of the answer, an empty list means this error."""


def _by_broker(replicas: Collection[ReplicaId]) -> dict[BrokerId, dict[str, list[int]]]:
    found: defaultdict[BrokerId, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (topic, number), broker in replicas:
        found[broker][topic].append(number)
    return {broker: dict(topics) for broker, topics in sorted(found.items())}


def _space(found: LogDirSizes) -> DirSpace:
    usable = found.usable
    error = kafka_error(found.error_code, None) if found.error_code else None
    return DirSpace(None if usable is None or usable < 0 else usable, error)
