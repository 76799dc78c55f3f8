"""Finds, creates and removes the scratch topics of probes on a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kquota.errors import Incomplete, NextStep, Refused, Unknown
from kquota.measure import agreeing, counted
from kquota.mutation.actions import Fate, carry_out, work
from kquota.mutation.pace import MutationPace
from kquota.mutation.port import MISSING, MonotonicClock, Topics
from kquota.mutation.topic import Assignment, Creation, Deletion, Topic
from kquota.probe import scratch
from kquota.probe.port import Sight
from kquota.settings.port import Configs
from kquota.settings.resource import TOPICS, Resource

SECONDS = 60.0
"""The time limit in seconds for creating or removing the topics of a probe. A mutation quota may delay these requests.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The topics whose names have the form of a scratch topic, each part sorted by name."""

    over: tuple[Topic, ...]
    """The topics of probes that must have ended by now."""
    running: tuple[Topic, ...]
    """The topics that another probe may still use."""
    foreign: tuple[str, ...]
    """The names of the topics that have no seal of a probe in their configs, so no probe created them."""


def found(topics: Topics, configs: Configs, now: datetime) -> Found:
    """Return the topics whose names have the form of a scratch topic, grouped by the state of their probe at `now`.

    Raises Unreachable if the cluster does not answer, and Refused if it does not allow kquota to read configs.
    """
    named = [(topic, ends) for topic in topics.topics(None) if (ends := scratch.ends(topic.name)) is not None]
    sealed = _sealed(configs, [topic.name for topic, _ in named])
    ours = [(topic, ends) for topic, ends in named if topic.name in sealed]
    return Found(
        over=tuple(topic for topic, ends in ours if ends < now),
        running=tuple(topic for topic, ends in ours if ends >= now),
        foreign=tuple(topic.name for topic, _ in named if topic.name not in sealed),
    )


def create(topics: Topics, clock: MonotonicClock, sight: Sight, topic: str, assignment: Assignment) -> None:
    """Create the scratch topic with these replicas, and wait until all brokers show it.

    Raises Refused if the topic exists, if the cluster does not allow it, or if a mutation quota still rejects it after
    `SECONDS`. Raises Unknown if the creation is not confirmed, or if a broker does not show the topic in time. Raises
    Unreachable without an active controller.
    """
    creation = Creation(topic=topic, assignment=assignment, configs=scratch.configs(topic))
    (outcome,) = carry_out(topics, clock, work([creation]), MutationPace(quota=None), seconds=SECONDS)
    if outcome.fate is Fate.UNKNOWN:
        raise Unknown(f"topic {topic}: it is unknown whether the topic was created ({outcome.error})")
    if outcome.fate is not Fate.DONE:
        raise Refused(f"topic {topic} could not be created: {outcome.error or outcome.fate.value}")
    until_seen(clock, sight, {topic: len(assignment)}, SECONDS)


def until_seen(clock: MonotonicClock, sight: Sight, wanted: Mapping[str, int], seconds: float) -> float:
    """Wait until every broker shows the topics in `wanted`, and return the elapsed seconds.

    `wanted` has the number of partitions of each topic, or 0 for a deleted topic. Raises Unknown if a broker does not
    show the result within `seconds`.
    """
    began = clock.monotonic()
    while behind := sight.behind(wanted):
        if clock.monotonic() - began > seconds:
            raise Unknown(
                f"after {seconds:g} s, {agreeing(behind, 'broker', 'does', 'do')} not yet show the current state of "
                "the probe's topics. Check that all brokers are running, and try again"
            )
        clock.sleep(0.02)
    return clock.monotonic() - began


def remove(topics: Topics, configs: Configs, clock: MonotonicClock, names: Collection[str]) -> tuple[str, ...]:
    """Delete the topics in `names` that exist and belong to a probe, and return their names.

    A topic without the seal is kept, whatever its name is. The result leaves out a topic that another command has just
    deleted. Raises Incomplete if a topic was not deleted within `SECONDS`. Raises Unreachable without an active
    controller, and Refused if the cluster does not allow kquota to read configs.
    """
    there = topics.topics(names)
    sealed = _sealed(configs, [topic.name for topic in there])
    doomed = [Deletion(topic=t.name, partitions=len(t.partitions)) for t in there if t.name in sealed]
    outcomes = carry_out(topics, clock, work(doomed, (MISSING,)), MutationPace(quota=None), seconds=SECONDS)
    done = [outcome.mutation.topic for outcome in outcomes if outcome.fate is Fate.DONE]
    failures = (Fate.REJECTED, Fate.FAILED, Fate.UNKNOWN, Fate.NOT_SENT)
    left = [outcome for fate in failures for outcome in outcomes if outcome.fate is fate]
    if left:
        undone = [outcome.mutation.topic for outcome in left]
        wrong = (
            f"{counted(len(undone), 'topic')} not removed: {', '.join(undone[:5])}{' …' * (len(undone) > 5)}"
            f" ({left[0].error or left[0].fate.value}). The name of each topic contains an end time. After that "
            "time, run "
        )
        raise Incomplete((wrong, NextStep.CLEAN_UP_PROBES), done, undone)
    return tuple(done)


def _sealed(configs: Configs, names: Iterable[str]) -> frozenset[str]:
    described = configs.describe([Resource(kind=TOPICS, name=name) for name in names])
    return frozenset(
        str(resource.name)
        for resource, entries in described.items()
        if scratch.ours(str(resource.name), {entry.key: entry.value for entry in entries if entry.dynamic})
    )
