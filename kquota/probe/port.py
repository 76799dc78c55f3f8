"""The interfaces for this room: a real client that loads a topic, the metadata of each broker, and the logins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from kquota.mutation.port import Topics
from kquota.probe.load import Load
from kquota.probe.verdict import Meter
from kquota.quota.explain import Explanation
from kquota.settings.port import Configs
from kquota.terms import BrokerId


class ProbeClient(Protocol):
    """A client that logs in as the probed one. All methods raise Refused or Unreachable if brokers end the load."""

    def produce(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Write at the load's rate until the meter ends; `told` receives the elapsed seconds."""
        ...

    def fill(self, load: Load) -> None:
        """Write the data for `consume`: about what it reads in a second."""
        ...

    def consume(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Read at the load's rate what `fill` wrote, over and over."""
        ...

    def request(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Send empty requests one after another; each counts 1."""
        ...


class Sight(Protocol):
    """The metadata of each broker."""

    def behind(self, wanted: Mapping[str, int]) -> int:
        """The number of brokers that do not show all these topics with their partitions and leaders.

        0 partitions mean that the topic is deleted.
        """
        ...


class ProbeCluster(Protocol):
    """A connected cluster; `kquota.connect` provides one."""

    @property
    def topics(self) -> Topics:
        """Its topics."""
        ...

    @property
    def configs(self) -> Configs:
        """The configs of its topics."""
        ...

    @property
    def sight(self) -> Sight:
        """The metadata of these topics on each broker."""
        ...

    @property
    def brokers(self) -> Sequence[BrokerId]:
        """Its live brokers."""
        ...

    def explained(self, user: str, client_id: str) -> Explanation:
        """The quotas that apply to this client."""
        ...

    def logins(self, client_config: Path | str | None = None) -> ProbeLogins:
        """This login, and the login to be probed, which may be in a file of Java properties."""
        ...


class ProbeLogins(Protocol):
    """The login that creates and removes the topics, and the login that is probed."""

    @property
    def user(self) -> str | None:
        """The user of the probed login; None if only brokers know it: by certificate, token or ticket."""
        ...

    @property
    def client_id(self) -> str:
        """The default client-id of the probed login."""
        ...

    def stage(self) -> AbstractContextManager[ProbeCluster]:
        """A new connection with the first login, because another one may be in the middle of a request."""
        ...

    def stage_as(self, client_id: str) -> AbstractContextManager[ProbeCluster]:
        """A new connection with the probed login."""
        ...

    def filler(self) -> ProbeClient:
        """A client with the first login. Raises Invalid for a login that it does not support, like `client`."""
        ...

    def client(self, client_id: str) -> ProbeClient:
        """A client with the probed login."""
        ...
