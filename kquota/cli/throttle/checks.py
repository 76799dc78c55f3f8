"""Checks of the topics, brokers and times that the `throttle` commands receive."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from kquota.errors import Refused
from kquota.list_text import few, joined
from kquota.measure import counted, duration
from kquota.reassign.port import MoveCluster
from kquota.terms import BrokerId
from kquota.throttle.cluster_throttles import ClusterThrottles

_NAMED: Final = 3
_UNWRITTEN: Final = ". Nothing was written"


def seconds_of(sample: str) -> float:
    """Return the seconds in `--sample`. 0 means that nothing is measured. Raises Invalid for an invalid time."""
    return 0.0 if sample.strip() in ("0", "0s") else duration(sample, "--sample")


def must_exist(
    cluster: MoveCluster,
    throttles: ClusterThrottles,
    topics: Collection[str],
    brokers: Collection[BrokerId],
    *,
    writes: bool = True,
) -> None:
    """Raise Refused for a topic that does not exist or that Kafka hides from this user, and for an unknown broker. If
    the fenced brokers are unknown, the message has the reason, because the broker may be dead.

    Without `writes`, the command only reads, so the message does not say that nothing was written.
    """
    if unknown := [topic for topic in topics if topic not in throttles.topics]:
        cluster.snapshot(unknown)  # raises Refused for a topic that Kafka hides from this user
        raise Refused(f"topic {unknown[0]} does not exist. Correct --topic{_UNWRITTEN if writes else ''}")
    known = {*throttles.brokers, *throttles.unread}
    if throttles.why_unlisted is not None and (strange := [b for b in brokers if b not in known]):
        unwritten = _UNWRITTEN if writes else ""
        raise Refused(f"broker {strange[0]} is dead or does not exist{unwritten}. ", throttles.why_unlisted)
    must_be_known(brokers, known, "--broker", writes=writes)


def must_show_all(hidden: Sequence[str]) -> None:
    """Raise Refused if Kafka hides topics from this user, because kquota cannot throttle their replicas."""
    if hidden:
        raise Refused(
            f"Kafka hides {counted(len(hidden), 'topic')} from this user ({few(hidden, _NAMED)}), so kquota cannot "
            f"throttle {'its' if len(hidden) == 1 else 'their'} replicas. This user needs Describe on every topic"
            f"{_UNWRITTEN}"
        )


def must_be_known(
    brokers: Collection[BrokerId], known: Collection[BrokerId], option: str, *, writes: bool = True
) -> None:
    """Raise Refused for a broker that is not in `known`. The message names `option` as the option to correct.

    `writes` is as in `must_exist`.
    """
    if strange := [broker for broker in brokers if broker not in known]:
        there = joined(sorted(known))
        end = _UNWRITTEN if writes else ""
        raise Refused(f"broker {strange[0]} does not exist (known brokers: {there}). Correct {option}{end}")
