"""`kquota reassign-partitions`: check the options, and carry out the one action."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from kquota.cli import actions, world
from kquota.cli.output import Answer
from kquota.cli.reassign_partitions.command import (
    ACTIONS,
    CANCEL,
    EXECUTE,
    GENERATE,
    LIST,
    VERIFY,
    ReassignOptions,
)
from kquota.errors import Invalid

MODULES: Final[Mapping[str, str]] = {
    GENERATE: "generation",
    EXECUTE: "execution",
    VERIFY: "verification",
    CANCEL: "cancellation",
    LIST: "listing",
}
"""Only the module of the action is imported, because --list needs a third of the imports of --execute."""


def run(options: ReassignOptions) -> Answer:
    """Run the action. Raises Invalid, in Kafka's words, for options that cannot be combined."""
    asked = _action(options)
    at = world.where(options.connection)
    if at.zookeeper is not None:
        _must_work_through_zookeeper(options, asked)
    work = importlib.import_module(f"kquota.cli.reassign_partitions.{MODULES[asked]}")
    answer: Answer = work.run(at, options)
    return answer


def _action(options: ReassignOptions) -> str:
    asked = actions.action(options, ACTIONS, tables=(LIST,))
    if options.bootstrap_controller is not None:
        raise Invalid(
            "--bootstrap-controller is not supported, because kquota connects to brokers: give --bootstrap-server"
        )
    return asked


def _must_work_through_zookeeper(options: ReassignOptions, asked: str) -> None:
    """Raise Invalid for an action or option that needs brokers, as Kafka's tool did (KIP-455)."""
    if asked == CANCEL:
        raise Invalid(
            'Option "[zookeeper]" can\'t be used with action "[cancel]": Kafka cannot cancel a '
            "running move through ZooKeeper (KIP-236); give --bootstrap-server"
        )
    for option, rule in actions.rules(ReassignOptions).items():
        if not rule.zookeeper and actions.is_given(options, option):
            raise Invalid(f'You must specify --bootstrap-server when using "[{option}]"')
