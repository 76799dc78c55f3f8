"""The checks that only `move run` makes: the health of the cluster, and room on the disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.cli.contract import worded
from kquota.election.leaders import unhealthy
from kquota.election.port import Elections
from kquota.errors import KquotaError, Refused
from kquota.list_text import few
from kquota.measure import agreeing, human_bytes
from kquota.pace.disk_space import Arrival, Volume, rooms
from kquota.reassign.moves import Move
from kquota.reassign.port import Clock
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition

_SHOWN: Final = 5
_EVERY_SECONDS: Final = 10.0
"""The minimum number of seconds between two readings of all partitions, because a reading is expensive."""


@dataclass(slots=True, kw_only=True)
class ClusterHealth:
    """The health of the partitions outside the plan, compared with their health at the start of the run.

    A partition is unhealthy if it has no leader, or a replica that is out of sync. This includes a partition below
    min.insync.replicas.
    """

    cluster: Elections
    clock: Clock
    plan: Collection[TopicPartition]
    _before: frozenset[TopicPartition] = frozenset()
    _looked: float = field(default=float("-inf"))
    _reason: str | None = None
    _found: frozenset[TopicPartition] = frozenset()

    def must_be_good(self, *, force: bool) -> None:
        """Raise Refused for unhealthy partitions outside the plan.

        With `force`, ignore these partitions from now on.
        """
        found = unhealthy(self.cluster.partitions()) - frozenset(self.plan)
        if found and not force:
            raise Refused(
                f"cluster: {_named(found)}. Wait until the replicas are in sync, or give --force. Nothing was written"
            )
        self._before = found

    def trouble(self) -> str | None:
        """Return why no further wave should start, or None if the cluster is as healthy as before.

        The reading is at most `_EVERY_SECONDS` old. An unknown state is also a reason.
        """
        if self.clock.monotonic() - self._looked >= _EVERY_SECONDS:
            self._reason = self._trouble()
            self._looked = self.clock.monotonic()
        return self._reason

    def damage(self) -> str | None:
        """Return the newly unhealthy partitions as text, or None if none are known."""
        self.trouble()
        return _named(self._found) if self._found else None

    def _trouble(self) -> str | None:
        self._found = frozenset()
        try:
            self._found = unhealthy(self.cluster.partitions()) - frozenset(self.plan) - self._before
        except KquotaError as error:
            return f"the health of the cluster is unknown ({worded(error)})"
        return _named(self._found) if self._found else None


def _named(found: Collection[TopicPartition]) -> str:
    outside = agreeing(len(found), "partition", "outside the plan has", "outside the plan have")
    return f"{outside} no leader or an out-of-sync replica ({few(sorted(found), _SHOWN)})"


def must_have_room(log_dirs: Sequence[LogDir], moving: Sequence[Move], sizes: Mapping[TopicPartition, int]) -> None:
    """Raise Refused if the copies do not fit on the disks of a broker. Ignore disks and sizes that are unknown."""
    volumes = [
        Volume(broker=one.broker, log_dir=one.path, total=one.volume_total, usable=one.volume_usable)
        for one in log_dirs
    ]
    arriving: Counter[BrokerId] = Counter()
    copies: Counter[BrokerId] = Counter()
    for move in moving:
        for broker in () if move.submitted else move.destinations:
            arriving[broker] += sizes.get(move.partition, 0)
            copies[broker] += 1
    found = rooms(
        volumes,
        [
            Arrival(broker=broker, log_dir=None, copies=copies[broker], bytes=size, writes=None, grows=None)
            for broker, size in arriving.items()
        ],
        None,
    )
    for room in found:
        if room.left is not None and room.left < 0:
            raise Refused(
                f"broker {room.broker}: the copies do not fit on its disks ({human_bytes(room.arriving)}, "
                f"{human_bytes(-room.left)} too much). Move fewer replicas to it, or give --force. Nothing was written"
            )
