"""The rule of --generate against Kafka's own AdminUtils: the same brokers, racks and start give the same replicas."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from kquota.placement.generate import placed
from kquota.terms import BrokerId
from tests.cli.kafka_tools import source_command

# 4.3's tool no longer has it: it uses KRaft's StripedReplicaPlacer, like the controller.
VERSION = "3.9.1"
CASES = 3_000
NAMES = ("a", "b", "B", "rack-10", "rack-9", "\N{GREEK SMALL LETTER ALPHA}")


def case(draw: random.Random) -> tuple[dict[BrokerId, str | None], list[int]]:
    """Brokers with their racks, and partitions, replication factor, start, seed."""
    ids = sorted(draw.sample(range(draw.choice([12, 2_000])), draw.randint(1, 12)))
    names = draw.sample(NAMES, draw.randint(1, len(NAMES))) if draw.random() < 0.7 else [None]
    racks = {BrokerId(broker): draw.choice(names) for broker in ids}
    start = draw.randint(0, 15) if draw.random() < 0.5 else -1
    return racks, [draw.randint(1, 40), draw.randint(1, len(ids)), start, draw.randrange(2**48)]


def test_the_replicas_match_kafka() -> None:
    draw = random.Random(73)
    cases = [case(draw) for _ in range(CASES)]
    brokers = [" ".join(str(b) if rack is None else f"{b}={rack}" for b, rack in racks.items()) for racks, _ in cases]
    asked = "".join(
        f"{' '.join(map(str, numbers))} {told}\n" for (_, numbers), told in zip(cases, brokers, strict=True)
    )
    command = source_command(VERSION, Path(__file__).with_name("AssignReplicas.java"))
    answers = subprocess.run(
        command, input=asked, capture_output=True, encoding="utf-8", check=True
    ).stdout.splitlines()
    for (racks, (partitions, factor, *_)), answer in zip(cases, answers, strict=True):
        start, shift, *theirs = answer.split()
        ours = placed(racks, partitions, factor, start=int(start), shift=int(shift))
        assert [f"{n}:{','.join(map(str, replicas))}" for n, replicas in ours.items()] == theirs, (racks, answer)
