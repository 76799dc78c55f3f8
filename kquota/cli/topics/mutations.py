"""`topics --create`, `--alter` and `--delete`: the request, the wait for the quota, and the result for each topic."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from typing import Final

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, TRY_LATER, say
from kquota.cli.list_options import Line, topics_in
from kquota.cli.progress import waiting
from kquota.cli.topics.answer import ChangedTopic, ChangedTopics, UnchangedTopic
from kquota.cli.topics.command import ALTER, CREATE, TopicsOptions
from kquota.cli.topics.listing import matching, must_match
from kquota.errors import Invalid, QuotaViolatedException, Refused
from kquota.library import Cluster
from kquota.list_text import few
from kquota.measure import counted, duration, human_duration
from kquota.mutation import naming
from kquota.mutation.actions import Fate, MutationWork, TopicOutcome, carry_out, work
from kquota.mutation.admin import pace_of, with_partitions
from kquota.mutation.port import EXISTS, MISSING, Topics
from kquota.mutation.request import Assignment, Creation, Deletion, Growth, Mutation

_SHOWN: Final = 10
_COLLIDE: Final = (
    "warning: {}: topics with a period ('.') or underscore ('_') could collide in the names of metrics; "
    "use either, but not both"
)


def mutate(at: world.Where, options: TopicsOptions, asked: str) -> Generator[ChangedTopics]:
    """Check all topics, then send them. Rejected topics are sent again until --timeout.

    It also answers when it is interrupted.
    """
    seconds = None if options.timeout is None else duration(options.timeout, "--timeout")
    filed = [] if options.from_file is None else topics_in(options.from_file, "--from-file")
    text = options.replica_assignment
    assigned = None if text is None else naming.assignment(text, "--replica-assignment")
    creations = _creations(options, filed, assigned) if asked == CREATE else []
    counts = _counts(options, filed) if asked == ALTER else {}
    work(creations)
    with world.topics(at) as stage:
        if asked == CREATE:
            todo, there = _new(stage, options, creations)
        else:
            todo, there = _standing(stage.topics, options, [name for name, *_ in filed], counts, assigned)
        if options.dry_run:
            yield _planned(todo, there, asked)
            return
        doing = work(todo, _already(options))
        try:
            outcomes = _done(stage, doing, options, seconds)
        except KeyboardInterrupt:
            outcomes = doing.standing()
            yield _changed(outcomes, there, options, asked, notes=tuple(_interrupted(outcomes)))
            raise
    complaints, code = tuple(_complaints(outcomes, options)), _code(outcomes)
    yield _changed(outcomes, there, options, asked, closing_notes=complaints, code=code)


def _already(options: TopicsOptions) -> Collection[int]:
    """Error codes that count as success, as in Kafka's tool: another client may make the same change meanwhile."""
    return (EXISTS,) if options.if_not_exists else (MISSING,) if options.if_exists else ()


def _done(stage: Cluster, doing: MutationWork, options: TopicsOptions, seconds: float | None) -> list[TopicOutcome]:
    pace = pace_of(stage, len(doing.left), validate_only=options.validate_only)
    with waiting(len(doing.left)) as show:
        return carry_out(
            stage.checked if options.validate_only else stage.topics,
            world.SystemClock(),
            doing,
            pace,
            seconds=stage.timeout if seconds is None else seconds,
            retry=not options.no_retry_quota_violated,
            told=lambda now, wait: show(len(now.outcomes), wait),
        )


def _creations(options: TopicsOptions, filed: Sequence[Line], assigned: Assignment | None) -> list[Creation]:
    partitions = naming.count(options.partitions, "--partitions")
    factor = naming.count(options.replication_factor, "--replication-factor", naming.MOST_REPLICAS)
    configs = dict(_config(text) for text in options.config or ())
    named = [(naming.name(topic, "--topic"), None, None) for topic in options.topic or ()]
    found = []
    for topic, own, own_factor in [*named, *filed]:
        if naming.collide(topic):
            say(_COLLIDE.format(topic))
        found.append(
            Creation(
                topic=topic,
                partitions=own or partitions,
                replication_factor=own_factor or factor,
                assignment=assigned,
                configs=configs,
            )
        )
    return found


