"""kafka-log-dirs' JSON, field by field as Kafka 4.3.1 prints it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId


def printed(brokers: Collection[BrokerId], log_dirs: Iterable[LogDir]) -> str:
    """One line of JSON; brokers, log dirs and partitions in ascending order. A broker without log dirs stays listed."""
    of_broker: dict[BrokerId, list[dict[str, object]]] = {broker: [] for broker in sorted(brokers)}
    for log_dir in sorted(log_dirs, key=lambda found: (found.broker, found.path)):
        of_broker[log_dir.broker].append(
            {
                "partitions": [
                    {
                        "partition": str(replica.partition),
                        "size": replica.size,
                        "offsetLag": replica.offset_lag,
                        "isFuture": replica.future,
                    }
                    for replica in sorted(log_dir.replicas, key=lambda found: (found.partition, found.future))
                ],
                "error": log_dir.error,
                "logDir": log_dir.path,
            }
        )
    document = {"brokers": [{"broker": broker, "logDirs": found} for broker, found in of_broker.items()], "version": 1}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
