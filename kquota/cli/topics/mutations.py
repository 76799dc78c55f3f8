"""`topics --create`, `--alter`, `--delete`: what is asked for, the waiting for the quota, and what became of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, TRY_LATER, complain, say
from kquota.cli.listed import Line, topics_in
from kquota.cli.options import Output
from kquota.cli.progress import waiting
from kquota.cli.topics.listing import matching, must_match
from kquota.cli.topics.options import ALTER, CREATE, Given
from kquota.errors import Invalid, QuotaViolatedException, Refused
from kquota.library import Cluster
from kquota.measure import counted, duration, human_duration
from kquota.mutation import naming
from kquota.mutation.actions import Fate, Outcome, Work, carry_out, work
from kquota.mutation.admin import pace_of, with_partitions
from kquota.mutation.port import EXISTS, MISSING, Topics
from kquota.mutation.request import Assignment, Creation, Deletion, Growth, Mutation
from kquota.several import few

VERSION: Final = 1
_SHOWN: Final = 10
_COLLIDE: Final = (
    "warning: {}: topics with a period ('.') or underscore ('_') could collide in the names of metrics; "
    "use either, but not both"
)


def mutate(at: world.Where, given: Given, asked: str) -> int:
    """Check all, then send all; what the quota rejects is sent again until --timeout is over."""
    seconds = None if given.timeout is None else duration(given.timeout, "--timeout")
    filed = [] if given.from_file is None else topics_in(given.from_file, "--from-file")
    assigned = None if given.replica_assignment is None else naming.assignment(given.replica_assignment)
    creations = _creations(given, filed, assigned) if asked == CREATE else []
    counts = _counts(given, filed) if asked == ALTER else {}
    work(creations)
    with world.topics(at) as stage:
        if asked == CREATE:
            todo, there = _new(stage, given, creations)
        else:
            todo, there = _standing(stage.topics, given, [name for name, *_ in filed], counts, assigned)
        if given.dry_run:
            print(_wanted(todo, there, given, asked))
            return DONE
        doing = work(todo, _already(given))
        try:
            outcomes = _done(stage, doing, given, seconds)
        except KeyboardInterrupt:
            _interrupted(doing)
            _show(doing.standing(), there, given, asked)
            raise
    _show(outcomes, there, given, asked)
    return _verdict(outcomes, given)


def _already(given: Given) -> Collection[int]:
    """Between our look and the request another client may do the same: Kafka's tool takes that for no error, either."""
    return (EXISTS,) if given.if_not_exists else (MISSING,) if given.if_exists else ()


def _done(stage: Cluster, doing: Work, given: Given, seconds: float | None) -> list[Outcome]:
    pace = pace_of(stage, len(doing.left), validate_only=given.validate_only)
    with waiting(len(doing.left)) as told:
        return carry_out(
            stage.checked if given.validate_only else stage.topics,
            world.SystemClock(),
            doing,
            pace,
            seconds=stage.timeout if seconds is None else seconds,
            retry=not given.no_retry_quota_violated,
            told=lambda now, wait: told(len(now.outcomes), wait),
        )


def _interrupted(doing: Work) -> None:
    """What exists and what does not, for whoever goes on: the same command with --if-not-exists or --if-exists."""
    outcomes = doing.standing()
    for fate, words in {
        Fate.DONE: "done",
        Fate.UNKNOWN: "sent, and not known to be done",
        Fate.REJECTED: "not done: the quota rejected them",
        Fate.NOT_SENT: "not sent",
    }.items():
        names = [one.mutation.topic for one in outcomes if one.fate is fate]
        if names:
            say(f"{counted(len(names), 'topic')} {words}: {few(names, _SHOWN)}")
    _complain_of_failed(outcomes)


def _creations(given: Given, filed: Sequence[Line], assigned: Assignment | None) -> list[Creation]:
    partitions = naming.count(given.partitions, "--partitions")
    factor = naming.replication_factor(given.replication_factor)
    configs = dict(_config(text) for text in given.config or ())
    named = [(naming.name(topic, "--topic"), None, None) for topic in given.topic or ()]
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


