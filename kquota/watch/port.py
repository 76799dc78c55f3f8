"""The interface to the logs of replicas. `tests/watch/contract.py` defines it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from kquota.terms import ReplicaId
from kquota.watch.reading import ReplicaLogs


class LogReader(Protocol):
    """The logs of replicas on one cluster's brokers. ZooKeeper does not store them."""

    def read(self, replicas: Collection[ReplicaId], ends: Collection[ReplicaId]) -> ReplicaLogs:
        """Return the logs of `replicas`, with log end offsets only for replicas that are also in `ends`.

        All brokers are asked at the same time: each gets at most one request for sizes, and then at most one for
        offsets. A broker without a valid answer to one of them is in `silent`, with the reason. `dirs` has all log dirs
        of each broker in `replicas` that reported sizes, including log dirs that contain none of these replicas.
        """
