"""Names and broker ids as an option lists them: joined by commas, the option repeated, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kquota.errors import Invalid
from kquota.terms import BrokerId

_DIGITS: Final = 10


def names(texts: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Each once, in the order given; none without the option (None). Raises Invalid for an empty one."""
    found = [name.strip() for text in texts or () for name in text.split(",")]
    if "" in found:
        raise Invalid(f"{option} {','.join(texts or ())!r}: an empty name")
    return tuple(dict.fromkeys(found))


def broker_ids(texts: Sequence[str] | None, option: str) -> tuple[BrokerId, ...]:
    """Each once, in the order given; none without the option (None). Raises Invalid for what is no broker's id."""
    found = [text.strip() for given in texts or () for text in given.split(",")]
    if not all(text.isascii() and text.isdigit() and len(text) <= _DIGITS for text in found):
        raise Invalid(f"{option} {','.join(texts or ())!r}: write broker ids joined by commas, as 1,2,3")
    return tuple(dict.fromkeys(BrokerId(int(text)) for text in found))
