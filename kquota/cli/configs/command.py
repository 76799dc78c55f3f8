"""`kquota configs`: kafka-configs for quotas and throttles, with its flags, its words and both connections."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kquota.cli import world
from kquota.cli.configs.entities import Named, elsewhere, must_be_named, named
from kquota.cli.connection import Connection, connected
from kquota.cli.options import Output, TableFormat
from kquota.config.resource import BROKERS, TOPICS, Kind, Resource
from kquota.errors import Invalid
from kquota.quota.entity import CLIENTS, IPS, USERS, Every

EPILOG: Final = """Each write is read back until the cluster shows it. Exit codes: 0 done and seen, 1 failed or
refused, 2 wrong usage.

Examples:
  kquota configs --bootstrap-server localhost:9092 --alter --add-config producer_byte_rate=10MB/s --user alice
  kquota configs --zookeeper localhost:2181 --describe --entity-type users --entity-type clients"""

HEADINGS: Final = {
    "--alter": "Action (exactly one)",
    "--add-config": "Configs",
    "--entity-type": "Entity",
    "--user": "Entity, in short",
    "--output": "Output",
}
"""The first option of each part of the help, and its heading."""

_RESOURCES: Final[tuple[Kind, ...]] = (TOPICS, BROKERS)
_SCRAM: Final = re.compile(r"(?:^|,)\s*SCRAM-", re.IGNORECASE)


def _short(kind: str, what: str) -> Any:
    return typer.Option(f"--{kind[:-1]}", metavar="NAME", help=f"As --entity-type {kind} --entity-name NAME: {what}.")


def _defaults(what: str) -> Any:
    return typer.Option(f"--{what}-defaults", help=f"As --entity-type {what}s --entity-default.")


def _hidden(option: str) -> Any:
    return typer.Option(option, hidden=True)


@connected()
def configs(
    connection: Connection,
    alter: Annotated[bool, typer.Option("--alter", help="Change the configs of one entity.")] = False,
    describe: Annotated[bool, typer.Option("--describe", help="Show the configs of entities.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --describe of topics or brokers: static and default configs, too.")
    ] = False,
    add_config: Annotated[
        str | None,
        typer.Option(
            "--add-config",
            metavar="K=V,K=[V,V],…",
            help="Configs to set. Byte rates take units: 10MB/s; bare: bytes per second.",
        ),
    ] = None,
    add_config_file: Annotated[
        Path | None, typer.Option("--add-config-file", metavar="FILE", help="The same, from a Java properties file.")
    ] = None,
    delete_config: Annotated[
        list[str] | None, typer.Option("--delete-config", metavar="K,…", help="Configs to remove, repeatable.")
    ] = None,
    entity_type: Annotated[
        list[str] | None,
        typer.Option(
            "--entity-type",
            metavar="TYPE",
            help="users, clients, ips, topics or brokers; repeatable for users with clients.",
        ),
    ] = None,
    entity_name: Annotated[
        list[str] | None,
        typer.Option("--entity-name", metavar="NAME", help="The name, one for each --entity-type in its order."),
    ] = None,
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="In place of a name: the type's default entity.")
    ] = False,
    user: Annotated[str | None, _short(USERS, "a principal's name")] = None,
    user_defaults: Annotated[bool, _defaults("user")] = False,
    client: Annotated[str | None, _short(CLIENTS, "a client-id")] = None,
    client_defaults: Annotated[bool, _defaults("client")] = False,
    ip: Annotated[str | None, _short(IPS, "an address or host")] = None,
    ip_defaults: Annotated[bool, _defaults("ip")] = False,
    topic: Annotated[str | None, _short(TOPICS, "a topic's name")] = None,
    broker: Annotated[str | None, _short(BROKERS, "a broker's id")] = None,
    broker_defaults: Annotated[bool, _defaults("broker")] = False,
    group: Annotated[str | None, _hidden("--group")] = None,
    client_metrics: Annotated[str | None, _hidden("--client-metrics")] = None,
    broker_logger: Annotated[str | None, _hidden("--broker-logger")] = None,
    force: Annotated[bool, _hidden("--force")] = False,
    output: TableFormat = Output.text,
) -> int:
    """Set and show quotas, and the configs of topics and brokers, as kafka-configs does."""
    # The default flags arrive as names (see EntityCommand), and there is no prompt that --force could answer.
    del entity_default, user_defaults, client_defaults, ip_defaults, broker_defaults, force
    if alter == describe:
        raise Invalid("Command must include exactly one action: --describe, --alter")
    for what, given in {"groups": group, "client-metrics": client_metrics, "broker-loggers": broker_logger}.items():
        if given is not None:
            raise Invalid(elsewhere(what))
    short = {USERS: user, CLIENTS: client, IPS: ip, TOPICS: topic, BROKERS: broker}
    entities = named(entity_type or [], entity_name or [], short)
    if alter:
        return _alter(connection, entities, add_config, add_config_file, delete_config or [], output)
    for option, value in {
        "add-config": add_config,
        "add-config-file": add_config_file,
        "delete-config": delete_config,
    }.items():
        if value is not None and value != []:
            raise Invalid(f'Option "[describe]" can\'t be used with option "[{option}]": --{option} goes with --alter')
    return _describe(connection, entities, everything, output)


def _describe(connection: Connection, entities: Named, everything: bool, output: Output) -> int:
    at = world.where(connection)
    if everything and at.zookeeper is not None:
        raise Invalid("--bootstrap-server must be specified for --all")
    for kind in _RESOURCES:
        if kind in entities:
            from kquota.cli.configs import resources

            name = entities[kind]
            return resources.describe(
                at, kind, None if isinstance(name, Every) else name, everything=everything, output=output
            )
    from kquota.cli.configs import quotas

    return quotas.describe(at, entities, output)


def _alter(
    connection: Connection,
    entities: Named,
    add_config: str | None,
    add_config_file: Path | None,
    delete_config: list[str],
    output: Output,
) -> int:
    must_be_named(entities)
    if add_config is not None and add_config_file is not None:
        raise Invalid("Only one of --add-config or --add-config-file must be specified")
    if add_config is None and add_config_file is None and not delete_config:
        raise Invalid(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    from kquota.cli.configs import drafts, pairs

    if USERS in entities or CLIENTS in entities:
        _must_not_be_scram([add_config or "", *delete_config])
    add = pairs.pairs(add_config) if add_config is not None else {}
    if add_config_file is not None:
        add = pairs.pairs_in(add_config_file)
        _must_not_be_scram(add)
    option = "--add-config" if add_config_file is None else "--add-config-file"
    add = drafts.today(add, option)
    delete = drafts.today_keys(pairs.keys(delete_config), "--delete-config")
    for kind in _RESOURCES:
        name = entities.get(kind)
        if name is not None and not isinstance(name, Every):
            from kquota.cli.configs import resources

            if add_config is not None and kind == BROKERS:
                resources.must_not_be_secret(add)
            return resources.alter(world.where(connection), Resource(kind=kind, name=name), add, delete, output)
    from kquota.cli.configs import quotas

    change = quotas.change_of(entities, add, option, delete)
    return quotas.alter(world.where(connection), entities, change, output)


def _must_not_be_scram(texts: Iterable[str]) -> None:
    """A credential's text is not even parsed: no message about it may repeat a part of it."""
    if any(_SCRAM.search(text) for text in texts):
        raise Invalid(
            "SCRAM credentials are not kquota's, and no password belongs on its command line: alter them with Kafka's "
            "own kafka-configs --alter --entity-type users; nothing was written"
        )
