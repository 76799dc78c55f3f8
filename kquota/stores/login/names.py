"""The names of a connection's arguments in errors: those of a Python program, or those of the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentNames:
    """The name of each argument. A command line uses the names of its options."""

    bootstrap_server: str = "bootstrap_server"
    command_config: str = "command_config"
    zookeeper: str = "zookeeper"
    zk_tls_config_file: str = "zk_tls_config_file"
    zk_sasl_config_file: str = "zk_sasl_config_file"


OF_A_PROGRAM: Final = ArgumentNames()
