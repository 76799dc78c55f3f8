"""The run of a probe: its topics are there as long as it lasts, and not longer, whoever ends it and how."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.contract import DONE, NOT_YET, complain, say
from kquota.cli.progress import lasting
from kquota.errors import KquotaError

if TYPE_CHECKING:
    from kquota.cli.probe_stage import Logins, Stage
    from kquota.probe.actions import Found
    from kquota.probe.load import Load
    from kquota.probe.meter import Reading

_ON_ITS_WAY: Final = 0.5


@dataclass(slots=True)
class Made:
    """The topics that were asked for, named before they are; `left` when they could not be removed in the end."""

    names: list[str] = field(default_factory=list)
    left: bool = False


def readings(who: Logins, client_id: str, load: Load, made: Made) -> tuple[Reading, ...]:
    """What the client got: of each broker, or of the controller."""
    from kquota.probe.load import Kind

    say(f"loading for {load.lasting:g} s at most; a Ctrl-C ends it and removes its topics")
    what = f"probing: {load.kind.value}"
    if load.kind is Kind.CREATE_TOPICS:
        from kquota.probe.mutations import mutate

        with removed(who, made), who.stage(client_id) as stage, lasting(what, load.lasting) as told:
            return (mutate(stage.topics, world.SystemClock(), load, made.names.append, told),)
    from kquota.probe import actions
    from kquota.probe.meter import Meter

    # A login that this client cannot honour is said before anything is made.
    filler, client = who.client(), who.client(client_id)
    loads = {Kind.PRODUCE: client.produce, Kind.CONSUME: client.consume, Kind.REQUESTS: client.request}
    with removed(who, made), lasting(what, load.lasting) as told:
        with who.stage() as stage:
            made.names.append(load.topic)
            actions.create(stage.topics, world.SystemClock(), stage.sight, load.topic, load.leaders)
        if load.kind is Kind.CONSUME:
            filler.fill(load)
        now = time.monotonic()
        meter = Meter(starts=now + load.warm, ends=now + load.lasting)
        loads[load.kind](load, meter, told)
        return meter.readings(load.leaders.values())


@contextmanager
def removed(who: Logins, made: Made) -> Iterator[None]:
    """Whatever comes, all that was made is removed in the end.

    On a connection of its own: the one that was interrupted may be in the middle of a request.
    """
    ended_well = False
    try:
        yield
        ended_well = True
    finally:
        try:
            if made.names and not ended_well:
                say("removing its topics")
                # What was on its way when we were stopped is then there to be seen.
                time.sleep(_ON_ITS_WAY)
            with who.stage() as stage:
                _remove(stage, made.names)
        except KquotaError as error:
            made.left = True
            complain(str(error))
        except KeyboardInterrupt:
            say("interrupted again: what is left of its topics the next probe removes, or --clean-up")
            raise


def _remove(stage: Stage, names: list[str]) -> None:
    from kquota.probe import actions

    actions.remove(stage.topics, stage.configs, world.SystemClock(), names)


def clean_up(who: Logins) -> int:
    """Remove what killed probes left; NOT_YET where some may still run, or are called like a probe's and are none."""
    from kquota.probe import scratch

    with who.stage() as stage:
        found = remove_older(stage)
    for topic in found.running:
        say(f"topic {topic.name}: its probe may run until {scratch.ends(topic.name):%H:%M:%S} UTC; left alone")
    return NOT_YET if found.foreign or found.running else DONE


def remove_older(stage: Stage) -> Found:
    """Remove what older probes left whose time is over."""
    from kquota.probe import actions, scratch

    found = actions.found(stage.topics, stage.configs, datetime.now(UTC))
    gone = actions.remove(stage.topics, stage.configs, world.SystemClock(), [topic.name for topic in found.over])
    if gone:
        say(f"removed what an older probe left: {', '.join(gone[:5])}{' …' * (len(gone) > 5)}")
    for name in found.foreign:
        say(f"warning: topic {name} has a probe's name and not its seal ({scratch.SEAL}): left alone")
    return found
