"""`kquota move estimate`: gather sizes and rates, add them up with Spark, and judge the move."""

from __future__ import annotations

import shlex
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kquota.cli import local_files, rates, world
from kquota.cli.contract import DONE, FAILED, say, worded
from kquota.cli.engine_options import engine
from kquota.cli.move import log_dir_time
from kquota.cli.move.cordons import cordon_notes
from kquota.cli.move.estimate import inputs as estimate_inputs
from kquota.cli.move.estimate import limits
from kquota.cli.move.estimate.answer import Estimate, SizesUsed, WriteRates, assumed
from kquota.cli.move.estimate.command import EstimateOptions
from kquota.cli.move.estimate.inputs import CLUSTER, Inputs
from kquota.cli.move.estimate.job import Calculated, begun, calculated
from kquota.cli.move.estimate.limits import EstimateLimits
from kquota.cli.move.estimate.outlook import outlook, warnings
from kquota.cli.move.estimate.report import page
from kquota.cli.move.estimate.running import running_remarks
from kquota.cli.move.estimate.verdict import MoveVerdict
from kquota.cli.suggestion import plan_argument, suggested
from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate, agreeing, byte_size, counted, exact_rate
from kquota.pace.enforcement import Enforcement
from kquota.pace.kip73 import Fetch, MoveTime
from kquota.pace.log_dir_copy import LogDirPace
from kquota.pace.past_moves import ErrorBand, KeptEstimate, learned
from kquota.pace.share import Pace, pace
from kquota.pace.uncertainty import OF_THE_MODEL
from kquota.pace.waves import Split, Waves
from kquota.reassign.plan import Plan, plan_hash
from kquota.sizes.replica import Cordon
from kquota.spark import plan_files
from kquota.spark.plan_files import PlanFiles

if TYPE_CHECKING:
    from kquota.spark.estimate import Measured

_QUARTERS: Final = (2, 3, 4, 6, 8, 20)


def run(options: EstimateOptions) -> Generator[Estimate]:
    """Yield the estimate, and write the report if one is requested. Prints notes and warnings about the inputs.

    For a JSON plan and a live cluster, first record the expected time, if it is known, to compare it with the actual
    time later.

    Raises Invalid or Refused for unusable input, and Unreachable if a broker or Spark does not answer. After the
    estimate, raises Refused if the move never finishes, does not fit on the disks, or breaks a limit.
    """
    log_dir_rate = rates.any_throttle(options.replica_alter_log_dirs_throttle, log_dir_time.OPTION)
    limited = limits.limits(options.throttle, options.deadline, options.nic, options.max_impact)
    asked = estimate_inputs.asked(options)
    split = _split(options.waves, options.max_in_flight)
    wanted = page.wanted(options.report, options.reassignment_json_file, options.connection)
    chosen_engine = engine(options.spark)
    with local_files.workspace() as scratch:
        plan = plan_files.opened(str(options.reassignment_json_file), scratch)
        with begun(asked, options.connection, plan, scratch, chosen_engine) as job:
            inputs = estimate_inputs.gathered(asked, options.connection, plan, scratch)
            live = inputs.source == CLUSTER
            found = calculated(inputs, asked, plan, split, job, detailed=wanted is not None)
    works = found.measured.within
    settings = log_dir_time.log_dir_settings(options.connection, works) if live and works else {}
    within = tuple(log_dir_time.paced(work, log_dir_rate, settings) for work in works)
    noted = [
        *remarks(found.measured, live=live),
        *running_remarks(found.running),
        *cordon_remarks(inputs.cordons, found.measured),
    ]
    for remark in noted:
        say(remark)
    kept = local_files.past_moves_of(options.state_dir, found.measured.health.cluster)
    errors = None if kept is None else learned(kept.recall().certain)
    answer = estimate(inputs, found, limited, errors or OF_THE_MODEL, within)
    if live and kept is not None and isinstance(plan, Plan):
        remember(kept, plan, answer.pace)
    why = answer.verdict.error or log_dir_time.never(within)
    closing = () if why or not live else tuple(next_step(options, plan, answer))
    yield replace(answer, code=FAILED if why else DONE, closing_notes=closing)
    if wanted is not None:
        page.write(wanted, plan, answer, noted)
    if why:
        raise Refused(why)


