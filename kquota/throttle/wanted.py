"""What `throttle set` brings into force: whole topics, brokers, or just what a returning broker is behind with."""

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
from kquota.reassign.throttle_writes import Wanted
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
) -> Wanted:
    """`*` on each topic and the rate on each broker, on these sides (KIP-73's procedures)."""
    lists = {Setting.of_topic(topic, LISTS[side]): (EVERY_REPLICA,) for topic in sorted(topics) for side in sides}
    if rate is None:
        return lists
    return lists | {Setting.of_broker(b, RATES[side]): (str(rate),) for b in sorted(brokers) for side in sides}


def behind(snapshot: Snapshot, broker: BrokerId) -> tuple[TopicPartition, ...]:
    """The partitions of which this broker holds a replica that is not in sync; copies of a move under way are not."""
    return tuple(
        name
        for name, now in snapshot.partitions.items()
        if broker in now.before and broker not in now.isr and now.leader != broker
    )


def recovering(snapshot: Snapshot, broker: BrokerId, rate: ByteRate, readable: Collection[BrokerId]) -> Wanted:
    """What throttles a broker's catching up, and nothing else; nothing when it is not behind.

    In the follower lists its replicas that are out of sync, in the leader lists their other replicas, because any of
    them may come to lead; the leader rate on these, the follower rate on the broker, as far as they are `readable`.
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
    """What tells one `throttle set` from another: the same for the same topics, brokers and sides."""
    return joined(sorted(settings))


def recovery(broker: BrokerId) -> str:
    """The same for `--recovering`, whatever the broker is behind with at the moment."""
    return f"recovering {broker}"


def new(name: str, rate: ByteRate | None, now: datetime, owner: Owner, reason: str | None = None) -> Run:
    """A run that moves nothing and only holds a throttle; its id ends with the hash of its title."""
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
    """The open run of this title, if there is one."""
    ours = (run for run in runs if run.finished is None and run.purpose is Purpose.THROTTLE)
    return next((run for run in ours if run.id.endswith(f"-{_hash(name)}")), None)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
