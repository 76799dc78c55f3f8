"""`kquota configs`: check the options, then describe or alter quotas, or the configs of resources.

Describing quotas does not import the modules for other configs, because it is the most frequent use and must be fast.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kquota.cli import actions, world
from kquota.cli.configs import drafts, pairs, quotas
from kquota.cli.configs.command import ConfigsOptions
from kquota.cli.configs.entities import (
    Named,
    entity_options,
    must_be_described_together,
    must_be_in_zookeeper,
    must_be_named,
    named,
)
from kquota.cli.output import Answer
from kquota.cli.suggestion import suggested
from kquota.entity_types import BROKERS, ENTITIES, RESOURCES
from kquota.errors import Invalid, Unknown, Unseen
from kquota.quota.entity import Every
from kquota.settings.resource import Resource
from kquota.terms import USERS

_BOTH: Final = "Only one of --bootstrap-server or --bootstrap-controller can be specified"
_SCRAM: Final = re.compile(r"(?:^|,)\s*SCRAM-", re.IGNORECASE)


def run(options: ConfigsOptions) -> Answer:
    """Describe the entities, or write the change and wait until it is visible.

    Raises Invalid, in Kafka's words where Kafka has them, for options that are not valid or cannot be combined. Raises
    Refused if a check or the cluster refuses the change, and Unreachable if the cluster does not answer. Raises Unknown
    if the change does not become visible in time.
    """
    actions.action(options, ("describe", "alter"))
    short = {kind: getattr(options, row.short.replace("-", "_")) for kind, row in ENTITIES.items()}
    entities = named(options.entity_type or [], options.entity_name or [], short)
    if options.describe:
        return _described(options, entities)
    try:
        return _altered(options, entities)
    except Unseen as error:
        entity = shlex.join(word for kind, name in entities.items() for word in entity_options(kind, name))
        raise Unknown(f"{error}. Check with {suggested(f'configs --describe {entity}')}") from error


def _resources() -> Any:
    return importlib.import_module("kquota.cli.configs.resources")


def _described(options: ConfigsOptions, entities: Named) -> Answer:
    changes = {
        "password-file": options.password_file,
        "add-config": options.add_config,
        "add-config-file": options.add_config_file,
        "delete-config": options.delete_config,
    }
    for option, given in changes.items():
        if given is not None and given != []:
            raise Invalid(f'Option "[describe]" can\'t be used with option "[{option}]": use --{option} with --alter')
    if options.dry_run:
        raise Invalid("--dry-run works only with --alter, because --describe writes nothing. Leave out --dry-run")
    must_be_described_together(entities)
    at = _where(options, entities)
    for kind in RESOURCES:
        if kind in entities:
            name = entities[kind]
            shown: Answer = _resources().describe(
                at, kind, None if isinstance(name, Every) else name, options.everything
            )
            return shown
    _must_show_quotas(at)
    return quotas.describe(at, entities)


def _altered(options: ConfigsOptions, entities: Named) -> Answer:
    must_be_named(entities)
    add, delete, option = _changes(options)
    of_credentials = tuple(entities) == (USERS,) and any(key.startswith("SCRAM-") for key in (*add, *delete))
    if options.password_file is not None and not of_credentials:
        raise Invalid(
            "--password-file works only if --add-config or --add-config-file has a SCRAM credential of one user. Leave "
            "it out, or add such a credential"
        )
    for kind in RESOURCES:
        name = entities.get(kind)
        if name is not None and not isinstance(name, Every):
            resources = _resources()
            if options.add_config is not None and kind == BROKERS:
                resources.must_not_be_secret(add)
            at = _where(options, entities)
            altered: Answer = resources.alter(at, Resource(kind=kind, name=name), add, delete, dry_run=options.dry_run)
            return altered
    if of_credentials:
        credentials = importlib.import_module("kquota.cli.configs.scram")
        asked = credentials.request(entities, add, delete, option)
        at = _where(options, entities)
        _must_show_quotas(at)
        changed: Answer = credentials.alter(at, entities, asked, options.password_file, dry_run=options.dry_run)
        return changed
    change = quotas.change_of(entities, add, option, delete)
    at = _where(options, entities)
    _must_show_quotas(at)
    return quotas.alter(at, entities, change, dry_run=options.dry_run)


def _where(options: ConfigsOptions, entities: Named) -> world.Where:
    at = world.where(options.connection, alone=_BOTH)
    if at.zookeeper is not None:
        # Over brokers, Kafka's tool ignores --all with --alter. Over ZooKeeper, it refuses --all with --alter and with
        # --describe.
        if options.everything:
            raise Invalid("--bootstrap-server must be specified for --all")
        must_be_in_zookeeper(entities)
    return at


def _must_show_quotas(at: world.Where) -> None:
    if world.only_controllers(at):
        raise Invalid(
            "--bootstrap-controller: controllers do not show client quotas or SCRAM credentials. Use --bootstrap-server"
        )


def _changes(options: ConfigsOptions) -> tuple[Mapping[str, str], tuple[str, ...], str]:
    """Return the pairs to set, the keys to delete, and the option that contains the pairs."""
    if options.add_config is not None and options.add_config_file is not None:
        raise Invalid("Only one of --add-config or --add-config-file must be specified")
    if options.add_config is None and options.add_config_file is None and not options.delete_config:
        raise Invalid(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    _must_have_no_password([options.add_config or "", *(options.delete_config or [])])
    add: Mapping[str, str] = {}
    option = "--add-config"
    if options.add_config is not None:
        add = pairs.pairs(options.add_config)
    elif options.add_config_file is not None:
        option = "--add-config-file"
        add = pairs.pairs_in(options.add_config_file)
    delete = pairs.keys(options.delete_config or [])
    return drafts.today(add, option), drafts.today_keys(delete, "--delete-config"), option


def _must_have_no_password(texts: Iterable[str]) -> None:
    """Raise Invalid for a password in a SCRAM credential. The text is not parsed, so no message can repeat it."""
    if any(_SCRAM.search(text) and "password" in text.lower() for text in texts):
        raise Invalid(
            "SCRAM credentials: do not write a password on a command line, because other users of this machine can "
            "read it. Nothing was written. Leave out password=, and give --password-file FILE (`-` for stdin), "
            "or type the password at the prompt"
        )
