"""Config names that were in drafts of KIP-599 but never shipped, and the current configs that have the same effect."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from kquota.cli.contract import say
from kquota.errors import Invalid
from kquota.quota.limits import plain
from kquota.terms import CONTROLLER_MUTATION_RATE, SAMPLE_MS, SAMPLES

_RATE: Final = "controller_mutations_rate"
_BURST: Final = re.compile(r"controller_mutations?_burst|quota\.(?:partition|controller)[._]mutations?[._]burst")
_CLUSTER_WIDE: Final = re.compile(r"quota\.(?:partition|controller)[._]mutations?[._].*")
_WINDOW: Final = f"{SAMPLES} x {SAMPLE_MS // 1_000} s"
"""Kafka's defaults: `controller.quota.window.num` samples of `controller.quota.window.size.seconds`."""


def today(given: Mapping[str, str], option: str) -> Mapping[str, str]:
    """Return the pairs under Kafka's current names, and report each replaced name on stderr. `option` is the option
    that contains the pairs.

    Raises Invalid for a name that has no current equivalent, and for a rate that is given under its draft name and its
    current name.
    """
    for key, value in given.items():
        _must_have_shipped(key, value, given.get(CONTROLLER_MUTATION_RATE, given.get(_RATE)), option)
    return dict(zip(today_keys(list(given), option), given.values(), strict=True))


def today_keys(given: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the keys under Kafka's current names, and report each replaced name on stderr. `option` is the option
    that contains the keys.

    Raises Invalid for a name that has no current equivalent, and for a key that is given under its draft name and its
    current name.
    """
    for key in given:
        if _BURST.fullmatch(key) or _CLUSTER_WIDE.fullmatch(key):
            raise Invalid(
                f"{option}: {key} was in a draft of KIP-599 and never shipped, so it is not set anywhere. Leave out "
                f"{key}"
            )
    if _RATE not in given:
        return tuple(given)
    if CONTROLLER_MUTATION_RATE in given:
        raise Invalid(
            f"{option}: {_RATE} is the name of {CONTROLLER_MUTATION_RATE} in a draft of KIP-599, and both are given. "
            f"Give only {CONTROLLER_MUTATION_RATE}"
        )
    say(
        f"{option}: {_RATE} is a name from a draft of KIP-599. kquota uses the current name, {CONTROLLER_MUTATION_RATE}"
    )
    return tuple(CONTROLLER_MUTATION_RATE if key == _RATE else key for key in given)


def _must_have_shipped(key: str, value: str, rate: str | None, option: str) -> None:
    if _BURST.fullmatch(key):
        raise Invalid(
            f"{option}: {key} was in a draft of KIP-599 and never shipped. The burst is controller_mutation_rate x "
            f"controller.quota.window.num x controller.quota.window.size.seconds ({_WINDOW} by default). "
            f"{_burst(_number(value), _number(rate))}"
        )
    if _CLUSTER_WIDE.fullmatch(key):
        wanted, replacing = (value, "") if _number(value) else ("RATE", " (replace RATE with mutations per second)")
        raise Invalid(
            f"{option}: {key} was in a draft of KIP-599 and never shipped. "
            "To limit each user that has no rate, use "
            f"--add-config {CONTROLLER_MUTATION_RATE}={wanted} with --user-defaults{replacing}"
        )


def _burst(burst: float | None, rate: float | None) -> str:
    """Return the advice for a burst at a rate. None means that the number is missing or not valid."""
    set_windows = (
        "Set the controller.quota.window settings in the properties of every controller (on a cluster with ZooKeeper: "
        "of every broker)"
    )
    if burst is None:
        example = "a burst of 500 at rate 5 needs controller.quota.window.num=100 (100 x 1 s x 5)"
        return f"{set_windows}. For example, {example}"
    if rate is None:
        fits = plain(round(burst / (SAMPLES * SAMPLE_MS / 1_000), 3))
        needed = f"{CONTROLLER_MUTATION_RATE}={fits} ({_WINDOW} x {fits})"
        return f"With these defaults, a burst of {plain(burst)} needs {needed}"
    windows = max(1, math.ceil(burst / rate))
    product = "" if windows * rate == burst else f" = {plain(windows * rate)}"
    return (
        f"{set_windows}. A burst of {plain(burst)} at rate {plain(rate)} needs controller.quota.window.num={windows} "
        f"({windows} x 1 s x {plain(rate)}{product})"
    )


def _number(text: str | None) -> float | None:
    """Parse a positive number. Return None for any other text."""
    if text is None or not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?", text):
        return None
    return float(text) or None
