"""Checks of the topics, brokers and times that the `throttle` commands receive."""

from __future__ import annotations

from collections.abc import Collection

from kquota.errors import Refused
from kquota.list_text import joined
from kquota.measure import duration
from kquota.terms import BrokerId
from kquota.throttle.standing import Standing


def seconds_of(sample: str) -> float:
    """Return the seconds in --sample. 0 means that nothing is measured. Raises Invalid for an invalid time."""
    return 0.0 if sample.strip() in ("0", "0s") else duration(sample, "--sample")


def must_exist(standing: Standing, topics: Collection[str], brokers: Collection[BrokerId]) -> None:
    """Raise Refused for a topic that does not exist and for an unknown broker."""
    if unknown := [topic for topic in topics if topic not in standing.topics]:
        raise Refused(f"topic {unknown[0]} does not exist. Correct --topic. Nothing was written")
    must_be_known(brokers, {*standing.brokers, *standing.unread}, "--broker")


def must_be_known(brokers: Collection[BrokerId], known: Collection[BrokerId], option: str) -> None:
    """Raise Refused, naming the option, for a broker that is not in `known`."""
    if strange := [broker for broker in brokers if broker not in known]:
        there = joined(sorted(known))
        raise Refused(
            f"broker {strange[0]} does not exist (known brokers: {there}). Correct {option}. Nothing was written"
        )
