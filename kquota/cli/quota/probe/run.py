"""`kquota quota probe`: check the options, then run the load, search for the limit, or clean up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, NOT_YET, complain, say
from kquota.cli.list_options import broker_ids
from kquota.cli.output import Answer
from kquota.cli.progress import lasting
from kquota.cli.quota.probe import limit
from kquota.cli.quota.probe.answer import CleanedUp, CleanUpPlanned, planned, probed
from kquota.cli.quota.probe.command import ProbeOptions
from kquota.cli.quota.probe.limit import LimitPlanned
from kquota.cli.quota.probe.wording import named_by_options, worded
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, KquotaError
from kquota.measure import byte_rate, byte_size
from kquota.probe import ladder, load, preparation, scratch
from kquota.probe import run as probe
from kquota.probe.actions import Found
from kquota.probe.ladder import Limit, Operation, Step
from kquota.probe.load import Kind, Load
from kquota.probe.meter import Reading
from kquota.probe.port import ProbeCluster, ProbeLogins
from kquota.quota.explain import Explanation
from kquota.terms import BrokerId

_LOADS: Final[Mapping[str, Kind | None]] = {
    "produce": Kind.PRODUCE,
    "consume": Kind.CONSUME,
    "requests": Kind.REQUESTS,
    "create_topics": Kind.CREATE_TOPICS,
    "find_limit": None,
    "clean_up": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _AskedLoad:
    """The parsed options. `kind` is None for --find-limit and --clean-up; other fields are None for their defaults."""

    kind: Kind | None
    rate: float | None
    seconds: float | None
    brokers: tuple[BrokerId, ...] | None
    most_bytes: int


@named_by_options()
def run(options: ProbeOptions) -> Answer:
    """Raises Invalid for options that cannot be combined, and Refused for a load beyond the bounds of a probe."""
    wanted = _asked(options)
    who = world.logins(world.where(options.connection), options.client_config)
    if options.clean_up:
        return _clean_up(who, dry_run=options.dry_run)
    user, client_id = preparation.user(who.user, options.user), options.client_id or who.client_id
    with who.stage() as stage:
        explained = _explained(stage, user, client_id)
        if wanted.kind is None:
            return _limit(who, stage, explained, client_id, options)
        load = preparation.prepared(
            wanted.kind,
            explained,
            stage.brokers,
            rate=wanted.rate,
            seconds=wanted.seconds,
            brokers=wanted.brokers,
            most_bytes=wanted.most_bytes,
        )
        if options.dry_run:
            return planned(load, explained)
        _remove_older(stage)
    made = Made()
    found = probed(load, explained, _readings(who, client_id, load, made))
    return replace(found, code=FAILED) if made.left else found


def _explained(stage: ProbeCluster, user: str, client_id: str) -> Explanation:
    found = stage.explained(user, client_id)
    if found.cluster.callback is not None:
        world.warn(
            f"the brokers use client.quota.callback.class={found.cluster.callback}, which may apply other limits"
        )
    return found


def _readings(who: ProbeLogins, client_id: str, load: Load, made: Made) -> tuple[Reading, ...]:
    """The throughput of the client by broker, or of the controller."""
    say(f"loading for at most {load.lasting:g} s; Ctrl-C stops the probe and removes its topics")
    with _removed(who, made), lasting(f"probing: {load.kind.value}", load.lasting) as elapsed:
        return probe.readings(who, client_id, load, made.names, elapsed)


def _limit(
    who: ProbeLogins, stage: ProbeCluster, explained: Explanation, client_id: str, options: ProbeOptions
) -> Answer:
    """Climb the ladder; the exit code states whether there is a suggestion."""
    wanted = preparation.climbing(
        explained, stage.brokers, seconds=options.seconds, most_partitions=options.most_partitions
    )
    if options.dry_run:
        return LimitPlanned(ladder=wanted)
    say(f"{limit.plan(wanted)}; Ctrl-C stops the probe and removes its topics")
    _remove_older(stage)
    made = Made()
    with _removed(who, made):
        steps = probe.steps(who, client_id, wanted, made.names, _say_step)
    found = limit.found(Limit(steps=steps, tenants=options.tenants, overcommit=options.overcommit))
    return replace(found, code=FAILED) if made.left else found


def _say_step(step: Step) -> None:
    if step.operation is Operation.DELETE:
        say(f"{limit.sized(step.size)}, {step.rate:g} mutations/s: done")


def _clean_up(who: ProbeLogins, *, dry_run: bool) -> Answer:
    """Remove the topics of killed probes; NOT_YET if some may still be in use, or only have a probe's name."""
    with who.stage() as stage:
        found = probe.older(stage) if dry_run else _remove_older(stage)
    running = [
        f"topic {topic.name}: kept, because its probe may run until {scratch.ends(topic.name):%H:%M:%S} UTC"
        for topic in found.running
    ]
    code = NOT_YET if found.foreign or found.running else DONE
    if not dry_run:
        return CleanedUp(closing_notes=tuple(running), code=code)
    notes = (*(f"warning: {line}" for line in _foreign(found)), *running)
    return CleanUpPlanned(topics=tuple(topic.name for topic in found.over), closing_notes=notes, code=code)


