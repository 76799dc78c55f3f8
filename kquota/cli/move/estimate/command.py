"""`kquota move estimate`: how long a move takes, before it is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.engine_options import Conf, Debug, SparkMaster, SparkRemote, engine
from kquota.cli.move.estimate import inputs as estimate_inputs
from kquota.cli.move.estimate import limits
from kquota.cli.move.estimate import outlook as estimate_outlook
from kquota.cli.move.estimate import waves as estimate_waves
from kquota.cli.move.estimate.inputs import (
    CLUSTER,
    AssumeSize,
    ClusterId,
    History,
    HistoryWindow,
    Inputs,
    Rates,
    Sample,
    Sizes,
)
from kquota.cli.move.estimate.job import Reckoned, begun, reckoned
from kquota.cli.move.estimate.limits import Deadline, Limits, MaxImpact, Nic, Throttle
from kquota.cli.move.estimate.report import option as report
from kquota.cli.move.estimate.report.option import Report, Wanted
from kquota.cli.move.estimate.waves import MaxInFlight, Waves
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Refused

if TYPE_CHECKING:
    from kquota.cli.move.estimate.answer import Estimate
    from kquota.pace.enforcement import Enforcement
    from kquota.spark.estimate import Measured

EPILOG: Final = """Exit codes: 0 it can be done as asked; 1 it cannot, and why: it never finishes, is late, has no room.

Examples:
  kquota move estimate --bootstrap-server localhost:9092 --reassignment-json-file plan.json --throttle 50MB/s
  kquota move estimate --log-dirs sizes.txt --bytes-in 1=3MB/s --reassignment-json-file plan.json --deadline 6h"""


HEADINGS: Final = {
    "--reassignment-json-file": "The move",
    "--log-dirs": "Sizes and write rates; by default the live cluster's",
    "--waves": "In waves",
    "--spark-master": "Where Spark runs; by default here",
    "--report": "Output",
}
"""The first option of each part of the help, and its heading."""


@connected(zookeeper=False)
def estimate(
    connection: Connection,
    reassignment_json_file: Annotated[
        Path,
        typer.Option(
            "--reassignment-json-file",
            metavar="FILE",
            help="The plan, as kafka-reassign-partitions'; also JSON lines or Parquet, a file or a folder.",
        ),
    ],
    throttle: Throttle = None,
    deadline: Deadline = None,
    nic: Nic = None,
    max_impact: MaxImpact = None,
    log_dirs: Sizes = None,
    history: History = None,
    history_window: HistoryWindow = None,
    cluster_id: ClusterId = None,
    bytes_in: Rates = None,
    sample: Sample = "3",
    assume_size: AssumeSize = None,
    waves: Waves = None,
    max_in_flight: MaxInFlight = None,
    spark_master: SparkMaster = None,
    spark_remote: SparkRemote = None,
    conf: Conf = None,
    debug: Debug = False,  # noqa: ARG001 - its callback has done it
    page: Report = None,
    output: OutputFormat = Output.text,
) -> int:
    """Say how long a throttled move takes, which broker is the bottleneck, and whether it can ever finish."""
    from kquota.spark import plan_files
    from kquota.stores.workspace import workspace

    asked = limits.limits(throttle, deadline, nic, max_impact)
    given = estimate_inputs.asked(log_dirs, history, history_window, cluster_id, bytes_in, sample, assume_size)
    split = estimate_waves.split(waves, max_in_flight)
    wanted = report.wanted(page, reassignment_json_file, connection)
    where = engine(spark_master, spark_remote, conf)
    with workspace() as scratch:
        plan = plan_files.opened(str(reassignment_json_file), scratch)
        wanted = report.knowing(wanted, plan)
        with begun(given, connection, plan, scratch, where) as job:
            inputs = estimate_inputs.gathered(given, connection, plan, scratch)
            enforcement = estimate_outlook.enforcement(connection, live=inputs.source == CLUSTER)
            found = reckoned(inputs, given, plan, split, job, detailed=wanted is not None)
    return _answer(inputs, found, asked, output, wanted, enforcement)


def _answer(
    inputs: Inputs, found: Reckoned, asked: Limits, output: Output, wanted: Wanted | None, enforcement: Enforcement
) -> int:
    from kquota.cli.move.estimate.document import document
    from kquota.cli.move.estimate.outlook import warnings
    from kquota.cli.move.estimate.printed import text
    from kquota.cli.move.estimate.verdict import refusal

    remarks = list(_remarks(found.measured, live=inputs.source == CLUSTER))
    for remark in remarks:
        say(remark)
    answer = _estimate(inputs, found, asked, enforcement)
    for warning in warnings(answer.outlook):
        say(warning)
    print(document(answer) if output is Output.json else text(answer))
    if wanted:
        report.write(wanted, answer, asked, remarks)
    if why := refusal(answer):
        raise Refused(why)
    return DONE


def _estimate(inputs: Inputs, found: Reckoned, asked: Limits, enforcement: Enforcement) -> Estimate:
    from kquota.cli.move.estimate.answer import Estimate
    from kquota.cli.move.estimate.outlook import outlook
    from kquota.pace.fetch import Fetch
    from kquota.pace.ratio import MoveTime
    from kquota.pace.share import pace

    measured, busiest = found.measured, found.measured.max_bytes_in
    chosen = limits.chosen(asked, measured.works, enforcement)
    move = pace(measured.work, chosen.throttle, enforcement)
    ahead = outlook(move, measured, found.bytes_in, inputs.volumes)
    brokers = len({*measured.health.brokers, *inputs.brokers})
    return Estimate(
        throttle=chosen.throttle,
        for_deadline=asked.throttle is None,
        source=inputs.source,
        names=inputs.names,
        rates=inputs.sources if measured.rates_told else (),
        measured=measured,
        kip=MoveTime(
            partitions_to_be_moved=measured.moving,
            total_partition_count=measured.partitions,
            total_log_size=measured.log_size,
            brokers=brokers,
            replication_quota=chosen.throttle,
            max_bytes_in=busiest,
        ),
        pace=move,
        window=limits.window(asked, ahead.waves or move, chosen.within, busiest, measured.least_replicas),
        fetch=Fetch(
            brokers=brokers,
            throttle=chosen.throttle,
            network=asked.network,
            response_max_bytes=enforcement.response_bytes,
            window_seconds=enforcement.window,
        ),
        outlook=ahead,
        deadline=asked.deadline,
        within=chosen.within,
    )


def _remarks(measured: Measured, *, live: bool) -> Iterator[str]:
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
        f"{{}} partitions of the plan have no sizes: taken as --assume-size says, standing on the plan's first broker "
        f"and led by it: {measured.assumed}": measured.assumed.partitions,
    }
    for line, count in told.items():
        if count:
            yield line.format(count)
    for broker in measured.unallotted:
        yield f"warning: --bytes-in {broker}: as far as the sizes tell, that broker leads nothing; its rate is not used"
    if measured.unseen and not live:
        unseen = ", ".join(map(str, measured.unseen))
        yield f"copies go to brokers that the sizes do not name: {unseen}; taken as empty ones"
