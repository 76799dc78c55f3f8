"""Byte rates as operators type them, with a warning if a rate is probably too low."""

from __future__ import annotations

from typing import Final

from kquota.cli.contract import say
from kquota.measure import ByteRate, byte_rate, human_rate

NO_THROTTLE: Final = "-1"
"""The value for no throttle in kafka-reassign-partitions.

In Kafka's tool, every other negative number also means no throttle. The tool also accepts a throttle of 0, although a
copy under it never ends.
"""
# Warn below this number, because a low rate without a unit is usually in megabytes.
_BARE: Final = 100_000
# Warn below this rate, because the help of Kafka's tool says "should be at least 1 KB/s".
_LEAST: Final = 1_000


def throttle(text: str, option: str) -> ByteRate:
    """Parse a rate into bytes per second, and warn if it is probably too low. Raises Invalid for an invalid rate, with
    a message that begins with `option`.
    """
    rate = byte_rate(text, option)
    warn_if_low(f"{option} {text}", text, rate, "throttle")
    return rate


def warn_if_low(given: str, text: str, rate: float, what: str) -> None:
    """Warn if `rate`, in bytes per second, is probably too low.

    `text` is the rate as typed. `given` is the name of its option or key, followed by the same text. `what` is the word
    for the rate in the warning.
    """
    bare = text.strip()
    if bare.isdigit() and rate < _BARE:
        say(f"warning: {given} is {human_rate(rate)}. If a unit is missing, write {bare}kB/s or {bare}MB/s")
    elif rate < _LEAST:
        say(f"warning: {given} is {human_rate(rate)}. A {what} should be at least 1 kB/s")


def any_throttle(text: str | None, option: str) -> ByteRate | None:
    """Return the rate, or None if `text` is None or `NO_THROTTLE`. For `NO_THROTTLE`, also print a note. Warns and
    raises Invalid as `throttle` does.
    """
    if text is None:
        return None
    if text.strip() == NO_THROTTLE:
        say(f"note: {option} {NO_THROTTLE} sets no throttle, as in Kafka's tools")
        return None
    return throttle(text, option)
