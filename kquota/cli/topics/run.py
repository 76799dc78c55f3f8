"""`kquota topics`: check the options, then list, describe or change topics, and wait for the mutation quota."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Final

from kquota.cli import actions, clock, world
from kquota.cli.contract import say
from kquota.cli.list_options import Line, topics_in
from kquota.cli.output import Answer
from kquota.cli.progress import waiting
from kquota.cli.topics.command import ACTIONS, ALTER, CREATE, DESCRIBE, READS, REPORTS, WRITES, TopicsOptions
from kquota.cli.topics.listing import listed, matching, must_match, must_not_be_hidden
from kquota.cli.topics.results import ChangedTopics, changed, complaints, exit_code, interrupted, planned
from kquota.errors import Invalid, Refused
from kquota.library import Cluster
from kquota.list_text import few
from kquota.measure import counted, duration
from kquota.mutation import naming
from kquota.mutation.actions import MutationWork, TopicOutcome, carry_out, work
from kquota.mutation.admin import pace_of, with_partitions
from kquota.mutation.port import EXISTS, MISSING, Topics
from kquota.mutation.topic import Assignment, Creation, Deletion, Growth, Mutation

_SHOWN: Final = 10
_COLLIDE: Final = (
    "warning: {}: topics with a period ('.') or underscore ('_') could collide in the names of metrics; "
    "use either, but not both"
)


def run(options: TopicsOptions) -> Answer | Generator[Answer]:
    """List or describe topics, or send changes and yield their results. A topic that fails is a result, not an error.

    Raises Invalid, in Kafka's words where Kafka has them, for options that are missing, are not valid or cannot be
    combined. Before anything is sent, raises Refused for an impossible change. Also raises the errors of
    `world.topics`.
    """
    asked = _action(options)
    at = world.where(options.connection)
    if asked in READS:
        return listed(at, options, describe=asked == DESCRIBE)
    return _mutate(at, options, asked)


def _action(options: TopicsOptions) -> str:
    if options.zookeeper is not None:
        raise Invalid(
            "--zookeeper: not supported, because changes through ZooKeeper bypass the controller mutation quota "
            "(KIP-599). Use --bootstrap-server"
        )
    asked = actions.action(options, ACTIONS, tables=READS)
    if asked in WRITES and not options.topic and options.from_file is None:
        raise Invalid('Missing required argument "[topic]"')
    if options.replica_assignment is not None and (
        options.replication_factor is not None or options.from_file is not None
    ):
        raise Invalid(
            "--replica-assignment sets all replicas of each --topic. Leave out --replication-factor and --from-file"
        )
    for option in REPORTS if options.topics_with_overrides else ():
        if actions.is_given(options, option):
            raise Invalid(f'Option "[{option.replace("_", "-")}]" can\'t be used with option "[topics-with-overrides]"')
    if options.topic_id is not None and options.topic:
        raise Invalid('Option "[topic-id]" can\'t be used with option "[topic]"')
    if asked == DESCRIBE and options.if_exists and not options.topic and options.topic_id is None:
        raise Invalid("--topic or --topic-id is required to describe a topic with --if-exists. Give one of them")
    if options.dry_run and options.validate_only:
        raise Invalid(
            "--dry-run and --validate-only cannot be combined, because --dry-run sends nothing to the controller. "
            "Give only one of them"
        )
    if asked == CREATE and options.replica_assignment is not None and options.partitions is not None:
        raise Invalid('Option "[replica-assignment]" can\'t be used with option "[partitions]"')
    return asked


def _mutate(at: world.Where, options: TopicsOptions, asked: str) -> Generator[ChangedTopics]:
    seconds = None if options.timeout is None else duration(options.timeout, "--timeout")
    filed = [] if options.from_file is None else topics_in(options.from_file)
    text = options.replica_assignment
    assigned = None if text is None else naming.assignment(text, "--replica-assignment")
    creations = _creations(options, filed, assigned) if asked == CREATE else []
    counts = _counts(options, filed) if asked == ALTER else {}
    work(creations)
    with world.topics(at) as cluster:
        if asked == CREATE:
            todo, unchanged = _new(cluster, options, creations)
        else:
            todo, unchanged = _existing(cluster.topics, options, [name for name, *_ in filed], counts, assigned)
        if options.dry_run:
            yield planned(todo, unchanged, asked)
            return
        # As in Kafka's tool, these errors count as success, because another client may have made the same change.
        already = (EXISTS,) if options.if_not_exists else (MISSING,) if options.if_exists else ()
        doing = work(todo, already)
        try:
            outcomes = _done(cluster, doing, options, seconds)
        except KeyboardInterrupt:
            outcomes = doing.all_outcomes()
            yield changed(outcomes, unchanged, options, asked, notes=tuple(interrupted(outcomes, unchanged)))
            raise
    closing, code = tuple(complaints(outcomes, options)), exit_code(outcomes)
    yield changed(outcomes, unchanged, options, asked, closing_notes=closing, code=code)


def _done(cluster: Cluster, doing: MutationWork, options: TopicsOptions, seconds: float | None) -> list[TopicOutcome]:
    pace = pace_of(cluster, len(doing.left), validate_only=options.validate_only)
    with waiting(len(doing.left)) as show:
        return carry_out(
            cluster.checked if options.validate_only else cluster.topics,
            clock.SystemClock(),
            doing,
            pace,
            seconds=cluster.timeout if seconds is None else seconds,
            retry=not options.no_retry_quota_violated,
            on_wait=lambda now, wait: show(len(now.outcomes), wait),
        )


def _creations(options: TopicsOptions, filed: Sequence[Line], assigned: Assignment | None) -> list[Creation]:
    partitions = naming.count(options.partitions, "--partitions")
    factor = naming.count(options.replication_factor, "--replication-factor", naming.MOST_REPLICAS)
    configs = dict(_config(text) for text in options.config or ())
    every = [*((naming.name(topic, "--topic"), None, None) for topic in options.topic or ()), *filed]
    if colliding := [topic for topic, *_ in every if naming.collide(topic)]:
        say(_COLLIDE.format(few(colliding, _SHOWN)))
    return [
        Creation(
            topic=topic,
            partitions=own or partitions,
            replication_factor=own_factor or factor,
            assignment=assigned,
            configs=configs,
        )
        for topic, own, own_factor in every
    ]


def _counts(options: TopicsOptions, filed: Sequence[Line]) -> dict[str, int]:
    """Return the new number of partitions of each topic in the file."""
    partitions = naming.count(options.partitions, "--partitions")
    if options.topic and partitions is None:
        raise Invalid('Missing required argument "[partitions]"')
    counts: dict[str, int] = {}
    for topic, own, _ in filed:
        if own is None and partitions is None:
            raise Invalid(
                f"{options.from_file}: topic {topic}: the number of partitions is missing. Write it after the name, or "
                "give --partitions"
            )
        number = own or partitions or 0
        if counts.setdefault(topic, number) != number:
            raise _listed_twice(topic, counts[topic], number)
    return counts


def _listed_twice(topic: str, one: int, other: int) -> Refused:
    return Refused(
        f"topic {topic} is listed twice, with {one} and {other} partitions. Nothing was sent. List the topic once"
    )


def _config(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise Invalid(f"--config {text!r}: not a valid config. Write KEY=VALUE")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"--config {key!r}: not valid UTF-8. Check the shell's locale") from None
    return key.strip(), value.strip()


def _new(
    cluster: Cluster, options: TopicsOptions, creations: Sequence[Creation]
) -> tuple[Sequence[Mutation], list[str]]:
    """Return the creations to send, and the names of the topics that already exist."""
    names = {one.topic for one in creations}
    present = [topic.name for topic in cluster.topics.topics(None) if topic.name in names]
    if present and not options.if_not_exists:
        raise Refused(
            f"Topic '{present[0]}' already exists{_and_more(present)}. Nothing was sent. To skip existing topics, give "
            "--if-not-exists"
        )
    existing = set(present)
    return with_partitions(cluster, (one for one in creations if one.topic not in existing)), present


def _existing(
    topics: Topics, options: TopicsOptions, filed: Sequence[str], counts: dict[str, int], assigned: Assignment | None
) -> tuple[list[Mutation], list[str]]:
    """Return the changes to send, and the names of the topics that need no change."""
    every = topics.topics(None)
    found = matching(every, options.topic) if options.topic else []
    must_not_be_hidden(topics, [*(options.topic or ()), *filed], every)
    must_match(options.topic, found, options.if_exists)
    known = {topic.name: topic for topic in every}
    if (missing := [name for name in filed if name not in known]) and not options.if_exists:
        raise Refused(
            f"Topic '{missing[0]}' does not exist as expected{_and_more(missing)}. Nothing was sent. To skip missing "
            "topics, give --if-exists"
        )
    wanted = sorted({topic.name for topic in found} | (set(filed) & known.keys()))
    if options.delete:
        return [Deletion(topic=name, partitions=len(known[name].partitions)) for name in wanted], []
    partitions = options.partitions or 0
    for topic in found:
        if counts.setdefault(topic.name, partitions) != partitions:
            raise _listed_twice(topic.name, partitions, counts[topic.name])
    return _growths({name: (len(known[name].partitions), counts[name]) for name in wanted}, assigned)


def _growths(wanted: dict[str, tuple[int, int]], assigned: Assignment | None) -> tuple[list[Mutation], list[str]]:
    for topic, (now, total) in wanted.items():
        if total < now:
            raise Refused(
                f"topic {topic} has {now:,} partitions, and Kafka cannot reduce them to {total:,}. Nothing was sent. "
                f"Give at least {now}"
            )
        if assigned is not None and len(assigned) != total:
            raise Invalid(
                f"--replica-assignment lists {counted(len(assigned), 'partition')}, but topic {topic} would have "
                f"{total:,}. List the brokers of every partition"
            )
    growths: list[Mutation] = []
    for topic, (now, total) in wanted.items():
        if total > now:
            new = None if assigned is None else {n: replicas for n, replicas in assigned.items() if n >= now}
            growths.append(Growth(topic=topic, partitions=total, now=now, assignment=new))
    return growths, [topic for topic, (now, total) in wanted.items() if total == now]


def _and_more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
