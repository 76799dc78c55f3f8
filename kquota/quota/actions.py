"""Reads and writes client quotas and SCRAM credentials, and waits until a written change is visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import Invalid, KquotaError, Refused, Unseen
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits, QuotaChange, Replacement
from kquota.quota.port import ClusterQuotas, Principals, Scram
from kquota.quota.scram import ScramChange
from kquota.quota_keys import QUOTA_KEYS
from kquota.terms import dotted


def describe(quotas: ClusterQuotas, wanted: Filter) -> dict[Entity, Limits]:
    """Return the result of `ClusterQuotas.describe`, in display order, each entity with its keys sorted."""
    return _in_order(quotas.describe(wanted))


def describe_users(principals: Principals, name: Name | Every) -> tuple[dict[Entity, Limits], Scram]:
    """Return the result of `Principals.users`, in display order."""
    found, scram = principals.users(name)
    return _in_order(found), {user: dict(sorted(scram[user].items())) for user in sorted(scram)}


def must_take_effect(principals: Principals, change: QuotaChange) -> tuple[str, ...]:
    """Return a tuple with one warning if the change sets keys that older brokers ignore, and the brokers' release is
    unknown. Otherwise, return an empty tuple.

    Raises Refused if the brokers are known to be too old for a key that the change sets.
    """
    new = [key for key in change.add if QUOTA_KEYS[key].since]
    if not new:
        return ()
    release = principals.release()
    if release is None:
        since = ", ".join(f"{key} needs Kafka {dotted(QUOTA_KEYS[key].since)}" for key in new)
        return (f"this connection does not report the brokers' release. {since}, and older brokers ignore it",)
    if ignored := [key for key in new if release < QUOTA_KEYS[key].since]:
        since = ", ".join(f"{key} needs Kafka {dotted(QUOTA_KEYS[key].since)}" for key in ignored)
        raise Refused(
            f"{change.entity}: {since}, and the brokers run {dotted(release)}. Nothing was written. Leave out "
            f"{' and '.join(ignored)}, or upgrade the brokers"
        )
    return ()


def _in_order(found: Mapping[Entity, Limits]) -> dict[Entity, Limits]:
    in_order = sorted(found.items(), key=lambda item: item[0].order())
    return {entity: dict(sorted(limits.items())) for entity, limits in in_order if limits}


def alter(quotas: ClusterQuotas, change: QuotaChange, attempts: Iterator[object]) -> tuple[str, ...]:
    """Write `change`, then read until it is visible, at most once for each item of `attempts`.

    Several reads can be necessary, because on KRaft a read right after a write is often stale. Return the keys of
    `change.delete` that were not set before. Raises the errors of `ClusterQuotas.alter`, and Unseen if the change was
    accepted but no read showed it.
    """
    before = _limits(quotas, change.entity) if change.delete else {}
    quotas.alter([change])
    for _ in attempts:
        if change.seen(_limits(quotas, change.entity)):
            return tuple(key for key in change.delete if key not in before)
    raise Unseen(f"{change.entity}: the change was accepted, but the cluster does not show it yet")


def alter_credentials(principals: Principals, change: ScramChange, attempts: Iterator[object]) -> tuple[str, ...]:
    """Write SCRAM credentials, then read until they are visible, at most once for each item of `attempts`.

    Return the mechanisms of `change.delete` that were not set before. Raises Refused if this connection cannot write
    credentials, the errors of `Principals.alter_credentials`, and Unseen if the change was accepted but no read showed
    it.
    """
    principals.must_accept_credentials()
    absent = principals.alter_credentials(change)
    for _ in attempts:
        _, scram = principals.users(change.user)
        if change.seen(scram.get(change.user, {})):
            return absent
    raise Unseen(
        f"SCRAM credentials of user {change.user!r}: the change was accepted, but the cluster does not show it yet"
    )


def _limits(quotas: ClusterQuotas, entity: Entity) -> Limits:
    return quotas.describe(Filter.of(entity)).get(entity, {})


BATCH: Final = 1_000
"""The maximum number of entities in one request, well within Kafka's limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The entities whose new limits are visible (`done`), and the reason for every other entity (`undone`), each in the
    given order.
    """

    done: tuple[Entity, ...]
    undone: Mapping[Entity, str | KquotaError] = field(default_factory=dict)


def apply(
    quotas: ClusterQuotas, every: Sequence[Replacement], attempts: Iterator[object], on_sent: Callable[[int], None]
) -> Outcome:
    """Write the replacements in batches, then read until all of them are visible, at most once for each item of
    `attempts`.

    Entities are independent: a failed entity does not stop the other entities. Only a lost connection or a refused
    batch stops the work. The entities of this batch and all later entities are then reported as undone, and the caller
    can safely apply the document again. `on_sent` receives the number of entities of each batch that was answered.
    Raises Invalid, before any write, for a name that the connection cannot carry. Raises the error of a refused first
    batch, because nothing was written.
    """
    quotas.must_carry(replacement.entity for replacement in every)
    undone: dict[Entity, str | KquotaError] = {}
    for start in range(0, len(every), BATCH):
        batch = every[start : start + BATCH]
        try:
            undone |= quotas.replace(batch)
        except KquotaError as error:
            refused = isinstance(error, (Invalid, Refused))
            if refused and not start:
                raise
            undone |= {replacement.entity: str(error) if refused else f"unknown: {error}" for replacement in batch}
            undone |= {replacement.entity: "not sent" for replacement in every[start + BATCH :]}
            break
        on_sent(len(batch))
    sent = [replacement for replacement in every if replacement.entity not in undone]
    undone |= _unseen(quotas, sent, attempts)
    return Outcome(
        done=tuple(replacement.entity for replacement in every if replacement.entity not in undone),
        undone={r.entity: undone[r.entity] for r in every if r.entity in undone},
    )


def _unseen(quotas: ClusterQuotas, sent: list[Replacement], attempts: Iterator[object]) -> dict[Entity, str]:
    left = sent
    for _ in attempts:
        if not left:
            break
        try:
            now = quotas.everything()
        except KquotaError as error:
            return {replacement.entity: f"accepted, but the result cannot be read: {error}" for replacement in left}
        left = [replacement for replacement in left if not replacement.seen(now.get(replacement.entity, {}))]
    return {replacement.entity: "accepted, but the cluster does not show it yet" for replacement in left}
