"""A throttle as operators type it, with an eye on the oldest mistake: a unit that was left out."""

from __future__ import annotations

from typing import Final

from kquota.cli.contract import say
from kquota.measure import ByteRate, byte_rate, human_rate

# A rate so low and without a unit is most often one of megabytes that lost its unit on the way.
_BARE: Final = 100_000


def throttle(text: str, option: str) -> ByteRate:
    """The rate in `text`; warns of a bare number that looks like a lost unit. Raises Invalid, naming `option`."""
    rate = byte_rate(text, option)
    if text.strip().isdigit() and rate < _BARE:
        say(f"warning: {option} {text} is {human_rate(rate)}; did you mean {text}kB/s or {text}MB/s?")
    return rate
