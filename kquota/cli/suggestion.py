"""A command that a message suggests: complete, in backquotes, and ready to paste."""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from kquota.cli import app_of
from kquota.cli.connection import ADDRESSES, CONTROLLERS, variable
from kquota.cli.options import option_name
from kquota.list_text import listed

PLACEHOLDER: Final = "HOST:PORT"
"""The placeholder for the address of the brokers, or of ZooKeeper, if the running command does not have the address."""
_REPLACING: Final[Mapping[str, str]] = {
    "DIR": "the folder of the snapshots",
    "DOCUMENT": "the file of the quotas",
    "ID": "the id of a broker",
    "KEY": "the rate to change",
    "P:B,…": "the correct entries, each a partition and a broker",
    "PLAN": "the file of the plan",
    "RATE": "a throttle",
    "RUN": "the id of a run",
    "URL": "the URLs of the brokers' metrics",
}
"""The placeholders of suggested commands, and the meaning of each. `PLACEHOLDER` is not included, because its option
shows its meaning.
"""
_STATE_DIR: Final = "state_dir"
_CONTROLLERS_ALONE: Final = ("configs", "reassign-partitions")
"""The commands in which `--bootstrap-controller` replaces the brokers. A suggestion of these commands names brokers, so
it leaves out `--bootstrap-controller`.
"""
_kept_options: Final[dict[str, str]] = {}


@contextmanager
def of_one_command() -> Iterator[None]:
    """When the block ends, forget the options that `remember` keeps."""
    try:
        yield
    finally:
        _kept_options.clear()


def remember(options: Any) -> None:
    """Keep the connection options and the state folder of the command line. Options from the environment are not kept,
    because a suggested command reads the environment itself.
    """
    connection = getattr(options, "connection", None)
    given = {} if connection is None else {one.name: getattr(connection, one.name) for one in fields(connection)}
    given[_STATE_DIR] = getattr(options, _STATE_DIR, None)
    _kept_options.update({name: str(value) for name, value in given.items() if value is not None})


def suggested(command: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the whole command in backquotes, with the options that `remember` keeps and that this command takes. If
    the command has placeholders, their meaning follows in parentheses.

    `command` is the part after `kquota`, without connection options, for example `move abort --run RUN`. If neither the
    options nor `environment` name a cluster, the command has `PLACEHOLDER` as the address.
    """
    words = command.split(" ")
    commands = {one.name: one.callback for one in app_of(words[0]).registered_commands if one.callback is not None}
    length = 1 if words[0] in commands else 2
    path, rest = words[:length], words[length:]
    at = list(_connection(path, _options(commands[path[-1]]), rest, environment))
    full = " ".join(["kquota", *path, *at, *rest])
    replacing = [f"{name} with {meaning}" for name, meaning in _REPLACING.items() if _has(full, name)]
    return f"`{full}` (replace {listed(replacing)})" if replacing else f"`{full}`"


def _has(command: str, placeholder: str) -> bool:
    if placeholder not in command:  # true for most placeholders, and the search takes ten times as long
        return False
    return re.search(rf"[ =\[]{re.escape(placeholder)}(?=[ =\]]|$)", command) is not None


def zookeeper_shell(command: str) -> str:
    """Return a command of zookeeper-shell.sh in backquotes, with the address and the chroot of `--zookeeper`.

    If the command line does not have the address, the text ends with the meaning of the placeholder.
    """
    address = _kept_options.get("zookeeper")
    shell = f"`zookeeper-shell.sh {shlex.quote(address or PLACEHOLDER)} {command}`"
    replacing = f" (replace {PLACEHOLDER} with the address of ZooKeeper and its chroot)"
    return shell if address else shell + replacing


def readable_again(file: Path | None) -> str | None:
    """Return the name of a file for a suggested command. Return None if `file` is None, or if the command could not
    read it again: stdin, a pipe, or a file that does not exist.
    """
    return str(file) if file is not None and file.is_file() and not file.is_relative_to("/dev") else None


def plan_argument(file: Path | None) -> str:
    """Return the plan for a suggested command: the quoted file, or `PLAN` if the command could not read it again."""
    return shlex.quote(readable_again(file) or "PLAN")


@cache
def _options(command: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the options that the help of a command shows. They are cached, because `throttle doctor`
    suggests two commands for each of its findings.
    """
    declared = inspect.signature(command).parameters
    return frozenset(name for name, option in declared.items() if not _is_hidden(option.annotation))


def _is_hidden(annotation: object) -> bool:
    """True for an option like `topics --zookeeper`, which a command accepts only to explain why it does not work."""
    return any(getattr(part, "hidden", False) for part in get_args(annotation))


def _connection(path: list[str], taken: Set[str], rest: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the running command's options that the suggested command also takes. If neither these
    options nor the environment name a cluster, also yield a placeholder.
    """
    both = {"bootstrap_server", "zookeeper"} <= _kept_options.keys() and path[0] != "record"
    for name, value in _kept_options.items():
        option = option_name(name)
        replaced = name == CONTROLLERS and path[0] in _CONTROLLERS_ALONE
        if both and (name == "zookeeper" or name.startswith("zk_")):
            continue  # only `record` takes brokers and a ZooKeeper together
        if name in taken and not replaced and option not in rest:
            yield f"{option} {shlex.quote(value)}"
    addresses = {*ADDRESSES, "cluster"} & taken
    if path[0] == "record":  # `record` reads the brokers, even if the options name a ZooKeeper
        addresses.discard("zookeeper")
    if not addresses or any(name in _kept_options for name in addresses):
        return
    read = "zookeeper" not in taken or "zookeeper" not in _kept_options
    if not (read and any(environment.get(variable(name)) for name in addresses)):
        yield f"--bootstrap-server {PLACEHOLDER}"
