"""`kquota quota top`: read the metrics and the quotas, and show each client with its quota."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from kquota.cli import local_files, world
from kquota.cli.contract import DONE, FAILED, NOT_YET, worded
from kquota.cli.options import interval_seconds
from kquota.cli.output import Answer, JsonObject, Row, each, hidden, rounded
from kquota.cli.output import key as json_key
from kquota.cli.progress import live
from kquota.cli.quota.metrics_source import MetricsSource
from kquota.cli.quota.top.command import TopOptions
from kquota.cli.quota.use_text import amount, bucket_name
from kquota.cli.table import COLUMNS, columns, fitted
from kquota.errors import Invalid, KquotaError, Unreachable
from kquota.measure import counted
from kquota.quota.limits import plain
from kquota.quota.port import Principals
from kquota.quota.usage import BucketUse, Usage, joined, share
from kquota.quota_keys import QUOTA_KEYS

_RATE: Final = rounded(3)
_SHARE: Final = rounded(4)
_MILLISECONDS: Final = rounded(1)


def _client(usage: Usage) -> JsonObject:
    """Return the JSON of one bucket. `limit`, `level`, `entity` and `shared_by` are null if no quota limits the bucket.
    `share` is the use as a fraction of the limit, or null without a limit above 0. Values that a broker does not report
    are null.
    """
    bucket = usage.bucket
    return {
        "key": bucket.key,
        "user": bucket.user,
        "client_id": bucket.client_id,
        "per": bucket.per,
        "limit": usage.limit,
        "level": usage.level,
        "entity": usage.entity,
        "shared_by": usage.shared_by,
        "throttled": usage.throttled,
        "brokers": [
            {
                "broker": one.broker,
                "used": _RATE(one.used),
                "share": _SHARE(share(one, usage.limit)),
                "throttle_ms": _MILLISECONDS(one.throttle_ms),
                "tokens": _RATE(one.tokens),
            }
            for one in usage.readings
        ],
    }


def _line(usage: Usage) -> Sequence[str]:
    bucket, worst, part = usage.bucket, usage.worst, usage.share
    return (
        bucket_name(bucket.user, bucket.client_id),
        bucket.key,
        amount(bucket.key, worst.used),
        "unlimited" if usage.limit is None else amount(bucket.key, usage.limit),
        "" if part is None else f"{part:.0%}",
        _throttling(worst),
        worst.broker,
        "" if usage.entity is None else str(usage.entity),
    )


_HEADS: Final = ("client", "key", "used", "limit", "of limit", "throttled", "broker", "quota")
_LEFT: Final = frozenset({0, 1, 6, 7})
_NARROW: Final = ("quota", "broker", "limit")
"""The columns that the live table leaves out on a narrow terminal, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopClients(Answer):
    """The clients with a quota metric, or with `--limited` only those that a quota limits."""

    HEADER = (
        "key",
        *COLUMNS[:2],
        "per",
        "broker",
        "used",
        "limit",
        "share",
        "throttle_ms",
        "tokens",
        "level",
        "entity_user",
        "entity_client",
    )

    brokers: tuple[str, ...]
    """The brokers whose metrics were read."""
    controller_queue_ms: float | None = json_key(form=_MILLISECONDS)
    """The 99th percentile of the wait in the controller's queue, in milliseconds (`EventQueueTimeMs`, KIP-237). If
    several nodes report it, the highest value counts. None if no node reports it.
    """
    clients: tuple[Usage, ...] = json_key(form=each(_client))
    """The clients: throttled clients first, then those nearest to their limits."""
    most: int = hidden()
    """The maximum number of rows in the text table."""

    def text(self, width: int | None = None) -> Iterator[str]:
        """Yield the table, at most `width` characters wide if possible, and the wait in the controller's queue, if
        reported.
        """
        if self.clients:
            shown = [_line(one) for one in self.clients[: self.most]]
            yield from fitted(shown, _HEADS, _LEFT, width=width, optional=_NARROW)
        else:
            yield "no clients to show"
        if (more := len(self.clients) - self.most) > 0:
            yield f"... and {counted(more, 'more row')}. --output json shows all clients"
        if self.controller_queue_ms is not None:
            yield f"wait in the controller's queue: {self.controller_queue_ms:.0f} ms (99th percentile)"

    def rows(self) -> Iterator[Row]:
        for one in self.clients:
            bucket, limit = one.bucket, one.limit
            user, client_id = columns(one.entity)[:2]
            level = None if one.level is None else str(one.level)
            for at in one.readings:
                numbers = map(_number, (at.used, limit, share(at, limit), at.throttle_ms, at.tokens))
                names = (bucket.key, bucket.user or "", bucket.client_id or "", bucket.per.value)
                yield [*names, at.broker, *numbers, level, user, client_id]