def _asked(given: ProbeOptions) -> _AskedLoad:
    """The requested load. Raises Invalid for no load or more than one, and for options without effect."""
    named = [name for name in _LOADS if getattr(given, name) not in (None, False)]
    if len(named) != 1:
        raise Invalid(
            "give exactly one of --produce RATE, --consume, --requests, --create-topics, --find-limit or --clean-up"
            f" (given: {' and '.join(map(_option, named)) or 'none'})"
        )
    if not given.find_limit and (given.tenants != 1 or given.overcommit != 1):
        raise Invalid("--tenants and --overcommit have an effect only with --find-limit")
    _must_have_effect(given, named[0])
    ladder.must_divide(given.tenants, given.overcommit)
    if given.user == "":
        raise Invalid("--user is empty. For a client that does not authenticate, give --user ANONYMOUS")
    if given.client_id == "":
        raise Invalid("--client-id is empty, but this client (librdkafka) always sends a client-id")
    return _AskedLoad(
        kind=_LOADS[named[0]],
        rate=None if given.produce is None else byte_rate(given.produce, "--produce"),
        seconds=None if given.seconds is None else load.seconds(given.seconds, given.seconds),
        brokers=None if given.broker_list is None else tuple(sorted(broker_ids([given.broker_list], "--broker-list"))),
        most_bytes=byte_size(given.most_bytes, "--most-bytes"),
    )


def _must_have_effect(given: ProbeOptions, load: str) -> None:
    """Raises Invalid for an option that has no effect on this load."""
    every, unsaid = set(_LOADS), ProbeOptions(connection=given.connection)
    takes = {
        "broker_list": every - {"find_limit", "clean_up"},
        "most_bytes": {"produce", "consume"},
        "most_partitions": {"find_limit"},
        **dict.fromkeys(("seconds", "user", "client_id"), every - {"clean_up"}),
    }
    for name, loads in takes.items():
        if load not in loads and getattr(given, name) != getattr(unsaid, name):
            raise Invalid(f"{_option(name)} has no effect with {_option(load)}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass(slots=True)
class Made:
    """The topics of a probe, named before they are created; `left` if they could not be removed."""

    names: list[str] = field(default_factory=list)
    left: bool = False

    def complain(self, error: KquotaError) -> None:
        """Report why a topic is left."""
        self.left = True
        complain(str(worded(error)))


@contextmanager
def _removed(who: ProbeLogins, made: Made) -> Iterator[None]:
    """Always remove all topics at the end, and report problems on stderr."""
    try:
        with probe.removed(
            who, made.names, removing=lambda: say("removing the topics of the probe"), left=made.complain
        ):
            yield
    except KeyboardInterrupt:
        if made.names and not made.left:
            clean_up = suggested("quota probe --clean-up")
            say(f"interrupted again: topics may be left. The next probe or {clean_up} removes them")
        raise


def _remove_older(stage: ProbeCluster) -> Found:
    """Remove the topics of older probes whose time is over."""
    found, names = probe.remove_older(stage)
    if names:
        say(f"removed topics of an older probe: {', '.join(names[:5])}{' …' * (len(names) > 5)}")
    for line in _foreign(found):
        world.warn(line)
    return found


def _foreign(found: Found) -> list[str]:
    """A line for each topic that only has the name of a probe."""
    return [
        f"topic {name}: kept, because it has the name but not the seal ({scratch.SEAL}) of a probe"
        for name in found.foreign
    ]
