"""The interfaces of a probe: the cluster and its metadata on each broker, a real client that sends a load to a topic,
small writes, consumer groups, and the logins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from kquota.mutation.port import Topics
from kquota.pace.lag import OffsetsReading
from kquota.probe.load import Load
from kquota.probe.verdict import Meter
from kquota.quota.explain import Explanation
from kquota.settings.port import Configs
from kquota.terms import BrokerId


class ProbeClient(Protocol):
    """A real client that sends a load.

    All methods raise Refused if brokers reject the client, and Unreachable for other failures.
    """

    def produce(self, load: Load, meter: Meter, on_progress: Callable[[float], None]) -> None:
        """Write at the load's rate until the meter ends. `on_progress` receives the elapsed seconds.

        Raises Refused if the client has sent more than the load's `most_bytes`.
        """

    def fill(self, load: Load) -> None:
        """Write the data that `consume` reads: about as much as `consume` reads in a second, but at most 16 MB on each
        broker. Raises Refused like `produce`.
        """

    def consume(self, load: Load, meter: Meter, on_progress: Callable[[float], None]) -> None:
        """Read the data of `fill` repeatedly, at the load's rate, until the meter ends."""

    def request(self, load: Load, meter: Meter, on_progress: Callable[[float], None]) -> None:
        """Send requests that return no data, until the meter ends. Each request counts as 1.

        The load's `rate` is the number of connections. Each connection sends one request after another.
        """


UNANSWERED_SECONDS: Final = 1.0
"""A small write without an answer after this time counts as failed."""


class SmallWrites(Protocol):
    """Small writes with acks=all to every partition of one topic."""

    def write(self, seconds: float) -> None:
        """Send one record to each partition, and wait this many seconds for acknowledgements. Raises Refused if brokers
        reject the login.

        A partition gets no record while it has too many unanswered writes.
        """

    def latencies(self) -> Mapping[int, Sequence[float]]:
        """Return the seconds of each write that was answered or failed since the last call, by partition.

        The time of a failed write is infinite. A write that has had no answer for a second counts as infinite in each
        call.
        """

    @property
    def lost(self) -> bool:
        """True if brokers have answered that the topic does not exist."""


class ConsumerGroups(Protocol):
    """The consumer groups that have members."""

    def read(self) -> OffsetsReading:
        """Return the offsets of each group. Raises Unreachable if no broker answers.

        A reading has a limited number of groups and of offsets. It leaves out groups that this user may not describe,
        and groups and partitions whose broker does not answer in time.
        """


class Sight(Protocol):
    """The metadata of each broker."""

    def behind(self, wanted: Mapping[str, int]) -> int:
        """Return the number of brokers that do not answer, or do not show all these topics with their partitions and
        leaders.

        A topic with 0 partitions must not be shown, because it was deleted.
        """


class ProbeCluster(Protocol):
    """A connected cluster. `kquota.connect` provides one."""

    @property
    def topics(self) -> Topics:
        """The topics of the cluster."""

    @property
    def configs(self) -> Configs:
        """The configs of the topics."""

    @property
    def sight(self) -> Sight:
        """The metadata of the topics on each broker."""

    @property
    def brokers(self) -> Sequence[BrokerId]:
        """The live brokers."""

    def explained(self, user: str, client_id: str) -> Explanation:
        """Return the quotas that apply to a client with this user and this client-id.

        Raises Unreachable if the cluster does not answer, and Refused if it refuses the request.
        """

    def logins(self, client_config: Path | str | None = None) -> ProbeLogins:
        """Return the login of this connection, which creates and removes the topics, and the login to probe.

        `client_config` is a file of Java properties with the login to probe. None means the login of this connection.
        Raises Invalid for a file that is not valid.
        """


class ProbeLogins(Protocol):
    """The login that creates and removes the topics, and the login that is probed.

    Every method that opens a connection raises Refused if brokers reject the login, and Unreachable if no broker
    answers.
    """

    @property
    def user(self) -> str | None:
        """The user of the probed login. None if only the brokers know it, from a certificate, token or ticket."""

    @property
    def client_id(self) -> str:
        """The default client-id of the probed login."""

    def stage(self) -> AbstractContextManager[ProbeCluster]:
        """Open a new connection with the login for the topics, because another connection may be in the middle of a
        request.
        """

    def stage_as(self, client_id: str) -> AbstractContextManager[ProbeCluster]:
        """Open a new connection with the probed login and this client-id."""

    def filler(self) -> ProbeClient:
        """Return a client with the login for the topics. Raises Invalid if the client does not support this login."""

    def client(self, client_id: str) -> ProbeClient:
        """Return a client with the probed login and this client-id. Raises Invalid like `filler`."""

    def small_writes(self, topic: str, partitions: int) -> AbstractContextManager[SmallWrites]:
        """Open a client that writes to this topic with the login for the topics. Raises Invalid for a login that the
        client does not support.
        """

    def groups(self) -> AbstractContextManager[ConsumerGroups]:
        """Open a new connection with the login for the topics, to read consumer groups."""