def run(options: TopOptions) -> Generator[TopClients]:
    """Yield one reading. On a terminal, with text output and without `--once`, show readings until Ctrl-C instead, and
    yield nothing. With `--snapshot`, also write each reading to a file.

    Raises Invalid for an invalid `--interval`, and if the source of the metrics is missing, ambiguous or invalid.
    Raises Unreachable if the cluster or the Prometheus server does not answer, or if no exporter answers. Raises
    Refused if the cluster refuses a request, if a snapshot cannot be written, or if `--metrics` is given and its parser
    is not installed. After a first valid reading on a terminal, Invalid and Unreachable are only warnings.
    """
    interval = interval_seconds(options.interval)
    at = world.where(options.connection)
    source = options.source.of(at)
    reader = world.usage_reader(source.metrics, source.prometheus)
    watched = options.output.for_people and not options.once and sys.stdout.isatty()
    with world.quotas(at) as quotas:
        read = partial(_read, reader, quotas, options, source)
        if not watched:
            yield read()
            return
        passing: tuple[type[KquotaError], ...] = ()
        with live() as show:
            while True:
                began = time.monotonic()
                show(_lines(read, passing), ())
                # The first reading shows that the source is valid. Prometheus can list a broker twice while it returns.
                passing = (Unreachable, Invalid)
                time.sleep(max(0.0, interval - (time.monotonic() - began)))


def _lines(read: Callable[[], TopClients], passing: tuple[type[KquotaError], ...]) -> Iterator[str]:
    """Yield the lines of one reading. After an error in `passing`, yield only a warning, because the next reading may
    succeed.
    """
    try:
        found = read()
    except passing as error:
        yield f"warning: {worded(error)}. Trying again"
        return
    yield from found.notes
    yield from found.text(shutil.get_terminal_size().columns)


def _read(reader: world.UsageReader, quotas: Principals, options: TopOptions, source: MetricsSource) -> TopClients:
    found = reader()
    failed = [one for one in found if isinstance(one, Unreachable)]
    if len(failed) == len(found):
        raise failed[0]
    live = set(map(str, quotas.brokers()))
    answered, others = _of_this_cluster((one for one in found if not isinstance(one, Unreachable)), live)
    readings = [reading for one in answered for reading in one.readings()]
    usages = joined(quotas.everything(), readings)
    brokers = [one for one in answered if one.has_readings or not _is_other(one.broker, live)]
    missing = _missing(live, [one.broker for one in brokers], len(failed))
    notes = [f"warning: {worded(one)}" for one in failed]
    notes += [*_incomplete(brokers), *_of_another(others, source), *_unread(missing, source)]
    if options.snapshot is not None:
        path, rows = local_files.usage_snapshot(options.snapshot, quotas.cluster_id(), datetime.now(UTC), readings)
        notes.append(
            f"note: wrote {counted(rows, 'row')} to {path}"
            if path
            else "note: no client has a quota metric, so nothing was written"
        )
    queues = [one.queue_ms for one in answered if one.queue_ms is not None]
    shown = tuple(one for one in usages if one.limit is not None or not options.limited)
    throttled = any(one.throttled for one in usages[:1])  # throttled clients come first
    if throttled and not any(one.throttled for one in shown[:1]):
        notes.append("note: a client is throttled, but --limited leaves it out, because no quota limits it")
    return TopClients(
        brokers=tuple(one.broker for one in brokers),
        controller_queue_ms=max(queues, default=None),
        clients=shown,
        most=options.lines,
        notes=tuple(notes),
        code=FAILED if failed or others or (missing and source.prometheus) else NOT_YET if throttled else DONE,
    )


