"""Tokens for OAUTHBEARER (KIP-768), from an identity provider or from a file that another program updates."""

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

from kquota import bounded
from kquota.errors import Invalid, Refused, Unreachable

if TYPE_CHECKING:
    import ssl

_MOST: Final = 1 << 20
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_EXTENSION: Final = re.compile(r"extension_([A-Za-z]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token and its expiry in seconds since 1970, or None if unknown."""

    value: str = field(repr=False)
    expires: float | None
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Where to get a token for a client id and its secret from an identity provider."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str | None
    encode_header: bool
    seconds: float
    extensions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """The file in which another program keeps a valid token."""

    path: Path
    extensions: Mapping[str, str]


Tokens: TypeAlias = ClientCredentials | TokenFile


def extensions(options: Mapping[str, str]) -> dict[str, str]:
    """Return the SASL extensions among the options of a login (KIP-342)."""
    return {match[1]: value for option, value in options.items() if (match := _EXTENSION.fullmatch(option))}


def token(wanted: Tokens, trust: Callable[[], ssl.SSLContext]) -> Token:
    """Return a token from its file or from its provider. `trust` is called only when the provider uses TLS.

    Raises Unreachable or Refused, and Invalid for a token file that cannot be read. No message contains the secret or
    text from the provider that could repeat it.
    """
    match wanted:
        case TokenFile(path=path):
            try:
                text = bounded.file_bytes(path, bounded.SETTINGS, pipe=True).decode("ascii").strip()
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
    """Return a URL for a message, without password and query. Raises ValueError if it is not a valid URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _asked(wanted: ClientCredentials, trust: Callable[[], ssl.SSLContext]) -> dict[str, Any]:
    import http.client
    import urllib.error
    import urllib.request

    class _NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            """Follow no redirect, because it would send the secret to another server."""

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
            f"{where} answered {error.code}{_reason(error)}. Check clientId, clientSecret and scope"
        ) from None
    except (OSError, urllib.error.URLError) as error:
        raise Unreachable(f"{where} cannot be reached within {wanted.seconds:.0f} s: {_why(error)}") from None
    except (http.client.InvalidURL, ValueError):
        # Not a valid name for DNS, or characters that a request line cannot contain.
        raise Invalid(f"{where} cannot be requested. Check sasl.oauthbearer.token.endpoint.url") from None
    except http.client.HTTPException:
        raise Refused(f"{where} does not answer with HTTP. Check sasl.oauthbearer.token.endpoint.url") from None
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        raise Refused(f"{where} did not return JSON. Check sasl.oauthbearer.token.endpoint.url") from None
    return document if isinstance(document, dict) else {}


def _within(seconds: float, work: Callable[[], bytes]) -> bytes:
    """Return the result of `work`, or raise its error or TimeoutError. A socket's time-out limits each wait, not their
    sum.
    """
    import threading

    outcome: list[bytes | Exception] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:  # noqa: BLE001  # raised again below, in the caller's thread
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
    """Return the provider's error code if it is one of OAuth's short codes (RFC 6749), otherwise an empty text."""
    import http.client

    try:
        code = json.loads(error.read(_MOST)).get("error", "")
    except (OSError, http.client.HTTPException, ValueError, RecursionError, AttributeError):
        return ""
    return f" {code}" if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code) else ""


def _why(error: OSError) -> str:
    from kquota.stores.login.listening import explained

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


def _seconds(value: object) -> float | None:
    """Return a time from JSON, or None if it is not a number or too large for a float."""
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


def _claims(text: str) -> dict[str, Any]:
    """Return the claims of a token without verifying them, or {} if it is not a JWT."""
    parts = text.split(".")
    try:
        document = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
