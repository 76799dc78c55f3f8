"""What `kquota configs` does for users, clients and ips: one change written and seen, or quotas described."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from kquota.cli import world
from kquota.cli.configs.entities import Named
from kquota.cli.configs.quotas_printed import HIDDEN, admin_lines, zookeeper_lines, zookeeper_words
from kquota.cli.contract import DONE, printable, say
from kquota.cli.fields import COLUMNS, columns, named, number
from kquota.cli.options import Output
from kquota.cli.tsv import table
from kquota.quota import actions
from kquota.quota.change import Change
from kquota.quota.entity import CLIENTS, IPS, USERS, Entity, Every, Filter, Name
from kquota.quota.limits import Limits, keys, limits, plain
from kquota.quota.port import Scram
from kquota.terms import CONSUMER_BYTE_RATE, DEFAULT, PRODUCER_BYTE_RATE


def change_of(entities: Named, add: Mapping[str, str], option: str, delete: tuple[str, ...]) -> Change:
    """What the options ask for; `add` comes from `option`. Raises Invalid for what no broker should be given."""
    names: dict[str, Name] = {kind: name for kind, name in entities.items() if not isinstance(name, Every)}
    return Change(
        entity=Entity(user=names.get(USERS), client_id=names.get(CLIENTS), ip=names.get(IPS)),
        add=limits(add, list(entities), option),
        delete=keys(delete, list(entities)),
    )


def alter(at: world.Where, entities: Named, change: Change, output: Output) -> int:
    """Write the change and wait until it is seen. Prints Kafka's words about it, or its entity as JSON or TSV."""
    if at.zookeeper is not None and change.add:
        from kquota.stores.zookeeper import must_carry

        must_carry([change.entity])
    _echo(change)
    with world.quotas(at) as quotas:
        for line in actions.must_take_effect(quotas, change):
            say(f"warning: {line}")
        absent = actions.alter(quotas, change, world.until_seen())
    for key in absent:
        say(f"{change.entity}: {key} was not set; nothing to delete")
    match output:
        case Output.json:
            print(json.dumps({"version": 1, "altered": named(change.entity)}, ensure_ascii=False))
        case Output.tsv:
            print(table(COLUMNS, [columns(change.entity)]), end="")
        case Output.text:
            print(printable(_altered(at, entities, change.entity)))
    return DONE


def _altered(at: world.Where, entities: Named, entity: Entity) -> str:
    if at.zookeeper is not None:
        return f"Completed updating config for entity: {zookeeper_words(entity)}."
    kind, name = next(iter(entities.items()))
    if name is DEFAULT:
        return f"Completed updating default config for {kind} in the cluster."
    return f"Completed updating config for {kind[:-1]} {name}."


def describe(at: world.Where, entities: Named, output: Output) -> int:
    """Print the quotas of the entities that are named; of SCRAM credentials at most the iterations."""
    wanted = Filter(user=entities.get(USERS), client_id=entities.get(CLIENTS), ip=entities.get(IPS))
    unreadable: list[str] = []
    scram: Scram = {}
    with world.quotas(at, unreadable.append) as quotas:
        if wanted.user is not None and wanted.client_id is None:
            found, scram = actions.describe_users(quotas, wanted.user)
        else:
            found = actions.describe(quotas, wanted)
    for line in unreadable:
        say(f"warning: {line}")
    match output:
        case Output.json:
            print(json.dumps(_document(wanted, found, scram), ensure_ascii=False, indent=2))
        case Output.tsv:
            print(table((*COLUMNS, "key", "value"), _rows(found, scram)), end="")
        case Output.text:
            if at.zookeeper is not None and (entity := wanted.entity()) is not None and not unreadable:
                # Kafka 2.8's tool names an entity that was asked for by name even where it has no quota.
                found = found or {entity: {}}
            lines = admin_lines if at.zookeeper is None else zookeeper_lines
            print("".join(f"{printable(line)}\n" for line in lines(found, scram)), end="")
    return DONE


def _document(wanted: Filter, found: Mapping[Entity, Limits], scram: Scram) -> dict[str, object]:
    entities = [
        {**named(entity), "quotas": {key: number(value) for key, value in limits.items()}}
        for entity, limits in found.items()
    ]
    document: dict[str, object] = {"version": 1, "entities": entities}
    if wanted.user is not None and wanted.client_id is None:
        document["scram"] = [
            {"user": user, "mechanism": mechanism, "iterations": iterations}
            for user, credentials in scram.items()
            for mechanism, iterations in credentials.items()
        ]
    return document


def _rows(found: Mapping[Entity, Limits], scram: Scram) -> Iterator[list[str | None]]:
    for entity, held in found.items():
        for key, value in held.items():
            yield [*columns(entity), key, plain(value)]
    for user, credentials in scram.items():
        for mechanism, iterations in credentials.items():
            told = HIDDEN if iterations is None else f"iterations={iterations}"
            yield [*columns(Entity(user=user)), mechanism, told]


def _echo(change: Change) -> None:
    """What was understood of a rate, so that a mistake of units is seen at once."""
    from kquota.measure import human_rate

    for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE):
        if key in change.add:
            say(f"{change.entity}: {key} = {plain(change.add[key])} bytes per second ({human_rate(change.add[key])})")
