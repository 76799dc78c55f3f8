"""The login at a ZooKeeper as a value: TLS, a user, and what errors call them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kquota.stores.login.names import OF_A_PROGRAM, ArgumentNames

if TYPE_CHECKING:
    from kquota.stores.login.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A user of ZooKeeper's SASL DIGEST-MD5."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a session needs besides an address; nothing of it for an open ZooKeeper."""

    tls: Tls | None = None
    tls_where: str = ""
    digest: Digest | None = None
    names: ArgumentNames = OF_A_PROGRAM

    @property
    def logs_in(self) -> bool:
        """Whether it has a user or TLS."""
        return self.tls is not None or self.digest is not None
