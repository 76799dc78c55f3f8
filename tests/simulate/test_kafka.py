"""Rates and buckets against Kafka's own classes of three releases: the same loads give the same numbers."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from kquota.simulate.delay import Bucket, Mutations, Throughput, throttle_time_ms
from kquota.simulate.rate import Rate
from tests.cli.kafka_tools import source_command

LOADS = 2_000
START = 1_700_000_000_000
"""Brokers count from 1970, so an unused bucket is full."""


Load: TypeAlias = tuple[str, int, int, int, list[tuple[int, float | None]]]


def load(draw: random.Random) -> Load:
    """A statistic, its windows, its limit, and the recorded values with their times (None: measure)."""
    kind = draw.choice(["rate", "bucket"])
    samples, window = draw.choice([(11, 1_000), (draw.randint(2, 5), draw.choice([1_000, 2_000])), (100, 1_000)])
    now, steps = START + draw.randint(0, 10**6), []
    for _ in range(draw.randint(1, 60)):
        now += draw.choice([0, 1, draw.randint(0, 500), draw.randint(0, 3_000), draw.randint(0, 30_000)])
        steps.append((now, None if draw.random() < 0.4 else float(draw.choice([0, 1, draw.randint(1, 10**6)]))))
    return kind, samples, window, draw.randint(1, 10**5), steps


def measured_by_kafka(version: str, loads: Sequence[Load]) -> list[list[list[float]]]:
    """The measurements of Kafka's classes for each load: the rate and its window in milliseconds, or the tokens."""
    asked = "".join(
        f"{kind} {samples} {window} {bound} "
        + " ".join(f"m:{now}" if value is None else f"r:{now}:{value}" for now, value in steps)
        + "\n"
        for kind, samples, window, bound, steps in loads
    )
    command = source_command(version, Path(__file__).with_name("Sensors.java"))
    answers = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", check=True).stdout
    return [[[float(n) for n in word.split(":")] for word in answer.split()] for answer in answers.splitlines()]


def ours(kind: str, samples: int, window: int, bound: int, steps: list[tuple[int, float | None]]) -> str:
    words = []
    if kind == "bucket":
        bucket = Bucket(rate=bound, samples=samples, sample_ms=window)
        for now, value in steps:
            if value is None:
                words.append(repr(bucket.tokens(now)))
            else:
                bucket.record(value, now)
        return " ".join(words)
    rate = Rate(samples=samples, sample_ms=window)
    for now, value in steps:
        if value is None:
            measured, window_ms = rate.observed(now)
            words.append(f"{measured!r}:{window_ms}")
        else:
            rate.record(value, now)
    return " ".join(words)


KINDS = {"4.3.1": ("rate", "bucket"), "3.9.1": ("rate", "bucket"), "2.8.2": ("bucket",)}
"""The statistics of each release that kquota simulates. The rate of Kafka 2.8.2 has shorter windows."""


@pytest.mark.parametrize(("version", "kinds"), KINDS.items())
def test_the_numbers_match_kafka(version: str, kinds: tuple[str, ...]) -> None:
    draw = random.Random(599)
    loads = [one for _ in range(LOADS) if (one := load(draw))[0] in kinds]
    for one, theirs in zip(loads, measured_by_kafka(version, loads), strict=True):
        mine = [[float(n) for n in word.split(":")] for word in ours(*one).split()]
        assert mine == theirs, one


WINDOWS = {"4.3.1": (11_000, 12_000), "3.9.1": (11_000, 12_000), "2.8.2": (10_000, 11_000)}
"""The shortest and the longest window in milliseconds of a client that sends steadily, for each release."""


@pytest.mark.parametrize(("version", "limits"), WINDOWS.items())
def test_the_window_of_a_steady_client_depends_on_the_release(version: str, limits: tuple[int, int]) -> None:
    steps = [(START + n // 2 * 10, None if n % 2 else 1.0) for n in range(12_000)]
    (measured,) = measured_by_kafka(version, [("rate", 11, 1_000, 1, steps)])
    steady = [window for _, window in measured[len(measured) // 2 :]]
    shortest, longest = limits
    assert shortest - 10 <= min(steady) <= max(steady) < longest
    assert max(steady) >= longest - 20


def managed(draw: random.Random) -> tuple[str, int, int, float, list[tuple[int, float]]]:
    """A quota manager, its windows, its limit, and the times and amounts of the requests."""
    kind = draw.choice(["produce", "fetch", "request", "strict", "permissive", "topics"])
    samples, seconds = draw.choice([(11, 1), (draw.randint(2, 5), draw.choice([1, 2])), (100, 1)])
    bound = draw.choice([0.1, 1.0, 5.0, float(draw.randint(1, 10**6))])
    now, requests = START + draw.randint(0, 10**6), []
    for _ in range(draw.randint(1, 40)):
        now += draw.choice([0, 1, draw.randint(0, 500), draw.randint(0, 3_000), draw.randint(0, 30_000)])
        requests.append((now, float(draw.choice([0, 1, draw.randint(1, 100), draw.randint(1, 10) * bound]))))
    return kind, samples, seconds, bound, requests


def answered(kind: str, samples: int, seconds: int, bound: float, requests: list[tuple[int, float]]) -> str:
    rate = Rate(samples=samples, sample_ms=seconds * 1_000)
    throughput = Throughput(bound=bound, longest_ms=seconds * 1_000 if kind == "request" else None, rate=rate)
    mutations = Mutations(Bucket(rate=bound, samples=samples, sample_ms=seconds * 1_000))
    words = []
    if kind == "topics":
        return topics(mutations, requests)
    for now, value in requests:
        if kind == "strict":
            wait = mutations.admit(value, now)
            words.append("0" if wait is None else f"x{wait}")
        elif kind == "permissive":
            words.append(str(mutations.delay(value, now)))
        else:
            wait = throughput.record(value, now)
            if kind == "fetch" and wait:
                throughput.forget(value, now)
            words.append(str(wait))
    if kind == "fetch":
        words.append(str(throughput.most))
    return " ".join(words)


def topics(mutations: Mutations, requests: list[tuple[int, float]]) -> str:
    """The waits of the topics of one request, and the throttle time of its response at the time of the last item. Kafka
    takes the last rejected topic in place of the minimum.
    """
    words, last, rejected_at = [], [], 0
    for now, value in requests[:-1]:
        wait = mutations.admit(value, now)
        words.append("0" if wait is None else f"x{wait}")
        if wait is not None:
            last, rejected_at = [wait], now
    answered_at = requests[-1][0]
    return " ".join([*words, str(throttle_time_ms(0, last, answered_at - rejected_at))])


def test_the_waits_match_kafkas_quota_managers() -> None:
    draw = random.Random(124)
    loads = [managed(draw) for _ in range(LOADS)]
    asked = "".join(
        f"{kind} {samples} {seconds} {bound!r} " + " ".join(f"{now}:{value!r}" for now, value in requests) + "\n"
        for kind, samples, seconds, bound, requests in loads
    )
    command = source_command("4.3.1", Path(__file__).with_name("Managers.java"))
    answers = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", check=True).stdout
    for one, answer in zip(loads, answers.splitlines(), strict=True):
        assert answered(*one) == answer, one