def next_step(options: EstimateOptions, estimated: Plan | PlanFiles, answer: Estimate) -> Iterator[str]:
    """Yield the command that starts the move. Yield nothing if any partition is moving, because `move run` would refuse
    to start. Also yield nothing if nothing is copied, if `move run` cannot run the plan (for example, it reads neither
    JSON lines nor Parquet), or if the operator only compares waves.
    """
    now = answer.running
    going = now is None or now.partitions or now.elsewhere or now.others
    if (
        going
        or not isinstance(estimated, Plan)
        or answer.pace.bottleneck is None
        or answer.measured.within
        or options.waves is not None
    ):
        return
    plan = plan_argument(options.reassignment_json_file)
    rate = exact_rate(answer.throttle)
    limit = "" if options.max_in_flight is None else f" --max-in-flight {shlex.quote(options.max_in_flight)}"
    yield f"next: start the move: {suggested(f'move run {plan} --throttle {rate}{limit}')}"


def _split(waves: int | None, max_in_flight: str | None) -> Split | None:
    if waves is not None and max_in_flight is not None:
        raise Invalid("--waves and --max-in-flight cannot be combined. Give one of them")
    if waves is not None:
        if waves < 1:
            raise Invalid(f"--waves {waves}: not a valid number of waves. Give 1 or more")
        return Split(waves=waves)
    return None if max_in_flight is None else Split(in_flight=byte_size(max_in_flight, "--max-in-flight"))


def remember(kept: local_files.PastMovesFile, plan: Plan, move: Pace) -> None:
    """Record the expected time of the move, to compare it with the actual time of a run of this plan that starts soon.

    A time that is unknown, 0 or only a lower bound is not recorded. A failed write causes a warning.
    """
    if not move.seconds or move.followed is False:
        return
    estimated = KeptEstimate(
        plan=plan_hash(plan), throttle=move.throttle, expected=move.seconds, at=datetime.now(UTC).replace(microsecond=0)
    )
    try:
        kept.keep_estimate(estimated)
    except Refused as error:
        world.warn(f"kquota cannot compare this estimate with the move later: {worded(error)}")


def estimate(
    inputs: Inputs,
    found: Calculated,
    asked: EstimateLimits,
    errors: ErrorBand = OF_THE_MODEL,
    within: tuple[LogDirPace, ...] = (),
) -> Estimate:
    """Make the estimate from the sums of a move, the operator's limits, and the errors of past estimates or of the
    model.

    `within` are the moves between log dirs of one broker, which have a separate throttle. Raises Refused if no throttle
    is given and none is known to meet the deadline.
    """
    measured, enforcement = found.measured, inputs.enforcement
    throttle, in_time = limits.chosen(asked, measured.works, enforcement)
    move = pace(measured.work, throttle, enforcement)
    ahead = outlook(move, measured, found.bytes_in, inputs.volumes, errors)
    judged = ahead.waves or move
    window = limits.window(asked, judged, in_time, measured.max_bytes_in, measured.least_replicas)
    brokers = len({*measured.health.brokers, *inputs.brokers})
    sources = inputs.sources if measured.any_rate_known else ()
    return Estimate(
        throttle=throttle,
        sizes=SizesUsed(source=inputs.source, names=inputs.names, health=measured.health),
        write_rates=WriteRates(sources=sources, brokers_without_partitions=measured.unallotted),
        assumed=assumed(measured, live=inputs.source == CLUSTER),
        followers_out_of_sync=measured.lagging,
        running=found.running,
        kip=_kip(measured, throttle, brokers),
        pace=move,
        verdict=MoveVerdict(judged=judged, outlook=ahead, window=window, deadline=asked.deadline, in_time=in_time),
        fetch=_fetch(asked, enforcement, throttle, brokers),
        enforcement=enforcement,
        throttles=_others(judged),
        outlook=ahead,
        log_dir_moves=within,
        cordoned=inputs.cordons,
        for_deadline=asked.throttle is None,
        measured=measured,
        notes=tuple(warnings(ahead)),
    )


