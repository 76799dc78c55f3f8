"""A cluster in memory: a state machine behind the port, with direct access to seed, age and break it.

docs/reliability.md lists its gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from kquota.errors import Conflict, KquotaError, Refused, Unreachable
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Overwritten, Snapshot
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.terms import BrokerId, TopicPartition

_LAG_SECONDS: Final = 3.0


class Ticks:
    """Time that advances only in a sleep."""

    def __init__(self, on_sleep: Callable[[float], object] = lambda _: None) -> None:
        self.slept = 0.0
        self._on_sleep = on_sleep

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, 30, tzinfo=UTC) + timedelta(seconds=self.slept)

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._on_sleep(seconds)


@dataclass(kw_only=True)
class MemoryCluster:
    """`controllers` accept settings of dead brokers. Brokers cannot describe the configs of topics in `undescribed`.

    The controller does not begin the moves in `idle`, as over ZooKeeper. `lag` reads within 3 s after a change still
    show the previous state. `writes` counts the changes that reached the cluster.

    For `stale_seconds` after the end of a move, by the clock `seconds`, a snapshot shows old and new replicas together.
    """

    alive: set[BrokerId]
    partitions: dict[TopicPartition, PartitionReplicas] = field(default_factory=dict)
    configs: dict[Setting, str] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    least_in_sync: int = 1
    largest_submission: int | None = None
    controllers: bool = False
    undescribed: set[str] = field(default_factory=set)
    lag: int = 0
    writes: int = 0
    broken: dict[Setting, KquotaError] = field(default_factory=dict)
    refused: dict[TopicPartition, str] = field(default_factory=dict)
    forbidden: set[Setting] = field(default_factory=set)
    forbids_moves: bool = False
    lose_answer: bool = False
    meanwhile: list[tuple[Setting, str | None]] = field(default_factory=list)
    idle: set[TopicPartition] = field(default_factory=set)
    stale_seconds: float = 0.0
    seconds: Callable[[], float] = lambda: 0.0
    _union: dict[TopicPartition, tuple[float, PartitionReplicas]] = field(default_factory=dict)
    _stale: dict[Setting, str] = field(default_factory=dict)
    _stale_reads: int = 0
    _stale_until: float = 0.0

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        return Snapshot(
            racks=dict.fromkeys(sorted(self.alive)),
            partitions={n: self._shown(n) for n in sorted(self.partitions) if topics is None or n.topic in topics},
            running={name: now for name, now in sorted(self.partitions.items()) if now.moving},
            topic_ids={n.topic: self.topic_ids.get(n.topic, n.topic) for n in self.partitions},
            not_begun=frozenset(name for name in self.idle if self.partitions[name].moving),
        )

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        shown = self.configs
        if self._stale_reads and self.seconds() <= self._stale_until:
            self._stale_reads -= 1
            shown = self._stale
        return {setting: shown.get(setting) for setting in settings if self._reachable(setting)}

    def change(self, changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        if self.meanwhile:
            self.write(*self.meanwhile.pop(0))
        self._stale, self._stale_reads = dict(self.configs), self.lag
        self._stale_until = self.seconds() + _LAG_SECONDS
        errors: dict[Setting, KquotaError] = {}
        for change in changes:
            if error := self._error(change):
                errors[change.setting] = error
            else:
                self.writes += 1
                self.write(change.setting, change.after)
        return errors

    def overwrite(self, values: Mapping[Setting, str | None]) -> Overwritten:
        if not self.controllers:
            raise Unreachable("no controller answers")
        errors: dict[Setting, KquotaError] = {}
        for setting, value in values.items():
            if setting in self.broken:
                errors[setting] = self.broken[setting]
            elif not setting.resource.of_broker:
                errors[setting] = Unreachable(f"{setting} is not a config of one broker")
            elif self._reachable(setting):
                errors[setting] = Unreachable(f"broker {setting.name} is registered, but did not answer")
            else:
                self.writes += 1
                self.write(setting, value)
        return Overwritten(by="controller 1", errors=errors)

    def must_permit(self, settings: Collection[Setting], *, moves: bool) -> None:
        denied = [str(setting) for setting in settings if setting in self.forbidden]
        denied += ["moves"] if moves and self.forbids_moves else []
        if denied:
            raise Refused(f"this user may not write {', '.join(denied)}. Nothing was written")

    def minimum_in_sync(self, topics: Collection[str]) -> Mapping[str, int]:
        return dict.fromkeys(topics, self.least_in_sync)

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        if self.largest_submission is not None and any(now.moving for now in self.partitions.values()):
            raise Conflict("one submission at a time")
        errors = {
            name: self.refused.get(name, "This server does not host this topic-partition.")
            for name in targets
            if name in self.refused or name not in self.partitions
        }
        errors |= {
            name: "No partition reassignment is in progress."
            for name, target in targets.items()
            if target is None and name not in errors and not self.partitions[name].moving
        }
        for name, target in targets.items():
            if name not in errors:
                self.writes += 1
                if target is None:
                    self.cancel(name)
                else:
                    self._start(name, target)
        if self.lose_answer:
            raise Unreachable("the controller went away")
        return errors

    def _start(self, name: TopicPartition, target: Replicas) -> None:
        now = self.partitions[name]
        kept = now.before
        adding = tuple(b for b in target if b not in kept)
        removing = tuple(b for b in kept if b not in target)
        moved = replace(now, replicas=(*target, *removing), adding=adding, removing=removing)
        # A move that copies nothing is done at once, as on KRaft.
        self.partitions[name] = moved if adding else replace(moved, replicas=target, adding=(), removing=())

    def _shown(self, name: TopicPartition) -> PartitionReplicas:
        until, union = self._union.get(name, (0.0, self.partitions[name]))
        return union if self.seconds() < until and not self.partitions[name].moving else self.partitions[name]

    def _reachable(self, setting: Setting) -> bool:
        if setting.kind == "topic":
            return setting.name not in self.undescribed
        return setting.broker in self.alive

    def _error(self, change: Change) -> KquotaError | None:
        if change.setting in self.broken:
            return self.broken[change.setting]
        if change.setting.kind == "topic" and not self._reachable(change.setting):
            return Unreachable(f"{change.setting} cannot be read, so it was not written")
        if not self._reachable(change.setting):
            return Unreachable(f"broker {change.setting.name} is dead")
        if self.configs.get(change.setting) != change.before:
            return Conflict(f"{change.setting} was changed by another client")
        return None

    # The methods below give tests direct access.

    def write(self, setting: Setting, value: str | None) -> None:
        """Write a value as another tool."""
        if value is None:
            self.configs.pop(setting, None)
        else:
            self.configs[setting] = value

    def finish(self, name: TopicPartition) -> None:
        """Complete every copy of the partition."""
        target = self.partitions[name].target
        self._ended(name, replace(self.partitions[name], replicas=target, adding=(), removing=(), isr=target))

    def cancel(self, name: TopicPartition) -> None:
        """Cancel the move as another tool."""
        now = self.partitions[name]
        self._ended(name, replace(now, replicas=now.before, adding=(), removing=()))

    def _ended(self, name: TopicPartition, now: PartitionReplicas) -> None:
        union = replace(self.partitions[name], adding=(), removing=())
        self._union[name] = (self.seconds() + self.stale_seconds, union)
        self.partitions[name] = now
