"""The inputs of `move estimate`: sizes and write rates, and their sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from kquota.cli import local_files, sampling, world
from kquota.cli.connection import Connection, names_a_cluster
from kquota.cli.contract import say, worded
from kquota.cli.move.estimate.command import EstimateOptions
from kquota.cli.options import option_name
from kquota.errors import Invalid, KquotaError, NextStep, Parameter, Refused
from kquota.list_text import few, joined, named_brokers
from kquota.measure import agreeing, byte_size, counted, duration
from kquota.pace.disk_space import Volume
from kquota.pace.enforcement import AS_SHIPPED, Enforcement
from kquota.pace.enforcement import enforcement as of_brokers
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import MoveCluster
from kquota.reassign.running_copies import RunningCopy, before_the_move, running_copies
from kquota.sizes.bytes_in import BytesIn, by_hand, parse
from kquota.sizes.history import ROLLED, Listing
from kquota.sizes.replica import Cordon, LogDir, cordons, hidden, topics, without_remote
from kquota.spark import files
from kquota.spark.files import SIZE_FILES, Files, is_elsewhere, matching
from kquota.spark.plan_files import PlanFiles
from kquota.terms import SKIPS_TIERED, BrokerId, ReplicaId, TopicPartition
from kquota.text_file import is_folder, read

CLUSTER: Final = "cluster"
HISTORY: Final = "history"
BYTES_IN: Final = "bytes-in"
SAMPLE: Final = "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenInputs:
    """The options as values. None means that an option is not given."""

    sizes: Mapping[str, Sequence[str]]
    """The files with sizes, by their source in `SIZE_FILES`."""
    history: tuple[str, ...]
    window: float | None
    """The part of the history to use, in seconds before its newest snapshot. None means all of it."""
    cluster: str | None
    """The id of the cluster to use from the history."""
    by_hand: Mapping[BrokerId, BytesIn]
    """The rates of `--bytes-in BROKER=RATE`, in bytes per second."""
    by_file: Mapping[str, Mapping[BrokerId, BytesIn]]
    """The rates of `--bytes-in FILE`, in bytes per second, by file name."""
    sample: float
    """The seconds for which kquota measures write rates on a live cluster."""
    assumed_size: int | None
    """The size in bytes of a partition without a known size."""

    def bytes_in(self) -> dict[BrokerId, BytesIn]:
        """Return the given rates by broker, in bytes per second. A rate on the command line overrides one in a file."""
        rates: dict[BrokerId, BytesIn] = {}
        for in_file in self.by_file.values():
            rates |= in_file
        return rates | dict(self.by_hand)

    def covers(self, holding: Collection[BrokerId]) -> bool:
        """Return True if kquota need not measure rates, because a history or a rate for each broker in `holding` is
        given.
        """
        return bool(self.history) or self.bytes_in().keys() >= set(holding)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSource:
    """A source of write rates."""

    kind: str
    """The kind of the source: `BYTES_IN`, `HISTORY` or `SAMPLE`."""
    name: str | None = None
    """The file or the history, or None for rates on the command line and for measured rates."""
    brokers: tuple[BrokerId, ...] | None = None
    """The brokers with a rate, or None if the source is not limited to some brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The sources of sizes and write rates, before Spark reads them.

    `brokers`, `volumes` and `cordons` are empty without a live cluster. On a live cluster, they include brokers without
    replicas.
    """

    source: str
    """The source of the sizes: `CLUSTER`, `HISTORY`, or a key of `SIZE_FILES`."""
    names: tuple[str, ...]
    """The given files and folders of this source. Empty for a live cluster."""
    files: Files
    """The sizes that are not in a compacted history, without the replicas in `copies`."""
    sources: tuple[RateSource, ...] = ()
    """The sources of write rates. For each broker or partition, the first source with a rate is used."""
    listing: Listing | None = None
    """The snapshots of the history, or None without a history."""
    waiting: Files | None = None
    """The snapshots of the history that are not compacted yet, or None without a history."""
    brokers: Collection[BrokerId] = ()
    """The live brokers."""
    volumes: tuple[Volume, ...] = ()
    cordons: tuple[Cordon, ...] = ()
    sampled: Mapping[TopicPartition, float] = field(default_factory=dict)
    """The measured write rates, in bytes per second. A partition with an unknown rate is missing."""
    running: Mapping[TopicPartition, PartitionReplicas] | None = None
    """The running moves of a live cluster, or None if they are unknown."""
    copies: Mapping[ReplicaId, RunningCopy] = field(default_factory=dict)
    """The unfinished copies of the running moves."""
    enforcement: Enforcement = AS_SHIPPED
    """The throttle settings of the live brokers, or Kafka's defaults if these settings are unknown."""


