"""One thing about the standing throttles that somebody should look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.reassign.throttle import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong, where, what that does, and what to do about it; `rule` is a fixed word for scripts.

    `values` are the rates and list entries it is about, by setting. `fixable`: `throttle doctor --fix` may take just
    these away: no run on record holds them and no move that runs could use them.
    """

    rule: str
    where: str
    what: str
    effect: str
    do: str
    values: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    fixable: bool = False
