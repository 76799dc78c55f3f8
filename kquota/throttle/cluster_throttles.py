"""The replication throttles of a cluster (KIP-73): every rate and list, and the runs that set them. A finding is one
problem with these throttles.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kquota.errors import KquotaError
from kquota.measure import exact_rate, whole_number
from kquota.reassign.port import Snapshot
from kquota.reassign.restoring import held_by
from kquota.reassign.run import Run
from kquota.settings.change import Change
from kquota.settings.rates import StoredRate
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries, replica
from kquota.terms import (
    DEFAULT,
    DYNAMIC_BROKER,
    EVERY_REPLICA,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    THROTTLE_RATES,
    BrokerId,
    Default,
    ReplicaId,
    TopicPartition,
)

SIDES: Final[Mapping[str, str]] = {LEADER_REPLICAS: LEADER_RATE, FOLLOWER_REPLICAS: FOLLOWER_RATE}
"""Each list, with the rate that limits its replicas."""
SHORT: Final[Mapping[str, str]] = {
    LEADER_RATE: "leader",
    FOLLOWER_RATE: "follower",
    LOG_DIR_RATE: "log dirs",
    LEADER_REPLICAS: "leader",
    FOLLOWER_REPLICAS: "follower",
}

BrokerOrDefault: TypeAlias = BrokerId | Default


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterThrottles:
    """One reading of all throttles."""

    limits: Mapping[BrokerOrDefault, Mapping[str, StoredRate]]
    """The rates by config key, of every broker whose rates are known, and of `DEFAULT` if a default is set."""
    lists: Mapping[Setting, str]
    """The lists that are set on topics, including the empty list ""."""
    snapshot: Snapshot
    misplaced: Mapping[BrokerOrDefault, tuple[str, ...]]
    """The config keys of lists that are set on a broker or on `DEFAULT`. Brokers ignore these lists."""
    runs: tuple[Run, ...] = ()
    """The recorded runs that were open during the reading, oldest first."""
    release: tuple[int, ...] | None = None
    """The release of the brokers, or None if it is unknown."""
    unread_topics: tuple[str, ...] = ()
    """The topics whose lists are unknown, because their configs could not be described."""
    hidden_topics: tuple[str, ...] = ()
    """The known topics that Kafka hides from this user, so that their partitions and lists are unknown."""
    fenced: frozenset[BrokerId] | KquotaError = frozenset()
    """The dead brokers that the cluster lists, or the reason why they are unknown."""
    topics: Mapping[str, tuple[TopicPartition, ...]] = field(init=False)
    """The partitions of each topic."""

    def __post_init__(self) -> None:
        by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
        for name in self.snapshot.partitions:
            by_topic[name.topic].append(name)
        object.__setattr__(self, "topics", {topic: tuple(names) for topic, names in by_topic.items()})

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        """The brokers whose rates are known, sorted by id."""
        return tuple(sorted(where for where in self.limits if not isinstance(where, Default)))

    @property
    def why_unlisted(self) -> KquotaError | None:
        """The reason why it is unknown which brokers are dead, or None if it is known."""
        return self.fenced if isinstance(self.fenced, KquotaError) else None

    @property
    def unread(self) -> tuple[BrokerId, ...]:
        """The brokers whose rates are unknown (which is not unset), sorted by id: those that are alive, are fenced or
        have replicas, but are not in `limits`.
        """
        replicas = {b for now in self.snapshot.partitions.values() for b in now.replicas}
        fenced = frozenset[BrokerId]() if isinstance(self.fenced, KquotaError) else self.fenced
        known = self.snapshot.alive | fenced | replicas
        return tuple(sorted(known - set(self.brokers)))

    @property
    def moving_topics(self) -> frozenset[str]:
        """The topics with a running move."""
        return frozenset(name.topic for name in self.snapshot.running)

    @property
    def values(self) -> dict[Setting, str]:
        """The values that are set on single brokers and topics. Broker defaults and static values are left out."""
        own = {
            Setting.of_broker(broker, key): limit.value
            for broker in self.brokers
            for key, limit in self.limits[broker].items()
            if limit.source == DYNAMIC_BROKER
        }
        return {**own, **self.lists}

    def rate(self, broker: BrokerId, key: str) -> StoredRate | None:
        """Return the rate in force on a broker for the config `key`, or None if no known rate is in force.

        A broker without a known rate of its own has the default of all brokers.
        """
        limit = self.limits.get(broker, {}).get(key) or self.limits.get(DEFAULT, {}).get(key)
        return limit if limit is not None and limit.in_force else None

    def holders(self, setting: Setting, value: str) -> tuple[Run, ...]:
        """Return the open runs that set this rate or list entry, oldest first."""
        return tuple(run for run in self.runs if setting in run.taken and value in run.taken[setting].ours)

    def foreign(self, setting: Setting) -> tuple[str, ...]:
        """Return the entries of a list, or the rate set on the broker itself, that no recorded run holds."""
        held = {value for taken in held_by(self.runs, setting) for value in taken.ours}
        if setting.is_list:
            return tuple(entry for entry in entries(self.lists.get(setting)) if entry not in held)
        limit = self.limits.get(setting.broker, {}).get(setting.key)
        return () if limit is None or limit.source != DYNAMIC_BROKER or limit.value in held else (limit.value,)

    def replicas(self, setting: Setting, entry: str) -> tuple[ReplicaId, ...]:
        """Return the existing replicas that an entry of this list names. `*` names all replicas of the topic."""
        partitions = self.snapshot.partitions
        if entry == EVERY_REPLICA:
            mine = self.topics.get(setting.name, ())
            return tuple((name, broker) for name in mine for broker in partitions[name].replicas)
        named = replica(setting, entry)
        if named is None or named[0] not in partitions or named[1] not in partitions[named[0]].replicas:
            return ()
        return (named,)

    def listed(self, key: str) -> Iterator[ReplicaId]:
        """Yield every existing replica that is in a list of this key."""
        for setting, text in self.lists.items():
            if setting.key == key:
                for entry in entries(text):
                    yield from self.replicas(setting, entry)

    def after(self, changes: Iterable[Change]) -> ClusterThrottles:
        """Return the throttles after these changes. The `before` values of the changes are not checked."""
        lists = dict(self.lists)
        limits: dict[BrokerOrDefault, dict[str, StoredRate]] = {
            where: dict(held) for where, held in self.limits.items()
        }
        for change in changes:
            setting = change.setting
            if setting.is_list:
                lists.pop(setting, None)
                if change.after is not None:
                    lists[setting] = change.after
            else:
                held = limits.setdefault(setting.broker, {})
                held.pop(setting.key, None)
                if change.after is not None:
                    held[setting.key] = StoredRate(value=change.after, source=DYNAMIC_BROKER, in_force=True)
        return replace(self, lists=dict(sorted(lists.items())), limits=limits)


class Remedy(enum.Enum):
    """The action that resolves a finding."""

    RESUME_RUN = enum.auto()
    END_RUN = enum.auto()
    REMOVE = enum.auto()
    REMOVE_AFTER_MOVES = enum.auto()
    SET_RATE = enum.auto()
    REMOVE_OR_SET_RATE = enum.auto()
    SET_SAME_RATE_ON_BROKERS = enum.auto()
    SET_SAME_RATE_ON_SIDES = enum.auto()
    SET_RATE_ON_EACH_BROKER = enum.auto()
    SET_RATE_DYNAMICALLY = enum.auto()
    REMOVE_FROM_BROKER = enum.auto()
    CORRECT_LIST = enum.auto()
    SHORTEN_LIST = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem with the throttles of a cluster."""

    rule: str
    """The name of the rule that reports the finding. Scripts can rely on this name."""
    where: str
    """The place of the problem, for example `broker 1`."""
    what: str
    effect: str
    remedy: Remedy
    keys: tuple[str, ...] = ()
    """The configs that the remedy changes."""
    brokers: tuple[BrokerId | Default, ...] = ()
    """The brokers, or their default, to which the remedy applies."""
    topic: str | None = None
    """The topic to which the remedy applies, or None."""
    values: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    """The rates and list entries of the finding, by setting."""
    fixable: bool = False
    """True if kquota may remove `values`, because no recorded run holds them and no running move can use them."""


def written(value: str) -> str:
    """Return a stored rate as text for people, for example `5MB/s`. A value that is not a rate is quoted."""
    rate = whole_number(value)
    if rate is None:
        return repr(value)
    text = exact_rate(rate)
    return f"{text} B/s" if text.isdigit() else text


def order(setting: Setting) -> tuple[object, ...]:
    """Return the key that orders settings for display: brokers by id, topics by name, leader before follower."""
    return (*setting.resource.order, [*THROTTLE_RATES, *SIDES].index(setting.key))
