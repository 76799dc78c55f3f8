"""Does what arrives fit on the disks? The worst moment is the end, when old and new copies lie side by side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The volume of one log dir: total and usable bytes as DescribeLogDirs tells (KIP-827); None below Kafka 3.3."""

    broker: int
    log_dir: str
    total: int | None
    usable: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What comes to one broker, or to one of its log dirs where the plan names it (`log_dir` None: the broker chooses).

    `bytes` is the size of the copies, `writes` what producers add to them, `grows` what producers add to the replicas
    that the broker holds already: bytes per second, None is unknown, never 0.
    """

    broker: int
    log_dir: str | None
    copies: int
    bytes: int
    writes: float | None
    grows: float | None
