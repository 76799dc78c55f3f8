"""What this room needs: a real client that loads a topic, metadata as each broker has them, and who logs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from kquota.mutation.port import Topics
from kquota.probe.load import Load
from kquota.probe.meter import Meter
from kquota.quota.explain import Explanation
from kquota.settings.port import Configs
from kquota.terms import BrokerId


class ProbeClient(Protocol):
    """A client that logs in as the one to be probed. All raise Refused or Unreachable when brokers end the load."""

    def produce(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Write at the load's rate until the meter ends; `told` hears the seconds gone by."""
        ...

    def fill(self, load: Load) -> None:
        """Write what `consume` is to read: about what it reads in a second."""
        ...

    def consume(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Read at the load's rate, over and over, what `fill` wrote."""
        ...

    def request(self, load: Load, meter: Meter, told: Callable[[float], None]) -> None:
        """Send requests that ask for nothing, one after the other; each counts 1."""
        ...


class Sight(Protocol):
    """What each broker knows."""

    def behind(self, wanted: Mapping[str, int]) -> int:
        """How many brokers do not show all these topics with so many partitions, each led; 0 partitions: none."""
        ...


class ProbeCluster(Protocol):
    """A cluster that is connected; `kquota.connect` gives one."""

    @property
    def topics(self) -> Topics:
        """Its topics."""
        ...

    @property
    def configs(self) -> Configs:
        """What its topics are set to."""
        ...

    @property
    def sight(self) -> Sight:
        """What each broker knows of them."""
        ...

    @property
    def brokers(self) -> Sequence[BrokerId]:
        """Those that are alive."""
        ...

    def explained(self, user: str, client_id: str) -> Explanation:
        """What binds this client."""
        ...

    def logins(self, client_config: Path | str | None = None) -> ProbeLogins:
        """This login, and the one of a file of Java properties that is to be probed; without it they are the same."""
        ...


class ProbeLogins(Protocol):
    """Who looks, makes the topics and removes them, and who is probed."""

    @property
    def user(self) -> str | None:
        """Whom brokers take the probed one for; None where only they know: by certificate, token or ticket."""
        ...

    @property
    def client_id(self) -> str:
        """The probed one's, where nobody names another."""
        ...

    def stage(self) -> AbstractContextManager[ProbeCluster]:
        """A new connection of who looks: another one may be in the middle of a request."""
        ...

    def stage_as(self, client_id: str) -> AbstractContextManager[ProbeCluster]:
        """A new connection of who is probed."""
        ...

    def filler(self) -> ProbeClient:
        """A client of who looks. Raises Invalid for a login that it cannot honour, as `client` does."""
        ...

    def client(self, client_id: str) -> ProbeClient:
        """A client of who is probed."""
        ...
