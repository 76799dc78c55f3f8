"""What this room needs from the outside: the ports of other rooms on one connection, and a memory of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kquota.errors import KquotaError
from kquota.reassign.port import Clock, MoveCluster, Runs
from kquota.settings.port import Configs
from kquota.sizes.port import LogDirs
from kquota.throttle.fixes import Sightings


class Memory(Protocol):
    """What `doctor` remembers of one cluster. What it says must survive a power cut once `keep` has returned."""

    def recall(self) -> Sightings | None:
        """What was last kept; None when nothing was, or when it cannot be understood."""

    def keep(self, sightings: Sightings) -> None:
        """Put these in the place of what was kept, wholly or not at all. Raises Refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One cluster through one connection. `log_dirs` is None over ZooKeeper, which does not store offsets.

    `alone` says why other hosts do not see the runs, None where they do. `hidden`: there may be runs on record that
    this user may not read.
    """

    cluster: MoveCluster
    configs: Configs
    log_dirs: LogDirs | None
    runs: Runs
    memory: Memory
    clock: Clock
    alone: KquotaError | None = None
    hidden: bool = False
