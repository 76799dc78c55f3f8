"""The options that the `throttle` commands share, and how their lists of names are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kquota.errors import Invalid, Refused
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.throttle.standing import Standing

StateDir: TypeAlias = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="Where runs are on record.  [default: $XDG_STATE_HOME/kquota]"),
]
Topics: TypeAlias = Annotated[list[str] | None, typer.Option("--topic", metavar="T,…", help="Only these topics.")]
Brokers: TypeAlias = Annotated[
    list[str] | None, typer.Option("--broker", metavar="ID,…", help="Only these brokers, by their ids.")
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")]


def names(texts: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Topics joined by commas, the option repeated or both; each once. Raises Invalid."""
    found = [name.strip() for text in texts or () for name in text.split(",")]
    if "" in found:
        raise Invalid(f"{option} {','.join(texts or ())!r}: an empty name")
    return tuple(dict.fromkeys(found))


def ids(texts: Sequence[str] | None, option: str) -> tuple[BrokerId, ...]:
    """Broker ids, each once. Raises Invalid."""
    found = names(texts, option)
    if wrong := [text for text in found if not (text.isascii() and text.isdigit() and len(text) <= 10)]:
        raise Invalid(f"{option} {wrong[0]!r}: write broker ids joined by commas, as 1,2,3")
    return tuple(dict.fromkeys(BrokerId(int(text)) for text in found))


def must_exist(standing: Standing, topics: Collection[str], brokers: Collection[BrokerId]) -> None:
    """Raises Refused for a topic that is not there and a broker that nobody has heard of."""
    if unknown := [topic for topic in topics if topic not in standing.topics]:
        raise Refused(f"topic {unknown[0]} does not exist; correct --topic. Nothing was written")
    known = {*standing.brokers, *standing.unread}
    if strange := [broker for broker in brokers if broker not in known]:
        there = ",".join(map(str, sorted(known)))
        raise Refused(f"broker {strange[0]} does not exist, there are {there}; correct --broker. Nothing was written")
