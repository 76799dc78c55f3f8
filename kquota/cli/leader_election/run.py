"""`kquota leader-election`: check the options, choose the partitions, and elect their leaders.

The answer is in the words of Kafka 4.3.1's kafka-leader-election.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from kquota.cli import clock, world
from kquota.cli.connection import Connection
from kquota.cli.contract import DONE, FAILED, say
from kquota.cli.leader_election.command import LeaderElectionOptions
from kquota.cli.output import Answer, JsonObject, hidden, key, plain
from kquota.cli.suggestion import suggested
from kquota.election import leaders
from kquota.election.actions import BatchRules, ElectionResults, elect
from kquota.election.port import ElectionType
from kquota.errors import Invalid, KquotaError, Refused
from kquota.list_text import few
from kquota.measure import agreeing, counted, duration, human_duration
from kquota.mutation.port import Failure
from kquota.mutation.topic import Partition
from kquota.terms import TopicPartition

_SHOWN: Final = 10


def _partitions(results: Mapping[TopicPartition, tuple[str, str | None]]) -> list[JsonObject]:
    return [{**plain(name), "result": result, "error": error} for name, (result, error) in sorted(results.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionAnswer(Answer):
    """The results of the elections. In JSON, the partitions are sorted."""

    election_type: str
    results: Mapping[TopicPartition, tuple[str, str | None]] = key("partitions", _partitions)
    """For each partition, the result (`elected`, `not needed`, `failed`, `unknown`, `not sent` or `would elect`), and
    the reason why the election failed. The reason is None unless the result is `failed`.
    """
    lines: tuple[str, ...] = hidden()
    """The lines of the text."""

    def text(self) -> Iterable[str]:
        return self.lines


def answered(
    kind: ElectionType, results: ElectionResults, *, closing_notes: tuple[str, ...], code: int
) -> ElectionAnswer:
    """Return the answer after elections. Its text leaves out refused, unknown and unsent partitions."""
    names = {
        "elected": results.elected,
        "not needed": results.not_needed,
        "unknown": results.unknown,
        "not sent": results.left,
    }
    found: dict[TopicPartition, tuple[str, str | None]] = {
        name: (result, None) for result, those in names.items() for name in those
    }
    reasons = {name: failure.reason for name, failure in results.failed.items()} | dict(results.refused)
    found |= {name: ("failed", reason) for name, reason in reasons.items()}
    return ElectionAnswer(
        election_type=kind.name.lower(),
        results=found,
        lines=tuple(_lines(kind, results.elected, results.not_needed, results.failed)),
        closing_notes=closing_notes,
        code=code,
    )


def planned(
    kind: ElectionType, given: Sequence[TopicPartition], needing: Set[TopicPartition], notes: tuple[str, ...]
) -> ElectionAnswer:
    """Return the answer to a dry run: kquota would elect leaders of the given partitions that are in `needing`."""
    names = [name for name in given if name in needing]
    others = [name for name in given if name not in needing]
    would = f"Would elect leaders ({kind.name}) for partitions {', '.join(map(str, sorted(names)))}"
    return ElectionAnswer(
        election_type=kind.name.lower(),
        results={name: ("would elect" if name in needing else "not needed", None) for name in given},
        lines=(*([would] if names else []), *_lines(kind, (), others, {})),
        notes=notes,
    )


def still_unhealthy(unsettled: Sequence[TopicPartition], settle: float) -> str:
    """Return the reason why kquota stopped between two batches.

    The partitions in `unsettled` were unhealthy or had no new leader `settle` seconds after a batch.
    """
    return (
        f"{agreeing(len(unsettled), 'partition', 'is', 'are')} still unhealthy {human_duration(settle)} after a batch, "
        f"without a new leader or with an out-of-sync replica ({few(unsettled, _SHOWN)})"
    )


def _lines(
    kind: ElectionType,
    elected: Iterable[TopicPartition],
    not_needed: Iterable[TopicPartition],
    failed: Mapping[TopicPartition, Failure],
) -> Iterator[str]:
    if names := ", ".join(map(str, sorted(elected))):
        yield f"Successfully completed leader election ({kind.name}) for partitions {names}"
    if names := ", ".join(map(str, sorted(not_needed))):
        yield f"Valid replica already elected for partitions {names}"
    for name, failure in sorted(failed.items()):
        yield f"Error completing leader election ({kind.name}) for partition: {name}: {failure.reason}"


def run(options: LeaderElectionOptions) -> Generator[ElectionAnswer]:
    """Elect the leaders, and yield the results. A dry run only yields the planned elections.

    Raises Invalid for an option or a file that is missing or not valid, and for options that cannot be combined, with
    Kafka's message if Kafka has one. Raises Refused for a partition that does not exist, and Unreachable if the brokers
    do not answer. After an error during the elections, yields the results so far, and then raises the error.
    """
    kind, rules = _kind(options), _rules(options)
    wanted = _wanted(options)
    with world.elections(world.where(_connection(options))) as cluster:
        partitions = cluster.partitions()
        cluster.must_show({name.topic for name in wanted or () if name not in partitions})
        _must_exist(wanted, partitions)
        needing = leaders.needing(kind, partitions)
        names, warnings = needing if wanted is None else wanted, _warnings(kind, needing, wanted)
        if options.dry_run:
            batches = len([*leaders.batches(names, partitions, rules.size)])
            yield planned(kind, names, set(needing), (*warnings, *_size(len({*names} & {*needing}), batches)))
            return
        for line in warnings:
            say(line)
        results = ElectionResults()
        try:
            elect(cluster, clock.SystemClock(), kind, names, partitions, rules, results, on_batch=_reported)
        except (KeyboardInterrupt, KquotaError):
            yield answered(kind, results, closing_notes=tuple(_complaints(results, rules)), code=FAILED)
            raise
    complaints = tuple(_complaints(results, rules))
    yield answered(kind, results, closing_notes=complaints, code=FAILED if complaints else DONE)


def _size(partitions: int, batches: int) -> Iterator[str]:
    """Yield a line with the number of partitions that need an election, and of all batches. Yield nothing if no
    partition needs one.
    """
    if partitions:
        needed = agreeing(partitions, "partition", "needs", "need")
        yield f"{needed} an election, in {batches:,} batch{'' if batches == 1 else 'es'}"


def _kind(options: LeaderElectionOptions) -> ElectionType:
    if options.election_type is None:
        raise Invalid("Missing required option(s): election-type")
    try:
        return ElectionType[options.election_type.upper()]
    except KeyError:
        raise Invalid(f"--election-type {options.election_type!r}: unknown type. Write preferred or unclean") from None


def _rules(options: LeaderElectionOptions) -> BatchRules:
    given = {name: text for name in ("pause", "settle") if (text := getattr(options, name)) is not None}
    if given and options.batch is None:
        name = next(iter(given))
        raise Invalid(f"--{name} needs --batch. Give both, or leave out --{name}")
    return BatchRules(size=options.batch, **{name: duration(text, f"--{name}") for name, text in given.items()})


def _wanted(options: LeaderElectionOptions) -> tuple[TopicPartition, ...] | None:
    """Return the given partitions, or None for all partitions that need an election."""
    given = (options.topic is not None, options.all_topic_partitions, options.path_to_json_file is not None)
    if sum(given) != 1:
        raise Invalid(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    if options.partition is not None and options.topic is None:
        raise Invalid("Option partition is only allowed if topic is used")
    if options.topic is not None:
        if options.partition is None:
            raise Invalid("Missing required option(s): partition")
        return (TopicPartition(options.topic, options.partition),)
    return None if options.path_to_json_file is None else leaders.read(options.path_to_json_file)


def _connection(options: LeaderElectionOptions) -> Connection:
    """Return the connection options. `--admin.config` counts as `--command-config`, because it is the name of this
    option in older Kafka tools.
    """
    if options.admin_config is None:
        return options.connection
    if options.connection.command_config is not None:
        raise Invalid("--admin.config and --command-config are the same option. Give only --command-config")
    return replace(options.connection, command_config=options.admin_config)


def _must_exist(wanted: Sequence[TopicPartition] | None, partitions: Mapping[TopicPartition, Partition]) -> None:
    if missing := [name for name in wanted or () if name not in partitions]:
        raise Refused(
            f"{agreeing(len(missing), 'partition', 'does', 'do')} not exist ({few(missing, _SHOWN)}). No election was "
            "requested. Check the topic names and partition numbers"
        )


def _warnings(
    kind: ElectionType, needing: Sequence[TopicPartition], wanted: Sequence[TopicPartition] | None
) -> tuple[str, ...]:
    if not needing and wanted is None:
        return (f"no partition needs an election ({kind.name})",)
    if kind is ElectionType.UNCLEAN:
        return ("warning: an unclean election can lose acknowledged messages (KIP-460)",)
    return ()


def _reported(done: int, of: int) -> None:
    if of > 1:
        say(f"batch {done:,} of {of:,}: elections done")


def _complaints(results: ElectionResults, rules: BatchRules) -> Iterator[str]:
    if results.failed:
        yield f"error: {len(results.failed)} replica(s) could not be elected"
    if results.refused:
        those = counted(len(results.refused), "partition")
        names = few(results.refused, _SHOWN)
        yield f"error: no leader was elected for {those} ({names}), because the brokers refused the request"
    if results.unsettled:
        yield f"error: {still_unhealthy(results.unsettled, rules.settle)}"
    if results.unknown:
        those = agreeing(len(results.unknown), "partition", "has", "have")
        yield (
            f"error: {those} an unknown result ({few(results.unknown, _SHOWN)}). "
            f"Check the leaders with {suggested('topics --describe')}"
        )
    if results.left:
        again = "Run the command again"
        if results.unsettled:
            again += " when the cluster is healthy"
        elif results.refused:
            again += " after you correct the reason of the refusal"
        yield (
            f"error: no election was requested for {counted(len(results.left), 'partition')} "
            f"({few(results.left, _SHOWN)}). {again}"
        )
