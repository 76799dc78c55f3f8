"""Runs a probe, and removes its topics at the end, even after an error or an interrupt."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from kquota.errors import KquotaError
from kquota.mutation.actions import unheard
from kquota.probe import actions, scratch
from kquota.probe.actions import Found
from kquota.probe.ladder import Ladder, Step
from kquota.probe.load import Kind, Load
from kquota.probe.mutations import climb, mutate
from kquota.probe.port import ProbeCluster, ProbeLogins
from kquota.probe.verdict import Meter, Reading

_ON_ITS_WAY = 0.5


def readings(
    who: ProbeLogins, client_id: str, load: Load, made: list[str], on_progress: Callable[[float], None]
) -> tuple[Reading, ...]:
    """Return the throughput of the client on each broker, or on the controller.

    `made` receives the name of each topic before it is created, so that `removed` can remove the topic. `on_progress`
    receives the elapsed seconds. Raises Invalid for a login that the client does not support, before any topic is
    created, and the errors of `mutate`, `actions.create` and `ProbeClient`.
    """
    if load.kind is Kind.CREATE_TOPICS:
        with who.stage_as(client_id) as stage:
            return (mutate(stage.topics, time, load, made.append, on_progress),)
    filler, client = who.filler(), who.client(client_id)
    carry = {Kind.PRODUCE: client.produce, Kind.CONSUME: client.consume, Kind.REQUESTS: client.request}[load.kind]
    with who.stage() as stage:
        made.append(load.topic)
        alone = {number: (broker,) for number, broker in load.leaders.items()}
        actions.create(stage.topics, time, stage.sight, load.topic, alone)
    if load.kind is Kind.CONSUME:
        filler.fill(load)
    now = time.monotonic()
    meter = Meter(starts=now + load.warm, ends=now + load.lasting)
    carry(load, meter, on_progress)
    return meter.readings(load.leaders.values())


def steps(
    who: ProbeLogins, client_id: str, ladder: Ladder, made: list[str], on_step: Callable[[Step], None]
) -> tuple[Step, ...]:
    """Return the steps of each size until a rung does not hold, one size after another.

    `made` receives the name of each topic before it is created, so that `removed` can remove the topic. `on_step`
    receives each step. Raises the errors of `climb`, and Unreachable if no broker answers.
    """
    names = _names(scratch.name(datetime.now(UTC), 2 * ladder.lasting, secrets.token_hex(4)), made)
    found: list[Step] = []
    with who.stage_as(client_id) as stage:
        for of_size in ladder.rungs:
            for step in climb(stage.topics, stage.sight, time, of_size, names, ladder.replication_factor):
                found.append(step)
                on_step(step)
    return tuple(found)


def _names(base: str, made: list[str]) -> Iterator[str]:
    while True:
        made.append(f"{base}-{len(made)}")
        yield made[-1]


@contextmanager
def removed(
    who: ProbeLogins,
    made: list[str],
    *,
    removing: Callable[[], None] = unheard,
    left: Callable[[KquotaError], None] | None = None,
) -> Iterator[None]:
    """At the end, even after an interrupt, remove all topics in `made`. The list is cleared if the removal succeeds.

    The removal uses a new connection, because the interrupted one may be in the middle of a request. If an error or an
    interrupt ends the context and `made` is not empty, `removing` is called first, and the removal begins half a second
    later. `left` is called with the error if the removal fails. Without `left`, this error is raised, or added as a
    note to the error or the interrupt that ended the context.
    """
    try:
        yield
    except BaseException as ended:
        if made:
            removing()
            # Wait, because a request that was in flight at the interrupt may still take effect.
            time.sleep(_ON_ITS_WAY)
        add_note = ended.add_note
        _remove(who, made, left or (lambda error: add_note(f"topics of the probe may remain: {error}")))
        raise
    _remove(who, made, left)


def _remove(who: ProbeLogins, made: list[str], left: Callable[[KquotaError], None] | None) -> None:
    if not made:
        return
    try:
        with who.stage() as stage:
            actions.remove(stage.topics, stage.configs, time, made)
    except KquotaError as error:
        if left is None:
            raise
        left(error)
    else:
        made.clear()


def remove_older(stage: ProbeCluster) -> tuple[Found, tuple[str, ...]]:
    """Remove the topics of older probes that must have ended by now.

    Return all topics whose names have the form of a scratch topic, and the names of the removed topics. Raises the
    errors of `actions.found` and `actions.remove`.
    """
    found = older(stage)
    return found, actions.remove(stage.topics, stage.configs, time, [topic.name for topic in found.over])


def older(stage: ProbeCluster) -> Found:
    """Return all topics whose names have the form of a scratch topic. Nothing is removed. Raises the errors of
    `actions.found`.
    """
    return actions.found(stage.topics, stage.configs, datetime.now(UTC))
