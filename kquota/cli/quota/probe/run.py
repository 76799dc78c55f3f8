"""`kquota quota probe`: check the options, then run the load, search for the limit, or clean up."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, NOT_YET, complain, say, worded
from kquota.cli.output import Answer, Lines
from kquota.cli.progress import lasting
from kquota.cli.quota.probe import client_command, limit
from kquota.cli.quota.probe.answer import LoadPlanned, probed
from kquota.cli.quota.probe.command import ProbeOptions
from kquota.cli.quota.probe.limit import LimitPlanned
from kquota.cli.quota.probe.options import asked
from kquota.cli.suggestion import suggested
from kquota.errors import KquotaError
from kquota.measure import counted
from kquota.probe import actions, preparation, scratch
from kquota.probe import run as probe
from kquota.probe.actions import Found
from kquota.probe.behavior import BehaviorRecord
from kquota.probe.ladder import Limit, Operation, Step
from kquota.probe.port import ProbeCluster, ProbeLogins
from kquota.quota.explain import Explanation

_CLIENT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUpPlanned(Answer):
    """The topics that `--clean-up` would remove."""

    INDENT = 2

    dry_run: bool = True
    topics: tuple[str, ...]

    def text(self) -> Iterator[str]:
        yield from [f"Would remove topic {topic}." for topic in self.topics] or ["Would remove nothing."]


def run(options: ProbeOptions) -> Answer:
    """Run the requested probe, or with `--clean-up` only remove the topics of killed probes. A dry run only returns the
    plan.

    Raises Invalid for options that are not valid or cannot be combined. Raises Refused for a load beyond the bounds of
    a probe, and if the cluster refuses the topic. Raises Unreachable if the cluster does not answer, and Unknown if a
    broker does not show the topic in time. Raises Incomplete if a topic of an older probe could not be removed.

    The exit code is 1 if a topic of this probe could not be removed. Otherwise, it is that of the answer.
    """
    wanted = asked(options)
    if options.client_command is not None:
        return _own_client(options, options.client_command, wanted.seconds or _CLIENT_SECONDS)
    logins = world.logins(world.where(options.connection), options.client_config)
    if options.clean_up:
        return _clean_up(logins, dry_run=options.dry_run)
    user, client_id = preparation.user(logins.user, options.user), options.client_id or logins.client_id
    with logins.stage() as stage:
        explained = _explained(stage, user, client_id)
        if wanted.kind is None:
            return _limit(logins, stage, explained, client_id, options)
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
            return LoadPlanned(probe=(load, explained))
        _remove_older(stage)
    made = ProbeTopics()
    say(f"generating load for at most {load.longest:g} s; Ctrl-C stops the probe and removes its topics")
    with _removed(logins, made), lasting(f"probing: {load.kind.value}", load.lasting) as elapsed:
        readings = probe.readings(logins, client_id, load, made.names, elapsed)
    found = probed(load, explained, readings)
    return replace(found, code=FAILED) if made.left else found


def _explained(stage: ProbeCluster, user: str, client_id: str) -> Explanation:
    found = stage.explained(user, client_id)
    if found.cluster.callback is not None:
        world.warn(
            f"the brokers use client.quota.callback.class={found.cluster.callback}, which may apply other limits"
        )
    return found


def _limit(
    logins: ProbeLogins, stage: ProbeCluster, explained: Explanation, client_id: str, options: ProbeOptions
) -> Answer:
    wanted = preparation.climbing(
        explained, stage.brokers, seconds=options.seconds, most_partitions=options.most_partitions
    )
    if options.dry_run:
        return LimitPlanned(ladder=wanted)
    say(f"{limit.plan(wanted)}; Ctrl-C stops the probe and removes its topics")
    _remove_older(stage)
    made = ProbeTopics()
    with _removed(logins, made):
        steps = probe.steps(logins, client_id, wanted, made.names, _say_step)
    found = limit.answer(Limit(steps=steps, tenants=options.tenants, overcommit=options.overcommit))
    return replace(found, code=FAILED) if made.left else found


def _own_client(options: ProbeOptions, command: str, seconds: float) -> Answer:
    client_command.must_run(command)
    logins = world.logins(world.where(options.connection), None)
    client_command.must_be_plain("PLAINTEXT" if logins.security is None else logins.security.protocol)
    has_topic = client_command.TOPIC in command
    topic = scratch.name(datetime.now(UTC), seconds, secrets.token_hex(4)) if has_topic else None
    if options.dry_run:
        return client_command.ClientPlanned(command=command, topic=topic, seconds=seconds)
    made, record = ProbeTopics(), BehaviorRecord()
    with _removed(logins, made):
        if topic is not None:
            with logins.stage() as stage:
                made.names.append(topic)
                alone = {number: (broker,) for number, broker in enumerate(stage.brokers)}
                actions.create(stage.topics, time, stage.sight, topic, alone)
        with logins.throttle_proxy(record) as bootstrap:
            say(f"running the client for at most {seconds:g} s; Ctrl-C stops it")
            exit_code = client_command.ran(client_command.words(command, bootstrap, topic or ""), seconds)
    answer = client_command.shown(command, topic, exit_code, record.figures())
    return replace(answer, code=FAILED) if made.left else answer


def _say_step(step: Step) -> None:
    if step.operation is Operation.DELETE:
        say(f"{limit.sized(step.size)}, {step.rate:g} mutations/s: done")


def _clean_up(logins: ProbeLogins, *, dry_run: bool) -> Answer:
    with logins.stage() as stage:
        found = probe.older(stage) if dry_run else _remove_older(stage)
    running = [
        f"topic {topic.name}: kept, because its probe may run until {scratch.ends(topic.name):%H:%M:%S} UTC"
        for topic in found.running
    ]
    code = NOT_YET if found.foreign or found.running else DONE
    if not dry_run:
        return Lines(lines=(), closing_notes=tuple(running), code=code)
    notes = (*(f"warning: {line}" for line in _foreign(found)), *running)
    return CleanUpPlanned(topics=tuple(topic.name for topic in found.over), closing_notes=notes, code=code)


@dataclass(slots=True)
class ProbeTopics:
    """The topics of a probe."""

    names: list[str] = field(default_factory=list)
    """The names of the topics. A name is added before its topic is created."""
    left: bool = False
    """True if a topic could not be removed."""

    def complain(self, error: KquotaError) -> None:
        """Set `left` to True, and print the reason why a topic could not be removed."""
        self.left = True
        complain(worded(error))


@contextmanager
def _removed(logins: ProbeLogins, made: ProbeTopics) -> Iterator[None]:
    """Remove all topics of the probe at the end of this block, also after an error."""
    try:
        with probe.removed(
            logins, made.names, removing=lambda: say("removing the topics of the probe"), left=made.complain
        ):
            yield
    except KeyboardInterrupt:
        if made.names and not made.left:
            clean_up = suggested("quota probe --clean-up")
            say(
                "interrupted: topics of the probe may remain. After the end time in their names, "
                f"{clean_up} removes them"
            )
        raise


def _remove_older(stage: ProbeCluster) -> Found:
    """Remove the topics of older probes whose time is over. Return all topics whose names have the form of a probe's
    topic name.
    """
    found, names = probe.remove_older(stage)
    if names:
        shown = f"{', '.join(names[:5])}{' …' * (len(names) > 5)}"
        say(f"removed {counted(len(names), 'topic')} of older probes: {shown}")
    for line in _foreign(found):
        world.warn(line)
    return found


def _foreign(found: Found) -> list[str]:
    return [
        f"topic {name}: kept, because it has the name of a probe's topic, but not the {scratch.SEAL} that kquota sets "
        "on its topics"
        for name in found.foreign
    ]