def _counts(given: Given, filed: Sequence[Line]) -> dict[str, int]:
    """Of each topic in the file how many partitions it is to have; of `--topic` under the empty name."""
    partitions = naming.count(given.partitions, "--partitions")
    if given.topic and partitions is None:
        raise Invalid('Missing required argument "[partitions]"')
    counts = {} if partitions is None else {"": partitions}
    for topic, own, _ in filed:
        if own is None and partitions is None:
            raise Invalid(
                f"{given.from_file}: {topic}: how many partitions? Write them behind it, or give --partitions"
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


def _new(stage: Cluster, given: Given, creations: Sequence[Creation]) -> tuple[Sequence[Mutation], list[str]]:
    """What is to be created, and what exists already. Raises Refused where that is an error: nothing is sent then."""
    names = {one.topic for one in creations}
    there = [topic.name for topic in stage.topics.topics(None) if topic.name in names]
    if there and not given.if_not_exists:
        raise Refused(f"Topic '{there[0]}' already exists{_more(there)}; nothing was sent")
    standing = set(there)
    return with_partitions(stage, (one for one in creations if one.topic not in standing)), there


def _standing(
    cluster: Topics, given: Given, filed: Sequence[str], counts: dict[str, int], assigned: Assignment | None
) -> tuple[list[Mutation], list[str]]:
    """What is to be grown or deleted, and what is so already. Raises Refused for what cannot be, before any is sent."""
    every = cluster.topics(None)
    found = matching(every, given.topic) if given.topic else []
    must_match(given.topic, found, given.if_exists)
    known = {topic.name: topic for topic in every}
    if (missing := [name for name in filed if name not in known]) and not given.if_exists:
        raise Refused(f"Topic '{missing[0]}' does not exist as expected{_more(missing)}; nothing was sent")
    wanted = sorted({topic.name for topic in found} | (set(filed) & known.keys()))
    if given.delete:
        return [Deletion(topic=name, partitions=len(known[name].partitions)) for name in wanted], []
    return _growths({name: (len(known[name].partitions), counts.get(name) or counts[""]) for name in wanted}, assigned)


def _growths(wanted: dict[str, tuple[int, int]], assigned: Assignment | None) -> tuple[list[Mutation], list[str]]:
    for topic, (now, total) in wanted.items():
        if total < now:
            raise Refused(f"topic {topic} has {now} partitions: Kafka never takes any away; nothing was sent")
        if assigned is not None and len(assigned) != total:
            raise Invalid(f"--replica-assignment names {len(assigned)} partitions, and {topic} is to have {total}")
    growths: list[Mutation] = []
    for topic, (now, total) in wanted.items():
        if total > now:
            new = None if assigned is None else {n: replicas for n, replicas in assigned.items() if n >= now}
            growths.append(Growth(topic=topic, partitions=total, now=now, assignment=new))
    return growths, [topic for topic, (now, total) in wanted.items() if total == now]


def _wanted(todo: Sequence[Mutation], there: Sequence[str], given: Given, asked: str) -> str:
    """What would be sent, and what it counts against a mutation quota."""
    if given.output is Output.json:
        return _document([Outcome(mutation=one, fate=Fate.NOT_SENT) for one in todo], there, given, asked)
    lines = [_would(one, asked) for one in todo]
    return "\n".join(
        [
            *lines,
            f"{counted(len(todo), 'topic')}, {counted(sum(one.mutations for one in todo), 'mutation')}; "
            f"so already: {len(there):,}",
        ]
    )


def _would(one: Mutation, asked: str) -> str:
    return f"Would {asked} topic {one.topic}: {one.mutations} mutations"


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _show(outcomes: Sequence[Outcome], there: Sequence[str], given: Given, asked: str) -> None:
    if text := _document(outcomes, there, given, asked):
        print(text)


def _document(outcomes: Sequence[Outcome], there: Sequence[str], given: Given, asked: str) -> str:
    """What --create prints is Kafka's; --alter and --delete print nothing there, and nothing here."""
    if given.output is Output.text:
        done = [one.mutation for one in outcomes if one.fate is Fate.DONE]
        if given.validate_only:
            return "\n".join(_would(one, asked) for one in done)
        return "\n".join(f"Created topic {one.topic}." for one in done) if asked == CREATE else ""
    topics = [{"topic": name, "result": "already so"} for name in there]
    return json.dumps({"version": VERSION, "topics": [*topics, *(_told(one, given) for one in outcomes)]})


def _told(outcome: Outcome, given: Given) -> dict[str, object]:
    throttle = outcome.error.throttle_time_ms if isinstance(outcome.error, QuotaViolatedException) else None
    return {
        "topic": outcome.mutation.topic,
        "result": "valid" if given.validate_only and outcome.fate is Fate.DONE else outcome.fate.value,
        "mutations": outcome.mutation.mutations,
        "error": None if outcome.error is None else str(outcome.error),
        "throttle_time_ms": throttle,
    }


def _complain_of_failed(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        if one.fate is Fate.FAILED:
            complain(f"topic {one.mutation.topic}: {one.error}")


def _verdict(outcomes: Sequence[Outcome], given: Given) -> int:
    _complain_of_failed(outcomes)
    unknown, unsent = ([one for one in outcomes if one.fate is fate] for fate in (Fate.UNKNOWN, Fate.NOT_SENT))
    if unknown:
        names = few([one.mutation.topic for one in unknown], _SHOWN)
        complain(f"{unknown[0].error}; whether it was done is not known: {names}; look with --list, and run it again")
    if unsent:
        why = "" if unknown else "--timeout is over: "
        complain(
            f"{why}{counted(len(unsent), 'topic')} not sent: {few([one.mutation.topic for one in unsent], _SHOWN)}"
        )
    rejected = [one for one in outcomes if one.fate is Fate.REJECTED]
    if rejected:
        error = rejected[0].error
        assert isinstance(error, QuotaViolatedException)
        when = f"in {human_duration(error.throttle_time_ms / 1_000)}"
        how = "run it again" if given.no_retry_quota_violated else "run it again, or give a longer --timeout"
        complain(
            f"the controller mutation quota rejects {len(rejected)} of {counted(len(outcomes), 'topic')}, to be tried "
            f"again {when}: {how}; rejected: {few([one.mutation.topic for one in rejected], _SHOWN)}"
        )
    if unknown or unsent or any(one.fate is Fate.FAILED for one in outcomes):
        return FAILED
    return TRY_LATER if rejected else DONE
