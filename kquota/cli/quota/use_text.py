"""The client of a bucket and the use of a key, as `quota top` and `quota advise` show them to people."""

from __future__ import annotations

from kquota.cli.amounts import UNKNOWN
from kquota.measure import human_rate
from kquota.quota_keys import QUOTA_KEYS, Model


def bucket_name(user: str | None, client_id: str | None) -> str:
    """Return the user and the client-id of a bucket as text. A part that is None is left out."""
    names = (("user", user), ("client-id", client_id))
    return " ".join(f"{kind} {name!r}" for kind, name in names if name is not None)


def amount(key: str, value: float | None) -> str:
    """Return a use or a limit of this key as text for people, or `unknown` for None."""
    if value is None:
        return UNKNOWN
    row = QUOTA_KEYS[key]
    if row.in_bytes:
        return human_rate(value)
    number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{number}%" if row.model is Model.SHARE else f"{number}/s"
