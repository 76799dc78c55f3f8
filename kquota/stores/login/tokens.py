"""Gets a token for OAUTHBEARER from an identity provider, or from a file that another program updates."""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, InvalidURL
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from kquota import bounded
from kquota.errors import Invalid, Refused, Unreachable
from kquota.measure import human_duration
from kquota.stores.login.listening import explained
from kquota.stores.login.oauth import ClientCredentials, Token, TokenFile, Tokens, shown

_MOST: Final = 1 << 20
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


def token(wanted: Tokens, trust: Callable[[], ssl.SSLContext]) -> Token:
    """Return a token from its file or from its provider. `trust` is called only when the provider uses TLS.

    Raises Unreachable if the provider does not answer, and Refused for an answer or a file without a token. Raises
    Invalid for an invalid URL or an unreadable token file. Also raises the errors of `trust`. No message contains the
    secret, or text from the provider that could repeat the secret.
    """
    match wanted:
        case TokenFile(path=path):
            try:
                text = bounded.file_bytes(path, bounded.SETTINGS, pipe=True).decode("ascii").strip()
            except (OSError, ValueError) as error:
                step, wrong = "Check the path and its permissions", "it is not ASCII text. Give a file with one token"
                reason = f"{error.strerror}. {step}" if isinstance(error, OSError) else wrong
                raise Invalid(f"sasl.oauthbearer.token.endpoint.url: cannot read {path}: {reason}") from None
            return _checked(
                text, None, "", f"{path} contains no bearer token. Check sasl.oauthbearer.token.endpoint.url"
            )
        case ClientCredentials():
            answer = _answer(wanted, trust)
            value = answer.get("access_token") or answer.get("id_token")
            lasts = answer.get("expires_in")
            ends = None if (seconds := _seconds(lasts)) is None else time.time() + seconds
            none = (
                f"the token endpoint {shown(wanted.url)} returned no token. Check sasl.oauthbearer.token.endpoint.url"
            )
            return _checked(value, ends, wanted.client_id, none)


def _answer(wanted: ClientCredentials, trust: Callable[[], ssl.SSLContext]) -> dict[str, Any]:
    """Return the JSON object of the provider's answer, or {} for another JSON value."""
    where = f"the token endpoint {shown(wanted.url)}"
    try:
        answer = _within(wanted.seconds, lambda: _posted(wanted, trust))
    except urllib.error.HTTPError as error:
        raise Refused(
            f"{where} answered {error.code}{_reason(error)}. Check clientId, clientSecret, scope and "
            "sasl.oauthbearer.token.endpoint.url"
        ) from None
    except OSError as error:
        raise Unreachable(f"{where} cannot be reached: {_why(error, wanted)}") from None
    except (InvalidURL, ValueError):
        # The host is not a valid DNS name, or the URL has characters that a request line cannot contain.
        raise Invalid(f"{where} is not a valid URL. Check sasl.oauthbearer.token.endpoint.url") from None
    except HTTPException:
        raise Refused(f"{where} does not answer with HTTP. Check sasl.oauthbearer.token.endpoint.url") from None
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        raise Refused(f"{where} did not return JSON. Check sasl.oauthbearer.token.endpoint.url") from None
    return document if isinstance(document, dict) else {}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Do not follow the redirect, because that would send the secret to another server."""


def _posted(wanted: ClientCredentials, trust: Callable[[], ssl.SSLContext]) -> bytes:
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
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if wanted.uses_tls:
        handlers.append(urllib.request.HTTPSHandler(context=trust()))
    with urllib.request.build_opener(*handlers).open(request, timeout=wanted.seconds) as answer:
        return bytes(answer.read(_MOST))


def _within(seconds: float, work: Callable[[], bytes]) -> bytes:
    """Return the result of `work` or raise its error, but raise TimeoutError after `seconds`. A socket's timeout is not
    enough, because it limits each wait, not the sum.
    """
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
    """Return a blank and the provider's error code, or an empty string without an OAuth error code (RFC 6749)."""
    try:
        code = json.loads(error.read(_MOST)).get("error", "")
    except (OSError, HTTPException, ValueError, RecursionError, AttributeError):
        return ""
    return f" {code}" if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code) else ""


def _why(error: OSError, wanted: ClientCredentials) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return f"no answer within {human_duration(wanted.seconds)}"
    if isinstance(reason, OSError):
        tls = explained(reason) if wanted.uses_tls else None
        return tls or reason.strerror or str(reason) or type(reason).__name__
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
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
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
