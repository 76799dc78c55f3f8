"""The options of `reassign-partitions`, each with the actions that it goes with; and how a command asks for all."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer

from kquota.cli.options import Output, TableFormat
from kquota.errors import Invalid

GENERATE, EXECUTE, VERIFY, CANCEL, LIST = "generate", "execute", "verify", "cancel", "list"
ACTIONS: Final = (GENERATE, EXECUTE, VERIFY, CANCEL, LIST)
"""In the order in which Kafka's tool names them."""
_CONTROLLER: Final = "bootstrap-controller"


class With:
    """The actions that an option goes with."""

    def __init__(self, *actions: str, required: bool = False, zookeeper: bool = True) -> None:
        """`required` by each of them; without `zookeeper` it goes with --bootstrap-server only."""
        self.actions = actions
        self.required = required
        self.zookeeper = zookeeper


def _flag(name: str, text: str, **more: Any) -> Any:
    return typer.Option(f"--{name}", help=text, **more)


def _value(name: str, metavar: str, text: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options as the command line gave them; what is None or False was not given."""

    generate: Annotated[bool, _flag("generate", "Propose a plan for the topics named; nothing is moved.")] = False
    execute: Annotated[bool, _flag("execute", "Start the moves of the plan.")] = False
    verify: Annotated[bool, _flag("verify", "Say whether they are done, and give the throttle back.")] = False
    cancel: Annotated[bool, _flag("cancel", "Stop them: the partitions stay where they were.")] = False
    list: Annotated[bool, _flag("list", "Show every move under way in the cluster.")] = False

    reassignment_json_file: Annotated[
        Path | None,
        With(EXECUTE, VERIFY, CANCEL, required=True),
        _value("reassignment-json-file", "FILE", "The plan: partitions and replicas."),
    ] = None
    topics_to_move_json_file: Annotated[
        Path | None,
        With(GENERATE, required=True),
        _value("topics-to-move-json-file", "FILE", 'The topics: {"topics":[{"topic":"foo"}],"version":1}.'),
    ] = None
    broker_list: Annotated[
        str | None, With(GENERATE, required=True), _value("broker-list", "ID,…", "The brokers to place them on.")
    ] = None
    disable_rack_aware: Annotated[
        bool, With(GENERATE), _flag("disable-rack-aware", "Do not look at the brokers' racks.")
    ] = False
    seed: Annotated[
        int | None,
        With(GENERATE),
        typer.Option("--seed", metavar="N", min=0, help="Make the proposal again that this seed made before."),
    ] = None
    throttle: Annotated[
        str | None,
        With(EXECUTE),
        _value("throttle", "RATE", "The most that moves between brokers at: 50MB/s; bare: bytes per second."),
    ] = None
    replication_quota: Annotated[
        str | None, With(EXECUTE), _value("replication-quota", "RATE", "KIP-73's name of --throttle.")
    ] = None
    replica_alter_log_dirs_throttle: Annotated[
        str | None,
        With(EXECUTE, zookeeper=False),
        _value("replica-alter-log-dirs-throttle", "RATE", "The most that moves between log dirs of a broker at."),
    ] = None
    throttle_whole_topics: Annotated[
        bool,
        With(EXECUTE),
        _flag("throttle-whole-topics", "Write * for a list of replicas that is longer than a broker takes."),
    ] = False
    additional: Annotated[
        bool, With(EXECUTE, zookeeper=False), _flag("additional", "Start even if other moves run in the cluster.")
    ] = False
    disallow_replication_factor_change: Annotated[
        bool,
        With(EXECUTE),
        _flag("disallow-replication-factor-change", "Refuse a plan that changes a replication factor."),
    ] = False
    timeout: Annotated[
        str | None,
        With(EXECUTE, CANCEL, zookeeper=False),
        _value("timeout", "MS", "How long to wait for moves between log dirs to begin: 10s; bare: ms. [10000]"),
    ] = None
    preserve_throttles: Annotated[bool, With(VERIFY, CANCEL), _flag("preserve-throttles", "Give no throttle back.")] = (
        False
    )
    clear_all: Annotated[
        bool, With(VERIFY), _flag("clear-all", "Clear all throttles, whoever set them, as Kafka's --verify does.")
    ] = False
    force: Annotated[
        bool, With(EXECUTE, CANCEL), _flag("force", "Do what is refused for being dangerous; the refusal names it.")
    ] = False
    dry_run: Annotated[
        bool, With(EXECUTE, CANCEL), _flag("dry-run", "Check everything and show what would be written.")
    ] = False
    state_dir: Annotated[
        Path | None,
        With(EXECUTE, VERIFY, CANCEL),
        _value("state-dir", "DIR", "Where runs are on record; by default in XDG_STATE_HOME."),
    ] = None
    output: TableFormat = Output.text
    bootstrap_controller: Annotated[str | None, typer.Option(f"--{_CONTROLLER}", hidden=True)] = None


def given_options(command: Callable[..., int]) -> Callable[..., int]:
    """Put every option of `Given` in the place of the command's parameter `given`."""
    hints = get_type_hints(Given, include_extras=True)
    options = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(Given)
    ]

    @functools.wraps(command)
    def called(connection: object, **given: Any) -> int:
        return command(connection=connection, given=Given(**given))

    declared = inspect.signature(command, eval_str=True).parameters
    called.__signature__ = inspect.Signature([declared["connection"], *options])  # type: ignore[attr-defined]
    return called


def action(given: Given) -> str:
    """The one action asked for. Raises Invalid, in Kafka's words, for none, two, or an option that it does not take."""
    asked = [name for name in ACTIONS if getattr(given, name)]
    if len(asked) != 1:
        raise Invalid(f"Command must include exactly one action: {', '.join(f'--{name}' for name in ACTIONS)}")
    for option, rule in _RULES.items():
        if rule.required and asked[0] in rule.actions and not _stands(given, option):
            raise Invalid(f'Missing required argument "[{option}]"')
    for option, rule in _RULES.items():
        if asked[0] not in rule.actions and _stands(given, option):
            raise Invalid(f'Option "[{option}]" can\'t be used with action "[{asked[0]}]"{_instead(rule)}')
    if given.output is Output.tsv and asked[0] != LIST:
        raise Invalid(f"--output tsv goes with --list; --{asked[0]} writes text or json")
    if given.bootstrap_controller is not None:
        raise Invalid(f"kquota asks brokers, not controllers: give --bootstrap-server in place of --{_CONTROLLER}")
    return asked[0]


def must_work_through_zookeeper(given: Given, asked: str) -> None:
    """Raises Invalid for an action or an option for which a ZooKeeper is not enough, as Kafka's tool did (KIP-455)."""
    if asked == CANCEL:
        raise Invalid(
            'Option "[zookeeper]" can\'t be used with action "[cancel]": in ZooKeeper a move has no way back, and '
            "Kafka takes no cancellation there (KIP-236); give --bootstrap-server"
        )
    for option, rule in _RULES.items():
        if not rule.zookeeper and _stands(given, option):
            raise Invalid(f'You must specify --bootstrap-server when using "[{option}]"')


def _instead(rule: With) -> str:
    return f": it goes with {' and '.join(f'--{name}' for name in rule.actions)}"


def _stands(given: Given, option: str) -> bool:
    return getattr(given, option.replace("-", "_")) not in (None, False)


_RULES: Final = {
    name.replace("_", "-"): rule
    for name, hint in get_type_hints(Given, include_extras=True).items()
    for rule in getattr(hint, "__metadata__", ())
    if isinstance(rule, With)
}
