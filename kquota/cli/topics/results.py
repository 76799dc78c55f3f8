"""The answers of `topics --create`, `--alter` and `--delete`: the result for each topic, and the exit code."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli.contract import DONE, FAILED, TRY_LATER
from kquota.cli.output import Answer, JsonObject, hidden
from kquota.cli.suggestion import suggested
from kquota.cli.topics.command import CREATE, TopicsOptions
from kquota.errors import QuotaViolatedException
from kquota.list_text import few
from kquota.measure import counted, human_duration
from kquota.mutation.actions import Fate, TopicOutcome
from kquota.mutation.topic import Mutation

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTopics(Answer):
    """The result for each topic. `lines` is the text output."""

    ASCII = True

    topics: Sequence[JsonObject]
    lines: tuple[str, ...] = hidden()

    def text(self) -> tuple[str, ...]:
        return self.lines


def planned(todo: Sequence[Mutation], unchanged: Sequence[str], asked: str) -> ChangedTopics:
    """Return the answer of a dry run: the topics that would be sent, and the mutations that a quota would count."""
    mutations = counted(sum(one.mutations for one in todo), "mutation")
    summary = f"{counted(len(todo), 'topic')}, {mutations}; unchanged: {len(unchanged):,}"
    return ChangedTopics(
        topics=_topics([TopicOutcome(mutation=one, fate=Fate.NOT_SENT) for one in todo], unchanged),
        lines=(*(_planned_line(one, asked) for one in todo), summary),
    )


def changed(
    outcomes: Sequence[TopicOutcome],
    unchanged: Sequence[str],
    options: TopicsOptions,
    asked: str,
    *,
    notes: tuple[str, ...] = (),
    closing_notes: tuple[str, ...] = (),
    code: int = DONE,
) -> ChangedTopics:
    """Return the answer after topics were sent.

    As in Kafka's tool, `--create` prints a sentence for each created topic, and `--alter` and `--delete` print none.
    `--validate-only` prints a sentence for each valid change.
    """
    done = [one.mutation for one in outcomes if one.fate is Fate.DONE]
    lines: Sequence[str] = ()
    if options.validate_only:
        lines = [_planned_line(one, asked) for one in done]
    elif asked == CREATE:
        lines = [f"Created topic {one.topic}." for one in done]
    return ChangedTopics(
        topics=_topics(outcomes, unchanged, valid=options.validate_only),
        lines=tuple(lines),
        notes=notes,
        closing_notes=closing_notes,
        code=code,
    )


def _planned_line(one: Mutation, asked: str) -> str:
    return f"Would {asked} topic {one.topic}: {counted(one.mutations, 'mutation')}"


def _topics(outcomes: Sequence[TopicOutcome], unchanged: Sequence[str], *, valid: bool = False) -> list[JsonObject]:
    """Return the JSON of the topics. `valid` is True if the controller only validated the request."""
    already: list[JsonObject] = [{"topic": name, "result": Fate.ALREADY} for name in unchanged]
    return already + [
        {
            "topic": one.mutation.topic,
            "result": "valid" if valid and one.fate is Fate.DONE else one.fate,
            "mutations": one.mutation.mutations,
            "error": None if one.error is None else str(one.error),
            "throttle_time_ms": one.error.throttle_time_ms if isinstance(one.error, QuotaViolatedException) else None,
        }
        for one in outcomes
    ]


def _topics_with(fate: Fate, outcomes: Sequence[TopicOutcome]) -> list[str]:
    return [one.mutation.topic for one in outcomes if one.fate is fate]


def interrupted(outcomes: Sequence[TopicOutcome], unchanged: Sequence[str]) -> Iterator[str]:
    """Yield one line for each state that topics had at the interrupt, then a line for each failed topic."""
    for fate, words in {
        Fate.ALREADY: "unchanged",
        Fate.DONE: "done",
        Fate.UNKNOWN: "with an unknown result",
        Fate.REJECTED: "rejected by the quota",
        Fate.NOT_SENT: "not sent",
    }.items():
        if names := [*(unchanged if fate is Fate.ALREADY else ()), *_topics_with(fate, outcomes)]:
            yield f"{counted(len(names), 'topic')} {words}: {few(names, _SHOWN)}"
    yield from _failures(outcomes)


def _failures(outcomes: Sequence[TopicOutcome]) -> Iterator[str]:
    return (f"error: topic {one.mutation.topic}: {one.error}" for one in outcomes if one.fate is Fate.FAILED)


def complaints(outcomes: Sequence[TopicOutcome], options: TopicsOptions) -> Iterator[str]:
    """Yield a line for each failed topic, and a line for each error after which the result is unknown. Then yield one
    line for all unsent topics, and one line for all rejected topics.
    """
    yield from _failures(outcomes)
    again = f"the command again{_with_option(outcomes, options)}"
    errors = {one.fate: one.error for one in reversed(outcomes)}
    unknown: dict[str, list[str]] = {}
    for one in outcomes:
        if one.fate is Fate.UNKNOWN:
            unknown.setdefault(str(one.error).removesuffix("."), []).append(one.mutation.topic)
    for error, names in unknown.items():
        yield (
            f"error: {error}. The result is unknown for {few(names, _SHOWN)}. "
            f"Check with {_describe_command(names[:_SHOWN])}, then run {again}"
        )
    if unsent := _topics_with(Fate.NOT_SENT, outcomes):
        why, then = "because --timeout has expired", f"Run {again}"
        if unknown:
            why = "because an earlier request had no clear answer, or because --timeout has expired"
            then = "The repeated command sends them"
        topics = counted(len(unsent), "topic")
        yield f"error: kquota sent no request for {topics} ({few(unsent, _SHOWN)}), {why}. {then}"
    if rejected := _topics_with(Fate.REJECTED, outcomes):
        violated = errors[Fate.REJECTED]
        assert isinstance(violated, QuotaViolatedException)
        when = f"in {human_duration(violated.throttle_time_ms / 1_000)}"
        how = "" if options.no_retry_quota_violated else ", or give a longer --timeout"
        yield (
            f"error: the controller mutation quota rejects {len(rejected):,} of {counted(len(outcomes), 'topic')} "
            f"({few(rejected, _SHOWN)}). Run {again} {when}{how}"
        )


def _with_option(outcomes: Sequence[TopicOutcome], options: TopicsOptions) -> str:
    """Return the words for the option that the repeated command needs, or an empty text if it needs none. Without this
    option, kquota would refuse the topics that this command has already created or deleted.
    """
    if options.validate_only or not _topics_with(Fate.DONE, outcomes) + _topics_with(Fate.UNKNOWN, outcomes):
        return ""
    if options.create and not options.if_not_exists:
        return " with --if-not-exists"
    return " with --if-exists" if options.delete and not options.if_exists else ""


def _describe_command(names: Sequence[str]) -> str:
    """Return the command that describes these topics. For several topics, it has `--if-exists`, so that a missing topic
    does not hide the others.
    """
    skip = " --if-exists" if len(names) > 1 else ""
    named = "".join(f" --topic {shlex.quote(name)}" for name in names)
    return suggested(f"topics --describe{skip}{named}")


def exit_code(outcomes: Sequence[TopicOutcome]) -> int:
    """Return 1 if a topic failed, was not sent or has an unknown result. Otherwise return 75 if the quota still rejects
    a topic, or else 0.

    A failure takes precedence over a rejection, because a rejected topic can succeed later.
    """
    fates = {one.fate for one in outcomes}
    if fates & {Fate.UNKNOWN, Fate.NOT_SENT, Fate.FAILED}:
        return FAILED
    return TRY_LATER if Fate.REJECTED in fates else DONE
