"""Replica rows in the form of snapshots, written for a test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

Row = dict[str, object]


def row(broker: int | None, topic: str | None, partition: int | None, size: int | None, **more: object) -> Row:
    return {
        "version": 2,
        "cluster": "c",
        "time": "2026-11-21T01:02:03Z",
        "broker": broker,
        "rack": None,
        "log_dir": "/d",
        "topic": topic,
        "partition": partition,
        "size": size,
        "start_offset": None,
        "local_start_offset": more.get("start_offset") or 0,
        "end_offset": None,
        "future": False,
        "leader": None,
        "in_sync": None,
        "volume_total": None,
        "volume_usable": None,
    } | more


def written(path: Path, rows: Iterable[Row]) -> str:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(one) + "\n" for one in rows)
    return str(path)


def log_dirs(*brokers: tuple[int, dict[str, int]], version: int = 1) -> str:
    """Return the output of kafka-log-dirs. `brokers` has pairs of a broker and the sizes of its partitions."""
    document = {
        "version": version,
        "brokers": [
            {
                "broker": broker,
                "logDirs": [
                    {
                        "logDir": "/d",
                        "error": None,
                        "partitions": [
                            {"partition": name, "size": size, "offsetLag": 0, "isFuture": False}
                            for name, size in held.items()
                        ],
                    }
                ],
            }
            for broker, held in brokers
        ],
    }
    ids = ",".join(str(broker) for broker, _ in brokers)
    return (
        "Querying brokers for log directories information\n"
        f"Received log directory information from brokers {ids}\n{json.dumps(document)}\n"
    )
