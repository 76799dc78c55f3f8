"""`kquota sandbox env`: what makes a shell use a sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.sandbox.up.command import Name

EPILOG: Final = """It sets KQUOTA_BOOTSTRAP_SERVER and KQUOTA_ZOOKEEPER, so that commands need not name the cluster.
Exit code 1: it does not run.

Examples:
  eval "$(kquota sandbox env)"
  kquota sandbox env zk"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvOptions:
    """Print what makes a shell use a sandbox."""

    name: Name = "default"
