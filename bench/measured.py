"""Measurements without a comparison, or with one that would take hours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.race import spread
from bench.section import Section, verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The seconds of each round. `promised` is the maximum that the README states. `theirs` is the time of Kafka's
    tool, estimated from some calls.

    `megabytes` is the maximum memory of all rounds, or None if it was not measured.
    """

    name: str
    ours: tuple[float, ...]
    promised: float | None = None
    theirs: float | None = None
    megabytes: float | None = None
    promised_megabytes: float | None = None

    @property
    def kept(self) -> bool:
        """True if the promise holds."""
        fast = self.promised is None or statistics.median(self.ours) <= self.promised
        return fast and (self.promised_megabytes is None or (self.megabytes or 0) <= self.promised_megabytes)

    @property
    def promise(self) -> str:
        """The promises in words, or an empty text if there are none."""
        if self.promised is None:
            return ""
        memory = "" if self.promised_megabytes is None else f" and {self.promised_megabytes:.0f} MB"
        return f"{self.promised:g} s{memory}"


def measured(name: str, found: Sequence[Measured]) -> Section:
    """Return the measurements of one part as a section."""
    table = [
        [
            each.name,
            spread(each.ours),
            "" if each.theirs is None else f"{each.theirs:.0f}",
            "" if each.megabytes is None else f"{each.megabytes:.0f}",
            verdict(each.promise, each.kept),
        ]
        for each in found
    ]
    rows = [
        {
            "name": each.name.strip(),
            "kquota_seconds": each.ours,
            "their_seconds": each.theirs,
            "kquota_megabytes": each.megabytes,
            "promised_seconds": each.promised,
            "promised_megabytes": each.promised_megabytes,
        }
        for each in found
    ]
    headers = ["", "kquota, s", "Kafka's tool, s", "kquota, MB", "promised"]
    return Section(name=name, headers=headers, table=table, rows=rows, kept=all(each.kept for each in found))
