"""What this room needs from the outside: the ports of other rooms on one connection, and a memory of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kquota.config.port import Configs
from kquota.reassign.port import Cluster, Runs
from kquota.sizes.port import LogDirs
from kquota.throttle.cure import Sightings


class Memory(Protocol):
    """What `doctor` remembers of one cluster. What it says must survive a power cut once `keep` has returned."""

    def recall(self) -> Sightings | None:
        """What was last kept; None when nothing was, or when it cannot be understood."""

    def keep(self, sightings: Sightings) -> None:
        """Put these in the place of what was kept, wholly or not at all. Raises Refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One cluster through one connection. `log_dirs` None: through ZooKeeper nobody tells what flows."""

    cluster: Cluster
    configs: Configs
    log_dirs: LogDirs | None
    runs: Runs
    memory: Memory
