"""A cluster in memory behind the command line: real commands, real records of runs, and the fake of each port.

`kquota.cli.world` connects ports to stores; this module connects them to the fakes that pass the same contracts. Gaps:
those of each fake. The topics, the sizes and the moves are separate fakes that do not see each other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kquota import library
from kquota.cli import clock, confirmation, move_stores, world
from kquota.errors import KquotaError, NextStep
from kquota.pace.lag import GroupOffsets
from kquota.quota.precedence import Client
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.stores.state.doctor_memory import SightingsFile
from kquota.stores.state.past_moves import PastMovesFile
from kquota.stores.state.runs import RunFiles
from kquota.terms import BrokerId, TopicPartition
from kquota.throttle.port import Ports
from kquota.watch.observation import WatchPorts
from tests.election.fake import MemoryElections
from tests.hosts.stage import ClusterConfigs
from tests.mutation.fake import FakeClock
from tests.probe.fake import Controller, MemoryGroups, MemoryWrites
from tests.quota.fake import MemoryPrincipals
from tests.reassign.dirs_fake import MemoryDirs
from tests.reassign.fake import MemoryCluster, Ticks
from tests.settings.fake import FakeConfigs
from tests.sizes.fake import FakeLogDirs
from tests.watch.fake import CopyingCluster

CLUSTER_ID = "cluster"


_OF_MOVES: Final = ("moves", "staged", "throttling", "watching")
"""The functions of `kquota.cli.move_stores` that open stores."""


@dataclass(frozen=True, slots=True)
class Logins:
    """The logins of the operator and of the probed client, which are the same and have no password.

    Gaps: no client can load a topic, but it can write small records to it.
    """

    house: InMemory
    at: world.Where
    user: str = "ANONYMOUS"
    client_id: str = "kquota"

    def stage(self) -> AbstractContextManager[library.Cluster]:
        return self.house.connected(self.at)

    @contextmanager
    def small_writes(self, topic: str, partitions: int) -> Iterator[MemoryWrites]:
        assert partitions == len(self.house.cluster.alive)
        yield MemoryWrites(
            topics=self.house.topics, topic=topic, latency=self.house.latency, sleep=self.house.clock.sleep
        )

    @contextmanager
    def groups(self) -> Iterator[MemoryGroups]:
        yield MemoryGroups(offsets=self.house.offsets, clock=self.house.clock)


@dataclass(kw_only=True)
class InMemory:
    """Everything outside of the commands. A test seeds the parts that its commands use.

    The records of runs are in `folder`.
    """

    folder: Path
    cluster: MemoryCluster = field(default_factory=lambda: MemoryCluster(alive={BrokerId(n) for n in (1, 2, 3)}))
    logs: FakeLogDirs = field(default_factory=FakeLogDirs)
    dirs: MemoryDirs | None = None
    configs: FakeConfigs = field(default_factory=FakeConfigs)
    quotas: MemoryPrincipals = field(default_factory=MemoryPrincipals)
    topics: Controller = field(default_factory=lambda: Controller(clock=FakeClock()))
    elections: MemoryElections = field(default_factory=MemoryElections)
    hidden: bool = False
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """The recorded runs that cannot be read, by id, with the reason."""
    fenced: Collection[BrokerId] | KquotaError = ()
    """The dead brokers that the cluster lists, or the reason why they are unknown."""
    latency: Callable[[BrokerId], float] = lambda _: 0.004
    """The seconds in which a broker acknowledges a small write."""
    offsets: Callable[[float], Mapping[str, Mapping[TopicPartition, GroupOffsets]]] = lambda _: {}
    """The offsets of the consumer groups at a time."""

    def __post_init__(self) -> None:
        self.clock = Ticks(self.topics.clock.sleep)

    def stand_in(self, patch: pytest.MonkeyPatch) -> None:
        """Connect every command of this process to this cluster, whatever address the command gets."""
        openers: dict[str, Callable[..., object]] = {
            "moves": self._moves,
            "staged": self._staged,
            "throttling": self._throttling,
            "watching": self._watching,
            "configs": _opens(self.configs),
            "configs_and_dead": _opens((self.configs, self._dead_brokers)),
            "log_dirs": _opens(self.logs),
            "elections": _opens(self.elections),
            "log_dirs_and_moves": _opens((self.logs, self.cluster)),
            "quotas": self._quotas,
            "topics": self.connected,
            "logins": lambda at, _: Logins(self, at),
        }
        for name, opener in openers.items():
            patch.setattr(move_stores if name in _OF_MOVES else world, name, _naming(opener))
        patch.setattr(world, "dead_brokers", lambda _: self._dead_brokers())
        patch.setattr(clock, "SystemClock", lambda *_: self.clock)

    def _fenced(self) -> frozenset[BrokerId] | KquotaError:
        return self.fenced if isinstance(self.fenced, KquotaError) else frozenset(self.fenced)

    def _dead_brokers(self) -> frozenset[BrokerId]:
        found = self._fenced()
        if isinstance(found, KquotaError):
            raise found
        return found

    def _runs(self) -> RecordedRuns:
        alone = Unshared(
            "this cluster has no shared record (", NextStep.SHARE_RECORD, " sets one up)", hidden=self.hidden
        )
        alone.unreadable = self.unreadable
        return RecordedRuns(RunFiles(self.folder, CLUSTER_ID), alone, world.warn)

    @contextmanager
    def _held(self, holding: move_stores.LockRequest | None) -> Iterator[RecordedRuns]:
        runs = self._runs()
        if holding is None:
            yield runs
        else:
            with runs.hold(holding.doing, take_over=holding.take_over):
                yield runs

    @contextmanager
    def _moves(self, _at: world.Where, _state_dir: Path | None) -> Iterator[tuple[MemoryCluster, RecordedRuns]]:
        yield self.cluster, self._runs()

    @contextmanager
    def _staged(
        self, _at: world.Where, _state_dir: Path | None, holding: move_stores.LockRequest | None
    ) -> Iterator[move_stores.Stage]:
        later = holding if holding is not None and holding.later else None
        with self._held(None if later else holding) as runs:
            hold = nullcontext if later is None else partial(runs.hold, later.doing, take_over=later.take_over)
            yield move_stores.Stage(
                cluster=self.cluster,
                runs=runs,
                clock=self.clock,  # type: ignore[arg-type]
                past_moves=PastMovesFile(self.folder, CLUSTER_ID),
                log_dirs=self.logs,
                dirs=self.dirs,
                fenced=self._fenced,
                hold=hold,
            )

    @contextmanager
    def _throttling(
        self, _at: world.Where, _state_dir: Path | None, holding: move_stores.LockRequest | None = None
    ) -> Iterator[Ports]:
        with self._held(holding) as runs:
            yield Ports(
                cluster=self.cluster,
                configs=ClusterConfigs(self.cluster),
                log_dirs=self.logs,
                runs=runs,
                memory=SightingsFile(self.folder, CLUSTER_ID),
                clock=self.clock,
                fenced=self._fenced,
            )

    @contextmanager
    def _watching(self, at: world.Where, _state_dir: Path | None) -> Iterator[tuple[WatchPorts, RecordedRuns]]:
        logs = self.cluster if isinstance(self.cluster, CopyingCluster) and at.zookeeper is None else None
        runs = self._runs()
        yield WatchPorts(cluster=self.cluster, runs=runs, logs=logs, clock=self.clock), runs

    @contextmanager
    def _quotas(self, _at: world.Where, _warned: Callable[[str], None] | None = None) -> Iterator[MemoryPrincipals]:
        yield self.quotas

    @contextmanager
    def connected(self, at: world.Where) -> Iterator[library.Cluster]:
        yield library.Cluster(
            topics=self.topics,
            checked=copy.deepcopy(self.topics),
            configs=self.configs,
            quotas=self.quotas,
            sight=self.topics,
            brokers=tuple(sorted(self.cluster.alive)),
            cluster_id=CLUSTER_ID,
            client=Client(user="ANONYMOUS", client_id="kquota"),
            timeout=library.TIMEOUT,
            own=library.Logins(bootstrap_server=world.brokers(at), security=None, probed=None, warned=world.warn),
        )


def _naming(opener: Callable[..., object]) -> Callable[..., object]:
    """Return the opener, which also names the cluster. Unlike a real opener, it names the cluster before it opens the
    connection."""

    def opened(at: world.Where, *more: object, **options: object) -> object:
        confirmation.names(at, CLUSTER_ID)
        return opener(at, *more, **options)

    return opened


def _opens(store: object) -> Callable[[world.Where], object]:
    @contextmanager
    def opened(_at: world.Where) -> Iterator[object]:
        yield store

    return opened
