"""What a probe works with, joined: `cli.world`'s annex. Who looks and who is looked at may be two logins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import say
from kquota.cli.world import Where
from kquota.errors import Invalid

if TYPE_CHECKING:
    from kquota.config.port import Configs
    from kquota.mutation.port import Topics
    from kquota.probe.port import Client, Sight
    from kquota.quota.port import Principals
    from kquota.stores.security import Security
    from kquota.terms import BrokerId

ANONYMOUS: Final = "ANONYMOUS"
CLIENT_ID: Final = "kquota"


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
        from kquota.stores.security import Password

        if self.probed is None or self.probed.protocol == "PLAINTEXT":
            return ANONYMOUS
        return self.probed.credentials.username if isinstance(self.probed.credentials, Password) else None

    @property
    def client_id(self) -> str:
        """The probed client's, where nobody names another."""
        return (self.probed and self.probed.client_id) or CLIENT_ID

    @contextmanager
    def stage(self, client_id: str | None = None) -> Iterator[Stage]:
        """A new connection: of our own login, or of the probed one under the client-id that is to be probed."""
        from kquota.stores.wire import login
        from kquota.stores.wire.configs import WireConfigs
        from kquota.stores.wire.connection import Wire
        from kquota.stores.wire.quotas import WireQuotas
        from kquota.stores.wire.sight import WireSight
        from kquota.stores.wire.topics import WireTopics

        said = self.own if client_id is None else self.probed
        settings = {} if said is None else login.settings(said)
        named = {} if client_id is None else {"client_id": client_id}
        with Wire(self.bootstrap, settings | named) as wire:
            yield Stage(
                topics=WireTopics(wire),
                configs=WireConfigs(wire),
                quotas=WireQuotas(wire, unreadable=_warn),
                sight=WireSight(wire),
                brokers=tuple(wire.brokers()),
            )

    def client(self, client_id: str | None = None) -> Client:
        """A client that loads; like `stage`."""
        from kquota.stores import rdkafka
        from kquota.stores.load import RdkafkaClient

        said = self.own if client_id is None else self.probed
        return RdkafkaClient(self.bootstrap, {} if said is None else rdkafka.settings(said), client_id or CLIENT_ID)


def logins(at: Where, client_config: Path | None) -> Logins:
    """Who looks, and who is probed: the same unless --client-config names another login."""
    if at.bootstrap is None:
        raise Invalid("this needs the brokers: give --bootstrap-server HOST:PORT")
    own = None if at.command_config is None else _read(at.command_config)
    return Logins(bootstrap=at.bootstrap, own=own, probed=own if client_config is None else _read(client_config))


def _read(path: Path) -> Security:
    from kquota.stores.security import security

    return security(path, os.environ, _warn)


def _warn(line: str) -> None:
    say(f"warning: {line}")
