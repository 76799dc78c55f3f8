"""The lines of a snapshot: one flat JSON object for each replica, which any tool can read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final, TypeVar

from kquota import bounded
from kquota.errors import Invalid, NextStep
from kquota.sizes.replica import LogDir, Replica
from kquota.terms import BrokerId, TopicPartition

VERSION: Final = 2
"""The version of the rows. kquota refuses every other version."""
STAMP: Final = "%Y-%m-%dT%H:%M:%SZ"
"""The format of times in rows: UTC, to the second."""
_order: Final = attrgetter("partition", "future")
_WORDS: Final = {None: "null", True: "true", False: "false"}
_T = TypeVar("_T")


def lines(cluster_id: str, time: datetime, log_dirs: Iterable[LogDir]) -> Iterator[str]:
    """Yield one line for each replica, sorted by broker, log dir, topic and partition. Lines have no line break at the
    end.

    Sizes are in bytes, and times in UTC. null means that the value is unknown, never zero. For `rack`, null means that
    the broker has no rack. A log dir without replicas has no line.
    """
    stamp = time.astimezone(UTC).strftime(STAMP)
    for log_dir in sorted(log_dirs, key=lambda found: (found.broker, found.path)):
        place = {"broker": log_dir.broker, "rack": log_dir.rack, "log_dir": log_dir.path}
        head = _json({"version": VERSION, "cluster": cluster_id, "time": stamp} | place).removesuffix("}")
        tail = _json({"volume_total": log_dir.volume_total, "volume_usable": log_dir.volume_usable}).removeprefix("{")
        for replica in sorted(log_dir.replicas, key=_order):
            yield f"{head},{_of_replica(replica)},{tail}"


def _json(row: Mapping[str, object]) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def _of_replica(replica: Replica) -> str:
    """Return the JSON fields of one replica. `json` would take five times as long, and topic names need no escaping."""
    topic, partition = replica.partition
    start, local_start, end = replica.start_offset, replica.local_start_offset, replica.end_offset
    return (
        f'"topic":"{topic}","partition":{partition},"size":{replica.size},'
        f'"start_offset":{"null" if start is None else start},'
        f'"local_start_offset":{"null" if local_start is None else local_start},'
        f'"end_offset":{"null" if end is None else end},'
        f'"future":{_WORDS[replica.future]},"leader":{_WORDS[replica.leader]},"in_sync":{_WORDS[replica.in_sync]}'
    )


def log_dirs(rows: Iterable[str | bytes], where: str) -> list[LogDir]:
    """Return the log dirs in the lines of a snapshot, sorted by broker and path.

    A log dir without replicas is missing, because it has no line. Every `offset_lag` is 0 and every `error` is None,
    because a snapshot does not contain them. Raises Invalid for an invalid row, and for another version than `VERSION`.
    The message begins with `where`.
    """
    volumes: dict[tuple[BrokerId, str], tuple[str | None, int | None, int | None]] = {}
    held: dict[tuple[BrokerId, str], list[Replica]] = defaultdict(list)
    for number, line in enumerate(rows, 1):
        try:
            row = bounded.json_object(line)
            if row["version"] != VERSION:
                raise Invalid(
                    f"{where}: unknown version {row['version']}. Use the version of kquota that wrote the file, or "
                    "a newer one"
                )
            place = (BrokerId(int(row["broker"])), str(row["log_dir"]))
            sizes = _typed(int, row["volume_total"]), _typed(int, row["volume_usable"])
            volumes[place] = (_typed(str, row["rack"]), *sizes)
            held[place].append(
                Replica(
                    partition=TopicPartition(str(row["topic"]), int(row["partition"])),
                    size=int(row["size"]),
                    offset_lag=0,
                    future=bool(row["future"]),
                    start_offset=_typed(int, row["start_offset"]),
                    local_start_offset=_typed(int, row["local_start_offset"]),
                    end_offset=_typed(int, row["end_offset"]),
                    leader=_typed(bool, row["leader"]),
                    in_sync=_typed(bool, row["in_sync"]),
                )
            )
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise Invalid(f"{where}: line {number} is not a row of a snapshot. ", NextStep.TAKE_SNAPSHOT) from error
    return [
        LogDir(
            broker=broker,
            rack=rack,
            path=path,
            error=None,
            volume_total=total,
            volume_usable=usable,
            replicas=tuple(held[broker, path]),
        )
        for (broker, path), (rack, total, usable) in sorted(volumes.items(), key=lambda item: item[0])
    ]


def _typed(kind: type[_T], value: Any) -> _T | None:
    # `isinstance` would accept true as a number.
    if value is not None and type(value) is not kind:
        raise ValueError(f"{value!r:.40} is not of type {kind.__name__}")
    return value
