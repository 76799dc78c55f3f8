"""`kquota leader-election`: check the options, choose the partitions, and elect their leaders."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kquota.cli import clock, world
from kquota.cli.connection import Connection
from kquota.cli.contract import DONE, FAILED, say
from kquota.cli.leader_election.answer import ElectionAnswer, answered, planned, still_unhealthy
from kquota.cli.leader_election.command import LeaderElectionOptions
from kquota.cli.suggestion import suggested
from kquota.election import leaders
from kquota.election.actions import BatchRules, ElectionResults, elect
from kquota.election.port import ElectionType
from kquota.errors import Invalid, KquotaError, Refused
from kquota.list_text import few
from kquota.measure import agreeing, counted, duration
from kquota.mutation.topic import Partition
from kquota.terms import TopicPartition

_SHOWN: Final = 10


def run(options: LeaderElectionOptions) -> ElectionAnswer | Generator[ElectionAnswer]:
    """Run the command.

    Raises Invalid for a missing option and for options that cannot be combined, with Kafka's message if Kafka has one.
    """
    kind, rules = _kind(options), _rules(options)
    wanted = _wanted(options)
    at = world.where(_connection(options))
    return _elected(at, options, kind, wanted, rules)


def _kind(options: LeaderElectionOptions) -> ElectionType:
    if options.election_type is None:
        raise Invalid("Missing required option(s): election-type")
    try:
        return ElectionType[options.election_type.upper()]
    except KeyError:
        raise Invalid(f"--election-type {options.election_type!r}: unknown type. Write preferred or unclean") from None


def _rules(options: LeaderElectionOptions) -> BatchRules:
    for name in ("pause", "settle"):
        if options.batch is None and getattr(options, name) is not None:
            raise Invalid(f"--{name} needs --batch")
    given = {
        name: duration(text, f"--{name}")
        for name in ("pause", "settle")
        if (text := getattr(options, name)) is not None
    }
    return BatchRules(size=options.batch, **given)


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
    """Return the connection. --admin.config is the name of --command-config in older Kafka tools."""
    if options.admin_config is None:
        return options.connection
    if options.connection.command_config is not None:
        raise Invalid("--admin.config and --command-config are the same option. Give only --command-config")
    return replace(options.connection, command_config=options.admin_config)


def _elected(
    at: world.Where,
    options: LeaderElectionOptions,
    kind: ElectionType,
    wanted: tuple[TopicPartition, ...] | None,
    rules: BatchRules,
) -> Generator[ElectionAnswer]:
    with world.elections(at) as cluster:
        partitions = cluster.partitions()
        _must_exist(wanted, partitions)
        needing = leaders.needing(kind, partitions)
        if options.dry_run:
            given = needing if wanted is None else wanted
            yield planned(kind, given, set(needing), _warnings(kind, needing, wanted))
            return
        for line in _warnings(kind, needing, wanted):
            say(line)
        results = ElectionResults()
        try:
            names = needing if wanted is None else wanted
            elect(cluster, clock.SystemClock(), kind, names, partitions, rules, results, on_batch=_reported)
        except (KeyboardInterrupt, KquotaError):
            yield answered(kind, results, closing_notes=tuple(_complaints(results, rules)), code=FAILED)
            raise
    complaints = tuple(_complaints(results, rules))
    yield answered(kind, results, closing_notes=complaints, code=FAILED if complaints else DONE)


def _must_exist(wanted: Sequence[TopicPartition] | None, partitions: Mapping[TopicPartition, Partition]) -> None:
    if missing := [name for name in wanted or () if name not in partitions]:
        raise Refused(
            f"{agreeing(len(missing), 'partition', 'does', 'do')} not exist ({few(missing, _SHOWN)}). No election was "
            "requested"
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
        say(f"batch {done} of {of}: elections done")


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
            again += " when the brokers accept the request"
        yield (
            f"error: no election was requested for {counted(len(results.left), 'partition')} "
            f"({few(results.left, _SHOWN)}). {again}"
        )
