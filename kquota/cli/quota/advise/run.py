"""`kquota quota advise`: read the use and the cluster, run the Spark job, and propose limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kquota import library
from kquota.cli import local_files, world
from kquota.cli.contract import say
from kquota.cli.engine_options import engine
from kquota.cli.quota.advise.answer import Advised, summary
from kquota.cli.quota.advise.command import KEYS, AdviseOptions
from kquota.cli.quota.advise.source import MeasuredTime, UseSource, prometheus
from kquota.cli.quota.answer import unfit_notes
from kquota.errors import Invalid
from kquota.measure import byte_rate, counted, duration, percentage
from kquota.quota.advice import ProposalRules, ProposedLimit, advised, proposals, resized, totals
from kquota.quota.capacity import Capacity
from kquota.quota.document import Document
from kquota.quota.precedence import QuotasByEntity
from kquota.quota.usage import QuotaBucket
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate.steady import ThrottledTime, throttled_time

if TYPE_CHECKING:
    from kquota.spark.usage import UsageJob

_MOST_PREDICTED: Final = 10_000
"""The maximum number of proposed limits for which kquota predicts the throttle time. If there are more, kquota chooses
the limits that the measured use exceeds the most.
"""


def run(options: AdviseOptions) -> Advised:
    """Propose limits from the measured use, and predict their throttle times. With `--compact`, also compact the
    snapshots.

    Raises Invalid for options that are not valid or cannot be combined, and for `--brokers` if the current number of
    brokers is unknown. Also raises Invalid if no source of measured use is given, and if the source has no readings of
    this cluster. Raises Busy if another kquota is compacting the snapshots. Raises Unreachable if the cluster or
    Prometheus does not answer. Raises Refused if the cluster refuses a request, if Spark is missing, if a job fails, or
    if compacted snapshots cannot be written.
    """
    keys = _keys(options)
    head_room = percentage(options.head_room, "--head-room")
    network = None if options.network is None else float(byte_rate(options.network, "--network"))
    where = engine(options.spark)
    step = duration(options.step, "--step")
    if step < 1:
        raise Invalid(f"--step {options.step}: must be at least 1s")
    source = UseSource(
        given=options,
        prometheus=prometheus(options),
        window=timedelta(seconds=duration(options.window, "--window")),
        step=timedelta(seconds=step),
        engine=where,
    )
    if options.compact and not where.local:
        raise Invalid(
            "--compact works only with Spark on this machine. Leave out --spark-master and --spark-remote, and unset "
            "KQUOTA_SPARK_MASTER and KQUOTA_SPARK_REMOTE"
        )
    at = world.where(options.connection)
    with world.quotas(at) as port, world.configs(at) as configs, local_files.workspace() as scratch:
        cluster_id, quotas = port.cluster_id(), port.everything()
        capacity = library.cluster_of(configs)
        if options.brokers is not None and not capacity.size:
            raise Invalid(f"--brokers {options.brokers}: the current number of brokers is unknown. Leave out --brokers")
        rules = ProposalRules(head_room=1 + float(head_room), brokers=capacity.size, later=options.brokers)
        with ExitStack() as stack:
            measured, job = source.opened(stack, cluster_id, scratch)
            uses = job.statistics(options.percentile / 100, keys)
            found = sorted(proposals(uses, quotas, rules), key=lambda one: (one.use.bucket.key, one.entity.order()))
            waits = _predicted(job, found)
    return _answer(options, measured, quotas, _capacities(capacity, network), found, waits, rules)


def _keys(given: AdviseOptions) -> tuple[str, ...]:
    keys = tuple(given.key or KEYS)
    for key in keys:
        if key not in QUOTA_KEYS or QUOTA_KEYS[key].simulated is None:
            known = ", ".join(name for name, row in QUOTA_KEYS.items() if row.simulated is not None)
            raise Invalid(f"--key {key}: kquota does not measure the use of this key. Give one of {known}")
    return keys


def _predicted(job: UsageJob, found: Sequence[ProposedLimit]) -> Mapping[QuotaBucket, ThrottledTime]:
    """Return the throttle time on the broker with the highest use, for at most `_MOST_PREDICTED` of the limits that
    throttle their client. Keys with a token bucket are left out.
    """
    throttled = [one for one in found if one.throttles and QUOTA_KEYS[one.use.bucket.key].model is not Model.BUCKET]
    worst = sorted(throttled, key=lambda one: one.limit / (one.use.most * one.spread))[:_MOST_PREDICTED]
    if len(worst) < len(throttled):
        left = counted(len(throttled) - len(worst), "proposed limit")
        say(
            f"warning: the throttle time under {left} is not predicted, because kquota predicts it for at most "
            f"{_MOST_PREDICTED:,} limits"
        )
    by_bucket = {one.use.bucket: one for one in worst}
    pieces = job.pieces({one.use.bucket: one.use.broker for one in worst})
    return {
        bucket: throttled_time(((rate * of.spread, lasting) for rate, lasting in every), of.limit)
        for bucket, every in pieces
        for of in (by_bucket[bucket],)
    }


def _capacities(capacity: Capacity, network: float | None) -> dict[str, float]:
    """Return the capacity of one broker for each key whose capacity is known. The request capacity is the smallest of
    all brokers, and unknown if that of any broker is unknown.
    """
    found = {key: network for key, row in QUOTA_KEYS.items() if row.in_bytes and network is not None}
    threads = [one.request_capacity for one in capacity.brokers or ()]
    known = [float(one) for one in threads if one is not None]
    shares = [key for key, row in QUOTA_KEYS.items() if row.model is Model.SHARE]
    return found | (dict.fromkeys(shares, min(known)) if known and len(known) == len(threads) else {})


def _answer(
    given: AdviseOptions,
    measured: MeasuredTime,
    quotas: QuotasByEntity,
    capacities: Mapping[str, float],
    found: Sequence[ProposedLimit],
    waits: Mapping[QuotaBucket, ThrottledTime],
    rules: ProposalRules,
) -> Advised:
    changed = resized(quotas, found, rules)
    document = Document(limits=advised(quotas, found, changed))
    answer = Advised(
        cluster=measured.cluster_id,
        begin=measured.begin,
        end=measured.end,
        percentile=given.percentile,
        head_room=rules.head_room - 1,
        brokers=rules.brokers,
        brokers_later=rules.later,
        totals=totals(found, capacities),
        resized=changed,
        clients=tuple((one, waits.get(one.use.bucket)) for one in found),
        quotas=document,
        notes=tuple(unfit_notes(document)) if given.output.for_people else (),
    )
    return replace(answer, closing_notes=tuple(summary(answer)))