def _counts(options: TopicsOptions, filed: Sequence[Line]) -> dict[str, int]:
    """The new total of partitions for each topic in the file; the empty name has that of `--topic`."""
    partitions = naming.count(options.partitions, "--partitions")
    if options.topic and partitions is None:
        raise Invalid('Missing required argument "[partitions]"')
    counts = {} if partitions is None else {"": partitions}
    for topic, own, _ in filed:
        if own is None and partitions is None:
            raise Invalid(
                f"{options.from_file}: {topic}: the number of partitions is missing. Write it after the name, or "
                "give --partitions"
            )
        counts[topic] = own or partitions or 0
    return counts


def _config(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise Invalid(f"--config {text!r}: write KEY=VALUE")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"--config {key!r}: not valid UTF-8; check the shell's locale") from None
    return key.strip(), value


def _new(stage: Cluster, options: TopicsOptions, creations: Sequence[Creation]) -> tuple[Sequence[Mutation], list[str]]:
    """The topics to create, and those that exist. Raises Refused, before anything is sent, if that is an error."""
    names = {one.topic for one in creations}
    there = [topic.name for topic in stage.topics.topics(None) if topic.name in names]
    if there and not options.if_not_exists:
        raise Refused(f"Topic '{there[0]}' already exists{_and_more(there)}; nothing was sent")
    standing = set(there)
    return with_partitions(stage, (one for one in creations if one.topic not in standing)), there


def _standing(
    topics: Topics, options: TopicsOptions, filed: Sequence[str], counts: dict[str, int], assigned: Assignment | None
) -> tuple[list[Mutation], list[str]]:
    """The topics to grow or delete, and those without change.

    Raises Refused, before anything is sent, if one cannot be.
    """
    every = topics.topics(None)
    found = matching(every, options.topic) if options.topic else []
    must_match(options.topic, found, options.if_exists)
    known = {topic.name: topic for topic in every}
    if (missing := [name for name in filed if name not in known]) and not options.if_exists:
        raise Refused(f"Topic '{missing[0]}' does not exist as expected{_and_more(missing)}; nothing was sent")
    wanted = sorted({topic.name for topic in found} | (set(filed) & known.keys()))
    if options.delete:
        return [Deletion(topic=name, partitions=len(known[name].partitions)) for name in wanted], []
    return _growths({name: (len(known[name].partitions), counts.get(name) or counts[""]) for name in wanted}, assigned)


def _growths(wanted: dict[str, tuple[int, int]], assigned: Assignment | None) -> tuple[list[Mutation], list[str]]:
    for topic, (now, total) in wanted.items():
        if total < now:
            raise Refused(f"topic {topic} has {now} partitions, and Kafka cannot remove partitions; nothing was sent")
        if assigned is not None and len(assigned) != total:
            raise Invalid(f"--replica-assignment lists {len(assigned)} partitions, and {topic} is to have {total}")
    growths: list[Mutation] = []
    for topic, (now, total) in wanted.items():
        if total > now:
            new = None if assigned is None else {n: replicas for n, replicas in assigned.items() if n >= now}
            growths.append(Growth(topic=topic, partitions=total, now=now, assignment=new))
    return growths, [topic for topic, (now, total) in wanted.items() if total == now]


def _and_more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _planned(todo: Sequence[Mutation], there: Sequence[str], asked: str) -> ChangedTopics:
    """The topics that would be sent, and their cost for a mutation quota."""
    mutations = counted(sum(one.mutations for one in todo), "mutation")
    summary = f"{counted(len(todo), 'topic')}, {mutations}; unchanged: {len(there):,}"
    return ChangedTopics(
        topics=_topics([TopicOutcome(mutation=one, fate=Fate.NOT_SENT) for one in todo], there),
        lines=(*(_would(one, asked) for one in todo), summary),
    )


