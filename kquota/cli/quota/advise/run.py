"""`kquota quota advise`: read the use and the cluster, run the Spark job, and propose limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota import library
from kquota.cli import local_files, world
from kquota.cli.contract import say
from kquota.cli.engine_options import engine
from kquota.cli.progress import stages
from kquota.cli.quota.advise.answer import Advised, change, client, summary, total
from kquota.cli.quota.advise.command import KEYS, AdviseOptions
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid
from kquota.measure import byte_rate, counted, duration, percentage
from kquota.quota.advice import BucketStatistics, ProposedLimit, Wish, advised, proposal, resized, totals
from kquota.quota.capacity import Capacity
from kquota.quota.document import Document
from kquota.quota.precedence import Quotas
from kquota.quota.usage import QuotaBucket
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate.steady import ThrottledTime, throttled_time
from kquota.sizes.history import Listing, SnapshotKey
from kquota.spark import files
from kquota.spark.session import session, starting

if TYPE_CHECKING:
    from kquota.cli.local_files import HistoryBatch
    from kquota.spark.engine import Engine
    from kquota.spark.usage import UsageJob

_MOST_PREDICTED: Final = 10_000
"""The clients whose throttle time is predicted: those that exceeded their proposals most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """The parsed options. `window` and `step` are times, `network` is in bytes per second."""

    window: timedelta
    step: timedelta
    head_room: float
    keys: tuple[str, ...]
    network: float | None


def run(options: AdviseOptions) -> Advised:
    """Propose limits. Raises Invalid without a source of use, and for a source without readings of this cluster."""
    rules = _rules(options)
    where = engine(options.spark_master, options.spark_remote, options.conf)
    source = _prometheus(options)
    if options.compact and not where.local:
        raise Invalid("--compact writes on this machine. Leave out --spark-master and --spark-remote")
    at = world.where(options.connection)
    with world.quotas(at) as port, world.configs(at) as configs, local_files.workspace() as scratch:
        cluster_id, quotas = port.cluster_id(), port.everything()
        capacity = library.cluster_of(configs)
        wish = _wish(options, rules, capacity)
        folders = options.usage or [_fetched(source or "", cluster_id, rules, scratch)]
        if options.compact:
            _compact(folders, where, scratch)
        found, end = _listed(folders, cluster_id, rules)
        with ExitStack() as stack:
            job = _job(stack, found, end - rules.window, where, scratch)
            uses = job.statistics(options.percentile / 100, rules.keys)
            proposals = _proposals(uses, quotas, wish)
            waits = _predicted(job, proposals)
    return _answer(options, rules, (cluster_id, end), quotas, capacity, proposals, waits, wish)


def _rules(given: AdviseOptions) -> _Rules:
    keys = tuple(given.key or KEYS)
    for key in keys:
        if key not in QUOTA_KEYS or QUOTA_KEYS[key].simulated is None:
            known = ", ".join(name for name, row in QUOTA_KEYS.items() if row.simulated is not None)
            raise Invalid(f"--key {key}: kquota does not measure the use of this key. Give one of {known}")
    step = duration(given.step, "--step")
    if step < 1:
        raise Invalid(f"--step {given.step}: must be at least 1s")
    return _Rules(
        window=timedelta(seconds=duration(given.window, "--window")),
        step=timedelta(seconds=step),
        head_room=1 + float(percentage(given.head_room, "--head-room")),
        keys=keys,
        network=None if given.network is None else float(byte_rate(given.network, "--network")),
    )


def _prometheus(given: AdviseOptions) -> str | None:
    """Return the address of Prometheus, or None with --usage. Raises Invalid for both and for none."""
    if given.usage and given.source.prometheus:
        raise Invalid("--usage and --prometheus are two sources of use. Give only one of them")
    if given.usage:
        return None
    found = given.source.prometheus or world.where(given.connection).prometheus
    if not found:
        raise Invalid(
            "no source of measured use is given. Give --prometheus URL, or --usage DIR, a folder that "
            f"{suggested('quota top --metrics URL --snapshot DIR')} fills"
        )
    if given.compact:
        raise Invalid("--compact needs --usage DIR")
    return found


def _wish(given: AdviseOptions, rules: _Rules, capacity: Capacity) -> Wish:
    if given.brokers is not None and capacity.size is None:
        raise Invalid(f"--brokers {given.brokers}: the number of brokers now is unknown. Leave it out")
    return Wish(head_room=rules.head_room, brokers=capacity.size, later=given.brokers)


def _fetched(prometheus: str, cluster_id: str, rules: _Rules, scratch: Path) -> Path:
    """Write the readings of the window as usage snapshots, and return their folder."""
    end = datetime.now(UTC).replace(microsecond=0)
    folder = scratch / "usage"
    folder.mkdir()
    count = world.usage_history(prometheus, folder, cluster_id, (end - rules.window, end, rules.step))
    if not count:
        raise Invalid(
            f"--prometheus {prometheus}: no client has a quota metric in the window. Check the labels in the URL. "
            "Brokers report the use of a key only if a quota of it is set"
        )
    say(f"read {counted(count, 'row')} from Prometheus")
    return folder


