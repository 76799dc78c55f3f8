"""How a dataclass of options becomes a command, and the rules that every such command follows."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_type_hints

import pytest
import typer

from kquota import cli
from kquota.cli.actions import With, action
from kquota.cli.commands import WORK, filled, parameters
from kquota.cli.connection import OPTIONS, Connection, ThroughBrokers, Unrecorded
from kquota.cli.options import DryRun, Each, Output, OutputFormat, flag, value
from kquota.errors import Invalid
from man.command import root

pytestmark = pytest.mark.unit

CLI = Path(cli.__file__).parent


def source(module: str) -> Path:
    """The file of a module."""
    return (CLI.parents[1] / module.replace(".", "/")).with_suffix(".py")


@dataclass(frozen=True, slots=True, kw_only=True)
class FewOptions:
    """Do little."""

    plan: Annotated[Path, typer.Option("--plan")]
    connection: ThroughBrokers
    dry_run: DryRun = False
    output: OutputFormat = Output.text


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOptions:
    """Do much."""

    connection: Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Read only."""

    connection: Unrecorded


def test_options_of_a_group_appear_at_the_position_of_the_group() -> None:
    of_brokers = ["bootstrap_server", "cluster", "command_config"]
    assert [one.name for one in parameters(FewOptions)] == ["plan", *of_brokers, "dry_run", "output"]
    assert [one.name for one in parameters(AllOptions)] == list(OPTIONS)
    assert [one.name for one in parameters(ReadOptions)] == [
        name for name in OPTIONS if name not in ("record", "bootstrap_controller")
    ]


LIMITS = {"rate": typer.Option("--rate"), "share": typer.Option("--share")}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Limit something."""

    limits: Annotated[Mapping[str, str], Each(LIMITS)]
    output: OutputFormat = Output.text


def test_options_from_a_table_become_a_mapping_of_the_given_values() -> None:
    assert [one.name for one in parameters(LimitOptions)] == ["rate", "share", "output"]
    given = {"rate": None, "share": "5", "output": Output.text}
    assert filled(LimitOptions, given) == LimitOptions(limits={"share": "5"})


def test_an_option_without_a_default_is_required() -> None:
    required = {one.name for one in parameters(FewOptions) if one.default is one.empty}
    assert required == {"plan"}


def test_a_command_gets_its_options_as_one_value() -> None:
    given = {"plan": Path("p"), "bootstrap_server": None, "cluster": "prod", "dry_run": True, "output": Output.json}
    assert filled(FewOptions, given) == FewOptions(
        plan=Path("p"), connection=Connection(cluster="prod"), dry_run=True, output=Output.json
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailOptions:
    """Write or read letters."""

    write: Annotated[bool, flag("write", "Write a letter.")] = False
    read: Annotated[bool, flag("read", "Read a letter.")] = False
    to: Annotated[str | None, With("write", required=True), value("to", "NAME", "Its reader.")] = None
    new_only: Annotated[bool, With("read"), flag("new-only", "Only unread letters.")] = False


ACTIONS_REFUSED = {
    "no action": (MailOptions(to="bob"), "Command must include exactly one action: --write, --read"),
    "two actions": (MailOptions(write=True, read=True), "Command must include exactly one action: --write, --read"),
    "a required option is missing": (MailOptions(write=True), 'Missing required argument "[to]"'),
    "an option of another action": (
        MailOptions(write=True, to="bob", new_only=True),
        'Option "[new-only]" can\'t be used with action "[write]": it works with --read',
    ),
}


@pytest.mark.parametrize(("options", "refusal"), ACTIONS_REFUSED.values(), ids=ACTIONS_REFUSED)
def test_the_annotation_of_an_option_names_its_actions(options: MailOptions, refusal: str) -> None:
    assert action(MailOptions(write=True, to="bob"), ("write", "read")) == "write"
    with pytest.raises(Invalid) as caught:
        action(options, ("write", "read"))
    assert str(caught.value) == refusal


def registered() -> Mapping[str, tuple[type[object], str, str]]:
    """The options of each command, and the module and the function of its work."""
    root()
    return {f"{module}.{function}": (options, module, function) for options, (module, function) in WORK.items()}


@pytest.mark.parametrize(("options", "module", "function"), registered().values(), ids=registered())
def test_the_work_of_a_command_takes_its_options(options: type[object], module: str, function: str) -> None:
    assert get_type_hints(getattr(importlib.import_module(module), function))["options"] is options


FOLDERS = sorted({path.parent for _, module, _ in registered().values() if (path := source(module)).parent != CLI})


@pytest.mark.parametrize("folder", FOLDERS, ids=[str(folder.relative_to(CLI)) for folder in FOLDERS])
def test_only_spark_is_imported_inside_a_function(folder: Path) -> None:
    for path in folder.glob("*.py"):
        functions = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.FunctionDef)]
        inside = [node for one in functions for node in ast.walk(one) if isinstance(node, ast.Import | ast.ImportFrom)]
        lazy = [ast.unparse(node) for node in inside]
        assert [text for text in lazy if not text.startswith("from kquota.spark")] == [], path
