"""`kquota configs`: kafka-configs for client quotas, with its flags, words and both connections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.entities import Named, named
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid
from kquota.quota import actions
from kquota.quota.change import Change
from kquota.quota.entity import CLIENTS, USERS, Entity, Every, Filter, Name
from kquota.quota.limits import Limits, keys, limits, plain
from kquota.terms import CONSUMER_BYTE_RATE, DEFAULT, PRODUCER_BYTE_RATE

EPILOG = """Examples:

kquota configs --bootstrap-server localhost:9092 --alter --add-config producer_byte_rate=10MB/s --user alice

kquota configs --zookeeper localhost:2181 --describe --entity-type users --entity-type clients"""


@connected()
def configs(
    connection: Connection,
    alter: Annotated[bool, typer.Option("--alter", help="Change the quotas of one entity.")] = False,
    describe: Annotated[bool, typer.Option("--describe", help="List quotas.")] = False,
    add_config: Annotated[
        str | None,
        typer.Option("--add-config", metavar="K=V,…", help="Quotas to set: byte rates take units, as 10MB/s."),
    ] = None,
    delete_config: Annotated[
        str | None, typer.Option("--delete-config", metavar="K,…", help="Quotas to remove.")
    ] = None,
    entity_type: Annotated[
        list[str] | None, typer.Option("--entity-type", metavar="TYPE", help="users or clients; twice for both.")
    ] = None,
    entity_name: Annotated[
        list[str] | None, typer.Option("--entity-name", metavar="NAME", help="A name for each --entity-type.")
    ] = None,
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="In place of a name: the type's default entity.")
    ] = False,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="Short for type users and its name.")
    ] = None,
    user_defaults: Annotated[bool, typer.Option("--user-defaults", help="The default of all users.")] = False,
    client: Annotated[
        str | None, typer.Option("--client", metavar="NAME", help="Short for type clients and its name.")
    ] = None,
    client_defaults: Annotated[bool, typer.Option("--client-defaults", help="The default of all clients.")] = False,
    output: OutputFormat = Output.text,
) -> int:
    """Set and show the quotas of users and client-ids, as kafka-configs does."""
    # The three default flags arrive as names: see EntityCommand.
    del entity_default, user_defaults, client_defaults
    if alter == describe:
        raise Invalid("Command must include exactly one action: --describe, --alter")
    entities = named(entity_type or [], entity_name or [], user, client)
    if alter:
        change = _change(entities, add_config, delete_config)
        return _alter(world.where(connection), entities, change, output)
    if add_config is not None or delete_config is not None:
        raise Invalid("--add-config and --delete-config go with --alter")
    wanted = Filter(user=entities.get(USERS), client_id=entities.get(CLIENTS))
    return _describe(world.where(connection), wanted, output)


def _change(entities: Named, add_config: str | None, delete_config: str | None) -> Change:
    names: dict[str, Name] = {kind: name for kind, name in entities.items() if not isinstance(name, Every)}
    if len(names) < len(entities):
        raise Invalid("--alter needs an --entity-name or --entity-default for each --entity-type")
    if add_config is None and delete_config is None:
        raise Invalid("At least one of --add-config or --delete-config must be specified with --alter")
    return Change(
        entity=Entity(user=names.get(USERS), client_id=names.get(CLIENTS)),
        add={} if add_config is None else limits(add_config),
        delete=() if delete_config is None else keys(delete_config),
    )


def _alter(at: world.Where, entities: Named, change: Change, output: Output) -> int:
    _echo(change)
    with world.quotas(at) as quotas:
        absent = actions.alter(quotas, change, world.until_seen())
    for key in absent:
        say(f"{change.entity}: {key} was not set; nothing to delete")
    if output is Output.json:
        print(json.dumps({"version": 1, "altered": _named_parts(change.entity)}, ensure_ascii=False))
    elif at.zookeeper is not None:
        print(f"Completed updating config for entity: {zookeeper_words(change.entity)}.")
    else:
        kind, name = next(iter(entities.items()))
        if name is DEFAULT:
            print(f"Completed updating default config for {kind} in the cluster.")
        else:
            print(f"Completed updating config for {kind[:-1]} {name}.")
    return DONE


def _describe(at: world.Where, wanted: Filter, output: Output) -> int:
    with world.quotas(at) as quotas:
        found = actions.describe(quotas, wanted)
    if at.zookeeper is not None and (entity := wanted.entity()) is not None:
        # Kafka 2.8's tool names an entity that was asked for by name even where it has no quota.
        found = found or {entity: {}}
    if output is Output.json:
        entities = [{**_named_parts(entity), "quotas": dict(limits)} for entity, limits in found.items()]
        print(json.dumps({"version": 1, "entities": entities}, ensure_ascii=False, indent=2))
    else:
        lines = zookeeper_lines(found) if at.zookeeper is not None else admin_lines(found)
        print("".join(f"{line}\n" for line in lines), end="")
    return DONE


def _named_parts(entity: Entity) -> dict[str, object]:
    """For JSON, where null is the default entity: no name that a user may have can be taken for it."""
    return {kind[:-1]: None if name is DEFAULT else name for kind, name in entity.parts()}


def admin_lines(found: Mapping[Entity, Limits]) -> list[str]:
    """kafka-configs' --describe on --bootstrap-server; values as Java prints doubles."""
    return [
        f"Quota configs for {_admin_words(entity)} are "
        + ", ".join(f"{key}={java_double(value)}" for key, value in limits.items())
        for entity, limits in found.items()
    ]


def zookeeper_lines(found: Mapping[Entity, Limits]) -> list[str]:
    """kafka-configs' --describe on --zookeeper, as Kafka 2.8 prints it."""
    return [
        f"Configs for {zookeeper_words(entity)} are "
        + ",".join(f"{key}={plain(value)}" for key, value in limits.items())
        for entity, limits in found.items()
    ]


_KINDS = {USERS: "user-principal", CLIENTS: "client-id"}


def _admin_words(entity: Entity) -> str:
    return ", ".join(
        f"the default {_KINDS[kind]}" if name is DEFAULT else f"{_KINDS[kind]} '{name}'"
        for kind, name in entity.parts()
    )


def zookeeper_words(entity: Entity) -> str:
    """An entity in the words of the ZooKeeper path of Kafka 2.8's tool."""
    return ", ".join(
        f"default {_KINDS[kind]}" if name is DEFAULT else f"{_KINDS[kind]} '{name}'" for kind, name in entity.parts()
    )


def java_double(value: float) -> str:
    """Java's Double.toString: a point always, an exponent from 10^7 and below 10^-3.

    >>> java_double(1024.0), java_double(10_000_000.0), java_double(12.5)
    ('1024.0', '1.0E7', '12.5')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = mantissa.removesuffix(".0").lstrip("-")
        sign = "-" if value < 0 else ""
        whole, _, part = digits.partition(".")
        return f"{sign}{whole[0]}.{(whole[1:] + part).rstrip('0') or '0'}E{len(whole) - 1}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _echo(change: Change) -> None:
    """What was understood of a rate, so that a mistake of units is seen at once."""
    from kquota.measure import human_rate

    for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE):
        if key in change.add:
            say(f"{change.entity}: {key} = {plain(change.add[key])} bytes per second ({human_rate(change.add[key])})")
