"""A snapshot's lines: one flat JSON object per replica, so that years of them stay readable by anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from kquota.sizes.replica import LogDir

VERSION: Final = 1


def lines(cluster_id: str, time: datetime, log_dirs: Iterable[LogDir]) -> Iterator[str]:
    """One line per replica, ordered by broker, log dir, topic, partition. Sizes in bytes, time in UTC to the second.

    null is "the broker did not tell", never zero.
    """
    stamp = time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for log_dir in sorted(log_dirs, key=lambda found: (found.broker, found.path)):
        for replica in sorted(log_dir.replicas, key=lambda found: (found.partition, found.future)):
            row = {
                "version": VERSION,
                "cluster": cluster_id,
                "time": stamp,
                "broker": log_dir.broker,
                "rack": log_dir.rack,
                "log_dir": log_dir.path,
                "topic": replica.partition.topic,
                "partition": replica.partition.partition,
                "size": replica.size,
                "end_offset": replica.end_offset,
                "future": replica.future,
                "leader": replica.leader,
                "in_sync": replica.in_sync,
                "volume_total": log_dir.volume_total,
                "volume_usable": log_dir.volume_usable,
            }
            yield json.dumps(row, separators=(",", ":"), ensure_ascii=False)
