"""`kquota sandbox env`: the variables that make a shell use a sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.sandbox.up.command import Name

EPILOG: Final = """It sets KQUOTA_BOOTSTRAP_SERVER and KQUOTA_ZOOKEEPER, so that you can leave out the cluster options.
Exit code 1: the sandbox is not running.

Examples:
  eval "$(kquota sandbox env)"
  kquota sandbox env zk"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvOptions:
    """Print the variables that make a shell use a sandbox."""

    name: Name = "default"
