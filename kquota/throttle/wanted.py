"""The settings of `throttle set`: whole topics, brokers, or only the out-of-sync replicas of a returning broker."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from kquota.list_text import joined
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.run import Owner, Purpose, Run
from kquota.reassign.throttle_writes import WantedValues
from kquota.settings.resource import Setting
from kquota.terms import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    BrokerId,
    TopicPartition,
)

LISTS: Final = {"leader": LEADER_REPLICAS, "follower": FOLLOWER_REPLICAS}
RATES: Final = {"leader": LEADER_RATE, "follower": FOLLOWER_RATE}
BOTH: Final = ("leader", "follower")


def whole_topics(
    topics: Collection[str], brokers: Collection[BrokerId], rate: ByteRate | None, sides: Sequence[str] = BOTH
) -> WantedValues:
    """Return `*` for the lists of each topic, and `rate` for each broker, as in the procedures of KIP-73.

    `sides` selects the leader and follower lists and rates. Without a rate, the result has only lists.
    """
    lists = {Setting.of_topic(topic, LISTS[side]): (EVERY_REPLICA,) for topic in sorted(topics) for side in sides}
    if rate is None:
        return lists
    return lists | {Setting.of_broker(b, RATES[side]): (str(rate),) for b in sorted(brokers) for side in sides}


def behind(snapshot: Snapshot, broker: BrokerId) -> tuple[TopicPartition, ...]:
    """Return the partitions with an out-of-sync replica on this broker. Copies of a running move are left out.

    If the in-sync replicas of a partition are unknown, every replica except the leader counts as out of sync.
    """
    return tuple(
        name
        for name, now in snapshot.partitions.items()
        if broker in now.before and broker not in now.isr and now.leader != broker
    )


def recovering(snapshot: Snapshot, broker: BrokerId, rate: ByteRate, readable: Collection[BrokerId]) -> WantedValues:
    """Return the settings that throttle only the out-of-sync replicas of a broker. Without such replicas, the
    result is empty.

    The follower lists contain these replicas. The leader lists contain the other replicas of the same partitions,
    because each of them may become the leader. Brokers in the leader lists get the leader rate, and the returning
    broker gets the follower rate. A broker gets a rate only if its rates can be read (`readable`).
    """
    entries: defaultdict[Setting, list[str]] = defaultdict(list)
    sources: set[BrokerId] = set()
    late = behind(snapshot, broker)
    for name in late:
        others = [b for b in snapshot.partitions[name].replicas if b != broker]
        sources.update(others)
        entries[Setting.of_topic(name.topic, LEADER_REPLICAS)] += [f"{name.partition}:{b}" for b in sorted(others)]
        entries[Setting.of_topic(name.topic, FOLLOWER_REPLICAS)].append(f"{name.partition}:{broker}")
    lists = {setting: tuple(values) for setting, values in sorted(entries.items()) if values}
    leaders = {Setting.of_broker(b, LEADER_RATE): (str(rate),) for b in sorted(sources) if b in readable}
    own = {Setting.of_broker(broker, FOLLOWER_RATE): (str(rate),)} if late and broker in readable else {}
    return lists | leaders | own


def title(settings: Collection[Setting]) -> str:
    """Return the title of the run of a `throttle set` with these settings. Their values do not matter."""
    return joined(sorted(settings))


def recovery(broker: BrokerId) -> str:
    """Return the title for `--recovering`. It does not depend on the replicas that are out of sync."""
    return f"recovering {broker}"


def new(name: str, rate: ByteRate | None, now: datetime, owner: Owner, reason: str | None = None) -> Run:
    """Return a run without moves, which only holds a throttle. Its id ends with the hash of its title `name`."""
    nothing = Plan(targets={})
    return Run(
        id=f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{_hash(name)}",
        begun=now,
        plan=nothing,
        rollback=nothing,
        rate=rate,
        taken={},
        purpose=Purpose.THROTTLE,
        owner=owner,
        reason=reason,
    )


def known(name: str, runs: Collection[Run]) -> Run | None:
    """Return the open run of `throttle set` with the title `name`, or None."""
    ours = (run for run in runs if run.finished is None and run.purpose is Purpose.THROTTLE)
    return next((run for run in ours if run.id.endswith(f"-{_hash(name)}")), None)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
