"""The run of a probe: its topics are there as long as it lasts, and not longer, whoever ends it and how."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from kquota.errors import KquotaError
from kquota.probe import actions, scratch
from kquota.probe.actions import Found
from kquota.probe.climb import climb
from kquota.probe.ladder import Ladder, Step
from kquota.probe.load import Kind, Load
from kquota.probe.meter import Meter, Reading
from kquota.probe.mutations import mutate
from kquota.probe.port import ProbeCluster, ProbeLogins

_ON_ITS_WAY = 0.5


def readings(
    who: ProbeLogins, client_id: str, load: Load, made: list[str], told: Callable[[float], None]
) -> tuple[Reading, ...]:
    """What the client got: of each broker, or of the controller. `made` names each topic before it is, for `removed`.

    `told` hears the seconds gone by. Raises Invalid for a login that the client cannot honour: before any is made.
    """
    if load.kind is Kind.CREATE_TOPICS:
        with who.stage_as(client_id) as stage:
            return (mutate(stage.topics, time, load, made.append, told),)
    filler, client = who.filler(), who.client(client_id)
    carry = {Kind.PRODUCE: client.produce, Kind.CONSUME: client.consume, Kind.REQUESTS: client.request}[load.kind]
    with who.stage() as stage:
        made.append(load.topic)
        actions.create(stage.topics, time, stage.sight, load.topic, load.leaders)
    if load.kind is Kind.CONSUME:
        filler.fill(load)
    now = time.monotonic()
    meter = Meter(starts=now + load.warm, ends=now + load.lasting)
    carry(load, meter, told)
    return meter.readings(load.leaders.values())


def steps(
    who: ProbeLogins, client_id: str, ladder: Ladder, made: list[str], told: Callable[[Step], None]
) -> tuple[Step, ...]:
    """What the controller took of each rung, and where it gave way; otherwise as `readings`."""
    names = _names(scratch.name(datetime.now(UTC), 2 * ladder.lasting, secrets.token_hex(4)), made)
    found: list[Step] = []
    with who.stage_as(client_id) as stage:
        for of_size in ladder.rungs:
            for step in climb(stage.topics, stage.sight, time, of_size, names, ladder.replication_factor):
                found.append(step)
                told(step)
    return tuple(found)


def _names(base: str, made: list[str]) -> Iterator[str]:
    while True:
        made.append(f"{base}-{len(made)}")
        yield made[-1]


def _unheard() -> None:
    """Nobody is told."""


def _raised(error: KquotaError) -> None:
    raise error


@contextmanager
def removed(
    who: ProbeLogins,
    made: list[str],
    *,
    removing: Callable[[], None] = _unheard,
    left: Callable[[KquotaError], None] = _raised,
) -> Iterator[None]:
    """Whatever comes, an interrupt too, all that was `made` is removed in the end, and then no longer named there.

    On a connection of its own: the one that was interrupted may be in the middle of a request. `removing` hears when
    that comes early, `left` why something stays; unless it is heard, that is raised.
    """
    ended_well = False
    try:
        yield
        ended_well = True
    finally:
        if made and not ended_well:
            removing()
            # What was on its way when we were stopped is then there to be seen.
            time.sleep(_ON_ITS_WAY)
        try:
            _remove(who, made)
        except KquotaError as error:
            left(error)


def _remove(who: ProbeLogins, made: list[str]) -> None:
    if made:
        with who.stage() as stage:
            actions.remove(stage.topics, stage.configs, time, made)
        made.clear()


def remove_older(stage: ProbeCluster) -> tuple[Found, tuple[str, ...]]:
    """Remove what older probes left whose time is over: all that was found, and the names of what is gone."""
    found = older(stage)
    return found, actions.remove(stage.topics, stage.configs, time, [topic.name for topic in found.over])


def older(stage: ProbeCluster) -> Found:
    """What older probes left, and what only looks like it; nothing is removed."""
    return actions.found(stage.topics, stage.configs, datetime.now(UTC))