def _changed(
    outcomes: Sequence[TopicOutcome],
    there: Sequence[str],
    options: TopicsOptions,
    asked: str,
    *,
    notes: tuple[str, ...] = (),
    closing_notes: tuple[str, ...] = (),
    code: int = DONE,
) -> ChangedTopics:
    """--create prints Kafka's sentences; --alter and --delete print nothing, as in Kafka's tool."""
    done = [one.mutation for one in outcomes if one.fate is Fate.DONE]
    lines: Sequence[str] = ()
    if options.validate_only:
        lines = [_would(one, asked) for one in done]
    elif asked == CREATE:
        lines = [f"Created topic {one.topic}." for one in done]
    return ChangedTopics(
        topics=_topics(outcomes, there, valid=options.validate_only),
        lines=tuple(lines),
        notes=notes,
        closing_notes=closing_notes,
        code=code,
    )


def _would(one: Mutation, asked: str) -> str:
    return f"Would {asked} topic {one.topic}: {one.mutations} mutations"


def _topics(
    outcomes: Sequence[TopicOutcome], there: Sequence[str], *, valid: bool = False
) -> tuple[UnchangedTopic | ChangedTopic, ...]:
    """The topics for JSON. `valid`: the controller only checked the request."""
    unchanged = (UnchangedTopic(topic=name) for name in there)
    changed = (
        ChangedTopic(
            topic=one.mutation.topic,
            result="valid" if valid and one.fate is Fate.DONE else one.fate.value,
            mutations=one.mutation.mutations,
            error=None if one.error is None else str(one.error),
            throttle_time_ms=one.error.throttle_time_ms if isinstance(one.error, QuotaViolatedException) else None,
        )
        for one in outcomes
    )
    return (*unchanged, *changed)


def _of(fate: Fate, outcomes: Sequence[TopicOutcome]) -> list[str]:
    return [one.mutation.topic for one in outcomes if one.fate is fate]


def _interrupted(outcomes: Sequence[TopicOutcome]) -> Iterator[str]:
    """The state of all topics, so that the command can be repeated with --if-not-exists or --if-exists."""
    for fate, words in {
        Fate.DONE: "done",
        Fate.UNKNOWN: "sent, with unknown result",
        Fate.REJECTED: "rejected by the quota",
        Fate.NOT_SENT: "not sent",
    }.items():
        if names := _of(fate, outcomes):
            yield f"{counted(len(names), 'topic')} {words}: {few(names, _SHOWN)}"
    yield from _failures(outcomes)


def _failures(outcomes: Sequence[TopicOutcome]) -> Iterator[str]:
    return (f"error: topic {one.mutation.topic}: {one.error}" for one in outcomes if one.fate is Fate.FAILED)


def _complaints(outcomes: Sequence[TopicOutcome], options: TopicsOptions) -> Iterator[str]:
    """A line for each failure, and one for all topics that are unknown, not sent, or rejected."""
    yield from _failures(outcomes)
    errors = {one.fate: one.error for one in reversed(outcomes)}
    if unknown := _of(Fate.UNKNOWN, outcomes):
        yield (
            f"error: {errors[Fate.UNKNOWN]}. The result is unknown for {few(unknown, _SHOWN)}. "
            "Check with --list, then run the command again"
        )
    if unsent := _of(Fate.NOT_SENT, outcomes):
        why = "" if unknown else "--timeout has expired: "
        yield f"error: {why}{counted(len(unsent), 'topic')} not sent: {few(unsent, _SHOWN)}"
    if rejected := _of(Fate.REJECTED, outcomes):
        violated = errors[Fate.REJECTED]
        assert isinstance(violated, QuotaViolatedException)
        when = f"in {human_duration(violated.throttle_time_ms / 1_000)}"
        how = "" if options.no_retry_quota_violated else ", or give a longer --timeout"
        yield (
            f"error: the controller mutation quota rejects {len(rejected)} of {counted(len(outcomes), 'topic')} "
            f"({few(rejected, _SHOWN)}). Run the command again {when}{how}"
        )


def _code(outcomes: Sequence[TopicOutcome]) -> int:
    fates = {one.fate for one in outcomes}
    if fates & {Fate.UNKNOWN, Fate.NOT_SENT, Fate.FAILED}:
        return FAILED
    return TRY_LATER if Fate.REJECTED in fates else DONE
