"""`kquota reassign-partitions`: check the options, and carry out the given action."""

from __future__ import annotations

import importlib
from collections.abc import Generator, Mapping
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
"""The module of each action. Only the given action is imported, because `--list` needs a third of the imports of
`--execute`.
"""


_BOTH: Final = "Please don't specify both --bootstrap-server and --bootstrap-controller"


def run(options: ReassignOptions) -> Answer | Generator[Answer]:
    """Run the given action, and return its answer.

    Raises Invalid, mostly in Kafka's words, for options that cannot be combined. Also raises the errors of the action.
    """
    asked = _action(options)
    at = world.where(options.connection, alone=_BOTH)
    if at.zookeeper is not None:
        _must_work_through_zookeeper(options, asked)
    module = "waiting" if options.wait else "all_runs" if options.all_runs else MODULES[asked]
    work = importlib.import_module(f"kquota.cli.reassign_partitions.{module}")
    answer: Answer | Generator[Answer] = work.run(at, options)
    return answer


def _action(options: ReassignOptions) -> str:
    asked = actions.action(options, ACTIONS, tables=(LIST,))
    if options.connection.bootstrap_controller is not None and options.connection.bootstrap_server is None:
        if asked == CANCEL:
            raise Invalid(
                "--bootstrap-controller: kquota cannot cancel moves without the brokers, because only brokers "
                "report in-sync replicas. Use --bootstrap-server"
            )
        if asked != LIST:
            raise Invalid(
                f'Option "[bootstrap-controller]" can\'t be used with action "[{asked}]": use --bootstrap-server'
            )
    return asked


def _must_work_through_zookeeper(options: ReassignOptions, asked: str) -> None:
    """Raise Invalid for an action or option that needs brokers, as Kafka's tool did (KIP-455)."""
    if asked == CANCEL:
        raise Invalid(
            'Option "[zookeeper]" can\'t be used with action "[cancel]": Kafka cannot cancel a '
            "running move over ZooKeeper (KIP-455). Give --bootstrap-server"
        )
    if options.timeout is not None and asked != VERIFY:
        raise Invalid('You must specify --bootstrap-server when using "[timeout]"')
    for option, rule in actions.rules(ReassignOptions).items():
        if not rule.zookeeper and actions.is_given(options, option):
            raise Invalid(f'You must specify --bootstrap-server when using "[{option}]"')
