"""The login to a ZooKeeper as a value: TLS, a user, and the names of both in errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kquota.stores.login.names import OF_A_PROGRAM, ArgumentNames

if TYPE_CHECKING:
    from kquota.stores.login.tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A user for ZooKeeper's SASL mechanism DIGEST-MD5."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The login of a session. An open ZooKeeper needs neither TLS nor a user."""

    tls: Tls | None = None
    tls_where: str = ""
    digest: Digest | None = None
    names: ArgumentNames = OF_A_PROGRAM

    @property
    def logs_in(self) -> bool:
        """True if the session has a user or uses TLS."""
        return self.tls is not None or self.digest is not None
