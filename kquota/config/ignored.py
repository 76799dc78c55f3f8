"""What a broker would ignore, or what cannot be meant: told before anything is written (KIP-73, KAFKA-10190)."""

from __future__ import annotations

import re
from typing import Final

from kquota.config.change import ConfigChange
from kquota.config.resource import BROKERS, TOPICS, Entry, Resource
from kquota.errors import Invalid, Refused
from kquota.measure import byte_rate
from kquota.terms import (
    DEFAULT,
    DYNAMIC_BROKER,
    DYNAMIC_DEFAULT_BROKER,
    EVERY_REPLICA,
    HIGHEST_ID,
    LONGEST_VALUE,
    THROTTLE_LISTS,
    THROTTLE_RATES,
    listed_replica,
)

_DEFAULT_HAS_RATES: Final = (3, 9)
_DELETES_ARE_HEEDED: Final = (2, 5)
_NO_LIMIT: Final = 2**63 - 1
_OF_THE_DRAFT: Final = re.compile(r"([0-9]+)-([0-9]+)")


def value(resource: Resource, key: str, text: str) -> str:
    """What to store for the text of one --add-config: rates as whole bytes per second, lists without blanks.

    Every other value is the broker's to judge. Raises Invalid for a key on the wrong kind of resource, for what is no
    rate and no list, for what is no UTF-8, and for more bytes than a broker can hold.
    """
    if key in THROTTLE_RATES:
        if resource.kind == TOPICS:
            raise Invalid(f"{key} is a broker's config, and {resource} would ignore it: give --entity-type brokers")
        return str(byte_rate(text, key))
    if key in THROTTLE_LISTS:
        if resource.kind == BROKERS:
            raise Invalid(f"{key} is a topic's config, and {resource} would ignore it: give --entity-type topics")
        text = throttled_replicas(key, text)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # It may be a password, and so is not shown.
        raise Invalid(f"{key}: the value is not valid UTF-8; check the shell's locale") from None
    if size > LONGEST_VALUE:
        raise Invalid(
            f"{key}: the value is {size:,} bytes long, a broker holds {LONGEST_VALUE:,}; "
            "throttle the topic's partitions in turns"
        )
    return text


def throttled_replicas(key: str, text: str) -> str:
    """A throttled-replica list as it is stored: `*`, or `partition:broker` joined by commas.

    >>> throttled_replicas("leader.replication.throttled.replicas", "0:1, 0:2")
    '0:1,0:2'

    Raises Invalid, naming `key`, for any other form, KIP-73's `0-1` among them, and for an entry that stands twice.
    """
    entries = [entry.strip() for entry in text.split(",")]
    if entries == [""]:
        raise Invalid(f"{key} is empty; to remove it write --delete-config {key}")
    if EVERY_REPLICA in entries:
        if len(entries) > 1:
            raise Invalid(f"{key}: '*' stands for every replica, so it stands alone")
        return EVERY_REPLICA
    for entry in entries:
        _must_be_a_replica(key, entry)
    if len(set(entries)) < len(entries):
        twice = next(entry for entry in entries if entries.count(entry) > 1)
        raise Invalid(f"{key}: {twice} is given twice")
    return ",".join(entries)


def _must_be_a_replica(key: str, entry: str) -> None:
    if draft := _OF_THE_DRAFT.fullmatch(entry):
        raise Invalid(
            f"{key}: {entry!r} is the form of KIP-73's draft; today it is partition:broker, {':'.join(draft.groups())}"
        )
    if listed_replica(entry) is None:
        raise Invalid(
            f"{key}: {entry!r} is not partition:broker, neither more than {HIGHEST_ID}; "
            "write for example 0:1,0:2 or '*'"
        )


def in_force(entry: Entry, release: tuple[int, ...] | None) -> bool:
    """Whether a broker acts on what it tells: on a rate only where it was set dynamically (KAFKA-20125)."""
    if entry.key not in THROTTLE_RATES or entry.source == DYNAMIC_BROKER:
        return True
    heeded = release is not None and release >= _DEFAULT_HAS_RATES
    return heeded and entry.source == DYNAMIC_DEFAULT_BROKER


def must_take_effect(change: ConfigChange, release: tuple[int, ...] | None) -> tuple[str, ...]:
    """Warnings about what the operator may not mean; `release` None: this cluster's release is not known.

    Raises Refused for what this release stores and ignores.
    """
    warned = []
    rates = [key for key in THROTTLE_RATES if key in change.add]
    if change.resource.kind == BROKERS and change.resource.name is DEFAULT and rates:
        words = "on the default of all brokers is ignored before Kafka 3.9 (KAFKA-10190)"
        if release is None:
            warned.append(f"{', '.join(rates)} {words}, and ZooKeeper does not tell the release; set it on each broker")
        elif release < _DEFAULT_HAS_RATES:
            is_ = ".".join(map(str, release))
            raise Refused(f"{', '.join(rates)} {words}, and this is {is_}: set it on each broker. Nothing was written")
    gone = [key for key in THROTTLE_RATES if key in change.delete]
    if gone and release is not None and release < _DELETES_ARE_HEEDED:
        lifted = ", ".join(f"{key}={_NO_LIMIT}" for key in gone)
        warned.append(
            f"{change.resource}: before Kafka 2.5 a deleted rate stays in force (KAFKA-9625); set {lifted} first"
        )
    for key in THROTTLE_LISTS:
        if change.add.get(key) == EVERY_REPLICA:
            warned.append(
                f"{change.resource}: {key}=* throttles every replica, also one that fell out of sync and must catch up"
            )
    return tuple(warned)
