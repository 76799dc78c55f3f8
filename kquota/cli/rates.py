"""A throttle as operators type it, with an eye on the oldest mistake: a unit that was left out."""

from __future__ import annotations

from typing import Final

from kquota.cli.contract import say
from kquota.measure import ByteRate, byte_rate, human_rate

NO_THROTTLE: Final = "-1"
"""What kafka-reassign-partitions takes for "none". It takes every other negative number, too, and 0, under which no
copy ever ends.
"""
# A rate so low and without a unit is most often one of megabytes that lost its unit on the way.
_BARE: Final = 100_000
# "should be at least 1 KB/s", says Kafka's tool of its own option.
_LEAST: Final = 1_000


def throttle(text: str, option: str) -> ByteRate:
    """The rate in `text`; warns of one that is too low to be meant. Raises Invalid, naming `option`."""
    rate = byte_rate(text, option)
    if text.strip().isdigit() and rate < _BARE:
        say(f"warning: {option} {text} is {human_rate(rate)}. If a unit is missing, write {text}kB/s or {text}MB/s")
    elif rate < _LEAST:
        say(f"warning: {option} {text} is {human_rate(rate)}. A throttle should be at least 1 kB/s")
    return rate


def any_throttle(text: str | None, option: str) -> ByteRate | None:
    """As `throttle`; None where there is to be none. Raises Invalid, naming `option`."""
    if text is None:
        return None
    if text.strip() == NO_THROTTLE:
        say(f"note: {option} {NO_THROTTLE} means no throttle, as in Kafka's tools. You can leave out the option")
        return None
    return throttle(text, option)
