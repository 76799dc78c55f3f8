"""What errors call the arguments of a connection: as a program has them, or as the caller has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentNames:
    """Each argument, and its name; a command line has options."""

    bootstrap_server: str = "bootstrap_server"
    command_config: str = "command_config"
    zookeeper: str = "zookeeper"
    zk_tls_config_file: str = "zk_tls_config_file"
    zk_sasl_config_file: str = "zk_sasl_config_file"


OF_A_PROGRAM: Final = ArgumentNames()