def _of_this_cluster(
    found: Iterable[world.BrokerMetrics], live: Set[str]
) -> tuple[list[world.BrokerMetrics], list[world.BrokerMetrics]]:
    """Return the metrics of this cluster, and the metrics of brokers that are not live in this cluster. A node that is
    not a live broker and counts no bytes is listed with this cluster, because it may be a dedicated KRaft controller.
    """
    ours: list[world.BrokerMetrics] = []
    others: list[world.BrokerMetrics] = []
    for one in found:
        counts_bytes = (QUOTA_KEYS[bucket.key].in_bytes for bucket, _ in one.readings())
        (others if _is_other(one.broker, live) and any(counts_bytes) else ours).append(one)
    return ours, others


def _incomplete(answered: Iterable[world.BrokerMetrics]) -> Iterator[str]:
    for one in answered:
        if not one.has_readings:
            yield (
                f"note: broker {one.broker} reports no quota metric. If quotas are set and the broker has "
                "clients, check the rules of its exporter. They must export the types Produce, Fetch, Request and "
                "ControllerMutation of kafka.server"
            )
        if one.unread:
            yield (
                f"note: broker {one.broker}: {counted(one.unread, 'line')} of its metrics cannot be read. Check the "
                "output of its exporter"
            )


def _of_another(others: Sequence[world.BrokerMetrics], source: MetricsSource) -> Iterator[str]:
    if others:
        label = (
            "If a broker has just stopped, try again later. If Prometheus scrapes several clusters, add a label of "
            "this cluster to the URL"
        )
        ids = "this id" if len(others) == 1 else "these ids"
        yield (
            f"warning: the metrics of {_brokers([one.broker for one in others])} are left out, because this cluster "
            f"has no live broker with {ids}. {label if source.prometheus else 'Check the exporters in --metrics'}"
        )


def _missing(live: Set[str], read: Sequence[str], failed: int) -> str | None:
    """Return as text the live brokers without metrics, or None if there may be none. Each exporter that failed, or does
    not report the id of its broker, can belong to any broker without metrics.
    """
    absent = sorted(live - set(read), key=int)
    unnamed = failed + sum(not name.isdecimal() for name in read)
    if len(absent) <= unnamed:
        return None
    return f"at least {len(absent) - unnamed} of {_brokers(absent)}" if unnamed else _brokers(absent)


def _unread(missing: str | None, source: MetricsSource) -> Iterator[str]:
    if missing is None:
        return
    if source.prometheus is None:
        yield (
            f"note: --metrics has no exporter for {missing}, so kquota does not show the use of quotas there. Add the "
            "missing exporters to --metrics"
        )
    else:
        yield f"warning: Prometheus has no metrics of {missing}. Check the scrape targets of Prometheus"


def _brokers(names: Sequence[str]) -> str:
    return f"broker{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _is_other(name: str, live: Set[str]) -> bool:
    """True for the id of a node that is not a live broker."""
    return name.isdecimal() and name not in live


def _throttling(one: BucketUse) -> str:
    if one.throttle_ms:
        return f"{one.throttle_ms:,.0f} ms" if one.throttle_ms >= 1 else "less than 1 ms"
    if one.tokens is None or one.tokens >= 0:
        return ""
    return f"{counted(round(-one.tokens), 'token')} over" if one.tokens <= -1 else "less than 1 token over"


def _number(value: float | None) -> str | None:
    return None if value is None else plain(float(value))