def _kip(measured: Measured, throttle: ByteRate, brokers: int) -> MoveTime:
    return MoveTime(
        partitions_to_be_moved=measured.moving,
        total_partition_count=measured.partitions,
        total_log_size=measured.log_size,
        brokers=brokers,
        replication_quota=throttle,
        max_bytes_in=measured.max_bytes_in,
    )


def _fetch(asked: EstimateLimits, enforcement: Enforcement, throttle: ByteRate, brokers: int) -> Fetch:
    return Fetch(
        brokers=brokers,
        throttle=throttle,
        network=asked.network,
        response_max_bytes=enforcement.response_bytes,
        window_seconds=enforcement.window,
    )


def _others(judged: Pace | Waves) -> tuple[Pace | Waves, ...]:
    """Estimate the same move under throttles from half to five times its own. If the move never finishes under its own
    throttle, the throttle that it needs counts instead. Return nothing for a move without copies.
    """
    least = (judged.least_throttle or 0) if judged.feasible is False else 0
    about = max(judged.throttle, int(least))
    throttles = {ByteRate(max(1, about * n // 4)) for n in _QUARTERS} if judged.bottleneck else set()
    return tuple(judged.under(throttle) for throttle in sorted(throttles))


def cordon_remarks(cordons: Iterable[Cordon], measured: Measured) -> Iterator[str]:
    """Yield notes about cordoned log dirs on brokers that receive copies, and warnings about copies into such log dirs,
    because Kafka does not refuse these copies.
    """
    receiving = {arrival.broker for arrival in measured.arrivals}
    yield from cordon_notes(cordon for cordon in cordons if cordon.broker in receiving)
    for arrival in measured.arrivals:
        for cordon in cordons:
            if arrival.broker == cordon.broker and (cordon.whole or arrival.log_dir in cordon.log_dirs):
                where = f"in the cordoned log dir {arrival.log_dir} of broker {arrival.broker}"
                if arrival.log_dir is None:
                    where = f"on broker {arrival.broker}, where all log dirs are cordoned"
                copies = counted(arrival.copies, "replica")
                yield f"warning: the plan places {copies} {where}. Kafka does not refuse this, so check the plan"


def remarks(measured: Measured, *, live: bool) -> Iterator[str]:
    """Yield the number of rows that were left out, each assumption, and warnings about what the estimate omits."""
    health = measured.health
    left_out = {
        "broker, topic, partition or a valid size is missing": health.bad,
        "replica listed twice (kquota uses only its largest size)": health.duplicate,
        "future replica (a copy between two log dirs of one broker)": health.future,
    }
    for why, rows in left_out.items():
        if rows:
            yield f"{agreeing(rows, 'row', 'is', 'are')} left out: {why}"
    counts = {
        "warning: offline log dirs: {}. The sizes of their replicas are missing": health.offline,
        "moving partitions for which the sizes show no leader: {}. Assumed leader: the first broker in the plan that "
        "already holds the partition, otherwise the holder with the lowest broker id": measured.leaders_assumed,
        "moving partitions with replicas whose in-sync state is unknown: {}. Assumed: these replicas are in sync": (
            measured.in_sync_assumed
        ),
        "warning: out-of-sync followers of moving partitions: {}. They share the throttle while they catch up, and the "
        "estimate does not include their bytes": measured.lagging,
        "warning: out-of-sync followers in partitions that already have all replicas of the plan: {}. The estimate "
        "does not include the bytes that they lack"
        f"{'' if live else '. If the move is running, an estimate with --bootstrap-server includes them'}": (
            measured.behind
        ),
        f"partitions of the plan without a known size: {{}} ({measured.assumed}). Assumed: each has the size of "
        "--assume-size, and its leader is the first broker of its replicas in the plan": measured.assumed.partitions,
    }
    for line, count in counts.items():
        if count:
            yield line.format(f"{count:,}")
    for broker in measured.unallotted:
        yield f"warning: --bytes-in {broker}: the rate is not used, because the sizes show no leader on this broker"
    if measured.unseen and not live:
        unseen = ", ".join(map(str, measured.unseen))
        yield f"the plan names brokers that the sizes do not contain: {unseen}. Assumed: they are empty"
