"""The option `--textfile`: the moves and throttles of a cluster, in the format of node exporter's textfile
collector.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kquota import durable
from kquota.cli import move_stores, world
from kquota.errors import Invalid, Refused
from kquota.measure import highest, total
from kquota.terms import REPLICATION_RATES
from kquota.throttle import actions, doctor
from kquota.watch.observation import MoveWatch

LAST_SUCCESS: Final = "kquota_last_success_timestamp_seconds"
EXIT_CODE: Final = "kquota_last_exit_code"
GAUGES: Final[Mapping[str, str]] = {
    "kquota_moves_running": "Runs whose moves have not ended. All moves of other clients together count as one.",
    "kquota_bytes_left": "Bytes that the running moves still have to copy. Absent if unknown.",
    "kquota_seconds_left": "Minimum seconds for the running moves at their throttle rates. Absent if unknown.",
    "kquota_throttled_brokers": "Brokers that answered and have a replication throttle rate.",
    "kquota_leftover_throttles": "Throttled replica lists and rates that no run holds and no move can use.",
    LAST_SUCCESS: "Time of the last command that read the whole state (Unix time).",
    EXIT_CODE: "Exit code of the last command: 0 done, 8 not finished or with findings, others failed.",
}
"""Every metric and its help. Every metric has the label `cluster` with the cluster id."""
_LABEL: Final = "cluster"
_ENDING: Final = ".prom"
_MOST_BYTES: Final = 65_536
_MARK: Final = b"# HELP kquota_"
_CLUSTER_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_READABLE: Final = 0o644
"""The mode of the file. Every user can read it, because node exporter runs as another user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMetrics:
    """The values of a previous file that the next file needs."""

    cluster: str
    """The cluster id."""
    last_success: float | None
    """The time of the last success (Unix time in seconds), or None if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFile:
    """The file of `--textfile`, and the cluster that it describes."""

    path: Path
    at: world.Where
    state_dir: Path | None
    """The folder of the journals, or None for the user's XDG state folder."""
    before: KeptMetrics | None
    """The values of the previous file, or None without a valid previous file."""

    def read(self) -> tuple[str, Mapping[str, float | None]]:
        """Return the cluster id, and the value of each metric of the moves and throttles. None means unknown.

        Raises Unreachable if the cluster does not answer, and Refused if it refuses a request or a journal cannot be
        read.
        """
        with move_stores.watching(self.at, self.state_dir) as (watched, runs):
            watch = MoveWatch(watched)
            views = watch.glance().view.moves
            if any(view.run is None for view in views):
                # Read again, because the first reading discovers other clients' moves, but does not read their
                # partitions.
                views = watch.glance().view.moves
            cluster = runs.cluster_id
        with move_stores.throttling(self.at, self.state_dir) as ports:
            throttles = actions.read(ports)
            left = {setting for one in doctor.findings(throttles) if one.fixable for setting in one.values}
        moving = [view for view in views if not view.ended]
        limited = [b for b in throttles.brokers if any(throttles.rate(b, key) for key in REPLICATION_RATES)]
        values: dict[str, float | None] = {
            "kquota_moves_running": len(moving),
            "kquota_bytes_left": total(view.left for view in moving),
            "kquota_seconds_left": highest([0.0, *(view.least_seconds for view in moving)]),
            "kquota_throttled_brokers": len(limited),
            "kquota_leftover_throttles": None if throttles.unread_topics else len(left),
        }
        return cluster, values

    def write(self, cluster: str, values: Mapping[str, float | None], code: int) -> None:
        """Replace the file after a success. `code` is the exit code. Raises Refused if the file cannot be written."""
        now = datetime.now(UTC).timestamp()
        self._replace(exposition(cluster, {**values, LAST_SUCCESS: now, EXIT_CODE: code}))

    def keep(self, code: int) -> None:
        """After a failure, write the exit code and the time of the last success. All other values are unknown.

        Without a valid previous file the cluster id is unknown, so nothing is written. A write error causes only a
        warning, because kquota also reports the failure of the command.
        """
        if self.before is None:
            return
        try:
            values = {LAST_SUCCESS: self.before.last_success, EXIT_CODE: code}
            self._replace(exposition(self.before.cluster, values))
        except Refused as error:
            world.warn(str(error))

    def _replace(self, page: bytes) -> None:
        try:
            with durable.replacing(self.path) as file:
                os.fchmod(file.fileno(), _READABLE)
                file.write(page)
        except OSError as error:
            raise Refused(
                f"--textfile {self.path}: cannot be written: {error.strerror}. Check its folder, or choose another file"
            ) from error


def opened(asked: Any) -> MetricsFile:
    """Return the file of `--textfile`, and warn if the previous file is damaged.

    Raises Invalid if the name does not end in `.prom`, if kquota cannot read or write the file, if it is not a regular
    file, or if another program wrote it. Also raises the errors of `world.where`.
    """
    path = asked.textfile.absolute()
    return MetricsFile(
        path=path, at=world.where(asked.connection), state_dir=asked.state_dir, before=_checked(path, datetime.now(UTC))
    )


def _checked(path: Path, now: datetime) -> KeptMetrics | None:
    if path.suffix != _ENDING:
        raise Invalid(
            f"--textfile {path}: node exporter reads only files whose names end in {_ENDING}. Choose a name with this "
            "ending"
        )
    try:
        if not path.parent.is_dir():
            raise Invalid(
                f"--textfile {path}: the folder {path.parent} does not exist. Create the folder, or choose another file"
            )
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise Invalid(f"--textfile {path}: the folder {path.parent} is not writable. Choose another file")
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(mode):
            raise Invalid(f"--textfile {path}: is not a regular file. Choose another file")
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Invalid(
            f"--textfile {path}: cannot be read: {error.strerror}. Check its permissions, or choose another file"
        ) from error
    if not text:
        return None
    if len(text) > _MOST_BYTES or not text.startswith(_MARK):
        raise Invalid(f"--textfile {path}: already exists and contains no kquota metrics. Choose another file")
    found = previous(text, now)
    if found is None:
        world.warn(f"--textfile {path}: is damaged, so the time of the last success is unknown")
    return found


def previous(text: bytes, now: datetime) -> KeptMetrics | None:
    """Return the values of a previous file that the next file needs, or None if the previous file is damaged. A time of
    success after `now` counts as unknown.
    """
    try:
        families = list(text_string_to_metric_families(text.decode()))
    except Exception:  # noqa: BLE001 - the parser raises errors of many types for a damaged file
        return None
    samples = [sample for family in families for sample in family.samples]
    clusters = {sample.labels.get(_LABEL, "") for sample in samples}
    if len(clusters) != 1 or any(sample.name not in GAUGES for sample in samples):
        return None
    [cluster] = clusters
    if _CLUSTER_ID.fullmatch(cluster) is None:
        return None
    times = [sample.value for sample in samples if sample.name == LAST_SUCCESS]
    valid = len(times) == 1 and math.isfinite(times[0]) and 0 < times[0] <= now.timestamp()
    return KeptMetrics(cluster=cluster, last_success=times[0] if valid else None)


def exposition(cluster: str, values: Mapping[str, float | None]) -> bytes:
    """Return the metrics in Prometheus' text format, in the order of `GAUGES`. An unknown value (None) has no
    sample.
    """
    registry = CollectorRegistry()
    for name, help_text in GAUGES.items():
        if (value := values.get(name)) is not None:
            Gauge(name, help_text, [_LABEL], registry=registry).labels(cluster).set(value)
    return generate_latest(registry)
