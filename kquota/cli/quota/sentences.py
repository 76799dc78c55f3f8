"""Sentences of `quota explain` and `quota probe`: a client, a limit, the answer for a key; at most 80 columns."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from kquota.cli.contract import printable
from kquota.measure import human_rate
from kquota.quota.capacity import Capacity
from kquota.quota.explain import KeyAnswer
from kquota.quota.limits import plain
from kquota.quota.precedence import Client
from kquota.quota_keys import QUOTA_KEYS, Model

WIDTH: Final = 80
_INDENT: Final = " " * 11


def whom(client: Client) -> str:
    """The client in words."""
    user = "any user that no quota names" if client.user is None else f"user {client.user!r}"
    if client.client_id is None:
        return f"{user}, any client-id that no quota names"
    return f"{user}, client-id {client.client_id!r}" if client.client_id else f"{user}, without a client-id"


def headline(answer: KeyAnswer, cluster: Capacity) -> str:
    """The answer for one key in one sentence."""
    if cluster.ignores(answer.key):
        return f"{answer.key}: unlimited, the brokers are too old for it"
    if answer.limit is None:
        return f"{answer.key}: unlimited, no level that applies is set"
    won = answer.winner
    where = "for the cluster" if answer.row.model is Model.BUCKET else "per broker"
    source = (
        f"{answer.static} of the brokers (below all levels)"
        if won is None
        else f"{won.entity} (level {won.level} of {len(answer.rungs)})"
    )
    return f"{answer.key}: {amount(answer.key, answer.limit)} {where}, from {source}"


def amount(key: str, value: float) -> str:
    """A limit with its unit."""
    row = QUOTA_KEYS[key]
    if row.in_bytes and math.isfinite(value):
        return human_rate(value)
    return plain(value) + (" B/s" if row.in_bytes else "%" if row.model is Model.SHARE else "/s")


_TOGETHER: Final = re.compile(r"(?<=level) (?=\d)|(?<=\d) (?=of \d)|(?<=of) (?=\d\))|(?<=\d) (?=s\b)")


def wrapped(head: str, line: str, indent: str = _INDENT) -> Iterator[str]:
    """Wrapped lines of the same width on every terminal. `level 3 of 8` stays on one line."""
    lines = textwrap.wrap(
        _TOGETHER.sub("\0", printable(line)),
        width=WIDTH,
        initial_indent=f"  {head:<9}" if head else "",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (one.replace("\0", " ") for one in lines)
