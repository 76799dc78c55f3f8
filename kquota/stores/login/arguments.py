"""The login to ZooKeeper, the names of login arguments for errors, and warnings about login files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kquota.stores.login.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentNames:
    """The name of each argument in errors. The command line uses the names of its options."""

    bootstrap_server: str = "bootstrap_server"
    command_config: str = "command_config"
    zookeeper: str = "zookeeper"
    zk_tls_config_file: str = "zk_tls_config_file"
    zk_sasl_config_file: str = "zk_sasl_config_file"
    bootstrap_controller: str = "bootstrap_controller"
    server: str = "broker"
    """The kind of server at the addresses: a broker, or a KRaft controller (`CONTROLLER`)."""


CONTROLLER: Final = "controller"
OF_A_PROGRAM: Final = ArgumentNames()

_OTHERS: Final = 0o066
"""The permission bits that let users other than the owner read or change a file."""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*([.][a-zA-Z0-9]+)?")
_SHOWN: Final = 12


def warn_if_open(path: Path, what: str, warn: Callable[[str], None]) -> None:
    """Call `warn` with a warning if users other than the owner can read or change the file.

    The file has secrets, and the warning calls it `what`. Raises OSError if the file does not exist.
    """
    if path.stat().st_mode & _OTHERS:
        command = f"chmod 600 {shlex.quote(str(path))}"
        warn(f"{what} holds secrets, and users other than its owner can read or change it. Run `{command}`")


def listed(found: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return the keys in one string for a message, sorted. The string names at most `_SHOWN` of them. `found` has the
    value of each key.

    Keys without a value, and keys that do not look like a property, are only counted. In a file of another kind, such
    keys may be secrets.
    """
    named = sorted(key for key in keys if _NAME.fullmatch(key) and found[key])
    others = len(set(keys)) - len(named)
    shown = [*named[:_SHOWN], *([f"{len(named) - _SHOWN} more"] if len(named) > _SHOWN else [])]
    if others:
        shown.append(f"{others} line{'' if others == 1 else 's'} without a valid property")
    return ", ".join(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A user for ZooKeeper's SASL mechanism DIGEST-MD5."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The login of a ZooKeeper session."""

    tls: Tls | None = None
    digest: Digest | None = None
    names: ArgumentNames = OF_A_PROGRAM
