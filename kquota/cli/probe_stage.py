"""What a probe works with, joined: `cli.world`'s annex. Who looks and who is looked at may be two logins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kquota import library
from kquota.cli.world import Where, brokers, warn

if TYPE_CHECKING:
    from kquota.config.port import Configs
    from kquota.mutation.port import Topics
    from kquota.probe.port import Client, Sight
    from kquota.quota.port import Principals
    from kquota.stores.security import Security
    from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """All ports of one login, on one connection; `brokers` are the live ones."""

    topics: Topics
    configs: Configs
    quotas: Principals
    sight: Sight
    brokers: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """Files are read once, they may be pipes. `own` makes topics and reads quotas, `probed` is who loads."""

    bootstrap: str
    own: Security | None
    probed: Security | None

    @property
    def user(self) -> str | None:
        """Whom brokers take the probed client for; None where only they know: by certificate, token or ticket."""
        return library.user(self.probed)

    @property
    def client_id(self) -> str:
        """The probed client's, where nobody names another."""
        return library.client_id(self.probed)

    @contextmanager
    def stage(self, client_id: str | None = None) -> Iterator[Stage]:
        """A new connection: of our own login, or of the probed one under the client-id that is to be probed."""
        from kquota.stores.wire.configs import WireConfigs
        from kquota.stores.wire.quotas import WireQuotas
        from kquota.stores.wire.sight import WireSight
        from kquota.stores.wire.topics import WireTopics

        said = self.own if client_id is None else self.probed
        with library.wire(self.bootstrap, said, client_id=client_id) as wire:
            yield Stage(
                topics=WireTopics(wire),
                configs=WireConfigs(wire),
                quotas=WireQuotas(wire, unreadable=warn),
                sight=WireSight(wire),
                brokers=tuple(wire.brokers()),
            )

    def client(self, client_id: str | None = None) -> Client:
        """A client that loads; like `stage`."""
        from kquota.stores import rdkafka
        from kquota.stores.load import RdkafkaClient

        said = self.own if client_id is None else self.probed
        return RdkafkaClient(
            self.bootstrap, {} if said is None else rdkafka.settings(said), client_id or library.client_id(None)
        )


def logins(at: Where, client_config: Path | None) -> Logins:
    """Who looks, and who is probed: the same unless --client-config names another login."""
    bootstrap, own = brokers(at), library.login(at.command_config, warn)
    probed = own if client_config is None else library.login(client_config, warn, "--client-config")
    return Logins(bootstrap=bootstrap, own=own, probed=probed)
