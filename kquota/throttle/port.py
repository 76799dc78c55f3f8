"""The port `Memory`, which `doctor` uses, and `Ports`, which combines it with ports of other packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kquota.errors import KquotaError
from kquota.reassign.port import MovePorts
from kquota.settings.port import Configs
from kquota.sizes.port import LogDirs
from kquota.terms import BrokerId
from kquota.throttle.doctor import Sightings


class Memory(Protocol):
    """The memory of `doctor` for one cluster. It survives a power failure once `keep` has returned."""

    def recall(self) -> Sightings | None:
        """Return the sightings of the last `keep`, or None if there are none or kquota cannot parse them.

        Raises Refused if the stored sightings cannot be read.
        """

    def keep(self, sightings: Sightings) -> None:
        """Replace the stored sightings atomically. Raises Refused if `sightings` cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports(MovePorts):
    """The ports to one cluster through one connection."""

    configs: Configs
    log_dirs: LogDirs | None
    """None over ZooKeeper, which does not store offsets."""
    memory: Memory
    fenced: Callable[[], frozenset[BrokerId] | KquotaError] = frozenset
    """Returns the dead brokers that the cluster lists, even those without replicas (KRaft, from Kafka 4.0), or the
    reason why they are unknown.
    """
