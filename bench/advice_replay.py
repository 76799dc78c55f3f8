"""The throttle time that `quota advise` predicts, compared with the throttle time of a broker for the same load.

`python -m bench.advice_replay ROUNDS` takes about two minutes for each round. It is not a part of `make bench`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import Producer
from tabulate import tabulate

from bench.race import kquota, say
from bench.servers import brokers
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.state import usage_files
from kquota.terms import PRODUCER_BYTE_RATE

_BEGIN: Final = datetime(2026, 11, 20, tzinfo=UTC)
_USUAL, _BUSY = 2e5, 8e5
_RULES: Final = ("--percentile", "90", "--head-room", "100%")
_PIECES: Final = ((_USUAL, 12.0), (_BUSY, 30.0), (_USUAL, 75.0))
"""The load that the broker gets: pairs of a rate in bytes per second and the seconds for which it lasts."""
_RECORD: Final = 10_000
_PROMISED: Final = 0.1


def main(rounds: int) -> None:
    """Print a table with one row for each round."""
    rows = []
    for number in range(rounds):
        client = f"replayed-{number}"
        with brokers("advice", count=1) as found, TemporaryDirectory(prefix="kquota-bench-") as folder:
            predicted = _predicted(found, Path(folder), client)
            say(f"sending the load for {sum(seconds for _, seconds in _PIECES):.0f} s ...")
            traffic.create(found.bootstrap, "replayed", [[1]])
            measured = _throttled_seconds(found.bootstrap, "replayed", client)
        off = abs(measured / predicted - 1)
        rows.append([f"{predicted:.1f}", f"{measured:.1f}", f"{off:.0%}", "kept" if off <= _PROMISED else "missed"])
    headers = ["predicted, s", "measured, s", "off", f"{_PROMISED:.0%}"]
    print(tabulate(rows, headers=headers, disable_numparse=True))


def _predicted(of: Sandbox, folder: Path, client: str) -> float:
    """Set the proposed quota, and return the predicted throttle time."""
    with Wire(of.bootstrap, {}) as wire:
        _write_week(folder / "usage", wire.cluster_id, client)
    command = ("quota", "advise", "--bootstrap-server", of.bootstrap, "--usage", str(folder / "usage"), *_RULES)
    document = folder / "quotas.yaml"
    document.write_bytes(_run(*command))
    [found] = json.loads(_run(*command, "--output", "json"))["clients"]
    _run("quota", "apply", "--yes", "--bootstrap-server", of.bootstrap, str(document))
    return float(found["throttle_seconds"])


def _run(*arguments: str) -> Any:
    return subprocess.run(kquota(*arguments), stdout=subprocess.PIPE, check=True).stdout


def _write_week(folder: Path, cluster: str, client: str) -> None:
    """Write six days of hourly readings, then five minutes with a reading every 10 s.

    In the first half minute of these five minutes, the use is four times as high.
    """
    bucket = QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id=client)
    uses = [(_BEGIN + timedelta(hours=n), _USUAL) for n in range(6 * 24)]
    last = uses[-1][0]
    uses += [(last + timedelta(seconds=10 * n), _BUSY if n <= 3 else _USUAL) for n in range(1, 31)]
    for at, used in uses:
        usage_files.add(folder, cluster, at, [(bucket, BucketUse(broker="1", used=used))])


def _throttled_seconds(bootstrap: str, topic: str, client: str) -> float:
    """Send the load, with one request for each record. Return the sum of all throttle times in seconds.

    A client with larger requests would wait less, because a broker accepts each request as a whole before it delays.
    """
    waits: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client,
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
    )
    due = time.monotonic()
    for rate, seconds in _PIECES:
        end = due + seconds
        while due < end:
            producer.poll(max(0.0, due - time.monotonic()))
            if time.monotonic() >= due:
                producer.produce(topic, bytes(_RECORD))
                due += _RECORD / rate
    assert producer.flush(120) == 0
    return sum(waits)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
