"""Clients with a load that steps up and down, in a separate process that reports the latency of their writes.

`python -m bench.clients BOOTSTRAP TOPIC PARTITIONS STEP_SECONDS RATE…` writes until stdin is closed, and prints JSON.
"""

from __future__ import annotations

import gc
import json
import math
import os
import select
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Producer

from kquota.sandbox import traffic

RECORD: Final = 10_000
BATCH: Final = 32_000
_PAYLOAD: Final = os.urandom(RECORD)
_PAUSE: Final = 0.004
_LAST_SECONDS: Final = 60.0
_LINGER_MS: Final = 20
"""The longest wait for a batch. Without batches, the requests would use most of this machine's CPU."""


def main(arguments: Sequence[str]) -> None:
    """Write records evenly over the partitions, with each rate (bytes per second) in turn, until stdin has data or
    ends. Then print the seconds as JSON.
    """
    gc.disable()  # a collection would delay writes, and there are no reference cycles
    bootstrap, topic, partitions, step, *rates = arguments
    client = _Client(bootstrap, topic, int(partitions))
    wanted = [float(rate) / RECORD for rate in rates]
    began = last = time.time()
    due = 0.0
    while not select.select([sys.stdin], [], [], 0)[0]:
        now = time.time()
        rate = wanted[int((now - began) / float(step)) % len(wanted)]
        due += rate * (now - last)
        last = now
        while due >= 1:
            client.send(rate)
            due -= 1
        client.producer.poll(_PAUSE)
    client.producer.flush(_LAST_SECONDS)
    print(json.dumps(client.seconds()))


def quantile(latencies: Collection[float], share: float) -> float:
    """Return the quantile `share` (0 to 1) of the latencies. There must be at least one latency."""
    return sorted(latencies)[math.ceil(share * len(latencies)) - 1]


def fill(bootstrap: str, topic: str, partitions: int, size: int) -> None:
    """Write `size` bytes evenly over the partitions, in batches of at most `BATCH` bytes. A fetch of one partition can
    return more than a batch."""
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": BATCH, "linger.ms": 50, "log_level": 2})
    for number in range(size // RECORD):
        traffic.put(producer, topic, _PAYLOAD, number % partitions)
    producer.flush(_LAST_SECONDS)


class _Client:
    """A client with `acks=all`, batches of up to 20 ms, and librdkafka's defaults for all other options. A write counts
    in the second in which it was sent.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic, self._partitions, self._sent = topic, partitions, 0
        self._latencies: defaultdict[int, list[float]] = defaultdict(list)
        self._rates: dict[int, float] = {}
        options = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": _LINGER_MS, "log_level": 2}
        self.producer = Producer(options)

    def send(self, rate: float) -> None:
        self._sent += 1
        self._rates.setdefault(int(time.time()), rate)
        self.producer.produce(
            self._topic, _PAYLOAD, partition=self._sent % self._partitions, on_delivery=self._answered(time.time())
        )

    def _answered(self, sent: float) -> Callable[[Any, Any], None]:
        def answered(error: object, _: object) -> None:
            self._latencies[int(sent)].append(time.time() - sent if error is None else math.inf)

        return answered

    def seconds(self) -> list[Mapping[str, Any]]:
        """Return the rate and the latencies of each second, without the first and the last second, which are
        incomplete.
        """
        whole = sorted(self._latencies)[1:-1]
        return [
            {
                "second": one,
                "written": self._rates[one] * RECORD,
                "p50": quantile(self._latencies[one], 0.5),
                "p99": quantile(self._latencies[one], 0.99),
                "latencies": [round(latency, 4) for latency in self._latencies[one]],
            }
            for one in whole
        ]


if __name__ == "__main__":
    main(sys.argv[1:])
