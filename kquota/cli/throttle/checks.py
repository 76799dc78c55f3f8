"""Checks of the topics, brokers and times that the `throttle` commands receive."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kquota.errors import Refused
from kquota.list_text import joined
from kquota.measure import duration
from kquota.terms import BrokerId
from kquota.throttle.cluster_throttles import ClusterThrottles

_UNWRITTEN: Final = ". Nothing was written"


def seconds_of(sample: str) -> float:
    """Return the seconds in `--sample`. 0 means that nothing is measured. Raises Invalid for an invalid time."""
    return 0.0 if sample.strip() in ("0", "0s") else duration(sample, "--sample")


def must_exist(
    throttles: ClusterThrottles, topics: Collection[str], brokers: Collection[BrokerId], *, writes: bool = True
) -> None:
    """Raise Refused for a topic that does not exist and for an unknown broker. If the fenced brokers are unknown, the
    message has the reason, because the broker may be dead.

    Without `writes`, the command only reads, so the message does not say that nothing was written.
    """
    if unknown := [topic for topic in topics if topic not in throttles.topics]:
        raise Refused(f"topic {unknown[0]} does not exist. Correct --topic{_UNWRITTEN if writes else ''}")
    known = {*throttles.brokers, *throttles.unread}
    if throttles.why_unlisted is not None and (strange := [b for b in brokers if b not in known]):
        unwritten = _UNWRITTEN if writes else ""
        raise Refused(f"broker {strange[0]} is dead or does not exist{unwritten}. ", throttles.why_unlisted)
    must_be_known(brokers, known, "--broker", writes=writes)


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
