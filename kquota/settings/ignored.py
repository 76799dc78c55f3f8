"""Checks before a write: refuse invalid values and values that brokers ignore, and warn about likely mistakes."""

from __future__ import annotations

from typing import Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.measure import byte_rate
from kquota.settings.change import ConfigChange
from kquota.settings.rates import DEFAULT_HAS_RATES
from kquota.settings.resource import BROKERS, TOPICS, Resource
from kquota.settings.throttled_lists import throttled_replicas
from kquota.terms import (
    BYTE_RATES,
    DEFAULT,
    EVERY_REPLICA,
    LONG_MAX,
    LONGEST_VALUE,
    REMOTE_RATES,
    THROTTLE_LISTS,
    THROTTLE_RATES,
    dotted,
)

_REMOTE_RATES_ARE_HEEDED: Final = (3, 9)
_DELETES_ARE_HEEDED: Final = (2, 5)
_TYPE: Final = Parameter("entity_type")


def value(resource: Resource, key: str, text: str) -> str:
    """Return the value to store: rates as whole bytes per second, lists without blanks, and any other text as is.

    Raises Invalid for a key on the wrong kind of resource, for an invalid rate or list, for text that is not valid
    UTF-8, and for more bytes than a broker can store.
    """
    if key in BYTE_RATES:
        if resource.kind != BROKERS:
            raise Invalid(f"{key} is a broker config and has no effect on {resource}. Use ", _TYPE, f" {BROKERS}")
        return str(byte_rate(text, key))
    if key in THROTTLE_LISTS:
        if resource.kind != TOPICS:
            raise Invalid(f"{key} is a topic config and has no effect on {resource}. Use ", _TYPE, f" {TOPICS}")
        _must_fit(key, "".join(text.split()))  # before parsing, which takes 15 times the memory of the text
        text = throttled_replicas(key, text)
    _must_fit(key, text)
    return text


def _must_fit(key: str, text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # The message does not contain the value, because the value may be a password.
        raise Invalid(f"{key}: the value is not valid UTF-8. Check the shell's locale") from None
    if size > LONGEST_VALUE:
        raise Invalid(
            f"{key}: the value is {size:,} bytes long, but a broker stores at most {LONGEST_VALUE:,}. "
            "Give a shorter value or, for a throttled replica list, fewer entries"
        )


def must_take_effect(change: ConfigChange, release: tuple[int, ...] | None) -> tuple[str, ...]:
    """Return warnings about parts of a change that may be a mistake.

    Raises Refused for values that this release stores and ignores. If `release` is None (unknown), nothing is refused,
    and a throttle rate in the broker default causes a warning.
    """
    warned = []
    rates = [key for key in THROTTLE_RATES if key in change.add]
    if change.resource.kind == BROKERS and change.resource.name is DEFAULT and rates:
        words = f"brokers before Kafka 3.9 ignore {' and '.join(rates)} in the broker defaults (KAFKA-10190)"
        if release is None:
            warned.append(f"{words}, and the release of the brokers is unknown. Set the rate on each broker")
        elif release < DEFAULT_HAS_RATES:
            raise Refused(
                f"{words}, and the brokers run {dotted(release)}. Nothing was written. Set the rate on each broker"
            )
    remote = [key for key in REMOTE_RATES if key in change.add]
    if remote and release is not None and release < _REMOTE_RATES_ARE_HEEDED:
        raise Refused(
            f"{', '.join(remote)}: no effect before Kafka 3.9 (KIP-956), and the brokers run {dotted(release)}. "
            "Nothing was written. Upgrade the brokers first"
        )
    deleted = [key for key in THROTTLE_RATES if key in change.delete]
    if deleted and release is not None and release < _DELETES_ARE_HEEDED:
        lifted = ", ".join(f"{key}={LONG_MAX}" for key in deleted)
        it = "it" if len(deleted) == 1 else "them"
        warned.append(
            f"{change.resource}: before Kafka 2.5, a deleted rate stays in force (KAFKA-9625). To lift the limit, set "
            f"{lifted}, and then delete {it}"
        )
    for key in THROTTLE_LISTS:
        if change.add.get(key) == EVERY_REPLICA:
            warned.append(
                f"{change.resource}: {key}=* throttles every replica, including out-of-sync replicas that must catch up"
            )
    return tuple(warned)
