"""OAUTHBEARER's tokens (KIP-768): an identity provider gives them, or another program keeps one in a file."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote_plus, urlencode, urlsplit

from kquota.errors import Invalid, Refused, Unreachable

if TYPE_CHECKING:
    import ssl

_MOST: Final = 1 << 20
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_EXTENSION: Final = re.compile(r"extension_([A-Za-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token and when it ends, in seconds since 1970; None where nobody says."""

    value: str = field(repr=False)
    expires: float | None
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """A token from an identity provider, for a client-id and its secret."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str | None
    encode_header: bool
    seconds: float
    extensions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """A token that something else keeps fresh in a file."""

    path: Path
    extensions: Mapping[str, str]


Tokens: TypeAlias = ClientCredentials | TokenFile


def extensions(options: Mapping[str, str]) -> dict[str, str]:
    """The SASL extensions among a login's options (KIP-342)."""
    return {match[1]: value for option, value in options.items() if (match := _EXTENSION.fullmatch(option))}


def token(wanted: Tokens, trust: Callable[[], ssl.SSLContext]) -> Token:
    """The token from its file or from its provider. `trust` says which providers are believed, and is asked late.

    Raises Unreachable or Refused, without the secret or anything that the provider may have repeated of it; Invalid
    for a file of a token that cannot be read.
    """
    match wanted:
        case TokenFile(path=path):
            try:
                text = path.read_text(encoding="ascii").strip()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it holds no token"
                raise Invalid(f"sasl.oauthbearer.token.endpoint.url: cannot read {path}: {reason}") from None
            return _checked(text, None, "", f"{path} holds no bearer token")
        case ClientCredentials():
            answer = _asked(wanted, trust)
            value = answer.get("access_token") or answer.get("id_token")
            lasts = answer.get("expires_in")
            ends = None if (seconds := _seconds(lasts)) is None else time.time() + seconds
            return _checked(value, ends, wanted.client_id, f"the token endpoint {shown(wanted.url)} returned no token")


def shown(url: str) -> str:
    """A URL fit for a message: without a password or a query in it. Raises ValueError for what is no URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _asked(wanted: ClientCredentials, trust: Callable[[], ssl.SSLContext]) -> dict[str, Any]:
    import http.client
    import urllib.error
    import urllib.request

    class _NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            """A redirect would carry the secret to whoever is named in it."""

    client, secret = wanted.client_id, wanted.secret
    if wanted.encode_header:
        client, secret = quote_plus(client), quote_plus(secret)
    body = {"grant_type": "client_credentials"} | ({"scope": wanted.scope} if wanted.scope else {})
    request = urllib.request.Request(  # noqa: S310  # security.py takes http, https and file only
        wanted.url,
        data=urlencode(body).encode(),
        headers={
            "Authorization": "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode(),
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    where = f"the token endpoint {shown(wanted.url)}"
    handlers: list[Any] = [_NoRedirect()]
    if wanted.url.lower().startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=trust()))

    def answered() -> bytes:
        with urllib.request.build_opener(*handlers).open(request, timeout=wanted.seconds) as answer:
            return bytes(answer.read(_MOST))

    try:
        answer = _within(wanted.seconds, answered)
    except urllib.error.HTTPError as error:
        raise Refused(
            f"{where} answered {error.code}{_reason(error)}; check clientId, clientSecret and scope"
        ) from None
    except (OSError, urllib.error.URLError) as error:
        raise Unreachable(f"{where} cannot be reached within {wanted.seconds:.0f} s: {_why(error)}") from None
    except (http.client.InvalidURL, ValueError):
        # No name for DNS, or what a request line cannot hold.
        raise Invalid(f"{where} cannot be requested; check sasl.oauthbearer.token.endpoint.url") from None
    except http.client.HTTPException:
        raise Refused(f"{where} does not answer with HTTP; check sasl.oauthbearer.token.endpoint.url") from None
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        raise Refused(f"{where} did not return JSON; check sasl.oauthbearer.token.endpoint.url") from None
    return document if isinstance(document, dict) else {}


def _within(seconds: float, work: Callable[[], bytes]) -> bytes:
    """What `work` returns or raises, or TimeoutError: a socket's time-out bounds each wait and not their sum."""
    import threading

    outcome: list[bytes | Exception] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:  # noqa: BLE001  # raised again below, by whom it concerns
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _reason(error: Any) -> str:
    """The provider's own word for the refusal: one of OAuth's short codes (RFC 6749), nothing longer."""
    import http.client

    try:
        code = json.loads(error.read(_MOST)).get("error", "")
    except (OSError, http.client.HTTPException, ValueError, RecursionError, AttributeError):
        return ""
    return f" {code}" if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code) else ""


def _why(error: OSError) -> str:
    from kquota.stores.login.handshake import explained

    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, OSError):
        return explained(reason) or reason.strerror or str(reason) or type(reason).__name__
    return str(reason)


def _checked(value: object, expires: float | None, principal: str, otherwise: str) -> Token:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise Refused(otherwise)
    claims = _claims(value)
    ends, subject = _seconds(claims.get("exp")), claims.get("sub")
    return Token(
        value=value,
        expires=expires if ends is None else ends,
        principal=subject if isinstance(subject, str) else principal,
    )


def _seconds(told: object) -> float | None:
    """A time as JSON has it; None for what is none, and for a whole number that no clock reaches."""
    try:
        return float(told) if isinstance(told, (int, float)) else None
    except OverflowError:
        return None


def _claims(text: str) -> dict[str, Any]:
    """What a token says of itself, unproven; {} for one that is no JWT."""
    parts = text.split(".")
    try:
        document = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