def asked(options: EstimateOptions) -> GivenInputs:
    """Parse the options, and print a note for each rate on the command line that overrides one in a file.

    Raises Invalid for an invalid rate, time or size, and for an unusable file. Also raises Invalid for a broker that is
    listed twice in the files or on the command line, and for an option without the other option that it requires.
    """
    window, assumed, rates = options.history_window, options.assume_size, options.bytes_in or ()
    for option, value in (("--history-window", window), ("--cluster-id", options.cluster_id)):
        if value is not None and not options.history:
            raise Invalid(f"{option} needs a history. Give --history PATH")
    # Look for files and pipes, like <(curl ...), first, because a file name may also contain "=".
    names = dict.fromkeys(text for text in rates if _is_file(text))
    found = GivenInputs(
        sizes={source: paths for source in SIZE_FILES if (paths := getattr(options, source.replace("-", "_")))},
        history=tuple(options.history or ()),
        window=None if window is None else duration(window, "--history-window"),
        cluster=options.cluster_id,
        by_hand=by_hand(text for text in rates if text not in names),
        by_file={
            name: parse(read(Path(name), "a file with rates (--bytes-in)")[0], f"--bytes-in {name}") for name in names
        },
        sample=duration(options.sample, "--sample"),
        assumed_size=None if assumed is None else byte_size(assumed, "--assume-size"),
    )
    times = Counter(chain.from_iterable(found.by_file.values()))
    if twice := sorted(broker for broker, count in times.items() if count > 1):
        listing = ", ".join(name for name, in_file in found.by_file.items() if twice[0] in in_file)
        raise Invalid(
            f"--bytes-in: broker {twice[0]} is listed in several files ({listing}). Keep only one of its rates"
        )
    for name, in_file in found.by_file.items():
        for broker in sorted(in_file.keys() & found.by_hand.keys()):
            say(f"broker {broker}: the rate of --bytes-in {broker}=... is used instead of the rate in {name}")
    return found


def _is_file(text: str) -> bool:
    try:
        return is_folder(Path(text)) is False
    except Invalid as error:
        raise Invalid(f"--bytes-in {error}") from error


def is_live(asked: GivenInputs, connection: Connection) -> bool:
    """Return True if the sizes come from a live cluster: an option names one, or no other source of sizes is given and
    an environment variable names one.
    """
    stored = bool(asked.sizes or asked.history)
    return names_a_cluster(connection, {}) if stored else names_a_cluster(connection)


