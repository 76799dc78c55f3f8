"""Cordoned log dirs in `move plan` and `move estimate`: the notes, and the JSON key `cordoned`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kquota.cli.output import JsonObject
from kquota.list_text import few
from kquota.measure import agreeing
from kquota.sizes.replica import Cordon

_NAMED: Final = 5


def cordons_shown(cordons: Iterable[Cordon]) -> list[JsonObject]:
    """Return the JSON of the cordons. If `whole` is true, no log dir of the broker accepts new replicas."""
    return [{"broker": one.broker, "log_dirs": one.log_dirs, "whole": one.whole} for one in cordons]


def cordon_notes(cordons: Iterable[Cordon]) -> Iterator[str]:
    """Yield one line for each broker with cordoned log dirs."""
    for each in cordons:
        names = few(each.log_dirs, _NAMED)
        if each.whole:
            yield (
                f"broker {each.broker}: no log dir accepts new replicas (cordoned: {names}), so `move plan` places "
                "no replica there"
            )
        else:
            yield (
                f"broker {each.broker}: {agreeing(len(each.log_dirs), 'log dir', 'is', 'are')} cordoned ({names}). New "
                "replicas go to other log dirs, unless a plan names a cordoned one"
            )
