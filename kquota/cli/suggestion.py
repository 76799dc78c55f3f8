"""A command that a message suggests: complete, in backquotes, and ready to paste."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from kquota.cli.connection import CONTROLLERS, OPTIONS, REACHING, variable

GIVEN: Final[dict[str, str]] = {}
"""The options of the running command that a suggested command also needs: the cluster and the state folder."""
PLACEHOLDER: Final = "HOST:PORT"
"""The placeholder for the address of the brokers if this command does not have it."""
_STATE_DIR: Final = "state_dir"
_GROUPS: Final = ("move", "quota", "record", "throttle")
_BY_BROKERS: Final = ("leader-election", "log-dirs", "move estimate", "move plan", "quota probe", "topics")
_RESTORING: Final = ("move abort", "move resume", "throttle clear", "throttle doctor", "throttle set")
"""The commands that restore throttles of dead brokers."""
_ON_ZOOKEEPER: Final = ("zookeeper", "zk_tls_config_file", "zk_sasl_config_file")


def remember(options: Any) -> None:
    """Keep the connection options of the command line. A suggested command reads the environment itself."""
    connection = getattr(options, "connection", None)
    given = {} if connection is None else {one.name: getattr(connection, one.name) for one in fields(connection)}
    given[_STATE_DIR] = getattr(options, _STATE_DIR, None)
    GIVEN.clear()
    GIVEN.update({name: str(value) for name, value in given.items() if value is not None})


def suggested(command: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the whole command. `command` is the part after `kquota`, without connection options, for example `move
    resume --run ID`.
    """
    words = command.split(" ")
    length = 2 if words[0] in _GROUPS else 1
    path, rest = words[:length], words[length:]
    at = list(_connection(" ".join(path), rest, environment))
    return f"`{' '.join(['kquota', *path, *at, *rest])}`"


def _connection(command: str, rest: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    taken = _taken(command)
    for name, value in GIVEN.items():
        option = f"--{name.replace('_', '-')}"
        if name in taken and option not in rest:
            yield f"{option} {shlex.quote(value)}"
    # `record` reads the brokers, even if the options name a ZooKeeper.
    zookeeper = "zookeeper" in taken and not command.startswith("record ")
    addresses = ("bootstrap_server", "cluster", *(("zookeeper",) if zookeeper else ()))
    if any(name in GIVEN for name in addresses):
        return
    read = "zookeeper" not in taken or "zookeeper" not in GIVEN
    if not (read and any(environment.get(variable(name)) for name in addresses)):
        yield f"--bootstrap-server {PLACEHOLDER}"


def _taken(command: str) -> tuple[str, ...]:
    """Return the options of `GIVEN` that a command has."""
    if command in _BY_BROKERS:
        state = (_STATE_DIR,) if command == "move estimate" else ()
        return (*(name for name in REACHING if name not in _ON_ZOOKEEPER), *state)
    if command == "move run":
        return (*(name for name in OPTIONS if name not in (*_ON_ZOOKEEPER, CONTROLLERS)), _STATE_DIR)
    if command.split()[0] in ("configs", "quota"):
        return REACHING
    if command in _RESTORING:
        return (*OPTIONS, _STATE_DIR)
    return (*(name for name in OPTIONS if name != CONTROLLERS), _STATE_DIR)
