"""What a broker would ignore, or what cannot be meant: told before anything is written (KIP-73, KAFKA-10190)."""

from __future__ import annotations

from typing import Final

from kquota.errors import Invalid, Refused
from kquota.measure import byte_rate
from kquota.settings.change import ConfigChange
from kquota.settings.rates import DEFAULT_HAS_RATES
from kquota.settings.resource import BROKERS, TOPICS, Kind, Resource
from kquota.settings.throttled_lists import throttled_replicas
from kquota.terms import (
    DEFAULT,
    EVERY_REPLICA,
    LONGEST_VALUE,
    THROTTLE_LISTS,
    THROTTLE_RATES,
)

_DELETES_ARE_HEEDED: Final = (2, 5)
_NO_LIMIT: Final = 2**63 - 1


class OtherKind(Invalid):
    """A key of the other `kind` of resource."""

    def __init__(self, message: str, kind: Kind) -> None:
        super().__init__(message)
        self.kind = kind


def value(resource: Resource, key: str, text: str) -> str:
    """What to store for the text of one value: rates as whole bytes per second, lists without blanks.

    Every other value is the broker's to judge. Raises Invalid for a key on the wrong kind of resource, for what is no
    rate and no list, for what is no UTF-8, and for more bytes than a broker can hold.
    """
    if key in THROTTLE_RATES:
        if resource.kind == TOPICS:
            raise OtherKind(f"{key} is a broker's config, and {resource} would ignore it", BROKERS)
        return str(byte_rate(text, key))
    if key in THROTTLE_LISTS:
        if resource.kind == BROKERS:
            raise OtherKind(f"{key} is a topic's config, and {resource} would ignore it", TOPICS)
        text = throttled_replicas(key, text)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # It may be a password, and so is not shown.
        raise Invalid(f"{key}: the value is not valid UTF-8; check the shell's locale") from None
    if size > LONGEST_VALUE:
        raise Invalid(
            f"{key}: the value is {size:,} bytes long, and a broker can store {LONGEST_VALUE:,}. "
            "Throttle some of the topic's partitions at a time"
        )
    return text


def must_take_effect(change: ConfigChange, release: tuple[int, ...] | None) -> tuple[str, ...]:
    """Warnings about what the operator may not mean; `release` None: this cluster's release is not known.

    Raises Refused for what this release stores and ignores.
    """
    warned = []
    rates = [key for key in THROTTLE_RATES if key in change.add]
    if change.resource.kind == BROKERS and change.resource.name is DEFAULT and rates:
        words = "on the default of all brokers is ignored before Kafka 3.9 (KAFKA-10190)"
        if release is None:
            warned.append(
                f"{', '.join(rates)} {words}, and ZooKeeper does not store the release. Set it on each broker"
            )
        elif release < DEFAULT_HAS_RATES:
            is_ = ".".join(map(str, release))
            raise Refused(
                f"{', '.join(rates)} {words}, and the brokers are {is_}. Nothing was written. Set it on each broker"
            )
    gone = [key for key in THROTTLE_RATES if key in change.delete]
    if gone and release is not None and release < _DELETES_ARE_HEEDED:
        lifted = ", ".join(f"{key}={_NO_LIMIT}" for key in gone)
        warned.append(
            f"{change.resource}: before Kafka 2.5, a deleted rate stays in force (KAFKA-9625). Set {lifted} first"
        )
    for key in THROTTLE_LISTS:
        if change.add.get(key) == EVERY_REPLICA:
            warned.append(
                f"{change.resource}: {key}=* throttles every replica, including out-of-sync replicas that must catch up"
            )
    return tuple(warned)