def gathered(asked: GivenInputs, connection: Connection, plan: Plan | PlanFiles, scratch: Path) -> Inputs:
    """Gather the inputs, and write them as files in `scratch`. Prints notes and warnings.

    Sizes come from the live cluster (see `is_live`), otherwise from `SIZE_FILES`, otherwise from the newest snapshot of
    the history. Rates come from `--bytes-in`, otherwise from the history. On a live cluster, kquota measures rates for
    `sample` seconds, unless a history or a rate for each broker with replicas is given.

    Raises Invalid for files with sizes together with a live cluster or with files of another source, for no source, and
    for an unusable source. Raises Refused for a JSON plan that does not fit the live cluster or names a topic that
    Kafka hides from this user. Raises Unreachable if a broker does not answer.
    """
    live = is_live(asked, connection)
    given = [*map(option_name, asked.sizes), *(["a live cluster"] if live else [])]
    if len(given) > 1:
        raise Invalid(f"two sources of sizes are given: {given[0]} and {given[1]}. Give only one of them")
    if live:
        found = _live(world.where(connection), asked, plan, scratch)
    elif asked.sizes:
        [(source, paths)] = asked.sizes.items()
        linked = SIZE_FILES[source](paths, scratch)
        found = Inputs(source=source, names=linked.given_names(), files=linked)
    elif asked.history:
        found = Inputs(source=HISTORY, names=asked.history, files=files.NOTHING)
    else:
        raise Invalid(
            "no source of sizes is given. Give --bootstrap-server HOST:PORT, --cluster NAME, "
            f"{', '.join(f'{option_name(source)} FILE' for source in SIZE_FILES)} or --history PATH"
        )
    unused = [option_name(f.name) for f in fields(connection) if getattr(connection, f.name)]
    if unused and not live:
        say(f"note: the sizes do not come from a live cluster, so kquota does not use {', '.join(unused)}")
    return _with_rates(found, asked, scratch)


def _with_rates(found: Inputs, asked: GivenInputs, scratch: Path) -> Inputs:
    sources = [RateSource(kind=BYTES_IN, brokers=tuple(sorted(asked.by_hand)))] if asked.by_hand else []
    sources += [
        RateSource(kind=BYTES_IN, name=name, brokers=tuple(sorted(in_file))) for name, in_file in asked.by_file.items()
    ]
    if found.sampled:
        sources.append(RateSource(kind=SAMPLE))
    if not asked.history:
        return replace(found, sources=tuple(sources))
    listing = _listed(asked.history)
    for path in listing.late:
        say(f"warning: {path} is left out, because it is older than the compacted history of its cluster")
    waiting = files.laid_out(listing.waiting, scratch / "history", ".jsonl")
    sources.append(RateSource(kind=HISTORY, name=", ".join(asked.history)))
    sizes = waiting if found.source == HISTORY else found.files
    return replace(found, files=sizes, sources=tuple(sources), listing=listing, waiting=waiting)


def _listed(paths: Sequence[str]) -> Listing:
    patterns = [path for path in paths if not is_elsewhere(path)]
    local = dict.fromkeys(
        path for pattern in patterns for path in matching(pattern, Parameter("history"), "file or folder")
    )
    try:
        here = local_files.listing(local)
    except Invalid as error:
        raise Invalid("--history ", *error.args) from error
    elsewhere = tuple(f"{path.rstrip('/')}/{ROLLED}" for path in paths if is_elsewhere(path))
    found = replace(here, rolled=(*here.rolled, *elsewhere))
    if not found.rolled and not found.waiting:
        raise Invalid(f"--history {', '.join(paths)}: no snapshot (*.jsonl.gz) was found. ", NextStep.TAKE_SNAPSHOT)
    return found


def _live(at: world.Where, asked: GivenInputs, plan: Plan | PlanFiles, scratch: Path) -> Inputs:
    settings = tuple(world.broker_settings(at).values())
    with world.log_dirs_and_moves(at) as (cluster, moves):
        brokers = cluster.brokers()
        first = sampling.listed(cluster, brokers, None)
        for warning in hidden(first.log_dirs):
            say(f"warning: {warning}")
        _must_fit(plan, brokers, {r.partition for log_dir in first.log_dirs for r in log_dir.replicas})
        if asked.covers({log_dir.broker for log_dir in first.log_dirs if log_dir.replicas}):
            seen = sampling.Sampled(log_dirs=cluster.detailed(first.log_dirs), rates={})
        else:
            say(f"measuring write rates for {asked.sample:g} s ...")
            seen = sampling.sampled(cluster, first, asked.sample)
        _must_be_visible(moves, seen.log_dirs, plan)
        described, now = seen.log_dirs, datetime.now(UTC)
        if _skip_remote(settings):
            described = without_remote(described, cluster.pending(described))
        # Read the running moves last, because then the replicas of a move that has just ended count as complete.
        running = _running(moves)
        copies = running_copies(running or {}, described)
        snapshot = local_files.snapshot(scratch / "live", cluster.cluster_id, now, before_the_move(described, copies))
    return Inputs(
        source=CLUSTER,
        names=(),
        files=files.laid_out([snapshot], scratch / "sizes", ".jsonl"),
        brokers=brokers,
        volumes=tuple(
            Volume(broker=d.broker, log_dir=d.path, total=d.volume_total, usable=d.volume_usable) for d in described
        ),
        cordons=cordons(described),
        sampled={partition: rate for partition, rate in seen.rates.items() if rate is not None},
        running=running,
        copies=copies,
        enforcement=of_brokers(settings),
    )


