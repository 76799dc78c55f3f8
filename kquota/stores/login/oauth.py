"""Values of an OAUTHBEARER login (KIP-768): the source of its tokens, and a token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

_EXTENSION: Final = re.compile(r"extension_([A-Za-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token. `expires` is in seconds since 1970, or None if unknown. An unknown `principal` is empty."""

    value: str = field(repr=False)
    expires: float | None
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """The token endpoint of an identity provider, and the client id and secret that kquota sends there."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str | None
    """The requested scope, or None for the default scope of the provider."""
    encode_header: bool
    """True if kquota URL-encodes the client id and the secret."""
    seconds: float
    """The time limit of a request."""
    extensions: Mapping[str, str]
    """The SASL extensions (KIP-342)."""

    @property
    def uses_tls(self) -> bool:
        """True if the endpoint uses TLS."""
        return self.url.lower().startswith("https:")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """The file in which another program keeps a valid token."""

    path: Path
    extensions: Mapping[str, str]


Tokens: TypeAlias = ClientCredentials | TokenFile


def extensions(options: Mapping[str, str]) -> dict[str, str]:
    """Return the SASL extensions (KIP-342) of a login: the value of each option `extension_NAME`, by NAME."""
    return {match[1]: value for option, value in options.items() if (match := _EXTENSION.fullmatch(option))}


def shown(url: str) -> str:
    """Return a URL for a message, without user, password, query and fragment. Raises ValueError for an invalid URL."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}{f':{parts.port}' if parts.port else ''}{parts.path}"
