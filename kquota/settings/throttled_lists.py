"""Throttled replica lists (KIP-73): the only parser of their text, and the functions that add and remove entries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.settings.resource import Setting
from kquota.terms import EVERY_REPLICA, HIGHEST_ID, LONGEST_VALUE, ReplicaId, TopicPartition, listed_replica

_OF_THE_DRAFT: Final = re.compile(r"([0-9]+)-([0-9]+)")


def parts(text: str | None) -> tuple[str, ...]:
    """Return all entries of a list in order, including repeated ones. The result is empty for None (unset) and "".

    Empty entries, and blanks around an entry, are ignored, because Kafka accepts both.

    >>> parts(",0:1, 0:2,0:1,")
    ('0:1', '0:2', '0:1')
    """
    return tuple(filter(None, (part.strip() for part in (text or "").split(","))))


def entries(text: str | None) -> tuple[str, ...]:
    """Return the entries of a stored list in order, each once. The result is empty for None (unset) and "".

    >>> entries(",0:1, 0:2,0:1")
    ('0:1', '0:2')
    """
    return tuple(dict.fromkeys(parts(text)))


def throttled_replicas(key: str, text: str) -> str:
    """Parse a list into its stored form: `*`, or `partition:broker` separated by commas.

    >>> throttled_replicas("leader.replication.throttled.replicas", "0:1, 0:2,")
    '0:1,0:2'

    Raises Invalid for an empty list, for any other form, including KIP-73's `0-1`, and for a repeated
    entry. The message begins with `key`.
    """
    found = parts(text)
    if not found:
        raise Invalid(f"{key} is empty. To remove it, use ", Parameter("delete_config"), f" {key}")
    if EVERY_REPLICA in found:
        if len(found) > 1:
            raise Invalid(f"{key}: '*' means every replica, so it must be the only entry. Remove the others")
        return EVERY_REPLICA
    for entry in found:
        _must_be_a_replica(key, entry)
    seen: set[str] = set()
    for entry in found:
        if entry in seen:
            raise Invalid(f"{key}: {entry} is listed twice. List each replica once")
        seen.add(entry)
    return ",".join(found)


def _must_be_a_replica(key: str, entry: str) -> None:
    if draft := _OF_THE_DRAFT.fullmatch(entry):
        raise Invalid(
            f"{key}: {entry!r} has the form of KIP-73's draft. Write {':'.join(draft.groups())} (partition:broker)"
        )
    if listed_replica(entry) is None:
        raise Invalid(
            f"{key}: {entry!r} is not partition:broker with numbers up to {HIGHEST_ID}. "
            "Write 0:1,0:2 or '*', for example"
        )


def replica(setting: Setting, entry: str) -> ReplicaId | None:
    """Return the replica that `partition:broker` names, even if it does not exist.

    Returns None for `*` and for a malformed entry.
    """
    named = listed_replica(entry)
    return None if named is None else (TopicPartition(setting.name, named[0]), named[1])


def merge(current: str | None, ours: Sequence[str], what: str = "a throttled replica list") -> str:
    """Return the list with `ours` added after the current entries, without duplicates or empty entries.

    A current list with `*` stays unchanged. `*` in `ours` replaces every entry. Raises Refused if the list becomes
    longer than a broker can store. The message begins with `what`.
    """
    present = entries(current)
    if EVERY_REPLICA in present:
        return current or ""
    if EVERY_REPLICA in ours:
        return EVERY_REPLICA
    merged = ",".join(dict.fromkeys((*present, *ours)))
    if len(merged.encode()) > LONGEST_VALUE:
        raise Refused(
            f"{what} would be {len(merged.encode()):,} bytes long, but a broker stores at most "
            f"{LONGEST_VALUE:,}. Throttle fewer replicas of the topic at the same time"
        )
    return merged


def without(current: str | None, ours: Iterable[str], prior: str | None) -> str | None:
    """Return the list `current` without the entries in `ours`.

    If exactly the entries of `prior` are left, the result is the text of `prior`, which can be "". In all other cases,
    a list without entries becomes None, which means unset. If `current` is unset, the result is None.
    """
    if current is None:
        return None
    removed = set(ours)
    left = tuple(entry for entry in entries(current) if entry not in removed)
    return prior if set(left) == set(entries(prior)) else ",".join(left) or None