def _must_be_visible(moves: MoveCluster, described: Collection[LogDir], plan: Plan | PlanFiles) -> None:
    """Warn about topics that Kafka hides from this user, or raise Refused if a JSON plan contains one. Brokers report
    the sizes of these topics, but not their leaders and write rates.
    """
    led = {one.partition.topic for each in described for one in each.replicas if one.leader is not None}
    missing = topics(described) - led
    try:
        if missing:
            moves.snapshot(missing)
    except Refused as error:
        # Check only a JSON plan, because Spark reads plans in other formats later.
        planned = missing & {name.topic for name in plan.targets} if isinstance(plan, Plan) else frozenset()
        if planned:
            raise Refused(
                f"Kafka hides {counted(len(planned), 'topic')} of the plan from this user ({few(sorted(planned), 5)}). "
                "This user needs Describe on every topic of the plan"
            ) from error
        say(
            f"warning: Kafka hides {counted(len(missing), 'topic')} from this user ({few(sorted(missing), 5)}), so the "
            f"leaders and write rates of {'this topic' if len(missing) == 1 else 'these topics'} are unknown. "
            "This user needs Describe on every topic"
        )


def _running(cluster: MoveCluster) -> Mapping[TopicPartition, PartitionReplicas] | None:
    try:
        return cluster.snapshot(()).running
    except KquotaError as error:
        say(f"warning: the running moves are unknown, so the estimate ignores them: {worded(error)}")
        return None


def _must_fit(plan: Plan | PlanFiles, brokers: Collection[BrokerId], held: Collection[TopicPartition]) -> None:
    """Raise Refused if a JSON plan names a dead broker, or a partition that no live broker holds. Plans in other
    formats are not checked here, because Spark reads them later.
    """
    if not isinstance(plan, Plan):
        return
    must_be_alive({broker for target in plan.targets.values() for broker in target}, brokers)
    if unknown := sorted(set(plan.targets) - set(held)):
        raise Refused(
            f"plan: {agreeing(len(unknown), 'partition', 'has', 'have')} no replica on a live broker "
            f"({few(unknown, 5)}). Correct the plan, or repair the brokers"
        )


def must_be_alive(wanted: Collection[int], brokers: Collection[int]) -> None:
    """Raise Refused if the brokers of the plan (`wanted`) include dead brokers. `brokers` are the live brokers."""
    if dead := sorted(set(wanted) - set(brokers)):
        alive = joined(sorted(brokers))
        are, them = ("is", "it") if len(dead) == 1 else ("are", "them")
        raise Refused(
            f"plan: {named_brokers(dead)} {are} dead (live brokers: {alive}). Start {them}, or correct the plan"
        )


def _skip_remote(settings: Collection[Mapping[str, str | None]]) -> bool:
    """Return True if, on every broker, new replicas of tiered topics copy only data that remote storage lacks
    (KIP-1023). If this is the case only on some brokers, also print a note.
    """
    skipping = sum(one.get(SKIPS_TIERED) == "true" for one in settings)
    if 0 < skipping < len(settings):
        say(
            f"note: {SKIPS_TIERED} is set on {skipping} of {len(settings)} brokers. New replicas of tiered topics "
            "copy less there, so bytes and time are upper bounds"
        )
    return 0 < skipping == len(settings)
