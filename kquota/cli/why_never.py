"""The reason why a move can never finish, as text for an estimate of the move and for the refusal to start it."""

from __future__ import annotations

from kquota.cli.amounts import rate_or_unknown
from kquota.cli.formats import printable
from kquota.measure import human_rate
from kquota.pace.share import Pace, Side
from kquota.pace.waves import Waves


def why_never(judged: Pace | Waves) -> str:
    """Describe the broker whose copies can never catch up, its rates, and the throttle that the move needs."""
    return f"{never_because(judged)}; the move can finish with a throttle {throttle_needed(judged)}"


def never_because(judged: Pace | Waves) -> str:
    """Describe the broker whose copies can never catch up, and its rates."""
    share = judged.bottleneck
    assert share is not None
    wave = f"in {named_wave(judged)} " if isinstance(judged, Waves) else ""
    writes = rate_or_unknown(share.writes)
    if share.side is Side.DESTINATION:
        allowed = human_rate(share.throttle)
        return f"{wave}broker {share.broker} may receive {allowed}, but producers write {writes} to its copies"
    terms = f"{human_rate(share.throttle)} throttle - {rate_or_unknown(share.keep_up)} follower traffic"
    left = f"broker {share.broker} has {rate_or_unknown(share.left)} left for the copies that it sends ({terms})"
    return f"{wave}{left}, but producers write {writes} to these copies"


def throttle_needed(judged: Pace | Waves) -> str:
    """Return the throttle that a move needs to finish, as text, for example `above 6 MB/s`."""
    if judged.least_throttle is not None:
        return f"above {human_rate(judged.least_throttle)}"
    assert judged.bottleneck is not None
    return f"well above {rate_or_unknown(judged.bottleneck.needed)}"


def named_wave(waves: Waves) -> str:
    """Describe the wave that never finishes, or that takes longest: its number, and its first and last partition."""
    wave, _ = waves.each[waves.worst]
    return f"wave {waves.worst + 1} ({printable(wave.first)} to {printable(wave.last)})"
