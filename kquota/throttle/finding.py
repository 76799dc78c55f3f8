"""One problem with the throttles of a cluster."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.settings.resource import Setting
from kquota.terms import BrokerId, Default


class Remedy(enum.Enum):
    """The remedy for a finding."""

    RESUME_RUN = enum.auto()
    END_RUN = enum.auto()
    REMOVE = enum.auto()
    REMOVE_AFTER_MOVES = enum.auto()
    SET_RATE = enum.auto()
    REMOVE_OR_SET_RATE = enum.auto()
    SET_SAME_RATE_ON_BROKERS = enum.auto()
    SET_SAME_RATE_ON_SIDES = enum.auto()
    SET_RATE_ON_EACH_BROKER = enum.auto()
    SET_RATE_DYNAMICALLY = enum.auto()
    REMOVE_FROM_BROKER = enum.auto()
    CORRECT_LIST = enum.auto()
    SHORTEN_LIST = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem: its place (`where`), its description (`what`), its effect and its remedy. Scripts can use `rule`.

    The remedy applies to the configs `keys` of `brokers` (or their default) or of `topic`. `values` has the rates and
    list entries of the finding, by setting. If `fixable` is true, kquota may remove these values, because no recorded
    run holds them and no running move can use them.
    """

    rule: str
    where: str
    what: str
    effect: str
    remedy: Remedy
    keys: tuple[str, ...] = ()
    brokers: tuple[BrokerId | Default, ...] = ()
    topic: str | None = None
    values: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    fixable: bool = False
