"""Names that look as if somebody meant another: encoded, spaced, prefixed, or a twin of another name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import quote, unquote

from kquota.terms import DEFAULT, WIRE_DEFAULT, Default

_ENCODED: Final = re.compile(r"%[0-9A-F]{2}")
_PRINCIPAL: Final = "User:"


def decoded(name: str) -> str | Default | None:
    """What a name would be if it were a znode's, or None where it does not look like one.

    A migration to KRaft took users' znode names for their names (KAFKA-16222), and the default's for a user
    (KAFKA-16411).
    """
    if name == WIRE_DEFAULT:
        return DEFAULT
    if not _ENCODED.search(name):
        return None
    plain = unquote(name, errors="replace")
    if not plain or quote(plain, safe="").replace("~", "%7E") != name:
        return None
    return DEFAULT if plain == WIRE_DEFAULT else plain


def without_type(name: str) -> str | None:
    """The name in `User:alice`: a quota is for the principal's name, without its type (KafkaPrincipal)."""
    return name.removeprefix(_PRINCIPAL) if name.startswith(_PRINCIPAL) and name != _PRINCIPAL else None


def trimmed(name: str) -> str | None:
    """The name without the white space around it, or None where there is none or nothing else."""
    return name.strip() if name.strip() not in ("", name) else None


def twins(names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Names that differ only by case, by percent-encoding or by white space around them: each with its others."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(unquote(name, errors="replace").strip().casefold(), []).append(name)
    return {one: tuple(n for n in group if n != one) for group in groups.values() for one in group if len(group) > 1}
