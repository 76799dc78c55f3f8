"""The checks of `move run`: cluster health (also for `move resume`), other moves, in-sync replicas, and disk space."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli.contract import say, worded
from kquota.cli.move.estimate.outlook import if_one_volume, may_fit
from kquota.cli.suggestion import suggested
from kquota.election.leaders import unhealthy
from kquota.election.port import Elections
from kquota.errors import KquotaError, Refused
from kquota.list_text import few, named_brokers
from kquota.measure import agreeing, human_bytes
from kquota.pace.disk_space import Arrival, Volume, rooms
from kquota.reassign.guard import foreign_moves, required_in_sync
from kquota.reassign.moves import Move
from kquota.reassign.port import Clock, MoveCluster
from kquota.reassign.preparation import Prepared
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition

_SHOWN: Final = 5
_EVERY_SECONDS: Final = 10.0
"""The minimum number of seconds between two readings of all partitions, because a reading is expensive."""


@dataclass(slots=True, kw_only=True)
class ClusterHealth:
    """The health of the partitions outside the plan. Partitions that `must_be_good` ignored do not count.

    A partition is unhealthy if it has no leader, or a replica that is out of sync. A partition below
    `min.insync.replicas` is therefore unhealthy as well, unless all its replicas are in sync.
    """

    cluster: Elections
    clock: Clock
    plan: Collection[TopicPartition]
    """The partitions of the plan."""
    _ignored: frozenset[TopicPartition] = frozenset()
    _looked: float = -math.inf
    _damaged: frozenset[TopicPartition] = frozenset()
    _error: KquotaError | None = None

    def must_be_good(self, *, force: bool) -> None:
        """Raise Refused for unhealthy partitions outside the plan. With `force`, ignore these partitions from now on.

        Raises Unreachable if the brokers do not answer.
        """
        found = self._unhealthy()
        if found and not force:
            raise Refused(
                f"cluster: {_named(found)}. Wait until the replicas are in sync, or give --force. Nothing was written"
            )
        self._ignored = found

    def trouble(self) -> str | None:
        """Return the reason why no further wave should start, or None if no partition outside the plan is unhealthy. An
        unknown state is also a reason. The reading is at most `_EVERY_SECONDS` old.
        """
        damage = self.damage()
        return damage if self._error is None else f"the health of the cluster is unknown ({worded(self._error)})"

    def damage(self) -> str | None:
        """Return the unhealthy partitions outside the plan as text, or None if there are none or the state is unknown.
        The reading is as old as for `trouble`.
        """
        if self.clock.monotonic() - self._looked >= _EVERY_SECONDS:
            self._damaged, self._error = frozenset(), None
            try:
                self._damaged = self._unhealthy() - self._ignored
            except KquotaError as error:
                self._error = error
            self._looked = self.clock.monotonic()
        return _named(self._damaged) if self._damaged else None

    def _unhealthy(self) -> frozenset[TopicPartition]:
        return unhealthy(self.cluster.partitions()) - frozenset(self.plan)


def _named(partitions: Collection[TopicPartition]) -> str:
    outside = agreeing(len(partitions), "partition", "outside the plan has", "outside the plan have")
    has = "has" if len(partitions) == 1 else "have"
    return f"{outside} no leader, or {has} an out-of-sync replica ({few(sorted(partitions), _SHOWN)})"


def must_be_the_only_move(prepared: Prepared) -> None:
    """Raise Refused while moves that do not belong to the prepared run are running. If nothing is left to submit, these
    moves are not an error.
    """
    others = foreign_moves(prepared.moving, prepared.found, prepared.known)
    if others and prepared.run is not None:
        raise Refused(
            f"cluster: {agreeing(len(others), 'other move', 'is', 'are')} running ({few(others, _SHOWN)}). Wait until "
            f"{'it ends' if len(others) == 1 else 'they end'} (see {suggested('move watch --once')}), or give --force. "
            "Nothing was written"
        )


def must_have_enough_in_sync(cluster: MoveCluster, prepared: Prepared) -> None:
    """Raise Refused if a partition that the run is going to move has fewer replicas in sync than min.insync.replicas.

    A partition passes nevertheless if it has no leader, if all its replicas are in sync, or if the move keeps all its
    in-sync replicas. A continued run is not checked again.
    """
    if prepared.known is not None:
        return
    behind = {}
    for move in prepared.moving:
        now = prepared.found.partitions[move.partition]
        in_sync = prepared.found.alive.intersection(now.isr)
        if (
            not move.submitted
            and now.leader is not None
            and len(in_sync) < len(now.before)
            and in_sync - {*move.target}
        ):
            behind[move.partition] = now, in_sync
    least = cluster.minimum_in_sync(sorted({name.topic for name in behind})) if behind else {}
    for name, (now, in_sync) in behind.items():
        required = required_in_sync(now, least.get(name.topic, 1))
        if len(in_sync) < required:
            raise Refused(
                f"{name}: too few replicas are in sync, so brokers reject writes with acks=all (in sync: "
                f"{len(in_sync)}, on {named_brokers(in_sync)}; required: {required}). Start the missing brokers, wait "
                "until more replicas are in sync, or give --force. Nothing was written"
            )


def must_have_room(log_dirs: Sequence[LogDir], moving: Sequence[Move], sizes: Mapping[TopicPartition, int]) -> None:
    """Raise Refused if the copies do not fit on the disks of a broker. `sizes` has the known sizes of partitions in
    bytes.

    Moves that are already submitted do not count, and neither do disks and sizes that are unknown.

    Log dirs with the same total and usable bytes may share one disk. Like `move estimate`, only warn if the copies do
    not fit in this case, but fit on separate disks.
    """
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
    arrivals = [
        Arrival(broker=broker, log_dir=None, copies=copies[broker], bytes=size, writes=None, grows=None)
        for broker, size in arriving.items()
    ]
    for room in rooms(volumes, arrivals, None):
        if may_fit(room):
            say(f"warning: {if_one_volume(room)}")
        if room.apart is not None and room.apart < 0:
            raise Refused(
                f"broker {room.broker}: the copies do not fit on its disks ({human_bytes(room.arriving)}, "
                f"{human_bytes(-room.apart)} too much). Move fewer replicas to it, or give --force. Nothing was written"
            )