def _compact(folders: Sequence[Path], where: Engine, scratch: Path) -> None:
    """Compact the waiting snapshots of each folder. Raises Busy if another kquota compacts it."""
    for number, folder in enumerate(folders):
        if not local_files.usage([folder]).waiting:
            continue
        with local_files.rolling(folder) as batch:
            # Another process may have compacted them in the meantime.
            waiting = local_files.usage([folder]).waiting
            if waiting:
                _compacted(batch, waiting, where, scratch / f"compact-{number}")


def _compacted(batch: HistoryBatch, waiting: Mapping[Path, SnapshotKey], where: Engine, scratch: Path) -> None:
    scratch.mkdir()
    laid = files.laid_out(waiting, scratch / "readings", ".jsonl")
    with stages() as on_stage, session(scratch, laid, say, engine=where, on_stage=on_stage) as spark:
        from kquota.spark import usage
        from kquota.spark.reader import Reader

        reader = Reader(spark=spark, scratch=scratch)
        usage.write(usage.by_day(usage.readings(reader, laid)), batch.unfinished / "usage")
    place = batch.commit({"usage": batch.unfinished / "usage"}, set(waiting.values()))
    say(f"compacted {counted(len(waiting), 'snapshot')} into {place}. You can delete their files")


def _listed(folders: Sequence[Path], cluster_id: str, rules: _Rules) -> tuple[Listing, datetime]:
    """Return the files of this cluster in the window, and the time of its newest reading."""
    every = local_files.usage(folders)
    if cluster_id not in every.clusters():
        named = ", ".join(map(str, folders))
        raise Invalid(
            f"{named}: contains no usage snapshot of cluster {cluster_id}. Take one with "
            f"{suggested('quota top --metrics URL --snapshot DIR')}"
        )
    found = every.of(cluster_id)
    end = max(each.time for each in (*found.held, *found.waiting.values()))
    since = (end - rules.window).date()
    return found.since(since), end


def _job(stack: ExitStack, found: Listing, begin: datetime, where: Engine, scratch: Path) -> UsageJob:
    laid = files.laid_out(found.waiting, scratch / "readings", ".jsonl")
    stored = sum(file.stat().st_size for folder in found.rolled for file in Path(folder).rglob("usage-*.parquet"))
    on_stage = stack.enter_context(stages())
    start = stack.enter_context(starting(scratch, laid.size() + stored, where))
    spark = stack.enter_context(session(scratch, laid, say, engine=where, on_stage=on_stage, start=start))
    # Only a job needs PySpark.
    from kquota.spark import usage
    from kquota.spark.reader import Reader

    return usage.opened(Reader(spark=spark, scratch=scratch, uploads=where.uploads), found, laid, f"{begin:%Y-%m-%d}")


def _proposals(uses: Sequence[BucketStatistics], quotas: Quotas, wish: Wish) -> list[ProposedLimit]:
    found = [proposal(use, quotas, wish) for use in uses]
    return sorted(found, key=lambda one: (one.use.bucket.key, one.entity.order()))


def _predicted(job: UsageJob, found: Sequence[ProposedLimit]) -> Mapping[QuotaBucket, ThrottledTime]:
    """Return the throttle time of each client that the proposal throttles, on the broker where its use is highest."""
    throttled = [one for one in found if one.throttles and QUOTA_KEYS[one.use.bucket.key].model is not Model.BUCKET]
    worst = sorted(throttled, key=lambda one: one.limit / (one.use.most * one.spread))[:_MOST_PREDICTED]
    if len(worst) < len(throttled):
        say(f"warning: the throttle time of {counted(len(throttled) - len(worst), 'client')} is not predicted")
    proposals = {one.use.bucket: one for one in worst}
    pieces = job.pieces({one.use.bucket: one.use.broker for one in worst})
    return {
        bucket: throttled_time(((rate * of.spread, lasting) for rate, lasting in every), of.limit)
        for bucket, every in pieces
        for of in (proposals[bucket],)
    }


def _capacities(capacity: Capacity, rules: _Rules) -> dict[str, float]:
    """Return the capacity of one broker for each key, as far as it is known. The smallest broker decides."""
    found = {key: rules.network for key, row in QUOTA_KEYS.items() if row.in_bytes and rules.network is not None}
    threads = [one.request_capacity for one in capacity.brokers or ()]
    known = [float(one) for one in threads if one is not None]
    shares = [key for key, row in QUOTA_KEYS.items() if row.model is Model.SHARE]
    return found | (dict.fromkeys(shares, min(known)) if known and len(known) == len(threads) else {})


def _answer(
    given: AdviseOptions,
    rules: _Rules,
    measured: tuple[str, datetime],
    quotas: Quotas,
    capacity: Capacity,
    found: Sequence[ProposedLimit],
    waits: Mapping[QuotaBucket, ThrottledTime],
    wish: Wish,
) -> Advised:
    cluster_id, end = measured
    changed = resized(quotas, found, wish)
    answer = Advised(
        cluster=cluster_id,
        begin=end - rules.window,
        end=end,
        percentile=given.percentile,
        head_room=rules.head_room - 1,
        brokers=wish.brokers,
        brokers_later=wish.later,
        totals=tuple(map(total, totals(found, _capacities(capacity, rules)))),
        resized=tuple(map(change, changed)),
        clients=tuple(client(one, waits.get(one.use.bucket)) for one in found),
        quotas=Document(limits=advised(quotas, found, changed)),
    )
    return replace(answer, closing_notes=tuple(summary(answer)))
