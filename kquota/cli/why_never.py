"""Why a move never ends, in words: an estimate says it, and what refuses to start such a move."""

from __future__ import annotations

from kquota.cli.amounts import rate_or_unknown
from kquota.cli.contract import printable
from kquota.measure import human_rate
from kquota.pace.share import Pace, Side
from kquota.pace.waves import Waves


def why_never(judged: Pace | Waves) -> str:
    """Which broker's copies can never catch up, with its numbers, and the throttle that would do."""
    share = judged.bottleneck
    assert share is not None
    if share.side is Side.LEADER:
        left = f"broker {share.broker} has {rate_or_unknown(share.left)} left for the copies it sends "
        left += f"({human_rate(share.throttle)} throttle - {rate_or_unknown(share.keep_up)} for in-sync followers)"
    else:
        left = f"broker {share.broker} may receive {human_rate(share.throttle)}"
    least = judged.least_throttle
    enough = f"above {human_rate(least)}" if least is not None else f"well above {rate_or_unknown(share.needed)}"
    wave = f"in {named_wave(judged)} " if isinstance(judged, Waves) else ""
    rate = rate_or_unknown(share.writes)
    return f"{wave}{left}, but its copies are written to at {rate}; it can finish with a --throttle {enough}"


def named_wave(waves: Waves) -> str:
    """The wave that the whole waits for, by its number and its first and last partition."""
    wave, _ = waves.each[waves.worst]
    return f"wave {waves.worst + 1} ({printable(wave.first)} to {printable(wave.last)})"
