"""The source of the measured use: usage snapshots, a Prometheus server, or a trace."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kquota.cli import local_files, world
from kquota.cli.contract import say
from kquota.cli.engine_options import spark_reader
from kquota.cli.quota.advise.command import KEYS, AdviseOptions
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid
from kquota.measure import counted
from kquota.quota_keys import QUOTA_KEYS
from kquota.sizes.history import Listing, SnapshotKey
from kquota.spark import files, trace_files
from kquota.spark.session import starting
from kquota.terms import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE

if TYPE_CHECKING:
    from kquota.cli.local_files import HistoryBatch
    from kquota.spark.engine import Engine
    from kquota.spark.trace_files import TraceFiles
    from kquota.spark.usage import UsageJob

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class MeasuredTime(NamedTuple):
    """The cluster whose use was measured, and the start and the end of the measurement."""

    cluster_id: str
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UseSource:
    """The source of measured use, as the options, config.toml or the environment name it."""

    given: AdviseOptions
    prometheus: str
    """The address of a Prometheus server, or "" for another source."""
    window: timedelta
    """The length of the window that ends with the newest reading. Only readings in this window count. Snapshots count
    from the start of the first day of the window.
    """
    step: timedelta
    """The time between two readings from Prometheus."""
    engine: Engine

    def opened(self, stack: ExitStack, cluster_id: str, scratch: Path) -> tuple[MeasuredTime, UsageJob]:
        """Return the measured time of this cluster, and the Spark job that reads its use. The Spark session ends with
        `stack`.

        With `--compact`, first compact the snapshots. Raises Invalid if the source has no reading of this cluster, and
        Busy if another kquota is compacting the snapshots. Raises Unreachable if Prometheus does not answer. Raises
        Refused if Spark is missing, if a job fails, or if compacted snapshots cannot be written.
        """
        if self.given.trace:
            return self._traced(stack, cluster_id, scratch)
        folders = self.given.usage or [self._fetched(cluster_id, scratch)]
        if self.given.compact:
            _compact(folders, self.engine, scratch)
        return self._collected(stack, folders, cluster_id, scratch)

    def _traced(self, stack: ExitStack, cluster_id: str, scratch: Path) -> tuple[MeasuredTime, UsageJob]:
        trace = trace_files.opened(self.given.trace or (), scratch)
        keys = trace_keys(trace, self.given.key)
        reader = stack.enter_context(spark_reader(scratch, trace.files, self.engine))
        # Imported here, because only a job needs PySpark.
        from kquota.spark import trace_usage

        bad, window_ms = trace_files.BadRows(), round(self.window.total_seconds() * 1_000)
        found = trace_usage.opened(reader, trace, bad, cluster_id, keys, window_ms)
        if (note := trace.left_out(bad)) is not None:
            say(note)
        if found is None:
            raise trace.no_row()
        try:
            begin, end = (_EPOCH + timedelta(milliseconds=ms) for ms in (found.begin, found.end))
        except OverflowError as error:
            raise Invalid(
                f"--trace: ms must be before the year 10000 ({found.end}). Convert ms to milliseconds since 1970"
            ) from error
        return MeasuredTime(cluster_id, begin, end), found.job

    def _collected(
        self, stack: ExitStack, folders: Sequence[Path], cluster_id: str, scratch: Path
    ) -> tuple[MeasuredTime, UsageJob]:
        found, end = _listed(folders, cluster_id, self.window)
        begin = end - self.window
        laid = files.laid_out(found.waiting, scratch / "readings", ".jsonl")
        stored = sum(file.stat().st_size for file in files.of_days(found))
        start = stack.enter_context(starting(scratch, laid.size() + stored, self.engine))
        reader = stack.enter_context(spark_reader(scratch, laid, self.engine, start))
        from kquota.spark import usage

        return MeasuredTime(cluster_id, begin, end), usage.opened(reader, found, laid, f"{begin:%Y-%m-%d}")

    def _fetched(self, cluster_id: str, scratch: Path) -> Path:
        """Write the readings of the window as usage snapshots, and return their folder."""
        end = datetime.now(UTC).replace(microsecond=0)
        folder = scratch / "usage"
        folder.mkdir()
        count = world.usage_history(self.prometheus, folder, cluster_id, (end - self.window, end, self.step))
        if not count:
            raise Invalid(
                f"--prometheus {self.prometheus}: no client has a quota metric in the window. Check the labels in the "
                "URL. Brokers report the use of a key only if a quota with this key is set"
            )
        say(f"read {counted(count, 'row')} from Prometheus")
        return folder


def prometheus(given: AdviseOptions) -> str:
    """Return the address of Prometheus, or "" for another source. If no option names a source, the address in
    config.toml or in the environment applies.

    Raises Invalid for several options that name a source, if no source is given, and for `--compact` without `--usage`.
    """
    kinds = {"--usage": given.usage, "--trace": given.trace, "--prometheus": given.source.prometheus}
    sources = [option for option, value in kinds.items() if value]
    if len(sources) > 1:
        raise Invalid(f"{' and '.join(sources)} are {len(sources)} sources of measured use. Give only one of them")
    found = given.source.prometheus or world.where(given.connection).prometheus
    if not sources and not found:
        raise Invalid(
            "no source of measured use is given. Give --prometheus URL, --trace FILE, or --usage DIR, a folder that "
            f"{suggested('quota top --metrics URL --snapshot DIR')} fills"
        )
    if given.compact and not given.usage:
        raise Invalid("--compact needs --usage DIR. Give both, or leave out --compact")
    return "" if given.usage or given.trace else found or ""


def trace_keys(trace: TraceFiles, given: Sequence[str] | None) -> list[str]:
    """Return the quota keys to use with a trace: the `given` keys, or else the default keys. The result leaves out the
    default key `consumer_byte_rate`, and default keys for which the trace has no column. JSON lines have no header, so
    no column counts as missing.

    The column `bytes` counts for producers, unless `given` has `consumer_byte_rate`.

    Raises Invalid for a given key without a column, for a trace without a column for any key, and for the byte rates of
    producers and consumers together.
    """
    if given and {PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE} <= set(given):
        raise Invalid(
            f"--trace: bytes count either for a producer or for a consumer. Give only one of --key "
            f"{PRODUCER_BYTE_RATE} and --key {CONSUMER_BYTE_RATE}"
        )
    keys = list(given or (key for key in KEYS if key != CONSUMER_BYTE_RATE))
    known = [key for key in keys if trace.header is None or QUOTA_KEYS[key].counts in trace.names]
    absent = next((key for key in keys if key not in known), None)
    if absent is not None and (given or not known):
        name = trace.files.given_names()[0]
        raise Invalid(
            f"--trace {name}: has no column {QUOTA_KEYS[absent].counts}, which the key {absent} needs. Add the column, "
            "or give another --key"
        )
    return known


def _compact(folders: Sequence[Path], where: Engine, scratch: Path) -> None:
    for number, folder in enumerate(folders):
        if not local_files.usage([folder]).waiting:
            continue
        with local_files.rolling(folder) as batch:
            # List the snapshots again, because another process may have compacted some before this one got the lock.
            waiting = local_files.usage([folder]).waiting
            if waiting:
                _compacted(batch, waiting, where, scratch / f"compact-{number}")


def _compacted(batch: HistoryBatch, waiting: Mapping[Path, SnapshotKey], where: Engine, scratch: Path) -> None:
    scratch.mkdir()
    laid = files.laid_out(waiting, scratch / "readings", ".jsonl")
    with spark_reader(scratch, laid, where) as reader:
        from kquota.spark import usage

        usage.write(usage.by_day(usage.readings(reader, laid)), batch.unfinished / "usage")
    place = batch.commit({"usage": batch.unfinished / "usage"}, set(waiting.values()))
    old = f"snapshot file{'' if len(waiting) == 1 else 's'}"
    say(f"compacted {counted(len(waiting), 'snapshot')} into {place}. You can delete the {old}")


def _listed(folders: Sequence[Path], cluster_id: str, window: timedelta) -> tuple[Listing, datetime]:
    """Return the history of this cluster and the time of its newest reading. The history has no waiting
    (not yet compacted) snapshots before the first day of the window.

    Raises Invalid if the folders contain no snapshot of this cluster, or if the window begins before the year 1.
    """
    every, named = local_files.usage(folders), ", ".join(map(str, folders))
    if cluster_id not in every.clusters():
        raise Invalid(
            f"--usage {named}: contains no usage snapshot of cluster {cluster_id}. Take one with "
            f"{suggested(f'quota top --metrics URL --snapshot {shlex.quote(str(folders[0]))}')}"
        )
    found = every.of(cluster_id)
    end = max(each.time for each in (*found.held, *found.waiting.values()))
    try:
        return found.since((end - window).date()), end
    except OverflowError as error:
        when = end.date().isoformat()
        raise Invalid(
            f"--usage {named}: the newest reading is from {when}. Remove readings with wrong times"
        ) from error
