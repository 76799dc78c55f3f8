"""`kquota configs`: the options of kafka-configs, for connections to brokers, controllers and ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import typer

from kquota.cli import commands
from kquota.cli.actions import StrictCommand
from kquota.cli.connection import ThroughControllers
from kquota.cli.options import Output, TableFormat, WritingOptions, Yes, flag, value
from kquota.entity_types import BROKER_LOGGERS, BROKERS, CLIENT_METRICS, ENTITIES, GROUPS, TOPICS
from kquota.terms import CLIENTS, IPS, USERS

EPILOG: Final = """After each change, kquota waits until the cluster shows the new configs. Over
--bootstrap-controller, kquota waits for the configs of a broker only if this broker is also a controller, because a
controller shows only its own configs. Exit codes: 0 done; 1 failed or refused; 2 wrong usage.

Examples:
  kquota configs --bootstrap-server localhost:9092 --alter --add-config producer_byte_rate=10MB/s --user alice
  kquota configs --zookeeper localhost:2181 --describe --entity-type users --entity-type clients"""

HEADINGS: Final = {
    "--alter": "Action (exactly one)",
    "--add-config": "Configs",
    "--entity-type": "Entity",
    "--user": "Entity, short forms",
    "--dry-run": "Dry run and output",
}

DEFAULT_NAME: Final = "\0"
"""The name of a default entity in a list of names. It cannot be a real name, because no argument can contain a NUL."""
_DEFAULT_FLAGS: Final = {
    "--entity-default": "--entity-name",
    "--client-defaults": "--client",
    "--user-defaults": "--user",
    "--broker-defaults": "--broker",
    "--ip-defaults": "--ip",
}


class EntityCommand(StrictCommand):
    """A command that assigns `--entity-name` and `--entity-default` to the entity types in the order of the command
    line.

    Click keeps the order only within one option, so `--entity-default` becomes an `--entity-name` with a special value.
    """

    written_as: ClassVar = {default: (option, DEFAULT_NAME) for default, option in _DEFAULT_FLAGS.items()}
    synonyms: ClassVar = {"--client-id": "--client"}  # the name in `quota explain`, and Kafka's name

    def twice(self, option: str) -> str:
        """Return Kafka's message for an option that is given twice. A repeated short form is a repeated entity type."""
        for kind, row in ENTITIES.items():
            if f"--{row.short}" == option:
                return f"Duplicate entity type(s) specified: {kind}"
        return super().twice(option)


def _short(kind: str) -> Any:
    row = ENTITIES[kind]
    words = f"Short for --entity-type {kind} --entity-name NAME ({row.what})."
    return value(row.short, "NAME", words)


def _defaults(what: str) -> Any:
    return flag(f"{what}-defaults", f"Short for --entity-type {what}s --entity-default.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsOptions(WritingOptions):
    """Set and show quotas, and the configs of topics, brokers and other entities, like kafka-configs."""

    # kquota does not read `force`, which exists only because kafka-configs has --force. It also does not read the
    # fields of --entity-default and the --*-defaults options, because EntityCommand parses these options as names.
    connection: ThroughControllers
    alter: Annotated[bool, flag("alter", "Change the configs of one entity.")] = False
    describe: Annotated[bool, flag("describe", "Show the configs of entities.")] = False
    everything: Annotated[
        bool, flag("all", "With --describe: also show static and default configs. Not for quotas.")
    ] = False
    add_config: Annotated[
        str | None,
        value(
            "add-config",
            "K=V,K=[V,V],…",
            "Configs to set. Byte rates accept units, for example 10MB/s. Without a unit: bytes per second.",
        ),
    ] = None
    add_config_file: Annotated[
        Path | None, value("add-config-file", "FILE", "Java properties file with configs to set.")
    ] = None
    password_file: Annotated[
        Path | None,
        value(
            "password-file",
            "FILE",
            "File with the password of a SCRAM credential, or - for stdin. If no file has the password, kquota asks "
            "for it.",
        ),
    ] = None
    delete_config: Annotated[list[str] | None, value("delete-config", "K,…", "Configs to remove. Repeatable.")] = None
    entity_type: Annotated[
        list[str] | None,
        value(
            "entity-type",
            "TYPE",
            f"Type of the entity: {', '.join(ENTITIES)}. Repeatable to combine users with clients.",
        ),
    ] = None
    entity_name: Annotated[
        list[str] | None,
        value("entity-name", "NAME", "Name of the entity, one for each --entity-type, in the same order."),
    ] = None
    entity_default: Annotated[bool, flag("entity-default", "Use the default entity of the type instead of a name.")] = (
        False
    )
    user: Annotated[str | None, _short(USERS)] = None
    user_defaults: Annotated[bool, _defaults("user")] = False
    client: Annotated[str | None, _short(CLIENTS)] = None
    client_defaults: Annotated[bool, _defaults("client")] = False
    ip: Annotated[str | None, _short(IPS)] = None
    ip_defaults: Annotated[bool, _defaults("ip")] = False
    topic: Annotated[str | None, _short(TOPICS)] = None
    broker: Annotated[str | None, _short(BROKERS)] = None
    broker_defaults: Annotated[bool, _defaults("broker")] = False
    client_metrics: Annotated[str | None, _short(CLIENT_METRICS)] = None
    group: Annotated[str | None, _short(GROUPS)] = None
    broker_logger: Annotated[str | None, _short(BROKER_LOGGERS)] = None
    force: Annotated[bool, typer.Option("--force", hidden=True)] = False
    dry_run: Annotated[
        bool, flag("dry-run", "With --alter: check everything, and print the values that would be sent.")
    ] = False
    yes: Yes = False
    output: TableFormat = Output.text

    @property
    def writes(self) -> bool:
        return self.alter and not self.dry_run


app = typer.Typer()
commands.add(app, "configs", ConfigsOptions, epilog=EPILOG, headings=HEADINGS, kind=EntityCommand)
