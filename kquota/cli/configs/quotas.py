"""`kquota configs` for users, clients and ips: write one change and read it back, or describe quotas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kquota.cli import clock, world
from kquota.cli.configs.answer import AlteredQuotas, DescribedQuotas, Unwritten, completed, entity_words
from kquota.cli.configs.entities import Named
from kquota.cli.contract import say
from kquota.cli.rates import warn_if_low
from kquota.errors import Invalid
from kquota.measure import rate_in_full
from kquota.quota import actions
from kquota.quota.entity import Entity, Every, Filter, Name
from kquota.quota.limits import Limits, QuotaChange, plain, value
from kquota.quota.port import Scram
from kquota.quota_keys import QUOTA_KEYS, quotas_of
from kquota.terms import CLIENTS, IPS, USERS


def change_of(entities: Named, add: Mapping[str, str], option: str, delete: tuple[str, ...]) -> QuotaChange:
    """Return the change that the options request. `option` is the option that contains `add`. Prints a warning for each
    byte rate that is probably too low.

    Raises Invalid for a key that is not a quota of these entities, for a missing or invalid value, and for a key that
    is both added and deleted.
    """
    names: dict[str, Name] = {kind: name for kind, name in entities.items() if not isinstance(name, Every)}
    entity = Entity(user=names.get(USERS), client_id=names.get(CLIENTS), ip=names.get(IPS))
    wanted = limits(add, list(entities), option)
    must_be_quotas(delete, list(entities), "--delete-config", "deleted")
    change = QuotaChange(entity=entity, add=wanted, delete=delete)
    for key, text in add.items():
        if QUOTA_KEYS[key].in_bytes:
            warn_if_low(f"{key}={text}", text, wanted[key], "quota")
    return change


def limits(pairs: Mapping[str, str], entity_types: Collection[str], option: str) -> Limits:
    """Parse the limits in the pairs of `option`. Byte rates can have units, and become bytes per second.

    >>> limits({"producer_byte_rate": "1MB/s", "request_percentage": "12.5"}, ["users"], "--add-config")
    {'producer_byte_rate': 1000000.0, 'request_percentage': 12.5}

    Raises Invalid for a key that is not a quota of `entity_types`, and for a value that is missing or not valid.
    """
    must_be_quotas(pairs, entity_types, option, "added")
    for key, text in pairs.items():
        if not text:
            raise Invalid(f"{option}: {key} has no value. To remove it, use --delete-config {key}")
    try:
        return {key: value(key, text) for key, text in pairs.items()}
    except Invalid as error:
        raise Invalid(f"{option}: {error}") from error


def must_be_quotas(keys: Iterable[str], entity_types: Collection[str], option: str, done: str) -> None:
    """Raise Invalid for a key that is not a quota of `entity_types`. The caller removes SCRAM mechanisms from `keys`.

    The message starts with `option` and contains the verb `done`, for example `added`.
    """
    allowed = quotas_of(entity_types)
    if unknown := [key for key in keys if key not in allowed]:
        whose = " and ".join(f"'{entity_type}'" for entity_type in entity_types)
        there = "The only quota" if len(allowed) == 1 else "The quotas"
        known = f"{there} of {whose} {'is' if len(allowed) == 1 else 'are'} {', '.join(allowed)}"
        what = "quota and SCRAM credential" if list(entity_types) == [USERS] else "quota"
        raise Invalid(
            f"{option}: Only {what} configs can be {done} for {whose}. "
            f"Unexpected config names: {', '.join(unknown)}. {known}"
        )


def alter(at: world.Where, entities: Named, change: QuotaChange, *, dry_run: bool) -> AlteredQuotas | Unwritten:
    """Write the change and wait until it is visible. A dry run makes the same checks, but writes nothing. Byte rates
    and warnings are printed on stderr.

    Raises Invalid for an entity that cannot have a quota on this connection. Raises Refused for a key that the brokers
    are too old for, and for a change that the cluster refuses. Raises Unreachable if the cluster does not answer, and
    Unseen if the change does not become visible in time.
    """
    if change.add:
        world.must_carry(at, change.entity)
    # Show how kquota understood each byte rate, so that the operator sees a wrong unit immediately.
    for key, row in QUOTA_KEYS.items():
        if row.in_bytes and key in change.add:
            say(f"{change.entity}: {key} = {rate_in_full(int(plain(change.add[key])))}")
    with world.quotas(at) as quotas:
        for line in actions.must_take_effect(quotas, change):
            say(f"warning: {line}")
        if dry_run:
            return Unwritten(altered=change.entity, added=change.add, deleted=change.delete)
        absent = actions.alter(quotas, change, clock.until_seen())
    return AlteredQuotas(
        altered=change.entity,
        sentence=sentence(at, entities, change.entity),
        notes=tuple(f"{change.entity}: {key} was not set; nothing to delete" for key in absent),
    )


def sentence(at: world.Where, entities: Named, entity: Entity) -> str:
    """Return Kafka's sentence about an entity that was altered."""
    kind, name = next(iter(entities.items()))
    return completed(kind, name, None if at.zookeeper is None else entity_words(entity))


def describe(at: world.Where, entities: Named) -> DescribedQuotas:
    """Return the quotas of the named entities and, if only users are named, their SCRAM credentials.

    Values that cannot be read become warnings. Raises Unreachable if the cluster does not answer, and Refused if it
    refuses the request.
    """
    wanted = Filter(user=entities.get(USERS), client_id=entities.get(CLIENTS), ip=entities.get(IPS))
    unreadable: list[str] = []
    scram: Scram | None = None
    with world.quotas(at, unreadable.append) as quotas:
        if wanted.user is not None and wanted.client_id is None:
            found, scram = actions.describe_users(quotas, wanted.user)
        else:
            found = actions.describe(quotas, wanted)
    return DescribedQuotas(
        entities=found,
        scram=scram,
        over_zookeeper=at.zookeeper is not None,
        asked=None if unreadable else wanted.entity(),
        notes=tuple(f"warning: {line}" for line in unreadable),
    )
