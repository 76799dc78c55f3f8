"""`kquota move estimate`: how long a move takes, before it is started."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import estimate_limits, report, world
from kquota.cli.connection import Connection, connected, names_a_cluster
from kquota.cli.contract import DONE, say
from kquota.cli.estimate_limits import Deadline, Limits, MaxImpact, Nic, Throttle
from kquota.cli.options import Output, OutputFormat
from kquota.cli.report import Report, Wanted
from kquota.errors import Invalid, Refused
from kquota.measure import byte_rate, duration
from kquota.terms import BrokerId, TopicPartition

if TYPE_CHECKING:
    from kquota.reassign.plan import Plan
    from kquota.sizes.port import LogDirs, Offsets
    from kquota.spark.estimate import Measured
    from kquota.spark.files import Files

EPILOG: Final = """Examples:

kquota move estimate --bootstrap-server localhost:9092 --reassignment-json-file plan.json --throttle 50MB/s

kquota move estimate --log-dirs sizes.txt --bytes-in 1=3MB/s --reassignment-json-file plan.json --throttle 50MB/s

kquota move estimate --history snapshots/ --bytes-in 1=3MB/s --reassignment-json-file plan.json --deadline 6h"""

_LOG_DIRS: Final = "log-dirs"


@connected(zookeeper=False)
def estimate(
    connection: Connection,
    reassignment_json_file: Annotated[
        Path, typer.Option("--reassignment-json-file", metavar="FILE", help="The plan, as kafka-reassign-partitions'.")
    ],
    throttle: Throttle = None,
    deadline: Deadline = None,
    nic: Nic = None,
    max_impact: MaxImpact = None,
    log_dirs: Annotated[
        list[str] | None,
        typer.Option(
            "--log-dirs", metavar="FILE", help="Sizes from kafka-log-dirs' output; a file or glob, repeatable."
        ),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history", metavar="PATH", help="Sizes from the newest snapshot of a file or folder, repeatable."
        ),
    ] = None,
    bytes_in: Annotated[
        list[str] | None,
        typer.Option("--bytes-in", metavar="BROKER=RATE", help="What clients write to a broker, repeatable."),
    ] = None,
    sample: Annotated[
        str, typer.Option("--sample", metavar="SECONDS", help="How long to measure write rates on the live cluster.")
    ] = "3",
    page: Report = None,
    output: OutputFormat = Output.text,
) -> int:
    """Say how long a throttled move takes, which broker is the bottleneck, and whether it can ever finish."""
    from kquota.reassign import plan as plans

    asked = estimate_limits.limits(throttle, deadline, nic, max_impact)
    rates, seconds = _bytes_in(bytes_in or []), duration(sample, "--sample")
    plan = plans.read(reassignment_json_file)
    wanted = report.wanted(page, reassignment_json_file, connection)
    with tempfile.TemporaryDirectory(prefix="kquota-") as folder:
        if log_dirs or history:
            if (log_dirs and history) or connection != Connection():
                raise Invalid("sizes come from one place: give --log-dirs, --history or --bootstrap-server")
            sizes = _stored(log_dirs, history, rates, Path(folder))
        else:
            if not names_a_cluster(connection):
                raise Invalid("whose sizes? Give --bootstrap-server HOST:PORT, --log-dirs FILE or --history PATH")
            at = world.where(connection)
            sizes = _live(at, plan, rates, seconds, Path(folder))
        return _answer(sizes, plan, asked, output, Path(folder), wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """Where the sizes lie, brokers known besides, and the writes: by broker as given, by partition as sampled."""

    files: Files
    brokers: Collection[BrokerId]
    source: str
    by_broker: Mapping[BrokerId, float]
    by_partition: Mapping[TopicPartition, float]
    writes_from: str | None


def _bytes_in(texts: Sequence[str]) -> dict[BrokerId, float]:
    rates: dict[BrokerId, float] = {}
    for text in texts:
        broker, equals, rate = text.partition("=")
        if not equals or not (broker.isascii() and broker.isdigit()):
            raise Invalid(f"--bytes-in {text!r}: write a broker's id and a rate, as 1=3MB/s")
        if BrokerId(int(broker)) in rates:
            raise Invalid(f"--bytes-in {text!r}: broker {int(broker)} has a rate already")
        # Unlike a throttle, traffic may well be nothing.
        rates[BrokerId(int(broker))] = 0.0 if rate.strip() == "0" else float(byte_rate(rate, f"--bytes-in {broker}"))
    return rates


def _stored(
    log_dirs: Sequence[str] | None, history: Sequence[str] | None, rates: Mapping[BrokerId, float], scratch: Path
) -> _Sizes:
    from kquota.spark import files

    found = files.log_dirs(log_dirs, scratch) if log_dirs else files.snapshots(history or [], scratch)
    return _Sizes(
        files=found,
        brokers=(),
        source=_LOG_DIRS if log_dirs else "history",
        by_broker=rates,
        by_partition={},
        writes_from="bytes-in" if rates else None,
    )


def _live(at: world.Where, plan: Plan, rates: Mapping[BrokerId, float], seconds: float, scratch: Path) -> _Sizes:
    """A snapshot of the live cluster and, unless --bytes-in is given, how fast its partitions are written to."""
    from kquota.sizes.snapshot import lines
    from kquota.sizes.write_rate import write_rates
    from kquota.spark import files
    from kquota.stores import snapshots

    with world.log_dirs(at) as cluster:
        brokers = cluster.brokers()
        held = {r.partition for log_dir in cluster.describe(brokers, None) for r in log_dir.replicas}
        _check(plan, brokers, held)
        first, began = ({}, 0.0) if rates else _first_reading(cluster, held, seconds)
        second, took = cluster.offsets(first), time.monotonic() - began
        # Sizes read before the second offsets would make each offset, and so the rate, too small.
        described = cluster.detailed(cluster.describe(brokers, None))
        led = {r.partition: r.size for log_dir in described for r in log_dir.replicas if r.leader}
        sampled = write_rates(first, second, took, led)
        now = datetime.now(UTC)
        snapshot = snapshots.write(scratch / "live", cluster.cluster_id, now, lines(cluster.cluster_id, now, described))
    return _Sizes(
        files=files.snapshots([str(snapshot)], scratch),
        brokers=brokers,
        source="cluster",
        by_broker=rates,
        by_partition={partition: rate for partition, rate in sampled.items() if rate is not None},
        writes_from="bytes-in" if rates else "sample",
    )


def _first_reading(
    cluster: LogDirs, partitions: Collection[TopicPartition], seconds: float
) -> tuple[Mapping[TopicPartition, Offsets], float]:
    """The offsets, and when they were read; `seconds` ago by the time that this returns."""
    say(f"measuring write rates for {seconds:g} s ...")
    offsets, now = cluster.offsets(partitions), time.monotonic()
    time.sleep(seconds)
    return offsets, now


def _check(plan: Plan, brokers: Collection[BrokerId], held: Collection[TopicPartition]) -> None:
    """What the cluster itself can refuse at once, before anything takes seconds."""
    if dead := sorted({broker for target in plan.targets.values() for broker in target} - set(brokers)):
        alive = ",".join(map(str, sorted(brokers)))
        raise Invalid(f"the plan names brokers that are not alive: {','.join(map(str, dead))}; alive are {alive}")
    if unknown := sorted(set(plan.targets) - set(held)):
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise Invalid(
            f"the plan names partitions that the cluster does not hold: {', '.join(map(str, unknown[:5]))}{more}"
        )


def _answer(sizes: _Sizes, plan: Plan, asked: Limits, output: Output, scratch: Path, wanted: Wanted | None) -> int:
    from kquota.cli.estimate import Estimate, document, text, why_never
    from kquota.pace.fetch import Fetch
    from kquota.pace.ratio import MoveTime
    from kquota.pace.share import pace

    measured = _measured(sizes, plan, scratch, detailed=wanted is not None)
    remarks = list(_remarks(measured))
    for remark in remarks:
        say(remark)
    throttle = estimate_limits.chosen(asked, measured.work)
    move = pace(measured.work, throttle)
    kip = MoveTime(
        partitions_to_be_moved=measured.moving,
        total_partition_count=measured.partitions,
        total_log_size=measured.log_size,
        brokers=len({*measured.health.brokers, *sizes.brokers}),
        replication_quota=throttle,
        max_bytes_in=measured.max_bytes_in,
    )
    least_replicas = min(map(len, plan.targets.values()))
    answer = Estimate(
        throttle=throttle,
        for_deadline=asked.throttle is None,
        source=sizes.source,
        names=() if sizes.source == "cluster" else tuple(sizes.files.names.values()),
        writes_from=sizes.writes_from,
        measured=measured,
        kip=kip,
        pace=move,
        window=estimate_limits.window(asked, move, measured.max_bytes_in, least_replicas),
        fetch=Fetch(brokers=kip.brokers, throttle=throttle, network=asked.network),
    )
    print(document(answer) if output is Output.json else text(answer))
    if wanted:
        report.write(wanted, answer, asked, remarks)
    if move.feasible is False:
        raise Refused(f"the move can never finish: {why_never(move)}")
    if answer.window.empty:
        raise Refused(estimate_limits.why_empty(answer.window))
    return DONE


def _measured(sizes: _Sizes, plan: Plan, scratch: Path, *, detailed: bool) -> Measured:
    from kquota.spark.session import session

    with session(scratch, sizes.files, say) as spark:
        from kquota.spark.estimate import Writes, measure
        from kquota.spark.plans import planned
        from kquota.spark.reader import Reader
        from kquota.spark.sizes import from_log_dirs, from_snapshots

        reader = Reader(spark=spark, scratch=scratch)
        replicas = (from_log_dirs if sizes.source == _LOG_DIRS else from_snapshots)(reader, sizes.files)
        rates = ({"topic": p.topic, "partition": p.partition, "w": w} for p, w in sizes.by_partition.items())
        sampled = reader.table("rates", rates, "topic string, `partition` int, w double")
        writes = Writes(by_broker=sizes.by_broker, by_partition=sampled if sizes.by_partition else None)
        return measure(replicas, sizes.files, planned(reader, plan), writes, reader, detailed=detailed)


def _remarks(measured: Measured) -> Iterator[str]:
    """Every row that was left out, and everything that was taken for granted."""
    health = measured.health
    told = {
        "{} rows left out: no broker, topic or partition, or no size of 0 or more": health.bad,
        "{} rows left out: the same replica twice; the largest is kept": health.duplicate,
        "{} rows left out: future replicas, copies between two log dirs of one broker": health.future,
        "warning: {} log dirs could not be read by their broker: their replicas are missing here": health.offline,
        "{} moving partitions: the sizes do not tell who leads; taken is the first of the plan's replicas that "
        "holds the partition already, else the lowest broker that holds it": measured.leaders_assumed,
        "{} moving partitions: the sizes do not tell who is in sync; taken are all current replicas": (
            measured.in_sync_assumed
        ),
        "warning: {} followers of moving partitions are out of sync; their catching up shares the throttle and is not "
        "in the estimate": measured.lagging,
    }
    for line, count in told.items():
        if count:
            yield line.format(count)
    for broker in measured.unallotted:
        yield f"warning: --bytes-in {broker}: as far as the sizes tell, that broker leads nothing; its rate is not used"
